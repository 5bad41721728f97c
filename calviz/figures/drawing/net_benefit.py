"""How net benefit is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.drawing.curves_and_labels import Trace, area, label, line, vertical_mark
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import DASHES, Palette, axis
from calviz.text.escape import plotly_text
from calviz.text.words import level_text

if TYPE_CHECKING:
    from calviz.figures.net_benefit import NetBenefit, Shown

#: Margins of the panel in pixels.
_MARGINS = (70, 28, 26, 54)
_TITLES: dict[Shown, str] = {
    "net-benefit": "Net benefit",
    "standardised": "Net benefit / share of hits",
    "avoided": "Actions avoided per 100 rows",
}


def draw(
    figure: NetBenefit,
    sheet: Sheet,
    *,
    shown: Shown,
    at: float | None,
    others: tuple[NetBenefit, ...],
) -> Picture:
    """Draw computed net benefits (see `NetBenefit.plot`)."""
    drawing = _NetBenefitCurves(figure, sheet.palette, shown, at, others)
    traces = list(drawing.traces())
    return sheet.picture(
        traces,
        inner=sheet.panel_height,
        margins=_MARGINS,
        above=20,
        annotations=drawing.cutoff_label(),
        **drawing.axes(),
    )


@dataclass(frozen=True)
class _NetBenefitCurves:
    figure: NetBenefit
    palette: Palette
    shown: Shown
    at: float | None
    others: tuple[NetBenefit, ...]

    def traces(self) -> Iterator[Trace]:
        """Yield the traces from back to front."""
        f, p, shown = self.figure, self.palette, self.shown
        if shown in f.bands:
            name = f"{level_text(f.level)} bootstrap range"
            low, high = (np.clip(end, *self._up) for end in f.bands[shown])
            yield area(f.cutoff, low, high, p.glaze(p.blue, 0.2), name=name, legendrank=20)
        attributes = {"hoverinfo": "skip", "width": 1.5}
        everybody = f.everybody[shown]
        yield line(
            f.cutoff,
            everybody,
            p.muted,
            name="Act on everybody",
            dash="dash",
            legendrank=30,
            **attributes,
        )
        if shown != "avoided":
            ends = np.array([0.0, 1.0])
            yield line(
                ends,
                0 * ends,
                p.ink,
                name="Act on nobody",
                dash="2px,3px",
                legendrank=31,
                **attributes,
            )
        if self.at is not None:
            yield vertical_mark(self.at, *self._up, p.ink)
        # Acting on nobody is dotted.
        colours, dashes = (p.vermillion, p.green), (DASHES[1], DASHES[3])
        for i, other in enumerate(self.others):
            name = plotly_text(other.name, 44)
            yield self._one(other, colours[i % 2], name, dash=dashes[i % 2], legendrank=2 + i)
        name = plotly_text(f.name, 30) if self.others else "Act by the scores"
        yield self._one(f, p.blue, name, width=2.5, legendrank=1)

    def _one(self, f: NetBenefit, colour: str, name: str, **attributes: Any) -> Trace:
        hover = f"cutoff %{{x:.2f}}: %{{y:.3~f}}<extra>{name}</extra>"
        return line(
            f.cutoff, f.values[self.shown], colour, name=name, hovertemplate=hover, **attributes
        )

    def cutoff_label(self) -> Iterator[dict[str, Any]]:
        """Label the marked cutoff above the panel."""
        if self.at is not None:
            anchor = "right" if self.at > 0.75 else "left" if self.at < 0.25 else "center"
            place = {"x": self.at, "y": 1, "yref": "paper", "yshift": 2, "xanchor": anchor}
            yield label(f"cutoff {self.at:.3g}", self.palette, **place, yanchor="bottom")

    @property
    def _up(self) -> tuple[float, float]:
        """Range of the vertical axis; values far below 0 are cut off, as their size does not matter."""
        every = [f.values[self.shown] for f in (self.figure, *self.others)]
        band = self.figure.bands.get(self.shown)
        tops = [*every, self.figure.everybody[self.shown], *([band.high] if band else [])]
        high = max([float(np.nanmax(v)) for v in tops if np.isfinite(v).any()], default=1.0)
        high = max(high, 1.0 if self.shown == "avoided" else 0.02)
        lowest = min([float(np.nanmin(v)) for v in every if np.isfinite(v).any()], default=0.0)
        return max(min(lowest, 0.0) - 0.03 * high, -0.25 * high), 1.06 * high

    def axes(self) -> dict[str, Any]:
        """Return the axes: cutoff across, net benefit up."""
        p = self.palette
        return {
            "xaxis": axis(p, "Cutoff: act from this score on", range=[0, 1], nticks=11),
            "yaxis": axis(p, _TITLES[self.shown], range=list(self._up), nticks=7),
        }

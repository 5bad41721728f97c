"""How the risk-coverage curve is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import (
    UNFADED,
    Trace,
    area,
    label,
    line,
    markers,
    packed,
    vertical_mark,
)
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import DASHES, Palette, axis
from calviz.text.escape import plotly_text
from calviz.text.words import level_text, percent

if TYPE_CHECKING:
    from calviz.figures.risk_coverage import RiskCoverage, XAxis, YAxis

#: Margins of the panel, and its height on wide and narrow pages, in pixels.
_MARGINS = (64, 28, 14, 54)
_TALL, _SMALL = 380, 300
#: Diameter, in pixels, of the area around a point of the curve that reacts to the pointer.
_NEAR = 14


def draw(
    figure: RiskCoverage,
    sheet: Sheet,
    *,
    x: XAxis,
    y: YAxis,
    at: float | None,
    others: tuple[RiskCoverage, ...],
) -> Picture:
    """Draw a computed risk-coverage curve (see `RiskCoverage.plot`)."""
    drawing = _RiskCoverageCurves(figure, sheet.palette, x, y, others)
    traces = [*drawing.traces(), *drawing.mark(at)]
    return sheet.picture(
        traces,
        inner=_SMALL if sheet.narrow else _TALL,
        margins=_MARGINS,
        annotations=drawing.mark_label(at),
        **drawing.axes(),
    )


@dataclass(frozen=True)
class _RiskCoverageCurves:
    """Band, curves and reference lines, in the requested coordinates."""

    figure: RiskCoverage
    palette: Palette
    x: XAxis
    y: YAxis
    others: tuple[RiskCoverage, ...]

    def _across(self, coverage: FloatArray) -> FloatArray:
        return 100 * (1 - coverage if self.x == "referred" else coverage)

    def _up(self, risk: FloatArray) -> FloatArray:
        return 100 * (1 - risk if self.y == "accuracy" else risk)

    def traces(self) -> Iterator[Trace]:
        """Yield the traces from back to front."""
        f, p = self.figure, self.palette
        if f.band is not None:
            x = self._across(f.coverage)
            low, high = (self._up(end) for end in f.band)
            name = f"{level_text(f.level)} bootstrap range"
            yield area(x, low, high, p.glaze(p.blue, 0.2), name=name, legendrank=20)
        yield from self._curve(
            f.coverage,
            f.perfect,
            p.green,
            "Perfect ranking",
            width=1.5,
            dash="3px,3px",
            legendrank=30,
        )
        ends = f.risk[[-1, -1]]
        yield line(
            self._across(np.array([0.0, 1.0])),
            self._up(ends),
            p.muted,
            name="No ranking (all rows)",
            width=1.5,
            dash="dash",
            legendrank=40,
            hovertemplate=_hover("No ranking (all rows)"),
        )
        colours = (p.vermillion, p.purple, p.ink)
        for i, other in enumerate(self.others):
            if other.band is not None and len(self.others) <= 2:
                low, high = (self._up(end) for end in other.band)
                fill = p.glaze(colours[i % 3], 0.12)
                yield area(self._across(other.coverage), low, high, fill, showlegend=False)
            yield from self._curve(
                other.coverage,
                other.risk,
                colours[i % 3],
                self._name(other),
                # A repeated colour gets another dash.
                dash=DASHES[1 + (i + i // 3) % 3],
                legendrank=2 + i,
            )
        yield from self._curve(
            f.coverage, f.risk, p.blue, self._name(f), click=True, width=2.5, legendrank=1
        )

    def _curve(
        self,
        coverage: FloatArray,
        risk: FloatArray,
        colour: str,
        name: str,
        *,
        click: bool = False,
        **attributes: Any,
    ) -> Iterator[Trace]:
        """Yield a curve and one invisible marker per percent of coverage, with hover text and, with `click`, clickable.

        A line does not report where it was clicked, so it takes no hover that would compete with the markers.
        """
        trace = line(
            self._across(coverage),
            self._up(risk),
            colour,
            name=name,
            hoverinfo="skip",
            **attributes,
        )
        # A single row is a point.
        yield trace | {"mode": "markers"} if coverage.size == 1 else trace
        percent = np.unique(np.clip(np.round(100 * coverage), 1, 100).astype(int))
        clicked: dict[str, Any] = {"customdata": percent} if click else {}
        yield markers(
            packed(self._across(percent / 100)),
            packed(self._up(np.interp(percent / 100, coverage, risk))),
            colour,
            # Of overlapping points, plotly picks the largest.
            size=_NEAR if click else _NEAR / 2,
            opacity=0,
            selected={"marker": {"opacity": 0}},
            unselected={"marker": {"opacity": 0}},
            hovertemplate=_hover(name),
            showlegend=False,
            **clicked,
        )

    def _name(self, curve: RiskCoverage) -> str:
        every = (self.figure, *self.others)
        by = f"by {curve.ranking}"
        if len({c.name for c in every}) == 1:
            return by.capitalize()
        name = plotly_text(curve.name, 30)
        return name if len({c.ranking for c in every}) == 1 else f"{name}, {by}"

    def _marked(self, at: float) -> tuple[float, float]:
        f = self.figure
        risk = np.interp(at, f.coverage, f.risk)
        return float(self._across(np.array(at))), float(self._up(np.asarray(risk)))

    def mark(self, at: float | None) -> Iterator[Trace]:
        """Mark the chosen coverage with a vertical line and a point on the curve."""
        if at is None:
            return
        x, y = self._marked(at)
        p = self.palette
        yield vertical_mark(x, *self._range(), p.ink)
        yield markers(
            [x],
            [y],
            p.ink,
            size=11,
            edge=p.paper,
            **UNFADED,
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )

    def mark_label(self, at: float | None) -> Iterator[dict[str, Any]]:
        """Label the marked point with the share kept and its accuracy or risk."""
        if at is None:
            return
        x, y = self._marked(at)
        # Place the label where the curve never is: below an accuracy curve, above a risk curve, ...
        upper = self.y == "risk"
        low, high = self._range()
        # ... unless the axis is too close for two lines of text.
        if not 0.15 < (y - low) / (high - low) < 0.85:
            upper = y < (low + high) / 2
        right = (self.x == "referred" and x < 75) or x < 25
        yield label(
            f"<b>{percent(y / 100)}</b> {'right' if self.y == 'accuracy' else 'wrong'}<br>"
            f"{percent(at)} kept",
            self.palette,
            x=x,
            y=y,
            xshift=10 if right else -10,
            yshift=12 if upper else -12,
            xanchor="left" if right else "right",
            yanchor="bottom" if upper else "top",
            bgcolor=self.palette.glaze(self.palette.paper, 0.8),
        )

    def _range(self) -> tuple[float, float]:
        """Return the range of the vertical axis, fitted to the curves, because differences of a few points matter."""
        curves = [self.figure.risk, *(o.risk for o in self.others)]
        # Ignore the first few rows, whose risk fluctuates between 0 and 1.
        worst = max(float(c[c.size // 20 :].max()) for c in curves)
        if self.figure.band is not None:
            end = self.figure.band[1]
            worst = max(worst, float(end[end.size // 20 :].max()))
        worst = 100 * max(worst, 0.02)
        room = min(1.12 * worst, 102.0)
        top = 0.04 * room
        return (100 - room, 100 + top) if self.y == "accuracy" else (-top, room)

    def axes(self) -> dict[str, Any]:
        """Return both axes, in percent."""
        p = self.palette
        across = {
            "coverage": "Coverage: share of predictions kept",
            "referred": "Proportion referred to experts",
        }
        up = {"accuracy": "Accuracy of the kept", "risk": "Risk: error rate of the kept"}
        return {
            "xaxis": axis(p, across[self.x], range=[0, 100], ticksuffix=" %", nticks=6),
            # A few errors make long labels, such as "99.5 %", which the margin only holds in narrow fonts.
            "yaxis": axis(
                p,
                up[self.y],
                range=list(self._range()),
                ticksuffix=" %",
                nticks=7,
                automargin="left",
            ),
        }


def _hover(name: str) -> str:
    return f"%{{y:.2f}} % at %{{x:.1f}} %<extra>{name}</extra>"

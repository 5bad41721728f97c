"""How paired differences of models are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calviz.figures.drawing.curves_and_labels import Trace, label, markers, vertical_shape, whiskers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis, name_room, row_axis
from calviz.results.metric_words import scale_of
from calviz.specs.metric import METRICS
from calviz.text.escape import plotly_text
from calviz.text.words import shorten

if TYPE_CHECKING:
    from calviz.figures.model_differences import ModelDifferences

_RIGHT, _TOP, _BOTTOM, _ROW = 16, 30, 54, 28
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 26, 16


def draw(figure: ModelDifferences, sheet: Sheet) -> Picture:
    """Draw paired differences (see `ModelDifferences.plot`)."""
    drawing = _ModelRows(figure, sheet.palette)
    left = name_room([shorten(name, _NAME) for name in drawing.names], _BESIDE)
    return sheet.picture(
        drawing.traces(),
        inner=_ROW * len(drawing.names),
        margins=(left, _RIGHT, _TOP, _BOTTOM),
        above=_TOP - 6,
        annotations=drawing.sides(),
        shapes=[
            vertical_shape(
                sheet.palette.ink, x=0, width=1.5, dash="4px,3px", yref="paper", layer="below"
            )
        ],
        **drawing.axes(),
    )


@dataclass(frozen=True)
class _ModelRows:
    """The reference at the top, then one row per model, best first."""

    figure: ModelDifferences
    palette: Palette

    @property
    def names(self) -> tuple[str, ...]:
        return (self.figure.reference, *self.figure.models)

    @property
    def _scale(self) -> float:
        return scale_of(self.figure.metric, difference=True)[0]

    def traces(self) -> Iterator[Trace]:
        """Yield one point with its interval per model, filled if the difference is beyond noise."""
        f, p = self.figure, self.palette
        looks = {
            "better": (p.blue, "circle"),
            "worse": (p.vermillion, "square"),
            "tied": (p.neutral, "circle-open"),
        }
        yield markers(
            [0.0],
            [0],
            p.ink,
            size=10,
            symbol="diamond",
            hovertemplate=f"{plotly_text(f.reference, 60)}: the reference<extra></extra>",
        )
        for row, (name, d) in enumerate(zip(f.models, f.differences, strict=True), start=1):
            colour, symbol = looks[f.side(d)]
            value, (low, high) = d.value, d.interval
            yield markers(
                [self._scale * value],
                [row],
                colour,
                size=9,
                symbol=symbol,
                edge=colour,
                error_x=whiskers(
                    [max(self._scale * (high - value), 0.0)],
                    [max(self._scale * (value - low), 0.0)],
                    colour,
                    thickness=2,
                    width=5,
                ),
                hovertemplate=f"{plotly_text(name, 60)}: {f.text(d)}<br>{f.side(d)}<extra></extra>",
            )

    def sides(self) -> Iterator[dict[str, Any]]:
        """Label both sides with "better" and "worse", above the rows."""
        direction = METRICS[self.figure.metric].direction
        if direction not in ("lower", "higher"):
            return
        left, right = ("better", "worse") if direction == "lower" else ("worse", "better")
        for x, anchor, text in ((0, "left", f"← {left}"), (1, "right", f"{right} →")):
            yield label(
                text,
                self.palette,
                xref="paper",
                yref="paper",
                x=x,
                y=1,
                yshift=2,
                xanchor=anchor,
                yanchor="bottom",
                font={"size": 12, "color": self.palette.muted},
            )

    def _range(self) -> list[float]:
        f = self.figure
        every = [v for d in f.differences for v in (d.value, *d.interval)] + [0.0]
        low, high = self._scale * min(every), self._scale * max(every)
        # The axis needs a width even if all differences are 0.
        pad = max(0.06 * (high - low), 1e-3 * self._scale)
        return [low - pad, high + pad]

    def axes(self) -> dict[str, Any]:
        """Return the axes: the difference along the bottom, names down the side."""
        p = self.palette
        unit = scale_of(self.figure.metric, difference=True)[1]
        metric = METRICS[self.figure.metric].label
        title = f"Difference in {metric}" + (f", {unit}" if unit else "")
        return {
            "xaxis": axis(p, title, range=self._range(), nticks=6),
            "yaxis": row_axis(p, [plotly_text(name, _NAME) for name in self.names], ticks=""),
        }

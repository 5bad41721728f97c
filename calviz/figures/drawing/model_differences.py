"""How paired differences of models are drawn; plain numbers in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.core.metric import METRICS
from calviz.core.units import scale_of
from calviz.core.words import shorten
from calviz.figures._parts import LINE, Trace, caption_label, caption_lines, label
from calviz.figures._style import PALETTES, Palette, axis, axis_title, layout, safe

if TYPE_CHECKING:
    from calviz.figures.model_differences import ModelDifferences

_RIGHT, _TOP, _BOTTOM, _ROW = 16, 30, 54, 28
_NAME, _CHARACTER, _BESIDE = 26, 6.7, 16


def draw(
    figure: ModelDifferences, *, theme: Theme, caption: tuple[str, ...], width: int | None
) -> go.Figure:
    """Draw paired differences (see `ModelDifferences.plot`)."""
    palette = PALETTES[theme]
    drawing = _Rows(figure, palette)
    lines = caption_lines(caption, width and width - drawing.left)
    top = _TOP + (LINE * len(lines) + 6 if lines else 0)
    return go.Figure(
        data=list(drawing.traces()),
        layout=layout(
            palette,
            height=top + _ROW * len(drawing.names) + _BOTTOM,
            margin={"l": drawing.left, "r": _RIGHT, "t": top, "b": _BOTTOM},
            showlegend=False,
            shapes=[drawing.zero()],
            annotations=[*caption_label(lines, palette, above=_TOP - 6), *drawing.sides()],
            **drawing.axes(),
        ),
    )


@dataclass(frozen=True)
class _Rows:
    """The reference at the top, then a row per model, the best first."""

    figure: ModelDifferences
    palette: Palette

    @property
    def names(self) -> tuple[str, ...]:
        return (self.figure.reference, *self.figure.models)

    @property
    def left(self) -> int:
        """Pixels for the longest name."""
        return round(_CHARACTER * max(len(shorten(n, _NAME)) for n in self.names)) + _BESIDE

    @property
    def _scale(self) -> float:
        return scale_of(self.figure.metric, difference=True)[0]

    def traces(self) -> Iterator[Trace]:
        """A point and its interval per model; beyond noise it is filled."""
        f, p = self.figure, self.palette
        looks = {
            "better": (p.blue, "circle"),
            "worse": (p.vermillion, "square"),
            "tied": (p.neutral, "circle-open"),
        }
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": [0.0],
            "y": [0],
            "marker": {"size": 10, "color": p.ink, "symbol": "diamond"},
            "hovertemplate": f"{safe(f.reference)}: the reference<extra></extra>",
        }
        for row, (name, d) in enumerate(zip(f.models, f.differences, strict=True), start=1):
            colour, symbol = looks[f.side(d)]
            value, (low, high) = d.value, d.interval
            yield {
                "type": "scatter",
                "mode": "markers",
                "x": [self._scale * value],
                "y": [row],
                "marker": {
                    "size": 9,
                    "color": colour,
                    "symbol": symbol,
                    "line": {"color": colour, "width": 2},
                },
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [max(self._scale * (high - value), 0.0)],
                    "arrayminus": [max(self._scale * (value - low), 0.0)],
                    "color": colour,
                    "thickness": 2,
                    "width": 5,
                },
                "hovertemplate": f"{safe(name)}: {f.text(d)}<br>{f.side(d)}<extra></extra>",
            }

    def zero(self) -> dict[str, Any]:
        """The line on which there is no difference."""
        return {
            "type": "line",
            "x0": 0,
            "x1": 0,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "layer": "below",
            "line": {"color": self.palette.ink, "width": 1.5, "dash": "4px,3px"},
        }

    def sides(self) -> Iterator[dict[str, Any]]:
        """Which side is better, at both ends above the rows."""
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
        # Without any difference the picture still has a width.
        pad = max(0.06 * (high - low), 1e-3 * self._scale)
        return [low - pad, high + pad]

    def axes(self) -> dict[str, Any]:
        """Names down the side, the difference along the bottom."""
        p = self.palette
        unit = scale_of(self.figure.metric, difference=True)[1]
        metric = METRICS[self.figure.metric].label
        title = f"Difference in {metric}" + (f", {unit}" if unit else "")
        return {
            "xaxis": axis(p, range=self._range(), nticks=6, title=axis_title(title, p)),
            "yaxis": axis(
                p,
                range=[len(self.names) - 0.5, -0.5],
                tickvals=list(range(len(self.names))),
                ticktext=[safe(name, _NAME) for name in self.names],
                showgrid=False,
                ticks="",
            ),
        }

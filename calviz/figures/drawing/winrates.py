"""How winrates are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calviz.figures.drawing.curves_and_labels import Trace, markers, vertical_shape, whiskers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import axis, name_room, row_axis
from calviz.specs.metric import METRICS
from calviz.text.escape import plotly_text
from calviz.text.words import shorten

if TYPE_CHECKING:
    from calviz.figures.winrates import Winrates

_RIGHT, _TOP, _BOTTOM, _ROW = 16, 10, 50, 27
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 24, 18
#: Offset of the scores of one method from the middle of its row, in rows.
_APART = 0.17


def draw(figure: Winrates, sheet: Sheet) -> Picture:
    """Draw winrates (see `Winrates.plot`)."""
    p = sheet.palette
    names = [plotly_text(name, _NAME) for name in figure.methods]
    if figure.baseline in figure.methods:
        at = figure.methods.index(figure.baseline)
        names[at] = f"<i>{names[at]}</i>"
    left = name_room([shorten(name, _NAME) for name in figure.methods], _BESIDE)
    traces = list(_points(figure, sheet))
    return sheet.picture(
        traces,
        inner=_ROW * len(names),
        margins=(left, _RIGHT, _TOP, _BOTTOM),
        legend_over="container",
        shapes=[
            vertical_shape(p.neutral, x=0.5, width=1.5, dash="4px,3px", yref="paper", layer="below")
        ],
        xaxis=axis(p, "Winrate", range=[-0.02, 1.02], tickformat=".1f", nticks=6),
        yaxis=row_axis(p, names, ticks=""),
    )


def _points(figure: Winrates, sheet: Sheet) -> Iterator[Trace]:
    p = sheet.palette
    looks = ((p.blue, "circle"), (p.vermillion, "square"))
    rows = np.arange(len(figure.methods), dtype=np.float64)
    for at, ((score, values), (colour, symbol)) in enumerate(
        zip(figure.values.items(), looks, strict=True)
    ):
        low, high = figure.low[score], figure.high[score]
        texts = [
            f"{plotly_text(name, 60)}<br>{METRICS[score].label}: {value:.3f}"
            + ("" if np.isnan(a) else f" (95 % CI {a:.3f} to {b:.3f})")
            for name, value, a, b in zip(figure.methods, values, low, high, strict=True)
        ]
        yield markers(
            values,
            rows + (at - 0.5) * 2 * _APART,
            colour,
            size=8,
            symbol=symbol,
            name=METRICS[score].label,
            error_x=whiskers(
                np.nan_to_num(high - values),
                np.nan_to_num(values - low),
                colour,
                thickness=1.5,
                width=3,
            ),
            hovertext=texts,
            hoverinfo="text",
        )

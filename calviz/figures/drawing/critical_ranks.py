"""How mean ranks and their critical difference are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.drawing.curves_and_labels import Trace, label, line, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import axis, name_room, row_axis
from calviz.text.escape import plotly_text
from calviz.text.words import shorten

if TYPE_CHECKING:
    from calviz.figures.critical_ranks import CriticalRanks

_RIGHT, _TOP, _BOTTOM, _ROW = 16, 34, 50, 24
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 24, 18
#: Width in pixels of a bar that joins methods, and space left free beside the ranks, as a share of their span.
_BAR, _AIR = 4, 0.04


def draw(figure: CriticalRanks, sheet: Sheet) -> Picture:
    """Draw one row per method, and bars that join methods without significant difference (see `CriticalRanks.plot`)."""
    p, methods = sheet.palette, figure.methods
    ranks = np.array(list(figure.critical.ranks.values()))
    cliques = figure.critical.cliques()
    span = max(float(np.ptp(ranks)), figure.critical.difference, 1.0)
    step = 0.045 * span
    # Bars are placed in lanes to the right of the largest rank.
    bars = float(ranks.max()) + step * np.arange(1, len(cliques) + 1)
    low, high = float(ranks.min()) - _AIR * span, max(float(ranks.max()), *bars, 0.0) + _AIR * span
    high = max(high, float(ranks.min()) + figure.critical.difference + _AIR * span)
    left = name_room([shorten(name, _NAME) for name in methods], _BESIDE)
    return sheet.picture(
        [*_points(figure, sheet, ranks), *_bars(figure, sheet, bars)],
        inner=_ROW * len(methods),
        margins=(left, _RIGHT, _TOP, _BOTTOM),
        above=_TOP - 8,
        shapes=list(_ruler(figure, sheet, float(ranks.min()))),
        annotations=[
            label(
                f"critical difference {figure.critical.difference:.2f}",
                p,
                xref="x",
                yref="paper",
                x=float(ranks.min()),
                y=1,
                yshift=12,
                xanchor="left",
                yanchor="bottom",
                font={"size": 12, "color": p.muted},
            )
        ],
        xaxis=axis(p, "Mean rank (1 is best)", range=[low, high], nticks=7),
        yaxis=row_axis(p, [plotly_text(name, _NAME) for name in methods], ticks=""),
    )


def _points(figure: CriticalRanks, sheet: Sheet, ranks: Any) -> Iterator[Trace]:
    p = sheet.palette
    differs = ranks - ranks[0] >= figure.critical.difference
    rows = np.arange(len(ranks))
    for mask, colour, symbol in ((~differs, p.blue, "circle"), (differs, p.neutral, "circle-open")):
        if not mask.any():
            continue
        yield markers(
            ranks[mask],
            rows[mask],
            colour,
            size=9,
            symbol=symbol,
            edge=colour,
            hovertext=[
                f"{plotly_text(figure.methods[i], 60)}: {ranks[i]:.2f}"
                for i in np.flatnonzero(mask)
            ],
            hoverinfo="text",
        )


def _bars(figure: CriticalRanks, sheet: Sheet, places: Any) -> Iterator[Trace]:
    rows = {name: at for at, name in enumerate(figure.methods)}
    for place, clique in zip(places, figure.critical.cliques(), strict=True):
        first, last = rows[clique[0]], rows[clique[-1]]
        yield line(
            np.array([place, place]),
            np.array([first - 0.25, last + 0.25]),
            sheet.palette.ink,
            width=_BAR - sheet.narrow,
            hoverinfo="text",
            hovertext=f"{plotly_text(clique[0], 40)} to {plotly_text(clique[-1], 40)}: not told apart",
        )


def _ruler(figure: CriticalRanks, sheet: Sheet, start: float) -> Iterator[dict[str, Any]]:
    """Draw the critical difference as a length above the rows."""
    style = {"color": sheet.palette.muted, "width": 2}
    end = start + figure.critical.difference
    place = {"type": "line", "xref": "x", "yref": "paper", "ysizemode": "pixel", "yanchor": 1}
    yield {**place, "x0": start, "x1": end, "y0": 8, "y1": 8, "line": style}
    for x in (start, end):
        yield {**place, "x0": x, "x1": x, "y0": 4, "y1": 12, "line": style}

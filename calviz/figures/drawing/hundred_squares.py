"""How grids of 100 squares are drawn: filled squares came true, framed ones were promised and did not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import IntArray
from calviz.figures.drawing.curves_and_labels import Trace, heading, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette
from calviz.figures.hundred_squares import HUNDRED
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.hundred_squares import HundredSquares, Promise

#: Squares per row; sizes of a panel and of a square, and margins of the panels, in pixels.
_ROW, _PANEL, _SQUARE, _MARGINS = 10, 230, 15, (8, 8, 66, 8)
#: Space between panels side by side, and between stacked ones, as a share of the total.
_BESIDE, _ABOVE = 0.08, 0.18


def draw(figure: HundredSquares, sheet: Sheet) -> Picture:
    """Draw one panel per promise, side by side or stacked."""
    count = len(figure.panels)
    stacked = sheet.narrow and count > 1
    axes: dict[str, Any] = {}
    traces: list[Trace] = []
    titles: list[dict[str, Any]] = []
    named: set[str] = set()
    for number, panel in enumerate(figure.panels):
        suffix = "" if number == 0 else str(number + 1)
        room = _ABOVE if stacked else _BESIDE
        size = (1 - room * (count - 1)) / count
        start = number * (size + room)
        across, up = (
            ([0, 1], [max(0.0, 1 - start - size), 1 - start])
            if stacked
            else ([start, start + size], [0, 1])
        )
        bare = {"visible": False, "fixedrange": True, "range": [-0.6, _ROW - 0.4]}
        axes[f"xaxis{suffix}"] = {
            **bare,
            "domain": across,
            "anchor": f"y{suffix}",
            "constrain": "domain",
            "constraintoward": "left",
        }
        axes[f"yaxis{suffix}"] = {
            **bare,
            "domain": up,
            "anchor": f"x{suffix}",
            "scaleanchor": f"x{suffix}",
            "constrain": "domain",
            "constraintoward": "top",
        }
        traces += _squares(panel, sheet.palette, suffix, named)
        # One line per number, because side by side both would not fit on one line.
        numbers = plotly_text(panel.words).replace(", ", ",<br>")
        title = f"<b>{plotly_text(panel.title)}</b><br>{numbers}"
        titles.append(
            heading(
                title,
                sheet.palette,
                (f"x{suffix} domain", f"y{suffix} domain"),
                font={"size": 14, "color": sheet.palette.ink},
            )
        )
    tall = _PANEL * count + round(_PANEL * _ABOVE * count) if stacked else _PANEL
    return sheet.picture(
        traces, inner=tall, margins=_MARGINS, above=_MARGINS[2] - 8, annotations=titles, **axes
    )


def _squares(panel: Promise, palette: Palette, suffix: str, named: set[str]) -> Iterator[Trace]:
    """Yield the squares grouped by outcome, filling the grid row by row."""
    promised, happened = panel.squares
    both, most = min(promised, happened), max(promised, happened)
    over = promised > happened
    kinds = (
        ("came true", 0, both, palette.blue, "square", palette.blue),
        (
            "promised, did not come true" if over else "came true, not promised",
            both,
            most,
            palette.vermillion if over else palette.purple,
            "square-x-open" if over else "square-cross-open",
            palette.vermillion if over else palette.purple,
        ),
        (
            "neither",
            most,
            HUNDRED,
            palette.neutral,
            "square-open",
            palette.neutral,
        ),
    )
    for name, first, last, colour, symbol, edge in kinds:
        at: IntArray = np.arange(first, last)
        if not at.size:
            continue
        yield markers(
            at % _ROW,
            _ROW - 1 - at // _ROW,
            colour,
            size=_SQUARE,
            symbol=symbol,
            edge=edge,
            edge_width=1.2,
            name=name,
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
            hoverinfo="skip",
            showlegend=name not in named,
            legendgroup=name,
        )
        named.add(name)

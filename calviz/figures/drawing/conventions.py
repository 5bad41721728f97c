"""How the ECE by library is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calviz.figures.drawing.curves_and_labels import Trace, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis, row_axis
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.conventions import EceByLibrary, LibraryEce

#: Height of a row, which has two lines of text (library and function), and margins of the panel, in pixels.
_ROW, _MARGINS = 36, (166, 14, 10, 50)
#: Where the axis ends, in percent of the largest value: the number beside that value has room on a phone too.
_AXIS_END = 135
#: A dot closer than this to the left edge, as a share of the largest value, has no room for its number on the left.
_FROM_EDGE = 0.25


def draw(figure: EceByLibrary, sheet: Sheet) -> Picture:
    """Draw the computed dots (see `EceByLibrary.plot`)."""
    palette = sheet.palette
    highest = max(v for d in figure.dots for v in (d.value, d.noise) if not math.isnan(v))
    return sheet.picture(
        _traces(figure, highest, palette),
        inner=_ROW * len(figure.dots),
        margins=_MARGINS,
        xaxis=axis(palette, "ECE (points)", range=[0, _AXIS_END * highest or 1.0], nticks=6),
        yaxis=row_axis(palette, [_label(dot, palette) for dot in figure.dots], ticks=""),
    )


def _label(dot: LibraryEce, palette: Palette) -> str:
    if dot.library == "calviz":
        return "<b>calviz</b>"
    call = f'<span style="color:{palette.muted}">{plotly_text(dot.call)}</span>'
    return f"{plotly_text(dot.library)}<br>{call}"


def _traces(figure: EceByLibrary, highest: float, p: Palette) -> Iterator[Trace]:
    own_ece = 100 * figure.conventions.ece
    if not math.isnan(figure.conventions.noise):
        yield {
            "type": "bar",
            "orientation": "h",
            "y": list(range(len(figure.dots))),
            "x": [None if math.isnan(d.noise) else 100 * d.noise for d in figure.dots],
            "width": 0.62,
            "marker": {"color": p.calibrated, "line": {"width": 0}},
            "name": "Mean if calibrated",
            "hovertemplate": "mean if calibrated %{x:.2f} points<extra></extra>",
        }
    yield {
        "type": "scatter",
        "mode": "lines",
        "x": [own_ece, own_ece],
        "y": [-0.5, len(figure.dots) - 0.5],
        "line": {"color": p.ink, "width": 1, "dash": "2px,3px"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    for name, colour, symbol, is_own in (
        ("calviz", p.ink, "diamond", True),
        ("Other libraries", p.blue, "circle", False),
    ):
        chosen = [
            (at, dot) for at, dot in enumerate(figure.dots) if (dot.library == "calviz") is is_own
        ]
        yield markers(
            np.array([100 * dot.value for _, dot in chosen]),
            [at for at, _ in chosen],
            colour,
            size=10,
            symbol=symbol,
            edge=p.paper,
            edge_width=1,
            mode="markers+text",
            text=[f"{100 * dot.value:.2f}" for _, dot in chosen],
            # The text must not cross calviz's line just right of the dot.
            textposition=[
                "middle left"
                if 0.8 * own_ece < 100 * dot.value < 0.98 * own_ece
                and dot.value > _FROM_EDGE * highest
                else "middle right"
                for _, dot in chosen
            ],
            textfont={"size": 12, "color": p.ink},
            cliponaxis=False,
            name=name,
            hovertemplate="%{x:.2f} points<extra></extra>",
        )

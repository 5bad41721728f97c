"""Small square panels to be shown side by side on one scale: reliability diagrams and calibration maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import Trace, line, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis

#: Margins of the square, and diameter of a circle for all rows, in pixels.
_MARGINS, _CIRCLE = (54, 8, 8, 46), 26

#: Height in pixels from which there are more ticks.
_MANY_TICKS = 300


def circles(x: FloatArray, y: FloatArray, share: FloatArray, p: Palette) -> Trace:
    """Draw observed frequencies as circles with areas proportional to the rows; arrays have shape (M,)."""
    return markers(
        x,
        y,
        p.glaze(p.vermillion, 0.25),
        size=np.maximum(4, _CIRCLE * np.sqrt(share)),
        edge=p.vermillion,
        edge_width=1.5,
        customdata=100 * share,
        hovertemplate="score %{x:.3f}, observed %{y:.3f}<br>%{customdata:.1f} % of the rows"
        "<extra></extra>",
    )


def diagonal(p: Palette) -> Trace:
    """Draw the diagonal, where score and frequency agree or a map changes nothing."""
    ends = np.array([0.0, 1.0])
    return line(ends, ends, p.ink, width=1, dash="4px,3px", hoverinfo="skip")


def square(
    traces: list[Trace], sheet: Sheet, height: int, x: str, y: str, **attributes: Any
) -> Picture:
    """Lay out a square panel; `height` is in pixels and includes the axes."""
    p = sheet.palette
    # Few ticks on a small square, so that tick labels do not touch the titles.
    step = 0.25 if height >= _MANY_TICKS else 0.5
    unit = {"range": [0, 1], "tickmode": "linear", "dtick": step, "tickformat": ".2~f"}
    return sheet.picture(
        traces,
        inner=height - _MARGINS[2] - _MARGINS[3],
        margins=_MARGINS,
        entries=False,
        xaxis=axis(p, x, size=12, standoff=6, **unit, constrain="domain"),
        yaxis=axis(
            p, y, size=12, standoff=6, **unit, scaleanchor="x", scaleratio=1, constrain="domain"
        ),
        **attributes,
    )

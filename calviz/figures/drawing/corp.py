"""How a CORP reliability diagram is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.drawing.curves_and_labels import area, line, short_line
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.small_panels import diagonal
from calviz.figures.drawing.style import axis
from calviz.text.escape import plotly_text
from calviz.text.words import level_text, with_short_class

if TYPE_CHECKING:
    from calviz.figures.corp import CorpDiagram

#: Height and margins of the square, in pixels.
_INNER = 340
_MARGINS = 58, 14, 12, 52


def draw(figure: CorpDiagram, sheet: Sheet) -> Picture:
    """Draw the range of a calibrated model, the confidence band, and the curve over the diagonal."""
    f, p = figure, sheet.palette
    level = level_text(f.level)
    x, low, high = f.score, *f.consistency
    below, above = f.confidence
    probability = f.probability
    if x.size == 1:
        x = short_line(x)
        low, high, below, above, probability = (
            np.repeat(v, 2) for v in (low, high, below, above, probability)
        )
    traces = [
        area(x, low, high, p.calibrated, name=f"{level} range if calibrated"),
        area(x, below, above, p.glaze(p.vermillion, 0.22), name=f"{level} confidence band"),
        {**diagonal(p), "showlegend": False},
        line(
            x,
            probability,
            p.vermillion,
            width=2.5,
            name="Isotonic probability of a hit",
            hovertemplate="score %{x:.3f}: %{y:.3f}<extra></extra>",
        ),
    ]
    unit: dict[str, Any] = {"range": [-0.01, 1.01], "nticks": 6}
    return sheet.picture(
        traces,
        inner=_INNER,
        margins=_MARGINS,
        xaxis=axis(p, plotly_text(with_short_class(f.reduction, 18).score_label), size=13, **unit),
        yaxis=axis(p, "Probability of a hit", size=13, **unit),
    )

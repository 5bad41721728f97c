"""A drawing as a paper prints it: no grey layers, no grid, black ink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calviz.figures.drawing.style import PALETTES, Palette
from calviz.specs.figure import Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Pixels of a drawing for each pixel of paper: letters of 12 pixels are 7 points high.
SHRINK = 1.3
#: Inches of a column, and of both with the space between them, in the usual styles of conferences.
COLUMNS = {1: 3.25, 2: 6.75}
_PIXELS = 96


def drawn_width(columns: int) -> int:
    """Pixels in which a figure is drawn that is as wide as one column or two."""
    return round(COLUMNS[columns] * _PIXELS * SHRINK)


def printed(drawn: go.Figure, *, theme: Theme = "light") -> go.Figure:
    """Take away what is there for the screen alone: grey areas behind the data, and the grid.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Changed in place.
    theme : {"light", "dark"}
        In which it was drawn.
    """
    palette = PALETTES[theme]
    drawn.data = [trace for trace in drawn.data if not _is_grey(trace, palette)]
    ink = {"color": palette.ink}
    for each in (drawn.for_each_xaxis, drawn.for_each_yaxis):
        each(
            lambda axis: axis.update(
                showgrid=False, linecolor=palette.ink, tickcolor=palette.ink, tickfont=ink
            )
        )
    return drawn


def _is_grey(trace: Any, palette: Palette) -> bool:
    """Whether a trace is the area of a calibrated model."""
    if getattr(trace, "fill", None) in (None, "none"):
        return False
    return bool(trace.fillcolor == palette.calibrated)

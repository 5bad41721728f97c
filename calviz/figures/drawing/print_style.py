"""A drawing for printed papers: no grey areas, no grid, axes in the colour of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calviz.figures.drawing.style import PALETTES, Palette
from calviz.specs.figure import Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Factor by which a drawing is scaled down in print: letters of 12 pixels become 7 points high.
SHRINK = 1.3
#: Width in inches of one column, and of two with the space between them, in common conference styles.
COLUMNS = {1: 3.25, 2: 6.75}
#: Pixels per inch.
_PIXELS = 96


def drawn_width(columns: int) -> int:
    """Return the width, in pixels, at which to draw a figure of one or two columns."""
    return round(COLUMNS[columns] * _PIXELS * SHRINK)


def printed(drawn: go.Figure, *, theme: Theme = "light") -> go.Figure:
    """Remove what is only meant for the screen: grey areas behind the data, and the grid.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Changed in place.
    theme : {"light", "dark"}
        Theme in which it was drawn.
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
    """Whether a trace is the grey area of a calibrated model."""
    if getattr(trace, "fill", None) in (None, "none"):
        return False
    return bool(trace.fillcolor == palette.calibrated)

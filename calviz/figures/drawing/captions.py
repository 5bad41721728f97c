"""A caption above any drawn figure, so that the image itself says what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calviz.figures.drawing.curves_and_labels import LINE, caption_label, wrapped
from calviz.figures.drawing.style import PALETTES
from calviz.specs.figure import Theme

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: plotly's default margin and height, used where a drawing sets none.
_MARGIN, _HEIGHT = 80, 450
#: Pixels between the caption and the former top of the drawing.
_AIR = 8


def captioned(
    drawn: go.Figure, lines: Sequence[str], *, theme: Theme = "light", characters: int = 62
) -> go.Figure:
    """Add lines of text above a drawing, the first one bold; the panels keep their size.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Changed in place.
    lines : sequence of str
        Plain text, escaped here.
    theme : {"light", "dark"}
    characters : int
        Number that fits on a line; longer lines are broken.
    """
    broken = wrapped(lines, characters)
    if not broken:
        return drawn
    layout, palette = drawn.layout, PALETTES[theme]
    top = _MARGIN if layout.margin.t is None else round(layout.margin.t)
    room = LINE * len(broken) + _AIR
    for label in caption_label(broken, palette, above=top):
        drawn.add_annotation(**label)
    layout.margin.t = top + room
    layout.height = (_HEIGHT if layout.height is None else layout.height) + room
    return drawn

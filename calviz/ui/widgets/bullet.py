"""Metric values as small pictures on a page: on cards, and in the columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from calviz.figures.drawing import bullet as drawing
from calviz.figures.drawing.bullet import CELL, HEIGHT, MARKS_WORDS, Bullet, words
from calviz.figures.drawing.style import PALETTES, Palette
from calviz.results.metric_result import MetricResult
from calviz.ui.widgets import diagram
from calviz.ui.widgets.escape import md

#: The heading of the column, and its width in pixels.
COLUMN, WIDE = "in a picture", 124
#: Streamlit draws the image of a cell at this height in pixels, and cuts off what is then wider than the column.
_DRAWN = 29


def picture(result: MetricResult, palette: Palette, *, noise: str = "") -> str:
    """Return the drawing as an image in HTML, with its description as tooltip and alternative text."""
    description = escape(words(result, noise), quote=True)
    # As an image: streamlit removes inline SVG from HTML.
    return (
        f'<img src="{drawing.address(drawing.svg(Bullet.of(result), palette))}" alt="{description}" title="{description}" '
        f'style="display:block;width:100%;height:{HEIGHT:g}px">'
    )


def column(
    bullets: Sequence[Bullet | None], *, shared: bool = True, width: int = WIDE
) -> list[str | None]:
    """Return the cells of a column of `st.dataframe`, in the page's colours; on one scale, or each on its own."""
    wide = width * CELL[1] // _DRAWN
    return drawing.column(bullets, PALETTES[diagram.theme()], shared=shared, wide=wide)


def config(help: str = "", *, width: int = WIDE) -> Any:
    """Return the column's configuration; the numbers are in the other columns of the row."""
    return st.column_config.ImageColumn(COLUMN, width=width, help=help or MARKS_WORDS)


def cell(address: str | None, description: str) -> str:
    """Return a drawing for a cell of `st.table`, as markdown with alternative text."""
    return "" if address is None else f"![{md(description)}]({address})"

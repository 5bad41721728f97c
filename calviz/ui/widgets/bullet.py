"""Numbers as pictures on a page: on a card, and in the columns of tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st

from calviz.figures.drawing import bullet as drawing
from calviz.figures.drawing.bullet import HEIGHT, MARKS_WORDS, Bullet, words
from calviz.figures.drawing.style import PALETTES, Palette
from calviz.results.evaluation import MetricResult
from calviz.ui.widgets import diagram
from calviz.ui.widgets.text import md

#: The heading of the column, and its pixels.
COLUMN, WIDE = "in a picture", 124


def picture(result: MetricResult, palette: Palette, *, noise: str = "") -> str:
    """The drawing as an image in HTML, with its words for those who point at it and those who do not see it."""
    said = escape(words(result, noise), quote=True)
    # As an image: streamlit takes drawings that stand in HTML out of it.
    return (
        f'<img src="{drawing.address(drawing.svg(Bullet.of(result), palette))}" alt="{said}" title="{said}" '
        f'style="display:block;width:100%;height:{HEIGHT:g}px">'
    )


def column(bullets: Sequence[Bullet | None], *, shared: bool = True) -> list[str | None]:
    """The cells of a column of `st.dataframe`, in the page's colours; on one scale, or each on its own."""
    return drawing.column(bullets, PALETTES[diagram.theme()], shared=shared)


def config(help: str = "") -> Any:
    """How such a column is shown; the numbers stand in the other columns of the row."""
    return st.column_config.ImageColumn(COLUMN, width=WIDE, help=help or MARKS_WORDS)


def cell(address: str | None, said: str) -> str:
    """A drawing in a cell of `st.table`, as markdown, with its words."""
    return "" if address is None else f"![{md(said)}]({address})"

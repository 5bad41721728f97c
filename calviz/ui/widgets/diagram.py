"""The reliability diagram on a page: square, in the page's colours, with its alternative text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from calviz.figures import Reliability
from calviz.figures.base import Figure
from calviz.figures.drawing.sheet import with_legend_for
from calviz.figures.kernels.beside import Beside
from calviz.specs.figure import Theme
from calviz.ui.widgets import browser, pictures

#: Pixels. The width leaves room beside it on a desk; what is beside it goes below on a small one.
WIDTH = 540
PHONE = 350
#: This many more, in both directions, where the diagram is what the page is about, and on a wide page.
LARGER, WIDER = 20, 150


def page_width() -> int | None:
    """Pixels that a narrow page, as on a phone, has for a figure; None on any other, where they are not known."""
    return PHONE if browser.size() == "narrow" else None


def theme() -> Theme:
    """The colours that the page is shown in."""
    return "dark" if st.context.theme.type == "dark" else "light"


def widget_key(key: str) -> str:
    """The key under which a diagram keeps its selection: one for each theme's drawing."""
    return f"{key}.{theme()}"


def draw(
    figure: Reliability,
    *,
    key: str,
    on_select: Any = "ignore",
    selected: tuple[int, int] | None = None,
    larger: bool = False,
    drag: bool = False,
    beside: Sequence[Beside] = (),
) -> Any:
    """Draw the diagram; with `on_select` a click on a bin is reported, or, with `drag`, a range that is dragged over."""
    width = page_width()
    drawn = figure.plot(
        theme=theme(), selected=selected, width=width, marks=pictures.marks(), beside=beside
    )
    if width is None:
        # Its square is as large as the height allows.
        more = LARGER * larger + WIDER * (browser.size() == "wide")
        drawn.update_layout(height=(drawn.layout.height or 0) + more)
    if drag:
        drawn.update_layout(dragmode="select", selectdirection="h")
    return st.plotly_chart(
        pictures.finished(drawn, figure, theme=theme(), narrow=page_width() is not None),
        key=widget_key(key),
        theme=None,
        config=pictures.config("reliability"),
        alt=figure.describe(),
        on_select=on_select,
        selection_mode="box" if drag else "points",
    )


def chart(
    figure: Figure,
    drawn: Any,
    *,
    key: str,
    filename: str,
    alt: str = "",
    on_select: Any = "ignore",
    own_caption: bool = False,
) -> Any:
    """Put any drawn figure on the page, as wide as its place, with its alternative text.

    With `own_caption`, its caption is that of the figure: it is not about the data set that is looked at.
    """
    of_data = not own_caption
    return st.plotly_chart(
        pictures.finished(
            drawn, figure, theme=theme(), narrow=page_width() is not None, of_data=of_data
        ),
        key=widget_key(key),
        theme=None,
        config=pictures.config(filename, of_data=of_data),
        alt=alt or figure.describe(),
        on_select=on_select,
        selection_mode="points",
    )


def as_wide_as_the_page(drawn: Any) -> Any:
    """Fit the room of the legend to the width of the page.

    A drawing for a known width has it already; on a page of few pixels it stays as it is for a small one.
    """
    if browser.size() in ("narrow", "small"):
        return drawn
    return with_legend_for(drawn, browser.USUAL)

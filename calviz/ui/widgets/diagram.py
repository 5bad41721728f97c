"""Reliability diagrams and other figures on a page: in the page's colours, with alternative text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from calviz.figures.base import Figure
from calviz.figures.drawing.sheet import with_legend_for
from calviz.figures.kernels.overlaid_curves import ReliabilityOverlay
from calviz.figures.reliability import Reliability
from calviz.specs.figure import Theme
from calviz.ui.widgets import browser, pictures

#: Pixels of a figure on a phone.
PHONE = 350
#: Pixels added in both directions where the diagram is the main content, and on a wide page.
LARGER, WIDER = 20, 150


def page_width() -> int | None:
    """Return the pixels for a figure on a narrow page, as on a phone; None on other pages, whose width is not known."""
    return PHONE if browser.size() == "narrow" else None


def theme() -> Theme:
    """Return the theme of the page."""
    return "dark" if st.context.theme.type == "dark" else "light"


def widget_key(key: str) -> str:
    """Return the key under which a diagram keeps its selection; each theme has its own."""
    return f"{key}.{theme()}"


def draw(
    figure: Reliability,
    *,
    key: str,
    on_select: Any = "ignore",
    selected: tuple[int, int] | None = None,
    larger: bool = False,
    drag: bool = False,
    beside: Sequence[ReliabilityOverlay] = (),
) -> Any:
    """Draw the diagram; `on_select` is called for a click on a bin or, with `drag`, for a range that is dragged over."""
    width = page_width()
    drawing = figure.plot(
        theme=theme(), selected=selected, width=width, marks=pictures.marks(), beside=beside
    )
    if width is None:
        # The square of the diagram is as large as the height allows.
        extra = LARGER * larger + WIDER * (browser.size() == "wide")
        drawing.update_layout(height=(drawing.layout.height or 0) + extra)
    if drag:
        drawing.update_layout(dragmode="select", selectdirection="h")
    return st.plotly_chart(
        pictures.finished(drawing, figure, theme=theme(), narrow=page_width() is not None),
        key=widget_key(key),
        theme=None,
        config=pictures.config("reliability"),
        alt=figure.describe(),
        on_select=on_select,
        selection_mode="box" if drag else "points",
    )


def plotted(figure: Figure, **options: Any) -> Any:
    """Draw a figure in the theme of the page, and for the width of a narrow one; options are those of `figure.plot`."""
    return figure.plot(**{"theme": theme(), "width": page_width()} | options)


def chart(
    figure: Figure,
    drawing: Any = None,
    *,
    key: str,
    filename: str,
    alt: str = "",
    on_select: Any = "ignore",
    own_caption: bool = False,
) -> Any:
    """Show any figure on the page, as wide as its container, with its alternative text.

    `drawing` is what `plotted` returns, by default without options.
    With `own_caption`, the caption is that of the figure itself, which is not about the current data set.
    """
    of_data = not own_caption
    return st.plotly_chart(
        pictures.finished(
            plotted(figure) if drawing is None else drawing,
            figure,
            theme=theme(),
            narrow=page_width() is not None,
            of_data=of_data,
        ),
        key=widget_key(key),
        theme=None,
        config=pictures.config(filename, of_data=of_data),
        alt=alt or figure.describe(),
        on_select=on_select,
        selection_mode="points",
    )


def as_wide_as_the_page(drawing: Any) -> Any:
    """Fit the room for the legend to the width of the page.

    A drawing for a known width has that room already; on a small page the drawing stays as it is.
    """
    if browser.size() in ("narrow", "small"):
        return drawing
    # The width is known as a class only, by its lower end: a legend is never cut.
    return with_legend_for(drawing, browser.WIDE if browser.size() == "wide" else browser.USUAL)

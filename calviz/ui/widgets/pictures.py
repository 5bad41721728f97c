"""How figures are drawn and saved: as points or bars, with or without a caption, as PNG or SVG."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from calviz.figures.base import Figure
from calviz.figures.drawing.captions import captioned
from calviz.figures.drawing.print_style import printed
from calviz.figures.drawing.style import FONT, plot_config
from calviz.figures.reliability import Marks
from calviz.specs.figure import Theme
from calviz.text.words import shorten
from calviz.ui.session import settings
from calviz.ui.widgets import link_choice

#: The web font of the page. Saved pictures are drawn without it, as it exists nowhere else (`shortcuts.py`).
PAGE_FONT = '"Source Sans"'
_CAPTION, _FORMAT, _MARKS, _PRINT = "caption", "picture", "marks", "print"
_FORMATS = {"png": "PNG", "svg": "SVG"}
_MARKS_WORDS: dict[Marks, str] = {"points": "points", "bars": "bars"}


def options() -> None:
    """Draw the choices; they are part of the link."""
    with st.popover("Pictures", icon=":material/image:", width="stretch"):
        st.toggle(
            "Caption above every figure",
            key=_CAPTION,
            bind="query-params",
            help="Data set, what the figure shows, digest and today's date.",
        )
        link_choice.one_of(
            "Reliability diagrams as",
            _MARKS_WORDS,
            default="points",
            key=_MARKS,
            help="Points with their intervals on the range of a calibrated model; or bars, as Guo et al. 2017 draw them.",
        )
        st.toggle(
            "As a paper prints them",
            key=_PRINT,
            bind="query-params",
            help="Without grey areas and grid. The page Figures puts several beside each other, in the size of a column, "
            "as SVG, PNG and PDF. Pointing at a figure and pressing c copies it.",
        )
        link_choice.one_of(
            "Save figures as",
            _FORMATS,
            default="png",
            key=_FORMAT,
            help="With the camera that appears above a figure. PNG at three times the size on screen.",
        )


def marks() -> Marks:
    """Return how reliability diagrams are drawn."""
    return "bars" if st.session_state.get(_MARKS) == "bars" else "points"


def config(filename: str, *, of_data: bool = True) -> dict[str, Any]:
    """Return a figure's configuration for the browser; the file name of its picture names the data set."""
    chosen = st.session_state.get(_FORMAT, "png")
    name = f"{settings.current().file_stem}-{filename}" if of_data else filename
    return plot_config(name, image="svg" if chosen == "svg" else "png")


def finished(
    drawing: Any, figure: Figure, *, theme: Theme, narrow: bool, of_data: bool = True
) -> Any:
    """Return the drawing as the page shows it: in the page's font, and under its caption, if that is wanted.

    Without `of_data` the figure is not about the current data set, and its own caption is complete.
    """
    family = f"{PAGE_FONT}, {FONT}"
    drawing.update_layout(font_family=family, hoverlabel_font_family=family)
    if st.session_state.get(_PRINT, False):
        printed(drawing, theme=theme)
    if not st.session_state.get(_CAPTION, False):
        return drawing
    lines = caption(figure) if of_data else figure.caption()
    return captioned(drawing, lines, theme=theme, characters=44 if narrow else 62)


def caption(figure: Figure) -> tuple[str, ...]:
    """Return the lines of a caption in plain text: the data set, what the figure shows, digest and date."""
    chosen = settings.current()
    entry = chosen.entry
    title = [shorten(entry.title, 60)]
    if len(entry.loaded.models) > 1:
        title.append(f"model {shorten(chosen.model)}")
    today = datetime.now(UTC).date().isoformat()
    figure_lines = figure.caption()[1:] or (chosen.sample.words,)
    return " · ".join(title), *figure_lines, f"digest {entry.short_digest} · {today}"

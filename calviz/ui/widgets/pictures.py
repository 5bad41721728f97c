"""How pictures leave the pages: with a caption or without, as PNG or as SVG."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from calviz.figures import plot_config
from calviz.figures.drawing.captions import captioned
from calviz.specs.figure import Theme
from calviz.text.words import shorten
from calviz.ui.session import settings

_CAPTION, _FORMAT = "caption", "picture"
_FORMATS = {"png": "PNG", "svg": "SVG"}


def options() -> None:
    """Draw the choices; they are part of the link."""
    with st.popover("Pictures", icon=":material/image:", width="stretch"):
        st.toggle(
            "Caption above every figure",
            key=_CAPTION,
            bind="query-params",
            help="Data set, split, rows, reduction, bins, digest and today's date.",
        )
        st.segmented_control(
            "Save figures as",
            tuple(_FORMATS),
            default="png",
            required=True,
            key=_FORMAT,
            bind="query-params",
            format_func=lambda key: _FORMATS.get(key, str(key)),
            help="With the camera that appears above a figure. PNG at three times the size on screen.",
        )


def config(filename: str) -> dict[str, Any]:
    """What goes with a figure into the browser."""
    chosen = st.session_state.get(_FORMAT, "png")
    return plot_config(filename, image="svg" if chosen == "svg" else "png")


def finished(
    drawn: Any, *, theme: Theme, narrow: bool, lines: tuple[str, ...] | None = None
) -> Any:
    """The drawing as the page shows it: under its caption, if that is wanted.

    `lines` is the caption of what is not about the data set that is looked at.
    """
    if not st.session_state.get(_CAPTION, False):
        return drawn
    said = caption() if lines is None else lines
    return captioned(drawn, said, theme=theme, characters=44 if narrow else 62)


def caption() -> tuple[str, ...]:
    """Say what is looked at, in plain text."""
    chosen = settings.current()
    entry = chosen.entry
    title = [shorten(entry.title, 60)]
    if len(entry.loaded.models) > 1:
        title.append(f"model {shorten(chosen.model)}")
    today = datetime.now(UTC).date().isoformat()
    return " · ".join(title), chosen.sample.words, f"digest {entry.loaded.digest[:16]} · {today}"

"""How pictures leave the pages: with a caption or without, as PNG or as SVG."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import streamlit as st

from calviz.core.figure import Theme
from calviz.core.slices import where_words
from calviz.core.words import counted, shorten
from calviz.figures import plot_config
from calviz.figures.captions import captioned
from calviz.ui import cached, settings

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


def finished(drawn: Any, *, theme: Theme, narrow: bool) -> Any:
    """The drawing as the page shows it: under its caption, if that is wanted."""
    if not st.session_state.get(_CAPTION, False):
        return drawn
    return captioned(drawn, caption(), theme=theme, characters=44 if narrow else 62)


def caption() -> tuple[str, ...]:
    """Say what is looked at, in plain text."""
    chosen = settings.current()
    entry = chosen.entry
    title = [shorten(entry.title, 60)]
    if len(entry.loaded.models) > 1:
        title.append(f"model {shorten(chosen.model)}")
    what = [counted(cached.data(chosen).n, "row")]
    if chosen.split is not None:
        what.append(f"split {shorten(chosen.split)}")
    if chosen.where:
        what.append(where_words(chosen.where))
    what += [shorten(chosen.reduction.label), chosen.bins_words]
    today = datetime.now(UTC).date().isoformat()
    return " · ".join(title), " · ".join(what), f"digest {entry.loaded.digest[:16]} · {today}"

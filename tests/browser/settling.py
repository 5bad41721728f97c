"""Waiting for what a page shows in the end: it is laid out, and drawn again, for a while after it says that it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Milliseconds between two looks, and how many there are: only a limit, which a busy machine keeps too.
_PAUSE, _LOOKS = 300, 150
_COLOURS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}


def in_the_end(page: Any, measure: Callable[[], Any], right: Callable[[Any], bool]) -> Any:
    """What `measure` gives as soon as it is right, or at last."""
    value = measure()
    for _ in range(_LOOKS):
        if right(value):
            break
        page.wait_for_timeout(_PAUSE)
        value = measure()
    return value


def turn(tab: Any, theme: str) -> None:
    """Give an open page another theme, as the system does."""
    tab.page.emulate_media(color_scheme=theme)
    tab.page.wait_for_function(
        "paper => getComputedStyle(document.querySelector('.stApp')).backgroundColor === paper",
        arg=_COLOURS[theme],
    )
    tab.settle()


def drawn_in(tab: Any, theme: str) -> None:
    """Wait until a figure has the colours of the theme: the page notices a change within a second, and runs again."""
    tab.page.wait_for_function(
        """paper => [...document.querySelectorAll(".js-plotly-plot .main-svg")]
                      .some(svg => getComputedStyle(svg).backgroundColor === paper)""",
        arg=_COLOURS[theme],
    )
    tab.settle()

"""Waiting for what a page shows in the end, and clicks at places that were measured.

A page is laid out, and drawn again, for a while after it says that it is done, and moves away under the pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Milliseconds between two looks, and how many there are: only a limit, which a busy machine keeps too.
_PAUSE, _LOOKS = 300, 150
_COLOURS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 17, 23)"}
#: In a table of streamlit: the middle of the box that ticks a row, below the head, from the left and upper edge.
_BOX, _HEAD, _ROW = 18, 37, 35
#: Long enough for a busy machine: a second click would take the first one back.
_ANSWERED = 20_000


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


def at_rest(page: Any, measure: Callable[[], Any]) -> Any:
    """What `measure` gives, as soon as it gives the same twice: what it measures is there and has stopped moving."""
    last = measure()
    for _ in range(100):
        page.wait_for_timeout(300)
        last, before = measure(), last
        if last is not None and last == before:
            return last
    raise AssertionError("the page does not come to rest")


def click_until(
    page: Any, measure: Callable[[], Any], click: Callable[[Any], Any], seen: Any
) -> None:
    """Click where `measure` says, again if it was not answered: `seen` is what the answer shows."""
    for _ in range(4):
        click(at_rest(page, measure))
        try:
            seen.first.wait_for(state="attached", timeout=_ANSWERED)
        except Exception:
            continue
        return
    raise AssertionError("no click was answered")


def tick_first_row(page: Any, alt: str = "") -> None:
    """Tick the first row of the table of that description, or of the first table of the page."""
    named = f":has([aria-label='{alt}'])" if alt else ""
    table = page.locator(f"[data-testid=stDataFrame]{named}").first
    # Of any table: the answer may come with another table above this one.
    ticked = page.locator("[data-testid=stDataFrame] tr[aria-rowindex='2'][aria-selected=true]")
    table.locator("tr[aria-rowindex='2']").wait_for(state="attached")

    def click(box: dict[str, float]) -> None:
        page.mouse.click(box["x"] + _BOX, box["y"] + _HEAD + _ROW / 2)

    click_until(page, table.bounding_box, click, ticked)

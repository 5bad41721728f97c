"""Clicks at places that were measured: a page that is still being laid out moves away under the pointer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: In a table of streamlit: the middle of the box that ticks a row, below the head, from the left and upper edge.
_BOX, _HEAD, _ROW = 18, 37, 35
#: Long enough for a busy machine: a second click would take the first one back.
_ANSWERED = 20_000


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

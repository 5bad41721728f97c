"""Going through a page by Tab: where the focus stops, and whether one sees that it is there."""

from __future__ import annotations

import re
from typing import Any

#: Before the first Tab: what everything looks like without the focus, and the controls that have to be reached.
_BEGIN = """() => {
    const all = [], walk = (root) => { for (const e of root.querySelectorAll("*")) {
        all.push(e); if (e.shadowRoot) walk(e.shadowRoot); } };
    walk(document);
    window.unfocused = new Map(all.map((e) => [e, getComputedStyle(e).borderTopColor]));
    const controls = "a[href], button, input, select, textarea, summary, [role=slider]";
    window.missed = new Set(all.filter((e) => e.matches(controls) && e.tabIndex >= 0 && !e.disabled
        && e.checkVisibility({visibilityProperty: true}) && !e.closest("[inert], [aria-hidden=true]")));
    document.activeElement.blur();
}"""
#: After each Tab: the name of what has the focus, its outline, and border colours round it that it did not have before.
_STOP = """() => {
    let e = document.activeElement;
    while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
    if (!e || e === document.body) return null;
    window.missed.delete(e);
    const group = e.closest("[role=radiogroup]");
    // Of a group, arrows choose.
    if (group) for (const one of group.querySelectorAll("*")) window.missed.delete(one);
    // A switch has its ring round its label, a slider round its handle.
    const box = e.matches("input[type=checkbox], input[type=radio]") ? e.closest("label")
        : e.matches("input[type=range]") && e.closest("[data-focus-visible]");
    const own = getComputedStyle(box || e), borders = [];
    for (let one = e, i = 0; one && i < 8; i++, one = one.parentElement) {
        const now = getComputedStyle(one);
        if (now.borderTopColor !== window.unfocused.get(one) && parseFloat(now.borderTopWidth) > 0) borders.push(now.borderTopColor);
    }
    const name = (e.getAttribute("aria-label") || e.innerText || e.dataset.testid || e.tagName).trim();
    return {name, outline: own.outlineStyle === "none" ? 0 : parseFloat(own.outlineWidth), colour: own.outlineColor, borders};
}"""
#: A picture that was drawn again meanwhile has new buttons; the old ones are no longer on the page.
_MISSED = """() => [...window.missed].filter((e) => e.isConnected)
    .map((e) => e.getAttribute('aria-label') || e.innerText || e.outerHTML.slice(0, 80))"""
_PAPER = "() => getComputedStyle(document.querySelector('.stApp')).backgroundColor"


def stops(page: Any, most: int = 150) -> list[dict[str, Any]]:
    """Press Tab until the focus leaves the page."""
    # Colours are looked at in the middle of a transition otherwise.
    page.add_style_tag(content="* { transition: none !important; }")
    page.evaluate(_BEGIN)
    values = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(_STOP)
        if stop is None:
            return values
        values.append(stop)
    raise AssertionError(f"after {most} times the focus is still on the page: {values[-1]}")


def missed(page: Any) -> list[str]:
    """Controls that were not reached."""
    return list(page.evaluate(_MISSED))


def unseen(page: Any, result: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stops without an outline of two pixels, or a new border, in a colour of 3 to 1 on the page (WCAG 2.2, 1.4.11)."""
    paper = _luminance(page.evaluate(_PAPER))

    def seen(stop: dict[str, Any]) -> bool:
        colours = stop["borders"] + ([stop["colour"]] if stop["outline"] >= 2 else [])
        return any(_contrast(_luminance(colour), paper) >= 3 for colour in colours)

    return [stop for stop in result if not seen(stop)]


def _luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2); a colour that is not opaque counts as none, and is as good as the page."""
    red, green, blue, *alpha = (float(part) for part in re.findall(r"[\d.]+", colour))
    if alpha and alpha[0] < 1:
        return float("nan")
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (red / 255, green / 255, blue / 255)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)

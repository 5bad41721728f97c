"""What only the browser knows and can do: copy the link, the width of the page, a theme that has been switched."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from calviz.ui.session import open_files

#: Pixels of a page's content from which figures are drawn larger, from which a legend has one or two lines, and up to which they
#: are drawn as for a phone.
WIDE, USUAL, NARROW = 1_200, 760, 500
_KEY = "calviz.browser"
_HTML = '<button type="button"><span></span></button>'
_CSS = """
button {
  width: 100%; min-height: 2.5rem; padding: 0.25rem 0.75rem; cursor: pointer; font: inherit; font-size: 0.875rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
_JS = """
export default function ({ parentElement, data, setStateValue }) {
  const button = parentElement.querySelector("button"), said = button.querySelector("span");
  const idle = "Copy link";
  button.title = data.help;
  if (!button.dataset.busy) said.textContent = idle;
  button.onclick = async () => {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(data.address)) {
      if (value === null) url.searchParams.delete(name); else url.searchParams.set(name, value);
    }
    button.dataset.link = url.href;
    try {
      await navigator.clipboard.writeText(url.href);
      said.textContent = "Link copied";
      button.dataset.busy = "1";
      setTimeout(() => { delete button.dataset.busy; said.textContent = idle; }, 2000);
    } catch {
      // Without a secure address browsers do not let a page copy.
      window.prompt(idle, url.href);
    }
  };
  const main = document.querySelector("[data-testid=stMainBlockContainer]");
  const app = document.querySelector("[data-testid=stApp]") || document.body;
  let theme = getComputedStyle(app).backgroundColor;
  const look = () => {
    if (!main) return;
    const style = getComputedStyle(main);
    const width = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const size = width >= data.wide ? "wide" : width <= data.narrow ? "narrow" : width < data.usual ? "small" : "usual";
    if (size !== data.size) { data.size = size; setStateValue("size", size); }
    const now = getComputedStyle(app).backgroundColor;
    if (now !== theme) { theme = now; setStateValue("theme", now); }
  };
  const timer = setInterval(look, 700);
  look();
  return () => clearInterval(timer);
}
"""


@cache
def _component() -> Any:
    return st.components.v2.component(_KEY, html=_HTML, css=_CSS, js=_JS)


def draw() -> None:
    """The button that copies the link; the page runs again when it is wide first, or shown in other colours."""
    sample = open_files.current().sample is not None
    what = "the name of the sample set" if sample else "the digest of the file, not the data"
    rest = "" if sample else ": whoever opens it is asked for the file"
    _component()(
        key=_KEY,
        data={
            "address": open_files.address(),
            "help": f"The link holds the settings and {what}{rest}.",
            "wide": WIDE,
            "usual": USUAL,
            "narrow": NARROW,
            "size": size(),
        },
        default={"size": size(), "theme": ""},
        on_size_change=_nothing,
        on_theme_change=_nothing,
    )


def _nothing() -> None:
    """Streamlit reports only what somebody listens to."""


def size() -> str:
    """How much room the page has: "narrow", "small", "usual" or "wide"; of a phone it is known before the browser has said so."""
    usual = "narrow" if "Mobi" in str(st.context.headers.get("User-Agent")) else "usual"
    state = st.session_state.get(_KEY)
    return (state and state.get("size")) or usual

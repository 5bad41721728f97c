"""A button that copies text. Nothing leaves the machine."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

_HTML = '<button type="button"><span></span></button>'
_CSS = """
button {
  min-height: 2.25rem; padding: 0.25rem 0.75rem; cursor: pointer; font: inherit; font-size: 0.875rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
_JS = """
export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button"), caption = button.querySelector("span");
  if (!button.dataset.busy) caption.textContent = data.label;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.text);
      caption.textContent = "Copied";
      button.dataset.busy = "1";
      setTimeout(() => { delete button.dataset.busy; caption.textContent = data.label; }, 2000);
    } catch {
      // Browsers do not let a page copy without a secure (https) address.
      window.prompt(data.label, data.text);
    }
  };
}
"""


@cache
def _component() -> Any:
    return st.components.v2.component("calviz.clipboard", html=_HTML, css=_CSS, js=_JS)


def text(content: str, label: str, *, key: str) -> None:
    """Draw a button that copies plain text.

    Parameters
    ----------
    content : str
        The text to copy.
    label : str
        The label of the button.
    key : str
        The key of the component.
    """
    _component()(key=key, data={"text": content, "label": label})

"""What only the browser can do or knows: copy the link, save and open a view, the width of the page, a switch of the theme."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from calviz.ui.session import open_files, settings, view_file

#: Widths of a page's content in pixels: from the first on, figures are drawn larger; from the second on, a legend has one or two
#: lines; up to the third, figures are drawn as for a phone.
WIDE, USUAL, NARROW = 1_200, 760, 500
#: Hosts in an address that lead to the machine of the browser.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_KEY = "calviz.browser"
_HTML = """<div><button type="button" class="link"><span></span></button>
<button type="button" class="save">Save this view</button></div>"""
_CSS = """
div { display: flex; flex-direction: column; gap: 0.75rem; }
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
  const button = parentElement.querySelector(".link"), caption = button.querySelector("span");
  const idle = "Copy link";
  button.title = data.help;
  if (!button.dataset.busy) caption.textContent = idle;
  const here = () => {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(data.address)) {
      if (value === null) url.searchParams.delete(name); else url.searchParams.set(name, value);
    }
    return url;
  };
  button.onclick = async () => {
    const url = here();
    button.dataset.link = url.href;
    try {
      await navigator.clipboard.writeText(url.href);
      caption.textContent = "Link copied";
      button.dataset.busy = "1";
      setTimeout(() => { delete button.dataset.busy; caption.textContent = idle; }, 2000);
    } catch {
      // Browsers do not let a page copy without a secure (https) address.
      window.prompt(idle, url.href);
    }
  };
  const save = parentElement.querySelector(".save");
  save.title = data.save;
  save.onclick = () => {
    const url = here(), settings = {};
    for (const name of new Set(url.searchParams.keys())) {
      const values = url.searchParams.getAll(name);
      if (name !== "data") settings[name] = values.length > 1 ? values : values[0];
    }
    const page = url.pathname.split("/").pop();
    const view = { ...data.view, page: page && page !== "start" ? page : "overview", settings };
    const file = new Blob([JSON.stringify(view, null, 1) + "\\n"], { type: "application/json" });
    const to = document.createElement("a");
    to.href = URL.createObjectURL(file);
    to.download = data.file;
    to.click();
    URL.revokeObjectURL(to.href);
  };
  if (data.go && data.go.turn !== window.calvizWent) {
    // Streamlit restores every setting from the address after a step in the browser's history; this makes such a step.
    window.calvizWent = data.go.turn;
    const path = window.location.pathname.split("/").slice(0, -1).join("/");
    const { page, query } = data.go;
    // Delayed until the widgets of this run hold their new values: the step sends the values that they hold.
    setTimeout(() => {
      window.history.pushState(null, "", `${path}/${page}?${query}`);
      window.dispatchEvent(new PopStateEvent("popstate", { state: null }));
    }, 500);
  }
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
    """Draw the buttons that copy the link and save a view; the page runs again when its width class or its theme changes."""
    entry = open_files.current()
    sample = entry.sample is not None
    contents = "the name of the sample set" if sample else "the digest of the file, not the data"
    rest = "" if sample else ": whoever opens it is asked for the file"
    _component()(
        key=_KEY,
        data={
            "address": open_files.address(),
            "help": f"The link holds the settings and {contents}{rest}.",
            "wide": WIDE,
            "usual": USUAL,
            "narrow": NARROW,
            "save": "A small file with page, settings, selection and pinned state, never data; drop it where files are opened.",
            "view": view_file.header(
                key=entry.key,
                title=entry.title,
                digest=entry.loaded.digest,
                rows=entry.loaded.recognition.rows,
            ),
            "file": f"{settings.current().file_stem}-view.json",
            "go": _requested_step(),
            "size": size(),
        },
        default={"size": size(), "theme": ""},
        on_size_change=_nothing,
        on_theme_change=_nothing,
    )


def _requested_step() -> dict[str, Any] | None:
    """Return where the browser should go, as a step in its history."""
    step = open_files.requested_step()
    if step is None:
        return None
    name, view = step
    query = dict(view.settings)
    if view.key != open_files.DEFAULT:
        query[open_files.DATA] = (view.key,)
    page = "" if view.page == "overview" else view.page
    return {"turn": name, "page": page, "query": urlencode(query, doseq=True)}


def _nothing() -> None:
    """Do nothing: streamlit reports only values that have a callback."""


def host() -> str | None:
    """Return the host in the address of the page; None if the address is not known."""
    return urlsplit(st.context.url or "").hostname


def size() -> str:
    """Return the page's width class: "narrow", "small", "usual" or "wide"; a phone is recognised before the browser reports it."""
    usual = "narrow" if "Mobi" in str(st.context.headers.get("User-Agent")) else "usual"
    state = st.session_state.get(_KEY)
    return (state and state.get("size")) or usual

"""Keyboard shortcuts: to the pages, to the list of all shortcuts, and to copy the figure under the pointer; the fonts of pictures."""

from __future__ import annotations

from functools import cache
from typing import Any

import streamlit as st

from calviz.ui.session.navigation import PAGES
from calviz.ui.widgets.pictures import PAGE_FONT

_HTML = """
<button type="button" class="open">Keyboard</button>
<span class="status" role="status" aria-live="polite"></span>
<dialog aria-label="Keyboard shortcuts"><form method="dialog"><h2>Keyboard</h2><dl></dl>
<button autofocus>Close</button></form></dialog>
"""
_CSS = """
button {
  padding: 0.25rem 0.75rem; cursor: pointer; font: inherit; font-size: 0.875rem; color: var(--st-text-color);
  background: var(--st-background-color); border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
}
button.open { width: 100%; min-height: 2.5rem; }
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.status { font-size: 0.875rem; color: var(--st-text-color); }
dialog {
  color: var(--st-text-color); background: var(--st-background-color); border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); padding: 1rem 1.5rem; max-height: 85vh; overflow-y: auto; font: inherit;
}
dialog::backdrop { background: rgba(0, 0, 0, 0.4); }
h2 { font-size: 1.1rem; margin: 0 0 0.75rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.3rem 1rem; margin: 0 0 1rem; }
dt { font-weight: 600; font-family: monospace; } dd { margin: 0; }
"""
_JS = r"""
export default function ({ parentElement, data }) {
  const dialog = parentElement.querySelector("dialog"), status = parentElement.querySelector(".status");
  const list = parentElement.querySelector("dl");
  if (!list.childElementCount) {
    for (const [keys, words] of [...data.pages.map((p) => [`g ${p.key}`, p.title]), ...data.others]) {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = keys; dd.textContent = words;
      list.append(dt, dd);
    }
  }
  parentElement.querySelector(".open").onclick = () => dialog.showModal();
  const say = (text) => { status.textContent = text; setTimeout(() => { status.textContent = ""; }, 2500); };

  // A picture has no access to the fonts of its page: a copied one brings the font along, a saved one is drawn without it.
  const pageFont = async () => {
    const rules = [...document.styleSheets].flatMap((sheet) => { try { return [...sheet.cssRules]; } catch { return []; } });
    const face = rules.find((one) => one instanceof CSSFontFaceRule && one.style.fontStyle !== "italic"
      && one.style.fontFamily.includes(data.font.replaceAll('"', "")));
    const address = face?.style.src.match(/url\("?([^")]+)/)?.[1];
    if (!address) return "";
    const file = await (await fetch(new URL(address, face.parentStyleSheet.href || document.baseURI))).blob();
    const read = new FileReader();
    const url = await new Promise((done) => { read.onload = () => done(read.result); read.readAsDataURL(file); });
    return `@font-face { font-family: ${data.font}; font-weight: ${face.style.fontWeight}; src: url(${url}); }`;
  };
  const saved = (event) => {
    const chart = event.target instanceof Element && event.target.closest(".modebar-btn") && event.target.closest(".js-plotly-plot");
    const font = chart && chart.layout?.font, family = font?.family;
    if (!family?.startsWith(data.font)) return;
    font.family = family.replace(`${data.font}, `, "");
    setTimeout(() => { font.family = family; });
  };

  // Joins the layers of a drawing into one picture.
  const copyFigure = async (chart) => {
    const { width, height } = chart.getBoundingClientRect();
    const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    whole.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    whole.setAttribute("width", width); whole.setAttribute("height", height);
    const layers = [...chart.querySelectorAll(".main-svg")];
    for (const layer of layers) whole.append(layer.cloneNode(true));
    whole.querySelectorAll(".hoverlayer, .modebar").forEach((one) => one.remove());
    // On the page, lines keep their width whatever the scale; in the picture they grow with it.
    whole.querySelectorAll("[style*=vector-effect]").forEach((one) => one.style.removeProperty("vector-effect"));
    const paint = async () => {
      const fonts = document.createElementNS("http://www.w3.org/2000/svg", "style");
      fonts.textContent = await pageFont().catch(() => "");
      whole.prepend(fonts);
      const image = new Image();
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(whole));
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = 3 * width; canvas.height = 3 * height;
      const pen = canvas.getContext("2d");
      pen.fillStyle = (layers[0] && getComputedStyle(layers[0]).backgroundColor) || "#fff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    };
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": paint() })]);
      say("Figure copied");
    } catch { say("This browser does not let a page copy"); }
  };

  const typing = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=combobox], [role=textbox], [data-testid=stDataFrame]";
  let begun = 0;
  const pressed = (event) => {
    const at = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    if (at instanceof Element && at.closest(typing)) return;
    const key = event.key.toLowerCase(), soon = Date.now() - begun < 1500;
    begun = 0;
    if (soon) {
      const page = data.pages.find((p) => p.key === key);
      const ends = page && (page.first ? ["/", "/start"] : [`/${page.page}`]);
      const link = page && [...document.querySelectorAll("[data-testid=stSidebarNavLink]")].find((one) => {
        const path = new URL(one.href).pathname;
        return page.first ? ends.includes(path) || path.endsWith("/start") : path.endsWith(ends[0]);
      });
      if (link) { event.preventDefault(); link.click(); }
    } else if (key === "g") { begun = Date.now();
    } else if (key === "?") { event.preventDefault(); dialog.showModal();
    } else if (key === "c") {
      const chart = document.querySelector(".js-plotly-plot:hover");
      if (chart) copyFigure(chart);
    }
  };
  document.addEventListener("keydown", pressed);
  document.addEventListener("click", saved, true);
  return () => {
    document.removeEventListener("keydown", pressed);
    document.removeEventListener("click", saved, true);
  };
}
"""
_OTHERS = (
    ("c", "copy the figure that is pointed at"),
    ("Tab", "to the next control; tables beside figures do what a click on the figure does"),
    ("?", "this list"),
)


@cache
def _component() -> Any:
    return st.components.v2.component("calviz.shortcuts", html=_HTML, css=_CSS, js=_JS)


def draw() -> None:
    """Draw the button that lists the shortcuts; they do nothing while somebody types."""
    pages = [
        {"key": page.letter, "title": page.title, "page": page.key, "first": page is PAGES[0]}
        for page in PAGES
    ]
    _component()(
        key="calviz.shortcuts", data={"pages": pages, "others": _OTHERS, "font": PAGE_FONT}
    )

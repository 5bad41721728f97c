"""What the pages know of the screen, and what they put on it: figures, small pictures of metrics, buttons of the browser."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from html import escape
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from calviz.app import open_files, session
from calviz.app.session import md
from calviz.core.entry_specs import Theme
from calviz.core.words import shorten
from calviz.figures import hundred_squares
from calviz.figures.figure import Figure
from calviz.figures.hundred_squares import CELL, HEIGHT, MARKS_WORDS, Bullet, words
from calviz.figures.marks import captioned, with_legend_for
from calviz.figures.reliability import Marks, Reliability, ReliabilityOverlay
from calviz.figures.style import FONT, PALETTES, Palette, plot_config, printed
from calviz.sample.metric_results import MetricResult

#: Widths of a page's content in pixels: from the first on, figures are drawn larger; from the second on, a legend has one or two
#: lines; up to the third, figures are drawn as for a phone.
WIDE, USUAL, NARROW = 1_200, 760, 500
#: Hosts in an address that lead to the machine of the browser.
LOOPBACK = ("127.0.0.1", "localhost", "::1")

#: Pixels of a figure on a phone.
PHONE = 350
#: Pixels added in both directions where the diagram is the main content, and on a wide page.
LARGER, WIDER = 20, 150


def theme() -> Theme:
    """Return the theme of the page."""
    return "dark" if st.context.theme.type == "dark" else "light"


def page_width() -> int | None:
    """Return the pixels for a figure on a narrow page, as on a phone; None on other pages, whose width is not known."""
    return PHONE if width_class() == "narrow" else None


def width_class() -> str:
    """Return the page's width class: "narrow", "small", "usual" or "wide"; a phone is recognised before the browser reports it."""
    usual = "narrow" if "Mobi" in str(st.context.headers.get("User-Agent")) else "usual"
    state = st.session_state.get(_LINK_KEY)
    return (state and state.get("size")) or usual


def host() -> str | None:
    """Return the host in the address of the page; None if the address is not known."""
    return urlsplit(st.context.url or "").hostname


def stays_here() -> str:
    """Say where the data stay."""
    place = "machine" if host() in LOOPBACK else "server"
    return f"Your data stay on this {place}; nothing is sent anywhere."


# ---- Figures


def chart(
    figure: Figure,
    drawing: Any = None,
    *,
    key: str,
    filename: str,
    alt: str = "",
    on_select: Any = "ignore",
    own_caption: bool = False,
) -> Any:
    """Show any figure on the page, as wide as its container, with its alternative text.

    `drawing` is what `plotted` returns, by default without options.
    With `own_caption`, the caption is that of the figure itself, which is not about the current data set.
    """
    of_data = not own_caption
    return st.plotly_chart(
        finished(
            plotted(figure) if drawing is None else drawing,
            figure,
            theme=theme(),
            narrow=page_width() is not None,
            of_data=of_data,
        ),
        key=widget_key(key),
        theme=None,
        config=plot_config_of(filename, of_data=of_data),
        alt=alt or figure.describe(),
        on_select=on_select,
        selection_mode="points",
    )


def plotted(figure: Figure, **options: Any) -> Any:
    """Draw a figure in the theme of the page, and for the width of a narrow one; options are those of `figure.plot`."""
    return figure.plot(**{"theme": theme(), "width": page_width()} | options)


def as_wide_as_the_page(drawing: Any) -> Any:
    """Fit the room for the legend to the width of the page.

    A drawing for a known width has that room already; on a small page the drawing stays as it is.
    """
    if width_class() in ("narrow", "small"):
        return drawing
    # The width is known as a class only, by its lower end: a legend is never cut.
    return with_legend_for(drawing, WIDE if width_class() == "wide" else USUAL)


def draw_diagram(
    figure: Reliability,
    *,
    key: str,
    on_select: Any = "ignore",
    selected: tuple[int, int] | None = None,
    larger: bool = False,
    height: int | None = None,
    drag: bool = False,
    beside: Sequence[ReliabilityOverlay] = (),
) -> Any:
    """Draw the diagram, in its usual height in pixels or another one (not on a phone).

    `on_select` is called for a click on a bin or, with `drag`, for a range that is dragged over.
    """
    width = page_width()
    drawing = figure.plot(
        theme=theme(), selected=selected, width=width, marks=marks(), beside=beside
    )
    if width is None:
        # The square of the diagram is as large as the height allows.
        extra = LARGER * larger + WIDER * (width_class() == "wide")
        drawing.update_layout(height=height or (drawing.layout.height or 0) + extra)
    if drag:
        drawing.update_layout(dragmode="select", selectdirection="h")
    return st.plotly_chart(
        finished(drawing, figure, theme=theme(), narrow=page_width() is not None),
        key=widget_key(key),
        theme=None,
        config=plot_config_of("reliability"),
        alt=figure.describe(),
        on_select=on_select,
        selection_mode="box" if drag else "points",
    )


def widget_key(key: str) -> str:
    """Return the key under which a diagram keeps its selection; each theme has its own."""
    return f"{key}.{theme()}"


def finished(
    drawing: Any, figure: Figure, *, theme: Theme, narrow: bool, of_data: bool = True
) -> Any:
    """Return the drawing as the page shows it: in the page's font, and under its caption, if that is wanted.

    Without `of_data` the figure is not about the current data set, and its own caption is complete.
    """
    family = f"{PAGE_FONT}, {FONT}"
    drawing.update_layout(font_family=family, hoverlabel_font_family=family)
    if st.session_state.get(_PRINT, False):
        printed(drawing, theme=theme)
    if not st.session_state.get(_CAPTION, False):
        return drawing
    lines = caption(figure) if of_data else figure.caption()
    return captioned(drawing, lines, theme=theme, characters=44 if narrow else 62)


def caption(figure: Figure) -> tuple[str, ...]:
    """Return the lines of a caption in plain text: the data set, what the figure shows, digest and date."""
    chosen = session.current()
    entry = chosen.entry
    title = [shorten(entry.title, 60)]
    if len(entry.loaded.models) > 1:
        title.append(f"model {shorten(chosen.model)}")
    today = datetime.now(UTC).date().isoformat()
    figure_lines = figure.caption()[1:] or (chosen.sample.words,)
    return " · ".join(title), *figure_lines, f"digest {entry.short_digest} · {today}"


def plot_config_of(filename: str, *, of_data: bool = True) -> dict[str, Any]:
    """Return a figure's configuration for the browser; the file name of its picture names the data set."""
    chosen = st.session_state.get(_FORMAT, "png")
    name = f"{session.current().file_stem}-{filename}" if of_data else filename
    return plot_config(name, image="svg" if chosen == "svg" else "png")


def marks() -> Marks:
    """Return how reliability diagrams are drawn."""
    return "bars" if st.session_state.get(_MARKS) == "bars" else "points"


#: The web font of the page. Saved pictures are drawn without it, as it exists nowhere else (`bar.draw_shortcuts`).
PAGE_FONT = '"Source Sans"'
_CAPTION, _FORMAT, _MARKS, _PRINT = "caption", "picture", "marks", "print"
_FORMATS = {"png": "PNG", "svg": "SVG"}
_MARKS_WORDS: dict[Marks, str] = {"points": "points", "bars": "bars"}


def draw_picture_choices() -> None:
    """Draw the choices; they are part of the link."""
    st.toggle(
        "Caption above every figure",
        key=_CAPTION,
        bind="query-params",
        help="Data set, what the figure shows, digest and today's date.",
    )
    session.choose_one(
        "Reliability diagrams as",
        _MARKS_WORDS,
        default="points",
        key=_MARKS,
        help="Points with their intervals on the range of a calibrated model; or bars, as Guo et al. 2017 draw them.",
    )
    st.toggle(
        "As a paper prints them",
        key=_PRINT,
        bind="query-params",
        help="Without grey areas and grid. Report, Figures for print, puts several beside each other, in the size of a column, "
        "as SVG, PNG and PDF. Pointing at a figure and pressing c copies it.",
    )
    session.choose_one(
        "Save figures as",
        _FORMATS,
        default="png",
        key=_FORMAT,
        help="With the camera that appears above a figure. PNG at three times the size on screen.",
    )


# ---- Pictures of metrics

#: The heading of the column, and its width in pixels.
PICTURE_COLUMN, BULLET_WIDE = "in a picture", 124
#: Streamlit draws the image of a cell at this height in pixels, and cuts off what is then wider than the column.
_DRAWN = 29


def picture_of_metric(result: MetricResult, palette: Palette, *, noise: str = "") -> str:
    """Return the drawing as an image in HTML, with its description as tooltip and alternative text."""
    description = escape(words(result, noise), quote=True)
    # As an image: streamlit removes inline SVG from HTML.
    return (
        f'<img src="{hundred_squares.address(hundred_squares.svg(Bullet.of(result), palette))}" alt="{description}" title="{description}" '
        f'style="display:block;width:100%;height:{HEIGHT:g}px">'
    )


def picture_column(
    bullets: Sequence[Bullet | None], *, shared: bool = True, width: int = BULLET_WIDE
) -> list[str | None]:
    """Return the cells of a column of `st.dataframe`, in the page's colours; on one scale, or each on its own."""
    wide = width * CELL[1] // _DRAWN
    return hundred_squares.column(bullets, PALETTES[theme()], shared=shared, wide=wide)


def picture_column_config(help: str = "", *, width: int = BULLET_WIDE) -> Any:
    """Return the column's configuration; the numbers are in the other columns of the row."""
    return st.column_config.ImageColumn(PICTURE_COLUMN, width=width, help=help or MARKS_WORDS)


def picture_cell(address: str | None, description: str) -> str:
    """Return a drawing for a cell of `st.table`, as markdown with alternative text."""
    return "" if address is None else f"![{md(description)}]({address})"


# ---- Buttons of the browser

_LINK_KEY = "calviz.browser"
_LINK_HTML = """<div><button type="button" class="link"><span></span></button>
<button type="button" class="save">Save this view</button></div>"""
_LINK_CSS = """
div { display: flex; gap: 0.5rem; }
button {
  min-height: 2.5rem; white-space: nowrap; padding: 0.25rem 0.75rem; cursor: pointer; font: inherit; font-size: 0.875rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
_LINK_JS = """
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


def draw_link_buttons() -> None:
    """Draw the buttons that copy the link and save a view; the page runs again when its width class or its theme changes."""
    entry = open_files.current()
    sample = entry.sample is not None
    contents = "the name of the sample set" if sample else "the digest of the file, not the data"
    rest = "" if sample else ": whoever opens it is asked for the file"
    _link_component()(
        key=_LINK_KEY,
        data={
            "address": open_files.data_parameters(),
            "help": f"The link holds the settings and {contents}{rest}.",
            "wide": WIDE,
            "usual": USUAL,
            "narrow": NARROW,
            "save": "A small file with page, settings, selection and pinned state, never data; drop it where files are opened.",
            "view": open_files.view_header(
                key=entry.key,
                title=entry.title,
                digest=entry.loaded.digest,
                rows=entry.loaded.recognition.rows,
            ),
            "file": f"{session.current().file_stem}-view.json",
            "go": _requested_step(),
            "size": width_class(),
        },
        width="content",
        default={"size": width_class(), "theme": ""},
        on_size_change=_nothing,
        on_theme_change=_nothing,
    )


@cache
def _link_component() -> Any:
    return st.components.v2.component(_LINK_KEY, html=_LINK_HTML, css=_LINK_CSS, js=_LINK_JS)


def _requested_step() -> dict[str, Any] | None:
    """Return where the browser should go, as a step in its history."""
    step = open_files.requested_step()
    if step is None:
        return None
    name, view = step
    query = dict(view.settings)
    if view.key != open_files.DEFAULT_KEY:
        query[open_files.DATA] = (view.key,)
    page = "" if view.page == "overview" else view.page
    return {"turn": name, "page": page, "query": urlencode(query, doseq=True)}


def _nothing() -> None:
    """Do nothing: streamlit reports only values that have a callback."""


_CLIPBOARD_HTML = '<button type="button"><span></span></button>'
_CLIPBOARD_CSS = """
button {
  min-height: 2.25rem; padding: 0.25rem 0.75rem; cursor: pointer; font: inherit; font-size: 0.875rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-base-radius);
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
"""
_CLIPBOARD_JS = """
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


def copy_button(content: str, label: str, *, key: str) -> None:
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
    _clipboard_component()(key=key, data={"text": content, "label": label})


@cache
def _clipboard_component() -> Any:
    return st.components.v2.component(
        "calviz.clipboard", html=_CLIPBOARD_HTML, css=_CLIPBOARD_CSS, js=_CLIPBOARD_JS
    )


# ---- Style

#: Colour of the ring: contrast 4.1 to 1 on white, 4.6 to 1 on dark.
RING = "#3680c9"
# Streamlit's ring is half transparent, and its links have only a faint fill. Text fields are left out: they have a border of the
# primary colour while somebody types in them.
_FOCUS_RING = f"""
:is(a, button, summary, [data-tag]):focus-visible,
[data-testid="stSlider"] [data-focus-visible],
label:has(:is(input[type="checkbox"], input[type="radio"]):focus-visible) {{
  outline: 2px solid {RING} !important; outline-offset: 2px; box-shadow: none !important;
}}
:is([data-testid="stMain"], .modebar-btn, [data-testid="stTopNavLink"]):focus-visible {{
  outline: 2px solid {RING} !important; outline-offset: -2px !important;
}}
.modebar-container:focus-within .modebar {{ opacity: 1 !important; }}
"""
# Streamlit's margins of 80 pixels on either side, and of 16 pixels between the columns of `st.table`, would cut the last columns
# of the tables in a window of 1,280 pixels.
_MARGIN, _SMALL_WINDOW = 32, (800, 1400)
_MARGINS = f"""
@media (min-width: {_SMALL_WINDOW[0]}px) and (max-width: {_SMALL_WINDOW[1]}px) {{
  [data-testid="stMainBlockContainer"] {{ padding-left: {_MARGIN}px; padding-right: {_MARGIN}px; }}
  [data-testid="stTable"] table :is(td, th):not(:first-child) {{ padding-left: 11px; }}
}}
"""
# Streamlit puts columns one above the other on a phone only. Two figures that share less than `USUAL` pixels would lose their legends.
# Styles do it, because a figure that moves to another container is drawn again from the domains of its last size.
_COLUMNS = '[data-testid="stHorizontalBlock"]:has([data-testid="stPlotlyChart"]) > [data-testid="stColumn"]'
_NARROW = f"@media (max-width: {USUAL + 2 * _MARGIN}px) {{ {_COLUMNS} {{ min-width: calc(100% - 1.5rem); }} }}"
# Tabs are links, so that each has its address: a line below the open one, no icons.
_TABS = """
.st-key-calviz-tabs { border-bottom: 1px solid var(--st-border-color); }
.st-key-calviz-tabs a > span:has([data-testid="stIconMaterial"]) { display: none; }
.st-key-calviz-tabs a { background: none !important; border-radius: 0; padding: 0.25rem 0; border-bottom: 2px solid transparent; }
.st-key-calviz-tabs a:has(strong) { border-bottom-color: var(--st-primary-color); }
.st-key-calviz-tabs a:has(strong) p { color: var(--st-primary-color); }
[data-testid="stMainBlockContainer"] { padding-top: 4.25rem; padding-bottom: 2rem; max-width: 1600px; }
h1 { font-size: 1.75rem !important; padding: 0.25rem 0 !important; }
[data-testid="stMain"] [data-testid="stMarkdownContainer"]:not([data-testid="stMetricValue"] *) :is(p, li) { font-size: 0.875rem; line-height: 1.375rem; }
@media (max-width: 500px) { h1 { font-size: 1.375rem !important; } .st-key-calviz-tabs { gap: 0.25rem 1rem; } }
"""
# Streamlit writes white on the primary colour in both themes, and the primary colour on the background. On dark, no colour has
# a contrast of 4.5 to 1 to both; the background's colour on the primary colour has 6.3 to 1.
_DARK = """
:is([data-tag], [data-testid="stBaseButton-primary"]), :is([data-tag], [data-testid="stBaseButton-primary"]) * {
  color: #0e1117 !important;
}
[data-testid="stBaseButton-primary"]:is(:hover, :active, :focus-visible) { background: #7ab8f0 !important; }
"""


def draw_page_style() -> None:
    """Add the styles to the page; they take no room."""
    dark = st.context.theme.type == "dark"
    st.html(f"<style>{_FOCUS_RING}{_MARGINS}{_NARROW}{_TABS}{_DARK if dark else ''}</style>")

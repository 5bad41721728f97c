"""What the pages know of the screen, and what they put on it: figures, small pictures of metrics, buttons of the browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import open_files, session
from calviz.app.session import md
from calviz.core.entry_specs import Interval, Theme
from calviz.core.words import shorten
from calviz.figures import hundred_squares
from calviz.figures.figure import Figure
from calviz.figures.hundred_squares import CELL, MARKS_WORDS, Bullet
from calviz.figures.marks import captioned, with_legend_for
from calviz.figures.reliability import Marks, Reliability
from calviz.figures.style import FONT, PALETTES, plot_config, printed

#: Widths of a page's content in pixels: from the first on, figures are drawn larger; from the second on, a legend has one or two
#: lines; up to the third, figures are drawn as for a phone.
WIDE, USUAL, NARROW = 1_200, 760, 500
#: Hosts in an address that lead to the machine of the browser.
LOOPBACK = ("127.0.0.1", "localhost", "::1")

#: Pixels of a figure on a phone.
PHONE = 350
#: Height of a preview in pixels, and on a phone, where the page must still be seen around it.
PREVIEW = {None: 900, PHONE: 560}


def theme() -> Theme:
    """Return the theme of the page."""
    return "dark" if st.context.theme.type == "dark" else "light"


def page_width() -> int | None:
    """Return the pixels for a figure on a narrow page, as on a phone; None on other pages, whose width is not known."""
    return PHONE if width_class() == "narrow" else None


def width_class() -> str:
    """Return the page's width class: "narrow", "small", "usual" or "wide".

    Until the browser reports another one, it is that of a phone or of a desktop, for which no page is drawn twice.
    """
    first = "narrow" if "Mobi" in str(st.context.headers.get("User-Agent")) else "wide"
    state = st.session_state.get(_LINK_KEY)
    return (state and state.get("size")) or first


def wider() -> int:
    """Return the pixels by which a square figure is larger, in both directions, on a wide page."""
    return 150 * (width_class() == "wide")


#: Most steps of a slider of thresholds.
_STEPS = 200


def choose_threshold(
    label: str, first: float, limits: Interval, values: Sequence[float], key: str, help: str = ""
) -> float:
    """Draw a number to type, and a slider whose steps are among the values, which are in order."""
    slider, (least, most) = f"calviz.slider.{key}", limits
    bind: Literal["query-params"] = "query-params"
    with st.container(horizontal=True, gap="medium", width=620, vertical_alignment="bottom"):
        chosen: float = st.number_input(
            label, least, most, first, 0.001, "%.6g", key, help, bind=bind, persist_state="session"
        )
        near = np.clip(values[:: len(values) // _STEPS + 1], least, most).round(6)
        options = sorted({chosen, *near.tolist()})
        st.session_state[slider] = chosen
        st.select_slider(
            "Among the scores",
            options,
            key=slider,
            format_func=lambda value: np.format_float_positional(float(value), trim="-"),
            on_change=lambda: st.session_state.update({key: st.session_state[slider]}),
        )
    return chosen


def host() -> str | None:
    """Return the host in the address of the page; None if the address is not known."""
    return urlsplit(st.context.url or "").hostname


# ---- Figures

SelectionMode = Literal["points", "box"]


def chart(
    figure: Figure,
    drawing: Any = None,
    *,
    key: str,
    filename: str,
    alt: str = "",
    on_select: Any = "ignore",
    selection_mode: SelectionMode = "points",
    own_caption: bool = False,
    wide: bool = False,
    **options: Any,
) -> Any:
    """Show any figure on the page, as wide as its container, with its alternative text.

    `drawing` is what `plotted` returns, by default with these options; `wide` fits the room for its legend to a page that is not small.
    With `own_caption`, the caption is that of the figure itself, which is not about the current data set.
    """
    drawing = plotted(figure, **options) if drawing is None else drawing
    if wide and width_class() not in ("narrow", "small"):
        # The width is known as a class only, by its lower end: a legend is never cut.
        with_legend_for(drawing, WIDE if width_class() == "wide" else USUAL)
    return st.plotly_chart(
        _finished(drawing, figure, own_caption),
        key=widget_key(key),
        theme=None,
        config=plot_config(
            filename if own_caption else f"{session.current().file_stem}-{filename}",
            image="svg" if st.session_state.get(_FORMAT) == "svg" else "png",
        ),
        alt=alt or figure.describe(),
        on_select=on_select,
        selection_mode=selection_mode,
    )


def plotted(figure: Figure, **options: Any) -> Any:
    """Draw a figure in the theme of the page, and for the width of a narrow one; options are those of `figure.plot`."""
    return figure.plot(**{"theme": theme(), "width": page_width()} | options)


def share_axes(drawings: Sequence[Any]) -> None:
    """Give drawings that stand beside each other the same ranges, and panels of the same size; they are changed in place."""
    across, up = ([getattr(d, f"select_{a}axes")() for d in drawings] for a in "xy")
    for axes in (*zip(*across, strict=False), *zip(*up, strict=False)):
        first, last = zip(*(axis.range for axis in axes), strict=True)
        down = first[0] > last[0]
        for axis in axes:
            axis.range = (max(first), min(last)) if down else (min(first), max(last))
    margins = {side: max(d.layout.margin[side] for d in drawings) for side in "lrtb"}
    margins["b"] += 16  # else plotly takes the room for a legend of two lines from one panel
    inner = max(d.layout.height - d.layout.margin.t - d.layout.margin.b for d in drawings)
    for layout in (d.layout for d in drawings):
        above_legend = layout.margin.b - (layout.legend.y or 0) * layout.height
        layout.update(height=inner + margins["t"] + margins["b"], margin=margins)
        if layout.legend.yref == "container":
            layout.legend.y = (margins["b"] - above_legend) / layout.height


def table(shown: Any, *, most: int | None = None, **options: Any) -> Any:
    """Draw a table without row numbers, as high as its rows or, if that is more than `most` pixels, as rows and a half of one; options are those of `st.dataframe`.

    A column without a width is as wide as its longest text: the browser would measure the first rows only, and cut longer numbers
    without a sign of it. Tables end where the page does or, if they are narrower, at one other line: headings stand near their numbers.
    """
    shown = pd.DataFrame(shown) if isinstance(shown, dict) else shown
    frame = shown if isinstance(shown, pd.DataFrame) else shown.data
    columns = dict(options.pop("column_config", {}))
    for at, name in enumerate(frame):
        told = columns.get(name, {})
        if told is not None and not told.get("width"):  # None hides a column
            wide = _wide(shown, frame, at, told) if name != PICTURE_COLUMN else picture_width()
            columns[name] = {**told, "width": wide}
    of_row: int = options.get("row_height", 35)
    fit = len(frame) if most is None else (most - 37) // of_row
    # Half a row at the end says that there are more.
    height = "content" if len(frame) <= fit else 37 + int((fit - 0.5) * of_row)
    natural = sum(columns[name]["width"] for name in frame if columns[name] is not None)
    across: Any = "stretch" if natural > USUAL else USUAL
    usual = {"hide_index": True, "height": height, "width": across}
    return st.dataframe(shown, **usual | options, column_config=columns)


def _wide(shown: Any, frame: pd.DataFrame, at: int, told: dict[str, Any]) -> int:
    """Return the pixels of the longest text of a column as the browser writes it; a name that stays in place leaves room for the others."""
    cells: Any = frame.iloc[:, at]
    numeric, form = pd.api.types.is_numeric_dtype(cells), told.get("type_config", {}).get("format")
    if form and "%" in form:
        texts = [form % cell for cell in cells.dropna()]
    elif form or shown is frame:
        texts = [f"{round(cell, 4):,}" if numeric else str(cell) for cell in cells.dropna()]
    else:
        texts = [shown._display_funcs[row, at](cell) for row, cell in enumerate(cells)]
    # Digits and most letters take 7 pixels or less, these 4, a per cent sign 12.
    wide = (7 * len(t) - 3 * sum(map(t.count, " .,:")) + 5 * t.count("%") for t in texts)
    most = (120 if page_width() else 240) if told.get("pinned") else 400
    return 18 + min(max([7 * len(told.get("label") or str(cells.name)), *wide]), most)


def draw_diagram(
    figure: Reliability,
    *,
    key: str,
    on_select: Any = "ignore",
    height: int | None = None,
    below: int | None = None,
    drag: bool = False,
    **options: Any,
) -> Any:
    """Draw the diagram, in its usual height in pixels or another one, with so much `below` its axes (not on a phone); options are those of `Reliability.plot`.

    `on_select` is called for a click on a bin or, with `drag`, for a range that is dragged over.
    """
    marks: Marks = "bars" if st.session_state.get(_MARKS) == "bars" else "points"
    drawing = plotted(figure, marks=marks, whole=bool(st.session_state.get(_WHOLE)), **options)
    if page_width() is None:
        # The square of the diagram is as large as the height allows, and begins with its legend at the margin.
        drawing.update_layout(height=height or (drawing.layout.height or 0) + wider())
        drawing.update_layout(xaxis_constraintoward="left", legend_x=0, legend_xanchor="left")
        drawing.update_layout(margin_b=below or drawing.layout.margin.b)
    if drag:
        drawing.update_layout(dragmode="select", selectdirection="h")
    mode: SelectionMode = "box" if drag else "points"
    return chart(
        figure, drawing, key=key, filename="reliability", on_select=on_select, selection_mode=mode
    )


def draw_before_and_after(
    before: Reliability, then: Reliability, *, key: str, name: str, pair: bool = False
) -> None:
    """Draw the points after a method, filled, and those before it as outlines; in a `pair`, a wide page has those before beside it, too."""
    outlines = before.overlay("Before", "before")
    left = ", without bins of few rows" * (outlines.count.size < before.count.size)
    pair &= width_class() == "wide"
    lead = "Left: before. Right, filled" if pair else "Filled"
    st.caption(f"{lead}: {md(session.name_after(name))}. Outlines: the same rows before{left}.")
    options: dict[str, Any] = before.shared_axes(then)
    with st.container(horizontal=True, gap="medium"):
        if pair:
            # Both squares are equally large, whatever the lines of their legends.
            options |= {"height": 800, "below": 155}
            draw_diagram(before, key=f"{key}.before", **options)
        draw_diagram(then, key=key, beside=(outlines,), **options)


def widget_key(key: str) -> str:
    """Return the key under which a diagram keeps its selection; each theme has its own."""
    return f"{key}.{theme()}"


def _finished(drawing: Any, figure: Figure, own_caption: bool) -> Any:
    """Return the drawing as the page shows it: in the page's font, and under its caption, if that is wanted."""
    family = f"{PAGE_FONT}, {FONT}"
    drawing.update_layout(font_family=family, hoverlabel_font_family=family)
    if st.session_state.get(_PRINT, False):
        printed(drawing, theme=theme())
    if not st.session_state.get(_CAPTION, False):
        return drawing
    lines = figure.caption() if own_caption else caption(figure)
    return captioned(drawing, lines, theme=theme(), characters=62 if page_width() is None else 44)


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


#: The web font of the page. Saved pictures are drawn without it, as it exists nowhere else (`bar.draw_shortcuts`).
PAGE_FONT = '"Source Sans"'
_CAPTION, _FORMAT, _MARKS, _PRINT, _WHOLE = "caption", "picture", "marks", "print", "whole"


def draw_picture_choices() -> None:
    """Draw the choices; they are part of the link."""
    session.toggle(
        "Caption above every figure",
        key=_CAPTION,
        help="Data set, what the figure shows, digest and today's date.",
    )
    session.choose_one(
        "Reliability diagrams as",
        {"points": "points", "bars": "bars"},
        key=_MARKS,
        help="Points with their intervals on the range of a calibrated model; or bars, as Guo et al. 2017 draw them.",
    )
    session.toggle(
        "Reliability diagrams on linear axes from 0 to 1, also of rare events", key=_WHOLE
    )
    session.toggle(
        "As a paper prints them",
        key=_PRINT,
        help="Without grey areas and grid. Report, Figures for print, puts several beside each other, in the size of a column, "
        "as SVG, PNG and PDF. Pointing at a figure and pressing c copies it.",
    )
    session.choose_one(
        "Save figures as",
        {"png": "PNG", "svg": "SVG"},
        key=_FORMAT,
        help="With the camera that appears above a figure. PNG at three times the size on screen.",
    )


# ---- Pictures of metrics

#: The column, and its heading.
PICTURE_COLUMN, _PICTURED = "picture", "95 % CI"
#: Streamlit draws the image of a cell at this height in pixels, and cuts off what is then wider than the column.
_DRAWN = 29


def picture_width() -> int:
    """Return the pixels of a picture in a table: on a phone, as many as are left beside names and values."""
    return 66 if page_width() else 92


def picture_column(
    bullets: Sequence[Bullet | None], *, shared: bool = True, row: int = 35
) -> list[str | None]:
    """Return the cells of a column of `st.dataframe` in rows of a height, in the page's colours; on one scale, or each on its own."""
    wide, tall = (size * CELL[1] // _DRAWN for size in (picture_width(), row - 35 + _DRAWN))
    return hundred_squares.column(bullets, PALETTES[theme()], shared=shared, wide=wide, tall=tall)


def pictures_of(rows: Iterable[Sequence[float]]) -> list[str | None]:
    """Return such cells, all on one scale, of values, the ends of their intervals and those of their ranges; nan where there is none."""

    def pair(low: float, high: float) -> tuple[float, float] | None:
        return None if np.isnan(low) else (low, high)

    return picture_column(
        [None if np.isnan(v[0]) else Bullet(v[0], pair(*v[1:3]), pair(*v[3:])) for v in rows]
    )


def picture_column_config(help: str = MARKS_WORDS) -> Any:
    """Return the column's configuration; the numbers are in the other columns of the row."""
    return st.column_config.ImageColumn(_PICTURED, help=help)


# ---- Buttons of the browser

_LINK_KEY = "calviz.browser"
_LINK_HTML = """<div class="beside"><button type="button" class="link"><span></span></button>
<button type="button" class="save"><span></span></button></div>"""


@cache
def component(name: str, html: str) -> Any:
    """Return the component whose script lies beside this file; what is drawn with it must have a key."""
    script = Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")
    css = Path(__file__).with_name("buttons.css").read_text(encoding="utf-8")
    return st.components.v2.component(f"calviz.{name}", html=html, css=css, js=script)


def draw_browser(**buttons: Any) -> None:
    """Draw the script of the page, which runs again when its width class or its theme changes, or this browser has files of before a reload or in another tab.

    Parameters
    ----------
    **buttons
        What the buttons need; without it none is shown.
    """
    mine, link = open_files.files(), open_files.waiting_link()
    component("browser", _LINK_HTML)(
        key=_LINK_KEY,
        data={
            "wide": WIDE,
            "usual": USUAL,
            "narrow": NARROW,
            "size": width_class(),
            "secret": mine.secret,
            "files": list(mine),
            "waits": link and link.key,
            **buttons,
        },
        width="content",
        default={"size": width_class(), "theme": "", "secret": ""},
        # Streamlit reports only values that have a callback.
        on_size_change=lambda: None,
        on_theme_change=lambda: None,
        on_secret_change=lambda: open_files.find_again(st.session_state[_LINK_KEY]["secret"]),
    )


def draw_link_buttons() -> None:
    """Draw the buttons that copy the link and save a view."""
    entry = open_files.current()
    sample = entry.sample is not None
    contents = (
        "the name of the sample set" if sample else "the name and digest of the file, not the data"
    )
    rest = "" if sample else ": whoever opens it is asked for the file"
    draw_browser(
        address=open_files.data_parameters(),
        help=f"The link holds the settings and {contents}{rest}.",
        save="A small file with page, settings, selection and pinned state, never data; drop it where files are opened.",
        view=open_files.view_header(
            key=entry.key,
            title=entry.title,
            digest=entry.loaded.digest,
            rows=entry.loaded.recognition.rows,
        ),
        file=f"{session.current().file_stem}-view.json",
        go=_requested_step(),
    )


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
    html = '<button type="button" class="copy"><span></span></button>'
    component("clipboard", html)(key=key, data={"text": content, "label": label})


# ---- Style


def draw_page_style() -> None:
    """Add the styles to the page; they take no room."""
    st.html(Path(__file__).with_name("page.css"))
    if st.context.theme.type == "dark":
        st.html(Path(__file__).with_name("page_dark.css"))

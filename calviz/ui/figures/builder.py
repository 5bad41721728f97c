"""The page Figures: the choice of panels and widths, one caption for all, and downloads as SVG, PNG and PDF."""

from __future__ import annotations

import streamlit as st

from calviz.core.errors import CalvizError
from calviz.figures.drawing.print_style import COLUMNS
from calviz.report.figure_sheet import LETTERS, Panel, caption_of, to_sheet
from calviz.specs.figure import FIGURES
from calviz.text.words import keep_units_together
from calviz.ui.session import results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import clipboard, diagram, link_choice, pdf_download
from calviz.ui.widgets.escape import md

#: The panels that are chosen at first.
_FIRST = ("reliability", "risk-coverage")
#: Height of the preview in pixels until it is drawn.
_HEIGHT = 620


def explore(settings: Settings) -> None:
    """Draw the choices, the preview and the downloads."""
    keys, wide, columns, with_caption = _choices()
    panels: list[Panel] = []
    for key in keys:
        spec = FIGURES[key]
        try:
            with results.sample_with_spinner(settings, f"Computing: {spec.label} …") as sample:
                figure = sample.once(spec.compute)
            panels.append(Panel(figure, wide=key in wide))
        except CalvizError as reason:
            st.caption(f"{md(spec.label)}: {md(str(reason), 300)}")
    if not panels:
        st.info("Choose at least one panel.", icon=":material/info:")
        return
    stem = f"{settings.file_stem}-figure"
    with st.spinner("Drawing …"):
        html = to_sheet(
            panels, columns=columns, name=stem, caption=with_caption, theme=diagram.theme()
        )
    # The content security policy of the page lets only its own two scripts run, not the one with which streamlit measures
    # contents; every text in it is escaped. Once drawn, the page sets the height of its frame.
    st.iframe(html, height=_HEIGHT, alt="Preview of the figure, with buttons that save and copy it")
    st.caption(f"As it is saved: on white paper, {COLUMNS[columns]:g} inches wide.")
    pdf_download.draw(html, f"{stem}.pdf", key="calviz.figures")
    caption = caption_of(panels)
    st.subheader("Caption", anchor=False)
    st.markdown(md(keep_units_together(caption), 5_000))
    clipboard.text(caption, "Copy the caption", key="calviz.figures.caption")


def _choices() -> tuple[list[str], list[str], int, bool]:
    """Draw the choices; return the panels in order, those as wide as the sheet, the number of columns, and whether to add a caption."""
    labels = {spec.key: spec.label for spec in FIGURES}

    def label(key: str) -> str:
        return labels.get(key, str(key))

    first, second = st.columns([2, 1], gap="medium")
    below = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    keys = first.multiselect(
        "Panels, in their order",
        list(labels),
        default=[key for key in _FIRST if key in labels],
        format_func=label,
        max_selections=len(LETTERS),
        key="panels",
        bind="query-params",
    )
    with below:
        columns = link_choice.one_of(
            "Width",
            {n: f"{n} column{'s' if n == 2 else ''}, {width:g} in" for n, width in COLUMNS.items()},
            default=2,
            key="sheet",
            help="Text is 7 to 8 points high.",
        )
        with_caption = st.toggle("Caption in the picture", key="sheet-caption", bind="query-params")
    wide = second.multiselect(
        "As wide as both columns",
        keys,
        format_func=label,
        placeholder="none",
        key="wide",
        bind="query-params",
        disabled=columns == 1,
    )
    return keys, wide, 1 if columns == 1 else 2, with_caption

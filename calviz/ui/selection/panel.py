"""What a page says about the selected rows: their numbers beside those of all rows, the rows, their classes and slices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from weakref import ref

import pandas as pd
import streamlit as st

from calviz.core.errors import CalvizError
from calviz.sample.subset_summary import PartNumbers, part_numbers
from calviz.text.export import csv_bytes
from calviz.text.gaps import share_cell
from calviz.text.words import capitalised, counted, percent, points, score_and_hit
from calviz.ui.selection import selected_rows, state
from calviz.ui.selection.rules import SelectionRule
from calviz.ui.selection.state import Selected
from calviz.ui.session.result_cache import cached_results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, tables
from calviz.ui.widgets.escape import md

#: Name of the table's line for all rows.
ALL = "all rows"
NO_TEST_NOTE = (
    "The rest of the page is about all rows. These were chosen by looking at them, so no test is run on them; the interval "
    "is that of these rows alone."
)

NO_INTERVAL_NOTE = (
    "The rest of the page is about all rows. These were chosen by their true class: even for a calibrated model their gap is not 0, "
    "so it is no sign of miscalibration and has no interval."
)


def draw(settings: Settings, *, hint: str = "", rows: bool = True) -> None:
    """Draw the selection on a page; without one, say `hint` to select on this page.

    Parameters
    ----------
    settings : Settings
    hint : str
        One sentence, shown as long as nothing is selected.
    rows : bool
        Whether the rows are listed, with their classes and slices.
    """
    chosen = state.current(settings)
    if chosen is None:
        if hint:
            st.caption(hint)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        name = capitalised(chosen.name)
        st.subheader(
            f"{md(name, 200)}, {counted(chosen.rows.size, 'row')}", anchor=False, width="content"
        )
        if diagram.page_width() is not None:
            # On a phone the sidebar, which holds the button that clears it, is collapsed.
            st.button("Clear it", key="calviz.selected.clear.phone", on_click=state.clear)
    if not chosen.rows.size:
        st.caption("None of the rows shown is among them.")
        return
    numbers(settings, chosen)
    if rows:
        selected_rows.draw(settings, chosen.rows)
        _download(settings, chosen)


def not_followed(settings: Settings, subject: str) -> None:
    """Say that this page does not follow the selection, in a sentence that begins with `subject`; nothing without a selection."""
    chosen = state.current(settings)
    if chosen is not None:
        st.caption(f"{subject}, not only the selected ones ({md(chosen.name, 200)}).")


def numbers(settings: Settings, chosen: Selected) -> None:
    """Draw their numbers beside those of all rows, and their share of the mistakes and of the loss."""
    some, every = measured(settings, chosen)
    st.markdown(f"They are {_shares(some, settings)}.")
    show(settings, {"selected": some, ALL: every}, chosen.rule)


def show(settings: Settings, parts: dict[str, PartNumbers], rule: SelectionRule) -> None:
    """Draw parts of the rows, one line each, and what may be concluded; no interval if the rows were chosen by outcome."""
    # The interval of all rows is given by the verdict, which computes it in another way.
    bare = {name for name in parts if rule.by_outcome or name == ALL}
    st.dataframe(
        table(settings, parts, bare),
        hide_index=True,
        height="content",
        alt="The selected rows beside others",
    )
    st.caption(NO_INTERVAL_NOTE if rule.by_outcome else NO_TEST_NOTE)


def of_models(settings: Settings) -> None:
    """Draw the selected rows for every model of the file that has the same rows."""
    chosen = state.current(settings)
    if chosen is None or not chosen.rows.size:
        return
    parts = {}
    for name, model in settings.entry.loaded.models.items():
        if model.n != settings.whole.n:
            continue
        try:
            parts[name] = part_numbers(replace(settings, model=name).sample, chosen.rows)
        except CalvizError:
            continue
    by = f", as {md(settings.model, 40)} has them" if len(parts) > 1 else ""
    st.subheader(f"Selected: {md(chosen.name, 200)}{by}", anchor=False)
    show(settings, parts, chosen.rule)


def measured(settings: Settings, chosen: Selected) -> tuple[PartNumbers, PartNumbers]:
    """Return the numbers of the selected rows, and of all rows."""
    key = (*settings.rows_key, *settings.reduction_and_bins_key, chosen.rule.link())
    return _measured(key, chosen, settings)


@cached_results(6)
def _measured(
    key: tuple[str, ...], _chosen: Selected, _settings: Settings
) -> tuple[PartNumbers, PartNumbers]:
    sample = _settings.sample
    return part_numbers(sample, _chosen.rows), part_numbers(sample)


def _shares(some: PartNumbers, settings: Settings) -> str:
    shares = [f"{percent(some.share)} of the rows"]
    if settings.reduction.kind == "top-label" and some.misses == some.misses:
        shares.append(f"{percent(some.misses)} of the mistakes")
    if some.loss_share is not None:
        shares.append(f"{percent(some.loss_share)} of the log loss")
    return ", ".join(shares[:-1]) + (" and " if len(shares) > 1 else "") + shares[-1]


def table(
    settings: Settings, parts: dict[str, PartNumbers], bare: Collection[str] = ()
) -> pd.DataFrame:
    """Return rows, mean score, hits, gap with its interval, and loss, one line per part; `bare` parts have no interval."""
    score, hit = score_and_hit(settings.reduction)
    # Weighted or clustered rows count as their effective number.
    heading = "exact 95 % interval" if settings.whole.alike else "95 % interval"
    lines = []
    for name, part in parts.items():
        interval = part.interval
        line = {
            "": name,
            "rows": f"{part.rows:,}",
            score: share_cell(part.score),
            hit: share_cell(part.observed),
            "gap, points": points(part.gap, plus=True),
            heading: ""
            if interval is None or name in bare
            else f"{points(interval.low)} to {points(interval.high)}",
        }
        if part.log_loss is not None:
            line["mean log loss"] = f"{part.log_loss:.3f}"
        lines.append(line)
    return pd.DataFrame(lines)


def _download(settings: Settings, chosen: Selected) -> None:
    # The button's callback outlives a visitor who leaves; the data must not, hence the weak reference.
    weak_data, numbers, reduction = ref(settings.whole), settings.row_numbers, settings.reduction
    rows = chosen.rows if numbers is None else numbers[chosen.rows]

    def content() -> bytes:
        data = weak_data()
        return b"" if data is None else csv_bytes(tables.rows_table(data, rows, reduction, None))

    # Written on the click: a selection is viewed more often than it is downloaded.
    st.download_button(
        f"Download {counted(chosen.rows.size, 'row')} as CSV",
        content,
        file_name=f"{settings.file_stem}-selected.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        key="calviz.selected.download",
    )

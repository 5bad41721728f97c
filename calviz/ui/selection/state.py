"""The one selection of a session: kept from page to page, written into the address, ended when it no longer applies."""

from __future__ import annotations

import re
from typing import NamedTuple

import streamlit as st

from calviz.core.arrays import IntArray
from calviz.core.errors import CalvizError
from calviz.sample.sample import Sample
from calviz.text.words import full_sentence
from calviz.ui.selection.rules import Bins, SelectionRule, decode_rule, rows_of
from calviz.ui.session import browser_history
from calviz.ui.session.link_encoding import join_parts
from calviz.ui.session.result_cache import cached_results
from calviz.ui.session.settings import Settings

#: Names in the address; the second one is used by older links, which held only bins.
SELECTED, BIN = "selected", "bin"

_RULE, _NAME, _MEANT_FOR = "calviz.selected", "calviz.selected.name", "calviz.selected.of"
_PAGE, _WIDGET_VERSIONS = "calviz.selected.page", "calviz.selected.turns"
_END_REASON, _PAGE_IS_BEHIND = "calviz.selected.ended", "calviz.selected.behind"


class Selected(NamedTuple):
    """A selection among the current rows.

    Attributes
    ----------
    rule : SelectionRule
    name : str
        In plain text.
    rows : ndarray of int
        Positions in the sample, ascending.
    """

    rule: SelectionRule
    name: str
    rows: IntArray


def rule() -> SelectionRule | None:
    """Return the rule of the selection; None if nothing is selected."""
    selected_rule: SelectionRule | None = st.session_state.get(_RULE)
    return selected_rule


def current(settings: Settings) -> Selected | None:
    """Return the selection among the rows of some settings; None if there is none, or if it does not apply to them."""
    chosen = rule()
    if chosen is None:
        return None
    try:
        return _selected(
            (*settings.rows_key, *settings.reduction_and_bins_key, chosen.link()), chosen, settings
        )
    except CalvizError:
        return None


@cached_results(6)
def _selected(key: tuple[str, ...], _chosen: SelectionRule, _settings: Settings) -> Selected:
    sample = _settings.sample
    return Selected(_chosen, _chosen.words(sample), rows_of(_chosen, sample))


def sample_of(settings: Settings, chosen: Selected) -> Sample:
    """Return the selected rows as a sample of their own, with the reduction and bins of all rows."""
    key = (*settings.rows_key, *settings.reduction_and_bins_key, chosen.rule.link())
    return _sample_of(key, chosen, settings)


@cached_results(3)
def _sample_of(key: tuple[str, ...], _chosen: Selected, _settings: Settings) -> Sample:
    sample = _settings.sample
    return sample.with_data(sample.data.take(_chosen.rows))


def choose(chosen: SelectionRule | None, *, by: str = "", answers_first: bool = False) -> None:
    """Select rows, or none; for callbacks.

    Parameters
    ----------
    chosen : SelectionRule or None
    by : str
        Name of the widget that selects; all other widgets forget what was chosen in them.
    answers_first : bool
        Whether the fragment of that widget is drawn before the whole page; it must end with `page_follows`.
    """
    st.session_state[_RULE] = chosen
    st.session_state.pop(_MEANT_FOR, None)
    st.session_state.pop(_END_REASON, None)
    versions = _widget_versions()
    for name in versions:
        versions[name] += name != by
    # A widget in a fragment would rerun only that fragment, but the whole page shows the selection.
    if answers_first:
        st.session_state[_PAGE_IS_BEHIND] = True
    else:
        st.rerun()


def page_follows() -> None:
    """Run the whole page if only a fragment has shown a new selection so far; the last statement of that fragment."""
    if st.session_state.pop(_PAGE_IS_BEHIND, False):
        st.rerun(scope="app")


def clear() -> None:
    """Select nothing; for callbacks."""
    choose(None)


def key(name: str) -> str:
    """Return the key of a widget that selects; it changes whenever something is selected elsewhere."""
    return f"{name}.{_widget_versions().setdefault(name, 0)}"


def _widget_versions() -> dict[str, int]:
    versions: dict[str, int] = st.session_state.setdefault(_WIDGET_VERSIONS, {})
    return versions


def sync_with_address(settings: Settings, page: str) -> None:
    """Follow the address, end a selection that does not apply to the current settings, and write the address."""
    st.session_state.pop(_PAGE_IS_BEHIND, None)
    if _PAGE not in st.session_state or browser_history.is_step():
        st.session_state[_RULE] = _in_address()
        st.session_state.pop(_MEANT_FOR, None)
    if page != st.session_state.get(_PAGE):
        st.session_state.pop(_END_REASON, None)
    st.session_state[_PAGE] = page
    chosen = rule()
    if chosen is not None:
        reason = _why_ended(chosen, settings)
        if reason is None:
            st.session_state[_MEANT_FOR] = _identity(chosen, settings)
        else:
            _end(reason)
    _write_address()


def _in_address() -> SelectionRule | None:
    if SELECTED in st.query_params:
        return decode_rule(st.query_params[SELECTED])
    bins = re.fullmatch(r"[0-9]{1,4}(-[0-9]{1,4})?", st.query_params.get(BIN, ""))
    return decode_rule(join_parts([Bins.code, bins[0]])) if bins else None


def _identity(chosen: SelectionRule, settings: Settings) -> tuple[str, ...]:
    """Return what must not change for the selection to mean the same: the data, and for bins also their edges."""
    if not chosen.of_bins:
        return (settings.entry.key,)
    edges = settings.rows_key if settings.scheme != "equal-width" else ()
    return (settings.entry.key, *settings.reduction_and_bins_key, *edges)


def _why_ended(chosen: SelectionRule, settings: Settings) -> str | None:
    before = st.session_state.get(_MEANT_FOR)
    if before is not None and before[0] != settings.entry.key:
        return "another data set is shown"
    if before is not None and before != _identity(chosen, settings):
        return "the scores or the bins have changed"
    try:
        selected = _selected(
            (*settings.rows_key, *settings.reduction_and_bins_key, chosen.link()), chosen, settings
        )
    except CalvizError as reason:
        return str(reason).rstrip(".")
    st.session_state[_NAME] = selected.name
    return None


def _end(reason: str) -> None:
    name = st.session_state.pop(_NAME, None)
    subject = (
        f"The selection, {name}, ended" if name else "The selection in the link cannot be shown"
    )
    st.session_state[_END_REASON] = full_sentence(f"{subject}: {reason}")
    st.session_state[_RULE] = None
    versions = _widget_versions()
    for widget in versions:
        versions[widget] += 1


def end_reason() -> str | None:
    """Return a sentence that says why the last selection ended, until the page changes or rows are selected."""
    reason: str | None = st.session_state.get(_END_REASON)
    return reason


def _write_address() -> None:
    chosen = rule()
    link = None if chosen is None else chosen.link()
    if BIN in st.query_params:
        del st.query_params[BIN]
    if link is None and SELECTED in st.query_params:
        del st.query_params[SELECTED]
    elif link is not None and st.query_params.get(SELECTED) != link:
        st.query_params[SELECTED] = link

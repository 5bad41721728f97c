"""The choice of fitting rows, for every page that fits a recalibrator; the sidebar's split gives the evaluation rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.comparison.rows import Division, fit_split_for
from calviz.core.predictions import Dataset
from calviz.text.words import distinct
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import link_choice

#: Sources of the rows to fit on.
WAYS = {"split": "another split", "share": "a random share", "folds": "cross-fitting"}


@dataclass(frozen=True, eq=False)
class FitRows:
    """The fitting rows and the evaluation rows, and how they are divided.

    Attributes
    ----------
    settings : Settings
        The settings whose rows are divided.
    data : Predictions or ConfidencePredictions
        All these rows.
    division : Division
    """

    settings: Settings
    data: Dataset
    division: Division

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the rows and their division, for jobs and caches."""
        return (*self.settings.rows_key, repr(self.division))


def choose(settings: Settings, *, folds: bool = False) -> FitRows:
    """Draw the widgets that choose the rows to fit on; the choice is kept from page to page.

    Parameters
    ----------
    settings : Settings
    folds : bool
        Whether cross-fitting is among the choices.
    """
    others = tuple(name for name in settings.whole.split_names if name != settings.split)
    several = len(settings.whole.split_names) > 1
    ways = tuple(
        way
        for way, is_possible in (("split", several), ("share", True), ("folds", folds))
        if is_possible
    )
    way = ways[0]
    if len(ways) > 1:
        if st.session_state.get("division") not in (None, *ways):
            _forget("division")
        way = link_choice.one_of(
            "Fit on",
            {way: WAYS[way] for way in ways},
            default=ways[0],
            key="division",
            help=_HELP.format(_judging_words(settings)) + (_FOLDS if folds else ""),
        )
    return _rows(settings, str(way), others)


_HELP = "A map is fitted on some rows and judged on others, never on the same. {}."
_FOLDS = (
    " Cross-fitting: the rows are dealt into folds, and each fold is calibrated by a map that was "
    "fitted on the others."
)


def _judging_words(settings: Settings) -> str:
    if settings.whole.splits is None:
        return "All other rows are evaluation rows"
    if settings.split is None:
        return (
            "All other rows are evaluation rows: the sidebar's evaluation split is set to all rows"
        )
    return "The rows of the sidebar's evaluation split judge"


def _rows(settings: Settings, way: str, others: tuple[str, ...]) -> FitRows:
    if way == "split":
        usual = fit_split_for(settings.whole, settings.split)
        division = Division(fit_split=_split(others, usual or others[0]), eval_split=settings.split)
        return _fit_rows(replace(settings, split=None), division)
    if way == "folds":
        folds = st.number_input("Folds", 2, 20, 5, key="folds", bind="query-params", width=120)
        return _fit_rows(settings, Division(cross_fit=int(folds)))
    share = st.slider(
        "Rows to fit on, %",
        10,
        90,
        50,
        5,
        key="share",
        bind="query-params",
        width=220,
        help="Drawn at random, with every class in proportion; the other rows are the evaluation rows.",
    )
    return _fit_rows(settings, Division(fit_fraction=share / 100))


def _fit_rows(settings: Settings, division: Division) -> FitRows:
    # The rows are fetched here because a job cannot do it: caches belong to the run of a page.
    return FitRows(settings, settings.sample.data, division)


def _split(names: tuple[str, ...], default: str) -> str:
    shown = distinct(names)
    if st.session_state.get("fit") not in (None, *names):
        _forget("fit")
    chosen = st.selectbox(
        "Split to fit on",
        names,
        index=names.index(default),
        key="fit",
        bind="query-params",
        format_func=lambda name: shown.get(name, str(name)),
        filter_mode="contains",
        width=200,
    )
    return str(chosen)


def _forget(key: str) -> None:
    del st.session_state[key]
    with suppress(StreamlitAPIException):
        st.query_params.pop(key, None)

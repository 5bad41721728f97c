"""Prediction sets: all plausible classes, instead of one class or an expert."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from calviz.comparison.prediction_sets import prediction_sets
from calviz.comparison.rows import Division
from calviz.core.errors import CalvizError
from calviz.results.prediction_sets import PredictionSets, SetMethod, SetsOf
from calviz.results.slices import rows_where
from calviz.text.words import (
    decimal,
    keep_units_together,
    percent_numbers,
    percent_range,
    shorten,
)
from calviz.ui.session import page_guard
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import link_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.recalibrated_rows import rows_words

_METHODS: dict[SetMethod, str] = {"lac": "LAC (smallest)", "aps": "APS (adaptive)"}


@st.fragment
def explore(settings: Settings) -> None:
    """Draw the choice of method and coverage, and what the sets hold; a fragment."""
    with page_guard.boundary():
        with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
            method: SetMethod = link_choice.one_of(
                "Sets by",
                _METHODS,
                default="lac",
                key="sets",
                help="LAC: all classes whose probability reaches a threshold. APS: the most probable ones until their sum does.",
            )
            with st.container(width=420):
                coverage = st.slider(
                    "The true class is to be among them, % of the rows",
                    50.0,
                    99.5,
                    90.0,
                    0.5,
                    key="covered",
                    bind="query-params",
                )
        try:
            sets = _sets(settings.rows_key, method, coverage / 100, settings)
        except CalvizError as error:  # too few rows to choose a threshold on
            st.caption(md(f"No sets: {error}", 1_000))
            return
        st.markdown(md(keep_units_together(sets.reading()), 1_000))
        fit = rows_words(sets.fit)
        st.caption(
            md(
                f"Split-conformal: the threshold is chosen on {fit}, and judged on {sets.evaluation.how}. The coverage is guaranteed for "
                "exchangeable new rows, however good the probabilities are; better probabilities make the sets smaller.",
                1_000,
            )
        )
        _table((sets.overall, *sets.classes))


def _table(summaries: Sequence[SetsOf]) -> None:
    st.dataframe(
        pd.DataFrame(
            {
                "true class": [shorten(s.name, 60) for s in summaries],
                "rows": [s.rows for s in summaries],
                "coverage": percent_numbers(s.coverage for s in summaries),
                "95 % interval": [
                    percent_range(s.coverage_interval.low, s.coverage_interval.high)
                    for s in summaries
                ],
                "mean size": [s.size for s in summaries],
                "interval of the size": [
                    f"{decimal(s.size_interval.low, 2)} to {decimal(s.size_interval.high, 2)}"
                    for s in summaries
                ],
            }
        ),
        hide_index=True,
        height="content" if len(summaries) <= 12 else "auto",
        alt="Coverage and mean size of the prediction sets, by true class",
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "coverage": st.column_config.NumberColumn(format="%.1f %%"),
            "mean size": st.column_config.NumberColumn(format="%.2f"),
        },
    )


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _sets(
    key: tuple[str, ...], method: SetMethod, coverage: float, _settings: Settings
) -> PredictionSets:
    whole = _settings.whole
    division = Division.with_other_split(whole, _settings.split)
    within = rows_where(whole, _settings.where)
    return prediction_sets(
        whole, method=method, coverage=coverage, division=division, within=within
    )

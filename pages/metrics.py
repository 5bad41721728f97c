"""Every metric with its interval, its noise floor and its meaning."""

from __future__ import annotations

import streamlit as st

from calviz.app import diagnose_metrics, navigation, rows_shown, session
from calviz.app.session import md
from calviz.verdicts.evaluation import alone

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["metrics"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")

with navigation.boundary():
    rows_shown.draw_selection(chosen, rows=False)

with navigation.boundary():
    small = diagnose_metrics.is_small(chosen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        family = st.selectbox(
            "Family",
            (diagnose_metrics.ALL_FAMILIES, *diagnose_metrics.families()),
            key="family",
            bind="query-params",
            filter_mode="contains",
            width=280,
        )
        error_bars = st.toggle(
            "Intervals and noise floors",
            value=small,
            # Two keys, as the two have different defaults.
            key="error-bars" if small else "error-bars-large",
            bind="query-params",
            help="From 1,000 resamples each; on large data they take a while, family by family.",
        )
        export = st.container(width="content")
    if chosen.sample.data.rows == 1:
        st.caption("n = 1: the values are not meaningful, and there are no intervals.")
    results = diagnose_metrics.explore_table(
        chosen, family or diagnose_metrics.ALL_FAMILIES, error_bars=error_bars
    )
    noise, p_values = "", ""
    if error_bars and chosen.sample.data.rows > 1:
        noise = "Noise: what the metric would be if the model were perfectly calibrated, with the same number of rows. "
        p_values = f" {alone(session.evaluation(chosen).verdict)}"
    st.caption(
        f"{noise}Points are percentage points. Proper scores, class-wise and selective metrics look at the "
        f"whole prediction, the others at the {chosen.reduction_words}; ECE², debiased, has bins of equal mass.{p_values}"
    )
    with export.popover("Export", icon=":material/download:"):
        diagnose_metrics.draw_export(results, chosen, chosen.file_stem)

diagnose_metrics.explore_conventions(chosen, chosen.file_stem, at_once=small)

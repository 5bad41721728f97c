"""Every metric with its interval, its noise floor and its meaning."""

import streamlit as st

from calviz.core.written import alone
from calviz.ui import bins, cached, guard, metric_export, metric_table, pages, settings, switchboard
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["metrics"].question, anchor=False)
with guard.boundary():
    words = chosen.words(cached.data(chosen).n)
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")

with guard.boundary():
    small = metric_table.is_small(chosen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        family = st.selectbox(
            "Family",
            (metric_table.ALL, *metric_table.families()),
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
    if cached.data(chosen).n == 1:
        st.caption("n = 1: the values are not meaningful, and there are no intervals.")
    results = metric_table.explore(chosen, family or metric_table.ALL, error_bars=error_bars)
    st.caption(
        "Noise: what the metric would be if the model were perfectly calibrated, with as many rows. "
        "Points are percentage points. Proper scores, class-wise and selective metrics look at the "
        f"whole prediction, the others at the {chosen.reduction_words}; ECE², debiased, has bins of equal mass. "
        f"{alone(cached.evaluation(chosen).verdict if error_bars else None)}"
    )
    with export.popover("Export", icon=":material/download:"):
        metric_export.draw(results, chosen, bins.file_stem(chosen))

switchboard.explore(chosen, bins.file_stem(chosen), at_once=small)

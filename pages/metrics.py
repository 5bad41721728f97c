"""Every metric with its interval, its noise floor and its meaning."""

from __future__ import annotations

import streamlit as st

from calviz.app import diagnose_metrics as conventions
from calviz.app import diagnose_metrics as metric_export
from calviz.app import diagnose_metrics as table
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app import settings as cached
from calviz.app.settings import md
from calviz.verdicts.evaluation import alone

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["metrics"].question, anchor=False)
with page_guard.boundary():
    words = chosen.words
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")

with page_guard.boundary():
    panel.draw_panel(chosen, rows=False)

with page_guard.boundary():
    small = table.is_small(chosen)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        family = st.selectbox(
            "Family",
            (table.ALL, *table.families()),
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
    results = table.explore_table(chosen, family or table.ALL, error_bars=error_bars)
    noise, p_values = "", ""
    if error_bars and chosen.sample.data.rows > 1:
        noise = "Noise: what the metric would be if the model were perfectly calibrated, with the same number of rows. "
        p_values = f" {alone(cached.evaluation(chosen).verdict)}"
    st.caption(
        f"{noise}Points are percentage points. Proper scores, class-wise and selective metrics look at the "
        f"whole prediction, the others at the {chosen.reduction_words}; ECE², debiased, has bins of equal mass.{p_values}"
    )
    with export.popover("Export", icon=":material/download:"):
        metric_export.draw(results, chosen, chosen.file_stem)

conventions.explore_conventions(chosen, chosen.file_stem, at_once=small)

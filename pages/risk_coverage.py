"""What happens when doubtful predictions are left to an expert."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    decide_costs,
    decide_coverage,
    navigation,
    rows_shown,
    session,
    tables_and_cards,
)
from calviz.app.session import md

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["risk_coverage"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.rows_words}")
    st.caption(
        "The predictions are ranked by how sure the model is. The sure ones are kept, the others are "
        "referred to an expert: the fewer are kept, the larger the share of them that should be right."
    )

with navigation.boundary():
    method = session.choose_method(chosen)
    decide_coverage.explore_risk_coverage(chosen, method)
    rows_shown.draw_selection(
        chosen,
        hint="Click a point of the curve to select the rows that are kept there, on every page.",
    )

with navigation.boundary():
    with st.spinner("Resampling the summaries …", show_time=True):
        # Chosen for this page.
        keys = ("aurc", "e_aurc", "accuracy_at_90_coverage", "coverage_at_risk", "auroc_failure")
        evaluation = session.metrics(chosen, keys, error_bars=True)
    tables_and_cards.draw_metric_lines(evaluation, keys, notes={"coverage_at_risk": "5 % errors"})
    intervals = (
        ""
        if chosen.sample.data.rows == 1
        else " The interval of the accuracy at 90\u00a0% coverage resamples all rows; those of the table take the kept rows as given, and so differ a little."
    )
    st.caption(f"These summaries rank by confidence, before recalibration.{intervals}")

with navigation.boundary():
    if columns := decide_costs.trust_columns(chosen):
        st.subheader("Where can it be believed?", anchor=False)
        decide_costs.explore_trust_by_group(chosen, columns)

with navigation.boundary():
    st.subheader("What do decisions cost?", anchor=False)
    decide_costs.explore_decision_costs(chosen, method)

with navigation.boundary():
    st.subheader("Which classes are plausible?", anchor=False)
    decide_costs.explore_prediction_sets(chosen)

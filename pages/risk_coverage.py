"""What happens when doubtful predictions are left to an expert."""

from __future__ import annotations

import streamlit as st

from calviz.app import decide_costs as decision_costs
from calviz.app import decide_costs as prediction_sets
from calviz.app import decide_costs as trust_by_group
from calviz.app import decide_coverage as threshold
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app import settings as recalibration_choice
from calviz.app import settings as results
from calviz.app import tables_and_cards as cards
from calviz.app.settings import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["risk_coverage"].question, anchor=False)
with page_guard.boundary():
    facts = chosen.rows_words
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")
    st.caption(
        "The predictions are ranked by how sure the model is. The sure ones are kept, the others are "
        "referred to an expert: the fewer are kept, the larger the share of them that should be right."
    )

with page_guard.boundary():
    method = recalibration_choice.choose_method(chosen)
    threshold.explore(chosen, method)
    panel.draw_panel(
        chosen,
        hint="Click a point of the curve to select the rows that are kept there, on every page.",
    )

with page_guard.boundary():
    with st.spinner("Resampling the summaries …", show_time=True):
        # Chosen for this page.
        keys = ("aurc", "e_aurc", "accuracy_at_90_coverage", "coverage_at_risk", "auroc_failure")
        evaluation = results.metrics(chosen, keys, error_bars=True)
    cards.metric_line(evaluation, keys, notes={"coverage_at_risk": "5 % errors"})
    intervals = (
        ""
        if chosen.sample.data.rows == 1
        else " The interval of the accuracy at 90\u00a0% coverage resamples all rows; those of the table take the kept rows as given, and so differ a little."
    )
    st.caption(f"These summaries rank by confidence, before recalibration.{intervals}")

with page_guard.boundary():
    if columns := trust_by_group.offered(chosen):
        st.subheader("Where can it be believed?", anchor=False)
        trust_by_group.explore_trust_by_group(chosen, columns)

with page_guard.boundary():
    st.subheader("What do decisions cost?", anchor=False)
    decision_costs.explore_decision_costs(chosen, method)

with page_guard.boundary():
    st.subheader("Which classes are plausible?", anchor=False)
    prediction_sets.explore_prediction_sets(chosen)

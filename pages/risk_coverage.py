"""What happens when doubtful predictions are left to an expert."""

import streamlit as st

from calviz.ui import before_after, cached, cards, decision, guard, pages, referral, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["risk_coverage"].question, anchor=False)
with guard.boundary():
    facts = chosen.words(cached.data(chosen).n).removesuffix(f" · {chosen.reduction_words}")
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")
    st.caption(
        "The predictions are ranked by how sure the model is. The sure ones are kept, the others are "
        "referred to an expert: the fewer are kept, the larger the share of them that should be right."
    )

with guard.boundary():
    method = before_after.choose_method(chosen)
    referral.explore(chosen, method)

with guard.boundary():
    with st.spinner("Resampling the summaries …", show_time=True):
        keys = ("aurc", "e_aurc", "accuracy_at_90_coverage", "coverage_at_risk", "auroc_failure")
        evaluation = cached.metrics(chosen, keys, error_bars=True)
    cards.metric_line(evaluation, keys, notes={"coverage_at_risk": "5 % errors"})
    st.caption("These summaries rank by confidence, before recalibration.")

with guard.boundary():
    st.subheader("What do decisions cost?", anchor=False)
    decision.explore(chosen, method)

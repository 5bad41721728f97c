"""What happens when doubtful predictions are left to an expert."""

import streamlit as st

from calviz.ui import cached, cards, guard, pages, referral, settings
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

referral.explore(chosen)

with guard.boundary():
    with st.spinner("Resampling the summaries …", show_time=True):
        keys = ("aurc", "e_aurc", "accuracy_at_90_coverage", "auroc_failure")
        evaluation = cached.metrics(chosen, keys, error_bars=True)
    cards.metric_line(evaluation, keys)
    st.caption("These summaries rank by confidence.")

"""Where the probabilities are off, bin by bin."""

import streamlit as st

from calviz.ui import bins, cached, cards, guard, pages, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["reliability"].question, anchor=False)
with guard.boundary():
    words = chosen.words(cached.data(chosen).n)
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")
    settings.other_view_of_two_classes(chosen)

with guard.boundary():
    evaluation = cached.evaluation(chosen)
    cards.metric_line(evaluation, (cached.ece_key(chosen), "mce", "rmsce"))
    if chosen.scheme == "equal-mass":
        st.caption(f"MCE and RMSCE are of {chosen.bins:,} bins of equal width.")

bins.explore(chosen)

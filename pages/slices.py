"""For which groups of rows the probabilities are wrong."""

from dataclasses import replace

import streamlit as st

from calviz.ui import cached, guard, pages, settings, slicing
from calviz.ui.text import md

guard.enter()
elsewhere = settings.current()
# All slices, whichever one the other pages look at.
chosen = replace(elsewhere, where=())

st.title(pages.BY_KEY["slices"].question, anchor=False)
with guard.boundary():
    words = chosen.words(cached.data(chosen).n)
    st.markdown(f"{md(chosen.entry.title, 80)} · {words}")
    slicing.shown_elsewhere(elsewhere)

with guard.boundary():
    if not chosen.whole.groups:
        st.info(
            "This file has no group column. Any column that is not a score, the label, a split or an "
            "identifier is one, such as region, device or month."
        )
    else:
        question = slicing.ask(chosen)
        if not question.columns:
            st.info("Choose a column.")
        else:
            st.markdown("**Rows per value**")
            slicing.sizes(chosen, question)
            found = slicing.look(chosen, question)
            slicing.answer(found)
            slicing.table(found, chosen)

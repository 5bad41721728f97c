"""For which groups of rows the probabilities are wrong."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calviz.app import diagnose_groups, navigation, rows_shown, session
from calviz.app.session import md

navigation.enter()
of_other_pages = session.current()
# All slices, whichever one the other pages show.
chosen = replace(of_other_pages, where=())

st.title(navigation.PAGES_BY_KEY["slices"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    diagnose_groups.draw_slice_of_other_pages(of_other_pages)

with navigation.boundary():
    if not chosen.whole.groups:
        st.info(
            "This file has no group column. Any column that is not a score, the label, a split or an "
            "identifier is one, such as region, device or month.",
            icon=":material/info:",
        )
    else:
        question = diagnose_groups.ask_for_slices(chosen)
        if not question.columns:
            st.info("Choose a column.")
        else:
            st.markdown("**Rows per value**")
            diagnose_groups.draw_sizes(chosen, question)
            tested = diagnose_groups.measure_slices(chosen, question)
            pinned = diagnose_groups.pinned_gaps(chosen, question, tested)
            diagnose_groups.draw_answer(tested, pinned)
            diagnose_groups.draw_slices_table(tested, chosen, pinned)
            rows_shown.draw_selection(chosen)

"""For which groups of rows the probabilities are wrong."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from calviz.app import diagnose_groups as tested_slices
from calviz.app import navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import rows_shown as panel
from calviz.app.settings import md

page_guard.enter()
of_other_pages = settings.current()
# All slices, whichever one the other pages show.
chosen = replace(of_other_pages, where=())

st.title(navigation.BY_KEY["slices"].question, anchor=False)
with page_guard.boundary():
    words = chosen.words
    st.markdown(f"{md(chosen.entry.title, 80)} · {words}")
    tested_slices.slice_of_other_pages(of_other_pages)

with page_guard.boundary():
    if not chosen.whole.groups:
        st.info(
            "This file has no group column. Any column that is not a score, the label, a split or an "
            "identifier is one, such as region, device or month.",
            icon=":material/info:",
        )
    else:
        question = tested_slices.ask(chosen)
        if not question.columns:
            st.info("Choose a column.")
        else:
            st.markdown("**Rows per value**")
            tested_slices.sizes(chosen, question)
            tested = tested_slices.measure(chosen, question)
            pinned = tested_slices.pinned(chosen, question, tested)
            tested_slices.answer(tested, pinned)
            tested_slices.table(tested, chosen, pinned)
            panel.draw_panel(chosen)

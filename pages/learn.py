"""What the numbers mean: entries, which metric to use when, glossary, limits, references."""

from __future__ import annotations

import streamlit as st

from calviz.app import learn, navigation

navigation.enter()

st.title(navigation.PAGES_BY_KEY["learn"].question, anchor=False)
with navigation.boundary():
    learn.draw_three_models()
    learn.draw_entries()
    when, words, limits, references = st.tabs(
        ["Which number when", "Glossary", "Limits", "References"]
    )
    with when:
        learn.draw_questions()
    with words:
        learn.draw_glossary()
    with limits:
        learn.draw_limits()
    with references:
        learn.draw_references()

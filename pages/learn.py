"""What the numbers mean: entries, which metric to use when, glossary, limits, references."""

from __future__ import annotations

import streamlit as st

from calviz.app import learn, navigation

navigation.enter()

st.title(navigation.BY_KEY["learn"].question, anchor=False)
with navigation.boundary():
    learn.draw()
    learn.look_up()
    when, words, limits, references = st.tabs(
        ["Which number when", "Glossary", "Limits", "References"]
    )
    with when:
        learn.questions()
    with words:
        learn.glossary()
    with limits:
        learn.limits()
    with references:
        learn.references()

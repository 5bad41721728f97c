"""What the numbers mean: entries, which number when, words, limits, references."""

import streamlit as st

from calviz.ui import guard, learn, pages

guard.enter()

st.title(pages.BY_KEY["learn"].question, anchor=False)
with guard.boundary():
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

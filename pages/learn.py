"""What the numbers mean: entries, which metric to use when, glossary, limits, references."""

from __future__ import annotations

import streamlit as st

from calviz.app import learn as learn_page
from calviz.app import learn as learn_picture
from calviz.app import navigation
from calviz.app import navigation as page_guard

page_guard.enter()

st.title(navigation.BY_KEY["learn"].question, anchor=False)
with page_guard.boundary():
    learn_picture.draw()
    learn_page.look_up()
    when, words, limits, references = st.tabs(
        ["Which number when", "Glossary", "Limits", "References"]
    )
    with when:
        learn_page.questions()
    with words:
        learn_page.glossary()
    with limits:
        learn_page.limits()
    with references:
        learn_page.references()

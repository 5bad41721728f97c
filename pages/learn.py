"""What the numbers mean: entries, which metric to use when, glossary, limits, references."""

import streamlit as st

from calviz.ui.session import navigation, page_guard
from calviz.ui.widgets import learn_links, learn_picture

page_guard.enter()

st.title(navigation.BY_KEY["learn"].question, anchor=False)
with page_guard.boundary():
    learn_picture.draw()
    learn_links.look_up()
    when, words, limits, references = st.tabs(
        ["Which number when", "Glossary", "Limits", "References"]
    )
    with when:
        learn_links.questions()
    with words:
        learn_links.glossary()
    with limits:
        learn_links.limits()
    with references:
        learn_links.references()

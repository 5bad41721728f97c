"""The verdict for readers who do not know the terms: five sentences and a picture."""

import streamlit as st

from calviz import analysis
from calviz.figures.hundred_squares import HundredSquares
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, results, settings
from calviz.ui.widgets import clipboard, diagram
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["explain"].question, anchor=False)
with page_guard.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    panel.not_followed(chosen, "These sentences are about all rows")

with page_guard.boundary():
    verdict = results.evaluation(chosen).verdict
    assert verdict is not None  # findings come with it
    sentences = analysis.explain(chosen.sample)
    words, picture = st.columns([10, 11], gap="large")
    with words:
        st.markdown(
            "\n".join(
                f"{n}. {md(sentence, 1_000)}" for n, sentence in enumerate(sentences, start=1)
            )
        )
        clipboard.text(" ".join(sentences), "Copy the five sentences", key="calviz.explain.copy")
    with picture:
        if verdict.rows > 1:
            figure = HundredSquares.compute(verdict)
            diagram.chart(
                figure,
                key="explain",
                filename="of-a-hundred",
            )
            st.caption("Every square stands for one of a hundred rows.")

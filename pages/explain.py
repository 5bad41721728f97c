"""The verdict for readers who do not know the terms: five sentences and a picture."""

from __future__ import annotations

import streamlit as st

from calviz.app import navigation, rows_shown, screen, session
from calviz.app.session import md
from calviz.figures.hundred_squares import HundredSquares
from calviz.verdicts import analysis

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["explain"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    rows_shown.say_not_followed(chosen, "These sentences are about all rows")

with navigation.boundary():
    verdict = session.evaluation(chosen).verdict
    assert verdict is not None  # findings come with it
    sentences = analysis.explain(chosen.sample)
    words, picture = st.columns([10, 11], gap="large")
    with words:
        st.markdown(
            "\n".join(
                f"{n}. {md(sentence, 1_000)}" for n, sentence in enumerate(sentences, start=1)
            )
        )
        screen.copy_button(
            " ".join(sentences), "Copy the five sentences", key="calviz.explain.copy"
        )
    with picture:
        if verdict.rows > 1:
            figure = HundredSquares.compute(verdict)
            screen.chart(
                figure,
                key="explain",
                filename="of-a-hundred",
            )
            st.caption("Every square stands for one of a hundred rows.")

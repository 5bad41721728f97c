"""The panel Learn: three models to start with, entries to look up, questions, glossary, limits and references.

Alone, so that no other page loads the texts.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from calviz.app import navigation, screen
from calviz.app.open_files import write_parameter
from calviz.app.session import md
from calviz.app.tables_and_cards import ENTRY_PARAMETER, entry_address
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import Predictions
from calviz.core.words import capitalised, shorten
from calviz.figures.reliability import Reliability
from calviz.report import reference
from calviz.report.reference import GLOSSARY, LIMITS, QUESTIONS, SOURCES, LearnEntry, entries

#: Rows of each model, the seed, and height and width of a panel in pixels, of which three fit on a tablet.
_ROWS, _SEED, _HEIGHT, _WIDTH = 4_000, 0, 260, 230
#: Name, factor by which the true log-odds are multiplied, and what the diagram shows.
_MODELS = (
    ("Calibrated", 1.0, "Of the rows with a score of 0.8, 80 % are right: points on the diagonal."),
    ("Overconfident", 2.2, "It says 0.9 and is right less often: points below the diagonal, the gap in orange."),
    ("Underconfident", 0.45, "It says 0.6 and is right more often: points above the diagonal, the gap in pink."),
)  # fmt: skip


def draw_three_models() -> None:
    """Draw three reliability diagrams beside each other."""
    st.caption(
        f"Three simulated models of {_ROWS:,} rows, whose true probabilities are known. Horizontal: the score; vertical: the share of rows "
        "that are right; grey: where a calibrated model would fall."
    )
    with st.container(horizontal=True, gap="medium"):
        for (name, _, words), figure in zip(_MODELS, _figures(), strict=True):
            with st.container(width=_WIDTH, gap="xsmall"):
                st.markdown(f"**{name}**")
                drawing = figure.plot_small(theme=screen.theme(), height=_HEIGHT)
                screen.chart(
                    figure,
                    drawing.update_layout(xaxis_constraintoward="left"),
                    key=f"learn.{name}",
                    filename=name.lower(),
                    alt=f"{name}: {figure.describe()}",
                    own_caption=True,
                )
                st.caption(words)


@st.cache_resource(show_spinner=False)
def _figures() -> tuple[Reliability, ...]:
    rng = np.random.default_rng(_SEED)
    truth = rng.normal(0.9, 1.1, _ROWS)
    labels = (rng.random(_ROWS) < 1 / (1 + np.exp(-truth))).astype(np.int64)
    figures = []
    for name, factor, _ in _MODELS:
        p = 1 / (1 + np.exp(-factor * truth))
        model = Predictions(probs=np.stack([1 - p, p], axis=1), labels=labels, name=name)
        figures.append(Reliability.compute(model, reduction="top-label", bins=20))
    return tuple(figures)


def draw_entries() -> None:
    """Draw a searchable list of all entries, and the chosen one."""
    by_key = {e.key: e for e in entries()}
    if ENTRY_PARAMETER not in st.session_state and st.query_params.get(ENTRY_PARAMETER) in by_key:
        st.session_state[ENTRY_PARAMETER] = st.query_params[ENTRY_PARAMETER]
    chosen = st.selectbox(
        "Look up a metric, a recalibrator or a finding",
        tuple(by_key),
        index=None,
        format_func=lambda key: shorten(f"{by_key[key].title} · {by_key[key].kind} · {key}", 120),
        placeholder="Type a name, such as ECE, temperature or CAL003",
        key=ENTRY_PARAMETER,
        filter_mode="contains",
    )
    # Written by hand: a bound widget would write the long label that it shows.
    write_parameter(ENTRY_PARAMETER, chosen)
    if chosen is not None:
        _card(by_key[chosen])


def _card(e: LearnEntry) -> None:
    with st.container(border=True):
        st.subheader(e.title, anchor=False)
        if e.summary:
            st.markdown(md(e.summary, 2_000))
        if e.formula:
            st.latex(e.formula)
        if e.facts:
            st.markdown(md(f"{capitalised('; '.join(e.facts))}.", 500))
        if e.parameters:
            words = ", ".join(f"{p.name} = {p.default}" for p in e.parameters)
            st.markdown(f"Parameters and their defaults: {md(words, 500)}.")
        for source in reference.sources_in(e.reference):
            st.caption(md(SOURCES[source], 500))
        source_words = f" Source: {md(e.reference, 300)}." if e.reference else ""
        st.caption(
            f"{e.kind.capitalize()}, on the command line and in JSON `{e.key}`.{source_words}"
        )


def draw_page() -> None:
    """Draw what the numbers mean: entries, which metric to use when, glossary, limits, references."""
    st.title("Learn", anchor=False)
    with navigation.boundary():
        draw_entries()  # first: a link to one of them shows it
        draw_three_models()
        when, words, limits, references = st.tabs(
            ["Which number when", "Glossary", "Limits", "References"], key="calviz.prose"
        )
        with when:
            for question in QUESTIONS:
                names = ", ".join(
                    f"[{md(METRICS[k].label)}]({entry_address(k)})" for k in question.metrics
                )
                st.markdown(f"**{md(question.text)}** {names}  \n{md(question.advice, 1_000)}")
        with words:
            for word in sorted(GLOSSARY, key=str.lower):
                st.markdown(f"**{md(word)}.** {md(GLOSSARY[word], 1_000)}")
        with limits:
            st.markdown("\n".join(f"- {md(limit, 500)}" for limit in LIMITS))
        with references:
            st.markdown("\n".join(f"- {md(full, 500)}" for full in SOURCES.values()))

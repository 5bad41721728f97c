"""The page Learn: entries to look up, questions, glossary, limits and references."""

from __future__ import annotations

import streamlit as st

from calviz.learn import (
    GLOSSARY,
    LIMITS,
    QUESTIONS,
    SOURCES,
    EntryKind,
    LearnEntry,
    entries,
    sources_in,
)
from calviz.specs.metric import METRICS
from calviz.text.words import capitalised, shorten
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.learn_links import ENTRY, address

_KINDS: dict[EntryKind, str] = {
    "metric": "Metric",
    "recalibrator": "Recalibrator",
    "finding": "Finding",
}


def look_up() -> None:
    """Draw a searchable list of all entries, and the chosen one."""
    by_key = {e.key: e for e in entries()}
    if ENTRY not in st.session_state and st.query_params.get(ENTRY) in by_key:
        st.session_state[ENTRY] = st.query_params[ENTRY]
    chosen = st.selectbox(
        "Look up a metric, a recalibrator or a finding",
        tuple(by_key),
        index=None,
        format_func=lambda key: _name(by_key[key]),
        placeholder="Type a name, such as ECE, temperature or CAL003",
        key=ENTRY,
        filter_mode="contains",
    )
    # Written by hand: a bound widget would write the long label that it shows.
    if chosen is not None:
        st.query_params[ENTRY] = chosen
        _card(by_key[chosen])
    elif ENTRY in st.query_params:
        del st.query_params[ENTRY]


def _name(e: LearnEntry) -> str:
    return shorten(f"{e.title} · {_KINDS[e.kind].lower()} · {e.key}", 120)


def _card(e: LearnEntry) -> None:
    with st.container(border=True):
        st.subheader(e.title, anchor=False)
        if e.summary:
            st.markdown(md(e.summary, 2_000))
        if e.formula:
            st.latex(e.formula)
        if e.facts:
            facts = "; ".join(e.facts)
            st.markdown(md(f"{capitalised(facts)}.", 500))
        if e.parameters:
            words = ", ".join(f"{p.name} = {p.default}" for p in e.parameters)
            st.markdown(f"Parameters and their defaults: {md(words, 500)}.")
        for source in sources_in(e.reference):
            st.caption(md(source.full, 500))
        source_words = f" Source: {md(e.reference, 300)}." if e.reference else ""
        st.caption(f"{_KINDS[e.kind]}, on the command line and in JSON `{e.key}`.{source_words}")


def questions() -> None:
    """Draw which metric answers which question."""
    for question in QUESTIONS:
        names = ", ".join(f"[{md(METRICS[k].label)}]({address(k)})" for k in question.metrics)
        st.markdown(f"**{md(question.text)}** {names}  \n{md(question.advice, 1_000)}")


def glossary() -> None:
    """Draw all words in alphabetical order."""
    for term in sorted(GLOSSARY, key=lambda t: t.word.lower()):
        st.markdown(f"**{md(term.word)}.** {md(term.meaning, 1_000)}")


def limits() -> None:
    """Draw what no metric here can say."""
    st.markdown("\n".join(f"- {md(limit, 500)}" for limit in LIMITS))


def references() -> None:
    """Draw the list of publications."""
    st.markdown("\n".join(f"- {md(source.full, 500)}" for source in SOURCES))

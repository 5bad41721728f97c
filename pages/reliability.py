"""Where the probabilities are off, bin by bin."""

import streamlit as st

from calviz.core.export import csv_bytes
from calviz.core.words import as_sentence, together
from calviz.ui import bins, cached, cards, diagram, guard, pages, settings
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["reliability"].question, anchor=False)
with guard.boundary():
    words = chosen.words(cached.data(chosen).n)
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")
    settings.other_view_of_two_classes(chosen)

with guard.boundary():
    evaluation = cached.evaluation(chosen)
    worst = (f.message for f in evaluation.findings if f.code == "CAL002")
    answer = next(worst, cached.verdict(chosen))
    st.markdown(f"**{md(together(as_sentence(answer)), 1_000)}**")
    cards.metric_line(evaluation, (cached.ece_key(chosen), "mce", "rmsce"))

bins.explore(chosen)

with guard.boundary():
    st.subheader("Does the choice of bins matter?", anchor=False)
    strip = cached.bin_sensitivity(chosen)
    st.markdown(md(strip.reading(), 1_000))
    diagram.chart(
        strip,
        diagram.with_room_below(strip.plot(theme=diagram.theme(), width=diagram.page_width()), 50),
        key="reliability.strip",
        filename="ece-by-bins",
    )
    with st.expander("What is drawn, as a table", icon=":material/table:"):
        frame = strip.frame()
        st.dataframe(frame, hide_index=True, alt="ECE by number of bins")
        st.download_button(
            "Download as CSV",
            csv_bytes(frame),
            f"{bins.file_stem(chosen)}-ece-by-bins.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="calviz.strip.download",
        )

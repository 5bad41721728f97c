"""What was read, and whether it was read right."""

import streamlit as st

from calviz.ui import cards, guard, pages, recognition, settings, sidebar, state, upload
from calviz.ui.templates import TEMPLATES
from calviz.ui.text import md, size

guard.enter()
chosen = settings.current()
entry = chosen.entry
loaded = entry.loaded
data = chosen.whole

st.title(pages.BY_KEY["data"].question, anchor=False)

with guard.boundary():
    upload.uploader("Use your file: predictions and true labels")
    st.caption(sidebar.stays_here())
    upload.failure_card()

with guard.boundary(), st.container(horizontal=True, vertical_alignment="center"):
    st.subheader(md(entry.title, 80), anchor=False, width="content")
    if entry.sample is not None:
        st.badge("Sample data", color="violet")
    elif st.button("Close this file", type="tertiary", icon=":material/close:"):
        state.close(entry.key)
        st.rerun()
    st.page_link(pages.link("overview"), label="See the verdict", icon=":material/arrow_forward:")

with guard.boundary():
    if entry.sample is not None:
        st.caption(md(entry.sample.description))
    st.markdown(f"**Recognised:** {md(loaded.recognition.sentence(), 2_000)}")
    st.caption(f"{size(loaded.size)} · digest {md(loaded.digest[: state.DIGEST_LENGTH])}")
    upload.repairs(entry)
    if loaded.notices:
        cards.findings(loaded.notices)

items, counts = st.columns(2, gap="large")
with items, guard.boundary():
    st.subheader("Item by item", anchor=False)
    recognition.table(loaded.recognition)
    with st.expander("Read it another way", icon=":material/tune:"):
        upload.override_form(entry)
with counts, guard.boundary():
    st.subheader("Counts", anchor=False)
    recognition.counts(data)

with guard.boundary():
    st.subheader("First rows, as they were understood", anchor=False)
    recognition.first_rows(data)

with guard.boundary(), st.expander("Sample data sets", icon=":material/dataset:"):
    for sample in state.samples().values():
        with st.container(border=True):
            st.markdown(f"**{md(sample.title)}**")
            st.caption(md(sample.description))
            if st.button("Look at it", key=f"calviz.sample.{sample.key}"):
                state.select(sample.key)
                st.rerun()

with guard.boundary(), st.expander("Templates to download", icon=":material/download:"):
    st.caption(
        "One small CSV file for each layout that is read; TSV, Parquet and NPZ work as well."
    )
    for template in TEMPLATES:
        with st.container(border=True):
            st.markdown(f"**{template.title}**")
            st.code(template.text, language=None)
            st.download_button(
                "Download",
                template.text,
                template.file,
                "text/csv",
                key=f"calviz.template.{template.key}",
                on_click="ignore",
            )

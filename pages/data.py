"""What was read from the file, and whether it was read right."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    navigation,
    open_files,
    reading_panel,
    session,
    sidebar,
    tables_and_cards,
    upload,
)
from calviz.app.session import md
from calviz.app.upload import TEMPLATES
from calviz.core.words import file_size

navigation.enter()
chosen = session.current()
entry = chosen.entry
loaded = entry.loaded
data = chosen.whole

st.title(navigation.PAGES_BY_KEY["data"].question, anchor=False)

with navigation.boundary():
    upload.draw_uploader("Use your file: predictions and true labels")
    st.caption(sidebar.stays_here())

with navigation.boundary(), st.container(horizontal=True, vertical_alignment="center"):
    st.subheader(md(entry.title, 80), anchor=False, width="content")
    if entry.sample is not None:
        st.badge("Sample data", color="violet")
    elif st.button("Close this file", type="tertiary", icon=":material/close:"):
        open_files.close(entry.key)
        st.rerun()
    st.page_link(
        navigation.link("overview"), label="See the verdict", icon=":material/arrow_forward:"
    )

with navigation.boundary():
    if entry.sample is not None:
        st.caption(md(entry.sample.description))
    st.markdown(f"**Recognised:** {md(loaded.recognition.sentence(), 2_000)}")
    if entry.sample is None:
        upload.draw_numbers(chosen)
    st.caption(f"{file_size(loaded.size)} · digest {md(entry.short_digest)}")
    upload.draw_repairs(entry)
    if loaded.notices:
        tables_and_cards.draw_findings(loaded.notices)
    reading_panel.draw_other_ways(entry)

counts, rows = st.columns([2, 3], gap="large")
with counts, navigation.boundary():
    st.subheader("Counts", anchor=False)
    upload.draw_counts(data)
with rows, navigation.boundary():
    st.subheader("First rows, as they were understood", anchor=False)
    upload.draw_first_rows(data)

with navigation.boundary(), st.expander("Sample data sets", icon=":material/dataset:"):
    for sample in open_files.samples().values():
        with st.container(border=True):
            st.markdown(f"**{md(sample.title)}**")
            st.caption(md(sample.description))
            if st.button("Look at it", key=f"calviz.sample.{sample.key}"):
                open_files.select(sample.key)
                st.rerun()

with navigation.boundary(), st.expander("Templates to download", icon=":material/download:"):
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

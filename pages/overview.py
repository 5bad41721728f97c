"""Whether these probabilities can be trusted."""

import streamlit as st

from calviz.core.words import together
from calviz.ui import cached, cards, diagram, guard, pages, settings, sidebar
from calviz.ui.text import md

guard.enter()
chosen = settings.current()

with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    st.title(pages.BY_KEY["overview"].question, anchor=False, width="content")
    # A link and not a button: `st.switch_page` fails once a setting is in the address.
    with st.container(border=True, width="content"):
        st.page_link(pages.link("data"), label=sidebar.USE_YOUR_FILE)

entry = chosen.entry
with st.container(horizontal=True, vertical_alignment="center"):
    if entry.sample is not None:
        st.badge("Sample data", color="violet")
    st.markdown(f"{md(entry.title, 80)} · {chosen.words(cached.data(chosen).n)}")
if entry.sample is not None:
    st.caption(f"{md(entry.sample.description)} {sidebar.stays_here()}")

with guard.boundary():
    st.header(md(together(cached.verdict(chosen)), 1_000), anchor=False)

with guard.boundary():
    settings.other_view_of_two_classes(chosen, cached.other_view(chosen))

with guard.boundary():
    evaluation = cached.evaluation(chosen)
    cards.metric_cards(evaluation, ("accuracy", cached.ece_key(chosen), "mcs", "nll", "brier"))
    st.caption(
        "Noise floor: what the number would be if the model were perfectly calibrated, with as many "
        f"rows. Calibration metrics look at the {chosen.reduction_words}, {chosen.bins_words}. A number counts as beyond "
        "noise only where the verdict, which adjusts for all that it tests, finds miscalibration."
    )

row = st.container(horizontal=True, gap="medium")
with row.container(width=diagram.WIDTH), guard.boundary():
    diagram.draw(cached.reliability(chosen), key="overview.diagram")
with row.container(), guard.boundary():
    st.subheader("Findings", anchor=False)
    cards.findings(cached.evaluation(chosen).findings)
    st.page_link(
        pages.link("reliability"),
        label="See every bin and its rows",
        icon=":material/arrow_forward:",
        query_params=st.query_params.to_dict(),
    )
    if chosen.whole.groups:
        st.page_link(
            pages.link("slices"),
            label="See for whom it is wrong",
            icon=":material/arrow_forward:",
            query_params=st.query_params.to_dict(),
        )

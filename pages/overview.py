"""Whether these probabilities can be trusted."""

import streamlit as st

from calviz.analysis import first_metrics
from calviz.text.words import together
from calviz.ui.session import navigation, page_guard, results, settings
from calviz.ui.widgets import cards, diagram, sidebar
from calviz.ui.widgets.text import md

page_guard.enter()
chosen = settings.current()

with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    st.title(navigation.BY_KEY["overview"].question, anchor=False, width="content")
    # A link and not a button: `st.switch_page` fails once a setting is in the address.
    with st.container(border=True, width="content"):
        st.page_link(navigation.link("data"), label=sidebar.USE_YOUR_FILE)

entry = chosen.entry
with st.container(horizontal=True, vertical_alignment="center"):
    if entry.sample is not None:
        st.badge("Sample data", color="violet")
    st.markdown(f"{md(entry.title, 80)} · {chosen.words}")
if entry.sample is not None:
    st.caption(f"{md(entry.sample.description)} {sidebar.stays_here()}")

with page_guard.boundary():
    st.header(md(together(results.verdict(chosen)), 1_000), anchor=False)

with page_guard.boundary():
    settings.other_view_of_two_classes(chosen, results.other_view(chosen))

with page_guard.boundary():
    evaluation = results.evaluation(chosen)
    cards.metric_cards(evaluation, first_metrics(chosen.sample))
    st.caption(
        "Noise floor: what the number would be if the model were perfectly calibrated, with the same number of "
        f"rows. Calibration metrics look at the {chosen.reduction_words}, {chosen.bins_words}. A number counts as beyond "
        "noise only where the verdict, which adjusts for all that it tests, finds miscalibration."
    )

row = st.container(horizontal=True, gap="medium")
with row.container(width=diagram.WIDTH), page_guard.boundary():
    diagram.draw(results.reliability(chosen), key="overview.diagram")
with row.container(), page_guard.boundary():
    st.subheader("Findings", anchor=False)
    cards.findings(results.evaluation(chosen).findings)
    st.page_link(
        navigation.link("reliability"),
        label="See every bin and its rows",
        icon=":material/arrow_forward:",
        query_params=st.query_params.to_dict(),
    )
    if chosen.whole.groups:
        st.page_link(
            navigation.link("slices"),
            label="See for whom it is wrong",
            icon=":material/arrow_forward:",
            query_params=st.query_params.to_dict(),
        )

"""Whether these probabilities can be trusted."""

import streamlit as st

from calviz.analysis import first_metrics
from calviz.ui.pinned import on_page
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, results, settings
from calviz.ui.widgets import cards, interactive_reliability, next_steps, reduction_choice, sidebar
from calviz.ui.widgets.escape import md

page_guard.enter()
chosen = settings.current()

with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    st.title(navigation.BY_KEY["overview"].question, anchor=False, width="content")
    # A link and not a button: `st.switch_page` fails once a setting is in the address.
    st.page_link(navigation.link("data"), label=sidebar.USE_YOUR_FILE)

entry = chosen.entry
about = f"{md(entry.sample.description)} {sidebar.stays_here()}" if entry.sample else None
st.markdown(f"{md(entry.title, 80)} · {chosen.words} · {chosen.bins_words}", help=about)

with page_guard.boundary():
    cards.verdict(results.evaluation(chosen).verdict, results.verdict(chosen))

pictures, words = st.columns([11, 10], gap="medium")
with pictures, page_guard.boundary():
    interactive_reliability.chart(results.reliability(chosen), chosen, key="overview.chart")
with pictures, page_guard.boundary():
    # Below the picture, so that the picture and its legend are on the first screen.
    reduction_choice.other_view_of_two_classes(chosen, results.other_view(chosen), below=True)
with words, page_guard.boundary():
    evaluation = results.evaluation(chosen)
    keys = first_metrics(chosen.sample)
    cards.metric_cards(evaluation, keys, pinned=on_page.values(chosen, keys))
    if chosen.sample.data.n > 1:
        st.caption(
            "Blue: value and 95 % interval. Grey: if calibrated. MCS: mean score minus share of hits, above 0 overconfident.",
            help="Noise floor: what the number would be if the model were perfectly calibrated, with the same number of "
            f"rows. Calibration metrics look at the {chosen.reduction_words}, {chosen.bins_words}. A number counts as beyond "
            "noise only where the verdict, which adjusts for all that it tests, finds miscalibration.",
        )
    st.subheader("Findings", anchor=False)
    cards.findings(evaluation.findings)
    next_steps.draw("overview", chosen, evaluation)

with page_guard.boundary():
    panel.draw(chosen)

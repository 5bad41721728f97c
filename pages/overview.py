"""Whether these probabilities can be trusted."""

from __future__ import annotations

import streamlit as st

from calviz.app import interactive_reliability, navigation, settings, sidebar
from calviz.app import navigation as next_steps
from calviz.app import navigation as page_guard
from calviz.app import pinned as on_page
from calviz.app import rows_shown as panel
from calviz.app import settings as results
from calviz.app import sidebar as reduction_choice
from calviz.app import tables_and_cards as cards
from calviz.app.settings import md
from calviz.verdicts.analysis import first_metrics

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
    panel.draw_panel(chosen)

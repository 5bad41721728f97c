"""Whether these probabilities can be trusted."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    interactive_reliability,
    navigation,
    pinning,
    reading_panel,
    rows_shown,
    session,
    sidebar,
    tables_and_cards,
)
from calviz.app.session import md
from calviz.verdicts.analysis import first_metrics

navigation.enter()
chosen = session.current()

with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
    st.title(navigation.PAGES_BY_KEY["overview"].question, anchor=False, width="content")
    # A link and not a button: `st.switch_page` fails once a setting is in the address.
    st.page_link(navigation.link("data"), label=sidebar.USE_YOUR_FILE)

entry = chosen.entry
about = f"{md(entry.sample.description)} {sidebar.stays_here()}" if entry.sample else None
st.markdown(f"{md(entry.title, 80)} · {chosen.words} · {chosen.bins_words}", help=about)

with navigation.boundary():
    judged = session.evaluation(chosen).verdict
    tables_and_cards.draw_verdict(judged, session.verdict(chosen))
    if judged is not None and judged.in_reverse:
        reading_panel.draw_other_way_round(entry)

pictures, words = st.columns([11, 10], gap="medium")
with pictures, navigation.boundary():
    interactive_reliability.draw_clickable(
        session.reliability(chosen), chosen, key="overview.chart"
    )
with pictures, navigation.boundary():
    # Below the picture, so that the picture and its legend are on the first screen.
    sidebar.draw_other_view(chosen, session.other_view(chosen), below=True)
with words, navigation.boundary():
    evaluation = session.evaluation(chosen)
    keys = first_metrics(chosen.sample)
    tables_and_cards.draw_metric_cards(evaluation, keys, pinned=pinning.values(chosen, keys))
    if chosen.sample.data.n > 1:
        st.caption(
            "Blue: value and 95 % interval. Grey: if calibrated. MCS: mean score minus share of hits, above 0 overconfident.",
            help="Noise floor: what the number would be if the model were perfectly calibrated, with the same number of "
            f"rows. Calibration metrics look at the {chosen.reduction_words}, {chosen.bins_words}. A number counts as beyond "
            "noise only where the verdict, which adjusts for all that it tests, finds miscalibration.",
        )
    st.subheader("Findings", anchor=False)
    tables_and_cards.draw_findings(evaluation.findings)
    navigation.draw_next_steps("overview", chosen, evaluation)

with navigation.boundary():
    rows_shown.draw_selection(chosen)

"""Whether these probabilities can be trusted."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    bar,
    interactive_reliability,
    navigation,
    pinning,
    reading_panel,
    rows_shown,
    screen,
    session,
    tables_and_cards,
)
from calviz.app.session import Settings, md
from calviz.core.words import keep_units_together
from calviz.figures.hundred_squares import HundredSquares
from calviz.verdicts import analysis


def overview(chosen: Settings) -> None:
    """Verdict, diagram, first numbers, findings, and what to do next."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        st.caption("calviz checks whether probabilities can be trusted.", width="content")
        st.page_link(
            navigation.link("data"),
            label="**Use your file**",
            icon=":material/upload_file:",
            query_params=st.query_params.to_dict(),
            width="content",
        )
        plain = st.toggle(
            "Plain words",
            key="plain",
            bind="query-params",
            help="The verdict in five sentences, for readers who do not know the terms.",
        )
    evaluation = session.evaluation(chosen)
    judged = evaluation.verdict
    assert judged is not None  # findings come with it
    navigation.draw_head(judged.headline, sign=tables_and_cards.sign_of(judged))
    st.markdown(md(keep_units_together(judged.sentence), 1_000))
    if judged.in_reverse:
        reading_panel.draw_other_way_round(chosen.entry)
    if plain:
        in_plain_words(chosen)
        return
    pictures, words = st.columns([11, 10], gap="large")
    with pictures, navigation.boundary():
        interactive_reliability.draw_clickable(
            session.reliability(chosen), chosen, key="overview.chart"
        )
        # Below the picture, so that the picture and its legend are on the first screen.
        bar.draw_other_view(chosen, session.other_view(chosen), below=True)
    with words, navigation.boundary():
        keys = analysis.first_metrics(chosen.sample)
        tables_and_cards.draw_metric_cards(evaluation, keys, pinned=pinning.values(chosen, keys))
        if chosen.sample.data.n > 1:
            st.caption(
                "Blue: value and 95 % interval. Grey: if calibrated.",
                help="MCS: mean score minus share of hits, above 0 overconfident. Noise floor: what the number would be if the "
                "model were calibrated, with the same number of rows. A number counts as beyond noise only where the verdict, "
                "which adjusts for all that it tests, finds miscalibration.",
            )
        with st.container(horizontal=True, gap="small"):
            if st.button("Recalibrate", type="primary", icon=":material/tune:"):
                st.switch_page(
                    navigation.link("recalibrate"), query_params=st.query_params.to_dict()
                )
            if st.button("See the rows"):
                st.switch_page(
                    navigation.link("reliability"), query_params=st.query_params.to_dict()
                )
        st.subheader("Where to look", anchor=False)
        tables_and_cards.draw_findings(evaluation.findings)
    with navigation.boundary():
        rows_shown.draw_selection(chosen)


def in_plain_words(chosen: Settings) -> None:
    """Five sentences and a picture for readers who do not know the terms."""
    rows_shown.say_not_followed(chosen, "These sentences are about all rows")
    sentences = analysis.explain(chosen.sample)
    words, picture = st.columns([10, 11], gap="large")
    with words:
        st.markdown(
            "\n".join(f"{n}. {md(text, 1_000)}" for n, text in enumerate(sentences, start=1))
        )
        screen.copy_button(
            " ".join(sentences), "Copy the five sentences", key="calviz.explain.copy"
        )
    verdict = session.evaluation(chosen).verdict
    with picture:
        if verdict is not None and verdict.rows > 1:
            screen.chart(HundredSquares.compute(verdict), key="explain", filename="of-a-hundred")
            st.caption("Every square stands for one of a hundred rows.")


navigation.enter()
navigation.open_tab({"overview": overview})

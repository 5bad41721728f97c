"""How far the sums of scores and hits differ, without bins."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    navigation,
    pinning,
    rows_shown,
    screen,
    selection,
    session,
    sidebar,
    tables_and_cards,
)
from calviz.app.session import md
from calviz.core.words import keep_units_together
from calviz.figures.cumulative_plot import Cumulative

#: Width of a panel in pixels; two fit in a row on a large screen.
PANEL = 472
#: Relative widths of a figure and of the words beside it.
BESIDE = (3, 2)
#: What each panel shows, for its alternative text.
PANELS = {
    "a": "Cumulative score and hits against the share of rows",
    "b": "The same against the cumulative score",
    "c": "Score and probability of a hit against the share of rows",
    "d": "Probability of a hit against the score",
    "gap": "Scores minus hits, summed up, against the share of rows",
}
#: What counts as a hit.
HIT_WORDS = {
    "top-label": "the predicted class is the true one",
    "top-r": "the r-th class is the true one",
    "within-top-r": "the true class is among the first r",
    "class": "that class is the true one",
    "positive": "the positive class is the true one",
}

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["cumulative"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words}")
    sidebar.draw_other_view(chosen)

with navigation.boundary():
    estimate = st.segmented_control(
        "Probability of a hit by",
        ("smooth", "isotonic"),
        default="smooth",
        required=True,
        key="estimate",
        bind="query-params",
        format_func={"smooth": "smoothing", "isotonic": "isotonic regression"}.get,
        help="How the lower panels estimate it. The KS error does not depend on it.",
    )
    figure = session.cumulative(chosen, estimate)
    alone = chosen.sample.data.rows == 1
    verdict = session.evaluation(chosen).verdict
    answer = session.verdict(chosen) if alone else figure.reading(verdict)
    st.subheader(md(keep_units_together(answer), 1_000), anchor=False)
    with st.spinner("Resampling the errors …", show_time=True):
        # Chosen for this page: the distances that its panels show.
        keys = ("ks", "ks_signed", "kuiper")
        evaluation = session.metrics(chosen, keys, error_bars=True)
    tables_and_cards.draw_metric_lines(
        evaluation, keys, verdict=verdict, pinned=pinning.values(chosen, keys)
    )
    rows_shown.draw_selection(chosen, rows=False)
    st.caption(
        f"A hit is a row where {md(HIT_WORDS[chosen.reduction.kind])}; the fractile is the share of the rows, lowest scores "
        "first. From the lowest score upwards, the scores and the hits are summed up. For a "
        "calibrated model the two sums stay together: the KS error is where they are furthest apart, the Kuiper error the "
        "range of their difference, which is the largest error over any range of scores."
    )
    pinned = pinning.overlay(
        chosen, lambda s: s.view(Cumulative.compute, estimate=estimate, band=False, seed=s.seed)
    )
    others = (
        *selection.cumulative_overlay(chosen, estimate),
        *([] if pinned is None else [pinned]),
    )
    if others:
        st.caption(
            f"{' and '.join(md(one.name, 200) for one in others)}: drawn in panel d and in the last panel, where one line is enough."
        )
    # Two panels in a row (on a phone one above the other); the last one has words beside it.
    places = [place for _ in range(2) for place in st.columns(2, gap="medium")]
    last, beside = st.columns(BESIDE, gap="medium", vertical_alignment="center")
    for place, (panel, words) in zip((*places, last), PANELS.items(), strict=True):
        with place:
            screen.chart(
                figure,
                screen.plotted(
                    figure,
                    panels=[panel],
                    width=screen.page_width() or PANEL,
                    selected=selection.score_range(chosen),
                    beside=others,
                ),
                key=f"cumulative.{panel}",
                filename=f"cumulative-{panel}",
                alt=f"{words}. {figure.describe()}",
            )
    beside.caption(
        "The difference of the two curves of panel a: it rises where the scores are too high and falls where they are too low. "
        "Its largest distance from 0 is the KS error, from its lowest to its highest point it is the Kuiper error."
    )

with navigation.boundary():
    st.subheader("The probability of a hit, without bins", anchor=False)
    isotonic = session.isotonic_curve(chosen)
    picture, words = st.columns(BESIDE, gap="medium", vertical_alignment="center")
    with picture:
        screen.chart(
            isotonic,
            key="cumulative.corp",
            filename="corp",
        )
    words.caption(
        f"{md(keep_units_together(isotonic.reading()), 1_000)} The curve is the increasing one that fits best (CORP). Grey: where it falls if the model is "
        "calibrated, labels redrawn and fitted again. Coloured: how far it moves when rows are resampled."
    )

with navigation.boundary():
    st.subheader("What it costs those who decide", anchor=False)
    cost = session.decision_loss(chosen)
    picture, words = st.columns(BESIDE, gap="medium", vertical_alignment="center")
    with picture:
        screen.chart(
            cost,
            key="cumulative.decision",
            filename="decision-loss",
        )
    words.caption(
        f"{md(keep_units_together(cost.reading()), 1_000)} The stake is the most that a decision can gain or lose. Those who know their cutoff read "
        "the loss there; those who do not, read the highest point."
    )

with navigation.boundary():
    tables_and_cards.draw_figure_table(
        figure.frame(),
        f"{chosen.file_stem}-cumulative.csv",
        key="calviz.cumulative.download",
        alt="The points of the panels",
    )

"""Where the probabilities are off, bin by bin."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    before_after,
    interactive_reliability,
    navigation,
    pinning,
    rows_shown,
    screen,
    session,
    sidebar,
    tables_and_cards,
)
from calviz.app.session import md
from calviz.core.entry_specs import CHECKS
from calviz.core.words import capitalised, full_sentence, keep_units_together
from calviz.figures.calibration_map import NAMES

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["reliability"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.words} · {chosen.bins_words}")
    sidebar.draw_other_view(chosen)

with navigation.boundary():
    evaluation = session.evaluation(chosen)
    judged = evaluation.verdict
    worst = (f.message for f in evaluation.findings if CHECKS[f.code].about == "bins")
    answer = next(worst, session.verdict(chosen))
    # The findings may be about the other view of two classes, whose bins are not drawn here; then both views are described.
    if judged is not None and judged.reduction != chosen.reduction.key:
        answer = " ".join(filter(None, (judged.sentence, judged.other_view)))
    st.markdown(f"**{md(keep_units_together(full_sentence(answer)), 1_000)}**")
    # Chosen for this page: the errors of the bins that it draws.
    keys = (chosen.sample.ece_key, "mce", "rmsce")
    errors = session.metrics(chosen, keys, error_bars=True)
    tables_and_cards.draw_metric_lines(
        errors, keys, verdict=evaluation.verdict, pinned=pinning.values(chosen, keys)
    )

interactive_reliability.explore_bins(chosen)
rows_shown.explore_notable_rows(chosen)
before_after.explore_before_and_after(chosen)

with navigation.boundary():
    st.subheader("A curve instead of bins", anchor=False)
    kind = session.choose_one(
        "Fitted by",
        NAMES,
        default="spline",
        key="curve",
        help="ICI, E50, E90, Emax and ECI are distances from the spline, unless another curve is asked for. The band is that of "
        "each score for itself.",
    )
    curve = session.calibration_curve(chosen, kind)
    description = keep_units_together(curve.describe().split(": ", 1)[-1])
    st.markdown(md(capitalised(description), 1_000))
    screen.chart(
        curve,
        key="reliability.curve",
        filename="calibration-curve",
    )

with navigation.boundary():
    st.subheader("Does the choice of bins matter?", anchor=False)
    strip = session.bin_sensitivity(chosen)
    st.markdown(md(keep_units_together(strip.reading()), 1_000))
    screen.chart(
        strip,
        screen.as_wide_as_the_page(screen.plotted(strip)),
        key="reliability.strip",
        filename="ece-by-bins",
    )
    tables_and_cards.draw_figure_table(
        strip.frame(),
        f"{chosen.file_stem}-ece-by-bins.csv",
        key="calviz.strip.download",
        alt="ECE by number of bins",
    )

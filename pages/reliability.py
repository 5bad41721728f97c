"""Where the probabilities are off, bin by bin."""

from __future__ import annotations

import streamlit as st

from calviz.app import before_after as recalibrated_diagram
from calviz.app import diagram, interactive_reliability, navigation, settings
from calviz.app import navigation as page_guard
from calviz.app import pinned as on_page
from calviz.app import rows_shown as notable_rows
from calviz.app import settings as link_choice
from calviz.app import settings as results
from calviz.app import sidebar as reduction_choice
from calviz.app import tables_and_cards as cards
from calviz.app import tables_and_cards as csv_download
from calviz.app.settings import md
from calviz.core.entry_specs import CHECKS
from calviz.core.words import capitalised, full_sentence, keep_units_together
from calviz.figures.calibration_map import NAMES

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["reliability"].question, anchor=False)
with page_guard.boundary():
    words = chosen.words
    st.markdown(f"{md(chosen.entry.title, 80)} · {words} · {chosen.bins_words}")
    reduction_choice.other_view_of_two_classes(chosen)

with page_guard.boundary():
    evaluation = results.evaluation(chosen)
    judged = evaluation.verdict
    worst = (f.message for f in evaluation.findings if CHECKS[f.code].about == "bins")
    answer = next(worst, results.verdict(chosen))
    # The findings may be about the other view of two classes, whose bins are not drawn here; then both views are described.
    if judged is not None and judged.reduction != chosen.reduction.key:
        answer = " ".join(filter(None, (judged.sentence, judged.other_view)))
    st.markdown(f"**{md(keep_units_together(full_sentence(answer)), 1_000)}**")
    # Chosen for this page: the errors of the bins that it draws.
    keys = (chosen.sample.ece_key, "mce", "rmsce")
    errors = results.metrics(chosen, keys, error_bars=True)
    cards.metric_line(errors, keys, verdict=evaluation.verdict, pinned=on_page.values(chosen, keys))

interactive_reliability.explore(chosen)
notable_rows.explore_notable_rows(chosen)
recalibrated_diagram.explore(chosen)

with page_guard.boundary():
    st.subheader("A curve instead of bins", anchor=False)
    kind = link_choice.one_of(
        "Fitted by",
        NAMES,
        default="spline",
        key="curve",
        help="ICI, E50, E90, Emax and ECI are distances from the spline, unless another curve is asked for. The band is that of "
        "each score for itself.",
    )
    curve = results.calibration_curve(chosen, kind)
    description = keep_units_together(curve.describe().split(": ", 1)[-1])
    st.markdown(md(capitalised(description), 1_000))
    diagram.chart(
        curve,
        key="reliability.curve",
        filename="calibration-curve",
    )

with page_guard.boundary():
    st.subheader("Does the choice of bins matter?", anchor=False)
    strip = results.bin_sensitivity(chosen)
    st.markdown(md(keep_units_together(strip.reading()), 1_000))
    diagram.chart(
        strip,
        diagram.as_wide_as_the_page(diagram.plotted(strip)),
        key="reliability.strip",
        filename="ece-by-bins",
    )
    with st.expander("What is drawn, as a table", icon=":material/table:"):
        frame = strip.frame()
        st.dataframe(frame, hide_index=True, alt="ECE by number of bins")
        csv_download.button(
            "Download as CSV",
            frame,
            f"{chosen.file_stem}-ece-by-bins.csv",
            key="calviz.strip.download",
        )

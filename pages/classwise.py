"""Which classes are miscalibrated, compared with what a calibrated model would show."""

from __future__ import annotations

import streamlit as st

from calviz.app import (
    diagnose_classes,
    diagnose_confusion,
    navigation,
    rows_shown,
    screen,
    session,
)
from calviz.app.session import md
from calviz.core.words import full_sentence
from calviz.figures.class_bars import TITLES, headline
from calviz.sample.slices import FEWEST_CLUSTERS

ORDERS = {"beyond": "by what is outside", "value": "by the error", "class": "by class"}
BY = {
    "predicted-class": "by predicted class",
    "one-vs-rest": "one-vs-rest",
    "true-class": "by true class",
}
GREY = (
    "Grey: the range of a perfectly calibrated model, adjusted for the number of classes; what lies within it is no "
    "evidence of an error."
)
NOT_CENTRED = (
    "It is not centred at 0, as the rows of one true class hold more wrong predictions than the rows "
    "that the model gave to it."
)
NO_RANGE = (
    "What a perfectly calibrated model would show cannot be said without the probabilities of all "
    "classes. It is not 0: the rows of a hard class look overconfident even then, so that a long bar "
    "alone is no evidence of an error."
)
NO_RANGE_OF_PROFILES = (
    "A profile holds sums of the rows, from which what a perfectly calibrated model would show by true class is not known. It is "
    "not 0: the rows of a hard class look overconfident even then, so that a long bar alone is no evidence of an error."
)
NO_RANGE_OF_CLUSTERS = (
    "Rows of one cluster tend to be off together: how far that moves the error of a class is not known from the "
    "probabilities, so that a long bar alone is no evidence of an error. Intervals, each class by itself, say how precisely "
    f"its clusters measure it; with rows in fewer than {FEWEST_CLUSTERS} clusters a class has none."
)

navigation.enter()
chosen = session.current()

st.title(navigation.PAGES_BY_KEY["classwise"].question, anchor=False)
with navigation.boundary():
    st.markdown(f"{md(chosen.entry.title, 80)} · {chosen.rows_words}")

with navigation.boundary():
    class_errors = diagnose_classes.find_class_views(chosen)
    if class_errors is None:
        st.stop()
    shown = list(class_errors.views.values())
    is_off = False
    if chosen.sample.data.rows == 1:
        st.subheader(md(session.verdict(chosen), 1_000), anchor=False)
    else:
        words, is_off = headline(shown)
        # Only a class outside its range gets large letters; that no view shows one is said once for all views.
        if is_off:
            st.subheader(md(words, 1_000), anchor=False)
        else:
            st.markdown(md(words, 1_000))
    ranged = any(figure.band is not None for figure in shown)
    # On a phone, the choices break into lines.
    with st.container(horizontal=screen.page_width() is None, gap="medium"):
        mode = st.segmented_control(
            "View",
            tuple(diagnose_classes.MODES),
            default=class_errors.first,
            required=True,
            key="classes_by",
            bind="query-params",
            format_func=BY.get,
        )
        order = st.segmented_control(
            "Sort",
            tuple(o for o in ORDERS if o != "beyond" or ranged),
            default="beyond" if ranged else "value",
            required=True,
            key="order",
            bind="query-params",
            format_func=ORDERS.get,
        )
    figure = class_errors.views.get(mode)
    ranked = figure or shown[-1]
    pinned = diagnose_classes.pinned_class_errors(chosen, ranked.mode)
    st.markdown(f"**{TITLES[mode]}{' (MCS)' if mode == 'true-class' else ''}**")
    if figure is None:
        st.caption(md(full_sentence(class_errors.reasons[mode]), 1_000))
    else:
        if is_off:
            st.markdown(md(figure.shares(), 1_000))
        diagnose_classes.draw_bars(figure, order, chosen, pinned)
        if figure.band is None:
            reasons = {"clusters": NO_RANGE_OF_CLUSTERS, "profile": NO_RANGE_OF_PROFILES}
            st.caption(reasons.get(figure.no_range or "", NO_RANGE))
        else:
            st.caption(f"{GREY} {NOT_CENTRED}" if mode == "true-class" else GREY)
    frame = diagnose_classes.merged_views(chosen, class_errors)
    diagnose_classes.drill_down(frame, chosen)
    if chosen.whole.labels is not None:
        rows_shown.draw_selection(
            chosen,
            hint="Click a bar, tick a class or click a cell of the matrix to select its rows, here and on every page.",
        )
    at = ranked.class_index[ranked.ranked(order)]
    diagnose_classes.draw_table(frame, chosen, at.tolist(), ranked.mode, pinned)
    diagnose_confusion.explore_confusion(chosen)

"""Which classes are off, against what a calibrated model would show."""

import streamlit as st

from calviz.figures.class_bars import DRAWN, headline
from calviz.ui.classwise import errors, mixed_up, table
from calviz.ui.selection import panel
from calviz.ui.session import navigation, page_guard, results, settings
from calviz.ui.widgets.text import md

ORDERS = {"beyond": "by what is outside", "value": "by the error", "class": "by class"}
BY = {
    "predicted": "by predicted class",
    "rest": "one-vs-rest",
    "true": "by true class",
}
MODES = {"predicted": "predicted-class", "rest": "one-vs-rest", "true": "true-class"}
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
MISSING = {
    "predicted-class": "Not available: these data do not name the predicted classes.",
    "one-vs-rest": "Not available for confidence-only data: it needs the probabilities of all classes.",
}

page_guard.enter()
chosen = settings.current()

st.title(navigation.BY_KEY["classwise"].question, anchor=False)
with page_guard.boundary():
    facts = chosen.rows_words
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")

with page_guard.boundary():
    class_errors = errors.find(chosen)
    if class_errors is None:
        st.stop()
    views = {
        "predicted-class": class_errors.predicted,
        "one-vs-rest": class_errors.rest,
        "true-class": class_errors.true,
    }
    shown = [figure for figure in views.values() if figure is not None]
    if chosen.sample.data.n == 1:
        st.subheader(md(results.verdict(chosen), 1_000), anchor=False)
    else:
        words, off = headline(shown)
        # Only what is outside the range is said in large letters.
        if off:
            st.subheader(md(words, 1_000), anchor=False)
        else:
            st.markdown(md(words, 1_000))
    ranged = any(figure.band is not None for figure in shown)
    with st.container(horizontal=True, gap="medium"):
        by = st.segmented_control(
            "View",
            tuple(BY),
            default="predicted" if class_errors.predicted is not None else "true",
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
    mode = MODES[by]
    figure = views[mode]
    pinned = errors.pinned(chosen, mode)
    st.markdown(f"**{DRAWN[mode]}{' (MCS)' if mode == 'true-class' else ''}**")
    if figure is None:
        st.caption(MISSING[mode])
    else:
        st.markdown(md(figure.shares(), 1_000))
        table.chart(figure, order, chosen, pinned)
        if figure.band is None:
            st.caption(NO_RANGE)
        else:
            st.caption(f"{GREY} {NOT_CENTRED}" if mode == "true-class" else GREY)
    frame = table.merged(chosen, class_errors)
    table.drill_down(frame, chosen)
    panel.draw(
        chosen,
        how="Click a bar, tick a class or click a cell of the matrix to select its rows, here and on every page.",
    )
    ranked = figure or class_errors.true
    at = ranked.class_index[ranked.ranked(order)]
    table.table(frame, chosen, at.tolist(), mode, pinned)
    mixed_up.explore(chosen)

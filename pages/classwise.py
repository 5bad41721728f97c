"""Which classes are over- or underconfident, against what a calibrated model would show."""

import streamlit as st

from calviz.ui import cached, class_errors, classes, guard, pages, settings
from calviz.ui.text import md

ORDERS = {"value": "by the error", "beyond": "by what is beyond noise", "class": "by class"}
GREY = (
    "Grey: the range of a perfectly calibrated model. It is not centred at 0, as the rows "
    "of one true class hold more wrong predictions than the rows that the model gave to it."
)
NO_RANGE = (
    "What a perfectly calibrated model would show cannot be said without the probabilities of all "
    "classes. It is not 0: the rows of a hard class look overconfident even then, so that a long bar "
    "alone is no evidence of an error."
)

guard.enter()
chosen = settings.current()

st.title(pages.BY_KEY["classwise"].question, anchor=False)
with guard.boundary():
    facts = chosen.words(cached.data(chosen).n).removesuffix(f" · {chosen.reduction_words}")
    st.markdown(f"{md(chosen.entry.title, 80)} · {facts}")

with guard.boundary():
    found = class_errors.find(chosen)
    if found is None:
        st.stop()
    true, rest = found
    alone = cached.data(chosen).n == 1
    st.subheader(md(cached.verdict(chosen) if alone else true.shares(), 1_000), anchor=False)
    order = st.segmented_control(
        "Sort",
        tuple(o for o in ORDERS if o != "beyond" or true.band is not None),
        default="value",
        required=True,
        key="order",
        bind="query-params",
        format_func=ORDERS.get,
    )
    index = classes.picked(chosen)
    row = st.container(horizontal=True, gap="medium")
    with row.container(width=472):
        st.markdown("**Rows of each true class: mean confidence − accuracy (MCS)**")
        classes.chart(true, order, index)
        st.caption(NO_RANGE if true.band is None else GREY)
    with row.container(width=472):
        st.markdown("**Each class against the rest: mean probability − frequency**")
        if rest is None:
            st.caption(
                "Not available for confidence-only data: it needs the probabilities of all classes."
            )
        else:
            classes.chart(rest, order, index)
            st.caption(md(rest.shares(), 1_000))
    frame = classes.merged(chosen, true, rest)
    classes.drill_down(frame, chosen)
    classes.table(frame, chosen, true.ranked(order).tolist())

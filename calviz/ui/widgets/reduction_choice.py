"""The choice of the reduction on a page: one class of many, or the other of the two reductions for two classes."""

from __future__ import annotations

import streamlit as st

from calviz.text.words import distinct, keep_units_together
from calviz.ui.session.settings import Settings, look_at_class, look_at_default
from calviz.ui.widgets import browser
from calviz.ui.widgets.escape import md

_ONE_CLASS = "calviz.one_class"


def choose_class(chosen: Settings, label: str, placeholder: str) -> None:
    """On a page about one class, ask which one if there are more than two.

    This sets the reduction of the sidebar, so that link, title and other pages follow.
    """
    data = chosen.whole
    if data.kind == "confidence" or data.n_classes == 2:
        return
    shown = distinct(data.class_names)
    is_one = chosen.reduction.kind == "class"
    st.session_state[_ONE_CLASS] = chosen.reduction.class_index(data) if is_one else None
    st.selectbox(
        label,
        range(data.n_classes),
        index=None,
        format_func=lambda index: shown[data.class_names[index]],
        key=_ONE_CLASS,
        on_change=_look_at_chosen_class,
        args=(chosen,),
        filter_mode="contains",
        placeholder=placeholder,
        width=420,
        help="One class against the rest, as the reduction in the sidebar says. Type to search.",
    )


def needs_class(chosen: Settings) -> bool:
    """Whether a page about one class has to ask which one, and none is chosen yet."""
    data = chosen.whole
    return data.kind != "confidence" and data.n_classes > 2 and chosen.reduction.kind != "class"


def _look_at_chosen_class(chosen: Settings) -> None:
    index: int | None = st.session_state[_ONE_CLASS]
    if index is None:  # cleared
        look_at_default(chosen.whole)
    else:
        look_at_class(chosen.whole, index)


def other_view_of_two_classes(
    chosen: Settings, other_words: str | None = None, *, below: bool = False
) -> None:
    """With two classes, say which of the two usual reductions is shown, add `other_words` about the other one, and offer to switch.

    The button stands beside the words, or `below` them.
    """
    other = chosen.reduction.other_of_two(chosen.whole)
    if other is None:
        return
    first, second = (md(name, 40) for name in chosen.whole.class_names)
    shown = f"the top label, whichever of {first} and {second} it is"
    if chosen.reduction.kind == "positive":
        shown = f"the positive class, {second}"
    words = f"Two classes: this page looks at {shown}."
    text, button = (
        (st.container(), st.container())
        if below
        else st.columns([2 if browser.size() == "small" else 4, 1], vertical_alignment="center")
    )
    text.markdown(f"{words} {md(keep_units_together(other_words))}" if other_words else words)
    button.button(
        f"Show the {other.label}",
        on_click=_set_reduction,
        args=(other.key,),
        key="calviz.other_view",
    )


def _set_reduction(key: str) -> None:
    st.session_state["reduction"] = key

"""The choice of the zero floor: the probability that methods with logarithms use in place of an exact 0, if there are zeros."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import streamlit as st

from calviz.comparison.fitting import scores_of
from calviz.core.blocks import row_blocks
from calviz.core.predictions import Dataset
from calviz.numerics.automatic_zero_floor import MOST, UNDERFLOW
from calviz.specs.recalibrator import RECALIBRATORS, FloorChoice
from calviz.text.words import counted

#: What an exact zero can be replaced by.
WAYS = {
    "auto": "automatic",
    "least": "smallest number",
    "own": "a number",
}
#: Smallest floor that can be entered; a smaller one is as good as none.
SMALLEST = 1e-12
_KEYS = ("zeros", "zeros-as")
_LAST_CHOICE = "calviz.zeros.kept"


def draw(data: Collection[Dataset], about: tuple[str, ...]) -> FloorChoice:
    """Draw the choice if some scores are zero; return the parameter `floor` of the methods that have one.

    All pages that have it share one choice.

    Parameters
    ----------
    data : collection of Predictions or ConfidencePredictions
        All models that are fitted.
    about : tuple of str
        Identifies them, for caches.
    """
    rows, smallest = _zeros(about, data)
    if not rows:
        return "auto"
    last_choice: dict[str, Any] = st.session_state.setdefault(_LAST_CHOICE, {})
    restored = {
        key: value
        for key, value in last_choice.items()
        if key not in st.session_state and key not in st.query_params
    }
    for key, value in restored.items():
        st.session_state[key] = value
    floor = _choice(_where(rows, data), smallest, restored)
    last_choice.update({key: st.session_state[key] for key in _KEYS if key in st.session_state})
    return floor


def _where(rows: int, data: Collection[Dataset]) -> str:
    if all(d.kind == "confidence" for d in data):
        return f"In {counted(rows, 'row')} the confidence is exactly 0 or 1, so that one side has exactly 0"
    return f"In {counted(rows, 'row')} a class has a probability of exactly 0"


def _choice(where: str, smallest: float, restored: Collection[str]) -> FloorChoice:
    # No default for a value that is put into the state again: streamlit warns about two values.
    half = min(smallest / 2, MOST)
    if st.session_state.get("zeros") not in (None, *WAYS):
        del st.session_state["zeros"]
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        way = st.segmented_control(
            "Read exact zeros as",
            list(WAYS),
            default=None if "zeros" in restored else "auto",
            required=True,
            key="zeros",
            bind="query-params",
            format_func=lambda key: WAYS[key],
            help="Methods that take logarithms need a number in place of 0. Automatic: half of the smallest probability "
            "above 0 of the rows that fit the map, at most 0.01; by cross-validation where that is an underflow and true "
            "classes have a 0. With the smallest number, a true class of probability 0 weighs as much as hundreds "
            "of other rows.",
        )
        floor: FloorChoice = "auto" if way == "auto" else None
        if way == "own":
            floor = st.number_input(
                "Number",
                SMALLEST,
                0.5,
                "min" if "zeros-as" in restored else max(SMALLEST, half),
                format="%g",
                key="zeros-as",
                bind="query-params",
                width=160,
            )
    reading = "Methods that take logarithms read it as"
    if floor == "auto" and smallest >= UNDERFLOW:
        message = (
            f"{where}. {reading} half of the smallest probability above 0 of the rows that fit the map, at most {MOST:g} "
            f"(of all rows: {half:.3g})."
        )
    elif floor == "auto":
        message = (
            f"{where}. The smallest probability above 0, {smallest:.3g}, is an underflow. {reading} half of that, or, if the "
            "true class of a row has a 0, as what cross-validation chooses."
        )
    elif floor is None:
        message = (
            f"{where}; the next smallest is {smallest:.3g}. Temperature, Platt, beta and the like depend on what a 0 is read "
            "as (their parameter 'floor'); histograms and isotonic regression do not."
        )
    else:
        message = f"{where}, read as {floor:.3g} by the methods that take logarithms."
    st.caption(message)
    return floor


def options(methods: Iterable[str], floor: FloorChoice) -> dict[str, dict[str, Any]]:
    """Return the floor as an option of the methods that have this parameter."""
    if floor == "auto":
        return {}
    return {
        m: {"floor": floor}
        for m in methods
        if any(p.name == "floor" for p in RECALIBRATORS[m].parameters)
    }


@st.cache_data(scope="session", max_entries=8, show_spinner=False)
def _zeros(about: tuple[str, ...], _data: Collection[Dataset]) -> tuple[int, float]:
    """Return the number of rows with a probability of 0, and the smallest other probability; data with logits do not count."""
    rows, smallest = 0, 1.0
    for data in _data:
        if getattr(data, "logits", None) is not None:
            continue
        scores, _ = scores_of(data)
        for block in row_blocks(scores):
            part = scores[block]
            rows += int(np.count_nonzero((part <= 0).any(axis=1)))
            smallest = min(smallest, float(np.min(part, where=part > 0, initial=1)))
    return rows, smallest

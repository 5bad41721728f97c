"""The choice whether a map may output probabilities of exactly 0 or 1 where it was fitted on few rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from calviz.specs.recalibrator import RECALIBRATORS

_KEY = "uncapped"
_LAST_CHOICE = "calviz.caps.kept"

ChosenOptions = dict[str, dict[str, Any]]


def draw(methods: Iterable[str], options: Mapping[str, Mapping[str, Any]]) -> ChosenOptions:
    """Draw the choice if a method has a cap; return the options of the methods, with what was chosen.

    All pages that have it share one choice.
    """
    chosen: ChosenOptions = {m: dict(parameters) for m, parameters in options.items()}
    capped = [m for m in methods if any(p.name == "cap" for p in RECALIBRATORS[m].parameters)]
    if not capped:
        return chosen
    if (
        _KEY not in st.session_state
        and _KEY not in st.query_params
        and _LAST_CHOICE in st.session_state
    ):
        st.session_state[_KEY] = st.session_state[_LAST_CHOICE]
    with st.popover("Probabilities of 0 and 1", type="tertiary"):
        st.caption(
            "By their definition, histograms, isotonic regression and splines give 0 where no calibration row has the class, and 1 "
            "where all have; a single wrong row there costs a log loss of 34.5 or more. They are held within what their rows support: "
            "where none of m rows has the class, at 0.5 / (m + 1)."
        )
        uncapped = st.toggle("Without the cap, as in the papers", key=_KEY, bind="query-params")
    st.session_state[_LAST_CHOICE] = uncapped
    if uncapped:
        for method in capped:
            chosen.setdefault(method, {})["cap"] = False
    return chosen

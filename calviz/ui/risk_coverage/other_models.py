"""Other models on the same rows: those of the current file, and of the other open files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.comparison.matched_rows import align
from calviz.core.arrays import IntArray
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.figures.kernels.uncertainty_ranking import RankedBy
from calviz.figures.risk_coverage import RiskCoverage
from calviz.text.words import shorten
from calviz.ui.session import browser_history
from calviz.ui.session.open_models import OpenModel, all_models, model_key
from calviz.ui.session.settings import Settings

#: Largest number of curves that can be told apart.
MOST = 5
#: Key of the toggle, its name in the address, and the value there. Older links have the name that the page Reliability gives to the
#: column beside its rows.
_COMPARE, _OLDER, _YES = "compare-models", "beside", "true"


def are_wanted() -> bool:
    """Draw the toggle that adds the curves of other models; it follows the address and writes it."""
    # Not bound to the address by streamlit, which would reset it when a step in the history leads to an older link.
    if _COMPARE not in st.session_state or browser_history.is_step():
        in_address = st.query_params.get(_COMPARE), st.query_params.get(_OLDER)
        st.session_state[_COMPARE] = _YES in in_address
    wanted = st.toggle(
        "Compare the models",
        key=_COMPARE,
        persist_state="session",
        help="The other models of the file, not recalibrated, and those of other open files that have the same rows.",
    )
    if wanted and st.query_params.get(_COMPARE) != _YES:
        st.query_params[_COMPARE] = _YES
    elif not wanted and _COMPARE in st.query_params:
        del st.query_params[_COMPARE]
    if st.query_params.get(_OLDER) == _YES:
        # In the first run after the page Reliability, the name may still belong to its widget.
        with suppress(StreamlitAPIException):
            del st.query_params[_OLDER]
    return wanted


def others(settings: Settings) -> tuple[list[OpenModel], list[str]]:
    """Return the other models on the same rows, and sentences about the models that are left out."""
    models: list[OpenModel] = []
    left_out: list[str] = []
    current = model_key(settings.entry, settings.model)
    keys_of_file = {model_key(settings.entry, name) for name in settings.entry.loaded.models}
    for model in all_models(settings.entry):
        if model.key in keys_of_file:
            models += [model] if model.key != current else []
            continue
        matched, reason = _matched(current, model.key, settings.whole, model.data)
        if matched is None:
            left_out.append(f"{shorten(model.name, 60)} is not drawn: {reason}")
        else:
            models.append(replace(model, data=matched))
    if len(models) > MOST:
        left_out.append(f"The first {MOST} of {len(models)} other models are drawn.")
    return models[:MOST], left_out


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _matched(
    key: str, other_key: str, _whole: Dataset, _other: Dataset
) -> tuple[Dataset | None, str]:
    try:
        models = align({"this": _whole, "that": _other}).models
    except CalvizError as error:
        return None, str(error)
    if models["this"].n < _whole.n:
        n, all_rows = models["this"].n, _whole.n
        return None, f"only {n:,} of the {all_rows:,} rows are in both files."
    return models["that"], ""


def curve(
    settings: Settings, other: OpenModel, ranking: RankedBy, judged: IntArray | None
) -> RiskCoverage | None:
    """Return the curve of another model, on the `judged` rows if given, else on the rows of the sidebar.

    None if the model has no such ranking.
    """
    if other.data.kind == "confidence" and ranking != "confidence":
        return None
    key = (*settings.rows_key, other.key, ranking, str(judged is not None))
    with st.spinner("Ranking the other models …", show_time=True):
        return _curve(key, settings, other, ranking, judged)


@st.cache_resource(scope="session", max_entries=64, show_spinner=False)
def _curve(
    key: tuple[str, ...],
    _settings: Settings,
    _other: OpenModel,
    _ranking: RankedBy,
    _judged: IntArray | None,
) -> RiskCoverage:
    mask = _settings.mask()
    data = _other.data
    if _judged is not None:
        data = data.take(_judged)
    elif mask is not None:
        data = data.take(np.flatnonzero(mask))
    return replace(RiskCoverage.compute(data, ranking=_ranking), name=_other.name)

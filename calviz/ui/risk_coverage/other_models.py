"""Other models on the same rows: those of the current file, and of the other open files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from calviz.comparison.matched_rows import align
from calviz.core.arrays import IntArray
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.figures import RiskCoverage
from calviz.figures.kernels.uncertainty_ranking import Ranking
from calviz.text.words import shorten
from calviz.ui.session.open_models import OpenModel, model_key, on_offer
from calviz.ui.session.settings import Settings

#: Largest number of curves that can be told apart.
MOST = 5


def others(settings: Settings) -> tuple[list[OpenModel], list[str]]:
    """Return the other models on the same rows, and sentences about the models that are left out."""
    found: list[OpenModel] = []
    left_out: list[str] = []
    here = model_key(settings.entry, settings.model)
    own = {model_key(settings.entry, name) for name in settings.entry.loaded.models}
    for model in on_offer(settings.entry):
        if model.key in own:
            found += [model] if model.key != here else []
            continue
        same, why = _matched(here, model.key, settings.whole, model.data)
        if same is None:
            left_out.append(f"{shorten(model.name, 60)} is not drawn: {why}")
        else:
            found.append(replace(model, data=same))
    if len(found) > MOST:
        left_out.append(f"The first {MOST} of {len(found)} other models are drawn.")
    return found[:MOST], left_out


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
    settings: Settings, other: OpenModel, ranking: Ranking, judged: IntArray | None
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
    _ranking: Ranking,
    _judged: IntArray | None,
) -> RiskCoverage:
    mask = _settings.mask()
    data = _other.data
    if _judged is not None:
        data = data.take(_judged)
    elif mask is not None:
        data = data.take(np.flatnonzero(mask))
    return replace(RiskCoverage.compute(data, ranking=_ranking), name=_other.name)

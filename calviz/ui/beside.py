"""Other models on the same rows: those of the file, and of the other files that are open."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from calviz.comparison.alignment import align
from calviz.core.arrays import IntArray
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.figures import RiskCoverage
from calviz.numerics.uncertainty_ranking import Ranking
from calviz.ui import state
from calviz.ui.settings import Settings
from calviz.ui.text import plain

#: More curves than this cannot be told apart.
MOST = 5


@dataclass(frozen=True, eq=False)
class Other:
    """A model beside the one that is looked at, row by row the same."""

    key: str
    name: str
    data: Dataset


def others(settings: Settings) -> tuple[list[Other], list[str]]:
    """The other models on the same rows, and a sentence about each that has other rows."""
    found: list[Other] = []
    left_out: list[str] = []
    here = settings.entry
    for name, data in here.loaded.models.items():
        if name != settings.model:
            found.append(Other(f"{here.content}#{name}", name, data))
    for entry in state.files().values():
        if entry.key == here.key:
            continue
        for name, data in entry.loaded.models.items():
            title = entry.title if len(entry.loaded.models) == 1 else f"{entry.title}: {name}"
            key = f"{entry.content}#{name}"
            same, why = _matched(f"{here.content}#{settings.model}", key, settings.whole, data)
            if same is None:
                left_out.append(f"{plain(title, 60)} is not drawn: {why}")
            else:
                found.append(Other(key, title, same))
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
    settings: Settings, other: Other, ranking: Ranking, judged: IntArray | None
) -> RiskCoverage | None:
    """The curve of another model; of `judged` rows, where they are not those of the sidebar.

    None where the model has no such ranking.
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
    _other: Other,
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

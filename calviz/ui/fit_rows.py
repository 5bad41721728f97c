"""Which rows may fit a recalibrator, where the sidebar says which rows judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from calviz.core.predictions import Dataset
from calviz.ui.settings import Settings
from calviz.ui.text import distinct


@dataclass(frozen=True, eq=False)
class FitRows:
    """The data, and what `calviz.compare` and `calviz.learning_curve` need to know to divide them.

    Attributes
    ----------
    data : Predictions or ConfidencePredictions
        The rows that fit and those that judge.
    how : mapping
        ``fit_split`` and ``eval_split``, or ``fit_fraction``.
    """

    data: Dataset
    how: dict[str, Any]

    @property
    def key(self) -> str:
        """Names the division, for jobs and caches."""
        return repr(sorted(self.how.items()))


def slice_of(settings: Settings, data: Dataset) -> Dataset:
    """The rows of the slice that the sidebar chose, of all splits."""
    if settings.group is None or settings.level is None:
        return data
    return data.take(data.groups[settings.group].mask(settings.level))


def choose(settings: Settings, *, key: str) -> FitRows:
    """Draw the widget that says where the rows to fit on come from.

    Parameters
    ----------
    settings : Settings
    key : str
        Of the widgets, one per page.
    """
    data = slice_of(settings, settings.whole)
    others = [name for name in data.split_names if name != settings.split]
    if settings.split is not None and others:
        shown = distinct(tuple(others))
        default = settings.entry.loaded.recognition.fit_split
        chosen = st.selectbox(
            "Fit on split",
            others,
            index=others.index(default) if default in others else 0,
            format_func=lambda name: shown.get(name, str(name)),
            key=f"{key}.split",
            help="Recalibrators are fitted on rows of this split and judged on the evaluation split.",
        )
        return FitRows(data, {"fit_split": chosen, "eval_split": settings.split})
    if settings.split is not None and data.splits is not None:
        data = data.split(settings.split)
    share = st.slider(
        "Rows to fit on, %",
        10,
        90,
        50,
        5,
        key=f"{key}.share",
        help="Drawn by chance, every class in proportion; the other rows judge.",
    )
    return FitRows(data, {"fit_fraction": share / 100})

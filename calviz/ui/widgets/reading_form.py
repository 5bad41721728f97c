"""The form that says how a file is read: one widget per item of `ReadingOptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from calviz.data import ReadingOptions, Recognition
from calviz.text.words import shorten

_AS_RECOGNISED = "as recognised"
_NONE = "none"


def reading_form(
    key: str,
    options: ReadingOptions,
    recognition: Recognition | None,
    *,
    columns: Sequence[str] = (),
) -> ReadingOptions | None:
    """Draw the form; return the submitted options, or None.

    Parameters
    ----------
    key : str
        Begins the keys of the widgets.
    options : ReadingOptions
        What the widgets show at first.
    recognition : Recognition, optional
        Of the file, whose columns are offered.
    columns : sequence of str
        The columns of a file that could not be recognised; without any, names of columns are typed.
    """
    columns = list(recognition.columns) if recognition else list(columns)
    with st.form(f"calviz.reading.{key}", border=False):
        left, right = st.columns(2)
        with left:
            chosen = _scores_and_label(key, options, columns)
        with right:
            chosen |= _columns_beside_the_scores(key, options, columns)
            chosen["choices"] = _choices(
                f"{key}.choices", options.choices, recognition.choices if recognition else ()
            )
            chosen["class_names"] = _class_names(f"{key}.names", options.class_names)
        if not st.form_submit_button("Read it this way"):
            return None
    return ReadingOptions(**chosen, repair=options.repair)


def _scores_and_label(key: str, options: ReadingOptions, columns: Sequence[str]) -> dict[str, Any]:
    """Draw what the scores and the labels are; return the options by name."""
    kind = st.selectbox(
        "Kind",
        [_AS_RECOGNISED, "probabilities", "logits"],
        index=[None, "probabilities", "logits"].index(options.kind),
        key=f"{key}.kind",
    )
    label = _column("Label column", f"{key}.label", columns, options.label)
    scores = st.multiselect(
        "Score columns",
        columns,
        default=[c for c in options.scores or () if c in columns],
        key=f"{key}.scores",
        placeholder=_AS_RECOGNISED,
        accept_new_options=True,
        help="In the order of the classes; or type a prefix that ends in *, such as p_*.",
    )
    base = st.selectbox(
        "Number labels count from",
        [_AS_RECOGNISED, "0", "1"],
        index=[None, 0, 1].index(options.label_base),
        key=f"{key}.base",
    )
    return {
        "kind": None if kind == _AS_RECOGNISED else kind,
        "label": label,
        "scores": tuple(scores) or None,
        "label_base": None if base == _AS_RECOGNISED else int(base),
    }


def _columns_beside_the_scores(
    key: str, options: ReadingOptions, columns: Sequence[str]
) -> dict[str, Any]:
    """Draw the choice of the columns that are neither scores nor label; return the options by name."""
    split = _column("Split column", f"{key}.split", columns, options.split_column, none=True)
    identifier = _column("Identifier column", f"{key}.id", columns, options.id_column, none=True)
    cluster = _column(
        "Cluster column",
        f"{key}.cluster",
        columns,
        options.cluster_column,
        none=True,
        help="Rows belong together by patient, site or customer: rows of one value may depend on each other. Intervals, "
        "p-values and differences then resample these instead of rows. Never guessed.",
    )
    weight = _column(
        "Weight column",
        f"{key}.weight",
        columns,
        options.weight_column,
        none=True,
        help="How much each row counts. Never guessed.",
    )
    weight_kind = st.selectbox(
        "Weights are",
        ["importance", "frequency"],
        index=["importance", "frequency"].index(options.weight_kind),
        key=f"{key}.weight_kind",
        help="importance: on any scale, as in a survey; frequency: counts of aggregated rows.",
    )
    time = _column("Time column", f"{key}.time", columns, options.time_column, none=True)
    groups = st.multiselect(
        "Group columns",
        [_NONE, *columns],
        default=_groups_default(options, columns),
        key=f"{key}.groups",
        placeholder=_AS_RECOGNISED,
        accept_new_options=not columns,
        help="Columns to slice by.",
    )
    return {
        "split_column": split,
        "id_column": identifier,
        "cluster_column": cluster or None,
        "weight_column": weight or None,
        "weight_kind": weight_kind,
        "time_column": time,
        "groups": tuple(name for name in groups if name != _NONE) if groups else None,
    }


def _class_names(key: str, chosen: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Draw the box for the names of the classes; return them, or None if it is empty."""
    names = st.text_area(
        "Class names, one per line",
        value="\n".join(chosen or ()),
        key=key,
        placeholder=_AS_RECOGNISED,
        height=90,
        help="In the order of the score columns.",
    )
    return tuple(line.strip() for line in names.splitlines() if line.strip()) or None


def _choices(key: str, chosen: str | None, numbers: Sequence[int]) -> str | None:
    """Draw the choice of how questions with choices become rows; without such questions, draw nothing."""
    if not numbers:
        return chosen
    words = {"top": "the top choice of each", "each": "each choice by itself"}
    words |= {str(k): f"the questions with {k} choices" for k in numbers}
    options = [_AS_RECOGNISED, *words]
    value = st.selectbox(
        "Questions with choices",
        options,
        index=options.index(chosen) if chosen in options else 0,
        format_func=lambda option: words.get(option, option),
        key=key,
        help="Each choice by itself: its probability against whether it is the right one; questions are the clusters.",
    )
    return None if value == _AS_RECOGNISED else value


def _column(
    label: str,
    key: str,
    columns: Sequence[str],
    chosen: str | None,
    *,
    none: bool = False,
    help: str | None = None,
) -> str | None:
    """Draw the choice of a column; return its name, None if it is to be recognised, or "" for none."""
    options = [_AS_RECOGNISED, *([_NONE] if none else []), *columns]
    at = _AS_RECOGNISED if chosen is None else (chosen or _NONE)
    value = st.selectbox(
        label,
        options,
        index=options.index(at) if at in options else 0,
        format_func=lambda text: shorten(text, 60),
        key=key,
        accept_new_options=not columns,
        filter_mode="contains",
        help=help,
    )
    if value in (None, _AS_RECOGNISED):
        return None
    return "" if none and value == _NONE else value


def _groups_default(options: ReadingOptions, columns: Sequence[str]) -> list[str]:
    if options.groups == ():
        return [_NONE]
    return [c for c in options.groups or () if c in columns]

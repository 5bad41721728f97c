"""The sidebar's widgets for model, split, reduction, bins and slice; their values are part of the address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.core.bins import DEFAULT_BINS, Scheme
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction, ReductionKind
from calviz.results.slices import Where, rows_where
from calviz.text.words import distinct, shorten
from calviz.ui.session import open_files, setting_requests, settings

_DEFAULT = "calviz.default_reduction"
_HELP: Mapping[ReductionKind, str] = {
    "top-label": "the largest probability, and whether its class is the true one",
    "top-r": "the r-th largest probability, and whether its class is the true one",
    "within-top-r": "the sum of the r largest probabilities, and whether the true class is among them",
    "class": "the probability of one class, and whether it is the true one (one against the rest)",
    "positive": "the probability of the second class, and whether it is the true one",
}


def draw() -> settings.Settings:
    """Draw the widgets and keep what they choose as the current settings."""
    entry = open_files.current()
    requests = setting_requests.take()
    models = tuple(entry.loaded.models)
    model = models[0]
    if len(models) > 1:
        model = _choose("Model", "model", models, requests)
    data = entry.loaded.models[model]
    split = _split(data, entry.loaded.recognition.eval_split, requests)
    reduction = _reduction(data, requests)
    scheme, bins = _bins(requests)
    where = _slice(data, requests)
    chosen = settings.Settings(entry, model, split, reduction, bins, scheme, where)
    settings.set_current(chosen)
    return chosen


def _choose(
    label: str,
    key: str,
    names: Sequence[str],
    requests: Mapping[str, str],
    *,
    default: str | None = None,
    help: str | None = None,
) -> str:
    """Draw a list to choose from; the address holds the name as it is shown."""
    shown = distinct(tuple(names))
    if key in requests:
        _put(key, {text: name for name, text in shown.items()}.get(requests[key]), requests[key])
    chosen = st.selectbox(
        label,
        list(names),
        index=list(names).index(default) if default is not None and default in names else 0,
        format_func=lambda name: shown.get(name, str(name)),
        key=key,
        bind="query-params",
        filter_mode="contains",
        help=help,
    )
    return chosen if chosen is not None else names[0]


def _put(key: str, value: Any, shown: str) -> None:
    if value is None:
        return
    st.session_state[key] = value
    # A widget that is drawn for the first time does not write a value that was put into the state
    # to the address; one that was there before does, and lets nobody else write it.
    with suppress(StreamlitAPIException):
        st.query_params[key] = shown


def _split(data: Dataset, default: str | None, requests: Mapping[str, str]) -> str | None:
    if data.splits is None:
        return None
    chosen = _choose(
        "Evaluation split",
        "split",
        (settings.ALL_ROWS, *data.split_names),
        requests,
        default=default,
        help="The rows that all pages measure.",
    )
    return None if chosen == settings.ALL_ROWS else chosen


def _reduction(data: Dataset, requests: Mapping[str, str]) -> Reduction:
    if data.kind == "confidence":
        st.caption("Reduction: top label, the only one that confidence-only data allow.")
        return Reduction()
    kinds: tuple[ReductionKind, ...] = ("top-label", "top-r", "within-top-r", "class")
    if data.n_classes == 2:
        kinds = ("positive", "top-label")
    _follow_default(Reduction.default(data).kind)
    help = "Which score is compared with which event.\n\n" + "\n".join(
        f"- {kind}: {_HELP[kind]}" for kind in kinds
    )
    kind = _choose("Reduction", "reduction", kinds, requests, help=help)
    st.caption(f"Score and hit: {_HELP[kind]}.")  # type: ignore[index]
    if kind in ("top-r", "within-top-r"):
        if "r" in requests and requests["r"].isdigit():
            r = min(max(int(requests["r"]), 2), data.n_classes)
            _put("r", r, str(r))
        elif st.session_state.get("r", 2) > data.n_classes:
            st.session_state["r"] = 2
        # "min" is the default, and also streamlit's way to say that the state holds the value.
        r = st.number_input(
            "r", 2, data.n_classes, "min", key="r", bind="query-params", help="The rank, 2 or more."
        )
        return Reduction(kind, int(r))  # type: ignore[arg-type]
    if kind == "class":
        name = _choose("Class", "class", data.class_names, requests, help="Type to search.")
        return Reduction("class", class_name=name)
    return Reduction(kind)  # type: ignore[arg-type]


def _follow_default(default: ReductionKind) -> None:
    """Switch to the default reduction of this data set if that of the previous one was not changed."""
    before = st.session_state.get(_DEFAULT, default)
    st.session_state[_DEFAULT] = default
    if before != default and st.session_state.get("reduction") == before:
        st.session_state["reduction"] = default


def _bins(requests: Mapping[str, str]) -> tuple[Scheme, int]:
    scheme = _choose(
        "Bins",
        "scheme",
        settings.SCHEMES,
        requests,
        help="equal-width: edges at 0, 1/M, 2/M, ...; equal-mass: equally many rows in each bin; "
        "sturges: equal width, with a number of bins that follows from the number of rows.",
    )
    if scheme == "sturges":
        return "sturges", DEFAULT_BINS
    is_requested = "bins" in requests and requests["bins"].isdigit()
    if is_requested:
        count = min(max(int(requests["bins"]), 1), settings.MAX_BINS)
        _put("bins", count, str(count))
    # No default where the state is set in this run: streamlit warns about two values.
    usual: int | Literal["min"] = "min" if is_requested else DEFAULT_BINS
    bins = st.number_input(
        "Number of bins", 1, settings.MAX_BINS, usual, key="bins", bind="query-params"
    )
    return scheme, int(bins)  # type: ignore[return-value]


def _slice(data: Dataset, requests: Mapping[str, str]) -> Where:
    conditions: list[tuple[str, str]] = []
    for column_key, value_key, label, none in settings.CONDITIONS:
        left = [name for name in data.groups if name not in dict(conditions)]
        if not left:
            break
        column = _choose(label, column_key, (none, *left), requests, help="Look at some rows only.")
        if column not in left:
            break
        # A second condition offers only values that occur in the rows of the first one.
        mask = rows_where(data, tuple(conditions))
        factor = data.groups[column] if mask is None else data.groups[column].take(mask)
        value = _choose(f"Rows where {shorten(column, 30)} is", value_key, factor.levels, requests)
        conditions.append((column, value))
    return tuple(conditions)

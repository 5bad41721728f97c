"""Which methods are fitted on which rows: the choices, in the address and kept by the session."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
from streamlit.errors import StreamlitAPIException

from calviz.comparison import Suggestion, choose_rows, suggest
from calviz.comparison.rows import Rows
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.core.recalibrator import RECALIBRATORS
from calviz.data.types import FIT_SPLITS
from calviz.ui import cached, zeros
from calviz.ui.settings import Settings
from calviz.ui.text import distinct, md, rows

#: How rows are divided.
HOW = {"split": "splits of the file", "share": "a random share", "folds": "cross-fitting"}
OTHERS = "all other rows"
SEED = 0
#: Widgets whose choices outlive a visit to another page.
KEYS = ("methods", "division", "fit", "judge", "share", "folds", "in-sample", "columns", "rank-by")

_KEPT, _SUGGESTED = "calviz.recalibrate.kept", "calviz.recalibrate.suggested"


@dataclass(frozen=True, eq=False)
class Plan:
    """What is compared.

    Attributes
    ----------
    settings : Settings
        Of all splits: the page divides the rows itself.
    methods : tuple of str
    division : dict
        Keyword arguments of `choose_rows`.
    rows : Rows
    options : dict
        Parameters of single methods.
    """

    settings: Settings
    methods: tuple[str, ...]
    division: dict[str, Any]
    rows: Rows
    options: dict[str, dict[str, Any]]

    @property
    def data(self) -> Dataset:
        """The rows of all splits, sliced."""
        return cached.data(self.settings)

    @property
    def content(self) -> tuple[str, ...]:
        """Names the rows and the reduction, for caches."""
        return (*self.settings.rows_key, self.settings.reduction.key)

    @property
    def key(self) -> tuple[str, ...]:
        """Names all of it."""
        return (
            *self.content,
            repr(sorted(self.division.items())),
            repr(self.options),
            *self.methods,
        )


def draw(settings: Settings) -> Plan | None:
    """Draw the choices; None, with the reason on screen, where there is nothing to fit on."""
    _remember()
    whole = replace(settings, split=None)
    data = cached.data(whole)
    division = _division(data, settings)
    try:
        found = choose_rows(data, **division)
    except CalvizError as error:
        st.warning(md(error, 1_000), icon=":material/warning:")
        keep()
        return None
    fit, judged = found.fit, found.evaluation
    st.caption(
        f"Maps are fitted on {rows(fit.rows)} ({md(fit.how)}) and judged on {rows(judged.rows)} "
        f"({md(judged.how)})."
    )
    if found.in_sample:
        st.warning(
            "In-sample: the maps are judged on the very rows that fitted them and look better than "
            "they are.",
            icon=":material/warning:",
        )
    methods = _methods(suggest(data, fit.rows), (*whole.rows_key, str(fit.rows)))
    floor = zeros.draw([data], whole.rows_key)
    keep()
    return Plan(whole, methods, division, found, zeros.options(methods, floor))


def _remember() -> None:
    """Put back what was chosen before another page was looked at; the address comes first."""
    kept: dict[str, Any] = st.session_state.get(_KEPT, {})
    for key, value in kept.items():
        if key not in st.session_state and key not in st.query_params:
            st.session_state[key] = value


def keep() -> None:
    """Remember what the widgets hold."""
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    kept.update({key: st.session_state[key] for key in KEYS if key in st.session_state})


def _division(data: Dataset, settings: Settings) -> dict[str, Any]:
    several = len(data.split_names) > 1
    ways = tuple(HOW) if several else ("share", "folds")
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        if st.session_state.get("division") not in (None, *ways):
            del st.session_state["division"]
        how = st.segmented_control(
            "Divide the rows by",
            ways,
            default=ways[0],
            required=True,
            key="division",
            bind="query-params",
            format_func=lambda way: HOW[way],
            help="A map is fitted on some rows and judged on others, never on the same. "
            "Cross-fitting: the rows are dealt into folds, and each fold is calibrated by a map "
            "that was fitted on the others.",
        )
        if how == "split":
            division = _splits(data, settings)
        elif how == "folds":
            folds = st.number_input("Folds", 2, 20, 5, key="folds", bind="query-params", width=120)
            division = {"cross_fit": int(folds), "seed": SEED}
        else:
            share = st.slider(
                "Share to fit on (%)", 10, 90, 50, 5, key="share", bind="query-params", width=260
            )
            division = {"fit_fraction": share / 100, "seed": SEED}
        with st.popover("In-sample", type="tertiary"):
            st.caption(
                "Judges the maps on the rows that fitted them. That flatters flexible methods: it is "
                "good for seeing overfitting, not for choosing."
            )
            if st.toggle("Fit and judge on the same rows", key="in-sample", bind="query-params"):
                same = division.get("fit_split")
                division = {"in_sample": True}
                if same is not None:
                    division |= {"fit_split": same, "eval_split": same}
    return division


def _splits(data: Dataset, settings: Settings) -> dict[str, Any]:
    names = data.split_names
    known = {name.casefold(): name for name in reversed(names)}
    others = [name for name in names if name != settings.split]
    first = next((known[n] for n in FIT_SPLITS if n in known), others[0])
    fit = _pick("Fit on", "fit", names, first)
    left = (OTHERS, *(name for name in names if name != fit))
    usual = settings.split if settings.split in left else left[1] if len(left) == 2 else OTHERS
    judge = _pick("Judge on", "judge", left, usual)
    division = {"fit_split": fit}
    return division if judge == OTHERS else division | {"eval_split": judge}


def _pick(label: str, key: str, names: tuple[str, ...], default: str) -> str:
    shown = distinct(names)
    if st.session_state.get(key) not in (None, *names):
        _forget(key)
    chosen = st.selectbox(
        label,
        names,
        index=names.index(default),
        key=key,
        bind="query-params",
        format_func=lambda name: shown.get(name, str(name)),
        filter_mode="contains",
        width=200,
    )
    return str(chosen)


def _forget(key: str) -> None:
    del st.session_state[key]
    with suppress(StreamlitAPIException):
        st.query_params.pop(key, None)


def _methods(suggestion: Suggestion, about: tuple[str, ...]) -> tuple[str, ...]:
    possible = [
        s.key for s in RECALIBRATORS if s.key in (*suggestion.methods, *suggestion.left_out)
    ]
    before = st.session_state.get(_SUGGESTED)
    held = st.session_state.get("methods")
    if held is not None:
        # What was suggested and not touched follows the data; a choice stays, as far as it can.
        untouched = before is not None and before[0] != about and list(held) == list(before[1])
        st.session_state["methods"] = (
            list(suggestion.methods) if untouched else [m for m in held if m in possible]
        )
    st.session_state[_SUGGESTED] = (about, suggestion.methods)
    chosen = st.multiselect(
        "Methods",
        possible,
        default=None if "methods" in st.session_state else list(suggestion.methods),
        format_func=lambda key: RECALIBRATORS[key].label,
        key="methods",
        bind="query-params",
        help="The uncalibrated model is always the first row.",
    )
    with st.container(horizontal=True, gap="small"):
        for label, keys in (("Suggested", suggestion.methods), ("All", tuple(possible))):
            st.button(
                label,
                type="tertiary",
                key=f"calviz.methods.{label}",
                on_click=_set_methods,
                args=(keys,),
            )
        with st.popover("Why these?", type="tertiary"):
            _reasons(suggestion)
    return tuple(m for m in possible if m in chosen)


def _set_methods(keys: tuple[str, ...]) -> None:
    st.session_state["methods"] = list(keys)


def _reasons(suggestion: Suggestion) -> None:
    st.caption("Suggested for this many classes and rows. Not among them, but to be had:")
    st.markdown(_listed(suggestion.left_out))
    if suggestion.impossible:
        st.caption("Not possible with these data:")
        by_reason: dict[str, list[str]] = {}
        for key, reason in suggestion.impossible.items():
            by_reason.setdefault(reason, []).append(RECALIBRATORS[key].label)
        for reason, labels in by_reason.items():
            st.markdown(f"{md('; '.join(labels), 1_000)}: {md(reason)}")


def _listed(reasons: Any) -> str:
    return "\n".join(f"- {md(RECALIBRATORS[k].label)}: {md(r)}" for k, r in reasons.items())

"""Which methods are fitted on which rows: the choices, in the address and kept by the session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from calviz.comparison import Suggestion, choose_rows, suggest
from calviz.comparison.rows import Rows
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.core.recalibrator import RECALIBRATORS
from calviz.core.words import as_sentence
from calviz.ui import cached, fit_rows, zeros
from calviz.ui.fit_rows import FitRows
from calviz.ui.settings import Settings
from calviz.ui.text import md, rows

#: Refits that the switch asks for: a standard deviation from these is known to about a sixth.
REFITS = 20

_SUGGESTED = "calviz.recalibrate.suggested"


@dataclass(frozen=True, eq=False)
class Plan:
    """What is compared.

    Attributes
    ----------
    settings : Settings
    fit_rows : FitRows
        The rows that take part, and how they are divided.
    methods : tuple of str
    rows : Rows
    options : dict
        Parameters of single methods.
    refits : int
        How often each method is fitted again, for the variation of the fit.
    """

    settings: Settings
    fit_rows: FitRows
    methods: tuple[str, ...]
    rows: Rows
    options: dict[str, dict[str, Any]]
    refits: int = 0

    @property
    def data(self) -> Dataset:
        """The rows that take part."""
        return self.fit_rows.data

    @property
    def whole(self) -> Dataset:
        """The rows of all splits, sliced."""
        return cached.data(replace(self.settings, split=None))

    @property
    def content(self) -> tuple[str, ...]:
        """Names the rows of all splits and the reduction, for caches."""
        return (*replace(self.settings, split=None).rows_key, self.settings.reduction.key)

    @property
    def key(self) -> tuple[str, ...]:
        """Names all of it."""
        return (
            *self.content,
            *self.fit_rows.key,
            repr(self.options),
            str(self.refits),
            *self.methods,
        )


def draw(settings: Settings) -> Plan | None:
    """Draw the choices; None, with the reason on screen, where there is nothing to fit on."""
    chosen = _division(settings)
    data = chosen.data
    try:
        found = choose_rows(data, **chosen.how)
    except CalvizError as error:
        st.warning(md(as_sentence(str(error)), 1_000), icon=":material/warning:")
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
    about = chosen.settings.rows_key
    methods = _methods(suggest(data, fit.rows), (*about, str(fit.rows)))
    floor = zeros.draw([data], about)
    refits = 0 if found.in_sample else _refits()
    return Plan(settings, chosen, methods, found, zeros.options(methods, floor), refits)


def _refits() -> int:
    with st.popover("Variation of the fit", type="tertiary"):
        st.caption(
            "Intervals are for the maps as fitted. Fitting each method again, to rows drawn from the fitting rows, "
            "adds what the fit itself varies to the differences, and takes as many times longer."
        )
        again = st.toggle(f"Fit each method {REFITS} more times", key="refit", bind="query-params")
    return REFITS if again else 0


def _division(settings: Settings) -> FitRows:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        rows = fit_rows.choose(settings, folds=True)
        with st.popover("In-sample", type="tertiary"):
            st.caption(
                "Judges the maps on the rows that fitted them. That flatters flexible methods: it is "
                "good for seeing overfitting, not for choosing."
            )
            if st.toggle("Fit and judge on the same rows", key="in-sample", bind="query-params"):
                same = rows.how.get("fit_split")
                splits = {} if same is None else {"fit_split": same, "eval_split": same}
                rows = replace(rows, how={"in_sample": True, **splits})
    return rows


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

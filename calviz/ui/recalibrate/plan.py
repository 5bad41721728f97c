"""Which methods are fitted on which rows: the choices, in the address and kept by the session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from calviz.comparison import Division, Plan, Suggestion, suggest
from calviz.comparison.rows import Rows
from calviz.core.errors import CalvizError
from calviz.core.predictions import Dataset
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import as_sentence, counted
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import cap_choice, fit_rows, zero_floor_choice
from calviz.ui.widgets.fit_rows import FitRows
from calviz.ui.widgets.text import md

#: Refits that the switch asks for: a standard deviation from these is known to about a sixth.
REFITS = 20

_SUGGESTED = "calviz.recalibrate.suggested"


@dataclass(frozen=True, eq=False)
class Choice:
    """What a person chose to compare.

    Attributes
    ----------
    settings : Settings
    fit_rows : FitRows
        The rows that take part, and how they are divided.
    rows : Rows
        These rows, divided.
    plan : Plan
    """

    settings: Settings
    fit_rows: FitRows
    rows: Rows
    plan: Plan

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that were chosen."""
        return tuple(self.plan.methods)

    @property
    def data(self) -> Dataset:
        """The rows that take part."""
        return self.fit_rows.data

    @property
    def whole(self) -> Dataset:
        """The rows of all splits, sliced."""
        return replace(self.settings, split=None).sample.data

    @property
    def content(self) -> tuple[str, ...]:
        """Names the rows of all splits and the reduction, for caches."""
        return (*replace(self.settings, split=None).rows_key, self.settings.reduction.key)

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the choice, for caches."""
        return (*self.content, *self.fit_rows.key, repr(self.plan))


def draw(settings: Settings) -> Choice | None:
    """Draw the choices; None, with the reason on screen, where there is nothing to fit on."""
    chosen = _division(settings)
    data = chosen.data
    try:
        rows = chosen.division.rows(data)
    except CalvizError as error:
        st.warning(md(as_sentence(str(error)), 1_000), icon=":material/warning:")
        return None
    fit, judged = rows.fit, rows.evaluation
    st.caption(
        f"Maps are fitted on {counted(fit.rows, 'row')} ({md(fit.how)}) and judged on {counted(judged.rows, 'row')} "
        f"({md(judged.how)})."
    )
    if rows.in_sample:
        st.warning(
            "In-sample: the maps are judged on the very rows that fitted them and look better than "
            "they are.",
            icon=":material/warning:",
        )
    about = chosen.settings.rows_key
    methods = _methods(suggest(data, fit.rows), (*about, str(fit.rows)))
    floor = zero_floor_choice.draw([data], about)
    with st.container(horizontal=True, gap="small"):
        options = cap_choice.draw(methods, zero_floor_choice.options(methods, floor))
        refits = 0 if rows.in_sample else _refits()
    plan = Plan(
        methods=methods,
        division=chosen.division,
        metrics=METRICS.in_table("fits"),
        reduction=settings.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
        options=options,
        refits=refits,
    )
    return Choice(settings, chosen, rows, plan)


def _refits() -> int:
    with st.popover("Variation of the fit", type="tertiary"):
        st.caption(
            "Intervals are for the maps as fitted. Fitting each method again, to rows drawn from the fitting rows, "
            "adds the variation of the fit to the intervals of the differences, and makes the comparison that many times longer."
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
                same = rows.division.fit_split
                division = Division(fit_split=same, eval_split=same, in_sample=True)
                rows = replace(rows, division=division)
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
    st.caption("Suggested for this number of classes and rows. Also available:")
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

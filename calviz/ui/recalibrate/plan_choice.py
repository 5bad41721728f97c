"""The choice of methods and of the rows that they are fitted on, kept in the address and by the session."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from calviz.comparison import Division, Plan
from calviz.comparison.rows import Rows
from calviz.core.predictions import Dataset
from calviz.specs.metric import METRICS
from calviz.text.words import counted
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import fit_rows, method_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.fit_rows import FitRows

#: Number of refits that the toggle asks for: a standard deviation from these has a relative error of about a sixth.
REFITS = 20

#: Height of the label above a field, in pixels.
_LABEL = 26


@dataclass(frozen=True, eq=False)
class PlanChoice:
    """What the user chose to compare.

    Attributes
    ----------
    settings : Settings
    fit_rows : FitRows
        The fitting rows and the evaluation rows, and how they are divided.
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
        """The chosen methods."""
        return tuple(self.plan.methods)

    @property
    def data(self) -> Dataset:
        """The fitting rows and the evaluation rows."""
        return self.fit_rows.data

    @property
    def whole(self) -> Dataset:
        """The rows of all splits, within the slice."""
        return replace(self.settings, split=None).sample.data

    @property
    def content(self) -> tuple[str, ...]:
        """Identifies the rows of all splits and the reduction, for caches."""
        return (*replace(self.settings, split=None).rows_key, self.settings.reduction.key)

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the choice, for caches."""
        return (*self.content, *self.fit_rows.key, repr(self.plan))


def draw(settings: Settings) -> PlanChoice | None:
    """Draw the choices; return None, with the reason on screen, if there is nothing to fit on."""
    chosen_rows = _choose_rows(settings)
    above = st.container()
    methods = method_choice.draw(chosen_rows)
    if methods is None:
        return None
    rows = methods.rows
    with above:
        _draw_rows(rows)
    with methods.line:
        refits = 0 if rows.in_sample else _refits()
    plan = Plan(
        methods=methods.methods,
        division=chosen_rows.division,
        metrics=METRICS.in_table("fits"),
        reduction=settings.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
        options=methods.options,
        refits=refits,
    )
    return PlanChoice(settings, chosen_rows, rows, plan)


def _draw_rows(rows: Rows) -> None:
    fit, judged = rows.fit, rows.evaluation
    st.caption(
        f"Maps are fitted on {counted(fit.rows, 'row')} ({md(fit.how)}) and judged on {counted(judged.rows, 'row')} "
        f"({md(judged.how)})."
    )
    if rows.in_sample:
        st.warning(
            "In-sample: the maps are judged on the very rows that they were fitted on, and look better than "
            "they are.",
            icon=":material/warning:",
        )


def _refits() -> int:
    with st.popover("Variation of the fit", type="tertiary"):
        st.caption(
            "Intervals are for the maps as fitted. Fitting each method again, to rows drawn from the fitting rows, "
            "adds the variation of the fit to the intervals of the differences, and makes the comparison that many times longer."
        )
        is_on = st.toggle(f"Fit each method {REFITS} more times", key="refit", bind="query-params")
    return REFITS if is_on else 0


def _choose_rows(settings: Settings) -> FitRows:
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        rows = fit_rows.choose(settings, folds=True)
        # Beside the fields, not beside their labels.
        aside = st.container(width="content", gap=None)
        aside.space(_LABEL)
        with aside.popover("In-sample", type="tertiary"):
            st.caption(
                "Judges the maps on the rows that they were fitted on. That flatters flexible methods: it is "
                "good for seeing overfitting, not for choosing."
            )
            if st.toggle("Fit and judge on the same rows", key="in-sample", bind="query-params"):
                split = rows.division.fit_split
                division = Division(fit_split=split, eval_split=split, in_sample=True)
                rows = replace(rows, division=division)
    return rows

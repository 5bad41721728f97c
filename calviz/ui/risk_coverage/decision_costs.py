"""Costs of decisions: the threshold that costs least, and what miscalibration adds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from calviz.figures.decision_cost import Decision
from calviz.figures.kernels.threshold_costs import Costs
from calviz.text.words import capitalised, keep_units_together, percent
from calviz.ui.risk_coverage import before_after
from calviz.ui.selection import state
from calviz.ui.session import page_guard
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download, diagram
from calviz.ui.widgets.escape import md

_COSTS = {
    "wrong": (
        "A wrong prediction costs",
        10.0,
        "What it costs when a prediction is kept and wrong.",
    ),
    "referred": ("A referral costs", 1.0, "What it costs when an expert decides instead."),
    "right": ("A right prediction costs", 0.0, "Usually 0; a gain is a negative cost."),
}


@st.fragment
def explore(settings: Settings, method: str) -> None:
    """Draw the costs to set, their consequences in words, the curve and the rules; a fragment."""
    with page_guard.boundary():
        costs = _costs()
        figures, fit_words, judged_words = before_after.decisions(settings, method, costs)
        figure, *others = figures
        for one in figures:
            name = f"**{md(capitalised(one.name), 60)}:** " if others else ""
            st.markdown(f"{name}{md(keep_units_together(one.reading()), 1_000)}")
        _of_selected(settings, figure, costs)
        st.caption(_rows_words(costs, fit_words, judged_words))
        diagram.chart(
            figure,
            diagram.as_wide_as_the_page(diagram.plotted(figure, others=others)),
            key="decision",
            filename="cost-of-decisions",
            alt=" ".join(one.describe() for one in figures),
        )
        _table(figures, settings)


def _of_selected(settings: Settings, figure: Decision, costs: Costs) -> None:
    """Say what each rule, made for all rows, costs on the selected ones, before recalibration."""
    chosen = state.current(settings)
    if chosen is None or not chosen.rows.size:
        return
    scored = settings.sample.top_scored
    score, hit = scored.score[chosen.rows], scored.hit[chosen.rows]
    parts = []
    for name, rule in figure.rules.items():
        is_kept = score >= rule.threshold
        wrong = np.count_nonzero(is_kept & ~hit)
        total = costs.total(np.asarray(is_kept.sum(), float), np.asarray(wrong, float), hit.size)
        parts.append(f"{figure.per(float(total) / hit.size)} by {name}")
    st.markdown(
        f"1,000 rows like the selected ones ({md(chosen.name, 200)}) cost {md('; '.join(parts), 400)}."
    )


def _costs() -> Costs:
    with st.container(horizontal=True, gap="medium"):
        costs = {
            name: st.number_input(
                label,
                value=default,
                min_value=-1e9,
                max_value=1e9,
                step=0.5,
                format="%g",
                key=f"cost-{name}",
                bind="query-params",
                help=help,
                width=200,
            )
            for name, (label, default, help) in _COSTS.items()
        }
    return Costs(**{name: float(value) for name, value in costs.items()})


def _rows_words(costs: Costs, fit_words: str, judged_words: str) -> str:
    face = (
        "At face value a prediction is kept where its expected cost, (1 − confidence) × wrong + confidence × right, "
        "is not above that of a referral: "
    )
    if costs.face_value > 1:
        face += "never with these costs."
    elif costs.face_value <= 0:
        face += "always with these costs."
    else:
        face += f"from a confidence of {costs.face_value:.4g} on."
    if fit_words:
        where = (
            f"The best threshold is chosen on {fit_words}; all costs are counted on {judged_words}."
        )
    else:
        where = (
            f"The best threshold is chosen on the same {judged_words} that costs are counted on, which flatters it "
            "a little: there is no other split to choose it on."
        )
    return md(f"{face} {where}", 1_000)


def _table(figures: tuple[Decision, ...], settings: Settings) -> None:
    frame = pd.concat([one.table().assign(model=one.name) for one in figures], ignore_index=True)
    n = figures[0].n
    shown = pd.DataFrame(
        {
            "rule": frame["rule"],
            "confidence ≥": [_threshold(t) for t in frame["threshold"]],
            "referred": [percent(r / n) for r in frame["referred"]],
            "accuracy of the kept": [
                "–" if math.isnan(a) else percent(a) for a in frame["accuracy"]
            ],
            "cost of 1,000": [figures[0].per(c) for c in frame["cost"]],
            "95 % interval": [
                "–" if pd.isna(low) else f"{figures[0].per(low)} to {figures[0].per(high)}"
                for low, high in zip(frame["cost_low"], frame["cost_high"], strict=True)
            ],
        }
    )
    if len(figures) > 1:
        shown.insert(0, "model", frame["model"])
    st.dataframe(shown, hide_index=True, height="content", alt="What each rule costs")
    with st.container(horizontal=True):
        for label, content, name in (
            ("Download the rules as CSV", frame, "rules"),
            ("Download the curve as CSV", figures[0].frame, "costs"),
        ):
            csv_download.button(
                label,
                content,
                f"{settings.file_stem}-{name}.csv",
                key=f"calviz.decision.{name}",
                quiet=True,
            )


def _threshold(value: float) -> str:
    if math.isinf(value):
        return "none kept"
    return "all kept" if value == 0 else f"{value:.4f}"

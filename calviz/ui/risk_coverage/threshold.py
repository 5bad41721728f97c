"""The risk-coverage curve, with a slider for the threshold, other models, and after recalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from calviz.figures.kernels.uncertainty_ranking import RankedBy, ranking_values
from calviz.figures.risk_coverage import ReferralChoice, RiskCoverage, XAxis, YAxis
from calviz.text.words import capitalised, keep_units_together
from calviz.ui.pinned import state as pinned
from calviz.ui.risk_coverage import before_after, coverage_table, other_models
from calviz.ui.selection import state
from calviz.ui.selection.rules import Covered
from calviz.ui.selection.rules import threshold as threshold_of
from calviz.ui.session import page_guard, results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import diagram, interactive_reliability, link_choice, recalibration_choice
from calviz.ui.widgets.escape import md

_X: dict[XAxis, str] = {"coverage": "share kept", "referred": "share referred to an expert"}
_Y: dict[YAxis, str] = {"accuracy": "accuracy", "risk": "risk"}
_CURVE = "risk.curve"
_BY = {"share": "share kept", "threshold": "threshold", "error": "error rate allowed"}


@st.fragment
def explore(settings: Settings, method: str) -> None:
    """Draw the curve, the slider and its sentence; a fragment, so that the slider reacts at once.

    Parameters
    ----------
    settings : Settings
    method : str
        The recalibrator whose curve is added, or `recalibration_choice.NONE`.
    """
    with page_guard.boundary():
        rankings = before_after.rankings_of(settings.whole)
        ranking, x, y = _ranking_and_axes(rankings)
        figure: RiskCoverage
        after: RiskCoverage | None = None
        result: before_after.RecalibratedCurves | None = None
        if method == recalibration_choice.NONE:
            figure = replace(
                results.risk_coverage(settings, ranking),
                name=recalibration_choice.name_of(settings),
            )
        else:
            result = before_after.recalibrated(settings, method)
            figure, after = result.curves[ranking]
        point_of = _slider(figure)
        choice = point_of(figure)
        st.markdown(f"**{md(keep_units_together(choice.sentence), 1_000)}**")
        _of_selected(settings, ranking, choice)
        if result is not None and after is not None:
            sentence = keep_units_together(point_of(after).sentence)
            st.markdown(f"{md(capitalised(after.name))}: {md(sentence, 1_000)}")
            before_after.draw_rows(result, same=before_after.same_curve(figure, after))
        others = [after] if after is not None else []
        others += _others(settings, figure, rankings, result)
        others += _pinned(settings, ranking)
        _clickable(figure, ranking, x=x, y=y, at=choice.coverage or None, others=others)
        _select(ranking, choice)
        coverage_table.draw(figure, after, settings)


def _ranking_and_axes(rankings: tuple[RankedBy, ...]) -> tuple[RankedBy, XAxis, YAxis]:
    """Draw the choice of the ranking and of both axes; return them."""
    with st.container(horizontal=True, gap="medium"):
        ranking = st.segmented_control(
            "Rank by",
            rankings,
            default="confidence",
            required=True,
            key="ranking" if len(rankings) > 1 else "ranking-confidence",
            bind="query-params" if len(rankings) > 1 else None,
            help="confidence: the largest probability; entropy: of all probabilities; margin: "
            "the largest minus the second largest.",
        )
        x: XAxis = link_choice.one_of("Horizontal axis", _X, default="coverage", key="across")
        y: YAxis = link_choice.one_of("Vertical axis", _Y, default="accuracy", key="up")
    return ranking or "confidence", x, y


def _clickable(figure: RiskCoverage, ranking: RankedBy, **options: Any) -> None:
    """Draw the curves; a click on one selects the rows that are kept there. Options are those of `figure.plot`."""
    key = state.key(_CURVE)

    def clicked() -> None:
        points = st.session_state[diagram.widget_key(key)].selection.points
        percent = interactive_reliability.customdata(points[0]) if points else None
        if percent is not None:
            state.choose(Covered("kept", ranking, percent), by=_CURVE)

    drawing = diagram.plotted(figure, **options)
    diagram.chart(
        figure,
        diagram.as_wide_as_the_page(drawing),
        key=key,
        filename="risk-coverage",
        on_select=clicked,
    )


def _select(ranking: RankedBy, choice: ReferralChoice) -> None:
    """Draw buttons that select the kept and the referred rows."""
    percent = round(100 * choice.coverage)
    with st.container(horizontal=True, gap="small"):
        for side in ("kept", "referred"):
            st.button(
                f"Select the {side} rows",
                type="tertiary",
                key=f"calviz.risk.select.{side}",
                on_click=state.choose,
                args=(Covered(side, ranking, percent),),
                disabled=percent == (0 if side == "kept" else 100),
            )


def _of_selected(settings: Settings, ranking: RankedBy, choice: ReferralChoice) -> None:
    """Say how many of the selected rows would be kept, and how many of those are right."""
    chosen = state.current(settings)
    if chosen is None or not chosen.rows.size or isinstance(chosen.rule, Covered):
        return
    sample = settings.sample
    value = ranking_values(sample, ranking)[chosen.rows]
    is_kept = value >= threshold_of(sample, ranking, choice.coverage)
    right_count = int(np.count_nonzero(sample.top_scored.hit[chosen.rows][is_kept]))
    count = int(np.count_nonzero(is_kept))
    of_these = f", and {right_count:,} of these are right" if count else ""
    st.markdown(
        f"Of the selected rows ({md(chosen.name, 200)}), {count:,} of {chosen.rows.size:,} are kept{of_these}."
    )


def _pinned(settings: Settings, ranking: RankedBy) -> list[RiskCoverage]:
    """Return the curve of the pinned state, if that has other rows or another model."""
    pinned_state = pinned.current(settings)
    if pinned_state is None or pinned_state.settings.rows_key == settings.rows_key:
        return []
    curve = results.risk_coverage(pinned_state.settings, ranking)
    name = pinned.difference(replace(pinned_state, method=recalibration_choice.NONE), settings)
    return [replace(curve, name=f"Pinned: {name}")]


def _others(
    settings: Settings,
    figure: RiskCoverage,
    rankings: tuple[RankedBy, ...],
    result: before_after.RecalibratedCurves | None,
) -> list[RiskCoverage]:
    """Return the curves of other rankings and other models, if they are asked for; with a recalibration, of the judged rows."""
    others: list[RiskCoverage] = []
    with st.container(horizontal=True, gap="medium"):
        if len(rankings) > 1 and st.toggle(
            "Compare the rankings", key="compare", bind="query-params"
        ):
            kinds = [r for r in rankings if r != figure.ranking]
            curves = [
                result.curves[r][0] if result else results.risk_coverage(settings, r) for r in kinds
            ]
            others += [replace(curve, name=figure.name) for curve in curves]
        models, left_out = other_models.others(settings)
        if models and other_models.are_wanted():
            judged = None if result is None else result.rows
            of_models = [other_models.curve(settings, m, figure.ranking, judged) for m in models]
            others += [curve for curve in of_models if curve is not None]
            for words in left_out:
                st.caption(md(words, 400))
    return others


def _slider(figure: RiskCoverage) -> Callable[[RiskCoverage], ReferralChoice]:
    """Draw the slider; return a function that gives the chosen point of any curve."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="top"):
        by = link_choice.one_of("Choose by", _BY, default="share", key="by")
        with st.container(width=420):
            if by == "error":
                allowed = st.slider(
                    "Errors allowed among the kept, %",
                    0.0,
                    50.0,
                    5.0,
                    0.5,
                    key="allowed",
                    bind="query-params",
                )
                return lambda curve: curve.at_risk(allowed / 100)
            if by == "threshold":
                return _by_threshold(figure)
            percent = st.slider(
                "Keep, % of the rows", 0, 100, 80, 1, key="keep", bind="query-params"
            )
            return lambda curve: curve.at_coverage(percent / 100)


def _by_threshold(figure: RiskCoverage) -> Callable[[RiskCoverage], ReferralChoice]:
    if figure.ranking == "entropy":
        most = round(math.log(max(2, figure.n_classes)), 2)
        at = st.slider("Keep where the entropy is at most", 0.0, most, most / 2, 0.01)
    else:
        at = st.slider(f"Keep where the {figure.ranking} is at least", 0.0, 1.0, 0.8, 0.005)
    return lambda curve: curve.at_threshold(at)

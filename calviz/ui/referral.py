"""The risk-coverage curve with a slider that says what a threshold does."""

from __future__ import annotations

import math
from typing import get_args

import streamlit as st

from calviz.core.export import csv_bytes
from calviz.figures import Choice, RiskCoverage
from calviz.figures.risk_coverage import XAxis, YAxis
from calviz.numerics.uncertainty_ranking import Ranking
from calviz.ui import bins, cached, diagram, guard
from calviz.ui.settings import Settings
from calviz.ui.text import md

_X: dict[XAxis, str] = {"coverage": "share kept", "referred": "share referred to an expert"}
_BY = {"share": "share kept", "threshold": "threshold", "error": "error rate allowed"}


@st.fragment
def explore(settings: Settings) -> None:
    """The curve, the slider and its sentence; a fragment, so that the slider feels live."""
    with guard.boundary():
        rankings: tuple[Ranking, ...] = get_args(Ranking)
        if settings.whole.kind == "confidence":
            rankings = ("confidence",)
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
            x: XAxis = st.segmented_control(
                "Horizontal axis",
                tuple(_X),
                default="coverage",
                required=True,
                key="across",
                bind="query-params",
                format_func=lambda x: _X[x],
            )
            y: YAxis = st.segmented_control(
                "Vertical axis",
                ("accuracy", "risk"),
                default="accuracy",
                required=True,
                key="up",
                bind="query-params",
            )
        figure = cached.risk_coverage(settings, ranking or "confidence")
        choice = _slider(figure)
        st.markdown(f"**{md(choice.sentence, 1_000)}**")
        others: list[RiskCoverage] = []
        if len(rankings) > 1 and st.toggle(
            "Compare the rankings", key="compare", bind="query-params"
        ):
            others = [cached.risk_coverage(settings, r) for r in rankings if r != figure.ranking]
        drawn = figure.plot(
            theme=diagram.theme(), x=x, y=y, at=choice.coverage or None, others=others
        )
        diagram.chart(
            figure,
            diagram.with_room_below(drawn),
            key="risk-coverage",
            filename="risk-coverage",
        )
        _table(figure, settings)


def _slider(figure: RiskCoverage) -> Choice:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        by = st.segmented_control(
            "Choose by",
            tuple(_BY),
            default="share",
            required=True,
            key="by",
            bind="query-params",
            format_func=lambda by: _BY[by],
        )
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
                return figure.at_risk(allowed / 100)
            if by == "threshold":
                return _by_threshold(figure)
            kept = st.slider("Keep, % of the rows", 0, 100, 80, 1, key="keep", bind="query-params")
            return figure.at_coverage(kept / 100)


def _by_threshold(figure: RiskCoverage) -> Choice:
    if figure.ranking == "entropy":
        most = round(math.log(max(2, figure.n_classes)), 2)
        at = st.slider("Keep where the entropy is at most", 0.0, most, most / 2, 0.01)
    else:
        at = st.slider(f"Keep where the {figure.ranking} is at least", 0.0, 1.0, 0.8, 0.005)
    return figure.at_threshold(at)


#: Coverages of the table, in %.
_SHOWN = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)


def _table(figure: RiskCoverage, settings: Settings) -> None:
    choices = [figure.at_coverage(c / 100) for c in _SHOWN]
    choices = [
        c for i, c in enumerate(choices) if c.kept and c.kept not in {d.kept for d in choices[:i]}
    ]
    st.dataframe(
        {
            "kept": [f"{100 * c.coverage:.0f} %" for c in choices],
            "rows kept": [c.kept for c in choices],
            "referred": [c.referred for c in choices],
            "threshold": [c.threshold for c in choices],
            "accuracy": [100 * c.accuracy for c in choices],
            "95 % interval": [
                f"{100 * c.interval.low:.1f} to {100 * c.interval.high:.1f} %" if c.interval else ""
                for c in choices
            ],
        },
        hide_index=True,
        height="content",
        alt="Accuracy at some coverages",
        column_config={
            "rows kept": st.column_config.NumberColumn(format="localized"),
            "referred": st.column_config.NumberColumn(format="localized"),
            "threshold": st.column_config.NumberColumn(
                f"{figure.ranking} {'≤' if figure.ranking == 'entropy' else '≥'}", format="%.4f"
            ),
            "accuracy": st.column_config.NumberColumn(format="%.1f %%"),
        },
    )
    st.download_button(
        "Download the curve as CSV",
        csv_bytes(figure.frame()),
        f"{bins.file_stem(settings)}-risk-coverage.csv",
        "text/csv",
        icon=":material/download:",
        type="tertiary",
        on_click="ignore",
        key="calviz.risk.download",
    )

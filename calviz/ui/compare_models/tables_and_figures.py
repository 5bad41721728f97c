"""A comparison of models on a page: table, ranking, differences, diagrams."""

from __future__ import annotations

from typing import get_args

import pandas as pd
import streamlit as st

from calviz.figures.drawing.bullet import Bullet
from calviz.figures.miscalibration_plane import MiscalibrationPlane, PlaneScore
from calviz.figures.model_differences import ModelDifferences
from calviz.figures.reliability import Reliability
from calviz.results.comparison import BASIS_WORDS, BEST_IN_WORDS, NOISELESS_WORDS
from calviz.results.comparison_table import ComparisonColumn, marks_words
from calviz.results.metric_words import Written
from calviz.results.model_comparison import ModelComparison
from calviz.results.model_words import ranked_by
from calviz.specs.metric import METRICS, RANKED_BY
from calviz.text.words import distinct, listed
from calviz.ui.session import page_guard
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import bullet, csv_download, diagram, learn_links, link_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.table_marks import cell, marked

#: Width in pixels of a small diagram.
SMALL = 310


def notes(comparison: ModelComparison) -> None:
    """Say how the rows were matched, and what did not match."""
    for note in comparison.alignment.notes:
        left_out = "left out" in note
        st.markdown(f"{':material/warning:' if left_out else ':material/link:'} {md(note, 500)}")
    for m in comparison:
        if not m.ok:
            st.warning(f"{md(m.name, 60)}: {md(m.reason or '', 400)}", icon=":material/warning:")


def judge_by(comparison: ModelComparison) -> str | None:
    """Draw the choice of the metric that ranks the models; None if no metric has paired differences."""
    keys = ranked_by(comparison)
    if not keys:
        return None
    chosen = link_choice.one_of(
        "Judge by",
        {key: METRICS[key].label for key in keys},
        default=keys[0],
        key="models-by" if RANKED_BY in keys else "models-by-confidence",
        help="NLL and the Brier score reward accuracy and calibration together; ECE and KS look at "
        "calibration alone.",
    )
    return chosen or keys[0]


def metrics_table(comparison: ModelComparison) -> None:
    """Draw all metrics of all models: best bold, second underlined, ties marked."""
    columns = [
        column
        for column in comparison.columns(comparison.directions)
        if any(result.available for result in column.results.values())
    ]
    names = [m.name for m in comparison if m.ok]
    shown = {"model": [md(name, 60) for name in names]}
    shown |= {_heading(column): [cell(column, name) for name in names] for column in columns}
    second = [(names.index(name), at) for at, c in enumerate(columns) for name in c.second]
    st.table(marked(pd.DataFrame(shown).set_index("model"), second=second), border="horizontal")
    st.caption(f"{marks_words()} Binned metrics: {comparison.bins_words}.")
    for remark in comparison.remarks(columns):
        if remark.metric is not None:
            models = ", ".join(md(n, 60) for n in remark.of)
            st.caption(f"{METRICS[remark.metric].label} of {models}: {md(remark.text, 500)}")
        elif remark.kind == "differences":
            st.caption(md(remark.text, 1_000))


def _heading(column: ComparisonColumn) -> str:
    unit = column.written.unit_words
    link = f"[{METRICS[column.key].label}]({learn_links.address(column.key)})"
    return f"{link} ({unit})" if unit else link


def ranking(comparison: ModelComparison, metric: str, reference: str) -> None:
    """Draw rank, value, difference to the reference and share of resamples in which a model is best, model by model."""
    rows, ranks = [], comparison.ranks(metric)
    pictures = bullet.column(Bullet.column(comparison[name].metrics[metric] for name in ranks))
    # The same digits as in the table of all metrics, from which readers take the differences.
    written = Written.column(comparison[name].metrics[metric] for name in ranks)
    for (name, rank), picture in zip(ranks.items(), pictures, strict=True):
        result = comparison[name].metrics[metric]
        difference = comparison.difference(metric, name, reference) if name != reference else None
        figure = ModelDifferences.compute(comparison, metric=metric, reference=reference)
        rows.append(
            {
                "rank": rank,
                "model": name,
                "picture": picture,
                METRICS[metric].label: written.of(result.value),
                "95 % interval": written.interval(result.interval).removeprefix(
                    "95\u00a0% interval "
                ),
                "difference": "reference" if difference is None else figure.text(difference),
                "beyond noise": "" if difference is None else figure.side(difference),
                "best in": 100 * comparison[name].best_share[metric],
            }
        )
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height="content",
        alt=f"Models ranked by {METRICS[metric].label}",
        column_config={
            "rank": st.column_config.NumberColumn(
                width=60, help="1 plus the number of models that are better beyond noise."
            ),
            "picture": bullet.config(),
            "difference": st.column_config.TextColumn(
                f"minus {listed([reference], limit=60)}",
                help="With its 95 % interval; of errors that noise makes larger, without that noise.",
            ),
            "best in": st.column_config.NumberColumn(
                "best in resamples",
                format="%.0f %%",
                help=BEST_IN_WORDS[0].upper() + BEST_IN_WORDS[1:] + ".",
            ),
        },
    )


@st.fragment
def differences(comparison: ModelComparison, metric: str) -> None:
    """Draw the ranking, and paired differences to a model that can be chosen."""
    with page_guard.boundary():
        order = comparison.ranking(metric)
        shown = distinct(order, 60)
        reference = st.selectbox(
            "Compare with",
            order,
            format_func=lambda name: shown.get(name, str(name)),
            # A new key for other models or another order, so that the best one is preselected.
            key=f"calviz.models.reference.{metric}.{hash(order)}",
            width=320,
        )
        ranking(comparison, metric, reference)
        keys = [metric, *(k for k in comparison.pairs if k not in (metric, "error"))]
        with st.container(horizontal=True, gap="medium"):
            for key in keys:
                figure = ModelDifferences.compute(comparison, metric=key, reference=reference)
                with st.container(width=470):
                    diagram.chart(
                        figure,
                        key=f"models.difference.{key}",
                        filename=f"models-{key}",
                    )
        st.caption(
            "◆ the model compared with; ● better and ■ worse beyond noise, ○ tied, with all pairs of models taken into "
            "account: the chance that any of several equal models is called better is 5\u00a0%. "
            f"{BASIS_WORDS} {NOISELESS_WORDS} Every resample draws the same rows for all models."
        )
        _table(comparison, reference)


def _table(comparison: ModelComparison, reference: str) -> None:
    with st.expander("All differences, as a table", icon=":material/table:"):
        frame = comparison.differences(reference)
        st.dataframe(frame, hide_index=True, alt="Paired differences of all metrics")
        csv_download.button(
            "Download as CSV", frame, "models-differences.csv", key="calviz.models.download"
        )


@st.cache_resource(scope="session", max_entries=16, show_spinner=False)
def _plane(
    key: tuple[str, ...], score: PlaneScore, _comparison: ModelComparison
) -> MiscalibrationPlane:
    return MiscalibrationPlane.compute(_comparison, score=score)


def planes(comparison: ModelComparison, key: tuple[str, ...], settings: Settings) -> None:
    """Draw miscalibration against discrimination for both proper scores."""
    with st.container(horizontal=True, gap="medium"):
        for score in get_args(PlaneScore):
            figure = _plane(
                (*key, *settings.rows_key, *settings.reduction_and_bins_key), score, comparison
            )
            with st.container(width=470):
                diagram.chart(
                    figure,
                    diagram.plotted(figure, caption=True),
                    key=f"models.plane.{score}",
                    filename=f"models-plane-{score}",
                )
    st.caption(
        "A score is miscalibration − discrimination + uncertainty (CORP): recalibration takes off the first and leaves the second. Dotted: "
        "equal scores, where all models have the same hits. Up and to the left is better."
    )


@st.cache_resource(scope="session", max_entries=48, show_spinner=False)
def _reliability(
    key: tuple[str, ...], name: str, _comparison: ModelComparison, _settings: Settings
) -> Reliability:
    sample = _settings.sample.with_data(_comparison.alignment.models[name])
    return Reliability.compute(sample, band=False)


def diagrams(comparison: ModelComparison, key: tuple[str, ...], settings: Settings) -> None:
    """Draw reliability diagrams side by side; all axes run from 0 to 1."""
    names = [m.name for m in comparison if m.ok]
    shown = distinct(tuple(names), 40)
    with st.container(horizontal=True, gap="small"):
        for at, name in enumerate(names):
            figure_key = (*key, *settings.rows_key, *settings.reduction_and_bins_key)
            figure = _reliability(figure_key, name, comparison, settings)
            with st.container(width=SMALL):
                st.markdown(f"**{md(shown[name])}**")
                diagram.chart(
                    figure,
                    diagram.plotted(figure, width=SMALL),
                    key=f"models.reliability.{at}",
                    filename=f"reliability-{at + 1}",
                )
    st.caption(
        "All diagrams share their axes; the shares of rows below them have scales of their own."
    )

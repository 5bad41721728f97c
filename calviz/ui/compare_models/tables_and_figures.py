"""A comparison of models on a page: table, ranking, differences, diagrams."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from calviz.comparison.models_words import ranked_by
from calviz.core.comparison import BEST_IN_WORDS, TIED_WORDS, value_notes
from calviz.core.export import csv_bytes
from calviz.core.metric import METRICS
from calviz.core.model_comparison import ModelComparison
from calviz.core.results import MetricResult
from calviz.core.words import listed
from calviz.figures import ModelDifferences, Reliability
from calviz.ui import diagram, guard, learn
from calviz.ui.marks import marked
from calviz.ui.settings import Settings
from calviz.ui.text import Written, distinct, md

#: Pixels of one of the small diagrams.
SMALL = 310


def notes(found: ModelComparison) -> None:
    """How the rows were matched, and what did not match."""
    for note in found.alignment.notes:
        left_out = "left out" in note
        st.markdown(f"{':material/warning:' if left_out else ':material/link:'} {md(note, 500)}")
    for m in found:
        if not m.ok:
            st.warning(f"{md(m.name, 60)}: {md(m.reason or '', 400)}", icon=":material/warning:")


def judge_by(found: ModelComparison) -> str | None:
    """The metric that ranks the models; None where nothing is paired."""
    keys = ranked_by(found)
    if not keys:
        return None
    chosen = st.segmented_control(
        "Judge by",
        keys,
        default=keys[0],
        required=True,
        key="models-by" if "nll" in keys else "models-by-confidence",
        bind="query-params",
        format_func=lambda key: METRICS[key].label,
        help="NLL and the Brier score reward accuracy and calibration together; ECE and KS look at "
        "calibration alone.",
    )
    return chosen or keys[0]


def metrics_table(found: ModelComparison) -> None:
    """All metrics of all models: best bold, second underlined, ties marked."""
    keys = [k for k in found.directions if any(m.ok and m.metrics[k].available for m in found)]
    columns: dict[str, list[str]] = {"model": [md(m.name, 60) for m in found if m.ok]}
    second = []
    for at, key in enumerate(keys):
        results = {m.name: m.metrics[key] for m in found if m.ok}
        columns[_heading(key)] = _marked(found, key, results)
        second += [(list(results).index(name), at) for name in found.leaders(key)[1]]
    st.table(marked(pd.DataFrame(columns).set_index("model"), second=second), border="horizontal")
    st.caption(f"Bold: best. ≈: {TIED_WORDS}. Underlined: the best of the others.")
    for name, key, note in value_notes({m.name: m.metrics for m in found}, keys):
        st.caption(f"{METRICS[key].label} of {md(name, 60)}: {md(note, 500)}")


def _heading(key: str) -> str:
    unit = Written(MetricResult(key, 1.0)).unit_words
    return f"[{METRICS[key].label}]({learn.address(key)}){f' ({unit})' if unit else ''}"


def _marked(found: ModelComparison, key: str, results: Mapping[str, MetricResult]) -> list[str]:
    best, *_ = found.ranking(key) or ("",)
    first, _ = found.leaders(key)
    written = Written.column(results.values())
    cells = []
    for name, result in results.items():
        text = md(written.of(result.value) if result.available else "–")
        if name in first:
            text = f"**{text}**"
        cells.append(f"{text}\u00a0≈" if name in first and name != best else text)
    return cells


def ranking(found: ModelComparison, metric: str, reference: str) -> None:
    """Rank, value, difference to the reference and share of best, model by model."""
    rows = []
    for name, rank in found.ranks(metric).items():
        written = Written(found[name].metrics[metric])
        low_high = found[name].metrics[metric].interval
        difference = found.difference(metric, name, reference) if name != reference else None
        figure = ModelDifferences.compute(found, metric=metric, reference=reference)
        rows.append(
            {
                "rank": rank,
                "model": name,
                METRICS[metric].label: written.value,
                "95 % interval": written.interval(low_high).removeprefix("95\u00a0% interval "),
                "difference": "reference" if difference is None else figure.text(difference),
                "beyond noise": "" if difference is None else figure.side(difference),
                "best in": 100 * found[name].best_share[metric],
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
def differences(found: ModelComparison, metric: str) -> None:
    """Ranking and paired differences to a model that can be chosen."""
    with guard.boundary():
        order = found.ranking(metric)
        shown = distinct(order, 60)
        reference = st.selectbox(
            "Compare with",
            order,
            format_func=lambda name: shown.get(name, str(name)),
            # Of other models, or another order, the best is the one to begin with.
            key=f"calviz.models.reference.{metric}.{hash(order)}",
            width=320,
        )
        ranking(found, metric, reference)
        keys = [metric, *(k for k in found.pairs if k not in (metric, "error"))]
        with st.container(horizontal=True, gap="medium"):
            for key in keys:
                figure = ModelDifferences.compute(found, metric=key, reference=reference)
                with st.container(width=470):
                    diagram.chart(
                        figure,
                        figure.plot(theme=diagram.theme(), width=diagram.page_width()),
                        key=f"models.difference.{key}",
                        filename=f"models-{key}",
                    )
        st.caption(
            "◆ the model compared with; ● better and ■ worse beyond noise, with all pairs of models taken into "
            "account: that any of several equal models is called better has a chance of 5 %. Each 95 % interval "
            "stands for itself. Errors that noise makes larger are compared without that noise, so that a "
            "difference may not be that of the two values. Every resample draws the same rows for all models."
        )
        _table(found, reference)


def _table(found: ModelComparison, reference: str) -> None:
    with st.expander("All differences, as a table", icon=":material/table:"):
        frame = found.differences(reference)
        st.dataframe(frame, hide_index=True, alt="Paired differences of all metrics")
        st.download_button(
            "Download as CSV",
            csv_bytes(frame),
            "models-differences.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="calviz.models.download",
        )


@st.cache_resource(scope="session", max_entries=48, show_spinner=False)
def _reliability(
    key: tuple[str, ...],
    name: str,
    reduction: str,
    bins: int,
    scheme: str,
    _found: ModelComparison,
    _settings: Settings,
) -> Reliability:
    return Reliability.compute(
        _found.alignment.models[name],
        reduction=_settings.reduction,
        bins=bins,
        scheme=_settings.scheme,
        band=False,
    )


def diagrams(found: ModelComparison, key: tuple[str, ...], settings: Settings) -> None:
    """Reliability diagrams side by side; all axes run from 0 to 1."""
    names = [m.name for m in found if m.ok]
    shown = distinct(tuple(names), 40)
    with st.container(horizontal=True, gap="small"):
        for at, name in enumerate(names):
            figure = _reliability(
                (*key, *settings.rows_key),
                name,
                settings.reduction.key,
                settings.bins,
                settings.scheme,
                found,
                settings,
            )
            with st.container(width=SMALL):
                st.markdown(f"**{md(shown[name])}**")
                diagram.chart(
                    figure,
                    figure.plot(theme=diagram.theme(), width=SMALL),
                    key=f"models.reliability.{at}",
                    filename=f"reliability-{at + 1}",
                )
    st.caption(
        "All diagrams share their axes; the shares of rows below them have scales of their own."
    )

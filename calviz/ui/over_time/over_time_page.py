"""The page Over time: the choices, the job that measures each period, and the result."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import streamlit as st

from calviz.comparison import over_time
from calviz.comparison.over_time import MIN_ROWS
from calviz.comparison.subset_over_time import values_of
from calviz.core.arrays import FloatArray, IntArray
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.figures.over_time import OverTimeLine
from calviz.results.over_time import EVERY, Every, OverTime
from calviz.sample.sample import Sample
from calviz.specs.metric import METRICS, RANKED_BY
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import counted
from calviz.ui.selection import state
from calviz.ui.session.jobs import Job
from calviz.ui.session.result_cache import cached_results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import csv_download, diagram, long_work
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.long_work import Button, LongWork, StateWords

PLACE = "over_time"
#: The options for automatic periods and for no recalibration.
_AUTOMATIC, _NONE = "as suits the data", "none"
#: Rows times classes up to which the job starts by itself.
AT_ONCE = 500_000


def explore(settings: Settings) -> None:
    """Draw the choices, the running job, and the periods."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        keys = METRICS.in_table("fits")
        metric = st.selectbox(
            "Metric",
            keys,
            index=keys.index(RANKED_BY) if RANKED_BY in keys else 0,
            format_func=lambda key: METRICS[key].label,
            key="time-metric",
            bind="query-params",
            width=220,
        )
        every = st.selectbox(
            "Periods",
            (_AUTOMATIC, *EVERY),
            key="time-every",
            bind="query-params",
            width=220,
            help="Weeks begin on Monday. Equal counts: ten periods of about as many rows.",
        )
        methods = [spec.key for spec in RECALIBRATORS if spec.key != "identity"]
        method = st.selectbox(
            "Recalibrate on the past by",
            (_NONE, *methods),
            index=1 + methods.index("temperature"),
            format_func=lambda key: key if key == _NONE else RECALIBRATORS[key].label,
            key="time-method",
            bind="query-params",
            width=300,
            help="Before each period the method is fitted on all rows until then.",
        )
    length: Every | None = None if every == _AUTOMATIC else every  # type: ignore[assignment]
    recalibrator = None if method == _NONE else method
    sample = settings.sample
    work = LongWork(
        PLACE,
        (*settings.rows_key, *settings.reduction_and_bins_key, metric, every, method),
        f"Measuring {counted(sample.data.rows, 'row')} over time",
        lambda: lambda job: _work(job, sample, metric, length, recalibrator),
        about=settings.rows_key,
    )
    cells = sample.data.n * max(1, sample.data.n_classes)
    status = long_work.draw(
        work,
        Button("Measure each period", ":material/timeline:"),
        StateWords("Each period, changes, and what recalibration on the past would have given."),
        at_once=cells <= AT_ONCE,
        patience=2.0,
    )
    if status.result is not None:
        _show(status.result, settings)


def _work(
    job: Job, sample: Sample, metric: str, every: Every | None, method: str | None
) -> OverTime:
    return over_time(
        sample,
        metric,
        every=every,
        method=method,
        progress=lambda words, done, total: job.progress(done, total, words),
    )


def _selected(result: OverTime, settings: Settings) -> Iterator[Overlay[FloatArray]]:
    """Yield the metric of the selected rows, period by period."""
    chosen = state.current(settings)
    if chosen is not None and chosen.rows.size:
        key = (
            *settings.rows_key,
            *settings.reduction_and_bins_key,
            chosen.rule.link(),
            result.metric,
            result.every,
        )
        yield Overlay("Selected rows", "selected", _values(key, chosen.rows, result, settings))


@cached_results(6)
def _values(
    key: tuple[str, ...], _rows: IntArray, _result: OverTime, _settings: Settings
) -> FloatArray:
    with _settings.compute_lock:
        return values_of(_settings.sample, _result, _rows)


def _show(result: OverTime, settings: Settings) -> None:
    figure = OverTimeLine.compute(result)
    st.subheader(md(figure.answer(), 1_000), anchor=False)
    if figure.past():
        st.markdown(md(figure.past(), 1_000))
    subsets = tuple(_selected(result, settings))
    diagram.chart(
        figure,
        diagram.as_wide_as_the_page(diagram.plotted(figure, beside=subsets)),
        key=f"over_time.{result.metric}",
        filename=f"over-time-{result.metric}",
    )
    small = (
        f" {counted(result.small, 'period')} with too few rows are left out."
        if result.small
        else ""
    )
    tested = (
        f" A period differs beyond chance where rows dealt out to the periods at random ({result.resamples:,} times) "
        "rarely make one as unusual, all periods taken together (Westfall and Young); that may be a change of the model, "
        "of the labels or of the rows that come."
        if result.resamples
        else ""
    )
    for other in subsets:
        missing = int(np.count_nonzero(np.isnan(other.content)))
        periods = f" in {missing} of {counted(other.content.size, 'period')}" if missing else ""
        few = (
            f"; there is no value{periods}, which hold fewer than {MIN_ROWS} of these rows"
            if missing
            else ""
        )
        st.caption(f"{other.name}: their own value, on which no test is run{few}.")
    st.caption(
        f"By {result.every}, each period with its own interval and noise floor.{tested}{small} "
        "Recalibration on the past sees no row of the period that it is judged on."
    )
    with st.expander("What is drawn, as a table", icon=":material/table:"):
        frame = result.frame()
        st.dataframe(frame, hide_index=True, alt=f"{figure.label} by {result.every}")
        csv_download.button(
            "Download as CSV",
            frame,
            f"{settings.file_stem}-over-time.csv",
            key="calviz.over_time.download",
        )

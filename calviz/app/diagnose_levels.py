"""Folds and sites, and the page Over time: in which parts of the rows, and when, the probabilities are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import navigation, screen, selection, session, tables_and_cards
from calviz.app.jobs import LongWork
from calviz.app.session import Settings, cached_results, md
from calviz.comparison.folds_and_sites import FoldResults, SiteResults, fold_columns, folds, sites
from calviz.comparison.over_time import EVERY, MIN_ROWS, Every, OverTime, over_time, values_of
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, RECALIBRATORS, cheap_method
from calviz.core.predictions import Dataset
from calviz.core.words import counted, shorten
from calviz.figures.marks import Overlay
from calviz.figures.metric_over_time import CurvesByLevel, OverTimeLine, WatchLine
from calviz.verdicts.watching import WatchState, watched

_SITES = "sites"


def chosen_sites(data: Dataset) -> str | None:
    """Return the column of sites that was chosen in this session; None if none was, or these rows do not have it."""
    column = st.session_state.get(_SITES)
    return column if column in data.groups and column not in fold_columns(data) else None


def has_folds(data: Dataset) -> bool:
    """Whether columns hold folds."""
    return bool(fold_columns(data))


def draw_levels(settings: Settings) -> None:
    """Draw folds and sites, folded away unless the link names a column of sites."""
    key = "calviz.levels.open"
    if _SITES in st.query_params:
        st.session_state.setdefault(key, True)
    navigation.draw_folded("Folds and sites", lambda: _explore_levels(settings), key=key)


def _explore_levels(settings: Settings) -> None:
    """Draw the folds, if a column is called so, or the sites of a chosen column."""
    own = fold_columns(settings.whole)
    usual = " and ".join(own) or "none"
    sites_too = [name for name in settings.whole.groups if name not in own]
    chosen = st.selectbox(
        "Folds or sites",
        [usual, *sites_too],
        key=_SITES,
        bind="query-params",
        format_func=lambda one: f"{shorten(one, 40)}{' (folds)' if own and one == usual else ''}",
        width=300,
        help="Folds: a column that is called so. Sites, centres or studies: their slopes, intercepts, O/E, gaps and AUROC are summarised "
        "by random effects.",
    )
    is_of_sites = chosen in sites_too
    if not (is_of_sites or own):
        return
    result = _levels(settings.key, chosen if is_of_sites else None, settings)
    summary = result.summary()
    st.markdown(md(summary.verdict, 500))
    by = chosen if is_of_sites else own
    figure = CurvesByLevel.compute(settings.sample, by, panels=is_of_sites)
    screen.chart(figure, key="calviz.levels", filename="by-level", wide=True)
    table = pd.DataFrame(list(summary.rows), columns=list(summary.header))
    st.dataframe(table, hide_index=True, alt=summary.title)
    st.caption(md(" ".join(summary.notes), 1_000))
    tables_and_cards.download_button("Each as CSV", result.frame, "levels")


@cached_results(3)
def _levels(key: tuple[str, ...], by: str | None, _settings: Settings) -> FoldResults | SiteResults:
    with session.computing(_settings, "Measuring each fold or site …") as sample:
        return folds(sample) if by is None else sites(sample, by)


# ---- Over time

PLACE = "over_time"
#: The options for automatic periods and for no recalibration.
_AUTOMATIC, _NONE = "as suits the data", "none"


def explore_over_time(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choices, the running job, and the periods; `say` replaces the title."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        # First what a shift of the scores shows in; the NLL of rows that are easier falls even where they are off.
        keys = ("mcs", *METRICS.in_table("fits"))
        metric = st.selectbox(
            "Metric",
            keys,
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
            index=1 + methods.index(cheap_method(settings.whole)),
            format_func=lambda key: key if key == _NONE else RECALIBRATORS[key].label,
            key="time-method",
            bind="query-params",
            width=300,
            help="Before each period the method is fitted on all rows until then.",
        )
    length: Every | None = None if every == _AUTOMATIC else every  # type: ignore[assignment]
    sample, waiting = settings.sample, settings.waiting
    work = LongWork(
        PLACE,
        (*settings.key, metric, every, method),
        f"Measuring {settings.row_count} over time",
        lambda: (
            lambda job: over_time(
                sample,
                metric,
                every=length,
                method=None if method == _NONE else method,
                waiting=waiting,
                progress=lambda words, done, total: job.progress(done, total, words),
            )
        ),
        "Measure each period",
        ":material/timeline:",
        about=settings.rows_key,
        idle="Each period, changes, and what recalibration on the past would have given.",
    )
    status = work.draw(at_once=session.cells(sample.data) <= session.AT_ONCE, patience=2.0)
    with st.spinner("Watching …"):
        state = sample.once(watched)
    if status.result is not None:
        if state is not None and state.change is not None:
            st.markdown(
                md(state.sentence(by_chance=False), 1_000), help=md(state.sentence(), 1_000)
            )
        # A lasting change shows in the watch long before one period differs from the others.
        lasting = state if state is not None and state.alarm and state.changed else None
        answer = _draw_periods(status.result, settings, lasting is not None)
        say(lasting.headline if lasting else answer)
        if state is not None and state.alarm and status.result.waiting:
            st.markdown(md(state.doubt, 1_000))
    if state is not None:
        navigation.draw_folded(
            "Watched day by day",
            lambda: _draw_watch(state, settings),
            key="watch",
            icon=":material/notifications:",
        )


def _draw_watch(state: WatchState, settings: Settings) -> None:
    """Draw the e-value of a watch over the days of the rows."""
    st.markdown(md(state.sentence(), 1_000))
    figure = WatchLine.compute(state, name=settings.sample.data.name)
    screen.chart(figure, key="calviz.watch", filename="watch", wide=True)
    st.caption(
        "The wealth of bets against calibration, from 1 at the start; it reaches the line by chance for at most 5 % of calibrated "
        f"scores{state.condition}.",
        help="Bets are on shifts and stretches of the logits, of all rows and of parts, from any day on. "
        "`calviz watch` goes on from day to day.",
    )


def _draw_periods(result: OverTime, settings: Settings, lasting: bool) -> str:
    figure = OverTimeLine.compute(result)
    answer = figure.answer()
    # Where there is a change, the others that a period is compared with are from before and after.
    changed = result.watch is not None and result.watch.change is not None
    # Without a lasting change, the title says the headline.
    if changed or not (lasting or answer != f"{figure.headline}."):
        answer = ""
    for text in filter(None, (answer, figure.past(), figure.before_labels())):
        st.markdown(md(text, 1_000))
    subsets = tuple(_metric_of_selected(result, settings))
    name = f"over-time-{result.metric}"
    screen.chart(figure, key=f"over_time.{result.metric}", filename=name, wide=True, beside=subsets)
    left_out = f" {counted(result.small, 'period')} with too few rows are left out."
    both, too = "", ""
    if len(result.tested) > 1:
        both = " and both metrics"
        too = " The MCS, mean score minus share of hits, is tested too: a shift of the scores shows in it first."
    tested = (
        f" A period differs beyond chance where rows dealt out to the periods at random ({result.resamples:,} times) "
        f"rarely make one as unusual, all periods{both} taken together (Westfall and Young); that may "
        f"be a change of the model, of the labels or of the rows that come.{too}"
    )
    for other in subsets:
        missing = int(np.count_nonzero(np.isnan(other.content)))
        few = (
            f"; there is no value in {missing} of {counted(other.content.size, 'period')}, which hold fewer than {MIN_ROWS} of these "
            "rows"
        ) * (missing > 0)
        st.caption(f"{other.name}: their own value, on which no test is run{few}.")
    st.caption(
        f"By {result.every}, each period with its own interval and noise floor.{left_out if result.small else ''}",
        help=f"Recalibration on the past sees no row of the period that it is judged on.{tested if result.resamples else ''} {figure.cancelling()}",
    )
    tables_and_cards.draw_figure_table(
        result.frame, "over-time", alt=f"{figure.label} by {result.every}"
    )
    return figure.headline


def _metric_of_selected(result: OverTime, settings: Settings) -> Iterator[Overlay[FloatArray]]:
    """Yield the metric of the selected rows, period by period."""
    chosen = selection.current(settings)
    if chosen is not None and chosen.rows.size:
        key = (*settings.key, chosen.rule.link(), result.metric, result.every)
        values = _kept_metric_of_rows(key, chosen.rows, result, settings)
        yield Overlay("Selected rows", "selected", values)


@cached_results(6)
def _kept_metric_of_rows(
    key: tuple[str, ...], _rows: IntArray, _result: OverTime, _settings: Settings
) -> FloatArray:
    with _settings.compute_lock:
        return values_of(_settings.sample, _result, _rows)

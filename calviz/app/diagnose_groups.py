"""The pages Slices and Over time: for which rows, and when, the probabilities are wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import (
    bar,
    interactive_reliability,
    jobs,
    navigation,
    pinning,
    screen,
    selection,
    session,
    tables_and_cards,
)
from calviz.app.jobs import Button, Job, LongWork, StateWords
from calviz.app.open_files import join_parts, request_settings, split_parts
from calviz.app.selection import SliceRule
from calviz.app.session import Settings, cached_results, look_at_slice, md
from calviz.comparison.folds_and_sites import FoldResults, SiteResults, fold_columns, folds, sites
from calviz.comparison.over_time import EVERY, MIN_ROWS, Every, OverTime, over_time, values_of
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, RANKED_BY, RECALIBRATORS
from calviz.core.predictions import Dataset
from calviz.core.words import (
    counted,
    p_number,
    points,
    share_cell,
    shorten,
    signed_points,
    told_apart,
)
from calviz.figures.curves_by_level import CurvesByLevel
from calviz.figures.hundred_squares import Bullet
from calviz.figures.marks import Overlay
from calviz.figures.metric_over_time import OverTimeLine, WatchLine
from calviz.figures.slice_gaps import FeatureGap, SliceGaps, features_drawn
from calviz.sample.multicalibration import multicalibration_words
from calviz.sample.sample import Sample, where_words
from calviz.sample.slices import (
    USUAL_RATE,
    Against,
    Slice,
    Slices,
    edges_of,
    sliceable_columns,
    slices,
    usual_columns,
)
from calviz.verdicts.watching import WatchState, watched

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

#: Largest number of slices in the table; the download has all.
MOST = 2_000
#: Width of the column of pictures in pixels.
_PICTURE = 108
_QUESTION, _MARKS = "calviz.slices.asked", "slices.marks"
_AGAINST: dict[str, Against] = {"a calibrated model": "calibrated", "the other rows": "rest"}


@dataclass(frozen=True)
class SlicesChoice:
    """What the user wants to look at."""

    columns: tuple[str, ...]
    pairs: bool
    against: Against
    min_rows: int
    rate: float


def ask_for_slices(settings: Settings) -> SlicesChoice:
    """Draw the choices, and return and keep them."""
    names = sliceable_columns(settings.whole)
    columns = st.multiselect(
        "Columns",
        names,
        default=list(usual_columns(settings.whole)),
        format_func=lambda name: shorten(f"{name} ({_kind(settings.whole, name)})", 50),
        key="slice-columns",
        bind="query-params",
        help="Numbers and dates are cut at their deciles; of a text with more than 50 values the most frequent 20 are slices, "
        "and all others one. The more slices are looked at, the stronger the evidence has to be.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        against = st.selectbox(
            "Compare with",
            list(_AGAINST),
            key="against",
            bind="query-params",
            width=200,
            help="A calibrated model: is the slice miscalibrated? The other rows: is it worse off than "
            "they are?",
        )
        min_rows = st.number_input(
            "Minimum rows",
            2,
            1_000_000,
            50,
            key="least",
            bind="query-params",
            width=140,
            help="Slices with fewer rows are counted, not measured.",
        )
        rate = st.number_input(
            "False discovery rate, %",
            0.1,
            50.0,
            100 * USUAL_RATE,
            0.5,
            format="%g",
            key="fdr",
            bind="query-params",
            width=190,
            help="Of the slices that are reported as off, at most this share is expected to be so by chance "
            "(Benjamini and Hochberg).",
        )
        pairs = st.toggle(
            "Pairs of columns too",
            value=False,
            key="pairs",
            bind="query-params",
            disabled=len(columns) < 2,
        )
    question = SlicesChoice(
        tuple(columns), pairs, _AGAINST[against or next(iter(_AGAINST))], int(min_rows), rate / 100
    )
    st.session_state[_QUESTION] = (settings.entry.content_key, settings.model, question)
    return question


def _kind(data: Dataset, column: str) -> str:
    """What a column holds: a number, dates, or how many values."""
    cut, texts = data.cuts.get(column), data.groups.get(column, data.texts.get(column))
    if cut is not None and cut.kept is None:
        return "dates" if cut.dates else "number"
    return f"{0 if texts is None else len(texts.levels):,} values"


def last_slices_asked(settings: Settings) -> SlicesChoice | None:
    """Return the last question about these data, if there was one."""
    content, model, question = st.session_state.get(_QUESTION, ("", "", None))
    if (content, model) != (settings.entry.content_key, settings.model):
        return None
    return question if question is None or question.columns else None


def draw_sizes(settings: Settings, question: SlicesChoice) -> None:
    """Draw how many rows the values of each column have."""
    data = settings.sample.data
    lines = []
    for name in question.columns:
        counts = sorted(data.sliced(name).counts().values())
        enough = sum(n >= question.min_rows for n in counts)
        lines.append(
            {
                "column": shorten(name, 60),
                "values": len(counts),
                "with enough rows": enough,
                "fewest rows": counts[0],
                "median rows": counts[len(counts) // 2],
                "most rows": counts[-1],
            }
        )
    frame = pd.DataFrame(lines)
    count = st.column_config.NumberColumn(format="localized")
    columns = dict.fromkeys(frame.columns[1:], count)
    st.dataframe(frame, hide_index=True, alt="Rows per value of each column", column_config=columns)


def measure_slices(settings: Settings, question: SlicesChoice) -> Slices:
    """Measure all slices."""
    words = f"Looking at {counted(len(question.columns), 'column')} …"
    with session.computing(settings, words) as sample:
        return _measure(sample, question)


def measure_over_all(settings: Settings, question: SlicesChoice) -> str:
    """The multicalibration error of the columns in words."""
    with session.computing(settings, "Measuring all segments …") as sample:
        return multicalibration_words(sample, question.columns)


def _measure(sample: Sample, question: SlicesChoice) -> Slices:
    return slices(
        sample,
        question.columns,
        pairs=question.pairs,
        against=question.against,
        min_rows=question.min_rows,
        rate=question.rate,
    )


def pinned_gaps(
    settings: Settings, question: SlicesChoice, tested: Slices
) -> Overlay[FloatArray] | None:
    """Return the gap of each slice in the pinned state, shape (S,); NaN if it has too few rows there."""

    def gaps(sample: Sample) -> FloatArray:
        gap_of = {one.where: one.gap for one in _measure(sample, question).slices}
        return np.array([gap_of.get(one.where, np.nan) for one in tested.slices])

    # All slices are measured, whichever one was pinned.
    return pinning.overlay(settings, gaps, as_now=("bins", "scheme", "where"))


def draw_answer(
    tested: Slices,
    settings: Settings,
    pinned: Overlay[FloatArray] | None = None,
    over_all: str = "",
) -> str:
    """Draw the result as a sentence, with that over all segments, and a figure; a click on a mark selects the rows of its slice. Return a title."""
    figure = SliceGaps.compute(tested)
    st.markdown(md(figure.answer(), 500))
    if over_all:
        st.markdown(md(over_all, 700))
    key = selection.widget_key(_MARKS)

    def clicked() -> None:
        points = st.session_state[screen.widget_key(key)].selection.points
        at = interactive_reliability.number_of_point(points[0]) if points else None
        if at is not None:
            selection.choose(SliceRule(figure.shown[at].where), by=_MARKS)

    if tested.slices:
        screen.chart(
            figure,
            screen.as_wide_as_the_page(
                screen.plotted(
                    figure,
                    beside=()
                    if pinned is None
                    else (replace(pinned, content=pinned.content[: len(figure.shown)]),),
                )
            ),
            key=key,
            filename="slices",
            on_select=clicked,
        )
        is_part = len(figure.shown) < len(tested.slices)
        order_words = (
            f"The {len(figure.shown)} slices that are most surely off, of {len(tested.slices):,}."
            if is_part
            else "The most surely off first."
        )
        st.caption(
            f"{order_words} Lines: 95 % intervals. Filled: off beyond chance, all slices looked at together. Dashed: all rows "
            f"({points(tested.gap)} points).",
            help=f"Each interval is for itself.{_why_off_despite_interval(tested)}",
        )
    notes = (
        [
            f"Not measured, with fewer than {tested.min_rows:,} rows: {counted(tested.small, 'slice')}"
        ]
        if tested.small
        else []
    )
    if len(tested.slices) > MOST:
        notes.append(f"the table shows the first {MOST:,} slices, the file all of them")
    notes += [f"left out: {reason}" for reason in tested.skipped]
    if notes:
        st.caption(md("; ".join(notes), 600) + ".")
    _draw_along(tested, settings)
    return figure.headline


def _draw_along(tested: Slices, settings: Settings) -> None:
    """Draw the gap along a number, the one most surely off if none is chosen, and the field of its edges."""
    chosen = edges_of(filter(None, split_parts(settings.cuts)))
    drawn = features_drawn(tested)
    names = tuple(dict.fromkeys([*drawn, *(name for name in tested.cuts if name in chosen)]))
    if not names:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        column = st.selectbox(
            "Along",
            names,
            format_func=lambda name: shorten(name, 50),
            key="slices-along",
            bind="query-params",
            width=280,
        )
        field = f"calviz.edges.{column}"
        error = st.session_state.get(bar.CUTS_ERROR)
        if not error or field not in st.session_state:
            st.session_state[field] = ", ".join(chosen.get(column, ()))

        def changed() -> None:
            given = st.session_state[field].strip()
            edges = chosen | {column: given.split(",")}
            edges = {
                name: list(map(str.strip, e))
                for name, e in edges.items()
                if given or name != column
            }
            request_settings(
                {bar.CUTS: join_parts([f"{n}={','.join(e)}" for n, e in edges.items()])}
            )

        st.text_input(
            "Edges",
            key=field,
            placeholder="deciles",
            on_change=changed,
            width=280,
            help="Ascending numbers or dates with commas between them, such as 30, 50, 65; each is the upper end of an interval.",
        )
    if error:
        st.warning(md(error, 300))
    if column not in drawn:
        return
    along = FeatureGap.compute(tested, column)
    screen.chart(
        along,
        screen.as_wide_as_the_page(screen.plotted(along)),
        key="slices.along",
        filename="slices-along",
    )


def _why_off_despite_interval(tested: Slices) -> str:
    """Explain why a slice is off although its interval contains 0, if there is one."""
    around_zero = [s for s in tested.off if s.interval.low <= 0 <= s.interval.high]
    if not around_zero or tested.against != "calibrated":
        return ""
    one = len(around_zero) == 1
    which = (
        "1 slice that is off contains"
        if one
        else f"{len(around_zero):,} slices that are off contain"
    )
    return (
        f" The {'interval' if one else 'intervals'} of {which} 0: an interval says how precisely these rows measure the gap, the "
        "test whether a calibrated model would show it. Where scores are near 0 or 1, a few surprises rule that out, although "
        "they measure the gap poorly."
    )


def draw_slices_table(
    tested: Slices, settings: Settings, pinned: Overlay[FloatArray] | None = None
) -> None:
    """Draw the table of all slices; a tick selects the rows of one, which can also be shown alone."""
    if not tested.slices:
        return
    by = "slices.table"
    key = f"{selection.widget_key(by)}.{hash((settings.rows_key, tested.against, len(tested.slices)))}"
    shown = tested.slices[:MOST]
    at = _selected_position(shown)

    def picked() -> None:
        rows = st.session_state[key].selection.rows
        selection.choose(SliceRule(shown[rows[0]].where) if rows else None, by=by)

    st.dataframe(
        _styled(tested, pinned),
        hide_index=True,
        height=min(440, 38 + 35 * len(tested.slices)),
        alt="All slices: rows, score, hits, gap, interval and p-value",
        on_select=picked,
        selection_mode="single-row",
        selection_default=tables_and_cards.ticked([] if at is None else [at]),
        key=key,
        column_config=_COLUMNS | {"slice": _names(pinned=pinned is not None)},
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _button_to_look(None if at is None else shown[at], settings)
        tables_and_cards.download_button(
            "All slices as CSV",
            tested.frame,
            f"{settings.file_stem}-slices.csv",
            key="calviz.slices.download",
        )


def _selected_position(shown: Sequence[Slice]) -> int | None:
    """Return the position of the slice whose rows are selected."""
    rule = selection.current_rule()
    where = rule.where if isinstance(rule, SliceRule) else None
    return next((i for i, s in enumerate(shown) if s.where == where), None)


def _styled(tested: Slices, pinned: Overlay[FloatArray] | None) -> Styler:
    """Return the first slices; columns sort as numbers and are written as texts."""
    shown = tested.slices[:MOST]
    limit = {"wide": 46, "usual": 24}.get(screen.width_class(), 22)
    names = told_apart((s.name for s in shown), limit)
    frame = pd.DataFrame(
        {
            "slice": name,
            "rows": s.rows,
            "score": s.score,
            "hits": s.hits,
            "gap": s.gap,
            "95 % interval": f"{points(s.interval.low)} to {points(s.interval.high)}",
            "p-value": s.p_value,
            "adjusted": s.adjusted,
            "off": "yes" if s.adjusted <= tested.rate else "",
            "ECE": s.ece,
            "noise": s.ece_noise,
        }
        for s, name in zip(shown, names, strict=True)
    )
    gaps = [Bullet(s.gap, (s.interval.low, s.interval.high)) for s in tested.slices[:MOST]]
    frame.insert(5, screen.PICTURE_COLUMN, screen.picture_column(gaps, width=_PICTURE))
    if pinned is not None:
        frame.insert(5, "pinned", pinned.content[:MOST])
    formats: Any = {
        **dict.fromkeys(("score", "hits"), share_cell),
        "gap": signed_points,
        **dict.fromkeys(("ECE", "noise"), points),
        **dict.fromkeys(("p-value", "adjusted"), p_number),
    }
    if pinned is not None:
        formats["pinned"] = signed_points
    return frame.style.format(formats)


def _names(*, pinned: bool) -> Any:
    # A column that stays in place must leave room for the numbers, even on a phone, and for those of a pinned state.
    usual = 140 if pinned else 166
    widths = {"narrow": 150, "small": 150, "usual": usual, "wide": 320}
    return st.column_config.TextColumn(width=widths[screen.width_class()], pinned=True)


def _column(width: int, help: str | None = None) -> Any:
    return st.column_config.NumberColumn(width=width, help=help)


_COLUMNS = {
    "rows": st.column_config.NumberColumn(width=58, format="localized"),
    "score": _column(60, "Mean score."),
    "hits": _column(60, "Share of hits."),
    "gap": _column(54, "Score minus hits, in points."),
    "pinned": _column(64, "The gap in the pinned state, in points."),
    screen.PICTURE_COLUMN: screen.picture_column_config(
        "The gap and its interval; the thin line is at 0.", width=_PICTURE
    ),
    "95 % interval": st.column_config.Column(
        width=106, alignment="right", help="Of the gap, in points."
    ),
    "p-value": _column(62),
    "adjusted": _column(70, "The p-value with all slices looked at together."),
    "off": st.column_config.TextColumn(width=38, help="Whether it is off beyond chance."),
    "ECE": _column(48, "In points."),
    "noise": _column(
        52, "The ECE that a calibrated model would show with the same number of rows, in points."
    ),
}


def _button_to_look(one: Slice | None, settings: Settings) -> None:
    if one is None:
        st.caption(
            "Click a mark or tick a row to select the rows of that slice, here and on every page.",
            width="content",
        )
        return
    st.button(
        f"Look at {md(shorten(one.name, 70))} alone",
        help="All pages, their verdicts and tests are then of these rows.",
        type="primary",
        on_click=look_at_slice,
        args=(settings.whole, one.where),
    )


def draw_slice_of_other_pages(chosen: Settings) -> None:
    """Say which slice the other pages show, and offer a way back to all rows."""
    if not chosen.where:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/filter_alt: The other pages look at **{md(where_words(chosen.where))}** "
            f"({chosen.row_count}).",
            width="content",
        )
        st.page_link(
            navigation.link("overview"), label="See its verdict", icon=":material/arrow_forward:"
        )
        st.button("Show all rows", on_click=look_at_slice, args=(chosen.whole, ()))


# ---- Folds and sites

_SITES = "sites"


def chosen_sites(data: Dataset) -> str | None:
    """Return the column of sites that was chosen in this session; None if none was, or these rows do not have it."""
    column = st.session_state.get(_SITES)
    return column if column in data.groups and column not in fold_columns(data) else None


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
        format_func=lambda name: (
            f"{shorten(name, 40)}{' (folds)' if own and name == usual else ''}"
        ),
        width=300,
        help="Folds: a column that is called so. Sites, centres or studies: their slopes, intercepts, O/E, gaps and AUROC are summarised "
        "by random effects.",
    )
    is_of_sites = chosen in sites_too
    if not (is_of_sites or own):
        return
    result = _kept_levels(settings.key, chosen if is_of_sites else None, settings)
    summary = result.summary()
    st.markdown(md(summary.verdict, 500))
    by = chosen if is_of_sites else own
    figure = CurvesByLevel.compute(settings.sample, by, panels=is_of_sites)
    screen.chart(
        figure,
        screen.as_wide_as_the_page(screen.plotted(figure)),
        key="calviz.levels",
        filename="by-level",
    )
    table = pd.DataFrame(list(summary.rows), columns=list(summary.header))
    st.dataframe(table, hide_index=True, alt=summary.title)
    st.caption(md(" ".join(summary.notes), 1_000))
    tables_and_cards.download_button(
        "Each as CSV",
        result.frame,
        f"{settings.file_stem}-levels.csv",
        key="calviz.levels.download",
    )


@cached_results(3)
def _kept_levels(
    key: tuple[str, ...], by: str | None, _settings: Settings
) -> FoldResults | SiteResults:
    with session.computing(_settings, "Measuring each fold or site …") as sample:
        return folds(sample) if by is None else sites(sample, by)


# ---- Over time

PLACE = "over_time"
#: The options for automatic periods and for no recalibration.
_AUTOMATIC, _NONE = "as suits the data", "none"
#: Rows times classes up to which the job starts by itself.
AT_ONCE = 500_000


def explore_over_time(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choices, the running job, and the periods; `say` replaces the title."""
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
    sample, waiting = settings.sample, settings.waiting
    work = LongWork(
        PLACE,
        (*settings.key, metric, every, method),
        f"Measuring {settings.row_count} over time",
        lambda: lambda job: _measure_periods(job, sample, metric, length, recalibrator, waiting),
        about=settings.rows_key,
    )
    cells = sample.data.n * max(1, sample.data.n_classes)
    status = jobs.draw_long_work(
        work,
        Button("Measure each period", ":material/timeline:"),
        StateWords("Each period, changes, and what recalibration on the past would have given."),
        at_once=cells <= AT_ONCE,
        patience=2.0,
    )
    state = _watched((*settings.rows_key, settings.reduction.key), sample)
    if state is not None:
        # A lasting change shows in it long before one period differs from the others.
        st.markdown(md(state.sentence(), 1_000))
    if status.result is not None:
        answer = _draw_periods(status.result, settings)
        say(answer if state is None or not state.alarm else state.headline)
    if state is not None:
        navigation.draw_folded(
            "Watched day by day",
            lambda: _draw_watch(state, settings),
            key="watch",
            icon=":material/notifications:",
        )


def _draw_watch(state: WatchState, settings: Settings) -> None:
    """Draw the e-value of a watch over the days of the rows."""
    figure = WatchLine.compute(state, name=settings.sample.data.name)
    screen.chart(
        figure,
        screen.as_wide_as_the_page(screen.plotted(figure)),
        key="calviz.watch",
        filename="watch",
    )
    st.caption(
        "The wealth of bets against calibration, from 1 at the start; it reaches the line by chance for at most 5 % of calibrated scores.",
        help="Bets are on shifts and stretches of the logits, of all rows and of parts, from any day on. "
        "`calviz watch` goes on from day to day.",
    )


@st.cache_resource(scope="session", max_entries=2, show_spinner="Watching …")
def _watched(key: tuple[str, ...], _sample: Sample) -> WatchState | None:
    return watched(_sample)


def _measure_periods(
    job: Job,
    sample: Sample,
    metric: str,
    every: Every | None,
    method: str | None,
    waiting: Dataset | None,
) -> OverTime:
    return over_time(
        sample,
        metric,
        every=every,
        method=method,
        waiting=waiting,
        progress=lambda words, done, total: job.progress(done, total, words),
    )


def _draw_periods(result: OverTime, settings: Settings) -> str:
    figure = OverTimeLine.compute(result)
    st.markdown(md(figure.answer(), 1_000))
    for text in filter(None, (figure.past(), figure.before_labels())):
        st.markdown(md(text, 1_000))
    subsets = tuple(_metric_of_selected(result, settings))
    screen.chart(
        figure,
        screen.as_wide_as_the_page(screen.plotted(figure, beside=subsets)),
        key=f"over_time.{result.metric}",
        filename=f"over-time-{result.metric}",
    )
    small = (
        f" {counted(result.small, 'period')} with too few rows are left out."
        if result.small
        else ""
    )
    both = len(result.tested) > 1
    tested = (
        f" A period differs beyond chance where rows dealt out to the periods at random ({result.resamples:,} times) "
        f"rarely make one as unusual, all periods{' and both metrics' if both else ''} taken together (Westfall and Young); that may "
        "be a change of the model, of the labels or of the rows that come."
        + (
            " The MCS, mean score minus share of hits, is tested too: a shift of the scores shows in it first."
            if both
            else ""
        )
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
        f"By {result.every}, each period with its own interval and noise floor.{small}",
        help=f"Recalibration on the past sees no row of the period that it is judged on.{tested}",
    )
    tables_and_cards.draw_figure_table(
        result.frame,
        f"{settings.file_stem}-over-time.csv",
        key="calviz.over_time.download",
        alt=f"{figure.label} by {result.every}",
    )
    return figure.headline


def _metric_of_selected(result: OverTime, settings: Settings) -> Iterator[Overlay[FloatArray]]:
    """Yield the metric of the selected rows, period by period."""
    chosen = selection.current(settings)
    if chosen is not None and chosen.rows.size:
        key = (
            *settings.key,
            chosen.rule.link(),
            result.metric,
            result.every,
        )
        yield Overlay(
            "Selected rows", "selected", _kept_metric_of_rows(key, chosen.rows, result, settings)
        )


@cached_results(6)
def _kept_metric_of_rows(
    key: tuple[str, ...], _rows: IntArray, _result: OverTime, _settings: Settings
) -> FloatArray:
    with _settings.compute_lock:
        return values_of(_settings.sample, _result, _rows)

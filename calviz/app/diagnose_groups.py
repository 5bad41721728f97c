"""The pages Groups and Over time: for which rows, in which folds and sites, and when, the probabilities are wrong."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import bar, navigation, pinning, screen, selection, session, tables_and_cards
from calviz.app.jobs import LongWork
from calviz.app.open_files import join_parts, request_settings, split_parts
from calviz.app.selection import SliceRule
from calviz.app.session import Settings, cached_results, look_at_slice, md
from calviz.comparison.folds_and_sites import LevelResults, fold_columns, folds, site_column, sites
from calviz.comparison.over_time import EVERY, OverTime, over_time, usual_metric
from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import CHECKS, METRICS
from calviz.core.predictions import Dataset, columns_with_slices, cycles, edges_of, has_score, held
from calviz.core.words import capitalised, counted, percent, points, shorten, signed_points
from calviz.figures.hundred_squares import Bullet
from calviz.figures.marks import Overlay
from calviz.figures.metric_over_time import CurvesByLevel, OverTimeLine, WatchLine, label_of
from calviz.figures.slice_gaps import FeatureGap, SliceGaps, features_drawn
from calviz.sample.slice_results import Against, Slice, Slices
from calviz.sample.slices import USUAL_RATE, default_columns, slices
from calviz.verdicts.watching import WatchState, watched

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

#: Largest number of slices in the table; the download has all.
MOST = 2_000
#: Characters of a name.
_NAME = 62
_MARKS, _SITES = "slices.marks", "sites"
_AGAINST: dict[Against, str] = {"calibrated": "a calibrated model", "rest": "the other rows"}
#: Limits of the choices; in the address, that no column is chosen.
_ROWS, _RATES, _NONE = (2, 1_000_000), (0.1, 50.0), "-"


@dataclass(frozen=True)
class SlicesChoice:
    """What the user wants to look at."""

    columns: tuple[str, ...]
    pairs: bool
    against: Against
    min_rows: int
    rate: float


def ask_for_slices(settings: Settings) -> SlicesChoice:
    """Draw the choices, which the address of every page holds, and return them."""
    usual, asked = _usual_choice(settings), _asked(settings)

    def kept(key: str, now: Any, default: Any, text: Callable[[Any], str] = str) -> dict[str, Any]:
        widget = f"calviz.groups.{key}"
        st.session_state[widget] = now

        def changed() -> None:
            chosen = st.session_state[widget]
            request_settings({key: "" if chosen == default else text(chosen) or _NONE})

        return {"key": widget, "on_change": changed}

    st.multiselect(
        "Columns",
        columns_with_slices(settings.whole),
        format_func=lambda name: _label(settings.whole, name),
        help="Numbers and dates are cut at their deciles; of a text with more than 50 values the most frequent 20 are slices, "
        "and all others one (free text, of over 100 values, most of three words or more, is not chosen by default); of hours, weekdays and months, the range furthest off, and each value if no other column is chosen. The predicted class is combined with each of the other columns; beside the score, each value is also tested above one score, over which half of the expected events lie. The more slices are looked at, the stronger the evidence has to be.",
        **kept("slice-columns", [*asked.columns], [*usual.columns], join_parts),
    )
    tables_and_cards.draw_notices(settings.entry.loaded.telling)
    # Behind a button, as it is rarely changed, so that the answer comes first.
    with st.popover("How slices are tested", icon=":material/tune:"):
        st.selectbox(
            "Compare with",
            list(_AGAINST),
            format_func=_AGAINST.__getitem__,
            width=200,
            help="A calibrated model: is the slice miscalibrated? The other rows: is it worse off than "
            "they are?",
            **kept("against", asked.against, usual.against),
        )
        st.number_input(
            "Minimum rows",
            *_ROWS,
            width=140,
            help="Slices with fewer rows are counted, not measured.",
            **kept("least", asked.min_rows, usual.min_rows),
        )
        st.number_input(
            "False discovery rate, %",
            *_RATES,
            step=0.5,
            format="%g",
            width=190,
            help="Of the slices that are reported as off, at most this share is expected to be so by chance "
            "(Benjamini and Hochberg).",
            **kept("fdr", round(100 * asked.rate, 6), round(100 * usual.rate, 6)),
        )
        st.toggle(
            "Pairs of columns too",
            disabled=len(asked.columns) < 2,
            **kept("pairs", asked.pairs, usual.pairs, lambda _: "true"),
        )
    if asked != usual:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                "Your choice; the verdict on Overview keeps to the default.", width="content"
            )
            default = dict.fromkeys(bar.OF_GROUPS, "")
            st.button(
                "Back to the default", on_click=request_settings, args=(default,), type="tertiary"
            )
    return asked


def _usual_choice(settings: Settings) -> SlicesChoice:
    names = columns_with_slices(settings.whole)
    # A text that hardly repeats has no slice.
    texts = {**settings.whole.groups, **settings.whole.texts}
    texts = {name: text for name, text in texts.items() if "value" in _kind(settings.whole, name)}
    free = {name for name, text in texts.items() if np.bincount(text.codes).max(initial=0) < 50}
    usual = [name for name in default_columns(settings.sample) if name in names]
    columns = [name for name in usual if name not in free] or usual
    return SlicesChoice(tuple(columns), False, "calibrated", 50, USUAL_RATE)


def _asked(settings: Settings) -> SlicesChoice:
    """Return the choice in the address; of columns that this file lacks, the usual ones."""
    usual, query = _usual_choice(settings), st.query_params
    names = columns_with_slices(settings.whole)
    # Older links have the labels.
    labels = {_label(settings.whole, name): name for name in names}
    text = query.get("slice-columns", "")
    columns = tuple(labels.get(part, part) for part in split_parts(text))
    columns = columns if {*columns} <= {*names} else usual.columns

    least, rate = _given("least", _ROWS), _given("fdr", _RATES)
    return SlicesChoice(
        () if text == _NONE else columns,
        query.get("pairs") == "true",
        "rest" if query.get("against") in ("rest", _AGAINST["rest"]) else usual.against,
        int(least or usual.min_rows),
        rate / 100 if rate else usual.rate,
    )


def _given(key: str, limits: tuple[float, float]) -> float | None:
    """Return a number in the address; None if it is not between the limits."""
    with suppress(ValueError):
        if limits[0] <= (given := float(st.query_params.get(key, ""))) <= limits[1]:
            return given
    return None


def _kind(data: Dataset, column: str) -> str:
    """What a column holds: a number, dates, or how many values."""
    if column in cycles(data):
        return "ranges"
    if has_score(data) and column not in data.to_slice():
        return "above a cut"
    cut, texts = data.cuts.get(column), data.groups.get(column, data.texts.get(column))
    if cut is not None and cut.kept is None:
        return "dates" if cut.dates else "number"
    return counted(len(held((texts or data.sliced(column)).levels)), "value")


def _label(data: Dataset, column: str) -> str:
    return shorten(f"{column} ({_kind(data, column)})", 50)


def last_slices_asked(settings: Settings) -> SlicesChoice | None:
    """Return the choice, if it is not the usual one."""
    asked = _asked(settings)
    return asked if asked.columns and asked != _usual_choice(settings) else None


def measure_slices(settings: Settings, question: SlicesChoice) -> Slices:
    """Measure all slices, and say which of them changed over time."""
    text = f"Looking at {counted(len(question.columns), 'column')} …"
    with session.computing(settings, text) as sample:
        found = slices(sample, **vars(question))
        return SliceGaps.compute(found, session.evaluation(settings).verdict).result


def pinned_gaps(
    settings: Settings, question: SlicesChoice, tested: Slices
) -> Overlay[FloatArray] | None:
    """Return the gap of each slice in the pinned state, shape (S,); NaN if it has too few rows there."""

    def gaps(found: Slices) -> FloatArray:
        gap_of = {(one.where, one.of_class): one.gap for one in found.slices}
        return np.array([gap_of.get((s.where, s.of_class), np.nan) for s in tested.slices])

    # All slices are measured, whichever one was pinned.
    now = ("bins", "scheme", "where")
    return pinning.overlay(settings, lambda s: gaps(slices(s, **vars(question))), as_now=now)


def draw_answer(
    tested: Slices, settings: Settings, pinned: Overlay[FloatArray] | None = None
) -> str:
    """Draw the result as a sentence, and a figure; a click on a mark selects the rows of its slice. Return a title."""
    figure = SliceGaps.compute(tested, session.evaluation(settings).verdict)
    st.markdown(md(words.keep_units_together(f"{figure.beyond_headline} {tested.remark}"), 700))
    key = selection.widget_key(_MARKS)
    react = selection.of_click(key, lambda at: SliceRule(figure.shown[at].where), by=_MARKS)
    if tested.slices:
        size = len(figure.shown)
        beside = () if pinned is None else (replace(pinned, content=pinned.content[:size]),)
        screen.chart(figure, key=key, filename="slices", on_select=react, wide=True, beside=beside)
        st.caption(
            f"{size:,} of {counted(len(tested.slices), 'slice')}, by p-value. Lines: 95 % intervals on these rows. Filled: {tested.marks[0]} (adjusted p ≤ {tested.rate:g}). Dashed: all rows ({points(tested.gap)} points). {md(figure.unmeasured(), 600)}{f' The table has the first {MOST:,}.' * (len(tested.own) > MOST)}",
            help="A slice is called off for its gap, which noise made larger: on new rows less of it is to expect. The interval "
            "says how precisely these rows measure the gap; the test, whether a calibrated model would show it and, of a slice of a predicted class, whether it differs from the other rows of that class, too. Near 0 or 1 a few surprises rule that out, although they measure the gap poorly.",
        )
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
            edges = ",".join(map(str.strip, st.session_state[field].split(",")))
            request_settings({bar.CUTS: session.with_edges(settings, column, edges)})

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
    screen.chart(
        FeatureGap.compute(tested, column), key="slices.along", filename="slices-along", wide=True
    )


def draw_slices_table(
    tested: Slices, settings: Settings, pinned: Overlay[FloatArray] | None = None
) -> None:
    """Draw the table of all slices; a tick selects the rows of one, which can also be shown alone."""
    if not tested.slices:
        return
    by, own, rows = "slices.table", len(tested.own), slice(min(len(tested.own), MOST))
    label = f"Show the {len(tested.slices) - own:,} off only through others"
    if own < len(tested.slices) and st.toggle(label, key="slices-explained"):
        rows = slice(own, own + MOST)
    key = f"{selection.widget_key(by)}.{hash((settings.rows_key, tested.against, rows.start, rows.stop))}"
    shown, rule = tested.slices[rows], selection.current_rule()
    # A column that stays in place must leave room for the numbers, even on a phone.
    wide = {"narrow": 150, "wide": 400}.get(screen.width_class(), 280)
    screen.table(
        _styled(tested, rows, pinned),
        most=440,
        row_height=_row_height(shown),
        placeholder="–",
        alt="Slices: rows, score, hits, gap, interval and p-value",
        column_config=_COLUMNS | {"slice": st.column_config.TextColumn(width=wide, pinned=True)},
        **selection.of_tick(key, [SliceRule(s.where) for s in shown], by=by),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        _button_to_look(next((s for s in shown if rule == SliceRule(s.where)), None), settings)
        tables_and_cards.download_button("All slices as CSV", tested.frame, "slices")


def _styled(tested: Slices, rows: slice, pinned: Overlay[FloatArray] | None) -> Styler:
    """Return some slices; columns sort as numbers and are written as texts."""
    shown = tested.slices[rows]
    names = words.told_apart((s.name for s in shown), _NAME)
    frame = pd.DataFrame(
        {
            "slice": name,
            "rows": s.rows,
            "gap": s.gap,
            "95 % interval": "{} to {}".format(*map(points, s.interval)),
            "on new rows": tested.on_new_rows(s),
            "adjusted": s.adjusted,
            "off": tested.word(s),
            "score": s.score,
            "hits": s.hits,
            "ECE": s.ece,
            "noise": s.ece_noise,
        }
        for s, name in zip(shown, names, strict=True)
    )
    gaps = [Bullet(s.gap, s.interval) for s in shown]
    frame.insert(3, screen.PICTURE_COLUMN, screen.picture_column(gaps, row=_row_height(shown)))
    if pinned is not None:
        frame.insert(3, "pinned", pinned.content[rows])
    formats: Any = {
        **dict.fromkeys(("score", "hits"), partial(percent, decimals=2)),
        **dict.fromkeys({"gap", "on new rows", "pinned"} & {*frame.columns}, signed_points),
        **dict.fromkeys(("ECE", "noise"), points),
        "adjusted": words.p_number,
    }
    return frame.style.format(formats)


def _row_height(shown: Sequence[Slice]) -> int:
    """The height of a row, in pixels, whose name is broken into lines."""
    line = {"narrow": 19, "wide": 62}.get(screen.width_class(), 40)
    lines = max(len(textwrap.wrap(s.name[:_NAME], line)) for s in shown)
    # Streamlit breaks no line in rows of up to 64 pixels.
    return 35 if lines == 1 else max(17 + 18 * lines, 65)


_number = st.column_config.NumberColumn
_COLUMNS = {
    "rows": _number(format="localized"),
    "score": _number(help="Mean score of these rows."),
    "hits": _number(help="Share of hits among these rows."),
    "gap": _number(help="Score minus hits, in points."),
    "pinned": _number(help="The gap in the pinned state, in points."),
    screen.PICTURE_COLUMN: screen.picture_column_config(
        "The gap and its interval; the thin line is at 0."
    ),
    "95 % interval": st.column_config.Column(
        "95 % on these", alignment="right", help="The interval of the gap on these rows, in points."
    ),
    "on new rows": _number(help="The gap to expect there, in points, of a slice that is off."),
    "adjusted": _number(
        "adjusted p", help="The p-value with all slices looked at together; the CSV has each alone."
    ),
    "off": st.column_config.TextColumn(
        help="Whether it is off beyond chance, and since when if that changed: more than other rows with such scores, as they are, or only by rows of slices that are more surely off."
    ),
    "ECE": _number(help="In points."),
    "noise": _number(
        help="The ECE that a calibrated model would show with the same number of rows, in points."
    ),
}


def _button_to_look(one: Slice | None, settings: Settings) -> None:
    if one is None:
        st.caption(
            "Choose a mark or tick a row to select the rows of that slice, here and on every page.",
            width="content",
        )
        return
    if st.button(
        f"Look at {md(shorten(one.name, 70))} alone",
        help="All pages, their verdicts and tests are then of these rows.",
        type="primary",
    ):
        # The rows of the slice are then all rows, and no selection among them.
        selection.choose(None, answers_first=True)
        look_at_slice(settings.whole, one.where)
        st.switch_page(navigation.link("overview"))


# ---- Folds, sites and time


def chosen_sites(data: Dataset) -> str | None:
    """Return the column of sites that was chosen in this session, or else is called so; None if these rows have none."""
    column = st.session_state.get(_SITES, site_column(data))
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
    site = site_column(settings.whole)
    chosen = st.selectbox(
        "Folds or sites",
        [usual, *sites_too],
        index=0 if own or site is None else 1 + sites_too.index(site),
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
    result = _levels(chosen if is_of_sites else None, settings)
    summary = result.summary()
    st.markdown(md(summary.verdict, 500))
    by = chosen if is_of_sites else own
    figure = CurvesByLevel.compute(settings.sample, by, panels=is_of_sites)
    screen.chart(figure, key="calviz.levels", filename="by-level", wide=True)
    screen.table(pd.DataFrame(list(summary.rows), columns=list(summary.header)), alt=summary.title)
    tests = f"Tested against each other, at 5 %; off in Groups is by default against a calibrated model, at {100 * USUAL_RATE:g} %: one may be found without the other."
    st.caption(md(" ".join((*summary.notes, tests)), 1_000))
    tables_and_cards.download_button("Each as CSV", result.frame, "levels")


@cached_results(3)
def _levels(by: str | None, settings: Settings) -> LevelResults:
    with session.computing(settings, "Measuring each fold or site …") as sample:
        return folds(sample) if by is None else sites(sample, by)


# ---- Over time

#: The option for automatic periods.
_AUTOMATIC = "as suits the data"


def explore_over_time(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choices, the running job, and the periods; `say` replaces the title."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        usual = usual_metric(settings.whole, settings.waiting)
        metric = st.selectbox(
            "Metric",
            dict.fromkeys((usual, "mcs", *METRICS.in_table("fits"))),
            format_func=lambda key: label_of(key, settings.reduction),
            # Two keys, as the two have different defaults.
            key="time-metric" if settings.waiting is None else "time-metric-waiting",
            bind="query-params",
            width=320,
        )
        every = st.selectbox(
            "Periods",
            (_AUTOMATIC, *EVERY),
            key="time-every",
            bind="query-params",
            width=220,
            help="Weeks begin on Monday. Equal counts: ten periods of about as many rows.",
        )
    sample, waiting = settings.sample, settings.waiting
    work = LongWork(
        "over_time",
        (*settings.key, metric, every),
        f"Measuring {settings.row_count} over time",
        lambda: (
            lambda job: over_time(
                sample,
                metric,
                every=None if every == _AUTOMATIC else every,  # type: ignore[arg-type]
                method=None,
                waiting=waiting,
                progress=lambda words, done, total: job.progress(done, total, words),
            )
        ),
        "Measure each period",
        ":material/timeline:",
        about=settings.rows_key,
    )
    status = work.draw(at_once=session.cells(sample.data) <= session.AT_ONCE, patience=2.0)
    with st.spinner("Watching …"):
        state = sample.once(watched)
    # A lasting change shows in the watch long before one period differs from the others.
    lasting = state if state and (state.changed or state.found or state.others) else None
    if lasting is not None:
        # In the words of Overview, where another headline leads.
        changes = (
            f for f in session.evaluation(settings).findings if CHECKS[f.code].about == "times"
        )
        say(next((f.short for f in changes), lasting.headline))
    # Also where nothing changes, and yet it is not right; the command line says the same.
    if state is not None and (state.alarm or state.found is not None):
        said = state.sentence(by_chance=False)
        if state.found is not None:
            # What follows the title is no remark in brackets; all rows are below, where the days are watched.
            said = said.removeprefix(state.headline)
            said = re.sub(r"^ \((.*?)\)(\. .*) All rows.*", r"\1\2", said)
        st.markdown(md(capitalised(said), 1_000))
    if status.result is not None:
        answer = _draw_periods(status.result, lasting is not None)
        if lasting is None:
            # The rows may be off alike all the time.
            say(
                f"Not calibrated; {answer[0].lower()}{answer[1:]}"
                if state and state.alarm
                else answer
            )
    if state is not None:
        navigation.draw_folded(
            "Watched day by day", lambda: _draw_watch(state, settings), key="watch"
        )


def _draw_watch(state: WatchState, settings: Settings) -> None:
    """Draw the e-value of a watch over the days of the rows."""
    st.markdown(md(state.sentence(), 1_000))
    figure = WatchLine.compute(state, name=settings.sample.data.name)
    screen.chart(figure, key="calviz.watch", filename="watch", wide=True)
    st.caption(
        "The wealth of bets against calibration, from 1 at the start; it reaches the line by chance for at most 5 % of calibrated "
        f"scores{state.condition}. `calviz watch` goes on from day to day."
    )


def _draw_periods(result: OverTime, lasting: bool) -> str:
    figure = OverTimeLine.compute(result)
    answer = figure.answer()
    # Where there was a change and back, the others that a period is compared with are from before and after.
    changed = result.watch is not None and result.watch.found is not None and not result.sides
    # Without a lasting change, the title says the headline.
    if changed or not (lasting or answer != f"{figure.headline}."):
        answer = capitalised(result.untested) if changed and not figure.where else ""
    doubt = result.watch.doubt if result.watch is not None and result.waiting else ""
    for text in filter(None, (answer, figure.before_labels(), doubt)):
        st.markdown(md(text, 1_000))
    key = f"over-time-{result.metric}"
    screen.chart(figure, key=key, filename=key, wide=True)
    left_out = f" {counted(figure.shown.small, 'period')} with too few rows left out."
    tested = (
        f"A period differs beyond chance where rows dealt out to the periods at random ({result.resamples:,} times) "
        f"rarely make one as unusual in the {figure.label} or the MCS, all periods taken together (Westfall and Young); that may "
        "be a change of the model, of the labels or of the rows that come."
    )
    st.caption(
        f"By {result.every}, each period with its own interval.{left_out if figure.shown.small else ''}{' A gradual drift appears as one change or two.' * bool(result.sides)}",
        help=tested if result.resamples and not figure.where else None,
    )
    tables_and_cards.draw_figure_table(
        lambda: pd.DataFrame(figure.table(figure.shown)),
        "over-time",
        alt=f"{figure.label} by {result.every}",
        download=figure.frame,
    )
    return figure.headline

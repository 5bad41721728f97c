"""In the room Decide: where the model can be trusted, what decisions cost, and prediction sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import decide_coverage, navigation, screen, selection, session, tables_and_cards
from calviz.app.session import NOT_RECALIBRATED, Settings, md, model_name, name_after
from calviz.comparison.prediction_sets import PredictionSets, SetMethod, SetsOf, sets_of
from calviz.core import words
from calviz.core.errors import PREDICTED, CalvizError
from calviz.core.predictions import usual_columns
from calviz.core.words import capitalised, counted, percent, percent_numbers, shorten
from calviz.figures.decision_cost import Costs, Decision, kept_from
from calviz.figures.slice_gaps import levels_of
from calviz.sample.sample import MIN_ROWS, Sample
from calviz.sample.slices import usual_slices


@contextmanager
def titled(say: Callable[[str], object]) -> Iterator[None]:
    """Let the title say what is missing where there is an error, whose sentence stands below if it says more."""
    try:
        yield
    except CalvizError as error:
        reason = str(error).removeprefix("not available for confidence-only data: ")
        title = capitalised(re.sub(r" \(.*?\)|[:;] .*", "", reason)).rstrip(".")
        say(title)
        if title != reason.rstrip("."):
            raise


# ---- Trust by group

#: The column of the share that is right from the threshold on.
_RIGHT = "right of the kept"
#: Columns with more levels than this are not offered, as they take too long for this page.
_MOST_LEVELS = 100


def trust_columns(sample: Sample, every: Sample) -> list[str]:
    """Return the columns that can be chosen: that of the slice of all rows that is most surely off, then those with few levels first."""
    columns = (*sample.data.groups, *usual_columns(sample.data))
    counts = {name: len(sample.data.sliced(name).levels) for name in columns}
    few = sorted(
        (name for name, n in counts.items() if 1 < n <= _MOST_LEVELS), key=counts.__getitem__
    )
    slices = usual_slices(every) if few else None
    off = dict(slices.off[0].where) if slices and slices.off else {}
    return sorted(few, key=lambda name: (name == PREDICTED, name not in off))


def explore_trust(chosen: Settings, sample: Sample, columns: list[str], after: str) -> None:
    """Draw the choice of a column and of the share of errors allowed, and a table with a line for each level; `after` is "" without a map."""
    left, right = st.columns(2)
    column = left.selectbox(
        "By",
        ["task", *(c for c in columns if c != "task")] if "task" in columns else columns,
        format_func=lambda name: shorten(name, 40),
        key="trust-by",
        bind="query-params",
    )
    label = f"Errors allowed among the kept of each {md(shorten(column, 30))}, %"
    risk = right.slider(label, 1, 50, 5, key="trust-errors", bind="query-params")
    try:
        with session.computing(chosen, f"Looking at every value of {shorten(column, 40)} …"):
            how = {"by": column, "predicted": chosen.predicted}
            found = None if after else decide_coverage.promise_of(chosen, risk / 100, **how)
            levels = levels_of(sample, column, risk / 100, found)
    except CalvizError as error:
        st.caption(md(error))
        return
    score, hit = words.score_and_hit(sample.reduction)
    slices, cells = levels.slices.slices, [c.cells for c in levels.choices]
    frame: dict[str, Sequence[object]] = {
        column: [shorten(s.where[0][1], 40) or "missing" for s in slices],
        **{name: [c[i] for c in cells] for i, name in enumerate(("from", "kept", _RIGHT))},
        "the score is": [levels.word(s) for s in slices],
        "rows": [s.rows for s in slices],
        "score": percent_numbers((s.score for s in slices), 2),
        "hits": percent_numbers((s.hits for s in slices), 2),
    }
    if {*frame["kept"]} == {"–"}:
        del frame["kept"], frame[_RIGHT]
    screen.table(
        pd.DataFrame(frame),
        most=420,
        alt="Each value of the column: is it off, and from which confidence on is it right?",
        column_config={
            column: st.column_config.Column(pinned=True),
            "rows": st.column_config.NumberColumn(format="localized"),
            "score": st.column_config.NumberColumn(score, format="%.2f %%"),
            "hits": st.column_config.NumberColumn(hit, format="%.2f %%"),
            "from": st.column_config.Column("confidence from", alignment="right"),
            **dict.fromkeys(("kept", _RIGHT), tables_and_cards.RIGHT),
        },
    )
    few = counted(len(levels.few), "value")
    left_out = f" Left out: {few} with fewer than {levels.least_rows} rows." if levels.few else ""
    promise, key = levels.guarantee(risk / 100)
    st.caption(
        f"{promise} Too high, too low: beyond chance, with all values tested together{', as in Classes' * (column == PREDICTED)}.{left_out}",
        help=key,
    )


# ---- Costs

_COSTS = {
    "wrong": (
        "A wrong prediction costs",
        10.0,
        "What it costs when a prediction is kept and wrong.",
    ),
    "referred": ("A referral costs", 1.0, "What it costs when an expert decides instead."),
    "right": ("A right prediction costs", 0.0, "Usually 0; a gain is a negative cost."),
}


def explore_decision_costs(settings: Settings, method: str, say: Callable[[str], object]) -> None:
    """Draw the costs to set, their consequences in words, the curve and the rules; part of a fragment, which has drawn the title that `say` replaces."""
    costs = _costs()
    figures, fit_words, judged_words = decisions(settings, method, costs)
    figure, *others = figures
    say(figure.headline)
    for one in figures:
        said = one.name if one is figure else capitalised(one.name)  # a file's name is kept
        name = f"**{md(said, 60)}:** " if others else ""
        st.markdown(f"{name}{md(words.keep_units_together(one.reading()), 1_000)}")
    _of_selected(settings, figure, costs, decide_coverage.when(method, "before"))
    # What that is for these costs, the sentence above says.
    face = "At face value a prediction is kept where its expected cost, (1 − confidence) × wrong + confidence × right, is not above that of a referral."
    st.caption(md(_rows_words(fit_words, judged_words), 1_000), help=face)
    drawing, name = screen.plotted(figure, others=others), "cost-of-decisions"
    alt = " ".join(one.describe() for one in figures)
    screen.chart(figure, drawing, key="decision", filename=name, alt=alt, wide=True)
    _costs_table(figures)


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


def decisions(
    settings: Settings, method: str, costs: Costs
) -> tuple[tuple[Decision, ...], str, str]:
    """Return costs before (and after), and in words the rows on which the thresholds were chosen and judged."""
    if method != NOT_RECALIBRATED:
        result = decide_coverage.recalibrated(settings, method)
        names = (model_name(settings), name_after(result.label))
        pairs = zip(names, result.judged, result.fit, strict=True)
        return (
            tuple(_decision(costs, name, judged, fit) for name, judged, fit in pairs),
            result.fit_words,
            result.judged_words,
        )
    with session.computing(settings, "Weighing the costs …") as judged:
        n = counted(judged.data.n, "row")
        split = settings.fit_split
        if split is None or settings.split is None:
            return ((_decision(costs, model_name(settings), judged, None),), "", n)
        fit = replace(settings, split=split, where=()).sample
        fit_words = f"split '{split}' ({counted(fit.data.n, 'row')})"
        figure = _decision(costs, model_name(settings), judged, fit)
        return (figure,), fit_words, f"split '{settings.split}' ({n})"


def _decision(costs: Costs, name: str, judged: Sample, fit: Sample | None) -> Decision:
    return replace(Decision.of_rows(judged, fit, costs=costs), name=name)


def _of_selected(settings: Settings, figure: Decision, costs: Costs, when: str) -> None:
    """Say what each rule, made for all rows, costs on the selected ones by the scores of the file, which `when` calls so beside a map."""
    chosen = selection.current(settings)
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
        f"1,000 rows like the selected ones ({md(chosen.name, 200)}) cost{when} {md('; '.join(parts), 400)}."
    )


def _rows_words(fit_words: str, judged_words: str) -> str:
    """Say which rows the costs are counted on."""
    if fit_words:
        return (
            f"The best threshold is chosen on {fit_words}; all costs are counted on {judged_words}."
        )
    return (
        f"The best threshold is chosen on the same {judged_words} that costs are counted on, as there is no other split: its own cost "
        "is a little too low; the interval of the difference allows for the choice."
    )


def _costs_table(figures: tuple[Decision, ...]) -> None:
    frame = pd.concat([one.table().assign(model=one.name) for one in figures], ignore_index=True)
    per = figures[0].per
    rules = [rule for one in figures for rule in one.rules.values()]
    ends = [rule.interval for rule in rules]
    shown = pd.DataFrame(
        {
            "rule": frame["rule"],
            "cost of 1,000": [per(rule.cost) for rule in rules],
            "95 % interval": [f"{per(i.low)} to {per(i.high)}" if i else "–" for i in ends],
            "confidence ≥": [kept_from(rule).removeprefix("confidence ≥ ") for rule in rules],
            "referred": [percent(rule.referred_share) for rule in rules],
            "accuracy kept": [percent(r.accuracy) if r.kept else "–" for r in rules],
        }
    )
    if len(figures) > 1:
        shown.insert(0, "model", frame["model"])
    if screen.page_width():
        # The interval stands beside the cost, so that it is on the screen.
        shown["cost of 1,000"] += [
            f" ({end})" if end != "–" else "" for end in shown.pop("95 % interval")
        ]
        shown = shown.rename(columns={"cost of 1,000": "cost of 1,000 (95 % CI)"})
    right = dict.fromkeys(
        shown.columns.drop(["model", "rule"], errors="ignore"), tables_and_cards.RIGHT
    )
    screen.table(shown, alt="What each rule costs", column_config=right)
    with st.container(horizontal=True):
        for label, content, name in (
            ("Download the rules as CSV", frame, "rules"),
            ("Download the curve as CSV", figures[0].frame, "costs"),
        ):
            tables_and_cards.download_button(label, content, name, quiet=True)


# ---- Prediction sets

_METHODS: dict[SetMethod, str] = {"lac": "LAC (smallest)", "aps": "APS (adaptive)"}


@navigation.fragment
def explore_prediction_sets(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choice of method and coverage, and what the sets hold; a fragment. `say` replaces the title."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        method: SetMethod = session.choose_one(
            "Sets by",
            _METHODS,
            key="sets",
            help="LAC: all classes whose probability reaches a threshold. APS: the most probable ones until their sum does.",
        )
        coverage = st.slider(
            "The true class is to be among them, % of the rows",
            50.0,
            99.5,
            90.0,
            0.5,
            format="%g",
            key="covered",
            bind="query-params",
            width=420,
        )
        per_class = session.toggle(
            "A threshold for each class",
            key="per-class",
            help="Mondrian sets: the coverage holds for every class, mostly with larger sets.",
        )
    try:
        with titled(say):
            sets = _kept_sets(settings.rows_key, method, coverage / 100, per_class, settings)
    except CalvizError as error:  # too few rows to choose a threshold on
        st.caption(md(f"No sets: {error}", 1_000))
        return
    say(sets.headline)
    st.markdown(md(words.keep_units_together(sets.reading()), 1_000))
    chosen = f"{sets.what_is_chosen} chosen on {sets.fit.words}"
    st.caption(
        md(f"Split-conformal: {chosen}, and judged on {sets.evaluation.how}.", 1_000),
        help="The coverage is guaranteed for exchangeable new rows, however good the probabilities are; better probabilities make "
        "the sets smaller.",
    )
    listed = sorted(sets.classes, key=lambda s: (s.rows < MIN_ROWS, s.together.high, s.coverage))
    _sets_table((sets.overall, *listed), coverage / 100)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _kept_sets(
    key: tuple[str, ...], method: SetMethod, coverage: float, per_class: bool, _settings: Settings
) -> PredictionSets:
    return sets_of(
        _settings.sample, _settings.whole, method=method, coverage=coverage, per_class=per_class
    )


def _sets_table(summaries: Sequence[SetsOf], asked: float) -> None:
    drawn = [(s.coverage, *s.together, asked, asked) for s in summaries]
    screen.table(
        pd.DataFrame(
            {
                "true class": [shorten(s.name, 60) for s in summaries],
                "rows": [s.rows for s in summaries],
                "coverage": percent_numbers(s.coverage for s in summaries),
                screen.PICTURE_COLUMN: screen.pictures_of(drawn),
                "95 % interval": [
                    words.percent_range(s.together.low, s.together.high) for s in summaries
                ],
                "mean size": [s.size for s in summaries],
                "interval of the size": [s.size_words[1] for s in summaries],
            }
        ),
        most=460,
        alt="Coverage and mean size of the prediction sets, by true class",
        column_config={
            "rows": st.column_config.NumberColumn(format="localized"),
            "coverage": st.column_config.NumberColumn(format="%.1f %%"),
            screen.PICTURE_COLUMN: screen.picture_column_config(
                "Grey: what was asked for; a thin line is at 0."
            ),
            "95 % interval": st.column_config.Column(
                alignment="right", help="Of all classes together."
            ),
            "interval of the size": tables_and_cards.RIGHT,
            "mean size": st.column_config.NumberColumn(
                format="%.2f" if summaries[0].size < 10 else "%.0f"
            ),
        },
    )

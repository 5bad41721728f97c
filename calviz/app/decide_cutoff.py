"""In the room Decide: a cutoff with everything that depends on it, and the tests of rating grades."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import pinning, screen, selection, tables_and_cards
from calviz.app.selection import SliceRule
from calviz.app.session import NOT_RECALIBRATED, Settings, choose_one, md, model_name, name_after
from calviz.core import words
from calviz.core.entry_specs import RECALIBRATORS, Interval
from calviz.core.events import Reduction
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import capitalised, decimal, keep_units_together, percent, shorten, whole
from calviz.figures.marks import Overlay
from calviz.figures.net_benefit import NetBenefit, Shown
from calviz.figures.roc import Roc
from calviz.report.sections import decisions
from calviz.sample import cutoff_and_grades
from calviz.sample.cutoff_and_grades import CUTOFF, CutoffCounts, Grades, decidable, grades
from calviz.sample.sample import Sample, rate_if_rare
from calviz.verdicts.analysis import evaluate

_SHOWN: dict[Shown, str] = {
    "net-benefit": "net benefit",
    "standardised": "standardised",
    "avoided": "actions avoided",
}
#: The widget of the cutoff, its smallest value, and the key of an invalid cutoff in a link.
CUTOFF_KEY, LEAST, _BAD_LINK = "cutoff", 0.000001, "calviz.decisions.bad_link"
#: The cutoff that the last rows began with, and the costs in the place of a cutoff, which is what a link keeps.
_FIRST, _ODDS = "calviz.decisions.first", "calviz.decisions.odds"


def explore_cutoff(settings: Settings, method: str, say: Callable[[str], object]) -> None:
    """Draw the cutoff, the decisions at it, and the curves; part of a fragment, which has drawn the title that `say` replaces."""
    deciding_samples = deciding(settings, method)
    before, data = deciding_samples.before, deciding_samples.before.data
    name = data.class_names[before.reduction.class_index(data)]
    rate = rate_if_rare(before, 0.2)
    first = _possible(float(f"{rate:.2g}")) if rate else CUTOFF
    # What the last rows began with was not chosen.
    if st.session_state.get(CUTOFF_KEY) == st.session_state.get(_FIRST, first) != first:
        st.session_state.pop(CUTOFF_KEY)
    st.session_state[_FIRST] = first
    _say_bad_link(first)
    roc = _roc(before)
    label = f"Act from this probability of '{md(shorten(name, 40))}' on"
    scores, limits = roc.cutoff[:0:-1].tolist(), Interval(LEAST, 1 - LEAST)
    begins = "Begins with the share of positives if below 20 % or above 80 %, else with 0.5."
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        cutoff = screen.choose_threshold(label, first, limits, scores, CUTOFF_KEY, begins)
        _choose_odds(cutoff)
    pinned = _pinned(settings)
    samples = {"now" if deciding_samples.after is None else "as it is": deciding_samples.before}
    if deciding_samples.after is not None:
        samples[deciding_samples.after.data.name] = deciding_samples.after
    if pinned is not None:
        samples[pinned.name] = pinned.content
    cells = [sample.view(cutoff_and_grades.at_cutoff, cutoff=cutoff) for sample in samples.values()]
    say(_found(cells[0]))
    st.markdown(md(cells[0].meaning(), 1_000))
    if deciding_samples.words:
        st.caption(md(deciding_samples.words, 1_000))
    before_map = " before recalibration" * (deciding_samples.after is not None)
    _of_selected(deciding_samples.before, settings, cutoff, before_map)
    if rate is not None and rate < 0.5:
        _of_rare(before, cutoff, before_map)
    _tables(samples, cells)
    ties = int(np.count_nonzero(before.scored.score == cutoff)) if cutoff == CUTOFF else 0
    if ties and data.n_classes == 2 and before.reduction.class_index(data) == 1:
        other = md(shorten(data.class_names[0], 40))
        st.caption(
            f"{words.counted(ties, 'row')} at exactly 0.5: acted on here; the predicted class is '{other}'."
        )
    beside = [] if pinned is None else [Overlay(pinned.name, pinned.role, _roc(pinned.content))]
    with st.container(horizontal=screen.page_width() is None, gap="medium"):
        for panel in ("roc", "precision-recall"):
            with st.container():
                drawing = screen.plotted(roc, panel=panel, at=cells[0], beside=beside)
                drawing.layout.height += screen.wider()
                drawing.layout.xaxis.constraintoward = "left"
                alt = roc.describe(panel)
                screen.chart(roc, drawing, key=f"decisions.{panel}", filename=panel, alt=alt)
    st.caption(
        f"Dot: the cutoff of {cutoff:.3g}. Dashed: scores that do not tell positives from negatives. "
        f"{'The table of decisions counts rows; all else is by weight. ' if cells[0].by_weight else ''}Intervals of shares: {words.share_intervals(cells[0].alike)}; of the "
        "net benefit: bootstrap."
    )
    _net_benefit(deciding_samples, settings, cutoff, pinned)


def _choose_odds(cutoff: float) -> None:
    """Draw what a false negative costs in false positives, which sets the cutoff and follows it."""
    st.session_state[_ODDS] = (1 - cutoff) / cutoff
    label = "A false negative is as bad as … false positives"
    help = "What a missed event costs, divided by what a false alarm costs; 1 / (1 + this number) is the cutoff."
    st.number_input(label, LEAST, None, "min", 1.0, "%.5g", _ODDS, help, _by_odds, width=340)


def _by_odds() -> None:
    # As many digits as the cutoff shows.
    st.session_state[CUTOFF_KEY] = _possible(float(f"{1 / (1 + st.session_state[_ODDS]):.6g}"))


def _possible(cutoff: float) -> float:
    return min(max(cutoff, LEAST), 1 - LEAST)


def _found(cells: CutoffCounts) -> str:
    """Say how many of the positives are acted on, and how many of those acted on are positive."""
    shares, at = cells.shares(), f"{cells.params['cutoff']:.3g}"
    found, right = shares["sensitivity"][0], shares["positive predictive value"][0]
    if found != found:
        return f"Acting from {at} on: there are no positives to find"
    text = f"Acting from {at} on finds {percent(found)} of the positives"
    return text if right != right else f"{text}; {percent(right)} of those acted on are positive"


def _say_bad_link(first: float) -> None:
    """Warn that the cutoff in the link is not valid and was ignored, until another one is chosen."""
    in_link = st.query_params.get(CUTOFF_KEY)
    if CUTOFF_KEY not in st.session_state and in_link is not None and not _usable(in_link):
        st.session_state[_BAD_LINK] = in_link
    if st.session_state.get(CUTOFF_KEY, first) != first:
        st.session_state.pop(_BAD_LINK, None)
    if _BAD_LINK in st.session_state:
        bad_value = md(shorten(st.session_state[_BAD_LINK], 40))
        st.warning(
            f"The link asks for a cutoff of '{bad_value}': it must be a number from {LEAST:f} to {1 - LEAST:f}, so {first:g} is shown; "
            "type the one that was meant.",
            icon=":material/link_off:",
        )


def _usable(text: str) -> bool:
    try:
        return LEAST <= float(text) <= 1 - LEAST
    except ValueError:
        return False


def _pinned(settings: Settings) -> Overlay[Sample] | None:
    """Return the pinned state as a sample to decide on, with its own class if one was pinned."""
    pinned = pinning.current(settings)
    by_class = pinned is not None and pinned.settings.reduction.kind == "class"
    return pinning.overlay(
        settings, decidable, as_now=("bins", "scheme") if by_class else pinning.REDUCTION_AND_BINS
    )


def _of_selected(sample: Sample, settings: Settings, cutoff: float, when: str) -> None:
    """Say what is decided on the selected rows, as long as they are among the rows that are shown."""
    chosen = selection.current(settings)
    if chosen is None or not chosen.rows.size or sample.data.n != settings.sample.data.n:
        return
    is_acted_on = sample.scored.score[chosen.rows] >= cutoff
    is_hit = sample.scored.hit[chosen.rows]
    counts = [np.count_nonzero(is_acted_on & is_hit), np.count_nonzero(is_acted_on & ~is_hit)]
    missed, left = np.count_nonzero(~is_acted_on & is_hit), np.count_nonzero(~is_acted_on & ~is_hit)
    st.markdown(
        f"Of the selected rows ({md(chosen.name, 200)}), {sum(counts):,} of {chosen.rows.size:,} are acted on{when}, {counts[0]:,} of them "
        f"positive; of the others {missed:,} of {missed + left:,} are positive."
    )


def _roc(sample: Sample) -> Roc:
    return sample.view(Roc.compute, **sample.redrawing)


def _curve(sample: Sample) -> NetBenefit:
    return sample.view(NetBenefit.compute, **sample.redrawing)


def _tables(samples: dict[str, Sample], cells: list[CutoffCounts]) -> None:
    confusion, shares = {}, {}
    for (name, sample), c in zip(samples.items(), cells, strict=True):
        head = "" if len(cells) == 1 else f", {shorten(name, 40)}"
        per_1000 = {key: words.number(value, 2) for key, value in c.per_1000.items()}
        for outcome, keys in (("positives", ("tp", "fn")), ("negatives", ("fp", "tn"))):
            by_weight = [per_1000[key] for key in keys] if cells[0].by_weight else []
            confusion[f"{outcome}{head}"] = [*(whole(c.rows[key]) for key in keys), *by_weight]
        net = decimal(c.net_benefit, c.decimals)
        values, *ends = zip(*c.shares().values(), strict=True)
        shares[f"value{head}"] = [*("–" if v != v else percent(v) for v in values), net]
        ranges = ["–" if a != a else words.percent_range(a, b) for a, b in zip(*ends, strict=True)]
        shares[f"95 % interval{head}"] = [*ranges, _interval(sample, c)]
    decisions = ["act", "do not act"]
    if cells[0].by_weight:
        decisions += [f"{decision}, of 1,000" for decision in decisions]
    # On a small page, the numbers would be cut beside the confusion matrix.
    side_by_side = len(cells) == 1 and screen.width_class() in ("wide", "usual")
    with st.container(horizontal=side_by_side, gap="medium"):
        with st.container():
            screen.table(
                pd.DataFrame({"decision": decisions, **confusion}),
                alt="Confusion matrix at the cutoff",
                column_config=dict.fromkeys(confusion, tables_and_cards.RIGHT),
            )
        with st.container():
            measures = [m.capitalize() for m in cells[0].shares()]
            screen.table(
                pd.DataFrame({"at the cutoff": [*measures, "Net benefit"], **shares}),
                alt="Sensitivity, specificity, predictive values and net benefit at the cutoff",
                column_config=dict.fromkeys(shares, tables_and_cards.RIGHT),
            )


def _of_rare(sample: Sample, cutoff: float, when: str) -> None:
    """Draw how many alerts there are at other cutoffs, as in the report."""
    table = decisions.at_cutoffs(sample, cutoff).shown
    columns = {"cutoff": "cutoff", "per 1,000": "alerts per 1,000"}
    columns |= {"PPV": "events among them, %", "sensitivity": "events found, %"}
    shown = table[[*columns]].rename(columns=columns)
    right = dict.fromkeys(shown.columns, tables_and_cards.RIGHT)
    screen.table(shown, alt=f"Alerts and events at some cutoffs{when}", column_config=right)


def _interval(sample: Sample, c: CutoffCounts) -> str:
    cutoff = c.params["cutoff"]
    measured = evaluate(sample, ["net_benefit"], ci=True, noise_floor=False, cutoff=cutoff)
    interval = measured["net_benefit"].interval
    return "" if interval is None else " to ".join(decimal(end, c.decimals) for end in interval)


def _net_benefit(
    deciding_samples: DecidingSamples,
    settings: Settings,
    cutoff: float,
    pinned: Overlay[Sample] | None,
) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.subheader("Is it better than deciding without it?", anchor=False, width="content")
        shown = choose_one(
            "Drawn",
            _SHOWN,
            key="benefit",
            help="Net benefit: true positives per row, less false positives at the cutoff's exchange rate. Standardised: divided by the "
            "share of positives, 1 at best. Actions avoided: per 100 rows, against acting on everybody, no positive being missed on balance.",
        )
    figure = _curve(deciding_samples.before)
    others = [_curve(one) for one in (deciding_samples.after,) if one is not None]
    if pinned is not None:
        others.append(replace(_curve(pinned.content), name=pinned.name))
    if others:
        figure = replace(figure, name=model_name(settings))
    st.markdown(md(keep_units_together(figure.reading()), 1_000))
    for other in others:
        st.markdown(md(keep_units_together(f"{capitalised(other.name)}: {other.reading()}"), 1_000))
    drawing = screen.plotted(figure, shown=shown, at=cutoff, others=others)
    every = (figure, *others)
    alt = " ".join(f.describe() for f in every)
    screen.chart(figure, drawing, key="decisions.benefit", filename="net-benefit", alt=alt)
    frame = pd.concat([f.frame().assign(model=f.name) for f in every], ignore_index=True)
    tables_and_cards.download_button("Download the curve as CSV", frame, "net-benefit", quiet=True)


@dataclass(frozen=True, eq=False)
class DecidingSamples:
    """The samples whose scores decide.

    Attributes
    ----------
    before : Sample
        The current rows, reduced to the class that is decided on.
    after : Sample or None
        The same rows after a recalibrator.
    words : str
        Which rows the map was fitted on, and which are shown; empty without a map.
    """

    before: Sample
    after: Sample | None = None
    words: str = ""


def deciding(settings: Settings, method: str) -> DecidingSamples:
    """Return the samples before and after a method; raise NotAvailable if there is nothing to decide."""
    sample = decidable(settings.sample)
    if method == NOT_RECALIBRATED:
        return DecidingSamples(sample)
    with st.spinner(md(f"Fitting {RECALIBRATORS[method].label.lower()} …"), show_time=True):
        return _recalibrated(settings.rows_key, method, sample.reduction, settings)


@st.cache_resource(scope="session", max_entries=8, show_spinner=False)
def _recalibrated(
    key: tuple[str, ...], method: str, reduction: Reduction, _settings: Settings
) -> DecidingSamples:
    result = pinning.recalibrate(_settings, method)
    label = RECALIBRATORS[method].label
    names = model_name(_settings), name_after(label)
    before, after_it = (
        decidable(_two_classes(Sample(data, reduction=reduction), name))
        for data, name in zip((result.before, result.after), names, strict=True)
    )
    fit, judged = result.fit.words, result.evaluation.words
    text = f"{label} is fitted on {fit}; both are shown on {judged}."
    return DecidingSamples(before, after_it, " ".join([text, *result.warnings]))


def _two_classes(sample: Sample, name: str) -> Sample:
    """Return the class that is decided on against the rest, which takes little memory."""
    # Of a profile, `events` says that it has no rows.
    events = sample.scored if sample.data.cells is None else sample.events
    names = ("the rest", sample.data.class_names[sample.reduction.class_index(sample.data)])
    names = names if names[0] != names[1] else ("all others", names[1])
    data = Predictions(
        probs=events.score,
        labels=events.hit.astype(int),
        class_names=names,
        name=name,
        weights=sample.data.weights,
        clusters=sample.data.clusters,
    )
    return Sample(data, reduction=Reduction("positive"))


# ---- Rating grades

#: Key of the widget that chooses the column of grades.
GRADES_KEY = "grades"
#: A coloured mark beside the word, of a character that every font has.
_MARK = "●"
#: Columns of shares and of p-values, by their heads.
_SHARES = {"mean score": "mean_score", "observed": "observed", "from": "low", "to": "high"}
_TESTS = {"p (Jeffreys)": "p_jeffreys", "p (binomial)": "p_binomial", "p (adjusted)": "p_adjusted"}
_COLOURS = {"green": "#2e7d32", "yellow": "#b26a00", "red": "#c62828", "none": "#6b6b6b"}
_IN_THE_DARK = {"green": "#7cc47f", "yellow": "#e0b04a", "red": "#ef8a80", "none": "#a0a0a0"}


def explore_grades(
    all_classes: Sample, of_one_class: Callable[[], Sample], say: Callable[[str], object]
) -> None:
    """Draw a table of the grades in a group column, if there is one, of the class that is then asked for; `say` replaces the title."""
    if not cutoff_and_grades.possible_grade_columns(all_classes.data):
        few, many = cutoff_and_grades.LEAST_GRADES, cutoff_and_grades.MOST_GRADES
        st.info(
            f"No column of this file could hold grades; add one of {few} to {many} values, such as A, B, C, and open it again.",
            icon=":material/info:",
        )
        return
    sample = of_one_class()
    column = choose_grades(sample.data)
    if column is None:
        say("Choose the column of grades")
        return
    tested = sample.view(grades, column=column)
    say(tested.headline)
    st.markdown(md(keep_units_together(tested.reading()), 1_000))
    _grades_table(tested)
    st.caption(
        f"Grades in the order of their mean score, with Jeffreys 95 % intervals. {cutoff_and_grades.tests_words(sample.data)}"
    )


def choose_grades(data: Dataset) -> str | None:
    """Draw the choice of the column of grades, the recognised ones first; return it, or None."""
    recognised = cutoff_and_grades.grade_columns(data)
    return st.selectbox(
        "Column of rating grades",
        dict.fromkeys((*recognised, *cutoff_and_grades.possible_grade_columns(data))),
        index=0 if recognised else None,
        placeholder="no column looks like grades; choose one",
        key=GRADES_KEY,
        bind="query-params",
        format_func=lambda name: shorten(name, 60),
        width=380,
        persist_state="session",
    )


def _grades_table(tested: Grades) -> None:
    """Draw the table; a click on a row selects the rows of its grade."""
    names, column = tested.names, tested.column
    by = f"decisions.grades.{column}"
    key = selection.widget_key(by)
    share = st.column_config.NumberColumn(format="%.2f %%")
    counts_as = st.column_config.NumberColumn(format="%.0f", help=cutoff_and_grades.COUNTS_AS)
    coloured: Any = _grades_frame(tested).style.map(_coloured, subset=["light"])  # type: ignore[arg-type]
    screen.table(
        coloured,
        alt="Tests per grade",
        **selection.of_tick(key, [SliceRule(((column, name),)) for name in names], by=by),
        column_config=dict.fromkeys(_SHARES, share)
        | dict.fromkeys(("rows", "hits"), st.column_config.NumberColumn(format="localized"))
        | {"counts as": counts_as},
    )


def _grades_frame(tested: Grades) -> pd.DataFrame:
    """Return one row per grade, shares in %."""
    c = tested.columns()
    frame = pd.DataFrame(
        {
            "grade": [shorten(name, 60) for name in c["grade"]],
            "rows": c["rows"],
            "hits": c["hits"],
            **{name: words.percent_numbers(c[key], 2) for name, key in _SHARES.items()},
            **{name: [*map(words.p_number, c[key].tolist())] for name, key in _TESTS.items()},
            "light": [f"{_MARK} {light}" for light in c["light"]],
        }
    )
    if not tested.alike:
        frame.insert(2, "counts as", c["counts_as"])
    return frame


def _coloured(light: str) -> str:
    colours = _IN_THE_DARK if screen.theme() == "dark" else _COLOURS
    return f"color: {colours[light.removeprefix(_MARK).strip()]}"

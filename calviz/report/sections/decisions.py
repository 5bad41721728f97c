"""What follows from the probabilities: decisions at a cutoff, rating grades, prediction sets, referrals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd

from calviz.comparison.guaranteed_thresholds import threshold
from calviz.comparison.prediction_sets import sets_of
from calviz.core import errors, words
from calviz.data.loaded import fit_split_for
from calviz.figures.net_benefit import NetBenefit
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.roc import OutcomeHistogram, Roc, RocPanel
from calviz.report import content
from calviz.report.content import Block, Note, Subject, TableBlock, Text, caption, chart, section
from calviz.sample import cutoff_and_grades
from calviz.sample.cutoff_and_grades import COUNTS_AS, at_cutoff, decidable, grade_columns, grades
from calviz.sample.sample import MIN_ROWS, Sample, event_rate_if_rare, rate_if_rare
from calviz.verdicts.analysis import VALIDATION_METRICS, evaluate

#: Share of errors that is allowed at first, as on the tab Risk-coverage.
RISK = 0.05
#: Number of rows of the tables below the charts.
ROWS = 21
#: Cutoffs in the table of decisions; of a rare event, those from which these shares of the rows are acted on.
CUTOFFS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_SHORT = {"positive predictive value": "PPV", "negative predictive value": "NPV"}


@section("decisions", "Costs: decisions at a cutoff", 58, earlier="Decisions")
def make_decisions(subject: Subject) -> Iterator[Block]:
    """ROC, net benefit, and scores by outcome.

    Yield the curves, and the results of decisions at some cutoffs; nothing if no single class is decided on.
    """
    try:
        sample = decidable(subject.sample)
    except errors.NotAvailable:
        # With many classes, none is judged alone: nothing is missing from such a report.
        if subject.sample.data.n_classes != 2 and subject.sample.reduction.kind != "class":
            return
        raise
    yield from _trade_offs(subject, sample)
    yield from _net_benefit(subject, sample)
    yield at_cutoffs(sample, subject.cutoff)
    at = sample.view(at_cutoff, cutoff=CUTOFFS[0])
    by_weight = "Acted on: rows; all else is by weight. " * at.by_weight
    yield Note(
        f"{by_weight}Shares in % with 95 % intervals: {words.share_intervals(at.alike)}; PPV and NPV: positive and negative predictive value. A cutoff of t "
        "means that a false negative is as bad as (1 - t) / t false positives; net benefit weighs them accordingly."
    )
    yield content.Heading("What validations report")
    # The areas are given above.
    keys = [key for key in VALIDATION_METRICS if key not in ("auroc", "auprc")]
    yield content.Cards(tuple(evaluate(sample, keys, ci=True)), sample.data.rows)
    yield from _scores_by_outcome(subject, sample)


def _trade_offs(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the ROC and precision-recall curves, and what the cutoff of the subject means."""
    roc = sample.view(Roc.compute, **sample.redrawing)
    yield Text(roc.reading())
    cells = None
    if subject.cutoff is not None:
        cells = sample.view(at_cutoff, cutoff=subject.cutoff)
        yield Text(cells.meaning())
    share = {"sensitivity": "sensitivity", "false_alarms": "FPR", "precision": "precision"}
    panels: dict[RocPanel, str] = {"roc": "ROC curve", "precision-recall": "Precision and recall"}
    for panel, title in panels.items():
        drawn = chart(
            roc,
            key=panel,
            title=title,
            caption=caption(subject, roc.reading()),
            formats={
                "cutoff": ("cutoff", words.decimal),
                **{name: (heading, words.percent) for name, heading in share.items()},
            },
            rows=content.spread(roc.cutoff.size, ROWS)[1:],
            panel=panel,
            at=cells,
        )
        yield replace(drawn, alt=roc.describe(panel))


def _net_benefit(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the net benefit at all cutoffs."""
    benefit = sample.view(NetBenefit.compute, **sample.redrawing)
    yield Text(benefit.reading())
    yield chart(
        benefit,
        key="net-benefit",
        title="Net benefit",
        caption=caption(subject, benefit.reading()),
        formats={
            "cutoff": ("cutoff", lambda v: words.decimal(v, 2)),
            "net_benefit": ("net benefit", words.decimal),
            "net_benefit_low": ("95 % CI from", words.decimal),
            "net_benefit_high": ("to", words.decimal),
            "act_on_all": ("acting on everybody", words.decimal),
            "standardised": ("standardised", words.decimal),
            "avoided": ("actions avoided per 100", lambda v: words.decimal(v, 1)),
        },
        rows=content.spread(benefit.cutoff.size, ROWS),
        at=subject.cutoff,
    )


def _scores_by_outcome(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the histograms of the scores of hits and of misses."""
    figure = sample.view(OutcomeHistogram.compute, seed=sample.seed)
    yield Text(figure.reading())
    yield chart(
        figure,
        key="scores-by-outcome",
        title="Scores by outcome",
        caption=caption(subject),
        formats={
            "low": ("above", lambda v: words.decimal(v, 2)),
            "high": ("up to", lambda v: words.decimal(v, 2)),
            "hits": ("hits", words.whole),
            "misses": ("no hits", words.whole),
        },
    )


def _cutoffs(sample: Sample) -> tuple[float, ...]:
    """The cutoffs of the table: few scores of a rare event reach the usual ones."""
    rate = rate_if_rare(sample)
    if rate is None or rate > 0.5:
        return CUTOFFS
    upto = 1 - np.array((0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    scores = np.quantile(
        sample.scored.score, upto, weights=sample.weights, method="inverted_cdf"
    ).tolist()
    # As they are written, so that the reader's counts are these.
    return tuple(cutoff for cutoff in (float(f"{score:.3g}") for score in scores) if 0 < cutoff < 1)


def at_cutoffs(sample: Sample, chosen: float | None) -> TableBlock:
    """The results of decisions at some cutoffs, and at the chosen one."""
    shown, numbers = [], []
    extra = () if chosen is None else (chosen,)
    for cutoff in sorted({*_cutoffs(sample), *extra}):
        c = sample.view(at_cutoff, cutoff=cutoff)
        per_1000 = c.per_1000["tp"] + c.per_1000["fp"]
        row = {"cutoff": cutoff, **c.rows, "acted on per 1,000": per_1000}
        # Only what fits on a page; the numbers include all counts.
        text = {
            "cutoff": f"{cutoff:.3g}",
            "net benefit": words.decimal(c.net_benefit, c.decimals),
            "acted on": words.whole(c.rows["tp"] + c.rows["fp"]),
            "per 1,000": words.number(per_1000, 2).removesuffix(".0"),
        }
        for name, (value, low, high) in c.shares().items():
            row |= {name: value, f"{name} low": low, f"{name} high": high}
            ends = "" if low != low else f" ({words.points(low)} to {words.points(high)})"
            text[_SHORT.get(name, name)] = "–" if value != value else f"{words.points(value)}{ends}"
        numbers.append(row | {"net benefit": c.net_benefit})
        shown.append(text)
    frame = pd.DataFrame(shown)
    return TableBlock(
        "decisions", "Decisions at some cutoffs", frame, pd.DataFrame(numbers), list(frame.columns)
    )


@section("grades", "Grades", 56, earlier="Rating grades")
def make_grades(subject: Subject) -> Iterator[Block]:
    """Tests per grade, with traffic lights.

    Yield one table per column of grades; nothing without such a column.
    """
    data = subject.sample.data
    columns = grade_columns(data) if subject.grades is None else (subject.grades,)
    requested = subject.preset == "credit" or subject.grades is not None
    if not columns or not (requested or cutoff_and_grades.has_grades(data)):
        return
    sample = decidable(subject.sample)
    equal_rows = True
    # Largest number of columns shown if no column of grades is named.
    for column in columns[:3]:
        result = sample.view(grades, column=column)
        if len(columns) > 1:
            yield content.Heading(words.shorten(column, 80))
        equal_rows = equal_rows and result.alike
        yield Text(result.reading())
        frame = pd.DataFrame(dict(result.columns()))

        def share(value: float) -> str:
            if value != value:  # nan for a grade that is not tested
                return "n/a"
            return words.percent(value, max(1, words.decimals_for(100 * value, most=3)))

        formats: content.Formats = {
            "grade": ("grade", lambda v: words.shorten(str(v), 60)),
            "rows": ("rows", words.whole),
            "counts_as": ("counts as", lambda v: "n/a" if v != v else words.whole(round(v))),
            "hits": ("hits", words.whole),
            "mean_score": ("mean score", share),
            "observed": ("observed", share),
            "low": ("95 % CI from", share),
            "high": ("to", share),
            "p_jeffreys": ("p (Jeffreys)", words.p_number),
            "p_binomial": ("p (binomial)", words.p_number),
            "p_adjusted": ("p (adjusted)", words.p_number),
            "light": ("light", str),
        }
        if result.alike:
            del formats["counts_as"]
        shown = content.formatted(frame, formats)
        right = [h for name, (h, _) in formats.items() if name not in ("grade", "light")]
        key = "grades" if len(columns) == 1 else f"grades-{columns.index(column) + 1}"
        yield TableBlock(key, f"Grades by {words.shorten(column, 60)}", shown, frame, right)
    if not equal_rows:
        yield Note(f"Counts as: {COUNTS_AS[0].lower()}{COUNTS_AS[1:]}")
    yield Note(cutoff_and_grades.tests_words(data))


@section("judge", "The judge's rate, corrected by people", 54)
def make_judge(subject: Subject) -> Iterator[Block]:
    """What the verdicts of a judge are worth.

    Yield the corrected rate, how judge and people agree, what groups differ in, and the labels that are needed; nothing without a judge.
    """
    if (found := subject.judged) is None:
        return
    summary = found.summary()
    yield content.Lead(summary.verdict, below=" ".join(summary.lines))
    yield from map(Text, (*found.remarks(), *(d.sentence() for d in found.differences)))
    shown = pd.DataFrame(summary.rows, columns=["what", *summary.header[1:]])
    yield TableBlock("judge", f"Judged {summary.title}", shown, right=summary.header[1:])
    yield Text(found.needed_sentence())


@section("prediction-sets", "Prediction sets", 61)
def make_prediction_sets(subject: Subject) -> Iterator[Block]:
    """The classes that are plausible, at 90 % coverage.

    Yield coverage and mean size, for all rows and by true class.
    """
    try:
        sets = sets_of(subject.sample, subject.whole)
    except errors.InputError as error:  # too few rows
        raise errors.NotAvailable(f"no prediction sets: {error}") from None
    yield Text(sets.reading())
    subsets = (sets.overall, *sets.classes)
    shown = pd.DataFrame(
        {
            "true class": [words.shorten(s.name, 60) for s in subsets],
            "rows": [words.whole(s.rows) for s in subsets],
            "coverage": [words.percent(s.coverage) for s in subsets],
            "95 % CI, all classes together, from": [words.percent(s.together.low) for s in subsets],
            "to": [words.percent(s.together.high) for s in subsets],
            "mean size": [s.size_words[0] for s in subsets],
            "95 % CI of the size": [s.size_words[1] for s in subsets],
        }
    )
    right = [name for name in shown.columns if name != "true class"]
    yield TableBlock("prediction-sets", "Prediction sets by true class", shown, sets.frame(), right)
    fit = f"{sets.fit.how} ({words.counted(sets.fit.rows, 'row')})"
    yield Note(
        f"Split-conformal ({sets.method.upper()}): {sets.what_is_chosen} chosen on {fit}, and judged on {sets.evaluation.how}. The "
        "share holds for new rows like these whatever the probabilities are worth; better probabilities make the sets smaller."
    )


@section("threshold", "Which predictions can be kept", 37, on_request=True)
def make_threshold(subject: Subject) -> Iterator[Block]:
    """From which confidence on at most 5 % are wrong.

    Yield the sentence of the tab Risk-coverage; nothing after a change, or of an event so rare that it may always be denied.
    """
    top, whole = subject.sample.top_label, subject.whole
    rate = event_rate_if_rare(subject.sample)
    rare = rate is not None and min(rate, 1 - rate) <= RISK
    if rare or top.data.rows < MIN_ROWS or subject.verdict.changed:
        return
    judged = subject.sample.split
    with suppress(errors.CalvizError):
        if whole is not None and judged and (split := fit_split_for(whole, judged)):
            yield Text(threshold(whole, RISK, choose_split=split).reading())
        else:
            yield Text(threshold(top.data, RISK).reading())


@section("risk-coverage", "Risk-coverage", 60, earlier="Risk and coverage")
def make_risk_coverage(subject: Subject) -> Iterator[Block]:
    """Accuracy when doubtful predictions are referred.

    Yield the accuracy of the predictions that are kept.
    """
    top = subject.sample.top_label
    figure = top.view(RiskCoverage.compute, ranking="confidence", **top.redrawing)
    yield Text(figure.reading())
    yield chart(
        figure,
        key="risk-coverage",
        title="Accuracy of the predictions that are kept",
        caption=caption(subject, "Ranked by confidence"),
        formats={
            "coverage": ("kept", words.percent),
            "referred": ("referred", words.percent),
            "accuracy": ("accuracy", words.percent),
            "risk": ("risk", words.percent),
            "risk_low": ("95 % CI of the risk from", words.percent),
            "risk_high": ("to", words.percent),
            "perfect_risk": ("perfect ranking", words.percent),
        },
        rows=content.spread(figure.coverage.size, ROWS),
    )

"""Remedies: recalibrators side by side, on rows they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from calviz.core.reduction import Reduction
from calviz.figures.drawing.bullet import MARKS_WORDS, Bullet
from calviz.figures.reliability import Reliability
from calviz.report.blocks import Block, Chart, Facts, Heading, Lead, Note, TableBlock, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.result_columns import metric_columns
from calviz.report.section import SECTIONS, Section
from calviz.report.sections.reliability import COLUMNS
from calviz.report.subject import Subject
from calviz.results.comparison import Comparison, MethodResult, gain_words, refit_words
from calviz.results.comparison_table import TIED_WORDS, ComparisonColumn, marks_words
from calviz.results.metric_words import Written
from calviz.results.slices import where_words
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import decimal, decimals_for, percent, shorten, whole


def make(subject: Subject) -> Iterator[Block]:
    """Yield the table of methods, the ties with the best, and the diagrams before and after the best."""
    comparison = subject.comparison
    if comparison is None:
        return
    if comparison.in_sample:
        yield Lead("In-sample: judged on the rows that the maps were fitted on.", "bad")
    yield Facts(
        (
            *((("Slice", where_words(subject.sample.where)),) if subject.sample.where else ()),
            ("Fitted on", f"{comparison.fit.rows:,} rows ({shorten(comparison.fit.how, 80)})"),
            (
                "Judged on",
                f"{comparison.evaluation.rows:,} rows ({shorten(comparison.evaluation.how, 80)})",
            ),
            ("Reduction", shorten(Reduction.of(comparison.reduction).label, 100)),
            ("Bins", comparison.bins_words),
            ("Seed", str(comparison.seed)),
        )
    )
    if comparison.advice is not None and comparison.criterion is not None:
        yield Lead(f"{comparison.advice.headline}.", below=" ".join(comparison.advice.reasons))
    keys = METRICS.in_table("methods")
    columns = [column for column in comparison.columns(keys) if column.best]
    yield _table(comparison, columns)
    yield Note(
        f"{marks_words()} Values are on the evaluation rows; lower is better for all but accuracy. {gain_words()}."
        + (f" {MARKS_WORDS}" if comparison.criterion else "")
        + (f" What is not told apart: {refit_words(comparison.refits)}." if comparison.tied else "")
    )
    labels = {m.key: m.label for m in comparison}
    warnings = []
    for remark in comparison.remarks(columns):
        # Labels may contain commas.
        names = "; ".join(labels[key] for key in remark.of)
        if remark.metric is not None:
            yield Note(f"{METRICS[remark.metric].label} of {names}: {remark.text}")
        elif remark.kind == "differences":
            yield Note(remark.text)
        else:
            warnings.append((names, shorten(remark.text, 300)))
    tied = [
        (METRICS[key].label, "; ".join(labels[name] for name in names))
        for key, names in comparison.tied.items()
        if key in keys and len(names) > 1
    ]
    if tied:
        yield Heading(TIED_WORDS[0].upper() + TIED_WORDS[1:])
        yield Facts(tuple(tied))
    if warnings:
        yield Heading("Warnings of the fits")
        yield Facts(tuple(warnings))
    yield from _diagrams(subject, comparison)


def _table(comparison: Comparison, metrics: Sequence[ComparisonColumn]) -> TableBlock:
    methods = comparison.ready
    columns, marks = metric_columns(metrics, [m.key for m in methods])
    columns = {"method": [m.label for m in methods], **columns}
    columns["predictions changed"] = [whole(m.predictions_changed) for m in methods]
    digits = decimals_for(*(m.calibration_gain for m in methods), least=4, most=6)
    columns["gain"] = [
        f"{'≥ ' if m.gain_is_lower_bound else ''}{decimal(m.calibration_gain, digits)}"
        for m in methods
    ]
    # Times are left out: they differ from run to run, while a report must not.
    numbers = comparison.frame().drop(columns=["fit_seconds", "apply_seconds"]).reset_index()
    frame, criterion = pd.DataFrame(columns), comparison.criterion
    return TableBlock(
        "comparison",
        "Recalibrators",
        frame,
        numbers,
        tuple(columns)[1:],
        marks,
        bullets=Bullet.column(m.metrics.get(criterion) for m in methods) if criterion else (),
        pictured=METRICS[criterion].label if criterion else "",
    )


def _diagrams(subject: Subject, comparison: Comparison) -> Iterator[Block]:
    before, pictured = comparison.methods.get(UNCALIBRATED), comparison.pictured
    if before is None or pictured is None:
        return
    best, why = comparison[pictured[0]], pictured[1]
    if best.calibrated is None:
        return
    yield Heading(f"Before and after {best.label}, which {why}")
    for name, method in (("before", before), ("after", best)):
        if method.calibrated is not None:
            yield _diagram(subject, method, name)
    accuracy = [Written(m.metrics["accuracy"]) for m in (before, best) if "accuracy" in m.metrics]
    if len(accuracy) == 2:
        yield Text(
            f"Predictions changed: {whole(best.predictions_changed)} of {comparison.evaluation.rows:,}; accuracy "
            f"{percent(accuracy[0].result.value)} before, {percent(accuracy[1].result.value)} after."
        )


def _diagram(subject: Subject, method: MethodResult, name: str) -> Chart:
    assert method.calibrated is not None
    diagram = Reliability.compute(subject.sample.with_data(method.calibrated))
    return chart(
        diagram,
        key=f"reliability-{name}",
        title=f"Reliability {name}: {method.label}",
        caption=caption(subject, method.label),
        formats=COLUMNS,
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "comparison",
        "Recalibration",
        70,
        "Methods side by side, where they were compared",
        make,
        brief=True,
        shows_result="comparison",
    )
)

"""Comparisons in a report: recalibrators, models, numbers of labels, folds, sites, periods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from calviz.comparison import comparison_results
from calviz.comparison.comparison_results import Comparison, ComparisonColumn, ModelComparison
from calviz.comparison.folds_and_sites import LevelResults, fold_columns, folds, site_column, sites
from calviz.comparison.over_time import over_time
from calviz.core import errors, events
from calviz.core.entry_specs import METRICS, UNCALIBRATED, cheap_method
from calviz.core.words import capitalised, decimal, decimals_for, percent, shorten, whole
from calviz.figures import corp, metric_over_time
from calviz.figures.hundred_squares import MARKS_WORDS, Bullet
from calviz.figures.learning_curve import LearningCurves, ModelDifferences
from calviz.figures.reliability import Reliability
from calviz.report import content
from calviz.report.content import Block, Note, Subject, TableBlock, Text, caption, chart, section
from calviz.sample.sample import Sample, where_words
from calviz.verdicts.evaluation import Written, value_text


@section("comparison", "Recalibration", 70, brief=True, shows_result="comparison")
def make_comparison(subject: Subject) -> Iterator[Block]:
    """Methods side by side, where they were compared.

    Yield the table of methods, the ties with the best, and the diagrams before and after the best.
    """
    comparison = subject.comparison
    if comparison is None:
        return
    if comparison.rows_warning:
        yield content.Lead(comparison.rows_warning, "bad")
    yield content.Facts(
        (
            *((("Slice", where_words(subject.sample.where)),) if subject.sample.where else ()),
            ("Fitted on", f"{comparison.fit.rows:,} rows ({shorten(comparison.fit.how, 80)})"),
            (
                "Judged on",
                f"{comparison.evaluation.rows:,} rows ({shorten(comparison.evaluation.how, 80)})",
            ),
            ("Reduction", shorten(events.Reduction.of(comparison.reduction).label, 100)),
            ("Bins", comparison.bins_words),
            ("Seed", str(comparison.seed)),
        )
    )
    if (advice := comparison.advice) is not None:
        yield content.Lead(f"{advice.headline}.", below=" ".join(advice.reasons))
    keys = METRICS.in_table("methods")
    columns = [column for column in comparison.columns(keys) if column.best]
    yield _method_table(comparison, columns)
    refits = comparison_results.refit_words(comparison.refits)
    yield Note(
        f"{comparison_results.marks_words(columns)} Values are on the evaluation rows; lower is better for all but accuracy. {comparison_results.gain_words()}."
        + (f" {MARKS_WORDS}" if comparison.criterion else "")
        + (f" What is not told apart: {refits}." if comparison.tied else "")
    )
    labels = {m.key: m.label for m in comparison}
    warnings = []
    for remark in comparison.remarks(columns):
        # Labels may contain commas.
        names = "; ".join(labels[key] for key in remark.of)
        if remark.kind in ("value", "differences"):
            yield Note(remark.words(names))
        else:
            warnings.append((names, shorten(remark.text, 300)))
    tied = [
        (METRICS[key].label, "; ".join(labels[name] for name in names))
        for key, names in comparison.tied.items()
        if key in keys and len(names) > 1
    ]
    if tied:
        yield content.Heading(capitalised(comparison_results.TIED_WORDS))
        yield content.Facts(tuple(tied))
    if warnings:
        yield content.Heading("Warnings of the fits")
        yield content.Facts(tuple(warnings))
    yield from _diagrams(subject, comparison)


def _method_table(comparison: Comparison, metrics: Sequence[ComparisonColumn]) -> TableBlock:
    methods = comparison.ready
    columns, marks = content.metric_columns(metrics, [m.key for m in methods])
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
    yield content.Heading(f"Before and after {best.label}, which {why}")
    # A map may tie scores, and then other bins would be the usual ones.
    rows = subject.sample.but(scheme=subject.sample.placed)
    for name, method in (("before", before), ("after", best)):
        if method.calibrated is not None:
            yield chart(
                Reliability.compute(rows.with_data(method.calibrated)),
                key=f"reliability-{name}",
                title=f"Reliability {name}: {method.label}",
                caption=caption(subject, method.label),
                formats=content.BIN_COLUMNS,
            )
    accuracy = [Written(m.metrics["accuracy"]) for m in (before, best) if "accuracy" in m.metrics]
    if len(accuracy) == 2:
        yield Text(
            f"Predictions changed: {whole(best.predictions_changed)} of {comparison.evaluation.rows:,}; accuracy "
            f"{percent(accuracy[0].result.value)} before, {percent(accuracy[1].result.value)} after."
        )


@section(
    "models",
    "Compare models",
    95,
    shared=True,
    brief=True,
    shows_result="models",
    earlier="Models side by side",
)
def make_models(subject: Subject) -> Iterator[Block]:
    """Which model, on the same rows.

    Yield the best model, how rows were matched, the metrics, and the paired differences from the best.
    """
    comparison = subject.models
    if comparison is None:
        return
    keys = comparison_results.ranked_by(comparison)
    if keys:
        yield Text(comparison_results.headline(comparison, keys[0]))
        warning = comparison_results.caution(comparison, keys[0])
        yield from map(Text, filter(None, (warning, comparison_results.where_words(comparison))))
    yield from map(Text, comparison_results.state_words(comparison))
    for text in comparison_results.map_words(comparison)[-1:]:
        yield Note(text)
    for note in comparison.alignment.notes:
        yield Note(shorten(note, 500))
    columns = [c for c in comparison.columns(comparison.usual()) if c.best]
    yield _model_table(comparison, columns)
    if keys:
        yield Note(
            f"{comparison_results.marks_words(columns)} "
            f"Binned metrics: {comparison.bins_words}. {MARKS_WORDS}"
        )
    for remark in comparison.remarks(columns):
        said = remark.words(", ".join(shorten(model, 60) for model in remark.of))
        yield Note(said) if remark.kind in ("value", "differences") else Text(shorten(said, 360))
    drawn = [key for key in keys if key in METRICS.in_table("drawn")] or list(keys[:1])
    best = comparison.ranking(keys[0])[0] if keys else ""
    if drawn:
        yield Note(
            f"Differences: {comparison.interval_words(drawn[0])}. Better or worse: it excludes 0. {comparison_results.NOISELESS_WORDS}"
        )
    for key in drawn:
        yield _differences(comparison, key, best)
    yield _plane(comparison)


def _plane(comparison: ModelComparison) -> content.Chart:
    figure = corp.MiscalibrationPlane.compute(comparison)
    formats: content.Formats = {
        "model": ("model", lambda name: shorten(name, 60)),
        **{part: (part, partial(decimal, decimals=4)) for part in (*corp.PARTS, "score")},
    }
    return chart(
        figure, key="models-plane", title="What recalibration could take off", formats=formats
    )


def _model_table(comparison: ModelComparison, metrics: Sequence[ComparisonColumn]) -> TableBlock:
    models = [m for m in comparison if m.ok]
    columns, marks = content.metric_columns(metrics, [m.name for m in models])
    columns = {"model": [shorten(m.name, 60) for m in models], **columns}
    lead = next(iter(comparison_results.ranked_by(comparison)), None)
    return TableBlock(
        "models",
        "Models on the same rows",
        pd.DataFrame(columns),
        comparison.frame().reset_index(),
        tuple(columns)[1:],
        marks,
        bullets=Bullet.column(m.metrics.get(lead) for m in models) if lead else (),
        pictured=METRICS[lead].label if lead else "",
    )


def _differences(comparison: ModelComparison, metric: str, reference: str) -> content.Chart:
    figure = ModelDifferences.compute(comparison, metric=metric, reference=reference)
    scale, unit = figure.scale

    def written(value: float) -> str:
        return decimal(scale * value, 2 if unit else 4)

    return chart(
        figure,
        key=f"models-{metric}",
        title=f"{figure.label}, minus that of {shorten(reference)}",
        formats={
            "model": ("model", lambda name: shorten(name, 60)),
            "difference": (f"difference ({unit})" if unit else "difference", written),
            "low": ("95 % CI from", written),
            "high": ("to", written),
            "beyond_noise": ("beyond noise", str),
        },
    )


@section("learning-curve", "How many labels?", 72, shows_result="learning", earlier="Labels needed")
def make_learning_curve(subject: Subject) -> Iterator[Block]:
    """How many labels recalibration needs.

    Yield the answer, the number of labels each method needs, and the curves.
    """
    curve = subject.learning
    if curve is None or not curve.methods:
        return
    advice, drawn = subject.comparison and subject.comparison.advice, METRICS.in_table("drawn")
    curve = curve.led_by(advice.method) if advice else curve
    first, *others = curve.criteria
    for number, key in enumerate((first, *(key for key in others if key in drawn))):
        figure = LearningCurves.compute(curve, metric=key)
        if number == 0:
            yield Text(figure.answer())
            for text in (*figure.warnings(), *figure.sentences()):
                yield Text(text)
        yield _learning_chart(figure)
    rows = curve.rows_words(lambda how: shorten(how, 100))
    yield Note(f"{rows} Binned metrics: {curve.bins_words}.")


def _learning_chart(figure: LearningCurves) -> content.Chart:
    written, label = partial(value_text, figure.metric), METRICS[figure.metric].label
    return chart(
        figure,
        key=f"learning-curve-{figure.metric}",
        title=f"{label} by number of labels",
        formats={
            "method": ("method", figure.label),
            "rows": ("labels", whole),
            "mean": (f"mean {label}", written),
            "low": ("5 % of draws below", written),
            "high": ("95 % below", written),
            "draws": ("draws", whole),
        },
    )


@section("folds", "Folds", 57)
def make_folds(subject: Subject) -> Iterator[Block]:
    """Each fold of a cross-validation by itself.

    Yield the metrics over the folds, and the curve of each; nothing without a column of folds.
    """
    columns = fold_columns(subject.sample.data)
    if columns:
        yield from _by_level(subject, folds, columns, "folds")


@section("sites", "Sites", 59)
def make_sites(subject: Subject) -> Iterator[Block]:
    """Each site by itself, and what a new site is expected to show.

    Yield the random effects, and the curve of each site; nothing unless a column of sites is named, or called so.
    """
    by = subject.sites or site_column(subject.sample.data)
    if by is not None:
        yield from _by_level(subject, partial(sites, by=by), by, "sites")


def _by_level(
    subject: Subject, make: Callable[[Sample], LevelResults], by: str | Sequence[str], key: str
) -> Iterator[Block]:
    try:
        result = subject.sample.once(make)
    except errors.CalvizError as error:
        yield Note(str(error))
        return
    summary = result.summary()
    yield Text(summary.verdict)
    texts = pd.DataFrame(list(summary.rows), columns=list(summary.header))
    yield TableBlock(key, summary.title, texts, result.frame(), tuple(summary.header)[1:])
    yield chart(
        metric_over_time.CurvesByLevel.compute(subject.sample, by, panels=key == "sites"),
        key=f"{key}-curves",
        title=f"Reliability by {summary.title.rpartition(' by ')[2]}",
        caption=caption(subject),
        formats={
            "level": ("level", lambda name: shorten(name, 60)),
            "mean_score": ("mean score", percent),
            "observed": ("observed", percent),
            "low": ("95 % CI from", percent),
            "high": ("to", percent),
        },
    )
    for note in summary.notes:
        yield Note(note)


@section("over-time", "Time", 66, earlier="Over time")
def make_over_time(subject: Subject) -> Iterator[Block]:
    """Periods, changes, and recalibration on the past.

    Yield the MCS of each period, and recalibration on the past; nothing without times.
    """
    sample = subject.sample
    if sample.data.times is None:
        return
    try:
        result = sample.once(over_time, method=cheap_method(sample.data))
    except errors.CalvizError as error:
        yield Note(str(error))
        return
    figure = metric_over_time.OverTimeLine.compute(result)
    if result.watch is not None:
        yield Text(result.watch.sentence())
    if result.watch is None or result.watch.found is None or result.sides:
        yield Text(figure.answer())
    yield Text(figure.past())
    drawn = chart(
        figure,
        key="over-time",
        title=f"{figure.label} by {result.every}",
        caption=caption(subject),
        formats={},
    )
    table = pd.DataFrame(figure.table(figure.shown))
    yield replace(drawn, table=replace(drawn.table, shown=table, right=[*table][1:]))

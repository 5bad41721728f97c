"""Comparison of several models on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from calviz.figures.corp import PARTS
from calviz.figures.drawing.bullet import MARKS_WORDS, Bullet
from calviz.figures.miscalibration_plane import MiscalibrationPlane
from calviz.figures.model_differences import ModelDifferences
from calviz.report.blocks import Block, CellFormat, Chart, Note, TableBlock, Text, chart
from calviz.report.chart_caption import WIDTH
from calviz.report.result_columns import metric_columns
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.comparison import BASIS_WORDS, BEST_IN_WORDS, NOISELESS_WORDS
from calviz.results.comparison_table import ComparisonColumn, marks_words
from calviz.results.metric_words import scale_of
from calviz.results.model_comparison import ModelComparison
from calviz.results.model_words import caution, headline, ranked_by
from calviz.specs.metric import METRICS
from calviz.text.words import decimal, percent, shorten


def make(subject: Subject) -> Iterator[Block]:
    """Yield the best model, how rows were matched, the metrics, and the paired differences from the best."""
    comparison = subject.models
    if comparison is None:
        return
    keys = ranked_by(comparison)
    if keys:
        yield Text(headline(comparison, keys[0]))
        warning = caution(comparison, keys[0])
        if warning:
            yield Text(warning)
    for note in comparison.alignment.notes:
        yield Note(shorten(note, 500))
    columns = [c for c in comparison.columns(METRICS.in_table("rivals")) if c.best]
    yield _table(comparison, columns)
    if keys:
        yield Note(
            f"{marks_words()} Best in: {BEST_IN_WORDS}, by {METRICS[keys[0]].label}. "
            f"Binned metrics: {comparison.bins_words}. {MARKS_WORDS}"
        )
    for remark in comparison.remarks(columns):
        name = ", ".join(shorten(model, 60) for model in remark.of)
        if remark.metric is not None:
            yield Note(f"{METRICS[remark.metric].label} of {name}: {remark.text}")
        elif remark.kind == "differences":
            yield Note(remark.text)
        else:
            yield Text(f"{name}: {shorten(remark.text, 300)}")
    drawn = [key for key in keys if key in METRICS.in_table("drawn")] or list(keys[:1])
    best = comparison.ranking(keys[0])[0] if keys else ""
    if drawn:
        yield Note(f"Differences: {BASIS_WORDS[0].lower()}{BASIS_WORDS[1:]} {NOISELESS_WORDS}")
    for key in drawn:
        yield _differences(comparison, key, best)
    yield _plane(comparison)


def _plane(comparison: ModelComparison) -> Chart:
    figure = MiscalibrationPlane.compute(comparison)
    formats: dict[str, tuple[str, CellFormat]] = {
        "model": ("model", lambda name: shorten(name, 60)),
        **{part: (part, _four) for part in (*PARTS, "score")},
    }
    return chart(
        figure,
        key="models-plane",
        title="Miscalibration against discrimination",
        caption=figure.caption(),
        formats=formats,
        width=WIDTH,
    )


def _four(value: float) -> str:
    return decimal(value, 4)


def _table(comparison: ModelComparison, metrics: Sequence[ComparisonColumn]) -> TableBlock:
    models = [m for m in comparison if m.ok]
    columns, marks = metric_columns(metrics, [m.name for m in models])
    columns = {"model": [shorten(m.name, 60) for m in models], **columns}
    lead = next(iter(ranked_by(comparison)), None)
    if lead is not None:
        columns["best in"] = [
            percent(m.best_share[lead], 0) if lead in m.best_share else "" for m in models
        ]
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


def _differences(comparison: ModelComparison, metric: str, reference: str) -> Chart:
    figure = ModelDifferences.compute(comparison, metric=metric, reference=reference)
    scale, unit = scale_of(metric, difference=True)

    def written(value: float) -> str:
        return decimal(scale * value, 2 if unit else 4)

    return chart(
        figure,
        key=f"models-{metric}",
        title=f"{METRICS[metric].label}, minus that of {shorten(reference)}",
        caption=figure.caption(),
        formats={
            "model": ("model", lambda name: shorten(name, 60)),
            "difference": (f"difference ({unit})" if unit else "difference", written),
            "low": ("95 % CI from", written),
            "high": ("to", written),
            "beyond_noise": ("beyond noise", str),
        },
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "models",
        "Models side by side",
        95,
        "Which model, on the same rows",
        make,
        shared=True,
        brief=True,
        shows_result="models",
    )
)

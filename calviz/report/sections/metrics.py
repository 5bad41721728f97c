"""Every metric with its interval and its noise floor."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.drawing.bullet import Bullet
from calviz.report.blocks import Block, Facts, Heading, Note, TableBlock
from calviz.report.metric_tables import RIGHT, families, numbers, written_columns
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.metric_words import alone, missing, remarks
from calviz.specs.metric import METRICS


def make(subject: Subject) -> Iterator[Block]:
    """Yield one table of all metrics by family and, below it, why some have no value."""
    evaluation = subject.evaluation
    results = {
        r.key: r for family in families() for r in evaluation if METRICS[r.key].family == family
    }
    available = {key: r for key, r in results.items() if r.available}
    shown = written_columns(available)
    right = [c for c in shown.columns if c in RIGHT]
    bullets = [Bullet.of(r) for r in available.values()] if subject.has_error_bars else []
    groups: dict[int, str] = {}
    for row, key in enumerate(available):
        if METRICS[key].family not in groups.values():
            groups[row] = METRICS[key].family
    yield TableBlock(
        "metrics",
        "All metrics",
        shown,
        numbers(results),
        right,
        groups=groups,
        bullets=bullets,
        one_scale=False,
    )
    yield Note(
        "Noise: the same metric if the model were perfectly calibrated, with the same number of rows: its mean, and what "
        "95 % of calibrated models stay below. p-value: how often such a model shows a value at least as "
        f"extreme. Calibration metrics look at the {subject.sample.reduction.label}, binned ones at "
        f"{subject.sample.bins_words} unless their name says otherwise; ECE², debiased, has bins of equal mass. "
        f"{alone(subject.verdict)}"
    )
    if not subject.has_error_bars:
        yield Note(
            "The data are large: intervals and noise floors are computed for the headline metrics only."
        )
    if notes := remarks(results.values()):
        yield Facts(notes)
    if reasons := missing(results.values()):
        yield Heading("Without a value")
        yield Facts(reasons)


SECTIONS.register(
    Section("metrics", "All metrics", 80, "Every number, with interval and noise floor", make)
)

"""CAL023: classes whose probability is too high or too low on average."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.checks.support.one_vs_rest import means_off
from calviz.core.finding import Finding
from calviz.sample.class_ranges import class_ranges
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import full_sentence


def against_the_rest(sample: Sample) -> Iterator[Finding]:
    """Compare the mean probability of every class with its frequency."""
    # Of two classes, the positive one is what the verdict is about under its own reduction.
    if sample.data.n_classes == 2 and sample.reduction.kind != "top-label":
        return
    if sample.data.kind == "confidence" and sample.data.cells is None:
        return
    ranges = sample.view(class_ranges, view="one-vs-rest")
    if ranges.beyond.any():
        yield Finding("CAL023", "warning", full_sentence(means_off(sample, ranges.beyond)))


CHECKS.register(
    Check(
        "CAL023",
        "Classes too high or too low against the rest",
        against_the_rest,
        cells=True,
        about="classes",
    )
)

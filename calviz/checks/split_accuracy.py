"""CAL010: splits on which the model is not equally accurate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, listed, percent

#: Smallest difference that is reported, however significant; and the level of the test.
DIFFERENCE, ALPHA = 0.02, 0.01


def split_accuracy(sample: Sample) -> Iterator[Finding]:
    """Compare the best split with the worst one."""
    splits = sample.data.splits
    if splits is None:
        return
    rows = np.bincount(splits.codes, minlength=len(splits.levels))
    right = np.bincount(splits.codes, sample.top_events.hit, minlength=len(splits.levels))
    large = np.flatnonzero(rows >= MIN_ROWS)
    if large.size < 2:
        return
    accuracy = right[large] / rows[large]
    best, worst = (int(large[i]) for i in (accuracy.argmax(), accuracy.argmin()))
    difference = float(accuracy.max() - accuracy.min())
    pooled = float(right[[best, worst]].sum() / rows[[best, worst]].sum())
    sd = (pooled * (1 - pooled) * (1 / rows[best] + 1 / rows[worst])) ** 0.5
    pairs = large.size * (large.size - 1) / 2
    if difference < DIFFERENCE or 2 * ndtr(-difference / sd) * pairs > ALPHA:
        return
    high, low = (
        f"{listed([splits.levels[s]])} {percent(right[s] / rows[s])} ({counted(int(rows[s]), 'row')})"
        for s in (best, worst)
    )
    yield Finding(
        "CAL010",
        "warning",
        f"Accuracy differs between splits beyond noise, {high} against {low}: they are not samples of the "
        "same population, so look at each by itself.",
    )


CHECKS.register(Check("CAL010", "Splits that differ in accuracy", split_accuracy))

"""CAL020: predicted classes whose confidence does not match their accuracy (top-label calibration)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.results.gaps import share_decimals
from calviz.sample.class_ranges import class_ranges
from calviz.sample.predicted_classes import predicted_class_sums
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, listed, outside_range, percent


def predicted_class(sample: Sample) -> Iterator[Finding]:
    """Compare confidence and accuracy of each predicted class (Gupta & Ramdas 2022)."""
    try:
        ranges = sample.view(class_ranges, view="predicted-class")
    except NotAvailable:
        return
    off = np.where(ranges.has, ranges.beyond, 0.0)
    if ranges.range is None or not off.any():
        return
    sums = sample.view(predicted_class_sums)
    k = int(np.abs(off).argmax())
    rows = float(sums.rows[k])
    value, low, high = outside_range(
        float(ranges.value[k]), *(float(end[k]) for end in ranges.range)
    )
    score, hits = float(sums.score[k]) / rows, float(sums.hits[k]) / rows
    decimals = share_decimals(score, hits, len(value.partition(".")[2]))
    total = counted(int(ranges.has.sum()), "predicted class", "predicted classes")
    yield Finding(
        "CAL020",
        "warning",
        f"Of {total} the model is {named_sides(off, ('overconfident', 'underconfident'))} beyond noise, {most(off)}where it "
        f"says {listed([_name(sample, k)])} ({counted(int(rows), 'row')}): mean confidence "
        f"{percent(score, decimals)} but accuracy {percent(hits, decimals)}, a difference of "
        f"{value} points where a calibrated model would show {low} to {high}.",
    )


def named_sides(off: FloatArray, words: tuple[str, str]) -> str:
    """Text on how many classes are off in each direction: "overconfident on 2 and underconfident on 1"."""
    sides = ((off > 0, words[0]), (off < 0, words[1]))
    return " and ".join(f"{word} on {int(which.sum()):,}" for which, word in sides if which.any())


def most(off: FloatArray) -> str:
    """Return "most " if several classes are off, to precede the one furthest off; "" if it is the only one."""
    return "most " if np.count_nonzero(off) > 1 else ""


def _name(sample: Sample, k: int) -> str:
    names = sample.data.class_names
    return names[k] if names else str(k)


CHECKS.register(
    Check(
        "CAL020",
        "Predicted classes that are over- or underconfident",
        predicted_class,
        "Gupta & Ramdas 2022",
        about="classes",
    )
)

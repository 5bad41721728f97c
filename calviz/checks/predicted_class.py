"""CAL020: predicted classes whose confidence does not match their accuracy (top-label calibration)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks.support.class_sides import most_if_several, named_sides
from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.sample.class_ranges import class_ranges
from calviz.sample.predicted_classes import predicted_class_sums
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.gaps import share_decimals
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
        f"Of {total} the model is {named_sides(off, ('overconfident', 'underconfident'))} beyond noise, {most_if_several(off)}where it "
        f"says {listed([_name(sample, k)])} ({counted(int(rows), 'row')}): mean confidence "
        f"{percent(score, decimals)} but accuracy {percent(hits, decimals)}, a difference of "
        f"{value} points where a calibrated model would show {low} to {high}.",
    )


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

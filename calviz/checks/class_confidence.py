"""CAL013: true classes whose confidence differs from what a calibrated model would show on their rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks.support.class_sides import most_if_several, named_sides
from calviz.core.errors import NotAvailable
from calviz.core.finding import Finding
from calviz.sample.class_ranges import class_ranges
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, listed, outside_range


def class_confidence(sample: Sample) -> Iterator[Finding]:
    """Compare the MCS of every true class with the range of a calibrated model, which is not centred at 0."""
    try:
        ranges = sample.view(class_ranges, view="true-class")
    except NotAvailable:
        return
    off = np.where(ranges.has, ranges.beyond, 0.0)
    if ranges.range is None or not off.any():
        return
    k = int(np.abs(off).argmax())
    value, low, high = outside_range(
        float(ranges.value[k]), *(float(end[k]) for end in ranges.range)
    )
    sides = named_sides(off, ("more confident", "less confident"))
    total = counted(int(ranges.has.sum()), "true class", "true classes")
    yield Finding(
        "CAL013",
        "warning",
        f"Of {total} the model is {sides} than a calibrated model would be, {most_if_several(off)}on "
        f"{listed([sample.data.class_names[k]])}: confidence minus accuracy is {value} points "
        f"on {counted(int(ranges.rows[k]), 'row')}, where a calibrated model would show {low} to {high}.",
    )


CHECKS.register(
    Check(
        "CAL013",
        "True classes outside the range of a calibrated model",
        class_confidence,
        about="classes",
    )
)

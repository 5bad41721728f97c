"""CAL005: every row has the same true class."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, listed


def one_class(sample: Sample) -> Iterator[Finding]:
    """Report data in which all labels are equal."""
    data = sample.data
    if data.labels is None or data.n < 2 or (data.labels != data.labels[0]).any():
        return
    label = int(data.labels[0])
    name = data.class_names[label] if data.class_names else str(label)
    yield Finding(
        "CAL005",
        "warning",
        f"All {counted(data.rows, 'row')} have the label {listed([name])}: whether the model tells classes "
        "apart cannot be seen; numbers for other classes are undefined, and means over classes leave them out.",
    )


CHECKS.register(
    Check("CAL005", "One class among the labels", one_class, clusters=True, weights=True)
)

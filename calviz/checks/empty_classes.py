"""CAL006: classes that are the label of no row, if several others have rows (for a single class, see CAL005)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.finding import Finding
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import listed


def empty_classes(sample: Sample) -> Iterator[Finding]:
    """Name the classes without rows."""
    data = sample.data
    if data.labels is None or not data.class_names or data.n < 2:
        return
    rows = np.bincount(data.labels, minlength=data.n_classes)
    empty = [data.class_names[k] for k in np.flatnonzero(rows == 0)]
    if not empty or len(empty) == data.n_classes - 1:
        return
    verb = "has" if len(empty) == 1 else "have"
    yield Finding(
        "CAL006",
        "warning",
        f"{len(empty):,} of {data.n_classes:,} classes {verb} no rows ({listed(empty)}): "
        "numbers per class are undefined there, and means over classes leave them out.",
    )


CHECKS.register(Check("CAL006", "Classes without rows", empty_classes, clusters=True, weights=True))

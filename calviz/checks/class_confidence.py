"""CAL013: true classes on which the model is over- or underconfident beyond noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from calviz.core.check import CHECKS, Check
from calviz.core.errors import NotAvailable
from calviz.core.notes import Finding
from calviz.core.words import listed, points
from calviz.numerics.class_expectation import class_expectation
from calviz.numerics.sample import Sample
from calviz.numerics.true_classes import true_class_errors

#: Share of calibrated models about which this speaks, over all classes together.
ALPHA = 0.01
#: Expected and actual rows that a class must have to be judged.
ROWS = 10


def class_confidence(sample: Sample) -> Iterator[Finding]:
    """Compare the MCS of every true class with that of a calibrated model, which is not 0."""
    try:
        expected = sample.view(class_expectation)
        view = sample.view(true_class_errors)
    except NotAvailable:
        return
    judged = (expected.rows >= ROWS) & (view.rows >= ROWS) & (expected.sd > 0)
    total = int(judged.sum())
    if total < 2:
        return
    off = np.zeros(judged.shape)
    np.divide(view.mcs - expected.mean, expected.sd, out=off, where=judged)
    limit = -ndtri(ALPHA / 2 / total)
    over, under = off > limit, off < -limit
    if not (over | under).any():
        return
    k = int(np.abs(off).argmax())
    words = [
        f"{word} on {int(which.sum()):,}"
        for which, word in ((over, "overconfident"), (under, "underconfident"))
        if which.any()
    ]
    yield Finding(
        "CAL013",
        "warning",
        f"Of {total:,} true classes the model is {' and '.join(words)} beyond noise, most surely on "
        f"{listed([sample.data.class_names[k]])}: there confidence minus accuracy is {points(view.mcs[k])} points, where a "
        f"calibrated model would show {points(expected.mean[k])}.",
    )


CHECKS.register(Check("CAL013", "Classes over- or underconfident beyond noise", class_confidence))

"""Signed error of every class beside the range that a calibrated model would show: what statements about classes go by.

The ranges are adjusted for the number of classes (`calviz.core.levels.class_level`), so that a calibrated model
has every class inside its range in all but a few of a thousand files. Figure, page, report and findings
all call a class off where it is outside of this range, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.levels import class_level
from calviz.core.predictions import Predictions
from calviz.numerics.class_expectation import class_expectation
from calviz.numerics.class_gaps import class_gaps
from calviz.numerics.predicted_classes import predicted_class_sums
from calviz.numerics.sample import Sample
from calviz.numerics.true_classes import true_class_errors

ClassView = Literal["predicted-class", "true-class", "one-vs-rest"]
VIEWS: tuple[ClassView, ...] = get_args(ClassView)

#: A distance from the range this small is rounding: sums of single-precision probabilities.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Errors of all classes, shape (K,) each.

    Attributes
    ----------
    value : ndarray
        Signed error (see `class_ranges`).
    rows : ndarray
        Rows that are predicted as the class (``predicted-class``) or have it as their label.
    has : ndarray of bool
        Classes that have a value.
    range : (ndarray, ndarray) or None
        Where the error of a calibrated model falls; None where that cannot be known.
    """

    value: FloatArray
    rows: FloatArray
    has: BoolArray
    range: tuple[FloatArray, FloatArray] | None

    @property
    def beyond(self) -> FloatArray:
        """How far the error lies outside the range, with its sign; 0 inside, and without a range."""
        return beyond(self.value, self.range)


def beyond(value: FloatArray, limits: tuple[FloatArray, FloatArray] | None) -> FloatArray:
    """How far values lie outside their ranges, with their sign, shape (C,); 0 inside."""
    if limits is None:
        return np.zeros(value.shape)
    # Above the upper end, or (negative) below the lower one; nan, without expected rows, is neither.
    out = np.fmax(value - limits[1], 0) - np.fmax(limits[0] - value, 0)
    return np.asarray(np.where(np.abs(out) > _ROUNDING, out, 0.0))


def class_ranges(sample: Sample, *, view: ClassView) -> ClassRanges:
    """Errors by class and their ranges under calibration.

    Parameters
    ----------
    sample : Sample
        Its reduction does not matter.
    view : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows that are predicted as the class (Gupta &
        Ramdas 2022). ``true-class``: the same of the rows whose label is the class (Ao et al. 2023); not 0 for
        a calibrated model. ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.

    Raises
    ------
    NotAvailable
        Where the data do not name what is asked for.
    """
    if view == "predicted-class":
        sums = sample.view(predicted_class_sums)
        has = np.asarray(sums.rows > 0)
        level = class_level(int(has.sum()))
        return ClassRanges(sums.gap, sums.rows, has, sums.calibrated(level))
    if view == "one-vs-rest":
        gaps = sample.view(class_gaps)
        every = np.ones(gaps.rows.shape, dtype=np.bool_)
        return ClassRanges(gaps.gap, gaps.rows, every, gaps.calibrated(class_level(every.size)))
    true = sample.view(true_class_errors)
    limits = None
    if isinstance(sample.data, Predictions):
        limits = sample.view(class_expectation).calibrated(class_level(true.rows.size))
    return ClassRanges(true.mcs, true.rows, np.asarray(true.rows > 0), limits)


def available_views(sample: Sample) -> tuple[ClassView, ...]:
    """The views that the data have what they need for."""
    found = []
    for view in VIEWS:
        try:
            sample.view(class_ranges, view=view)
        except NotAvailable:
            continue
        found.append(view)
    return tuple(found)

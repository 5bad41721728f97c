"""Signed error of every class and its range for a calibrated model: the basis of all statements about classes.

The ranges are adjusted for the number of classes (`calviz.sample.false_alarm_levels.class_level`), so that in all but a few
of a thousand files a calibrated model has every class inside its range. Figures, pages, reports and findings
all report a class exactly where it is outside this range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.predictions import Predictions
from calviz.sample.class_expectation import class_expectation
from calviz.sample.class_gaps import class_gaps
from calviz.sample.false_alarm_levels import class_level
from calviz.sample.predicted_classes import predicted_class_sums
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors_of_sample
from calviz.specs.metric import takes_weights
from calviz.text.words import counted

ClassView = Literal["predicted-class", "true-class", "one-vs-rest"]

#: If the typical class is outside its range only with a gap of at least this, a note says so (see `too_few`).
COARSE = 0.2
#: Distances from the range up to this are rounding in sums of single-precision probabilities.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Errors of all classes, shape (K,) each.

    Attributes
    ----------
    value : ndarray
        Signed error (see `class_ranges`).
    rows : ndarray
        Number of rows that are predicted as the class (``predicted-class``) or have it as their label.
    has : ndarray of bool
        Whether the class has a value.
    range : (ndarray, ndarray) or None
        Range of the error of a calibrated model; None if unknown.
    needed : ndarray or None
        Smallest distance from the error of a calibrated model at which the class is outside its range; inf where
        no labels could put it outside, as with very few rows.
    """

    value: FloatArray
    rows: FloatArray
    has: BoolArray
    range: tuple[FloatArray, FloatArray] | None
    needed: FloatArray | None = None

    @property
    def beyond(self) -> FloatArray:
        """Signed distance of the error from its range, shape (K,); 0 inside, and without a range."""
        return beyond(self.value, self.range)


def too_few(
    rows: FloatArray | IntArray, needed: FloatArray | None, *, rows_in_all: int | None = None
) -> str:
    """Say how large a gap may go unnoticed where classes have few rows; "" if half of the classes can be outside with less than `COARSE`.

    Parameters
    ----------
    rows, needed : ndarray, shape (C,)
        As in `ClassRanges`, for the classes that are judged.
    rows_in_all : int, optional
        Number of rows, for classes that are judged on all rows.

    >>> too_few(np.array([3.0, 3, 60]), np.array([0.625, np.inf, 0.2]))
    'with a median of 3 rows a class, half of the classes could only be outside with a gap above 62 points'
    """
    if needed is None or needed.size < 2:
        return ""
    usual = float(np.sort(needed)[needed.size // 2])
    if usual < COARSE:
        return ""
    median = float(np.median(rows))
    few = f"a median of {median:g} {'row' if median == 1 else 'rows'} a class"
    head = f"with {few if rows_in_all is None else counted(rows_in_all, 'row')}, half of the classes could"
    if math.isinf(usual):
        return f"{head} not be outside whatever their labels are"
    return f"{head} only be outside with a gap above {math.floor(100 * usual)} points"


def _needed(low: FloatArray, high: FloatArray, mean: FloatArray) -> FloatArray:
    """Distance of the nearer end that labels can cross, for ranges around 0: gaps lie between mean score - 1 and mean score."""
    up = np.where(high < mean - _ROUNDING, high, np.inf)
    down = np.where(low > mean - 1 + _ROUNDING, -low, np.inf)
    return np.asarray(np.minimum(up, down))


def beyond(value: FloatArray, limits: tuple[FloatArray, FloatArray] | None) -> FloatArray:
    """Signed distance of values from their ranges, shape (C,); 0 inside."""
    if limits is None:
        return np.zeros(value.shape)
    # Above the upper end, or (negative) below the lower one; nan, without expected rows, is neither.
    out = np.fmax(value - limits[1], 0) - np.fmax(limits[0] - value, 0)
    return np.asarray(np.where(np.abs(out) > _ROUNDING, out, 0.0))


@takes_weights
def class_ranges(sample: Sample, *, view: ClassView) -> ClassRanges:
    """Errors by class and their ranges under calibration.

    Parameters
    ----------
    sample : Sample
        Its reduction does not matter.
    view : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows that are predicted as the class (Gupta &
        Ramdas 2022). ``true-class``: the same for the rows whose label is the class (Ao et al. 2023); not 0 for
        a calibrated model. ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.

    Raises
    ------
    NotAvailable
        If the data lack the classes or probabilities that the view needs.
    """
    # Without independent rows, the probabilities do not tell how much the gap of a class varies.
    independent = sample.data.clusters is None
    if view == "predicted-class":
        sums = sample.view(predicted_class_sums)
        has = np.asarray(sums.rows > 0)
        if not independent:
            return ClassRanges(sums.gap, sums.rows, has, None)
        low, high = sums.calibrated(class_level(int(has.sum())))
        needed = _needed(low, high, sums.score / np.where(has, sums.rows, 1))
        return ClassRanges(sums.gap, sums.rows, has, (low, high), needed)
    if view == "one-vs-rest":
        gaps = sample.view(class_gaps)
        every = np.ones(gaps.rows.shape, dtype=np.bool_)
        if not independent:
            return ClassRanges(gaps.gap, gaps.rows, every, None)
        low, high = gaps.calibrated(class_level(every.size))
        needed = _needed(low, high, gaps.powers[0] / gaps.n)
        return ClassRanges(gaps.gap, gaps.rows, every, (low, high), needed)
    true = true_class_errors_of_sample(sample)
    limits: tuple[FloatArray, FloatArray] | None = None
    half: FloatArray | None = None
    if isinstance(sample.data, Predictions) and independent and sample.data.cells is None:
        limits = sample.view(class_expectation).calibrated(class_level(true.rows.size))
        half = (limits[1] - limits[0]) / 2
    return ClassRanges(true.mcs, true.rows, np.asarray(true.rows > 0), limits, half)

"""How far a class may be off: the levels, and the ranges that follow from them, by formula."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import calviz
from calviz.sample import error_bars as levels
from calviz.sample.class_gaps import class_ranges
from calviz.sample.sample import Sample


def test_the_shares_are_those_of_a_file():
    assert pytest.approx(levels.FILE) == levels.OVERALL + levels.CLASSES + levels.SLICES
    assert pytest.approx(levels.CLASSES) == 6 * levels.CLASS_TEST
    assert levels.class_level(4) == pytest.approx(1 - 0.01 / 6 / 4)


def ranges(probs, n):
    labels = np.arange(n) % len(probs)
    data = calviz.Predictions(probs=np.tile(probs, (n, 1)), labels=labels)
    return class_ranges(Sample(data, "top-label"), view="one-vs-rest").range


def test_equal_chances_have_a_normal_range():
    # No skewness: z standard deviations of a share, and half a row for what is whole. A sixth of 1 % of files, two classes, two sides.
    n = 10_000
    low, high = ranges([0.5, 0.5], n)
    wanted = norm.isf(0.01 / 6 / 2 / 2) * np.sqrt(0.25 / n) + 0.5 / n
    np.testing.assert_allclose(high, wanted, rtol=1e-6)
    np.testing.assert_allclose(low, -wanted, rtol=1e-6)


def test_rare_classes_have_the_range_of_a_binomial():
    n, p = 1_000, np.array([0.04, 0.06, 0.9])
    low, high = ranges(p, n)
    tail = 0.01 / 6 / 3 / 2
    # Labels of the class above what is expected make the gap negative.
    np.testing.assert_allclose(low, p - binom.isf(tail, n, p) / n, atol=1.1 / n)
    np.testing.assert_allclose(high, p - binom.ppf(tail, n, p) / n, atol=1.1 / n)

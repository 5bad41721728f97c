import numpy as np
import pytest

from calviz.core.blocks import (
    denominators,
    effective_number,
    effective_numbers,
    effective_numbers_of_sums,
    quotient,
)


def test_quotients_without_a_denominator():
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 0.0])
    np.testing.assert_array_equal(quotient(a, b), [[0.5, np.nan], [1.5, np.nan]])
    np.testing.assert_array_equal(quotient(a, b, otherwise=0.0), [[0.5, 0], [1.5, 0]])
    usual = np.array([7.0, 8.0])
    np.testing.assert_array_equal(quotient(a, b, otherwise=usual), [[0.5, 8], [1.5, 8]])
    np.testing.assert_array_equal(usual, [7, 8])
    assert quotient(np.asarray(3.0), np.asarray(2.0)) == 1.5
    np.testing.assert_array_equal(denominators(np.array([0.0, 0.5, 3.0])), [1, 0.5, 3])


def test_effective_numbers_by_hand():
    # (1 + 1 + 2)^2 / (1 + 1 + 4) and (3)^2 / 9; no row has the third number.
    group, weights = np.array([0, 1, 0, 0]), np.array([1.0, 3.0, 1.0, 2.0])
    np.testing.assert_allclose(effective_numbers(group, weights, 3), [16 / 6, 1, 0])
    assert effective_number(weights[group == 0]) == pytest.approx(16 / 6)
    assert effective_numbers_of_sums(np.array([4.0]), np.array([6.0])) == pytest.approx(16 / 6)

"""Fixed points of falling functions."""

import numpy as np
import pytest
from scipy.optimize import brentq

from calviz.metrics.smooth import falling_fixed_points

SCALES = np.array([0.001, 0.02, 0.3, 1.0, 5.0, 200.0])


def falling(x, rows):
    return np.exp(-SCALES[rows] * x) / (1 + SCALES[rows])


@pytest.mark.parametrize("start", [0.0, 0.1, 0.9, 1.0])
def test_against_brentq(start):
    expected = [brentq(lambda x, i=i: falling(x, i) - x, 0, 1) for i in range(SCALES.size)]
    solution = falling_fixed_points(falling, SCALES.size, start=start, tolerance=1e-12)
    np.testing.assert_allclose(solution, expected, atol=1e-10)


def test_constants_and_ends():
    values = np.array([0.0, 0.25, 1.0])
    solution = falling_fixed_points(lambda x, rows: values[rows], 3, start=0.5, tolerance=1e-12)
    np.testing.assert_allclose(solution, values, atol=1e-12)


def test_few_evaluations():
    calls = []

    def counted(x, rows):
        calls.append(rows.size)
        return falling(x, rows)

    falling_fixed_points(counted, SCALES.size, start=0.1, tolerance=1e-6)
    assert len(calls) <= 12
    assert calls == sorted(calls, reverse=True)  # those that are done leave


def test_a_function_that_rises_a_little_still_ends():
    solution = falling_fixed_points(
        lambda x, rows: 0.3 + 1e-4 * np.sin(1e3 * x), 1, start=0.1, tolerance=1e-5
    )
    assert solution[0] == pytest.approx(0.3, abs=2e-4)

"""Clopper-Pearson intervals."""

import numpy as np
import pytest
from scipy import stats

from calviz.core.p_values import clopper_pearson


def test_closed_forms_at_the_ends():
    for n in (1, 5, 1_000):
        low, high = clopper_pearson([0, n], [n, n])
        assert (low[0], high[1]) == (0, 1)
        assert high[0] == pytest.approx(1 - 0.025 ** (1 / n), rel=1e-12)
        assert low[1] == pytest.approx(0.025 ** (1 / n), rel=1e-12)


def test_defining_equations():
    low, high = clopper_pearson(37, 100, level=0.9)
    assert stats.binom.sf(36, 100, low) == pytest.approx(0.05)
    assert stats.binom.cdf(37, 100, high) == pytest.approx(0.05)


def test_against_scipy():
    rng = np.random.default_rng(0)
    n = rng.integers(1, 500, 60)
    k = rng.integers(0, n + 1)
    low, high = clopper_pearson(k, n)
    exact = [
        stats.binomtest(int(a), int(b)).proportion_ci(method="exact")
        for a, b in zip(k, n, strict=True)
    ]
    np.testing.assert_allclose(np.stack([low, high], axis=1), exact, atol=1e-12)


def test_no_rows_and_many_rows():
    assert clopper_pearson(0, 0) == (0, 1)
    low, high = clopper_pearson(5e8, 1e9)
    assert 0.49996 < low < 0.5 < high < 0.50004

"""Effective sample sizes of weights of any size."""

import numpy as np
import pytest

from calviz.core.blocks import effective_number, with_mean_one


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1.0, 1e160, 8e307])
def test_no_size_of_weights_overflows(factor):
    weights = factor * np.array([1.0, 2.0, 0.0, 1.0])
    # (1 + 2 + 1)^2 / (1 + 4 + 1)
    assert effective_number(weights) == pytest.approx(16 / 6, rel=1e-15)
    np.testing.assert_allclose(with_mean_one(weights), [1, 2, 0, 1], rtol=1e-15)


def test_equal_weights_count_as_their_number():
    assert effective_number(np.full(7, 0.3)) == pytest.approx(7, rel=1e-14)
    np.testing.assert_array_equal(with_mean_one(np.full(7, 0.3)), np.ones(7))

"""Benjamini and Hochberg's adjusted p-values, against SciPy and by hand."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from calviz.core.p_values import benjamini_hochberg


def test_by_hand():
    # 0.01 * 4, 0.02 * 4 / 2, then 0.04 * 4 / 3 = 0.0533 and 0.9; in the order that they are given in.
    assert benjamini_hochberg([0.04, 0.01, 0.9, 0.02]) == pytest.approx([0.16 / 3, 0.04, 0.9, 0.04])


@pytest.mark.parametrize("tests", [1, 2, 7, 400])
def test_as_in_scipy(tests):
    rng = np.random.default_rng(tests)
    p = rng.random(tests).round(2) ** 2  # with ties, 0 and 1
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), rtol=1e-12)

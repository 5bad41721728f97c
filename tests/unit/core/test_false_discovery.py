"""Adjusted p-values and Fisher's exact test, against SciPy and by hand."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, fisher_exact

from calviz.core.p_values import benjamini_hochberg, fisher_below, holm


def test_by_hand():
    # 0.01 * 4, 0.02 * 4 / 2, then 0.04 * 4 / 3 = 0.0533 and 0.9; in the order that they are given in.
    assert benjamini_hochberg([0.04, 0.01, 0.9, 0.02]) == pytest.approx([0.16 / 3, 0.04, 0.9, 0.04])


@pytest.mark.parametrize("tests", [1, 2, 7, 400])
def test_as_in_scipy(tests):
    rng = np.random.default_rng(tests)
    p = rng.random(tests).round(2) ** 2  # with ties, 0 and 1
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), rtol=1e-12)


def test_holm_by_hand():
    # 4 * 0.01, 3 * 0.02, then 2 * 0.02 is raised to 0.06, and 0.9.
    assert holm([0.02, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])


@pytest.mark.parametrize(
    "table", [(3, 10, 40, 50), (0, 5, 5, 5), (10, 10, 1, 90), (70, 100, 180, 200)]
)
def test_fisher_as_in_scipy(table):
    hits, rows, other_hits, other_rows = table
    expected = fisher_exact(
        [[hits, rows - hits], [other_hits, other_rows - other_hits]], alternative="less"
    )
    assert fisher_below(*table) == pytest.approx(expected.pvalue)

"""Sums of rows say nothing that is not so, whatever lies behind the arrays in memory."""

import numpy as np
import pytest

from calviz.core.probabilities import row_sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 17])
def test_rows_are_added_up_without_a_warning(k, dtype):
    # Freed memory full of nan stands where a kernel may read beyond the end; warnings are errors in the tests.
    rng = np.random.default_rng(k)
    for n in (1, 3, 19, 119, 147, 162, 400):
        for _ in range(20):
            block = rng.random((n, k)).astype(dtype)
            junk = np.full(4 * k, np.nan, dtype)
            del junk
            np.testing.assert_allclose(row_sums(block), block.sum(axis=1), rtol=1e-5)

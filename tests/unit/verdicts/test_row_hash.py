"""Equal rows have equal numbers, and others do not; of few columns and of many."""

import numpy as np
import pytest

from calviz.verdicts.row_checks import FEW_COLUMNS, row_hashes


@pytest.mark.parametrize("columns", [2, FEW_COLUMNS, FEW_COLUMNS + 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_rows_are_those_of_unique(columns, kind):
    rows = np.random.default_rng(columns).integers(3, size=(500, columns)).astype(kind) / 2
    codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    hashed = np.unique(row_hashes(rows), return_inverse=True)[1]
    # One to one.
    assert np.unique(np.column_stack([codes, hashed]), axis=0).shape[0] == codes.max() + 1
    assert hashed.max() == codes.max()

"""The true classes of rows, as indices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import IntArray, element_type
from calviz.core.errors import InputError


def checked_labels(labels: npt.ArrayLike, n: int, k: int) -> IntArray:
    """Check that true classes are indices from 0 to k - 1 and return them, shape (n,); raises InputError that names the first bad row."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"'labels' has shape {array.shape}, expected 1-D")
    if array.shape[0] != n:
        raise InputError(f"there are {n:,} rows of probabilities but {array.shape[0]:,} labels")
    if array.dtype.kind == "f":
        whole = array.astype(np.int64)
        if not np.array_equal(whole, array):
            row = int(np.flatnonzero(whole != array)[0])
            raise InputError(f"label {array[row]!r} is not a whole number", row=row + 1)
        array = whole
    if array.dtype.kind not in "biu":
        raise InputError(
            f"'labels' holds {element_type(array)}, expected class indices 0..{k - 1}",
            remedy="for labels of any kind, use calviz.Predictions.from_arrays(y_true, y_prob)",
        )
    bad = (array < 0) | (array >= k) if array.dtype.kind != "b" else np.zeros(n, dtype=bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"label {array[row]} but there are {k} classes (0..{k - 1})", row=row + 1, column=None
        )
    return array.astype(np.int32, copy=False)

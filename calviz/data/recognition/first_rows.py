"""Properties of a column, judged by its first rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.probabilities import SCORE_SLACK, from_0_to_1
from calviz.data.table import Column

#: Rounded rows whose sum is this far from 1 are still recognised as probabilities.
_SUM_SLACK = 0.02


def levels(column: Column) -> set[str]:
    """The distinct non-empty values, as text."""
    return {str(v) for v in column.head.tolist()} - {""}


def in_unit(head: npt.NDArray[Any]) -> bool:
    """Whether all numbers lie in [0, 1], ignoring NaN."""
    if not head.size:
        return False
    if head.dtype.char in "fd" and from_0_to_1(head):
        return True
    low = head.min()
    if low >= -SCORE_SLACK:
        return bool(head.max() <= 1 + SCORE_SLACK)
    return bool(np.isnan(low)) and in_unit(head[~np.isnan(head)])


def is_one(sums: npt.NDArray[np.float64]) -> bool:
    """Whether nearly all sums, shape (n,), are 1 up to rounding."""
    return bool(are_one(sums[:, None])[0])


def are_one(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether nearly all sums in each column of an array of shape (n, m) are 1, shape (m,); NaN is ignored."""
    fits = np.count_nonzero(np.abs(sums - 1) <= _SUM_SLACK, axis=0)
    rows = np.count_nonzero(~np.isnan(sums), axis=0)
    nearly_all: npt.NDArray[np.bool_] = (rows > 0) & (fits > 0.9 * rows)
    return nearly_all


def is_zero_one(column: Column) -> bool:
    """Whether a column holds only 0 and 1."""
    if column.type == "boolean":
        return True
    return column.numeric and bool(np.isin(column.head, (0, 1)).all())


def is_label_like(column: Column) -> bool:
    """Whether a column holds whole numbers or text, one value per row."""
    if column.width is not None:
        return False
    if column.type in ("integer", "boolean", "text"):
        return True
    if column.type != "number":
        return False
    values = column.head[~np.isnan(column.head)]
    return values.size > 0 and bool((values == np.floor(values)).all())

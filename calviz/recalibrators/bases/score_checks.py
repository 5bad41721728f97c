"""Checks of the scores that a map is fitted on or applied to."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import InputError
from calviz.core.probabilities import row_sums

#: Largest deviation of a row's sum from 1; data that went through `Predictions` are within it.
SUM_TOLERANCE = 0.05
#: Largest absolute logit: maps are fitted by sums of squares in the dtype of the logits, which must not overflow.
LARGEST_LOGIT = 1e15


def check_logits(array: FloatArray) -> None:
    """Raise InputError if logits are so large that sums of their squares overflow."""
    for extreme, at in ((array.max(), array.argmax), (array.min(), array.argmin)):
        if abs(extreme) > LARGEST_LOGIT:
            row, column = divmod(int(at()), array.shape[1])
            raise InputError(
                f"the logit of class {column} is {extreme:.3g}, beyond ±{LARGEST_LOGIT:.0e}: too large to fit a map on",
                row=row + 1,
                remedy="where -3.4e38 marks a class that is left out, write -1e4: its probability is 0 as well",
            )


def check_probabilities(array: FloatArray) -> None:
    """Raise InputError if a row holds a negative number, or does not sum to 1."""
    for rows in row_blocks(array):
        block = array[rows]
        off = np.abs(row_sums(block) - 1)
        worst = int(off.argmax())
        if block.min() < -1e-6:
            row = int(np.argwhere(block < -1e-6)[0, 0])
            raise InputError(
                f"Negative values in data: {block[row].min():.6g} is not a probability",
                row=rows.start + row + 1,
                remedy='declare logits by input="logits"',
            )
        if off[worst] > SUM_TOLERANCE:
            raise InputError(
                f"the probabilities sum to {block[worst].sum():.6g}, not to 1",
                row=rows.start + worst + 1,
                remedy='normalise the rows, or declare logits by input="logits"',
            )

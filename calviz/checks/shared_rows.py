"""CAL011: rows that are in more than one split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.checks.kernels.row_hash import NEARLY_CERTAIN, row_hashes
from calviz.core.arrays import IntArray
from calviz.core.finding import Finding
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, decimals_for, percent

#: Equal probabilities mean the same row only if they hardly ever occur twice within a split: at most in this
#: share of the rows, where rows with a score of `NEARLY_CERTAIN` or more are left out.
TWICE = 0.01


def shared_rows(sample: Sample) -> Iterator[Finding]:
    """Search for ids, or else for identical rows, that are in several splits."""
    data = sample.data
    if data.splits is None or len(data.splits.levels) < 2:
        return
    codes = data.splits.codes
    if data.ids is not None:
        shared, _ = _in_several(np.asarray(data.ids), codes)
        if shared:
            yield _finding(shared, data.n, "have an id that is also in another split")
            return
    if not isinstance(data, Predictions) or data.cells is not None:
        return
    open_ = np.flatnonzero(sample.top_scored.score < NEARLY_CERTAIN)
    if open_.size < 2:
        return
    hashes = row_hashes(data.probs) ^ data.labels.astype(np.uint64)
    shared, twice = _in_several(hashes[open_], codes[open_])
    if shared > 1 and twice <= TWICE * open_.size:
        yield _finding(shared, data.n, "are identical to a row of another split")


def _finding(shared: int, n: int, statement: str) -> Finding:
    return Finding(
        "CAL011",
        "warning",
        f"{counted(shared, 'row')} ({percent(shared / n, decimals_for(100 * shared / n, figures=1, least=1))}) {statement}: what is fitted on one split and evaluated on "
        "the other looks better than it is.",
    )


def _in_several(keys: npt.NDArray[Any], codes: IntArray) -> tuple[int, int]:
    """Count the rows whose key is in more than one split, and the rows that repeat a key within their split."""
    if keys.dtype == object:
        keys = keys.astype(str)
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if repeated.size == 0:
        return 0, 0
    again = np.isin(keys, repeated)
    _, key = np.unique(keys[again], return_inverse=True)
    codes = codes[again]
    levels = int(codes.max()) + 1
    pairs = np.unique(key.astype(np.int64) * levels + codes)
    splits_of_key = np.bincount(pairs // levels, minlength=int(key.max()) + 1)
    return int(np.count_nonzero(splits_of_key[key] > 1)), int(key.size - pairs.size)


CHECKS.register(Check("CAL011", "Splits that share rows", shared_rows, clusters=True, weights=True))

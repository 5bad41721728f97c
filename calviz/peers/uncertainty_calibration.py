"""uncertainty-calibration: ``get_ece`` and ``get_calibration_error`` (0.1.4).

``get_ece`` has 15 right-closed bins with edges ``i / 15``. ``get_calibration_error(p=2, debias=True,
mode="marginal")`` is the root of a debiased mean squared gap, in 15 equal-mass bins of each class against the rest
or, if every column has fewer distinct values than a quarter of its rows, in one bin per distinct value.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.predictions import Predictions
from calviz.numerics.column_groups import for_columns
from calviz.peers._bins import as_float64, mean_gap
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_BINS = 15


def ece(sample: Sample) -> float:
    """Mean absolute gap, weighted by rows."""
    score, hit = as_float64(sample.events)
    edges = np.arange(1, _BINS) / _BINS
    return mean_gap(score, hit, np.searchsorted(edges, score, side="left"), _BINS)


def calibration_error(sample: Sample) -> float:
    """Compute the error over all classes under the top label, and of score and hit under any other reduction."""
    data = sample.data
    if not isinstance(data, Predictions) or sample.reduction.kind != "top-label":
        score, hit = sample.events.score, sample.events.hit
        ordered, of_hits = np.sort(score), score[hit]
        by_value = _is_discrete(ordered)
        return float(np.sqrt(max(0, _debiased_square(ordered, of_hits, by_value=by_value))))
    squares = np.empty(data.n_classes)
    discrete = np.empty(data.n_classes, dtype=np.bool_)
    of_label = data.probs[np.arange(data.n), data.labels]

    def work(by_value: bool, k: int, column: FloatArray) -> None:
        column.sort()
        discrete[k] = _is_discrete(column)
        of_hits = of_label[data.labels == k]
        squares[k] = _debiased_square(column, of_hits, by_value=by_value)

    for_columns(data.probs, partial(work, False))
    if discrete.all():
        for_columns(data.probs, partial(work, True))
    return float(np.sqrt(np.mean(np.maximum(squares, 0))))


def _is_discrete(ordered: FloatArray) -> bool:
    """Whether there are fewer distinct values than a quarter of the rows; `ordered` is ascending."""
    return bool(1 + np.count_nonzero(ordered[1:] != ordered[:-1]) < ordered.size / 4)


def _debiased_square(ordered: FloatArray, of_hits: FloatArray, *, by_value: bool) -> float:
    """Mean over rows of the squared gaps of the bins, each minus the variance of the share of hits of its bin."""
    ordered = ordered.astype(np.float64, copy=False)
    n = ordered.size
    if by_value:
        values = np.unique(ordered)
        cuts = (values[1:] + values[:-1]) / 2
    else:
        size, larger = divmod(n, min(_BINS, n))
        m = np.arange(1, min(_BINS, n))
        starts = m * size + np.minimum(m, larger)
        cuts = np.unique((ordered[starts] + ordered[starts - 1]) / 2)
    ends = np.searchsorted(ordered, cuts, side="right")
    first, last = np.r_[0, ends], np.r_[ends, n]
    sums = np.r_[0, np.cumsum(ordered)]
    hits = np.bincount(np.searchsorted(cuts, of_hits, side="left"), minlength=cuts.size + 1)
    rows = last - first
    used = rows > 1
    rows, hits, total = rows[used], hits[used], (sums[last] - sums[first])[used]
    share = hits / rows
    square = (total / rows - share) ** 2 - share * (1 - share) / (rows - 1)
    return float((rows * square).sum() / n)


_convention = partial(
    Convention,
    library="uncertainty-calibration",
    version="0.1.4",
    reference="https://github.com/p-lambda/verified_calibration",
)
CONVENTIONS.register(
    _convention(
        key="uncertainty_calibration",
        call="get_ece",
        rule="15 equal-width bins (a, b]",
        why="It is the same definition as calviz's, and differs only if other bins are chosen in calviz.",
        value=ece,
    )
)
CONVENTIONS.register(
    _convention(
        key="uncertainty_calibration_l2",
        call="get_calibration_error",
        rule="root mean square gap of all classes, debiased, 15 equal-mass bins",
        why="It is the root of the mean squared gap, minus the bias due to noise, of each class against "
        "the rest in equal-mass bins.",
        value=calibration_error,
    )
)

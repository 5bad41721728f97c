"""The zero floor chosen from the calibration rows: ``floor="auto"``, the default wherever a logarithm of a score is taken."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.probabilities import EPSILON
from calviz.numerics.scores import Scores, log_softmax
from calviz.numerics.temperature import fit_temperature
from calviz.numerics.zero_floor import ZeroFloor

#: Largest automatic floor.
MOST = 0.01
#: A positive score below this is an underflow, which says nothing about how small a score can be.
UNDERFLOW = 1e-12
#: Floors to choose from where the positive scores do not determine one; 1 / (K (n + 1)) is added to them.
CANDIDATES = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3)
#: Folds of the cross-validation of the candidates, and about how many probabilities, and at least how many rows, it uses.
FOLDS, ENTRIES, ROWS = 5, 60_000, 500


def automatic_floor(probs: FloatArray, labels: IntArray) -> ZeroFloor:
    """Choose the zero floor from the calibration rows.

    An exact 0 counts as half of the smallest positive score, at most `MOST`. Where that score is an underflow (below
    `UNDERFLOW`) and the true class of a row has a 0, the floor is chosen by cross-validation (`chosen_floor`).
    Calibration rows without zeros are fitted as they are; a 0 in other rows then counts as half of the smallest calibration
    score, at most `EPSILON`, and no positive score is raised.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
        The scores of the calibration rows for all classes; with two classes, p and 1 - p.
    labels : ndarray of int, shape (n,)
    """
    lowest = float(probs.min())
    if lowest > 0:
        return ZeroFloor(min(lowest / 2, EPSILON), clips=False)
    smallest = 1.0
    for rows in row_blocks(probs):
        block = probs[rows]
        smallest = min(smallest, float(np.min(block, where=block > 0, initial=1)))
    if smallest < UNDERFLOW and true_zeros(probs, labels):
        return ZeroFloor(chosen_floor(probs, labels))
    return ZeroFloor(min(smallest / 2, MOST))


def true_zeros(probs: FloatArray, labels: IntArray) -> int:
    """Count the rows whose true class has a score of 0, from scores (n, K) and labels (n,)."""
    true_probs = probs[np.arange(labels.size), labels]
    return int(np.count_nonzero(true_probs <= 0))


def chosen_floor(probs: FloatArray, labels: IntArray) -> float:
    """Return the floor with which temperature scaling has the lowest cross-validated negative log-likelihood.

    Parameters
    ----------
    probs : ndarray, shape (n, K)
    labels : ndarray of int, shape (n,)

    Notes
    -----
    Large data are thinned to evenly spaced rows, with the same share of zeros on the true class: six floors times five folds are
    fitted.
    """
    n, k = probs.shape
    true_probs = probs[np.arange(n), labels]
    step = -(-n // max(ROWS, ENTRIES // k))
    order = np.lexsort((labels, true_probs > 0))[::step]
    array, y = probs[order].astype(np.float64), labels[order]
    # In this order every fold gets its share of the zeros, and of every class.
    fold = np.arange(y.size) % min(FOLDS, y.size)
    candidates = sorted({*CANDIDATES, 1 / (k * (n + 1))})
    losses = np.zeros(len(candidates))
    for at, value in enumerate(candidates):
        logs = np.log(ZeroFloor(value).raise_zeros(array.copy()))
        for number in range(int(fold.max()) + 1):
            fitting, held_out = fold != number, fold == number
            optimum = fit_temperature(Scores(logs[fitting], "logits", "logits"), y[fitting])
            block = log_softmax(logs[held_out] / optimum.value)
            losses[at] -= block[np.arange(block.shape[0]), y[held_out]].sum()
    return float(candidates[int(np.argmin(losses))])

"""Held-out losses of several methods, and how often each method is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.probabilities import EPSILON

#: Largest number of rows to choose on: more would not improve the choice.
MOST_ROWS = 20_000
#: Bayesian bootstrap resamples, and how many are drawn at once.
RESAMPLES, AT_ONCE = 1_000, 50
#: Below this many rows, they are divided into folds this many times: the division affects the choice, and fits take milliseconds.
DIVISIONS = {1_000: 3, 2_000: 2}


def order_of_rows(probs: FloatArray, labels: IntArray) -> IntArray:
    """Return an order of the rows, shape (n,), that depends neither on their order in the file nor on the numbering of the classes.

    Parameters
    ----------
    probs : ndarray of float, shape (n, K)
    labels : ndarray of int, shape (n,)
    """
    true_probs = probs[np.arange(labels.size), labels]
    keys = (np.vecdot(probs, probs), probs.max(axis=1), true_probs)
    # Rounded, because the same row may be given in single precision, or as logits with another constant.
    return np.lexsort([np.round(key.astype(np.float64), 6) for key in keys])


def rows_to_choose_on(rows: int, most: int = MOST_ROWS) -> IntArray:
    """Return at most `most` evenly spaced positions among this many ordered rows."""
    return np.linspace(0, rows - 1, min(rows, most)).astype(np.intp)


def divisions_of(rows: int) -> int:
    """Return how often this many rows are divided into folds."""
    return next((often for most, often in DIVISIONS.items() if rows < most), 1)


def shuffled_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of each row, shape (n,): the rows of every class are shuffled and dealt out in turn.

    Folds that were stratified by score as well would be alike in their noise too, and a map that follows noise
    would seem to generalise.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    folds : int
    rng : Generator
    """
    key = rng.random(labels.size)
    fold = np.empty(labels.size, dtype=np.intp)
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        rows = rows[np.argsort(key[rows])]
        first = int(folds * key[rows[0]] * rows.size)  # random, whatever the class number
        fold[rows] = (first + np.arange(rows.size)) % folds
    return fold


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out probabilities of M methods on n rows, by maps fitted to the other folds; the first method is the uncalibrated model.

    Attributes
    ----------
    true_probs : ndarray, shape (n, M)
        Probability of the true class.
    products : ndarray, shape (n, M, M)
        Inner products of the probabilities of every pair of methods, which the Brier score of a mixture needs.
    fold : ndarray of int, shape (n,)
        The fold that each row was held out in.
    """

    true_probs: FloatArray
    products: FloatArray
    fold: IntArray

    @classmethod
    def of(
        cls, parts: Sequence[tuple[IntArray, Sequence[FloatArray]]], labels: IntArray
    ) -> HeldOut:
        """Summarise held-out probabilities.

        Parameters
        ----------
        parts : sequence of (ndarray of int, shape (m,), sequence of ndarray, shape (m, K))
            Rows of every fold, and their probabilities by each method.
        labels : ndarray of int, shape (n,)
        """
        n, methods = labels.size, len(parts[0][1])
        true_probs, fold = np.empty((n, methods)), np.empty(n, dtype=np.intp)
        products = np.empty((n, methods, methods))
        for number, (rows, probs) in enumerate(parts):
            fold[rows] = number
            at = np.arange(rows.size)
            for i, block in enumerate(probs):
                true_probs[rows, i] = block[at, labels[rows]]
                for j in range(i + 1):
                    inner = np.vecdot(block, probs[j]).astype(np.float64)
                    products[rows, i, j] = products[rows, j, i] = inner
        return cls(true_probs, products, fold)

    @property
    def folds(self) -> range:
        """Numbers of the folds."""
        return range(int(self.fold.max()) + 1)

    @property
    def losses(self) -> FloatArray:
        """Log loss and Brier score (summed over the classes) of every row and method, shape (2, n, M)."""
        # A probability of 0 counts as in the metric `nll`.
        nll = -np.log(np.maximum(self.true_probs, EPSILON))
        brier = np.einsum("nmm->nm", self.products) - 2 * self.true_probs + 1
        return np.stack([nll, brier])

    def gains(self, weights: Sequence[FloatArray]) -> FloatArray:
        """Return the gain of mixtures over the first method in both losses, per row, shape (2, n).

        Parameters
        ----------
        weights : sequence of ndarray, shape (M,)
            Weights of the mixture of each fold, found on the other folds.
        """
        weights_of_rows = np.array(weights)[self.fold]
        mixed = np.vecdot(self.true_probs, weights_of_rows)
        squares = np.einsum(
            "nij,ni,nj->n", self.products, weights_of_rows, weights_of_rows, optimize=True
        )
        of_mixture = np.stack([-np.log(np.maximum(mixed, EPSILON)), squares - 2 * mixed + 1])
        return np.asarray(self.losses[:, :, 0] - of_mixture)


def best_shares(
    losses: FloatArray, rng: np.random.Generator, resamples: int = RESAMPLES
) -> FloatArray:
    """Return the share of Bayesian bootstrap resamples in which each method has the lowest mean loss, shape (S, M).

    Tied methods share a resample equally.

    Parameters
    ----------
    losses : ndarray, shape (S, n, M)
        Losses by S scores, which are resampled together.
    rng : Generator
    resamples : int
    """
    _, n, methods = losses.shape
    shares = np.zeros((losses.shape[0], methods))
    for _ in range(resamples // AT_ONCE):
        # Exponential weights, divided by their sum, are uniform on the simplex (Rubin 1981); a comparison does not need the division.
        means = rng.standard_exponential((AT_ONCE, n)) @ losses
        lowest = means.min(axis=-1, keepdims=True)
        ties = means <= lowest + 1e-12 * np.abs(lowest)
        shares += (ties / ties.sum(axis=-1, keepdims=True)).sum(axis=1)
    return np.asarray(shares / (resamples // AT_ONCE * AT_ONCE))

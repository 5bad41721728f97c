"""Sums of scores and hits per slice, and tests of whether each slice is off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtr

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.numerics.bin_edges import assign, equal_width_edges
from calviz.numerics.safe_division import denominators, quotient
from calviz.numerics.skewed_sum_tails import above

#: A slice with fewer clusters is not tested: the variance is hardly known.
FEWEST_CLUSTERS = 8
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums per slice; slices may overlap.

    Attributes
    ----------
    rows : ndarray, shape (S,)
    score, hits : ndarray, shape (S,)
        Sums of scores and of hits.
    variance, third : ndarray, shape (S,)
        Sums of s (1 - s) and s (1 - s) (1 - 2 s): second and third cumulant of the hits of a calibrated model.
    squares : ndarray, shape (S,)
        Sum of (s - h)².
    between, clusters : ndarray, shape (S,), optional
        For clustered rows: sum over clusters of the squared sum of s - h in the cluster, and number of clusters.
    weighted : ndarray, shape (3, S), optional
        For rows with weights w: sums of w, of w² and of w² (s - h). The sums above are then of w s, w h, w² s (1 - s),
        w³ s (1 - s) (1 - 2 s) and w² (s - h)², and those over clusters of w (s - h); `rows` remains the number of rows.
    """

    rows: FloatArray
    score: FloatArray
    hits: FloatArray
    variance: FloatArray
    third: FloatArray
    squares: FloatArray
    between: FloatArray | None = None
    clusters: FloatArray | None = None
    weighted: FloatArray | None = None

    @property
    def mass(self) -> FloatArray:
        """Number of rows, or sum of their weights, shape (S,)."""
        return self.rows if self.weighted is None else self.weighted[0]

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits, shape (S,); 0 without rows, or if all weights are 0."""
        return quotient(self.score - self.hits, self.mass, otherwise=0.0)

    @property
    def spread(self) -> FloatArray:
        """Standard error of the gap, shape (S,); for clustered rows that of a mean of independent clusters."""
        if self.between is not None and self.clusters is not None:
            # Centred: each cluster's sum minus the gap times its rows; approximate, exact for clusters of equal size.
            total = self.gap * self.mass
            around = np.maximum(self.between - total**2 / self.clusters, 0)
            scale = self.clusters / np.maximum(self.clusters - 1, 1)
            return np.asarray(np.sqrt(around * scale) / np.maximum(self.mass, _TINY))
        if self.weighted is not None:
            _, squares, cross = self.weighted
            around = self.squares - 2 * self.gap * cross + self.gap**2 * squares
            return np.asarray(np.sqrt(np.maximum(around, 0)) / np.maximum(self.mass, _TINY))
        around = np.maximum(self.squares / self.rows - self.gap**2, 0)
        result: FloatArray = np.sqrt(around / self.rows)
        return result

    def rest_of(self, whole: SliceSums) -> SliceSums:
        """The sums of the rows that are not in each slice."""
        return SliceSums(
            whole.rows - self.rows,
            whole.score - self.score,
            whole.hits - self.hits,
            whole.variance - self.variance,
            whole.third - self.third,
            whole.squares - self.squares,
            weighted=None
            if self.weighted is None or whole.weighted is None
            else whole.weighted - self.weighted,
        )


def slice_sums(
    events: BinaryEvents,
    codes: IntArray,
    slices: int,
    cluster: IntArray | None = None,
    weights: FloatArray | None = None,
) -> SliceSums:
    """Sums of each slice; row i belongs to slice ``codes[i]``; `codes`, `cluster` and `weights` have shape (n,).

    Weights of the cells of a profile are numbers of rows, and the sums are those of the rows.
    """
    score = np.asarray(events.score, dtype=np.float64)
    hit = np.asarray(events.hit, dtype=np.float64)

    def total(weights: FloatArray | None) -> FloatArray:
        return np.bincount(codes, weights, minlength=slices).astype(np.float64)

    w = 1.0 if weights is None else weights
    # Without weights, or if they are numbers of rows: sums of the rows themselves.
    counted = weights is None or events.counted
    w2, w3 = (w, w) if counted else (w**2, w**3)
    between = clusters = None
    if cluster is not None:
        count = int(cluster.max()) + 1
        cell, where = np.unique(codes.astype(np.int64) * count + cluster, return_inverse=True)
        of_slice = (cell // count).astype(np.intp)
        sums = np.bincount(where, w * (score - hit))
        between = np.bincount(of_slice, sums**2, minlength=slices).astype(np.float64)
        clusters = np.bincount(of_slice, minlength=slices).astype(np.float64)
    return SliceSums(
        total(weights if counted else None),
        total(w * score),
        total(w * hit),
        total(w2 * score * (1 - score)),
        total(w3 * score * (1 - score) * (1 - 2 * score)),
        total(w2 * (score - hit) ** 2),
        between,
        clusters,
        None
        if counted or weights is None
        else np.stack([total(weights), total(weights**2), total(weights**2 * (score - hit))]),
    )


def p_against_calibrated(sums: SliceSums) -> FloatArray:
    """Two-sided p-values of the gaps if the model were calibrated, shape (S,).

    The number of hits is then a sum of independent Bernoulli draws with the scores as probabilities. Its tails
    are taken from a shifted gamma variable (Pearson III) with the same mean, variance and skewness, half a hit
    nearer to the mean (continuity correction): a normal tail is too thin where events are rare. The p-value is twice
    the smaller tail. Where all scores are 0 or 1, a gap is impossible (0) or absent (1).

    For clustered rows, the sums of s - h of the clusters are independent with mean 0: a t-test with one degree of freedom less
    than clusters, and with the variance around 0 or that of independent rows, whichever is larger. A slice with fewer than
    `FEWEST_CLUSTERS` clusters has a p-value of 1.
    """
    difference = sums.hits - sums.score
    if sums.between is not None and sums.clusters is not None:
        within = np.sqrt(np.maximum(np.maximum(sums.between, sums.variance), 1e-24))
        p = 2 * stdtr(np.maximum(sums.clusters - 1, 1), -np.abs(difference) / within)
        return np.where(sums.clusters >= FEWEST_CLUSTERS, p, 1.0)
    varies = sums.variance > 1e-24
    # Weighted hits are not integers, and need no continuity correction.
    half = 0.5 if sums.weighted is None else 0.0
    more = above(difference - half, 0.0, sums.variance, sums.third)
    fewer = above(-difference - half, 0.0, sums.variance, -sums.third)
    sure = np.where(np.abs(difference) > 1e-9 * sums.mass, 0.0, 1.0)
    return np.where(varies, np.minimum(2 * np.minimum(more, fewer), 1.0), sure)


def p_against_rest(sums: SliceSums, whole: SliceSums) -> FloatArray:
    """Two-sided p-values of the hypothesis that the gap of a slice equals that of the other rows (Welch), shape (S,).

    1 where there are no other rows.
    """
    rest = sums.rest_of(whole)
    some = rest.rows > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(some, sums.gap - rest.gap, 0.0)
        z = np.abs(difference) / np.sqrt(sums.spread**2 + np.where(some, rest.spread, 0.0) ** 2)
    same = np.abs(difference) <= 1e-12
    return np.where(same, 1.0, 2 * ndtr(-z))


def bins_of(events: BinaryEvents, bins: int) -> IntArray:
    """Equal-width bin of each row, shape (n,)."""
    return assign(events.score, equal_width_edges(bins, events.edge_type))


def slice_ece(
    events: BinaryEvents,
    bin_of: IntArray,
    bins: int,
    codes: IntArray,
    slices: int,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """ECE of each slice, and its mean for a calibrated model, shape (S,) each.

    For a calibrated model the gap of a bin, as a sum, is nearly normal with variance sum s (1 - s), and the mean of its
    absolute value is sqrt(2 / pi) times its standard deviation.

    Parameters
    ----------
    events : BinaryEvents
    bin_of : ndarray of int, shape (n,)
        The bin of each row (`bins_of`), one of `bins`.
    bins : int
    codes : ndarray of int, shape (n,)
        The slice of each row, one of `slices`.
    slices : int
        S.
    weights : ndarray, shape (n,), optional
    """
    w = 1.0 if weights is None else weights
    score = np.asarray(events.score, dtype=np.float64)
    cell = codes.astype(np.int64) * bins + bin_of
    mass = denominators(np.bincount(codes, weights, minlength=slices))

    def per_bin(weights: FloatArray) -> FloatArray:
        total = np.bincount(cell, weights, minlength=slices * bins).astype(np.float64)
        return total.reshape(slices, bins)

    # Weights of the cells of a profile are numbers of rows.
    squared = w if events.counted else w**2
    spread = np.sqrt(2 / np.pi * np.maximum(per_bin(squared * score * (1 - score)), 0))
    return np.abs(per_bin(w * (score - events.hit))).sum(axis=1) / mass, spread.sum(axis=1) / mass

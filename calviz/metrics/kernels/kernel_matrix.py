"""The squared kernel calibration error as a U-statistic on a capped number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.numerics.safe_division import quotient
from calviz.sample.losses import full_predictions
from calviz.sample.redrawn_rows_and_labels import row_counts
from calviz.sample.row_draws import RowWeights, rows_of
from calviz.sample.sample import Sample
from calviz.specs.metric import Redrawn, Reweighted, needs_rows, reweighted_by

Kernel = Literal["laplacian", "rbf"]

#: Seed of the random choice of rows if there are more than the cap.
ROWS_SEED = 0
#: Beyond this many rows the matrix of pairs does not fit into the memory of a small machine.
MAX_ROWS = 10_000
#: Number of rows of the matrix that are computed at a time.
BLOCK_ROWS = 128


@dataclass(frozen=True, eq=False)
class _KernelRows:
    """The matrix of pairs, which is not stored until it is resampled.

    Attributes
    ----------
    p : ndarray of float64, shape (m, K)
    labels : ndarray of int, shape (m,)
    kernel : {"laplacian", "rbf"}
    width : float
    weights : ndarray, shape (m,), optional
        Weights of the rows; the matrix does not include them.
    """

    p: FloatArray
    labels: IntArray
    kernel: Kernel
    width: float
    weights: FloatArray | None = None

    @property
    def own(self) -> FloatArray:
        """Weights of the rows, 1 where there are none; shape (m,)."""
        return np.ones(self.p.shape[0]) if self.weights is None else self.weights

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Iterate over blocks of rows of the matrix, shape (b, m)."""
        m = self.p.shape[0]
        residual = self.p.copy()
        residual[np.arange(m), self.labels] -= 1
        for start in range(0, m, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, m))
            block = _distances(self.p, rows)
            if self.kernel == "laplacian":
                block /= -self.width
            else:
                block /= self.width
                np.square(block, out=block)
                block /= -2
            np.exp(block, out=block)
            block *= residual[rows] @ residual.T
            block[np.arange(rows.stop - start), np.arange(start, rows.stop)] = 0
            yield rows, block

    @cached_property
    def pairs(self) -> FloatArray:
        """The matrix, shape (m, m), in single precision: rounding is far below the noise of resampling."""
        m = self.p.shape[0]
        out = np.empty((m, m), dtype=np.float32)
        for rows, block in self.blocks():
            out[rows] = block
        return out


@dataclass(frozen=True, eq=False)
class PairwiseErrors:
    """``h_ij = k(p_i, p_j) (e_i - p_i) . (e_j - p_j)`` with a diagonal of zeros, and its mean off it.

    Attributes
    ----------
    value : ndarray, shape (...)
        Mean of the off-diagonal entries.
    kernel : _KernelRows
        Computes the entries, a block of rows at a time.
    params : mapping
    """

    #: Fields in which resamples differ.
    DRAWN: ClassVar = ("value",)

    value: FloatArray
    kernel: _KernelRows
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def m(self) -> int:
        """Number of rows that form the pairs."""
        return int(self.kernel.p.shape[0])

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Draw rows with replacement; pairs of a row with itself are left out."""
        m = self.m
        weights = np.concatenate(list(row_counts(rng, m, resamples))).astype(np.float32)
        count = m**2 - np.square(weights).sum(axis=1, dtype=np.float64)
        # A resample of one repeated row has no pair; this only happens with very few rows.
        total = quotient(self._quadratic(weights), count)
        return type(self)(total, self.kernel, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Wild bootstrap: random signs give the statistic's distribution when its mean is zero."""
        m = self.m
        signs = rng.integers(0, 2, size=(resamples, m), dtype=np.int8).astype(np.float32)
        signs *= 2
        signs -= 1
        return type(self)(self._quadratic(signs) / (m * (m - 1)), self.kernel, self.params)

    def weighted(self, weights: FloatArray) -> Self:
        """Weighted mean over pairs, for row weights of shape (b, m); pairs of a row with itself are left out."""
        w = weights.astype(np.float32)
        pairs = weights.sum(axis=1) ** 2 - np.square(weights).sum(axis=1)
        total = np.full(w.shape[0], np.nan)
        np.divide(self._quadratic(w), pairs, out=total, where=pairs > 1e-9)
        return type(self)(total, self.kernel, self.params)

    def _quadratic(self, weights: FloatArray) -> FloatArray:
        """``w' H w`` per row of weights."""
        product = weights @ self.kernel.pairs
        return np.asarray(np.einsum("bi,bi->b", product, weights))


def _reweighted(sample: Sample, view: PairwiseErrors) -> Reweighted:
    """See `Reweighting`."""
    rows = _chosen(sample, int(view.params["kernel_rows"]))

    def resampled(weights: RowWeights) -> Callable[[float | None], PairwiseErrors]:
        some = rows_of(weights, rows)
        return lambda _: view.weighted(np.ascontiguousarray(some.T))

    return resampled


def _redrawn(sample: Sample, view: PairwiseErrors) -> Redrawn:
    """See `Reweighting`: random signs of rows, or of whole clusters."""
    rows, own = _chosen(sample, int(view.params["kernel_rows"])), view.kernel.own
    pairs = float(own.sum() ** 2 - own @ own)

    def draw(rng: np.random.Generator, draws: Any, size: int) -> PairwiseErrors:
        signs = np.ascontiguousarray(rows_of(draws.signs(rng, size), rows).T, dtype=np.float32)
        return replace(view, value=view._quadratic(signs) / pairs)

    return draw


def _chosen(sample: Sample, most: int) -> IntArray:
    n = sample.data.n
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(ROWS_SEED).choice(n, most, replace=False))


@needs_rows
@reweighted_by(_reweighted, redrawn=_redrawn, weighted=True, grouped=True)
def pairwise_errors(
    sample: Sample,
    *,
    kernel: Kernel = "laplacian",
    kernel_bandwidth: float | None = None,
    kernel_rows: int = 1_000,
) -> PairwiseErrors:
    """All pairs of at most `kernel_rows` rows (drawn without replacement with a fixed seed).

    Parameters
    ----------
    sample : Sample
    kernel : {"laplacian", "rbf"}
        ``exp(-|p - q| / nu)`` or ``exp(-|p - q|^2 / (2 nu^2))``, times the identity over classes.
    kernel_bandwidth : float, optional
        nu; by default, the median distance between the rows.
    kernel_rows : int
        Largest number of rows used; the cost is quadratic in it.

    Notes
    -----
    With weights, the weight of a pair is the product of the weights of its rows.
    """
    data = full_predictions(sample)
    if not 2 <= kernel_rows <= MAX_ROWS:
        raise OptionError(f"'kernel_rows' must be from 2 to {MAX_ROWS:,}, got {kernel_rows!r}.")
    rows = _chosen(sample, kernel_rows)
    p = data.probs[rows].astype(np.float64)
    m = rows.size
    width = _bandwidth(p) if kernel_bandwidth is None else kernel_bandwidth
    if not (isinstance(width, int | float) and 0 < width < np.inf):
        raise OptionError(f"'kernel_bandwidth' must be a number above 0, got {width!r}.")
    own = None if sample.weights is None else sample.weights[rows]
    matrix = _KernelRows(p, data.labels[rows], kernel, float(width), own)
    if own is None:
        total = sum(float(block.sum()) for _, block in matrix.blocks())
        pairs = float(m * (m - 1))
    else:
        total = sum(float(own[some] @ block @ own) for some, block in matrix.blocks())
        pairs = float(own.sum() ** 2 - own @ own)
    value = total / pairs if pairs > 1e-9 else np.nan
    params = {
        "kernel": kernel,
        "kernel_bandwidth": width,
        "rows": m,
        "kernel_rows": kernel_rows,
    }
    return PairwiseErrors(np.asarray(value), matrix, params)


def _distances(p: FloatArray, rows: slice) -> FloatArray:
    """Euclidean distances of some rows from all rows, computed from inner products."""
    square = np.einsum("ij,ij->i", p, p)
    distance = p[rows] @ p.T
    distance *= -2
    distance += square[rows, None]
    distance += square
    return np.sqrt(np.maximum(distance, 0, out=distance), out=distance)


def _bandwidth(p: FloatArray) -> float:
    """Median distance between two rows; 1 if most rows are equal (or there is only one)."""
    m = p.shape[0]
    pairs = np.empty(m * (m - 1) // 2)
    done = 0
    for start in range(0, m, BLOCK_ROWS):
        for i, row in enumerate(_distances(p, slice(start, start + BLOCK_ROWS)), start=start):
            pairs[done : done + m - i - 1] = row[i + 1 :]
            done += m - i - 1
    median = float(np.median(pairs, overwrite_input=True)) if pairs.size else 0.0
    return median if median > 1e-6 else 1.0

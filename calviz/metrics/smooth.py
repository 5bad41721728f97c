"""Calibration errors with kernels: SKCE compares pairs of rows, KDE-ECE and smECE smooth along the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calviz.core import entry_specs
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.sample import cell_bounds, step_views
from calviz.sample.draws import RowWeights, once_per_view, row_counts, rows_of
from calviz.sample.sample import Sample, full_predictions
from calviz.sample.step_views import NARROWEST, StepsWithParams, grid_size, steps
from calviz.sample.steps import Steps

# ---- SKCE

Kernel = Literal["laplacian", "rbf"]

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
    weights : ndarray, shape (m,)
        Weights of the rows; the matrix does not include them.
    """

    p: FloatArray
    labels: IntArray
    kernel: Kernel
    width: float
    weights: FloatArray

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
        counts = np.concatenate(list(row_counts(rng, self.m, resamples)))
        return self.weighted(counts.astype(np.float64))

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
        # A resample of one repeated row has no pair; this only happens with very few rows.
        total = np.full(w.shape[0], np.nan)
        np.divide(self._quadratic(w), pairs, out=total, where=pairs > 1e-9)
        return type(self)(total, self.kernel, self.params)

    def _quadratic(self, weights: FloatArray) -> FloatArray:
        """``w' H w`` per row of weights."""
        return np.asarray(np.einsum("bi,bi->b", weights @ self.kernel.pairs, weights))


def _reweighted(sample: Sample, view: PairwiseErrors) -> entry_specs.Reweighted:
    """See `Reweighting`."""
    rows = _chosen(sample, int(view.params["kernel_rows"]))

    def resampled(weights: RowWeights) -> Callable[[float | None], PairwiseErrors]:
        some = rows_of(weights, rows)
        return lambda _: view.weighted(np.ascontiguousarray(some.T))

    return resampled


def _redrawn(sample: Sample, view: PairwiseErrors) -> entry_specs.Redrawn:
    """See `Reweighting`: random signs of rows, or of whole clusters."""
    rows, own = _chosen(sample, int(view.params["kernel_rows"])), view.kernel.weights
    pairs = float(own.sum() ** 2 - own @ own)

    def draw(rng: np.random.Generator, draws: Any, size: int) -> PairwiseErrors:
        signs = np.ascontiguousarray(rows_of(draws.signs(rng, size), rows).T, dtype=np.float32)
        return replace(view, value=view._quadratic(signs) / pairs)

    return draw


def _chosen(sample: Sample, most: int) -> IntArray:
    n = sample.data.n
    if n <= most:
        return np.arange(n)
    # Seed of the random choice of rows if there are more than the cap.
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


@entry_specs.needs_rows
@entry_specs.reweighted_by(_reweighted, redrawn=_redrawn)
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
    own = sample.row_weights[rows]
    matrix = _KernelRows(p, data.labels[rows], kernel, float(width), own)
    total = sum(float(own[some] @ block @ own) for some, block in matrix.blocks())
    pairs = float(own.sum() ** 2 - own @ own)
    value = total / pairs if pairs > 1e-9 else np.nan
    params = {"kernel": kernel, "kernel_bandwidth": width, "rows": m, "kernel_rows": kernel_rows}
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


@entry_specs.metric(
    paired=False,
    label="SKCE",
    family="Bin-free",
    direction="lower",
    bounds=(-2.0, 2.0),
    formula=r"\frac{1}{n(n-1)} \sum_{i \ne j} k(p_i, p_j)\, (e_{y_i} - p_i)^\top (e_{y_j} - p_j)",
    reference="Widmann, Lindsten & Zachariah 2019, eq. 7 (unbiased quadratic estimator)",
    view=pairwise_errors,
    follows_rows=True,
    interval="inverted-unbiased",
    undefined="undefined: one row makes no pair.",
)
def skce(view: PairwiseErrors) -> FloatArray:
    """Squared kernel calibration error of the whole probability vector, unbiased: around 0, possibly negative, for a calibrated model; computed on at most ``kernel_rows`` rows.

    Values have the shape (...) of the mean over pairs.
    """
    return view.value


# ---- KDE-ECE and smECE

#: Cells per half-width of the triweight kernel: finer for the value than for its resamples.
VALUE_CELLS, RESAMPLE_CELLS = 32, 16
#: Nodes of the grid of smECE, and the cell of resamples relative to n^(-1/3): that is how the width
#: of the kernel falls with n if the model is calibrated.
SMECE_NODES, SMECE_CELL = 4_097, 0.08


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelSteps(StepsWithParams):
    """Steps with the half-width of the kernel that smooths them; resamples keep that width.

    Shares of hits lie between 0 and 1, unless the hits are `signed`: those of a simulated population with scaled gaps.
    """

    width: float
    nodes: int
    signed: bool = False

    def over(self, resampled: Steps, *, redrawn: bool = False, signed: bool = False) -> Self:
        """See `StepsWithParams`."""
        nodes = grid_size(self.width, nodes=RESAMPLE_CELLS, least=256, most=1 << 12)
        return replace(self, steps=resampled, nodes=nodes, signed=signed)


@step_views.over_steps(steps)
def kernel_steps(sample: Sample, *, bandwidth: float | None = None) -> KernelSteps:
    """Steps of the sample, with the half-width of the kernel.

    Parameters
    ----------
    sample : Sample
    bandwidth : float, optional
        The half-width; by default, the paper's rule of thumb ``1.06 sd n^(-1/5)`` (Zhang 2020,
        appendix C).
    """
    view = sample.view(steps)
    if bandwidth is None:
        n = float(view.n)
        mean = sum(float(part.count @ part.score) for part in view.blocks()) / n
        square = sum(float(part.count @ np.square(part.score - mean)) for part in view.blocks())
        width = 1.06 * math.sqrt(square / n) * n**-0.2
    elif isinstance(bandwidth, int | float) and 0 < bandwidth < math.inf:
        width = float(bandwidth)
    else:
        raise OptionError(f"'bandwidth' must be a number above 0, got {bandwidth!r}.")
    nodes = grid_size(width, nodes=VALUE_CELLS)
    return KernelSteps(view, {"bandwidth": width}, width=width, nodes=nodes)


@once_per_view
def _densities(view: KernelSteps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the nodes, and the densities of rows and of hits at them, shape (..., nodes)."""
    s = view.steps
    resampled = np.ndim(s.n) > 0
    dtype: type[np.floating[Any]] = np.float32 if resampled else np.float64
    response = step_views.triweight_response(view.width, view.nodes).astype(dtype)
    # Redrawing hits leaves the row counts unchanged: one transform serves all resamples.
    fixed = resampled and s.count.strides[0] == 0

    def rows(part: Steps) -> FloatArray:
        return (part.count[:1] if fixed else part.count).astype(dtype, copy=False)

    def hits(part: Steps) -> FloatArray:
        return part.hits.astype(dtype, copy=False)

    def density(mass: Callable[[Steps], FloatArray], least: float = 0.0) -> FloatArray:
        # A kernel whose ends are cut off by the grid may oscillate slightly below 0.
        spread = step_views.spread_parts(s, mass, view.nodes)
        return np.maximum(step_views.smooth(spread, response), least)

    least = -math.inf if view.signed else 0.0
    return np.linspace(0, 1, view.nodes, dtype=dtype), density(rows), density(hits, least)


def _kde(view: KernelSteps, d: int) -> FloatArray:
    s = view.steps
    n = s.n
    if view.width < NARROWEST:
        return np.asarray(np.abs((s.score_sum.sum(axis=-1) - s.n_hits) / n) ** d)
    nodes, rows, hits = _densities(view)
    # |z - min(hits / rows, 1)|^d * rows, where there are rows.
    gap = np.abs(nodes * rows - (hits if view.signed else np.minimum(hits, rows)))
    if d == 2:
        np.square(gap, out=gap)
        gap = np.divide(gap, rows, out=np.zeros_like(gap), where=rows > _FEW * n[..., None])
    return np.asarray(step_views.integrate(gap) / n)


#: Nodes whose density of rows is at most this, divided by n, are left out of squared gaps.
_FEW = 1e-7


def _kde_bound(sample: Sample, view: KernelSteps) -> float:
    if view.width < NARROWEST:
        return math.nan
    return cell_bounds.of_density(sample, view.width, partial(grid_size, nodes=VALUE_CELLS))


_smoothed = partial(entry_specs.error_metric, family="Bin-free", interval="inverted", widening=1.1)
_kde_metric = partial(
    _smoothed,
    reference="Zhang et al. 2020, section 4.1, eq. 7, appendices B and C",
    view=kernel_steps,
    follows_rows=True,
)


@_kde_metric(
    bound=_kde_bound,
    label="KDE-ECE",
    formula=r"\int_0^1 \left| z - \tilde\pi(z) \right| \tilde p(z)\, dz",
)
def kde_ece(view: KernelSteps) -> FloatArray:
    """ECE with a kernel density instead of bins (triweight kernel, mirrored at 0 and 1).

    Steps of shape (..., G) give values of shape (...).

    The bandwidth is the half-width of the kernel, as in the paper. The authors' code passes it to
    KDEpy as the kernel's standard deviation, which is a third of the half-width, and computes it from the
    standard deviation of the scores of hits alone and ``(2 n)^(-1/5)``: its kernel is nearly three times as wide.
    """
    return _kde(view, 1)


@_kde_metric(
    bound=lambda sample, view: _kde_bound(sample, view) + 2 * _FEW,
    unit="plain",
    label="KDE-ECE²",
    formula=r"\int_0^1 \left( z - \tilde\pi(z) \right)^2 \tilde p(z)\, dz",
)
def kde_ece_l2(view: KernelSteps) -> FloatArray:
    """KDE-ECE with squared gaps, so that large gaps weigh more.

    Steps of shape (..., G) give values of shape (...).
    """
    return _kde(view, 2)


def _bound(sample: Sample, view: Steps) -> float:
    return cell_bounds.of_smoothed(sample, view, smece(view))


@_smoothed(
    tables=("methods",),
    label="smECE",
    formula=r"\mathrm{smECE}_{\sigma^*},\; \sigma^* = \mathrm{smECE}_{\sigma^*},\quad \mathrm{smECE}_\sigma = \int_0^1 \Big| \tfrac1n \sum_i \tilde K_\sigma(t, s_i)(s_i - h_i) \Big| dt",
    reference="Blasiok & Nakkiran 2023, definition 3",
    view=steps,
    bound=_bound,
)
def smece(view: Steps) -> FloatArray:
    """Smooth ECE: residuals smoothed by a reflected Gaussian whose width equals the error itself.

    Steps of shape (..., G) give values of shape (...).

    The integral is exact at the ends: the public implementation (relplot) gives scores within half
    a grid cell of 0 and 1 half their weight, which overstates saturated predictions (by 41 % on a
    network with a quarter of its confidences at 1). Without such scores the two agree.
    """
    n = view.n[..., None]
    dtype: type[np.floating[Any]] = np.float32 if np.ndim(view.n) else np.float64
    if dtype is np.float64:
        nodes, tolerance = SMECE_NODES, 1e-11
    else:
        # Single precision and fewer nodes: far below the noise of resampling.
        # The error, and so the width of the kernel, is never below the mean residual.
        mean = np.abs(view.score_sum.sum(axis=-1) - view.n_hits) / view.n
        cell = SMECE_CELL * max(float(np.mean(view.n)) ** (-1 / 3), float(mean.min()))
        tolerance = 1e-5
        nodes = grid_size(cell, nodes=1, least=256, most=SMECE_NODES - 1)

    def residual(part: Steps) -> FloatArray:
        gap = part.score_sum
        gap -= part.hits
        gap /= n
        return gap.astype(dtype, copy=False)

    mass = step_views.spread_parts(view, residual, nodes)
    coefficients = np.atleast_2d(step_views.cosine_coefficients(mass))

    def smoothed(sigma: FloatArray, rows: IntArray) -> FloatArray:
        response = step_views.gaussian_response(sigma, nodes, coefficients.dtype)
        return step_views.integrate(np.abs(step_views.from_cosine(coefficients[rows] * response)))

    # The error is at least the mean residual; noise adds about n^(-1/2) / 2.
    guess = min(
        float(np.abs(coefficients[:, 0]).mean()) + 0.5 * float(np.mean(view.n)) ** -0.5, 1.0
    )
    root = falling_fixed_points(smoothed, coefficients.shape[0], start=guess, tolerance=tolerance)
    return root.reshape(view.n.shape)


#: ``function(x, rows)``: values at `x`, shape (R,), of the functions numbered `rows`, shape (R,).
Functions = Callable[[FloatArray, IntArray], FloatArray]


def falling_fixed_points(
    function: Functions, count: int, *, start: float, tolerance: float
) -> FloatArray:
    """Solve ``x = f(x)`` in [0, 1] for `count` continuous, non-increasing functions; shape (count,).

    A point and its image lie on either side of the fixed point, so the first evaluation gives a
    bracket; the Illinois method does the rest. Functions leave the iteration as they converge.

    Parameters
    ----------
    function : callable
        Values are at least 0 and at most 1.
    count : int
    start : float
        First guess for all functions.
    tolerance : float
        Largest accepted absolute difference between x and f(x).
    """
    out = np.full(count, start)
    rows = np.arange(count)
    a = b = x = out.copy()
    ga = gb = np.empty(0)
    # Largest number of evaluations.
    for turn in range(60):
        g = np.asarray(function(x, rows), dtype=np.float64) - x
        out[rows] = x
        going = np.abs(g) > tolerance
        if not going.any():
            break
        if turn > 1:
            same = (g > 0) == (gb > 0)
            a = np.where(same, a, b)
            # The value at an end that stays is halved, so that it moves too.
            ga = np.where(same, ga / 2, gb)
            b, gb = x, g
        elif turn == 1:
            # Rounding may leave the image on the same side; then an end of [0, 1] is on the other side.
            same = (g > 0) == (ga > 0)
            a = np.where(same, np.where(g > 0, 1.0, 0.0), a)
            ga = np.where(same, g + x - a, ga)
            b, gb = x, g
        if turn == 0:
            a, ga, step = x, g, g
        else:
            step = gb * (a - b) / np.where(gb == ga, 1.0, gb - ga)
        rows, x = rows[going], np.clip(x + step, 0, 1)[going]
        a, ga = a[going], ga[going]
        if turn:
            b, gb = b[going], gb[going]
    return out

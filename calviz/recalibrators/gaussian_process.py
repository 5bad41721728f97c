"""Gaussian-process calibration: one latent function of the log-probability, shared by all classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from calviz.core import blocks, entry_specs
from calviz.core.blocks import FloatArray, IntArray, effective_number, row_blocks, row_weights
from calviz.core.probabilities import Scores, fit_temperature, softmax
from calviz.recalibrators.maps import Numbers, array_source, learned
from calviz.recalibrators.temperature_scaling import Tempered


@entry_specs.recalibrator(
    key="gp",
    label="Gaussian-process calibration",
    family="Non-parametric",
    needs="log-probabilities",
    reference="Wenger et al. 2020",
    formula=r"\mathrm{softmax}(f(\log p_1), \dots, f(\log p_K)),\ f \sim \mathrm{GP}",
    left_out=entry_specs.always("it takes longest of all."),
)
class GaussianProcess(Tempered):
    """A latent function shared by all classes, with a Gaussian-process prior centred on temperature scaling, under a softmax likelihood.

    Inference is sparse and variational: inducing points, no sampling. The map uses the posterior mean of the function. The paper does
    not cover row weights; here the likelihood of a row is raised to the power of its weight, and the weights are scaled to add up to
    Kish's effective sample size.

    Parameters
    ----------
    inducing : int
        Number of inducing points.
    max_pairs : int
        Largest number of (row, class) pairs to fit on; larger data are thinned to evenly spaced rows.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    scale_ : float
        Slope of the prior mean, 1/T.
    grid_, latent_, deviation_ : ndarray, shape (G,)
        Posterior mean and standard deviation of the departure from the prior mean, on a grid of ``-log(1 - log(p) / T)``.
    """

    inducing: int = 10
    max_pairs: int = 500_000
    scale_: float = learned(Numbers(above=0))
    grid_: FloatArray = learned(Numbers(("M",), ascending=True))
    latent_: FloatArray = learned(Numbers(("M",)))
    deviation_: FloatArray = learned(Numbers(("M",), least=0))

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        step = max(1, -(-n * k // self.max_pairs))
        thinned_scores, thinned_labels = scores.every(step), labels[::step]
        if step > 1:
            self._warn(
                f"fitted on one row in {step} ({thinned_labels.size:,} of {n:,}), to limit the time it takes."
            )
        own = None if weights is None else weights[::step]
        if own is not None:
            own = own * (effective_number(own) / own.sum())
        warm = fit_temperature(thinned_scores, thinned_labels, weights=own)
        self._warn_of_bound(warm)
        self.scale_ = 1 / warm.value
        x = thinned_scores.block(slice(0, thinned_labels.size), np.float32)
        x *= np.float32(self.scale_)
        problem = LatentProblem(x, thinned_labels, self.inducing, own)
        self.grid_ = problem.grid
        self.latent_, self.deviation_, converged = problem.fit(max_passes=300)
        if not converged:
            self._warn(f"not converged after {problem.passes} passes.")

    def _latent(self, log_p: FloatArray) -> FloatArray:
        x = log_p * self.scale_
        return x + np.interp(warp(x), self.grid_, self.latent_)

    def curve(self, score: FloatArray) -> FloatArray:
        """Return the latent function at probabilities of any shape."""
        return self._latent(np.log(np.asarray(score, dtype=np.float64)))

    def _apply(self, block: FloatArray) -> FloatArray:
        return softmax(self._latent(block))

    def _described(self) -> dict[str, Any]:
        """Return the temperature, and the largest departure of the function from temperature scaling."""
        return {
            "temperature": 1 / self.scale_,
            "largest_departure": float(np.abs(self.latent_ - self.latent_[-1]).max()),
        }

    def _source(self, name: str) -> str:
        return f"""{name}_grid = {array_source(self.grid_)}
{name}_latent = {array_source(self.latent_)}


def {name}_of(log_p):
    x = log_p * {self.scale_!r}
    return softmax(x + np.interp(-np.log1p(-np.minimum(x, 0)), {name}_grid, {name}_latent))
"""


# ---- The latent function
#
# The function has one argument, so it can be represented on a grid: every pass over the data
# reads the grid by interpolation and adds up its results on the grid. Inducing points, their
# variational distribution and the kernel work on the grid only, never on the rows.


GRID = 512
_FAR = 1e30
_BLOCK_BYTES = 1 << 17


def warp(x: FloatArray) -> FloatArray:
    """Transform log-probabilities to the scale of the kernel: fine near 0, coarse far below."""
    return -np.log1p(-np.minimum(x, 0))


class LatentProblem:
    """Evidence lower bound of a sparse variational Gaussian process (Wenger 2020).

    Parameters
    ----------
    x : ndarray, shape (n, K)
        Prior mean of the latent function at every (row, class) pair: scaled log-probabilities.
    labels : ndarray of int, shape (n,)
    inducing : int
        Number of inducing points.
    weights : ndarray, shape (n,), optional
        Row weights: the power to which the likelihood of each row is raised.

    Notes
    -----
    With q(f) normal at every pair, E log sum exp f <= log sum exp(mean + variance / 2) bounds the
    likelihood from below, so no sampling is needed. Gradients are exact, except for central differences in the
    two parameters of the kernel.
    """

    def __init__(
        self, x: FloatArray, labels: IntArray, inducing: int, weights: FloatArray | None = None
    ) -> None:
        self.x, self.labels, self.inducing = x, labels, inducing
        self.weights = row_weights(weights, labels.size)
        self.n = float(self.weights.sum())
        low = min(float(warp(np.asarray(x.min(), dtype=np.float64))), -1e-3)
        self.grid = np.linspace(low, 0.0, GRID)
        self.points = np.linspace(low, 0.0, inducing)
        self.place = np.empty(x.shape, dtype=np.float32)
        for rows in row_blocks(x):
            # Slightly inside, so that the right neighbour is on the grid too.
            self.place[rows] = np.clip((warp(x[rows]) - low) * ((GRID - 1) / -low), 0, GRID - 1.001)
        self.label_counts = _on_grid(self.place[np.arange(labels.size), labels], self.weights)
        self.passes = 0

    def responsibilities(self, raised: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum over the rows of log sum exp(x + raised), and the probabilities added up on the grid."""
        # A step of the search may overshoot by far; with a finite loss it is shortened again.
        left_of = np.clip(raised, -_FAR, _FAR).astype(np.float32)
        rise = np.append(np.diff(left_of), np.float32(0))
        self.passes += 1

        def work(rows: slice) -> FloatArray:
            place, own = self.place[rows], self.weights[rows]
            left = place.astype(np.int32)
            u = self.x[rows] + left_of[left]
            u += (place - left) * rise[left]
            top = u.max(axis=1)
            u -= top[:, None]
            np.maximum(u, -80, out=u)
            np.exp(u, out=u)
            total = u.sum(axis=1)
            u *= (own / total).astype(u.dtype)[:, None]
            loss = own @ np.add(np.log(total), top, dtype=np.float64)
            return np.append(_on_grid(place.ravel(), u.ravel()), loss)

        total = blocks.sum_over_blocks(self.x, work, block_bytes=_BLOCK_BYTES)
        return float(total[-1]), total[:-1]

    def features(self, log_length: float, log_scale: float) -> tuple[FloatArray, FloatArray]:
        """Return the matrix from whitened inducing values to values on the grid, (G, M), and the remaining prior variance."""
        length, scale = np.exp(log_length), np.exp(log_scale)

        def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
            return np.asarray(scale * np.exp(-0.5 * ((a[:, None] - b) / length) ** 2))

        of_points = kernel(self.points, self.points)
        # A jitter, as the matrix of close points is nearly singular.
        of_points[np.diag_indices(self.inducing)] += 1e-6 * scale
        factor = cholesky(of_points, lower=True)
        a = solve_triangular(factor, kernel(self.points, self.grid), lower=True).T
        return a, np.maximum(scale - np.vecdot(a, a), 0)

    def posterior(self, theta: FloatArray) -> tuple[FloatArray, ...]:
        """Return mean and Cholesky factor of the inducing values, their features, and the function's spread and variance, on the grid."""
        m = self.inducing
        lower = np.zeros((m, m))
        lower[np.tril_indices(m)] = theta[m:-2]
        lower[np.diag_indices(m)] = np.exp(lower[np.diag_indices(m)])
        a, remaining = self.features(theta[-2], theta[-1])
        spread = a @ lower
        return theta[:m], lower, a, spread, remaining + np.vecdot(spread, spread)

    def negative_bound(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative evidence lower bound per row, and its gradient."""
        m = self.inducing
        mean, lower, a, spread, variance = self.posterior(theta)
        triangle, diagonal = np.tril_indices(m), np.diag_indices(m)
        latent = a @ mean
        logs, r = self.responsibilities(latent + variance / 2)
        kl = 0.5 * (np.vdot(lower, lower) + mean @ mean - m) - np.log(lower[diagonal]).sum()
        # A wide prior on the kernel keeps it in a sensible range where the data say nothing.
        prior = 0.5 * ((theta[-2] - 0.0) ** 2 + (theta[-1] + 1.0) ** 2) / 4
        value = logs - self.label_counts @ latent + kl + prior
        by_latent, by_variance = r - self.label_counts, r / 2
        gradient = np.empty_like(theta)
        gradient[:m] = a.T @ by_latent + mean
        by_lower = 2 * a.T @ (by_variance[:, None] * spread) + lower
        by_lower[diagonal] = by_lower[diagonal] * lower[diagonal] - 1
        gradient[m:-2] = by_lower[triangle]
        for i, centre in ((-2, 0.0), (-1, -1.0)):
            moved = []
            for sign in (1, -1):
                shifted = theta[-2:].copy()
                shifted[i] += sign * 1e-5
                b, rest = self.features(*shifted)
                bs = b @ lower
                moved.append(by_latent @ (b @ mean) + by_variance @ (rest + np.vecdot(bs, bs)))
            gradient[i] = (moved[0] - moved[1]) / 2e-5 + (theta[i] - centre) / 4
        return value / self.n, gradient / self.n

    def fit(self, max_passes: int) -> tuple[FloatArray, FloatArray, bool]:
        """Maximise the bound; return the posterior mean and standard deviation on the grid, and whether the search converged."""
        m = self.inducing
        theta = np.zeros(m + m * (m + 1) // 2 + 2)
        # Start from a narrow distribution: that of the prior would swamp the softmax.
        rows, columns = np.tril_indices(m)
        theta[m:-2][rows == columns] = np.log(0.1)
        theta[-2:] = 0.0, -1.0
        minimum = minimize(
            self.negative_bound,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * (theta.size - 2) + [(-2.0, 3.0), (-6.0, 4.0)],
            options={"maxfun": max_passes, "maxiter": max_passes, "ftol": 1e-6, "gtol": 1e-6},
        )
        mean, _, a, _, variance = self.posterior(minimum.x)
        return a @ mean, np.sqrt(variance), bool(minimum.success)


def _on_grid(place: FloatArray, values: FloatArray) -> FloatArray:
    """Return the sums of values at places between points of the grid, each divided between its two neighbours, shape (G,)."""
    left = place.astype(np.intp)
    on_right = values * (place - left)
    sums = np.asarray(np.bincount(left, values - on_right, GRID), np.float64)
    sums[1:] += np.bincount(left, on_right, GRID)[:-1]
    return sums

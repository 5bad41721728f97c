"""Splines, penalised logistic regressions and isotonic fits of many samples at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.blocks import BoolArray, FloatArray, IntArray

#: Smallest distance of neighbouring knots, relative to their range; closer ones are merged.
_ROOM = 1e-6


def _bends(knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Q and B, shape (M, M - 2) and (M - 2, M): B takes the values of a natural cubic spline at the knots to its second derivatives.

    Notes
    -----
    Green and Silverman 1994, section 2.1: with h the widths of the intervals, Q' v = T c gives the second derivatives c at the inner
    knots.
    """
    m, h = knots.size, np.diff(knots)
    inner = np.arange(m - 2)
    q = np.zeros((m, m - 2))
    q[inner, inner], q[inner + 2, inner] = 1 / h[:-1], 1 / h[1:]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    t = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return q, np.linalg.solve(t, q.T)


def bends_of(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the second derivatives at the knots (M,) of natural cubic splines with these values there, (M,) or (M, D)."""
    bends = np.zeros_like(values)
    if knots.size > 2:
        bends[1:-1] = _bends(knots)[1] @ values
    return bends


def natural_spline(
    knots: FloatArray, values: FloatArray, bends: FloatArray, z: FloatArray
) -> FloatArray:
    """Evaluate natural cubic splines at arguments z (n,), straight beyond the outermost knots; shape (n, D).

    Parameters
    ----------
    knots : ndarray, shape (M,)
    values, bends : ndarray, shape (M, D)
        Values and second derivatives at the knots.
    """
    # As in the snippet that `calviz.recalibrators.logit_spline` writes.
    t, v, c = knots, values, bends
    at = np.clip(np.searchsorted(t, z) - 1, 0, t.size - 2)
    width = t[at + 1] - t[at]
    right = (np.clip(z, t[0], t[-1]) - t[at]) / width
    left = 1 - right
    # Cubes as products: ``**`` takes ten times as long.
    cubes = left * left * left - left, right * right * right - right
    bent = cubes[0][:, None] * c[at] + cubes[1][:, None] * c[at + 1]
    out = left[:, None] * v[at] + right[:, None] * v[at + 1] + bent * (width * width / 6)[:, None]
    first = (v[1] - v[0]) / (t[1] - t[0]) - (t[1] - t[0]) * c[1] / 6
    last = (v[-1] - v[-2]) / (t[-1] - t[-2]) + (t[-1] - t[-2]) * c[-2] / 6
    below, above = np.minimum(z - t[0], 0), np.maximum(z - t[-1], 0)
    return np.asarray(out + np.multiply.outer(below, first) + np.multiply.outer(above, last))


@dataclass(frozen=True, eq=False)
class Basis:
    """Basis of natural cubic splines: 1, z, and functions scaled so that the roughness is the sum of their squared weights.

    Attributes
    ----------
    knots : ndarray, shape (M,)
    at_knots : ndarray, shape (M, D)
        Values of the functions at the knots.
    bent : ndarray, shape (D,)
        1 for functions that are penalised, 0 for the straight ones.
    """

    knots: FloatArray
    at_knots: FloatArray
    bent: FloatArray

    @classmethod
    def of(cls, z: FloatArray, rows: FloatArray, knots: int) -> Self:
        """Make a basis with at most this many knots, at quantiles of ascending places z (M,) that hold `rows` rows (M,)."""
        below = np.cumsum(rows) - rows / 2
        knot_places = z
        if knot_places.size > knots:
            knot_places = np.interp(np.linspace(0, rows.sum(), knots), below, z)
        spread = knot_places[-1] - knot_places[0]
        knot_places = knot_places[np.append(True, np.diff(knot_places) > _ROOM * spread)]
        if knot_places.size < 2:
            knot_places = knot_places[0] + np.array([-1.0, 1.0])
        centre = float(z @ rows / rows.sum())
        scale = float(np.sqrt((z - centre) ** 2 @ rows / rows.sum())) or 1.0
        straight = np.stack([np.ones(knot_places.size), (knot_places - centre) / scale], axis=1)
        value, vector = np.linalg.eigh(roughness((knot_places - centre) / scale))
        # Two directions have no roughness: straight lines.
        bent = vector[:, 2:] / np.sqrt(value[2:])
        at_knots = np.concatenate([straight, bent], axis=1)
        return cls(knot_places, at_knots, np.append([0.0, 0.0], np.ones(bent.shape[1])))

    def at(self, z: FloatArray) -> FloatArray:
        """Return the values of the functions at arguments z, shape (M,), within the knots or beyond; shape (M, D)."""
        return natural_spline(self.knots, self.at_knots, bends_of(self.knots, self.at_knots), z)

    def combined(self, z: FloatArray, weights: FloatArray) -> FloatArray:
        """Return ``at(z) @ weights`` for weights (D,), shape (M,), from the values of the sum at the knots."""
        values = (self.at_knots @ weights)[:, None]
        return natural_spline(self.knots, values, bends_of(self.knots, values), z)[:, 0]


def roughness(knots: FloatArray) -> FloatArray:
    """Return R (M, M) such that ``v' R v`` is the integral of the squared second derivative of the natural spline with values v at the knots (M,).

    Notes
    -----
    Green and Silverman 1994, section 2.1: the integral is c' T c.
    """
    q, bends = _bends(knots)
    return np.asarray(q @ bends)


# ---- Logistic fits

#: Largest number of Newton steps of a fit, and of reductions of a step.
_STEPS, _HALVINGS = 50, 30


def softplus(margin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``log(1 + exp(m))`` and its derivative, the sigmoid of m; several times as fast as ``logaddexp`` and ``expit``.

    Parameters
    ----------
    margin : ndarray, any shape
    """
    e = np.exp(-np.abs(margin))
    return np.maximum(margin, 0) + np.log1p(e), np.where(margin >= 0, 1, e) / (1 + e)


def penalised_logistic(
    x: FloatArray,
    offset: FloatArray,
    weight: FloatArray,
    target: FloatArray,
    penalty: FloatArray,
    start: FloatArray,
    enough: float,
) -> FloatArray:
    """Newton's method with backtracking, for F subsets of the rows at once.

    Each minimises ``sum weight log(1 + exp(m)) - target m + t' diag(penalty) t / 2`` with ``m = offset + x t``.

    Parameters
    ----------
    x : ndarray, shape (M, D)
    offset : ndarray, shape (M,)
    weight, target : ndarray, shape (M, F)
        Rows and hits in each cell.
    penalty : ndarray, shape (D,)
    start : ndarray, shape (F, D)
    enough : float
        Newton decrement, in nats, at which the fit ends.

    Returns
    -------
    ndarray, shape (F, D)
    """
    z, columns, weights, targets = (np.ascontiguousarray(a.T) for a in (offset, x, weight, target))
    hessian, ridge = np.empty((len(start), *2 * penalty.shape)), np.diag(penalty)

    def loss(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        margin = z + t @ columns
        of_misses, share = softplus(margin)
        value = np.vecdot(weights, of_misses) - np.vecdot(targets, margin)
        return value + (t * t) @ penalty / 2, share

    t = start
    value, share = loss(t)
    for _ in range(_STEPS):
        gradient = (weights * share - targets) @ x + t * penalty
        # One subset at a time, which stays in the cache.
        for of_subset, bend in zip(hessian, weights * share * (1 - share), strict=True):
            np.matmul(columns * bend, x, out=of_subset)
        hessian += ridge
        try:
            step = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            # Nothing is uncertain any more: separable rows without a penalty.
            step = -np.vecdot(np.linalg.pinv(hessian, hermitian=True), gradient[:, None, :])
        decrement = -np.vecdot(gradient, step)
        length = np.ones(len(t))
        for _ in range(_HALVINGS):
            trial = t + length[:, None] * step
            new, new_share = loss(trial)
            # The rounding of a sum must not reject a step.
            slack = 1e-13 * np.abs(value)
            worse = new > value - 1e-4 * length * decrement + slack
            if not worse.any():
                break
            length[worse] /= 4
        better = new <= value + slack
        t = np.where(better[:, None], trial, t)
        value = np.where(better, new, value)
        share = np.where(better[:, None], new_share, share)
        # By now the quadratic model is accurate: the step that was taken squares the error.
        if decrement.max() < enough or not better.any():
            break
    return t


# ---- Isotonic fits


class IsotonicFits(NamedTuple):
    """The levels of the isotonic fits of R samples of G steps each, one sample after the other.

    Attributes
    ----------
    samples : slice
        The samples that were fitted, among all.
    used : ndarray of bool, shape (R, G)
        Steps that have rows.
    level, weight : ndarray, shape (L,)
        The share of hits of each level, and its rows.
    first : ndarray of int, shape (L + 1,)
        First step of each level, counted among the steps that have rows; the last entry is the number of these.
    sample : ndarray of int, shape (L,)
        The sample of each level, counted from the first one of `samples`.
    """

    samples: slice
    used: BoolArray
    level: FloatArray
    weight: FloatArray
    first: IntArray
    sample: IntArray

    def per_step(self, values: FloatArray | IntArray) -> FloatArray | IntArray:
        """Repeat values per level, shape (L,), for each of the steps that have rows, shape (used steps,)."""
        return np.asarray(np.repeat(values, np.diff(self.first)))


def isotonic_fits(count: FloatArray, hits: FloatArray) -> Iterator[IsotonicFits]:
    """Fit R samples, given as rows and hits per ascending score, shape (R, G) each; yields the fits of some samples at a time.

    The samples are concatenated, each raised above the previous one, so that no level spans two of them.
    """
    # About this many steps, over all samples, are fitted in one call.
    rows = max(1, (1 << 16) // max(1, count.shape[-1]))
    for start in range(0, len(hits), rows):
        samples = slice(start, min(start + rows, len(hits)))
        used_count, used_hits = count[samples], hits[samples]
        used = used_count > 0
        sample = np.repeat(np.arange(len(used_count)), np.count_nonzero(used, axis=1))
        used_count, used_hits = used_count[used], used_hits[used]
        fitted = isotonic_regression(used_hits / used_count + 2 * sample, weights=used_count)
        first = fitted.blocks
        level = np.add.reduceat(used_hits, first[:-1]) / fitted.weights
        yield IsotonicFits(samples, used, level, fitted.weights, first, sample[first[:-1]])


def between(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Linear interpolation of y, shape (..., P), along its last axis at `at`, shape (G,); shape (..., G)."""
    if x.size == 1:
        return np.broadcast_to(y, (*y.shape[:-1], at.size))
    right = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    share = (at - x[right - 1]) / (x[right] - x[right - 1])
    return np.asarray(y[..., right - 1] * (1 - share) + y[..., right] * share)

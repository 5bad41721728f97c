"""Natural cubic splines, given by their values at the knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.interpolate import CubicSpline

from calviz.core.arrays import FloatArray

#: Smallest distance of neighbouring knots, relative to their range; closer ones are merged.
_ROOM = 1e-6


def bends_of(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the second derivatives at the knots (M,) of natural cubic splines with these values there, (M,) or (M, D)."""
    if knots.size < 3:
        return np.zeros_like(values)
    bends = CubicSpline(knots, values, bc_type="natural")(knots, 2)
    bends[[0, -1]] = 0
    return np.asarray(bends)


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
        is_apart = np.append(True, np.diff(knot_places) > _ROOM * spread)
        knot_places = knot_places[is_apart]
        if knot_places.size < 2:
            knot_places = knot_places[0] + np.array([-1.0, 1.0])
        centre = float(z @ rows / rows.sum())
        scale = float(np.sqrt((z - centre) ** 2 @ rows / rows.sum())) or 1.0
        straight = np.stack([np.ones(knot_places.size), (knot_places - centre) / scale], axis=1)
        penalty = roughness((knot_places - centre) / scale)
        value, vector = np.linalg.eigh(penalty)
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
    """Return R such that ``v' R v`` is the integral of the squared second derivative of the natural spline with values v at the knots.

    Parameters
    ----------
    knots : ndarray, shape (M,)

    Returns
    -------
    ndarray, shape (M, M)

    Notes
    -----
    Green and Silverman 1994, section 2.1: with h the widths of the intervals, Q' v = T c gives the second derivatives c at the inner
    knots, and the integral is c' T c.
    """
    m, h = knots.size, np.diff(knots)
    inner = np.arange(m - 2)
    q = np.zeros((m, m - 2))
    q[inner, inner], q[inner + 2, inner] = 1 / h[:-1], 1 / h[1:]
    q[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    t = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return np.asarray(q @ np.linalg.solve(t, q.T))

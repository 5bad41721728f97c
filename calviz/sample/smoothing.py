"""Kernel smoothing on a grid over [0, 1], with mirror images at both ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dct, next_fast_len
from scipy.special import spherical_jn

from calviz.core.arrays import FloatArray
from calviz.sample.steps import Steps

#: Half-width of a kernel below which all scores count as equal.
NARROWEST = 1e-9


def grid_size(width: float, *, nodes: int = 8, least: int = 1024, most: int = 1 << 16) -> int:
    """Size of a grid on which a kernel of this width spans at least `nodes` cells, within `least` and `most`."""
    size = nodes / max(width, nodes / most)
    return int(next_fast_len(int(min(max(size, least), most)), real=True)) + 1


def spread_parts(steps: Steps, mass: Callable[[Steps], FloatArray], size: int) -> FloatArray:
    """`spread` of ``mass(part)``, a block of steps at a time, shape (..., size)."""
    return np.asarray(sum(spread(part, mass(part), size) for part in steps.blocks()))


def spread(steps: Steps, mass: FloatArray, size: int) -> FloatArray:
    """Split each step's mass linearly between its two neighbouring nodes, shape (..., G) to (..., size).

    Totals and first moments are kept. With the steps in order, both follow from the sums of mass
    and of mass times score over the cells between the nodes.
    """
    cells = size - 1
    # The nodes themselves belong to the cell on their right, the last one to that on its left.
    # Only the nodes around these scores are looked up; the outermost cells take what lies beyond.
    score = steps.score
    ends = np.array([score[0] * cells - 1, score[-1] * cells + 1])
    low, high = np.clip(ends, 0, cells - 1).astype(np.intp)
    starts = np.searchsorted(score, np.arange(low, high + 1) / cells)
    starts[0] = 0
    filled = np.flatnonzero(np.diff(starts, append=score.size))
    total = np.add.reduceat(mass, starts[filled], axis=-1)
    moment = np.add.reduceat(mass * score.astype(mass.dtype, copy=False), starts[filled], axis=-1)
    filled += low
    up = moment * mass.dtype.type(cells)
    up -= total * filled.astype(mass.dtype)
    total -= up
    out = np.zeros((*mass.shape[:-1], size), dtype=mass.dtype)
    out[..., filled] = total
    out[..., filled + 1] += up
    return out


def cosine_coefficients(mass: FloatArray) -> FloatArray:
    """``sum_j m_j cos(pi k t_j)`` of point masses at the nodes, k = 0..G-1, shape (..., G)."""
    weighted = mass.copy()
    # The type-1 transform counts inner nodes twice and end nodes once; here all count once.
    weighted[..., 0] *= 2
    weighted[..., -1] *= 2
    out: FloatArray = np.asarray(dct(weighted, type=1, axis=-1, overwrite_x=True))
    out *= out.dtype.type(0.5)
    return out


def from_cosine(coefficients: FloatArray) -> FloatArray:
    """``c_0 + 2 sum_k c_k cos(pi k t)`` at the nodes, shape (..., G) to (..., G): the density of mirrored kernels.

    A mass at 0 or 1 coincides with its mirror image, so its kernel has twice the height on the
    half that lies inside: no mass is lost at the ends.
    """
    return np.asarray(dct(coefficients, type=1, axis=-1))


def smooth(mass: FloatArray, response: FloatArray) -> FloatArray:
    """Density at the nodes of point masses convolved with a mirrored kernel.

    Parameters
    ----------
    mass : ndarray, shape (..., G)
        Point masses at the nodes.
    response : ndarray, shape (G,) or (..., G)
        The kernel's characteristic function at the frequencies ``pi k``, k = 0..G-1.
    """
    return from_cosine(cosine_coefficients(mass) * response)


def gaussian_response(
    sigma: FloatArray | float, size: int, dtype: np.dtype[Any] | type = np.float64
) -> FloatArray:
    """Characteristic function of the normal distribution at the grid's frequencies, shape (..., size) for sigma (...)."""
    k = np.arange(size, dtype=dtype) * math.pi
    exponent = np.asarray(sigma, dtype=dtype)[..., None] * k
    np.square(exponent, out=exponent)
    exponent *= exponent.dtype.type(-0.5)
    # Below this the response is 0 for all practical purposes, and denormals are slow.
    np.maximum(exponent, exponent.dtype.type(-80), out=exponent)
    return np.asarray(np.exp(exponent, out=exponent))


def triweight_response(width: float, size: int) -> FloatArray:
    """Characteristic function of the triweight kernel of half-width `width`, shape (size,).

    ``K(u) = 35/32 (1 - u^2)^3`` on [-1, 1] has the characteristic function
    ``105 j_3(w) / w^3`` with the spherical Bessel function j_3.
    """
    w = np.arange(size) * (math.pi * width)
    out = np.ones(size)
    big = w > 1e-2
    out[big] = 105 * spherical_jn(3, w[big]) / w[big] ** 3
    small = w[~big] ** 2
    out[~big] = 1 - small / 18 + small**2 / 792
    return out


def integrate(values: FloatArray) -> FloatArray:
    """Trapezoidal rule over the grid on [0, 1], shape (..., G) to (...)."""
    inner = values.sum(axis=-1) - (values[..., 0] + values[..., -1]) / 2
    return np.asarray(inner / (values.shape[-1] - 1))

"""relplot: ``smECE`` (1.0.3), its replacement for an ECE.

Residuals are spread over a grid, smoothed with a reflected Gaussian kernel and evaluated at 200 points or more. The
reflection counts mass on the two end points of the grid once instead of twice, so that scores within a grid step of
0 and 1 get half their weight, and saturated predictions a larger error; `calviz.metrics.smooth` integrates the
same definition exactly. The width is found by ten bisections: the smallest width that is not below its error.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import fftconvolve

from calviz.core.arrays import FloatArray
from calviz.peers._bins import as_float64
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_LEAST, _HALVINGS, _PLACES = 0.001, 10, 200


def smece(sample: Sample) -> float:
    """Smooth ECE at the kernel width that equals the error."""
    score, hit = as_float64(sample.events)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle < _LEAST or middle < _error(score, hit, middle):
            low = middle
        else:
            high = middle
    return _error(score, hit, high)


def _error(score: FloatArray, hit: FloatArray, width: float) -> float:
    size = max(2000, round(20 / width)) // 2 + 1
    places = np.linspace(0, 1, max(round(10 / width), _PLACES))
    kernel = np.exp(-((np.linspace(0, 1, size) - 0.5) ** 2) / (2 * width**2))
    kernel /= np.sqrt(2 * np.pi) * width
    grids = np.stack([_grid(score, mass, size) for mass in (score - hit, np.ones(score.size))])
    residual, density = (
        np.interp(places, np.linspace(0, 1, size), smooth) for smooth in _smooth(grids, kernel)
    )
    return float(np.abs(residual).sum() / (density + 1e-4).sum())


def _grid(score: FloatArray, mass: FloatArray, size: int) -> FloatArray:
    """Split the mass of every row (n,) linearly between its two neighbouring grid points, shape (size,)."""
    at = score * (size - 1)
    left = np.clip(at.astype(np.int64), 0, size - 2)
    share = at - left
    grid = np.bincount(left, weights=(1 - share) * mass, minlength=size)
    return np.asarray(grid + np.bincount(left + 1, weights=share * mass, minlength=size))


def _smooth(grids: FloatArray, kernel: FloatArray) -> FloatArray:
    size = grids.shape[1]
    back = grids[:, ::-1]
    reflected = np.concatenate([back[:, :-1], grids, back[:, 1:]], axis=1)
    smooth = fftconvolve(reflected, kernel[None], "valid", axes=1)
    return np.asarray(smooth[:, size // 2 : size // 2 + size])


CONVENTIONS.register(
    Convention(
        key="relplot",
        library="relplot",
        version="1.0.3",
        call="smECE",
        rule="no bins: gaps smoothed with a kernel whose width is chosen from the data",
        why="It smooths over scores instead of binning them, and gives scores next to 0 and 1 half their "
        "weight, which raises it where many are saturated.",
        reference="https://github.com/apple/ml-calibration",
        value=smece,
    )
)

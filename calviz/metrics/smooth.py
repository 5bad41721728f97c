"""Kernel-smoothed calibration errors: KDE-ECE and smECE."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.metric import metric
from calviz.numerics.sample import Sample
from calviz.numerics.roots import falling_root
from calviz.numerics.smoothing import (
    cosine_coefficients,
    from_cosine,
    gaussian_response,
    grid_size,
    integrate,
    on_grid,
    smooth,
    triweight_response,
)
from calviz.numerics.steps import Steps, steps

#: Nodes of the grid for resampled values; the value itself uses a finer one.
RESAMPLE_NODES = 1_025


@dataclass(frozen=True, eq=False)
class KernelSteps:
    """Steps with the half-width of the kernel that smooths them; resamples keep that width."""

    steps: Steps
    width: float
    nodes: int
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement."""
        return self._with(self.steps.bootstrap(rng, resamples))

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores."""
        return self._with(self.steps.under_calibration(rng, resamples))

    def _with(self, resampled: Steps) -> Self:
        # A kernel narrower than the merged steps would see holes between them.
        nodes = min(self.nodes, 4 * RESAMPLE_NODES)
        return type(self)(resampled, self.width, nodes, self.params)


def kernel_steps(sample: Sample, *, bandwidth: float | None = None) -> KernelSteps:
    """Steps and the paper's rule-of-thumb half-width, ``1.06 sd n^(-1/5)`` (Zhang 2020, appendix C)."""
    view = sample.view(steps)
    n = float(view.n)
    mean = float(view.score_sum.sum() / n)
    sd = math.sqrt(max(float((view.count * (view.score - mean) ** 2).sum() / n), 0.0))
    width = 1.06 * sd * n**-0.2 if bandwidth is None else bandwidth
    return KernelSteps(view, width, grid_size(width), {"bandwidth": width})


def _kde(view: KernelSteps, d: int) -> FloatArray:
    s = view.steps
    n = s.n
    if view.width < 1e-9:  # all scores equal: one bin holds everything
        return np.abs((s.score_sum.sum(axis=-1) - s.hits.sum(axis=-1)) / n) ** d
    grid = on_grid(s, view.nodes)
    response = triweight_response(view.width, view.nodes)
    rows = np.maximum(smooth(grid.rows, response), 0)
    hits = np.maximum(smooth(grid.hits, response), 0)
    frequency = np.divide(hits, rows, out=np.zeros_like(hits), where=rows > 1e-9 * n[..., None])
    gap = np.abs(grid.nodes - np.minimum(frequency, 1)) ** d
    return integrate(gap * rows) / n


_kde_metric = partial(
    metric,
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    reference="Zhang et al. 2020, section 4.1, eq. 7, appendices B and C",
    view=kernel_steps,
)


@_kde_metric(
    key="kde_ece",
    label="KDE-ECE",
    formula=r"\int_0^1 \left| z - \tilde\pi(z) \right| \tilde p(z)\, dz",
)
def kde_ece(view: KernelSteps) -> FloatArray:
    """ECE with a kernel density instead of bins (triweight kernel, mirrored at 0 and 1).

    The authors' code takes the standard deviation of the scores of the hits alone for its
    bandwidth and integrates on [-0.6, 1.6]; here it is that of all scores, on [0, 1].
    """
    return _kde(view, 1)


@_kde_metric(
    key="kde_ece_l2",
    label="KDE-ECE²",
    formula=r"\int_0^1 \left( z - \tilde\pi(z) \right)^2 \tilde p(z)\, dz",
)
def kde_ece_l2(view: KernelSteps) -> FloatArray:
    """KDE-ECE with squared gaps, so that large gaps weigh more."""
    return _kde(view, 2)


@metric(
    key="smece",
    label="smECE",
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\mathrm{smECE}_{\sigma^*},\; \sigma^* = \mathrm{smECE}_{\sigma^*},\quad \mathrm{smECE}_\sigma = \int_0^1 \Big| \tfrac1n \sum_i \tilde K_\sigma(t, s_i)(s_i - h_i) \Big| dt",
    reference="Blasiok & Nakkiran 2023, definition 3",
    view=steps,
)
def smece(view: Steps) -> FloatArray:
    """Smooth ECE: residuals smoothed by a reflected Gaussian whose width equals the error itself; never above the ECE at that width.

    The integral is exact at the ends: the public implementation gives scores within half a grid
    cell of 0 and 1 half their weight, which overstates saturated predictions (by 41 % on a network
    with a quarter of its confidences at 1).
    """
    batched = view.count.ndim > 1
    nodes = RESAMPLE_NODES if batched else 4 * (RESAMPLE_NODES - 1) + 1
    grid = on_grid(view, nodes)
    residual = (grid.scores - grid.hits) / view.n[..., None]
    if batched:  # single precision halves the time and is far below the noise of resampling
        residual = residual.astype(np.float32)
    coefficients = cosine_coefficients(residual)

    def excess(sigma: FloatArray) -> FloatArray:
        response = gaussian_response(sigma, nodes, coefficients.dtype)
        return integrate(np.abs(from_cosine(coefficients * response))) - sigma

    return falling_root(excess, view.n.shape, tolerance=1e-5 if batched else 1e-11)

"""Kernel-smoothed calibration errors: KDE-ECE and smECE."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.metrics.kernels.roots import falling_fixed_points
from calviz.sample import cell_bounds
from calviz.sample.cell_bounds_of_densities import of_density
from calviz.sample.sample import Sample
from calviz.sample.smoothing import (
    NARROWEST,
    cosine_coefficients,
    from_cosine,
    gaussian_response,
    grid_size,
    integrate,
    smooth,
    spread_parts,
    triweight_response,
)
from calviz.sample.step_views import over_steps, steps
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

#: Cells per half-width of the triweight kernel: finer for the value than for its resamples.
VALUE_CELLS, RESAMPLE_CELLS = 32, 16
#: Nodes of the grid of smECE, and the cell of resamples relative to n^(-1/3): that is how the width
#: of the kernel falls with n if the model is calibrated.
SMECE_NODES, SMECE_CELL = 4_097, 0.08


@dataclass(frozen=True, eq=False)
class KernelSteps:
    """Steps with the half-width of the kernel that smooths them; resamples keep that width.

    Shares of hits lie between 0 and 1, unless the hits are `signed`: those of a simulated population with scaled gaps.
    """

    #: Fields in which resamples differ.
    DRAWN: ClassVar = ("steps",)

    steps: Steps
    width: float
    nodes: int
    params: Mapping[str, Any] = field(default_factory=dict)
    signed: bool = False

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Draw rows with replacement."""
        return self.over(self.steps.bootstrap(rng, resamples))

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Redraw hits from the scores."""
        return self.over(self.steps.under_calibration(rng, resamples))

    def as_drawn(self) -> Self:
        """The sample itself as one resample."""
        return self.over(self.steps.as_drawn())

    def parts(self) -> Iterator[Self]:
        """Iterate over blocks of resamples."""
        for part in self.steps.parts():
            yield type(self)(part, self.width, self.nodes, self.params, self.signed)

    def over(self, resampled: Steps, *, signed: bool = False) -> Self:
        """The same kernel over resampled steps."""
        nodes = grid_size(self.width, nodes=RESAMPLE_CELLS, least=256, most=1 << 12)
        return type(self)(resampled, self.width, nodes, self.params, signed)


@over_steps(lambda view, drawn, _, signed: view.over(drawn, signed=signed))
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
    return KernelSteps(view, width, grid_size(width, nodes=VALUE_CELLS), {"bandwidth": width})


@once_per_view
def _densities(view: KernelSteps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the nodes, and the densities of rows and of hits at them, shape (..., nodes)."""
    s = view.steps
    resampled = np.ndim(s.n) > 0
    dtype: type[np.floating[Any]] = np.float32 if resampled else np.float64
    response = triweight_response(view.width, view.nodes).astype(dtype)
    # Redrawing hits leaves the row counts unchanged: one transform serves all resamples.
    fixed = resampled and s.count.strides[0] == 0

    def rows(part: Steps) -> FloatArray:
        count = part.count[:1] if fixed else part.count
        return count.astype(dtype, copy=False)

    def hits(part: Steps) -> FloatArray:
        return part.hits.astype(dtype, copy=False)

    def density(mass: Callable[[Steps], FloatArray], least: float = 0.0) -> FloatArray:
        # A kernel whose ends are cut off by the grid may oscillate slightly below 0.
        return np.asarray(np.maximum(smooth(spread_parts(s, mass, view.nodes), response), least))

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
        some = rows > _FEW * n[..., None]
        gap = np.divide(gap, rows, out=np.zeros_like(gap), where=some)
    return np.asarray(integrate(gap) / n)


#: Nodes whose density of rows is at most this, divided by n, are left out of squared gaps.
_FEW = 1e-7


def _kde_bound(sample: Sample, view: KernelSteps) -> float:
    if view.width < NARROWEST:
        return math.nan
    return of_density(sample, view.width, partial(grid_size, nodes=VALUE_CELLS))


_kde_metric = partial(
    metric,
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    reference="Zhang et al. 2020, section 4.1, eq. 7, appendices B and C",
    view=kernel_steps,
    interval="inverted",
    widening=1.1,
)


@_kde_metric(
    key="kde_ece",
    bound=_kde_bound,
    unit="points",
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
    key="kde_ece_l2",
    bound=lambda sample, view: _kde_bound(sample, view) + 2 * _FEW,
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


@metric(
    key="smece",
    tables=("methods", "models"),
    unit="points",
    label="smECE",
    family="Bin-free",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\mathrm{smECE}_{\sigma^*},\; \sigma^* = \mathrm{smECE}_{\sigma^*},\quad \mathrm{smECE}_\sigma = \int_0^1 \Big| \tfrac1n \sum_i \tilde K_\sigma(t, s_i)(s_i - h_i) \Big| dt",
    reference="Blasiok & Nakkiran 2023, definition 3",
    view=steps,
    interval="inverted",
    widening=1.1,
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

    mass = spread_parts(view, residual, nodes)
    coefficients = np.atleast_2d(cosine_coefficients(mass))

    def smoothed(sigma: FloatArray, rows: IntArray) -> FloatArray:
        response = gaussian_response(sigma, nodes, coefficients.dtype)
        return integrate(np.abs(from_cosine(coefficients[rows] * response)))

    # The error is at least the mean residual; noise adds about n^(-1/2) / 2.
    guess = min(
        float(np.abs(coefficients[:, 0]).mean()) + 0.5 * float(np.mean(view.n)) ** -0.5, 1.0
    )
    root = falling_fixed_points(smoothed, coefficients.shape[0], start=guess, tolerance=tolerance)
    return root.reshape(view.n.shape)

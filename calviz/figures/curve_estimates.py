"""The probability of a hit as a curve: kernel estimates and isotonic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.ndimage import convolve1d
from scipy.optimize import isotonic_regression

from calviz.core.blocks import FloatArray, checkpoint
from calviz.core.curve_fits import isotonic_fits
from calviz.core.errors import check_choice
from calviz.figures.figure import pointwise
from calviz.sample.sample import Sample
from calviz.sample.step_views import (
    NARROWEST,
    grid_size,
    smooth,
    spread_parts,
    steps,
    triweight_response,
)
from calviz.sample.steps import Steps

CurveKind = Literal["kernel", "isotonic"]

#: Number of drawn points of a kernel curve, which is smooth between them.
_POINTS = 400
#: Grid cells along the fractiles per half-width of the kernel.
KERNEL_CELLS = 32
#: The kernel curve has no values where the density of the scores (per unit of score, as a share of the rows) is below this.
LEAST_DENSITY = 1e-7


class Curve(NamedTuple):
    """Estimated probability of a hit against the score, and the number of rows behind each estimate, shape (P,) each.

    For the kernel curve these are the rows within its half-width; for the isotonic curve, those of the same constant piece.
    """

    score: FloatArray
    probability: FloatArray
    rows: FloatArray


def make_curves(sample: Sample, kinds: Sequence[CurveKind]) -> dict[CurveKind, Curve]:
    """Estimate the requested curves.

    Raises
    ------
    OptionError
        If a curve is unknown.
    """
    curves: dict[CurveKind, Curve] = {}
    for kind in kinds:
        check_choice("curves", kind, get_args(CurveKind))
        view = sample.view(steps)
        if kind == "kernel":
            x, y = kernel_curve(view)
            some = np.unique(np.linspace(0, x.size - 1, min(x.size, _POINTS)).astype(np.intp))
            width = _half_width(view)
            curves[kind] = Curve(
                x[some], y[some], _rows_within(view, x[some] - width, x[some] + width)
            )
        else:
            first, last, level = isotonic_curve(view)
            rows = np.repeat(_rows_within(view, first, last), 2)
            curves[kind] = Curve(np.stack([first, last], axis=1).ravel(), np.repeat(level, 2), rows)
    return curves


def rule_of_thumb(sd: float, n: float) -> float:
    """Half-width of the kernel, ``1.06 sd n^(-1/5)`` (Zhang 2020, appendix C)."""
    return 1.06 * sd / math.pow(n, 0.2)


def _half_width(view: Steps) -> float:
    n = float(view.n)
    mean = float(view.score_sum.sum()) / n
    return rule_of_thumb(math.sqrt(float(view.count @ (view.score - mean) ** 2) / n), n)


def _rows_within(view: Steps, low: FloatArray, high: FloatArray) -> FloatArray:
    """Number of rows with scores from `low` to `high`, shape (P,)."""
    upto = np.append(0.0, np.cumsum(view.count))
    return np.asarray(
        upto[np.searchsorted(view.score, high, "right")]
        - upto[np.searchsorted(view.score, low, "left")]
    )


def kernel_curve(view: Steps) -> tuple[FloatArray, FloatArray]:
    """Kernel estimate of the probability of a hit given the score: nodes and values, shape (N,) each.

    This is the estimate that the KDE-ECE compares with the diagonal: a triweight kernel with reflection at 0 and 1. It
    is given between the smallest and the largest score, where there are rows.

    References
    ----------
    Zhang et al. 2020, section 4.1 and appendices B and C.
    """
    n, width = float(view.n), _half_width(view)
    if width < NARROWEST:
        return view.score[:1], np.array([float(view.hits.sum()) / n])
    size = grid_size(width, nodes=32)
    response = triweight_response(width, size)
    rows, hits = (
        np.maximum(smooth(spread_parts(view, mass, size), response), 0)
        for mass in (lambda part: part.count, lambda part: part.hits)
    )
    nodes = np.linspace(0, 1, size)
    inside = (rows > LEAST_DENSITY * n) & (nodes >= view.score[0]) & (nodes <= view.score[-1])
    return nodes[inside], np.minimum(hits[inside] / rows[inside], 1)


def isotonic_curve(view: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Isotonic (PAV) probability of a hit: first score, last score and value of each constant piece, shape (L,) each.

    References
    ----------
    Dimitriadis, Gneiting & Jordan 2021 (the CORP reliability diagram).
    """
    fitted = isotonic_regression(view.hits / view.count, weights=view.count).x
    ends = np.flatnonzero(np.append(fitted[1:] != fitted[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    return view.score[starts], view.score[ends], np.asarray(fitted[ends])


def fractiles(view: Steps) -> FloatArray:
    """Share of the rows with at most the score of each step, shape (G,)."""
    return np.asarray(np.cumsum(view.count) / view.n)


def smoothed_gap(view: Steps, upto: FloatArray) -> FloatArray:
    """Score minus probability of a hit per step, smoothed along the fractiles, shape (..., G).

    The derivative of the cumulative gap, smoothed over neighbouring fractiles with a triweight kernel and reflection at
    both ends. Smoothing the gap instead of the hits avoids bias for a calibrated model, however steeply its scores
    rise. Tied rows form one step and share a value.

    Parameters
    ----------
    view : Steps
        If it holds resamples, all have the same number of rows per step.
    upto : ndarray, shape (G,)
        The fractile at the end of each step.

    References
    ----------
    Gupta et al. 2021, section 4.1, who take the derivative of a spline instead of a kernel.
    """
    width = rule_of_thumb(math.sqrt(1 / 12), float(np.max(view.n)))
    cells = math.ceil(KERNEL_CELLS / width)
    bounds = np.append(0.0, upto)
    edges = np.linspace(0, 1, cells + 1)
    gap = view.cumulative_gap
    gap = np.concatenate([np.zeros((*gap.shape[:-1], 1)), gap], axis=-1)
    density = np.diff(_between(bounds, gap, edges), axis=-1) * cells
    density = convolve1d(density, _triweight(width * cells), axis=-1, mode="reflect")
    integral = np.zeros((*gap.shape[:-1], cells + 1))
    np.cumsum(density, axis=-1, out=integral[..., 1:])
    integral /= cells
    return np.asarray(np.diff(_between(edges, integral, bounds), axis=-1) / np.diff(bounds))


def _triweight(width: float) -> FloatArray:
    """Weights of the triweight kernel with a half-width in cells."""
    reach = math.ceil(width)
    kernel = np.maximum(1 - (np.arange(-reach, reach + 1) / width) ** 2, 0) ** 3
    return np.asarray(kernel / kernel.sum())


def _between(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate linearly along the last axis of `y`: from (..., G) to (..., M), at points (M,)."""
    right = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    left = right - 1
    share = (at - x[left]) / (x[right] - x[left])
    return np.asarray(y[..., left] * (1 - share) + y[..., right] * share)


def isotonic_at(view: Steps, score: FloatArray) -> FloatArray:
    """Evaluate the isotonic curve of one sample at scores (P,), shape (P,): linear between steps, constant beyond them."""
    used = view.count > 0
    count, hits = view.count[used], view.hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return np.interp(score, view.score[used], fitted.x)


def isotonic_band(
    drawn: Steps, score: FloatArray, level: float, view: Steps | None = None
) -> tuple[FloatArray, FloatArray]:
    """Pointwise ends of the curves of all resamples of a view at scores (P,), shape (P,) each; see `widened`."""
    curves = np.empty((drawn.count.shape[0], score.size))
    # Fractional positions of the scores among the steps, valid if all steps have rows.
    place = np.interp(score, drawn.score, np.arange(drawn.size))
    below = place.astype(np.intp)
    above = np.minimum(below + 1, drawn.size - 1)
    for fits in isotonic_fits(drawn.count, drawn.hits):
        checkpoint("fitting isotonic curves again")
        fitted = np.asarray(fits.per_step(fits.level))
        if fits.used.all():
            along = fitted.reshape(fits.used.shape)
            low = along[:, below]
            curves[fits.samples] = low + (along[:, above] - low) * (place - below)
            continue
        ends = np.cumsum(np.count_nonzero(fits.used, axis=1))[:-1]
        for curve, used, own in zip(
            curves[fits.samples], fits.used, np.split(fitted, ends), strict=True
        ):
            curve[:] = np.interp(score, drawn.score[used], own)
    return pointwise(curves, level, view, bounds=(0, 1))

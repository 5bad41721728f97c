"""The adaptive test of calibration: the most significant of the debiased squared errors over bins of several widths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.bin_edges import assign, equal_width_edges
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

#: log2 of the largest number of bins: resampled steps can resolve bins down to a width of 1 / 1,024.
FINEST = 10


class _Scales(NamedTuple):
    """Statistics over 1, 2, 4, ... bins, shape (..., J + 1) each.

    Attributes
    ----------
    error : ndarray
        The debiased squared error.
    standardised : ndarray
        That error divided by its standard deviation under calibration; -inf where no bin has two rows.
    """

    error: FloatArray
    standardised: FloatArray


@once_per_view
def _scales(view: Steps) -> _Scales:
    n = view.n
    # Weights have a mean of 1, so n of the sample is its number of rows; n of a resample is not.
    levels = min(FINEST, int(math.log2(max(float(view.of_sample.n.max()), 1.0))))
    bins = 1 << levels
    edges = equal_width_edges(bins, np.dtype(np.float64))
    # Redrawing hits leaves the row counts unchanged: one row of counts serves all resamples.
    fixed = n.ndim > 0 and view.count.strides[0] == 0
    every, one = n.shape, (1,) if fixed else n.shape
    # Sums per bin: residuals and their squares; rows, variances of the hits, squared variances, squared weights.
    weighted = not isinstance(view.row_weight, float)
    sums = [np.zeros((*shape, bins)) for shape in (every, every, one, one, one, one)]

    def of_block(part: Steps) -> tuple[IntArray, list[FloatArray]]:
        """The filled bins of some steps, and their sums."""
        score = np.clip(part.score, 0, 1)
        bin_of = assign(score, edges)
        starts = np.flatnonzero(np.append(True, bin_of[1:] != bin_of[:-1]))
        square = np.maximum(part.square, score**2)
        variance = np.maximum(score - square, 0)
        count = part.count[:1] if fixed else part.count
        each, squares = part.row_weight, part.hits * (1 - 2 * score) + count * square
        own, fourth = count * each, count * each**3
        if part.powers is None:
            squares = squares * each
        else:
            of_hits, fourth = part.powers()
            squares = of_hits * (1 - 2 * score) + own * square
        columns = (
            part.hits - count * score,
            squares,
            count,
            own * variance,
            fourth * variance**2,
            own,
        )
        return bin_of[starts], [np.add.reduceat(column, starts, axis=-1) for column in columns]

    for filled, of_bins in view.of_blocks(of_block):
        for total, values in zip(sums, of_bins, strict=True):
            total[..., filled] += values
    error, standardised = [], []
    for level in range(levels, -1, -1):
        residual, squares, rows, variance, its_square, own = sums
        # A single row forms no pair: nothing remains without its square.
        several = rows**2 > own * (1 + 1e-9) if weighted else rows > 1.5
        share = np.divide(1.0, rows, out=np.zeros_like(rows), where=several)
        total_error = ((residual**2 - squares) * share).sum(axis=-1)
        # Variance of the sum over all pairs of independent residuals.
        pairs = 2 * np.maximum(variance**2 - its_square, 0)
        spread = np.broadcast_to((pairs * share**2).sum(axis=-1), every)
        error.append(total_error / n)
        out = np.full(every, -math.inf)
        np.divide(total_error, np.sqrt(spread), out=out, where=spread > 1e-15)
        standardised.append(out)
        if level:
            sums = [v[..., 0::2] + v[..., 1::2] for v in sums]
    return _Scales(np.stack(error[::-1], axis=-1), np.stack(standardised[::-1], axis=-1))


def _at(view: Steps) -> Mapping[str, float]:
    scales = _scales(view)
    best = int(scales.standardised.argmax())
    if scales.standardised[best] == -math.inf:
        return {}
    return {"bins": float(1 << best), "squared_error": float(scales.error[best])}


@metric(
    key="tcal",
    paired=False,
    label="T-Cal statistic",
    family="Tests and summaries",
    direction="lower",
    bounds=(-math.inf, math.inf),
    formula=r"\max_{j} \frac{T_{2^j}}{\mathrm{sd}_0(T_{2^j})},\quad T_m = \frac1n \sum_{b} \frac{1}{n_b} \sum_{i \neq k \text{ in } b} (h_i - s_i)(h_k - s_k)",
    reference="Lee et al. 2023 (adaptive T-Cal)",
    view=steps,
    details=_at,
    undefined="undefined: no two rows whose scores are neither 0 nor 1 share a bin.",
)
def tcal(view: Steps) -> FloatArray:
    """Adaptive test of calibration: the largest of the debiased squared errors over 1, 2, 4, ... 1,024 bins, each divided by its standard deviation under calibration.

    Steps of shape (..., G) give values of shape (...).

    It detects errors of any width, which need not be known in advance. Its p-value is that of the noise floor: labels are redrawn, and the
    largest is taken again. The details ``bins`` and ``squared_error`` are the number of bins at which it is largest, and the error there,
    debiased of noise. There are no more bins than rows; the paper starts with two bins, this metric with one. With weights w, a
    pair of rows counts as the product of its weights, n_b and n are sums of weights, and the variance has w^2 in place of 1.
    """
    largest = _scales(view).standardised.max(axis=-1)
    return np.where(np.isfinite(largest), largest, math.nan)

"""Binned errors that correct for, or adapt to, the bias of binning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.metric import metric
from calviz.numerics.binning import BinSums
from calviz.numerics.sample import Sample, bin_sums
from calviz.numerics.steps import Steps, steps


def _root(view: BinSums) -> Mapping[str, float]:
    return {"root": math.sqrt(max(float(ece_debiased(view)), 0.0))}


@metric(
    key="ece_debiased",
    label="ECE², debiased",
    family="Binned",
    direction="lower",
    bounds=(-1.0, 1.0),
    formula=r"\sum_m \frac{|B_m|}{n} \left[ (\mathrm{conf}_m - \mathrm{acc}_m)^2 - \frac{\mathrm{acc}_m (1 - \mathrm{acc}_m)}{|B_m| - 1} \right]",
    reference="Kumar et al. 2019, section 5",
    view=partial(bin_sums, scheme="equal-mass"),
    details=_root,
)
def ece_debiased(view: BinSums) -> FloatArray:
    """Squared ECE over equal-mass bins without the part that the noise of the bins' hit rates adds; around 0, also below, for a calibrated model.

    Bins with fewer than two rows contribute nothing. uncertainty-calibration gives the root, clipped
    at 0: that is shown beside the value.
    """
    count, accuracy = view.count, np.nan_to_num(view.accuracy)
    noise = np.divide(
        accuracy * (1 - accuracy), count - 1, out=np.zeros_like(accuracy), where=count > 1
    )
    square = np.where(count > 1, view.gap**2 - noise, 0.0)
    return np.asarray((view.weight * square).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class MonotoneBins:
    """Steps cut into the largest number of equal-mass bins whose hit rates do not fall."""

    steps: Steps
    bins: int
    value: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement, the sweep repeated for each."""
        return self._again(self.steps.bootstrap(rng, resamples))

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores, the sweep repeated for each."""
        return self._again(self.steps.under_calibration(rng, resamples))

    def _again(self, view: Steps) -> Self:
        _, values = sweep_steps(self.steps.merged(), view.count, view.hits)
        return type(self)(view, 0, values, self.params)


def sweep_steps(base: Steps, count: FloatArray, hits: FloatArray) -> tuple[IntArray, FloatArray]:
    """Number of bins and ECE of the monotone sweep, per resample.

    The cuts are those of `base`: redrawn hits leave them where they are, and resampled rows are
    binned as the sample was, as everywhere in the binned family.

    Parameters
    ----------
    base : Steps
        The sample, whose scores and counts place the cuts.
    count, hits : ndarray, shape (..., G)
        Rows and hits per step of `base`.

    Returns
    -------
    bins : ndarray of int, shape (...)
    ece : ndarray of float64, shape (...)
    """
    shape = count.shape[:-1]
    rows = _upto(np.atleast_2d(count))
    right = _upto(np.atleast_2d(hits))
    mass = _upto(np.atleast_2d(count * base.score))
    n = rows[:, -1]
    upto = np.cumsum(base.count)
    best = np.abs(mass[:, -1] - right[:, -1]) / n
    found = np.ones(n.size, dtype=np.intp)
    active = np.arange(n.size)
    previous = 1
    for bins in range(2, int(upto[-1]) + 1):
        # A cut inside a group of ties moves to its end; coinciding cuts are one.
        ranks = np.round(np.arange(1, bins) * upto[-1] / bins)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(upto, ranks) + 1, [upto.size]]))
        if cuts.size - 1 == previous:
            if previous == upto.size:
                break
            continue
        previous = cuts.size - 1
        at = np.ix_(active, cuts)
        size, hit = np.diff(rows[at], axis=1), np.diff(right[at], axis=1)
        rate = np.divide(hit, size, out=np.zeros_like(hit), where=size > 0)
        # Bins that a resample left empty keep the rate before them: they cannot break the order.
        rate = np.where(size > 0, rate, np.maximum.accumulate(rate, axis=1))
        rising = ~(np.diff(rate, axis=1) < 0).any(axis=1)
        active = active[rising]
        if not active.size:
            break
        found[active] = previous
        gap = np.abs(np.diff(mass[at], axis=1) - hit).sum(axis=1)
        best[active] = gap[rising] / n[active]
    return found.reshape(shape), best.reshape(shape)


def _upto(values: FloatArray) -> FloatArray:
    out = np.zeros((values.shape[0], values.shape[1] + 1))
    np.cumsum(values, axis=1, out=out[:, 1:])
    return out


def monotone_bins(sample: Sample) -> MonotoneBins:
    """Run the sweep on a sample."""
    view = sample.view(steps)
    found, value = sweep_steps(view, view.count, view.hits)
    bins = int(found)
    return MonotoneBins(view, bins, value, {"scheme": "equal-mass", "bins": bins})


@metric(
    key="ece_sweep",
    label="ECE (sweep)",
    family="Binned",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\mathrm{ECE}_{b^*},\; b^* = \max\{b: \mathrm{acc}_1 \le \dots \le \mathrm{acc}_{b'}\ \forall b' \le b\}",
    reference="Roelofs et al. 2022, algorithm 1",
    view=monotone_bins,
)
def ece_sweep(view: MonotoneBins) -> FloatArray:
    """ECE over the largest number of equal-mass bins for which the share of hits never falls from bin to bin."""
    return view.value

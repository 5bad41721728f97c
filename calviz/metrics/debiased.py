"""Binned errors that correct for, or adapt to, the bias of binning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.numerics.edges import MAX_BINS
from calviz.sample import cell_cuts
from calviz.sample.binning import BinSums
from calviz.sample.kept_results import once_per_view
from calviz.sample.sample import Sample, bin_sums
from calviz.sample.steps import MAX_STEPS, Steps, over_steps, steps
from calviz.specs.metric import metric


def _root(view: BinSums) -> Mapping[str, float]:
    return {"root": math.sqrt(max(float(ece_debiased(view)), 0.0))}


def _debiased_bound(sample: Sample, view: BinSums) -> float:
    return cell_cuts.of_debiased(sample, view, ece_debiased(view))


#: Sweeps that reach this many bins are looked at closely.
FINE_AFTER = 33


@metric(
    key="ece_debiased",
    label="ECE², debiased",
    family="Binned",
    direction="lower",
    bounds=(-1.0, 1.0),
    formula=r"\sum_m \frac{|B_m|}{n} \left[ (\mathrm{conf}_m - \mathrm{acc}_m)^2 - \frac{\mathrm{acc}_m (1 - \mathrm{acc}_m)}{|B_m| - 1} \right]",
    reference="Kumar et al. 2019, section 5",
    view=partial(bin_sums, scheme="equal-mass"),
    interval="inverted-unbiased",
    details=_root,
    bound=_debiased_bound,
)
def ece_debiased(view: BinSums) -> FloatArray:
    """Squared ECE over equal-mass bins without the part that the noise of the bins' hit rates adds; around 0, also below, for a calibrated model.

    Sums of shape (..., M) give values of shape (...).

    Bins with fewer than two rows (with weights, fewer than two that they stand for) contribute nothing. uncertainty-calibration gives the root, clipped
    at 0: that is shown beside the value.
    """
    known, accuracy = view.count / view.row_weight, np.nan_to_num(view.accuracy)
    noise = np.divide(
        accuracy * (1 - accuracy), known - 1, out=np.zeros_like(accuracy), where=known > 1
    )
    square = np.where(known > 1, view.gap**2 - noise, 0.0)
    return np.asarray((view.weight * square).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class MonotoneBins:
    """Steps to be cut into the largest number of equal-mass bins whose hit rates do not fall.

    Attributes
    ----------
    steps : Steps
        A leading axis of resamples is allowed.
    base : Steps
        The sample that they are of, over the same steps; its counts place the cuts.
    params : mapping
    """

    #: What resamples differ in.
    DRAWN: ClassVar = ("steps",)

    steps: Steps
    base: Steps
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement, the sweep repeated for each."""
        return type(self)(self.steps.bootstrap(rng, resamples), self.base.merged(), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores, the sweep repeated for each."""
        drawn = self.steps.under_calibration(rng, resamples)
        return type(self)(drawn, self.base.merged(), self.params)

    def as_drawn(self) -> Self:
        """The sample itself as one resample."""
        return type(self)(self.steps.as_drawn(), self.base.merged(), self.params)

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks."""
        for part in self.steps.parts():
            yield type(self)(part, self.base, self.params)


def sweep_steps(
    base: Steps, count: FloatArray, hits: FloatArray, most: int = MAX_BINS, *, fine: bool = True
) -> tuple[IntArray, FloatArray]:
    """Number of bins and ECE of the monotone sweep, per resample.

    Up to `most` bins are tried (the algorithm itself goes on to n). The cuts are those of
    `base`: redrawn hits leave them where they are, and resampled rows are binned as the sample
    was, as everywhere in the binned family.

    Parameters
    ----------
    base : Steps
        The sample, whose scores and counts place the cuts.
    count, hits : ndarray, shape (..., G)
        Rows and hits per step of `base`.
    most : int
        The largest number of bins that is tried.
    fine : bool
        Whether sweeps that go on end at the steps themselves where those rise.

    Returns
    -------
    bins : ndarray of int, shape (...)
    ece : ndarray of float64, shape (...)
    """
    shape = count.shape[:-1]
    count, hits = np.atleast_2d(count), np.atleast_2d(hits)
    # Redrawn hits leave the rows as they are: one column of them does for all resamples.
    rows = _upto(count[:1] if count.strides[0] == 0 else count)
    right = _upto(hits)
    upto = np.cumsum(base.count)
    every: IntArray = np.arange(upto.size + 1)
    cuts: IntArray = np.array([0, upto.size])
    chosen = [cuts]
    last = np.zeros(right.shape[1], dtype=np.intp)
    active = np.arange(last.size)
    going = rows, right
    for bins in range(2, min(int(upto[-1]), most) + 1):
        if bins == FINE_AFTER and fine:
            # Rates that rise from step to step rise however steps are put together: those sweeps
            # run to their end.
            rising = _rises(*going, every)
            last[active[rising]] = len(chosen)
            chosen.append(every)
            active, going = active[~rising], _columns(*going, ~rising)
        if not active.size:
            break
        before, cuts = cuts, _cuts_of(base, upto, bins)
        if np.array_equal(before, cuts):
            continue
        rising = _rises(*going, cuts)
        if not rising.all():
            active, going = active[rising], _columns(*going, rising)
        last[active] = len(chosen)
        chosen.append(cuts)
    gap = _upto(count * base.score) - right
    error = np.empty(last.size)
    for which in np.unique(last):
        resamples = np.flatnonzero(last == which)
        part = np.diff(gap[chosen[which]][:, resamples], axis=0)
        error[resamples] = np.abs(part).sum(axis=0)
    error /= rows[-1]
    bins_of = np.array([cuts.size - 1 for cuts in chosen])[last]
    return bins_of.reshape(shape), error.reshape(shape)


def _cuts_of(base: Steps, upto: FloatArray, bins: int) -> IntArray:
    """`_cuts`, kept with the steps that place them: blocks of resamples ask for the same ones."""
    kept: dict[int, IntArray] = base.__dict__.setdefault("_cuts", {})
    if bins not in kept:
        kept[bins] = _cuts(upto, bins)
    return kept[bins]


def _columns(rows: FloatArray, right: FloatArray, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Rows and hits of some resamples only."""
    return rows if rows.shape[1] == 1 else rows[:, kept], right[:, kept]


def _cuts(upto: FloatArray, bins: int) -> IntArray:
    """Where equal-mass bins end, in steps: as `equal_mass_edges` places them."""
    ends = np.searchsorted(upto, _ends_of_bins(int(upto[-1]), bins)) + 1
    return np.unique(np.concatenate([[0], ends, [upto.size]]))


def _ends_of_bins(n: int, bins: int) -> IntArray:
    """Rows up to the end of each bin but the last, were there no ties."""
    size, larger = divmod(n, bins)
    m = np.arange(1, bins)
    return m * size + np.minimum(m, larger)


def _rises(rows: FloatArray, right: FloatArray, cuts: IntArray) -> BoolArray:
    """Whether the hit rates of the bins never fall, for each resample."""
    size, hit = np.diff(rows[cuts], axis=0), np.diff(right[cuts], axis=0)
    if size.min(initial=1.0) > 0:
        rate = np.divide(hit, size, out=hit)
    else:
        rate = np.divide(hit, size, out=np.zeros_like(hit), where=size > 0)
        # Bins that a resample left empty keep the rate before them: they cannot break the order.
        rate = np.where(size > 0, rate, np.maximum.accumulate(rate, axis=0))
    return np.asarray((rate[1:] >= rate[:-1]).all(axis=0))


def _upto(values: FloatArray) -> FloatArray:
    """Sums up to each step, with a column for each resample, shape (G + 1, R)."""
    out = np.zeros((values.shape[1] + 1, values.shape[0]))
    np.cumsum(values.T, axis=0, out=out[1:])
    return out


@once_per_view
def _sweep(view: MonotoneBins) -> tuple[IntArray, FloatArray]:
    if view.steps.size > MAX_STEPS:
        return _sweep_of_many(view.steps)
    return sweep_steps(view.base, view.steps.count, view.steps.hits)


def _sweep_of_many(view: Steps) -> tuple[IntArray, FloatArray]:
    """The same for the many steps of one sample: only what lies between the cuts needs room."""
    for most in (FINE_AFTER - 1, 8 * FINE_AFTER, MAX_BINS):
        between = _between_cuts(view, most)
        bins, error = sweep_steps(between, between.count, between.hits, most, fine=False)
        last = _cuts(np.cumsum(between.count), most).size - 1
        if bins != last:
            break
        if most < FINE_AFTER and _rising(view):
            gaps = (np.abs(part.score_sum - part.hits).sum() for part in view.blocks())
            return np.asarray(view.size), np.asarray(sum(gaps) / view.n)
    return bins, error


def _rising(view: Steps) -> bool:
    """Whether the hit rates never fall from step to step."""
    before = 0.0
    for part in view.blocks():
        rate = part.hits / part.count
        if rate[0] < before or (np.diff(rate) < 0).any():
            return False
        before = rate[-1]
    return True


def _between_cuts(view: Steps, most: int) -> Steps:
    """The steps put together between all the cuts of 2 to `most` bins; scores are means."""
    ends = np.cumsum([float(part.n) for part in view.blocks()])
    n = int(ends[-1])
    targets = np.unique(np.concatenate([_ends_of_bins(n, bins) for bins in range(2, most + 1)]))
    sums: list[FloatArray] = []
    begin = 0.0
    for part, end in zip(view.blocks(), ends, strict=True):
        upto = begin + np.cumsum(part.count)
        inside = targets[(targets > begin) & (targets <= end)]
        # A cut is at the end of the step that holds its last row.
        starts = np.searchsorted(upto, inside) + 1
        starts = np.unique(np.append(0, starts[starts < part.size]))
        mass = part.score_sum, part.count, part.hits
        sums.append(np.stack([np.add.reduceat(m, starts) for m in mass]))
        begin = float(end)
    score, count, hits = np.concatenate(sums, axis=1)
    return Steps(score / count, count, hits)


@over_steps(lambda view, drawn, *_: MonotoneBins(drawn, view.base.merged(), view.params))
def monotone_bins(sample: Sample) -> MonotoneBins:
    """The sample's steps, to be swept."""
    view = sample.view(steps)
    return MonotoneBins(view, view, {"scheme": "equal-mass"})


def _sweep_bound(sample: Sample, view: MonotoneBins) -> float:
    return cell_cuts.of_sweep(sample, ece_sweep(view), FINE_AFTER)


@metric(
    key="ece_sweep",
    paired=False,
    unit="points",
    label="ECE (sweep)",
    family="Binned",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\mathrm{ECE}_{b^*},\; b^* = \max\{b: \mathrm{acc}_1 \le \dots \le \mathrm{acc}_{b'}\ \forall b' \le b\}",
    reference="Roelofs et al. 2022, algorithm 1",
    view=monotone_bins,
    interval="inverted",
    details=lambda view: {"bins": float(_sweep(view)[0])},
    bound=_sweep_bound,
)
def ece_sweep(view: MonotoneBins) -> FloatArray:
    """ECE over the largest number of equal-mass bins for which the share of hits never falls from bin to bin.

    Steps of shape (..., G) give values of shape (...).
    """
    return _sweep(view)[1]

"""Gaps between mean score and share of hits, bin by bin: ECE, MCE, debiased ECE, ECE sweep; and their signed mean, MCS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, quotient
from calviz.core.entry_specs import error_metric, metric
from calviz.core.events import MAX_BINS, ends_of_bins
from calviz.sample import cell_bounds, draws
from calviz.sample.binning import BinSums, bin_intervals
from calviz.sample.sample import Sample, bin_sums, event_sums
from calviz.sample.step_views import StepsWithParams, over_steps, steps
from calviz.sample.steps import MAX_STEPS, Steps

# Bins are right-closed, ((m - 1)/M, m/M], and the first one also holds 0 (Guo 2017, section 2). Other libraries
# differ only for scores that lie on an edge: uncertainty-calibration agrees, and so do scikit-learn's
# ``calibration_curve`` and MAPIE except at edges that ``np.linspace`` misses by a rounding error (MAPIE counts edges, so
# its 16 make 15 bins, and puts exact zeros in a bin of their own); netcal and pycalib close bins on the left;
# torchmetrics adds a bin for scores of exactly 1, which visibly changes ECE² and RMSCE of saturated models.
# `calviz.metrics.other_libraries` implements the defaults of each, checked against the libraries.


_binned = partial(error_metric, family="Binned", interval="inverted")
_equal_width = partial(_binned, view=partial(bin_sums, scheme="equal-width"))
_ECE = r"\sum_m \frac{|B_m|}{n} \left| \mathrm{conf}_m - \mathrm{acc}_m \right|"
_ece = partial(_binned, formula=_ECE, at_least="mcs", bound=cell_bounds.of_error)
_ECE_L2 = r"\sum_m \frac{|B_m|}{n} \left( \mathrm{conf}_m - \mathrm{acc}_m \right)^2"


@_ece(
    tables=("fits", "methods", "rivals", "drawn"),
    criterion=4,
    label="ECE",
    reference="Guo et al. 2017, eq. 3; Naeini et al. 2015",
    view=partial(bin_sums, scheme="equal-width"),
)
def ece(sums: BinSums) -> FloatArray:
    """Expected calibration error: the absolute gap between mean score and share of hits, averaged over bins weighted by their rows.

    Sums of shape (..., M) give values of shape (...).

    The bins have equal width by default. The ECE of a calibrated model is above 0 too: compare it with its noise floor.
    """
    return sums.mean_gap


@_equal_width(
    unit="plain",
    label="ECE²",
    formula=_ECE_L2,
    reference="Zhang et al. 2020, eq. 3 with d = 2; Kumar et al. 2019",
)
def ece_l2(sums: BinSums) -> FloatArray:
    """Squared expected calibration error: like ECE, with squared gaps, so that large gaps weigh more.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.asarray((sums.weight * sums.gap**2).sum(axis=-1))


@_equal_width(
    label="RMSCE",
    formula=rf"\sqrt{{{_ECE_L2}}}",
    reference="Nguyen and O'Connor 2015; Kumar et al. 2019",
)
def rmsce(sums: BinSums) -> FloatArray:
    """Root mean squared calibration error: the square root of ECE², in units of probability; never below the ECE.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.sqrt(ece_l2(sums))


def _largest(sums: BinSums) -> Mapping[str, float]:
    """Return the bin with the largest gap and the exact interval of its share of hits (95 % simultaneously for all bins)."""
    index, score, low, high = bin_intervals(sums)
    at = int(np.argmax(np.abs(sums.gap[index])))
    m = int(index[at])
    return {
        "bin_low": float(sums.edges[m]),
        "bin_high": float(sums.edges[m + 1]),
        "bin_rows": float(sums.whole_rows[m]),
        "mean_score": float(score[at]),
        "hits_low": float(low[at]),
        "hits_high": float(high[at]),
    }


@_equal_width(
    one_bin=True,
    label="MCE",
    details=_largest,
    interval="half-inverted",
    formula=r"\max_m \left| \mathrm{conf}_m - \mathrm{acc}_m \right|",
    reference="Guo et al. 2017, eq. 5; Naeini et al. 2015",
)
def mce(sums: BinSums) -> FloatArray:
    """Maximum calibration error: the largest gap of any bin that has rows; a bin with few rows can dominate it.

    Sums of shape (..., M) give values of shape (...).

    The details name that bin, with the exact interval of its share of hits at 95 % simultaneously for all bins: the bin is
    miscalibrated if its mean score lies outside.
    """
    return np.asarray(np.abs(sums.gap).max(axis=-1))


@_ece(
    label="ECE (equal mass)",
    reference="Nixon et al. 2019; Kumar et al. 2019",
    view=partial(bin_sums, scheme="equal-mass"),
)
def ece_equal_mass(sums: BinSums) -> FloatArray:
    """ECE over bins that hold (nearly) equally many rows each; tied scores stay in one bin.

    Sums of shape (..., M) give values of shape (...).

    uncertainty-calibration (``get_ece_em``) agrees, with and without ties. Mix-n-Match, robustness_metrics and
    torch-uncertainty split by rank and so separate ties; netcal rejects tied quantiles.
    Intervals and noise floors keep the edges found on the data.
    """
    return ece(sums)


@_ece(
    label="ECE (Sturges)",
    reference="Zhang et al. 2020, section 5.1; Sturges 1926",
    view=partial(bin_sums, bins=1, scheme="sturges"),
)
def ece_sturges(sums: BinSums) -> FloatArray:
    """ECE over equal-width bins, ceil(log2 n) + 1 of them for n rows (Sturges' rule).

    Sums of shape (..., M) give values of shape (...).
    """
    return ece(sums)


# ---- Bias of binning


def _of_debiased(sample: Sample, view: BinSums) -> float:
    return cell_bounds.of_debiased(sample, view, ece_debiased(view))


def _of_sweep(sample: Sample, view: MonotoneBins) -> float:
    return cell_bounds.of_sweep(sample, ece_sweep(view), FINE_AFTER)


def _root(view: BinSums) -> Mapping[str, float]:
    return {"root": math.sqrt(max(float(ece_debiased(view)), 0.0))}


#: Sweeps that reach this many bins are tested for hit rates that rise from step to step.
FINE_AFTER = 33


@_binned(
    unit="plain",
    label="ECE², debiased",
    view=partial(bin_sums, scheme="equal-mass"),
    bounds=(-1.0, 1.0),
    formula=r"\sum_m \frac{|B_m|}{n} \left[ (\mathrm{conf}_m - \mathrm{acc}_m)^2 - \frac{\mathrm{acc}_m (1 - \mathrm{acc}_m)}{|B_m| - 1} \right]",
    reference="Kumar et al. 2019, section 5",
    interval="inverted-unbiased",
    details=_root,
    bound=_of_debiased,
)
def ece_debiased(view: BinSums) -> FloatArray:
    """Squared ECE over equal-mass bins, less the bias from noise in the bins' hit rates; around 0, possibly negative, for a calibrated model.

    Sums of shape (..., M) give values of shape (...).

    Bins with fewer than two rows (with weights, with an effective sample size of at most 1) contribute nothing. uncertainty-calibration returns the
    square root, clipped at 0, which is shown beside the value.
    """
    effective_rows, accuracy = view.count / view.row_weight, np.nan_to_num(view.accuracy)
    noise = quotient(accuracy * (1 - accuracy), effective_rows - 1, otherwise=0.0)
    square = np.where(effective_rows > 1, view.gap**2 - noise, 0.0)
    return np.asarray((view.weight * square).sum(axis=-1))


@dataclass(frozen=True, eq=False, kw_only=True)
class MonotoneBins(StepsWithParams):
    """Steps to be merged into the largest number of equal-mass bins whose hit rates do not fall; each resample repeats the sweep.

    Attributes
    ----------
    base : Steps
        The steps of the sample itself, whose counts determine the cuts.
    """

    base: Steps

    def over(self, resampled: Steps, **_: bool) -> Self:
        """See `StepsWithParams`."""
        return replace(self, steps=resampled, base=self.base.merged())


def sweep_steps(
    base: Steps, count: FloatArray, hits: FloatArray, most: int = MAX_BINS, *, fine: bool = True
) -> tuple[IntArray, FloatArray]:
    """Number of bins and ECE of the monotone sweep, per resample.

    Up to `most` bins are tried (the published algorithm goes on to n). The cuts are those of
    `base`: redrawn hits do not move them, and resampled rows are binned as in the sample, as
    everywhere in the binned family.

    Parameters
    ----------
    base : Steps
        The sample, whose scores and counts place the cuts.
    count, hits : ndarray, shape (..., G)
        Rows and hits per step of `base`.
    most : int
        Largest number of bins to try.
    fine : bool
        Whether a sweep that reaches `FINE_AFTER` bins ends with one bin per step if hit rates rise from step to step.

    Returns
    -------
    bins : ndarray of int, shape (...)
    ece : ndarray of float64, shape (...)
    """
    shape = count.shape[:-1]
    count, hits = np.atleast_2d(count), np.atleast_2d(hits)
    # Redrawing hits leaves the row counts unchanged: one column of counts serves all resamples.
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
            # Hit rates that rise from step to step also rise when steps are merged: such sweeps
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
        error[resamples] = np.abs(np.diff(gap[chosen[which]][:, resamples], axis=0)).sum(axis=0)
    error /= rows[-1]
    return np.array([cuts.size - 1 for cuts in chosen])[last].reshape(shape), error.reshape(shape)


def _cuts_of(base: Steps, upto: FloatArray, bins: int) -> IntArray:
    """Return `_cuts`, cached on the steps that determine them: all blocks of resamples need the same ones."""
    kept: dict[int, IntArray] = draws.latest(base, "cuts by bins", None, dict)
    if bins not in kept:
        kept[bins] = _cuts(upto, bins)
    return kept[bins]


def _columns(rows: FloatArray, right: FloatArray, kept: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Select the resamples (columns) of rows and hits that are kept."""
    return rows if rows.shape[1] == 1 else rows[:, kept], right[:, kept]


def _cuts(upto: FloatArray, bins: int) -> IntArray:
    """Boundaries of equal-mass bins as numbers of steps, placed as by `equal_mass_edges`."""
    ends = np.searchsorted(upto, ends_of_bins(int(upto[-1]), bins)) + 1
    return np.unique(np.concatenate([[0], ends, [upto.size]]))


def _rises(rows: FloatArray, right: FloatArray, cuts: IntArray) -> BoolArray:
    """Whether the hit rates of the bins never fall, for each resample."""
    size, hit = np.diff(rows[cuts], axis=0), np.diff(right[cuts], axis=0)
    if size.min(initial=1.0) > 0:
        rate = np.divide(hit, size, out=hit)
    else:
        rate = np.divide(hit, size, out=np.zeros_like(hit), where=size > 0)
        # Bins left empty by a resample take the largest rate before them: they cannot break the order.
        rate = np.where(size > 0, rate, np.maximum.accumulate(rate, axis=0))
    return np.asarray((rate[1:] >= rate[:-1]).all(axis=0))


def _upto(values: FloatArray) -> FloatArray:
    """Cumulative sums over the steps, starting at 0, one column per resample; shape (G + 1, R)."""
    out = np.zeros((values.shape[1] + 1, values.shape[0]))
    np.cumsum(values.T, axis=0, out=out[1:])
    return out


@draws.once_per_view
def _sweep(view: MonotoneBins) -> tuple[IntArray, FloatArray]:
    if view.steps.size > MAX_STEPS:
        return _sweep_of_many(view.steps)
    return sweep_steps(view.base, view.steps.count, view.steps.hits)


def _sweep_of_many(view: Steps) -> tuple[IntArray, FloatArray]:
    """The same for one sample of many steps; only the steps merged between cuts take memory."""
    for most in (FINE_AFTER - 1, 8 * FINE_AFTER, MAX_BINS):
        between = _between_cuts(view, most)
        bins, error = sweep_steps(between, between.count, between.hits, most, fine=False)
        if bins != _cuts(np.cumsum(between.count), most).size - 1:
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
    """Merge the steps between all cuts of 2 to `most` bins; scores are means."""
    ends = np.cumsum([float(part.n) for part in view.blocks()])
    n = int(ends[-1])
    targets = np.unique(np.concatenate([ends_of_bins(n, bins) for bins in range(2, most + 1)]))
    sums: list[FloatArray] = []
    begin = 0.0
    for part, end in zip(view.blocks(), ends, strict=True):
        upto = begin + np.cumsum(part.count)
        # A cut is at the end of the step that holds its last row.
        starts = np.searchsorted(upto, targets[(targets > begin) & (targets <= end)]) + 1
        starts = np.unique(np.append(0, starts[starts < part.size]))
        mass = part.score_sum, part.count, part.hits
        sums.append(np.stack([np.add.reduceat(m, starts) for m in mass]))
        begin = float(end)
    score, count, hits = np.concatenate(sums, axis=1)
    return Steps(score / count, count, hits)


@over_steps(steps)
def monotone_bins(sample: Sample) -> MonotoneBins:
    """Steps of the sample for the monotone sweep."""
    view = sample.view(steps)
    return MonotoneBins(view, {"scheme": "equal-mass"}, base=view)


@_binned(
    paired=False,
    follows_rows=True,
    label="ECE (sweep)",
    formula=r"\mathrm{ECE}_{b^*},\; b^* = \max\{b: \mathrm{acc}_1 \le \dots \le \mathrm{acc}_{b'}\ \forall b' \le b\}",
    reference="Roelofs et al. 2022, algorithm 1",
    view=monotone_bins,
    details=lambda view: {"bins": float(_sweep(view)[0])},
    bound=_of_sweep,
)
def ece_sweep(view: MonotoneBins) -> FloatArray:
    """ECE over the largest number of equal-mass bins for which the share of hits never falls from bin to bin.

    Steps of shape (..., G) give values of shape (...).
    """
    return _sweep(view)[1]


def _of_few(sums: BinSums, level: float) -> tuple[float, float]:
    """The interval of the mean gap by the exact one of the share of hits, of one bin."""
    (low,), (high,) = (sums.score_sum / sums.count - end for end in sums.share_interval(level))
    return float(high), float(low)


@metric(
    tables=("rivals",),
    unit="points",
    label="MCS",
    family="Over- and underconfidence",
    direction="zero",
    bounds=(-1.0, 1.0),
    formula=(
        r"\sum_m \frac{|B_m|}{n} (\mathrm{conf}_m - \mathrm{acc}_m)"
        r" = \overline{\mathrm{conf}} - \mathrm{acc}"
    ),
    reference="Ao et al. 2023, eq. 5",
    view=event_sums,
    tail="two-sided",
    closed_interval=_of_few,
    closed_where=lambda sums: sums.is_of_few,
    closed_weights=True,
)
def mcs(sums: BinSums) -> FloatArray:
    """Miscalibration score (signed ECE): it equals mean score minus share of hits, whatever the bins; above 0 overconfident, below 0 underconfident.

    Sums of shape (..., M) give values of shape (...).

    The weights of the bins cancel the divisions by their rows, so that only the two means remain: over- and
    underconfident bins offset each other. Its absolute value is at most the ECE.
    """
    return np.asarray((sums.score_sum.sum(axis=-1) - sums.hit_sum.sum(axis=-1)) / sums.n)

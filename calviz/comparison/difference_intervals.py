"""Metrics as functions of row weights, with what needs them: intervals of a difference by test inversion, and tests of parts of the rows.

An error such as the ECE is the norm of a vector of gaps. Noise makes it larger, by an amount that depends on
the gaps themselves, and resampling adds the same noise again: percentile intervals of resampled differences do not
cover the true difference. Here the observed gaps are multiplied by a scale, and the deviations of the resamples
are added once. This gives a *simulated population*: its true error is known, and so are the errors that would be observed in it.
Two sets of probabilities on the same rows share the resamples, so that common deviations cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array
from scipy.special import ndtri

from calviz.core.blocks import FloatArray, IntArray, checkpoint
from calviz.core.entry_specs import METRICS, Interval, Metric, Reweighted, badness, is_of_steps
from calviz.core.errors import NotAvailable
from calviz.core.p_values import in_spreads, max_t
from calviz.core.predictions import with_rows
from calviz.sample.draws import GroupWeights, RowDraws, RowWeights
from calviz.sample.sample import Sample, metric_view

#: Scales of the gaps that are always tried; larger ones follow until the observed error is too small for them.
SCALES = (0.0, 0.3, 0.65, 1.0, 1.4)
#: Index of the scale 1, at which the gaps are the observed ones, as in plain resampling of the rows.
AS_SEEN = SCALES.index(1.0)
#: Larger scales; each is tried if the one before does not rule out the observed error.
MORE_SCALES = (2.0, 3.0, 5.0, 8.0, 16.0, 32.0)
#: A simulated population is ruled out, regardless of the other set, if the observed error is this many standard deviations off.
ALONE = 2.3
#: Half-width of a 95 % interval in standard deviations.
Z = float(ndtri(0.975))
#: Quantiles of the central 95 %, and of a slightly wider range for one of many comparisons: quantiles of 250 resamples vary more
#: the further out they are.
TAILS, TAILS_OF_MANY = (0.025, 0.975), (0.02, 0.98)
#: Prior probability that the true error is 0, for the estimate.
PRIOR_OF_NONE = 0.3
#: Number of points, from the smallest to the largest scale, at which simulated populations are compared.
POINTS = 41
#: Budget of units x random permutations, of those at a time, and smallest and largest number of permutations.
WORK, AT_A_TIME, FEWEST, MOST = 10_000_000, 500_000, 199, 999
#: With more rows than this, blocks of rows are permuted; about this many of each smaller size are made in each period.
MOST_BLOCKS, PARTNERS = 1 << 15, 8
#: Of more rows behind the cells of a profile, this many are drawn for the test of parts.
MOST_BEHIND_CELLS = 1 << 22
#: Tested beside the metric: a shift of the scores shows in it first, for it has little noise.
GAP = "mcs"
#: Significance level of a difference between parts.
LEVEL = 0.05
#: What a part is called, and what differences between them are.
Words = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Spread:
    """Summary of the simulated populations of one set.

    Attributes
    ----------
    value : float
        The observed error.
    truth, mean, sd : ndarray, shape (F,)
        True error, and mean and standard deviation of the error observed with it, at `POINTS` scales.
    off : ndarray, shape (S, B)
        Deviations of the resamples from the mean at each of the S scales; the same resampled rows in all sets.
    at : int
        Index, among the F points, of the simulated population of the estimate.
    estimate : float
        The error without its noise: posterior median of the true error given the value (see `_without_noise`).
    draws : ndarray, shape (B,)
        Resampled estimates: the estimate plus the deviations of its simulated population.
    """

    value: float
    truth: FloatArray
    mean: FloatArray
    sd: FloatArray
    off: FloatArray
    at: int
    estimate: float
    draws: FloatArray

    @classmethod
    def of(
        cls, value: float, truth: FloatArray, drawn: FloatArray, widening: float = 1.0
    ) -> Spread:
        """Summarise simulated populations: the errors that would result if the true gaps were multiples of the observed gaps.

        Parameters
        ----------
        value : float
            The observed error.
        truth : ndarray, shape (S,)
            The true error at each scale, from 0 upwards.
        drawn : ndarray, shape (S, B)
            The errors of B samples at each scale. Sample b has the same resampled rows in all sets.
        widening : float
            Factor of the deviations (see `Metric.widening`).
        """
        mean = drawn.mean(axis=1)
        off = widening * (drawn - mean[:, None])
        between = _between(truth.size)
        # The mean increases with the scale; the running maximum removes dips that are due to noise.
        mean, truth = np.maximum.accumulate(between @ mean), between @ truth
        sd = between @ off.std(axis=1, ddof=1)
        estimate = _without_noise(value, truth, mean, sd)
        near = int(np.abs(truth - estimate).argmin())
        return cls(value, truth, mean, sd, off, near, estimate, estimate + between[near] @ off)


def _without_noise(value: float, truth: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Posterior median of the true error, under a prior with probability `PRIOR_OF_NONE` at 0 and a uniform density elsewhere.

    The true error whose mean observed error equals the value would be too large an estimate: noise alone often exceeds
    its mean slightly, and near 0 only a large true error raises the mean by as much.

    Parameters
    ----------
    value : float
    truth, mean, sd : ndarray, shape (F,)
        True errors, ascending, and mean and standard deviation of the observed error, which is about normal.
    """
    where_matched = float(np.interp(value, mean, truth, left=truth[0]))
    if sd[0] <= 0 or truth[-1] <= truth[0]:
        return where_matched
    spread = np.maximum(sd, 1e-3 * sd.max())
    off = (value - mean) / spread
    # Relative to the best fit, because the densities themselves may underflow.
    likely = np.exp(-0.5 * (np.square(off) - np.square(off).min())) / spread
    slab = likely * np.gradient(truth)
    if not slab.any():  # errors that are only rounding do not vary with the scale
        return where_matched
    none = PRIOR_OF_NONE * likely[0]
    some = (1 - PRIOR_OF_NONE) * slab.sum() / truth[-1]
    share = none / (none + some) + some / (none + some) * (np.cumsum(slab) - slab / 2) / slab.sum()
    return float(np.interp(0.5, share, truth, left=truth[0]))


@lru_cache(maxsize=64)
def _between(scales: int) -> FloatArray:
    """Matrix of linear interpolation from the S scales to `POINTS` points between the first and the last, shape (F, S)."""
    places = np.linspace(0, scales - 1, POINTS)
    return np.asarray(np.maximum(1 - np.abs(places[:, None] - np.arange(scales)), 0))


def difference(first: Spread, second: Spread, z: float) -> Interval:
    """Interval of the true error of `first` minus that of `second`.

    A pair of simulated populations is accepted if the observed difference lies within the central 95 % of the differences in these,
    and each error within max(z, `ALONE`) standard deviations of its own mean. The interval is the range of
    the true differences of accepted pairs (test inversion, Carpenter 1999, with two scales and paired deviations).

    The interval also covers the difference of the two values plus and minus z standard deviations of the paired
    resamples. If two sets are equally good, the one that looks better has gaps that happen to be small and uneven. Noise
    enlarges these more than its true gaps, and they no longer show how strongly the two errors are correlated.

    For one of many comparisons (z above `Z`), pairs of simulated populations within z standard deviations are accepted as well, because
    quantiles of the resamples vary too much that far out.

    Parameters
    ----------
    first, second : Spread
    z : float
        1.96 for 95 %; a larger value widens the central range in proportion.
    """
    if first.value == second.value and np.array_equal(first.off, second.off):
        # The same gaps in every resample: a set beside itself.
        return Interval(0.0, 0.0)
    alone = max(z, ALONE)
    possible = [np.abs(s.value - s.mean) <= alone * s.sd + 1e-12 for s in (first, second)]
    for s, populations in zip((first, second), possible, strict=True):
        populations[s.at] = True
    a, b = possible
    off = first.off[:, None] - second.off
    tails = TAILS if z <= Z else TAILS_OF_MANY
    ends = np.quantile(off, tails, axis=-1)
    ends *= z / Z
    left, right = _between(first.off.shape[0])[a], _between(second.off.shape[0])[b]
    low, high = (left @ end @ right.T for end in ends)
    values = first.value - second.value
    deviation = values - (first.mean[a][:, None] - second.mean[b])
    accepted = (low - 1e-12 <= deviation) & (deviation <= high + 1e-12)
    if z > Z:
        wide = z / Z * float(ndtri(tails[1]))
        accepted |= np.abs(deviation) <= wide * (left @ off.std(axis=-1, ddof=1) @ right.T)
    resampled = z * float(off[AS_SEEN, AS_SEEN].std(ddof=1))
    always = [first.estimate - second.estimate, values - resampled, values + resampled]
    truth = np.append((first.truth[a][:, None] - second.truth[b])[accepted], always)
    return Interval(float(truth.min()), float(truth.max()))


def from_single_intervals(
    values: tuple[float, float], intervals: tuple[Interval, Interval], correlation: float
) -> Interval:
    """Interval of the first value minus the second, from their single intervals and the correlation of their errors.

    Each end of the interval of the difference comes from the ends of the two that would make the difference such (method of
    variance estimates recovery). With a correlation of r, only 1 - r of the squared distances to these ends counts, and r of the
    squared difference between the half-widths, so that two equal values with a common error differ by nothing.

    References
    ----------
    Zou & Donner 2008, Construction of confidence limits about effect measures; without correlation it is theirs.
    """
    (a, b), (of_a, of_b) = values, intervals
    common = correlation * (((of_a.high - of_a.low) - (of_b.high - of_b.low)) / 2) ** 2
    below, above = (
        math.sqrt(max((1 - correlation) * (one**2 + other**2) + common, 0.0))
        for one, other in ((a - of_a.low, of_b.high - b), (of_a.high - a, b - of_b.low))
    )
    return Interval(a - b - below, a - b + above)


def critical(
    draws: Mapping[str, FloatArray], pairs: Iterable[tuple[str, str]] | None = None
) -> float:
    """Critical value in standard deviations, which no pair's difference exceeds in 95 % of the resamples; at least 1.96 (max-T).

    Parameters
    ----------
    draws : mapping of str to ndarray, shape (B,)
        Resampled values of each set, on common resamples.
    pairs : iterable of (str, str), optional
        The comparisons; if left out, all pairs (Tukey's family).
    """
    pairs = list(combinations(draws, 2) if pairs is None else pairs)
    largest: FloatArray | None = None
    for a, b in pairs:
        gaps = draws[a] - draws[b]
        sd = float(gaps.std(ddof=1))
        if sd > 1e-15:
            off = np.abs(gaps - gaps.mean()) / sd
            largest = off if largest is None else np.maximum(largest, off)
    if largest is None or len(pairs) < 2:
        return Z
    return max(Z, float(np.quantile(largest, 0.95, method="weibull")))


# ---- Metrics of row weights
#
# Rows are drawn once for all methods, and the metrics of every method are computed on the same draws. A metric is a function
# of a view, so it suffices to recompute the view from weights (`Metric.reweighting`). The gaps between scores and hits in
# the view can be scaled, which gives a simulated population whose true error is known. Not
# available are metrics whose bins depend on the resample (ECE sweep), metrics that need pairs of rows or a sort per class or
# resample (SKCE, class-wise KS, accuracy at a coverage, Hosmer-Lemeshow, ICI), logistic fits, and class-wise errors with
# very many probabilities.


def is_inverted(metric: Metric) -> bool:
    """Whether intervals of a metric's differences are computed by test inversion, as for errors that noise makes larger.

    For a signed metric this concerns its absolute value, which decides what is better, not its signed differences.
    """
    return metric.interval != "percentile" or metric.direction == "zero"


class Weighted:
    """The metrics of one set of probabilities as functions of row weights.

    Parameters
    ----------
    sample : Sample
        It determines the bins of the metrics.
    metrics : iterable of str
        Keys; metrics that are not available are left out.
    """

    def __init__(self, sample: Sample, metrics: Iterable[str]) -> None:
        self._weights = sample.weights
        self._n = sample.data.n
        self._rows: dict[RowDraws, RowDraws] = {}
        self._shared: list[_Shared] = []
        metrics_of: dict[int, list[Metric]] = {}
        for metric in map(METRICS.__getitem__, metrics):
            again = metric.reweighting
            if again is None or badness(metric.direction) is None:
                continue
            try:
                again.check(sample)
                view = metric_view(sample, metric)
            except NotAvailable:
                continue
            if id(view) not in metrics_of:
                metrics_of[id(view)] = []
                self._shared.append(_Shared(again.make(sample, view), metrics_of[id(view)]))
            metrics_of[id(view)].append(metric)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that have paired resamples."""
        return tuple(m.key for shared in self._shared for m in shared.metrics)

    def values(
        self, weights: RowWeights, wanted: Callable[[Metric], bool] = lambda _: True
    ) -> dict[str, FloatArray]:
        """Return every wanted metric, shape (b,), for `weights` of shape (n, b), which multiply the sample's own weights."""
        out: dict[str, FloatArray] = {}
        weights = self._times(weights)
        for shared in self._shared:
            metrics = [m for m in shared.metrics if wanted(m)]
            if metrics:
                out |= shared.values(shared.reweighted(weights)(None), metrics)
        return out

    def scaled(self, weights: RowWeights) -> dict[str, FloatArray]:
        """Return the badness of every inverted metric in simulated populations with scaled gaps, shape (S, b), for weights of shape (n, b).

        The deviations are those of the weights; the scales start at 0 and are the same in all calls.
        """
        out: dict[str, FloatArray] = {}
        weights = self._times(weights)
        for shared in self._shared:
            metrics = [m for m in shared.metrics if is_inverted(m)]
            if metrics:
                table = self._populations(shared, metrics, shared.reweighted(weights))
                out |= {key: np.stack(rows) for key, rows in table.items()}
        return out

    def _times(self, weights: RowWeights) -> RowWeights:
        if self._weights is None:
            return weights
        if isinstance(weights, GroupWeights):
            # The same object for all draws, because it caches sums over the rows of each cluster.
            rows = self._rows.setdefault(weights.rows, replace(weights.rows, weights=self._weights))
            return GroupWeights(rows, weights.times)
        return weights * self._weights[:, None]

    def truths(self) -> dict[str, FloatArray]:
        """Return the inverted metrics in these simulated populations without noise, shape (S,); call it after `scaled`."""
        return {key: drawn[:, 0] for key, drawn in self.scaled(np.ones((self._n, 1))).items()}

    def _populations(
        self, shared: _Shared, metrics: list[Metric], view_at: Callable[[float | None], Any]
    ) -> dict[str, list[FloatArray]]:
        table: dict[str, list[FloatArray]] = {m.key: [] for m in metrics}

        def add(scale: float, some: list[Metric]) -> None:
            for key, values in shared.values(view_at(scale), some).items():
                table[key].append(_worse(METRICS[key], values))

        for scale in SCALES:
            add(scale, metrics)
        if shared.most is None:
            # With few gaps, which happen to be small, the true gaps may be much larger.
            once = self._times(np.ones((self._n, 1)))
            itself = shared.values(shared.reweighted(once)(None), metrics)
            observed = {key: float(_worse(METRICS[key], v)[0]) for key, v in itself.items()}
            shared.most = dict.fromkeys(table, SCALES[-1])
            for scale in MORE_SCALES:
                metrics = [m for m in metrics if _possible(table[m.key][-1], observed[m.key])]
                if metrics:
                    add(scale, metrics)
                    shared.most |= {m.key: scale for m in metrics}
            return table
        for scale in MORE_SCALES:
            some = [m for m in metrics if scale <= shared.most[m.key]]
            if some:
                add(scale, some)
        return table


@dataclass(eq=False)
class _Shared:
    """A view that one or more metrics are functions of."""

    #: The view for weights of shape (n, b), as a function of the scale; see `calviz.core.entry_specs.Reweighting`.
    reweighted: Reweighted
    metrics: list[Metric]
    #: Largest scale of each inverted metric; set by the first resamples.
    most: dict[str, float] | None = None

    def values(self, view: Any, metrics: list[Metric]) -> dict[str, FloatArray]:
        """Return the values of each metric, shape (b,)."""
        parts = list(view.parts()) if hasattr(view, "parts") else [view]
        return {m.key: np.concatenate([np.asarray(m.value(p)) for p in parts]) for m in metrics}


def _worse(metric: Metric, values: FloatArray) -> FloatArray:
    worse: Any = badness(metric.direction)
    return np.asarray(worse(values))


def _possible(drawn: FloatArray, observed: float) -> bool:
    """Whether an error as small as the observed one is possible in the simulated population of these draws."""
    return bool(drawn.mean() - (ALONE + 1) * drawn.std() <= observed) and observed > 0


# ---- Parts of the rows against the others


def against_the_others(
    sample: Sample,
    code: IntArray,
    large: IntArray,
    metric: str,
    *,
    words: Words = ("period", "changes of single periods"),
    side: IntArray | int = 0,
) -> tuple[dict[str, FloatArray], FloatArray, FloatArray]:
    """Test each period, or other part of exchangeable rows, against the others.

    Parameters
    ----------
    sample : Sample
    code : ndarray of int, shape (n,)
        The period of each row.
    large : ndarray of int, shape (P,)
        The periods that are tested, ascending.
    metric : str
        Tested beside the MCS.
    words : tuple of str
        What a part is called, and what differences between them are.
    side : ndarray of int, shape (n,)
        Rows are permuted among those of one side only.

    Returns
    -------
    values : dict of str to ndarray, shape (P, B + 1)
        The metric and the MCS as observed, then after random permutations of the rows among the parts.
    p_values, adjusted : ndarray, shape (T, P)
        By metric; adjusted for all parts and both metrics together.

    Raises
    ------
    NotAvailable
        If there is nothing to test, or nothing could be significant.
    """
    side = np.broadcast_to(side, code.shape)
    values = _after_permutations(sample, code, side, large, metric, words)
    statistics = in_spreads(np.concatenate(list(values.values())))
    what = "rows" if sample.data.clusters is None else "clusters"
    _check_attainable(statistics.max(axis=0), large.size, what, words)
    p, adjusted = (one.reshape(len(values), -1) for one in max_t(statistics))
    return values, p, adjusted


def _check_attainable(largest: FloatArray, periods: int, what: str, words: Words) -> None:
    """Raise an error if no observation could be significant: in too many draws the largest statistic, shape (B + 1,), is the largest possible."""
    most = largest.max()
    if most > 0 and np.mean(largest >= most * (1 - 1e-9)) > LEVEL:
        one, changes = words
        longer = "choose longer ones, or " if one == "period" else ""
        raise NotAvailable(
            f"there are too many {one}s ({periods:,}) for these {what} to tell {changes} from chance: {longer}take more {what}."
        )


def _after_permutations(
    sample: Sample, code: IntArray, side: IntArray, large: IntArray, metric: str, words: Words
) -> dict[str, FloatArray]:
    """Return the metric and the MCS of each period, shape (P, B + 1): as observed, then after random permutations of the rows."""
    one, changes = words
    if large.size < 2:
        raise NotAvailable(f"{changes} are not tested: only one {one} has enough rows.")
    rng = np.random.default_rng([sample.seed, 6])
    rows = np.flatnonzero(np.isin(code, large))
    part = sample.with_data(sample.data.take(rows))
    code, side = np.searchsorted(large, code[rows]), side[rows]
    if part.data.cells is not None:
        part, unit, units = _units_of_cells(rng, part, code, side)
    else:
        clusters = part.data.clusters
        levels, token = np.unique(
            np.arange(code.size) if clusters is None else clusters.codes, return_inverse=True
        )
        of_token, side_of = np.zeros((2, levels.size), dtype=np.intp)
        of_token[token], side_of[token] = code, side
        if (of_token[token] != code).any():
            raise NotAvailable(
                f"{changes} are not tested: clusters extend over several {one}s, so the {one}s are not independent."
            )
        units = Units.of(rng, of_token, 1.0 * np.bincount(token, part.weights), side_of)
        unit = units.number[token]
    weighted = Weighted(part, dict.fromkeys((metric, GAP)))
    if metric not in weighted.metrics:
        raise NotAvailable(
            f"{changes} of the {METRICS[metric].label} are not tested: it cannot be recomputed for rows permuted "
            "at random."
        )
    size = units.period.size
    draws = RowDraws(part.data.n, unit, most=size)
    permutations = int(np.clip(WORK // size, FEWEST, MOST))
    if is_of_steps(METRICS[metric].view):  # each permutation sorts the rows of each period
        permutations = FEWEST
    step = max(1, AT_A_TIME // size)
    values: dict[str, list[FloatArray]] = {metric: []}
    for start in range(0, permutations + 1, step):
        checkpoint(f"testing for changes: {start:,} of {permutations:,}")
        columns = range(start, min(start + step, permutations + 1))
        codes = np.stack([units.permuted(rng) if b else units.period for b in columns])
        dealt_out = GroupWeights(draws, _membership(codes, large.size))
        for key, some in weighted.values(dealt_out).items():
            values.setdefault(key, []).append(some.reshape(len(columns), -1).T)
    every = {key: np.concatenate(some, axis=1) for key, some in values.items()}
    if not np.isfinite(every[metric][:, 0]).any():
        raise NotAvailable(f"{changes} are not tested: no {one} has a value.")
    return every


def _membership(codes: IntArray, periods: int) -> csr_array:
    """Sparse array of the units in each period, shape (U, b * P), from the period of each unit in b permutations, shape (b, U)."""
    count, units = codes.shape
    columns = (codes + periods * np.arange(count)[:, None]).T.ravel()
    return csr_array(
        (np.ones(columns.size), columns, count * np.arange(units + 1)),
        shape=(units, count * periods),
    )


@dataclass(frozen=True, eq=False)
class Units:
    """What is permuted among the periods: rows (or clusters), or of many rows random blocks within each period.

    Units change places with units alike: blocks of as many rows, clusters of about as many rows, rows of about the same weight. So
    permutations keep the size of every period, and a period of few large clusters is not compared with many small ones. They
    form a group, for which the test is exact too (Hemerik & Goeman 2018), and sums per block make a permutation of a million rows
    as cheap as one of `MOST_BLOCKS`. Each period has some blocks of each smaller size, so that also a small one has partners.

    Attributes
    ----------
    number : ndarray of int, shape (n,)
        The unit of each row.
    period : ndarray of int, shape (U,)
        The period of each unit.
    alike : tuple of slice
        Units that change places.
    """

    number: IntArray
    period: IntArray
    alike: tuple[slice, ...]

    @classmethod
    def of(cls, rng: Generator, code: IntArray, mass: FloatArray, side: IntArray) -> Units:
        """Make units of rows (or clusters) in the periods `code`, with the sums of weights `mass`, of which those of one `side` are alike, shape (n,) each."""
        most = 1
        while code.size > most * MOST_BLOCKS:
            most *= 2
        # Alike are masses within a factor of the square root of 2.
        floor = np.floor(2 * np.log2(np.maximum(mass, np.finfo(float).tiny)) + 0.5)
        kind = np.unique(floor + 4096.0 * side, return_inverse=True)[1]
        periods = int(code.max()) + 1
        group = kind * periods + code
        lengths = [_block_sizes(count, most) for count in np.bincount(group).tolist()]
        size = np.concatenate(lengths)
        group_of_unit = np.repeat(np.arange(len(lengths)), [some.size for some in lengths])
        # Rows in random order within their groups are cut into blocks; then blocks are numbered by kind and size.
        shuffled = rng.permutation(code.size)
        in_order = shuffled[np.argsort(group[shuffled], kind="stable")]
        likeness = group_of_unit // periods * (2 * most) + size
        by_likeness = np.argsort(likeness, kind="stable")
        rank = np.empty(size.size, dtype=np.intp)
        rank[by_likeness] = np.arange(size.size)
        number = np.empty(code.size, dtype=np.intp)
        number[in_order] = np.repeat(rank, size)
        starts = np.flatnonzero(np.diff(likeness[by_likeness], prepend=0)).tolist()
        slices = tuple(slice(a, b) for a, b in pairwise([*starts, size.size]))
        return cls(number, group_of_unit[by_likeness] % periods, slices)

    def permuted(self, rng: Generator) -> IntArray:
        """The periods of the units after a random permutation of those alike, shape (U,)."""
        period = self.period.copy()
        for some in self.alike:
            rng.shuffle(period[some])
        return period


def _block_sizes(count: int, most: int) -> IntArray:
    """Sizes of the blocks of a period: powers of 2, about `PARTNERS` of each that is less than `most`, and then `most`."""
    sizes: list[IntArray] = []
    size = 1
    while size < most and count:
        # The rest stays a multiple of the next size.
        few = min(PARTNERS + (count // size + PARTNERS) % 2, count // size)
        sizes.append(np.full(few, size))
        count -= few * size
        size *= 2
    return np.concatenate([*sizes, np.full(count // size, size)]).astype(np.intp)


def _units_of_cells(
    rng: Generator, sample: Sample, code: IntArray, side: IntArray
) -> tuple[Sample, IntArray, Units]:
    """Divide the rows behind cells into units; return cells that each lie in one unit, the unit of each, and the units."""
    counts = np.asarray(sample.weights, dtype=np.int64)
    if counts.sum() > MOST_BEHIND_CELLS:
        counts = rng.multivariate_hypergeometric(counts, MOST_BEHIND_CELLS, method="marginals")
    cell = np.repeat(np.arange(counts.size), counts)
    units = Units.of(rng, code[cell], np.ones(cell.size), side[cell])
    pieces, rows = np.unique(units.number * counts.size + cell, return_counts=True)
    unit, cell = np.divmod(pieces, counts.size)
    return sample.with_data(with_rows(sample.data.take(cell), weights=rows)), unit, units

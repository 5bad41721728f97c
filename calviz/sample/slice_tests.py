"""Sums over the rows of slices and of combinations of columns, and the tests that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc, logit, ndtri, stdtr, stdtrit

from calviz.core import blocks, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, quotient
from calviz.core.events import BinaryEvents, cells_of
from calviz.core.p_values import LARGE, above, clopper_pearson, max_t, tails_of_hits
from calviz.sample import error_bars
from calviz.sample.error_bars import FEW_EVENTS, FEWEST_CLUSTERS, sums_by_cluster
from calviz.sample.sample import Sample, Where, rows_where

#: Tails up to this, of either side, are those of the convolved weights.
_SMALL = 0.05
#: Tails below this are known only to be so small.
_PRECISION = 1e-12
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, eq=False)
class SliceSums:
    """Sums per slice; slices may overlap.

    Attributes
    ----------
    rows : ndarray, shape (S,)
    score, hits : ndarray, shape (S,)
        Sums of scores and of hits.
    variance, third : ndarray, shape (S,)
        Sums of s (1 - s) and s (1 - s) (1 - 2 s): second and third cumulant of the hits of a calibrated model.
    squares : ndarray, shape (S,)
        Sum of (s - h)².
    between, together, clusters : ndarray, shape (S,), optional
        For clustered rows: `calviz.sample.error_bars.squares_of_clusters`, and number of clusters.
    weighted : ndarray, shape (3, S), optional
        For rows with weights w: sums of w, of w² and of w² (s - h). The sums above are then of w s, w h, w² s (1 - s),
        w³ s (1 - s) (1 - 2 s) and w² (s - h)², and those over clusters of w (s - h); `rows` remains the number of rows.
    """

    rows: FloatArray
    score: FloatArray
    hits: FloatArray
    variance: FloatArray
    third: FloatArray
    squares: FloatArray
    between: FloatArray | None = None
    together: FloatArray | None = None
    clusters: FloatArray | None = None
    weighted: FloatArray | None = None

    @property
    def mass(self) -> FloatArray:
        """Number of rows, or sum of their weights, shape (S,)."""
        return self.rows if self.weighted is None else self.weighted[0]

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits, shape (S,); 0 without rows, or if all weights are 0."""
        return quotient(self.score - self.hits, self.mass, otherwise=0.0)

    @property
    def spread(self) -> FloatArray:
        """Standard error of the gap, shape (S,), 0 without rows; for clustered rows that of a mean of independent clusters."""
        if self.between is not None and self.clusters is not None:
            # Centred: each cluster's sum minus the gap times its rows; approximate, exact for clusters of equal size.
            total = self.gap * self.mass
            around = np.maximum(self.between - total**2 / np.maximum(self.clusters, 1), 0)
            scale = self.clusters / np.maximum(self.clusters - 1, 1)
            return np.asarray(np.sqrt(around * scale) / np.maximum(self.mass, _TINY))
        if self.weighted is not None:
            _, squares, cross = self.weighted
            around = self.squares - 2 * self.gap * cross + self.gap**2 * squares
            return quotient(np.sqrt(np.maximum(around, 0)), self.mass, otherwise=0.0)
        rows = np.maximum(self.rows, 1)
        return np.asarray(np.sqrt(np.maximum(self.squares / rows - self.gap**2, 0) / rows))

    def rest_of(self, whole: SliceSums) -> SliceSums:
        """The sums of the rows that are not in each slice, without those over clusters, which may lie in both."""
        alone, every = (replace(some, between=None, clusters=None) for some in (self, whole))
        values = iter([v for v in vars(every).values() if v is not None])
        return alone.each(lambda v: next(values) - v)

    def each(self, change: Callable[[FloatArray], FloatArray]) -> SliceSums:
        """The same with other arrays, of any shape."""
        changed: dict[str, Any] = {n: v if v is None else change(v) for n, v in vars(self).items()}
        return SliceSums(**changed)


def slice_sums(
    events: BinaryEvents,
    codes: IntArray,
    slices: int,
    cluster: IntArray | None = None,
    weights: FloatArray | None = None,
) -> SliceSums:
    """Sums of each slice; row i belongs to slice ``codes[i]``; `codes`, `cluster` and `weights` have shape (n,).

    Weights of the cells of a profile are numbers of rows, and the sums are those of the rows.
    """
    return sums_of_terms(row_terms(events, weights), codes, slices, cluster)


#: Terms of each row: what `SliceSums` adds up from rows to squares, then w (s - h), and of weighted rows the terms of `weighted`.
RowTerms = tuple[list[Any], FloatArray, list[FloatArray]]


def row_terms(events: BinaryEvents, weights: FloatArray | None = None) -> RowTerms:
    """Compute the terms of the rows, shape (n,), which are the same for every column."""
    score = np.asarray(events.score, dtype=np.float64)
    hit = np.asarray(events.hit, dtype=np.float64)
    w = 1.0 if weights is None else weights
    # Without weights, or if they are numbers of rows: sums of the rows themselves.
    counted = weights is None or events.counted
    squared: FloatArray | float = w if counted else w * w
    variance, off = score * (1 - score) * squared, score - hit
    third = (1.0 if counted else w) * variance * (1 - 2 * score)
    terms = [weights if counted else None, w * score, w * hit, variance, third, squared * off * off]
    more = [] if counted or weights is None else [weights, weights * weights, squared * off]
    return terms, w * off, more


def sums_of_terms(
    terms: RowTerms, codes: IntArray, slices: int, cluster: IntArray | None = None
) -> SliceSums:
    """Add the terms of the rows, shape (n,), up, as in `slice_sums`."""
    totals = [np.bincount(codes, term, minlength=slices) for term in (*terms[0], *terms[2])]
    return sums_of_table(np.array(totals, np.float64), terms, codes, cluster)


def sums_of_table(
    totals: FloatArray, terms: RowTerms, codes: IntArray, cluster: IntArray | None
) -> SliceSums:
    """The sums of slices, of which `totals`, shape (T, S), are those over the rows; `codes`, shape (n,), are used for clusters alone."""
    slices = totals.shape[1]
    sums: list[Any] = [*totals[:6], None, None, None, totals[6:] if terms[2] else None]
    if cluster is not None:
        mass, _, hits, variance, *_ = terms[0]
        columns = terms[1], np.sqrt(np.maximum(variance, 0)), hits, mass
        of_slice, of_cluster = sums_by_cluster(codes, cluster, *columns)
        clusters = np.bincount(of_slice, minlength=slices)[:slices] * 1.0
        sums[6:9] = *error_bars.squares_of_clusters(of_slice, slices, of_cluster), clusters
    return SliceSums(*sums)


def counts_as(sums: SliceSums) -> FloatArray:
    """Effective sample size of each slice, shape (S,); nan for fewer than `FEWEST_CLUSTERS` clusters.

    Weights: ``(sum w)^2 / sum w^2`` (Kish 1965). Clusters: divided by the ratio of the variance of the gap with clustered rows
    to that with independent rows, and by the squared ratio of Student's quantiles with the degrees of freedom of the clusters
    and of the rows, as the variance is estimated from the clusters (Korn & Graubard 1998, *Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data*). Rows that all are hits, or all misses,
    do not show how much clusters vary: each cluster counts as one row at most.
    """
    n = sums.rows
    if sums.weighted is not None:
        w, squares, _ = sums.weighted
        n = blocks.effective_numbers_of_sums(w, squares)
    if sums.between is None or sums.clusters is None:
        return n
    more = quotient(sums.spread, replace(sums, between=None, clusters=None).spread, otherwise=1.0)
    degrees = np.maximum(sums.clusters - 1, 1)
    quantile = stdtrit(np.stack([np.maximum(sums.rows - 1, 1), degrees]), 0.975)
    fewer = n / np.maximum(more, 1) ** 2 * (quantile[0] / quantile[1]) ** 2
    unanimous = (sums.hits <= 0) | (sums.hits >= sums.mass)
    fewer = np.where(unanimous, np.minimum(fewer, sums.clusters), fewer)
    return np.where(sums.clusters < FEWEST_CLUSTERS, np.nan, fewer)


def intervals(
    sums: SliceSums, outside: float = 1 - error_bars.LEVEL
) -> tuple[FloatArray, FloatArray]:
    """The ends of intervals of the gaps, shape (S,) each, that miss them in a share `outside` of cases."""
    gap, worth = sums.gap, counts_as(sums)
    half_widths = -ndtri(outside / 2) * sums.spread
    share = quotient(sums.hits, sums.mass, otherwise=0.0)
    low, high = gap - half_widths, gap + half_widths
    # So few hits, or misses, do not show how much they vary.
    few = np.minimum(share, 1 - share) * worth < FEW_EVENTS
    ends = clopper_pearson(share[few] * worth[few], worth[few], level=1 - outside)
    high[few], low[few] = ((gap + share)[few] - end for end in ends)
    return low, high


def gap_interval(sample: Sample, part: IntArray) -> tuple[float, float] | None:
    """The interval of the gap of the rows with these numbers, shape (m,), as slices have it; None of few clusters."""
    inside = np.bincount(part, minlength=sample.scored.n).astype(np.intp)
    sums = slice_sums(sample.scored, inside, 2, sample.row_draws.cluster, sample.weights)
    low, high = intervals(sums)
    return None if np.isnan(counts_as(sums)[1]) else (float(low[1]), float(high[1]))


def p_against_calibrated(
    sums: SliceSums, events: BinaryEvents, codes: IntArray, weights: FloatArray | None = None
) -> FloatArray:
    """Two-sided p-values of the gaps if the model were calibrated, shape (S,): twice the smaller of `tails_if_calibrated`.

    Where all scores are 0 or 1, a gap is impossible (0) or absent (1).

    For clustered rows, the sums of s - h of the clusters are independent with mean 0: a t-test with one degree of freedom less
    than clusters, and with the error of `calviz.sample.error_bars.error_of_sums`. A slice with fewer than `FEWEST_CLUSTERS` clusters has a p-value of 1.
    """
    difference = sums.hits - sums.score
    if sums.between is not None and sums.clusters is not None and sums.together is not None:
        error = error_bars.error_of_sums(sums.variance, sums.between, sums.together)
        p = 2 * stdtr(np.maximum(sums.clusters - 1, 1), -np.abs(difference) / error)
        return np.where(sums.clusters >= FEWEST_CLUSTERS, p, 1.0)
    sure = np.where(np.abs(difference) > 1e-9 * sums.mass, 0.0, 1.0)
    least = tails_if_calibrated(sums, events, codes, weights).min(axis=0)
    return np.where(sums.variance > 1e-24, np.minimum(2 * least, 1.0), sure)


def tails_if_calibrated(
    sums: SliceSums, events: BinaryEvents, codes: IntArray, weights: FloatArray | None = None
) -> FloatArray:
    """Probabilities of as many hits or more, and of as many or fewer, if the model were calibrated and rows independent, shape (2, S).

    The number of hits is then a sum of independent Bernoulli draws with the scores as probabilities. Its tails
    are taken from a shifted gamma variable (Pearson III) with the same mean, variance and skewness, half a hit
    nearer to the mean (continuity correction): a normal tail is too thin where events are rare. For weighted rows, small ones are
    computed by `calviz.core.p_values.tails_of_hits`, as few rows of large weight may decide such a sum.
    """
    difference, variance = sums.hits - sums.score, sums.variance
    # Half of a usual row's weight, which is 1 for unweighted rows.
    half = quotient(sums.mass, sums.rows, otherwise=0.0) / 2
    tails = np.stack([above(s * difference - half, 0.0, variance, s * sums.third) for s in (1, -1)])
    small = np.flatnonzero((tails.min(axis=0) <= _SMALL) & (variance > 0))
    if sums.weighted is not None and weights is not None and small.size:
        least = LARGE * np.sqrt(variance)
        heavy = np.flatnonzero(weights > least[small].min())
        for i in small.tolist():
            rows = heavy[(codes[heavy] == i) & (weights[heavy] > least[i])]
            if rows.size:
                exact = tails_of_hits(
                    difference[i],
                    variance[i],
                    sums.third[i],
                    sums.mass[i],
                    sums.rows[i],
                    events.score[rows].astype(np.float64),
                    events.hit[rows],
                    weights[rows],
                )
                # Below the precision of the convolution, gamma tails still tell which slice is further off.
                tails[:, i] = np.where(
                    np.less(exact, _PRECISION), np.minimum(exact, tails[:, i]), exact
                )
    return tails


def p_against_rest(
    sums: SliceSums,
    parts: SliceSums,
    whole: SliceSums,
    events: BinaryEvents,
    codes: IntArray,
    weights: FloatArray | None = None,
    cluster: IntArray | None = None,
    part: IntArray | None = None,
    within: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Two-sided p-values of the hypothesis that the gap of a slice equals that of the other rows, shape (S,), 1 where there are none; and the difference.

    The sums of `parts`, shape (P, S), are those in intervals of the scores, where other rows have the same gap, and of `whole`, shape
    (P, 1), those of all slices; with the `sums` themselves, shape (S,), and shape (1,), the scores do not count.
    Of parts where others are few beside the slice, the rows are left out: compared with all other rows or, `within`, with those of the
    scores that the slice has, which are fewer for one above a score.
    The hits of the slice, plus its rows times the gap of the others, then exceed its scores by 0 on average. Their variance is not
    estimated from the slice, where events may be too few to show it: it is that of a calibrated model, times the ratio of the
    estimated variance of the others to theirs if that is larger than 1. The variance of the others' gap is added.

    For clustered rows, `cluster` and `part` are the cluster and the interval of each row, -1 for rows that are left out, shape (n,); one
    interval if left out. The difference is a sum over the rows of s - h minus the gap of the others, in the slice once, elsewhere times
    minus the ratio of the masses. Its variance adds the squared sums of the clusters, which may lie in both (Liang & Zeger 1986), and is
    at least that of independent rows; degrees of freedom are one less than clusters of the slice or, if fewer, of the others.
    """
    rest = parts.rest_of(whole)
    # Where the others are few beside the slice, its rows are left out.
    others = np.atleast_2d(rest.mass * (parts.mass > 0) if within else rest.mass).sum(axis=0)
    enough = 4 * rest.mass * sums.mass >= parts.mass * others
    some = enough & (rest.rows > 0) & (rest.mass > _TINY)
    estimated = np.where(some, rest.spread * rest.mass, 0.0) ** 2
    ratio = np.maximum(quotient(estimated, rest.variance, otherwise=1.0), 1.0)
    times = np.where(some, quotient(parts.mass, rest.mass, otherwise=0.0), 0.0)
    shift, variance, third = (
        np.atleast_2d(term).sum(axis=0)
        for term in (
            parts.mass * np.where(some, rest.gap, parts.gap),
            times**2 * np.maximum(estimated, rest.variance) + some * ratio * parts.variance,
            some * parts.third,
        )
    )
    moved = replace(sums, score=sums.score - shift, variance=variance, third=third)
    if cluster is not None and sums.clusters is not None:
        part = np.zeros_like(codes) if part is None else part
        mass = (part >= 0) * (1.0 if weights is None else weights)
        some, times, gap = (np.atleast_2d(v) for v in (some, times, rest.gap))
        between, clusters = np.zeros(sums.rows.size), sums.clusters.copy()
        for i in np.flatnonzero(clusters >= FEWEST_CLUSTERS).tolist():
            factor = mass * np.where(codes == i, some[part, i], -times[part, i])
            of_cluster = np.bincount(cluster, factor * (events.score - events.hit - gap[part, i]))
            between[i] = of_cluster @ of_cluster
            clusters[i] = min(clusters[i], np.count_nonzero(np.bincount(cluster, factor < 0)))
        moved = replace(moved, between=between, clusters=clusters)
    p_values = p_against_calibrated(moved, events, codes, weights)
    differs = np.atleast_2d(some).any(axis=0) & (np.abs(moved.gap) > 1e-12)
    return np.where(differs, p_values, 1.0), moved.gap


def p_of_pairs(
    p_values: FloatArray,
    sums: SliceSums,
    first: SliceSums,
    events: BinaryEvents,
    codes: IntArray,
    weights: FloatArray | None = None,
    cluster: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """p-values of pairs of values that are off, and otherwise than the other rows with the same `first` of the two, shape (S,); and what they are of.

    That is the larger of `p_values`, shape (S,), of the first hypothesis, and those of the second (Berger 1982), which is tested where
    they are small; and the gap, or how much larger it is than that of the others. `first` has the sums of the values of the first column, shape (K,), and `codes`, shape (n,), are those of the pairs.
    """
    small, values = np.flatnonzero(p_values <= _SMALL), sums.rows.size // first.rows.size
    differences = sums.gap
    if not small.size:
        return p_values, differences
    number = np.full(sums.rows.size, -1)
    number[small] = np.arange(small.size)
    own = np.arange(first.rows.size)[:, None] == small // values
    some = sums.each(lambda v: v[..., small])
    parts = some.each(lambda v: v[..., None, :] * own)
    whole = first.each(lambda v: v[..., None] * own)
    rows = events, number[codes], weights, cluster, codes // values
    p_values, (against, more) = p_values.copy(), p_against_rest(some, parts, whole, *rows)
    larger = against > p_values[small]
    p_values[small[larger]], differences[small[larger]] = against[larger], more[larger]
    return p_values, differences


def slice_ece(table: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ECE of each slice, and its mean for a calibrated model, shape (S,) each.

    For a calibrated model the gap of a bin, as a sum, is nearly normal with variance sum s (1 - s), and the mean of its
    absolute value is sqrt(2 / pi) times its standard deviation.

    Parameters
    ----------
    table : ndarray, shape (T, bins, S)
        Sums of each bin in the order of `SliceSums`.
    mass : ndarray, shape (S,)
    """
    _, score, hits, variance, *_ = table
    spread = np.sqrt(2 / np.pi * np.maximum(variance, 0))
    mass = blocks.denominators(mass)
    return np.abs(score - hits).sum(axis=0) / mass, spread.sum(axis=0) / mass


# ---- Sums by bin and value, for one column or two crossed


def crossed_sums(
    factors: Mapping[str, Factor],
    terms: Sequence[FloatArray | None],
    *,
    crossed: int,
    bin_of: IntArray,
    bins: int,
) -> Iterator[tuple[tuple[str, ...], FloatArray]]:
    """Yield the names of no, one or two columns, and sums over the rows by bin and value, shape (T, bins, S).

    The values of two columns are numbered as by `crossed_codes`. Where that makes fewer sums than there are rows, four columns are
    added up at once, so that one pass over the rows serves four pairs.

    Parameters
    ----------
    factors : mapping of str to Factor
    terms : sequence of T ndarray or None, shape (n,)
        What is added up; None counts the rows.
    crossed : int
        How many of the columns that have several values are crossed with all of those after them.
    bin_of : ndarray of int, shape (n,)
        The bin of each row, one of `bins`.
    bins : int
    """
    size = {name: len(factor.levels) for name, factor in factors.items()}
    several = [name for name in factors if size[name] > 1]
    at_once = 2 if crossed > 1 and max(size.values(), default=1) ** 4 * bins <= bin_of.size else 1
    blocks = [tuple(several[i : i + at_once]) for i in range(0, len(several), at_once)]

    def added(code: IntArray, names: tuple[str, ...]) -> FloatArray:
        shape = [size[name] for name in names]
        cells = bins * int(np.prod(shape, dtype=np.intp))
        sums = [np.bincount(code, term, minlength=cells) for term in terms]
        return np.array(sums, np.float64).reshape(len(terms), bins, *shape)

    def by(table: FloatArray, names: tuple[str, ...], kept: tuple[str, ...]) -> FloatArray:
        """The sums by some of the columns."""
        others = tuple(2 + i for i, name in enumerate(names) if name not in kept)
        return table.sum(axis=others) if others else table

    def flat(table: FloatArray) -> FloatArray:
        return table.reshape(*table.shape[:2], -1)

    yield (), flat(added(bin_of, ()))
    for name, factor in factors.items():
        yield (name,), flat(added(_numbered(bin_of, [factor]), (name,)))
    for i, block in enumerate(blocks[: -(-crossed // at_once)]):
        code = _numbered(bin_of, [factors[name] for name in block])
        if len(block) > 1:
            yield block, flat(added(code, block))
        for other in blocks[i + 1 :]:
            every = added(_numbered(code, [factors[name] for name in other]), block + other)
            for first in block:
                part = by(every, block + other, (first, *other))
                for second in other:
                    yield (first, second), flat(by(part, (first, *other), (first, second)))


def _numbered(code: IntArray, factors: Iterable[Factor]) -> IntArray:
    """Number the combinations of a code and the values of columns; shape (n,) each."""
    code = code.astype(np.intp)
    for factor in factors:
        code *= len(factor.levels)
        code += factor.codes
    return code


def above_edge(
    part: Factor, factors: Mapping[str, Factor], terms: RowTerms, bin_of: IntArray
) -> Iterator[tuple[str, IntArray, FloatArray]]:
    """Yield the sums of the values of each column in the last of two parts, shape (T, M, L), and the codes of its rows, shape (n,), of which those of others are one larger."""
    above = part.mask(part.levels[-1])
    if above.all() or not above.any():
        return
    every, bins = [*terms[0], *terms[2]], int(bin_of.max()) + 1
    for name, factor in factors.items():
        # All rows of a value are that value.
        both = above & (np.bincount(factor.codes, ~above, len(factor.levels))[factor.codes] > 0)
        some = Factor(np.where(both, factor.codes, len(factor.levels)), (*factor.levels, ""))
        *_, (_, table) = crossed_sums({name: some}, every, crossed=0, bin_of=bin_of, bins=bins)
        yield name, some.codes, table[:, :, :-1]


def furthest_range(
    ranges: Mapping[str, Sequence[str]], factor: Factor, terms: RowTerms, min_rows: int
) -> str:
    """The name of the values of a column that are furthest off and from the other rows, in standard errors; "" if none has the rows."""
    inside = np.array([np.isin(factor.levels, values) for values in ranges.values()])
    sums = sums_of_terms(terms, factor.codes, len(factor.levels))
    _, first = np.unique(inside, axis=0, return_index=True)
    rows, off, mass, variance = (
        inside @ v for v in (sums.rows, sums.score - sums.hits, sums.mass, sums.variance)
    )
    gap = float(sums.score.sum() - sums.hits.sum()) / max(float(sums.mass.sum()), _TINY)
    rest = np.maximum(1 - variance / max(float(sums.variance.sum()), _TINY), _TINY)
    size = np.minimum(np.abs(off), np.abs(off - mass * gap) / np.sqrt(rest))
    size = size / np.sqrt(np.maximum(variance, _TINY))
    enough = (rows >= min_rows) & (rows < sums.rows.sum())
    tried = [i for i in np.sort(first).tolist() if enough[i]]
    return [*ranges][max(tried, key=lambda i: float(size[i]))] if tried else ""


def crossed_codes(factors: Iterable[Factor], n: int) -> IntArray:
    """Number of the combination of values of each of n rows, shape (n,)."""
    return _numbered(np.zeros(n, np.intp), factors)


#: Intervals of the scores in which a slice is compared with the other rows.
PARTS = 20


def tested(
    sample: Sample,
    wheres: Sequence[Where],
    outside: BoolArray,
    part: IntArray | None,
    *,
    within: bool = False,  # noqa: PT028
) -> list[tuple[float, float]]:
    """The p-value and the gap of slices on the rows `outside`, or how much larger the gap is than that of the other rows in the same `part`; shape (n,) each."""
    data, events, weights = sample.data, sample.scored, sample.weights
    cluster, terms = sample.row_draws.cluster, row_terms(events, weights)
    cycles = predictions.cycles(data)
    found: dict[Where, tuple[float, float]] = {}
    named = (tuple((c, v if c in cycles else "") for c, v in where) for where in wheres)
    for columns in dict.fromkeys(named):
        names = tuple(name for name, _ in columns)
        factors = {name: alone(data, name, value) for name, value in columns}
        size = math.prod(len(factor.levels) for factor in factors.values())
        among = ranges_of(data.cuts, names)
        codes = np.where(outside, crossed_codes(factors.values(), data.n), size)
        sums = sums_of_terms(terms, codes, size + 1, cluster)
        if part is None:
            p_values = p_against_calibrated(sums, events, codes, weights)
            gaps = sums.gap
        else:
            table = sums_of_terms(terms, part * (size + 1) + codes, PARTS * (size + 1))
            parts = table.each(lambda v: v.reshape(*v.shape[:-1], PARTS, -1))
            whole = parts.each(lambda v: v[..., :-1].sum(axis=-1, keepdims=True))
            kept = np.where(outside, part, -1)
            p_values, gaps = p_against_rest(
                sums, parts, whole, events, codes, weights, cluster, kept, within
            )
        for i in range(size):
            p = min(among * float(p_values[i]), 1.0)
            found[where_of(names, factors, i)] = p, float(gaps[i])
    return [(max(found[w][0], p_of_years(sample, w, outside)), found[w][1]) for w in wheres]


def ranges_of(cuts: Mapping[str, Any], names: Iterable[str]) -> int:
    """Of how many ranges the slices of these columns are the furthest off: 1, but for hours, weekdays and months."""
    return math.prod(len(cuts[name].sides) for name in names if name in cuts and cuts[name].cycle)


#: Rows of a year in which a slice is measured, and level of the test that its years differ.
_YEAR, _DIFFER = 50, 0.01


def p_of_years(sample: Sample, where: Where, outside: BoolArray) -> float:
    """1 for a slice of months whose gaps on the rows `outside`, shape (n,), differ between years beyond chance, as it does not come round; 0 for other slices."""
    cuts, times = sample.data.cuts, sample.data.times
    if times is None or not any(v and n in cuts and cuts[n].cycle == "month" for n, v in where):
        return 0.0
    months = times.astype("datetime64[M]").astype(np.intp)
    year = (months - months.min()) // 12
    inside = np.asarray(rows_where(sample.data, where)) & outside
    codes = np.where(inside, year, year.max() + 1)
    terms = row_terms(sample.scored, sample.weights)
    sums = sums_of_terms(terms, codes, year.max() + 2, sample.row_draws.cluster)
    weight = ((sums.rows >= _YEAR) / np.maximum(sums.spread, 1e-9) ** 2)[:-1]
    away = sums.gap[:-1] - (sums.gap[:-1] @ weight) / max(weight.sum(), 1e-9)
    freedom = max(np.count_nonzero(weight) - 1, 1)
    return float(chdtrc(freedom, weight @ away**2) < _DIFFER)


def alike(sample: Sample) -> IntArray:
    """The part of the scores in which each row is, shape (n,): in one, scores are about the same."""
    cell, cells = cells_of(sample.scored.score)
    return cell * min(cells, PARTS) // cells


def alone(data: predictions.Dataset, name: str, value: str) -> Factor:
    """A column as it is sliced or, of a range of a cycle, which rows are in it."""
    inside = rows_where(data, ((name, value),)) if value else None
    return data.sliced(name) if inside is None else Factor(inside.astype(np.intp), ("", value))


def where_of(
    names: tuple[str, ...], factors: Mapping[str, Factor], number: int
) -> tuple[tuple[str, str], ...]:
    """The columns and values of a combination."""
    levels = [factors[name].levels for name in names]
    codes = np.unravel_index(number, [len(some) for some in levels])
    return tuple((name, some[i]) for name, some, i in zip(names, levels, codes, strict=True))


def number_of_slices(rows: FloatArray, names: tuple[str, ...]) -> int:
    """How many slices there are, of which `rows`, shape (S,), has the rows: of pairs of values, those that some row has."""
    return rows.size if len(names) < 2 else int(np.count_nonzero(rows))


# ---- Changes over time

#: Expected variance of the hits of a slice on either side of a day of change, and the share of that of all days; steps of time at most.
_LEAST_VARIANCE, _SIDE, _STEPS = 10.0, 0.05, 64
#: Shares of the rows before the days on which clusters are looked at.
_SHARES = 0.25, 0.5, 0.75


def p_of_changes(
    residual: FloatArray,
    q: FloatArray,
    day: IntArray,
    factor: Factor,
    weights: FloatArray | None = None,
    cluster: IntArray | None = None,
) -> FloatArray:
    """p-values of the hypothesis that a slice changes on no day, or as the other rows do, for each level of a column, shape (L,).

    Parameters
    ----------
    residual, q : ndarray, shape (n,)
        Hits minus `q`, probabilities that hold for all rows together.
    day : ndarray of int, shape (n,)
        Number of the day, from 0 on.
    factor : Factor
        The column; a p-value is nan where there is no day with enough rows before and since.
    weights, cluster : ndarray, shape (n,), optional
        Of the rows.

    Notes
    -----
    On each day, offset and slope of the logits of a slice after it, minus those before it, are estimated by one step of Newton's method
    (Andrews 1993), and so for the other rows. The statistic is the Wald statistic of their difference, or of the change of the slice
    alone, whichever is smaller; a slice that is off alike all the time, or changes as all do, has none. The tail of its largest value
    over all days is that of DeLong 1981 for two dimensions, as in Estrella 2003, eq. 8. The variance is that of calibrated rows, times the
    ratio of the squared sums of the residuals of a row, or of a cluster, to it, if that is larger than 1; of c clusters, a statistic x counts
    as (c - 2) log(1 + x / (c - 1)), which has the tail of Hotelling's.
    """
    levels, days = len(factor.levels), min(int(day.max()) + 1, _STEPS)
    day = day * days // (int(day.max()) + 1)
    w = 1.0 if weights is None else weights
    v, z, residual = w * q * (1 - q), logit(q), w * residual
    z = z - np.average(z, weights=v)
    squares = _squares(residual, factor.codes, levels)
    if cluster is not None:
        squares *= _more_than_rows(residual, factor.codes, cluster, levels, day)
    terms = (residual, residual * z, *(u * z**k for u in (v, w * v) for k in range(3)))
    cell = factor.codes * days + day
    sums = np.stack([np.bincount(cell, term, minlength=levels * days) for term in terms])
    path = sums.reshape(len(terms), levels, days).cumsum(axis=2)
    rest = path.sum(axis=1, keepdims=True) - path
    changes, variances, enough = zip(*map(_changes, (path, rest), squares), strict=True)
    own = _wald(changes[0], variances[0])
    apart = _wald(changes[0] - changes[1], variances[0] + variances[1])
    statistic = np.where(enough[0] & enough[1], np.minimum(own, apart), np.nan)
    largest = np.nanmax(np.where(np.isnan(statistic), -1.0, statistic), axis=1)
    if cluster is not None:
        of_level, _ = sums_by_cluster(factor.codes, cluster)
        clusters = np.bincount(of_level, minlength=levels)
        few = np.maximum(clusters, FEWEST_CLUSTERS)
        largest = np.where(
            clusters < FEWEST_CLUSTERS, -1.0, (few - 2) * np.log1p(largest / (few - 1))
        )
    x = np.maximum(largest, 4.0)
    tail = x / 2 * np.exp(-x / 2) * ((1 - 2 / x) * 2 * np.log((1 - _SIDE) / _SIDE) + 2 / x)
    return np.where(largest < 0, np.nan, np.minimum(tail, 1.0))


def _squares(
    residual: FloatArray, codes: IntArray, levels: int, cluster: IntArray | None = None
) -> FloatArray:
    """Squared residuals of the rows of each level, and of the others, or of their sums over clusters; shape (2, L)."""
    if cluster is None:
        own = np.bincount(codes, residual * residual, levels)
        return np.stack([own, own.sum() - own])
    of_level, (sums,) = sums_by_cluster(codes, cluster, residual)
    own, total = np.bincount(of_level, sums * sums, levels), np.bincount(cluster, residual)
    both = np.bincount(codes, residual * total[cluster], levels)
    return np.stack([own, total @ total - 2 * both + own])


def _more_than_rows(
    residual: FloatArray, codes: IntArray, cluster: IntArray, levels: int, day: IntArray
) -> FloatArray:
    """How many times larger the variance of a change is than of independent rows, of each level and of the others, shape (2, L): the largest on three days.

    What the rows of a cluster share cancels in a change, as far as they lie on both sides of it.
    """
    more: list[FloatArray] = [np.ones((2, levels))]
    for share in _SHARES:
        since = day >= np.quantile(day, share)
        change = residual * (since - since.mean())
        of_clusters = _squares(change, codes, levels, cluster)
        more.append(quotient(of_clusters, _squares(change, codes, levels), otherwise=1.0))
    return np.asarray(np.max(more, axis=0))


def _changes(path: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The change of offset and slope on each day, shape (L, T, 2), their covariance, and whether there are enough rows before and since."""
    last = path[..., -1:]
    score = np.moveaxis(path[:2], 0, -1)
    information, variance = (
        np.moveaxis(path[terms], 0, -1).reshape(*path.shape[1:], 2, 2)
        for terms in ([2, 3, 3, 4], [5, 6, 6, 7])
    )
    part = information @ _inverse(information[:, -1:])
    bridge = score - (part @ score[:, -1:, :, None])[..., 0]
    inverse = _inverse(part @ (information[:, -1:] - information))
    # Weighted rows have another variance than information.
    rest, later = np.eye(2) - part, variance[:, -1:] - variance
    both = rest @ variance @ rest.swapaxes(-1, -2) + part @ later @ part.swapaxes(-1, -2)
    covariance = inverse @ both @ inverse.swapaxes(-1, -2)
    # Scores that are off have hits of another variance.
    more = np.maximum(quotient(squares[:, None], last[5], otherwise=1.0), 1.0)
    # The square, as few heavy rows make tails that are not normal.
    heavy = quotient(last[5], last[2], otherwise=1.0) ** 2
    least = np.maximum(_LEAST_VARIANCE * more * heavy, _SIDE * last[2])
    enough = np.minimum(path[2], last[2] - path[2]) >= least
    return (inverse @ bridge[..., None])[..., 0], more[..., None, None] * covariance, enough


def _wald(change: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray((change * (_inverse(covariance) @ change[..., None])[..., 0]).sum(axis=-1))


def _inverse(matrix: FloatArray) -> FloatArray:
    """Inverses of symmetric matrices, shape (..., 2, 2), of which those without rows are 0."""
    (a, b), (_, c) = np.moveaxis(matrix, (-2, -1), (0, 1))
    determinant = a * c - b * b
    adjugate = np.moveaxis(np.array([[c, -b], [-b, a]]), (0, 1), (-2, -1))
    determinant = np.where(determinant > 1e-12 * a * c, determinant, 0.0)
    return quotient(adjugate, determinant[..., None, None], otherwise=0.0)


# ---- Means of values that may have heavy tails


#: Fewest rows of a slice, and of the others, and fewest clusters; level of all slices together.
LEAST_ROWS, LEAST_CLUSTERS, LEVEL = 100, 30, 0.01
#: Permutations, of at most about so many rows, or clusters times levels; and the statistic below which none are made.
PERMUTATIONS, MOST_PERMUTED, TOO_SMALL = 999, 50_000, 3.0


def p_of_means(
    values: FloatArray,
    factors: Sequence[Factor],
    weights: FloatArray,
    cluster: IntArray | None,
    *,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Mean of values in each slice of some columns, and p-values of all slices together that it is neither 0 nor that of the other rows.

    The smaller of two studentised statistics (intersection-union; Berger 1982) is judged by the largest one of any slice after rows, or
    whole clusters, were permuted among the slices: tails of differences of log losses are too heavy for Student's t. The p-value is 1
    where both have not the same sign. Shapes are (n,) and (S,), the slices of the columns one after the other.
    """
    # Rows of a cluster are side by side, so that permuted clusters meet the slices of others.
    unit = np.arange(values.size) if cluster is None else cluster
    order = np.argsort(unit, kind="stable")
    unit, w, v = unit[order], weights[order], values[order]
    codes = [(factor.codes[order], len(factor.levels)) for factor in factors]
    clustered = cluster is not None
    mean, own, other, large = _studentised(codes, unit, w, v, clustered)
    for side in (v > 0, v < 0):
        counts = [np.bincount(code[side], minlength=size) for code, size in codes]
        # Fewest rows of a slice with a value above 0, and below: of few large ones, by chance, none may be there, whatever the mean is.
        large &= np.concatenate(counts) >= 10
    named = large & (own * other > 0)
    observed = np.where(named, np.minimum(np.abs(own), np.abs(other)), 0.0)
    if observed.max(initial=0) < TOO_SMALL:
        return mean, np.ones(mean.shape)
    rng, units = np.random.default_rng([seed, 5]), int(unit.max()) + 1
    cells = max(v.size, units * max(size for _, size in codes) if clustered else 0)
    most = max(units * MOST_PERMUTED // cells, 2 * LEAST_CLUSTERS)
    some = np.flatnonzero(rng.permutation(units)[unit] < most)
    codes, w, v = [(code[some], size) for code, size in codes], w[some], v[some]
    unit = np.unique(unit[some], return_inverse=True)[1]
    units = int(unit.max()) + 1
    # Slices of which too few rows are permuted: their statistic would be the largest, whatever the others are.
    large &= _studentised(codes, unit, w, v, clustered)[3]
    named &= large
    statistics = [np.where(named, observed, 0.0)]
    for number in range(PERMUTATIONS):
        blocks.checkpoint(f"permuting rows among slices: {number:,} of {PERMUTATIONS:,}")
        order = rng.permutation(units if clustered else v.size)
        if clustered:
            order = np.argsort(order[unit], kind="stable")
        drawn = _studentised(codes, unit[order], w[order], v[order], clustered)[2]
        statistics.append(np.where(large, np.abs(drawn), 0.0))
    _, adjusted = max_t(np.stack(statistics, axis=1))
    return mean, np.where(named, adjusted, 1.0)


def _studentised(
    codes: Sequence[tuple[IntArray, int]],
    unit: IntArray,
    weights: FloatArray,
    values: FloatArray,
    clustered: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Mean in each slice, it and its difference from that of the other rows in standard errors, and whether both have enough rows, shape (S,) each.

    Each of `codes` are those of a column, with their number; standard errors are those of sums over clusters (Liang & Zeger 1986).
    """
    found = []
    products = weights, weights * values, weights**2, weights**2 * values, (weights * values) ** 2
    for code, size in codes:
        count = np.bincount(code, minlength=size)
        large = np.minimum(count, code.size - count) >= LEAST_ROWS
        if clustered:
            place, shape = unit * size + code, (int(unit.max()) + 1, size)
            of = [np.bincount(place, p, shape[0] * size).reshape(shape) for p in products[:2]]
            parts = [of, [p.sum(axis=1, keepdims=True) - p for p in of]]
            sums = [[p.sum(axis=0) for p in part] for part in parts]
            means = [quotient(total, mass) for mass, total in sums]
            first, second = (
                (total - m * mass) / blocks.denominators(whole)
                for (mass, total), m, (whole, _) in zip(parts, means, sums, strict=True)
            )
            own, both = np.square(first).sum(axis=0), np.square(first - second).sum(axis=0)
            for mass, _ in parts:
                large &= np.count_nonzero(mass > 1e-9, axis=0) >= LEAST_CLUSTERS
        else:
            of = [np.bincount(code, p, size) for p in products]
            sums = [of, [p.sum() - p for p in of]]
            means = [quotient(p[1], p[0]) for p in sums]
            own, rest = (
                quotient(np.maximum(p[4] - 2 * m * p[3] + m**2 * p[2], 0), p[0] ** 2)
                for p, m in zip(sums, means, strict=True)
            )
            both = own + rest
        gap = means[0] - means[1]
        t = (quotient(d, np.sqrt(v), otherwise=0.0) for d, v in ((means[0], own), (gap, both)))
        found.append((means[0], *t, large))
    mean, own, other, enough = map(np.concatenate, zip(*found, strict=True))
    return np.nan_to_num(mean), np.nan_to_num(own), np.nan_to_num(other), enough

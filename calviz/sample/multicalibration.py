"""Multicalibration: the error over all segments of the rows as one number, and the segments where it is largest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from calviz.core import errors, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, quotient
from calviz.core.entry_specs import Interval, NoiseFloor, takes_weights
from calviz.core.errors import PREDICTED, SCORE, DataFrame, claim, data_frame, picked
from calviz.core.events import BinaryEvents, Reduction, cells_of
from calviz.core.p_values import above
from calviz.core.words import amount, counted, p_number, points, shorten
from calviz.sample import metric_results, slice_tests
from calviz.sample.error_bars import CHANGES, LEVEL, SEGMENTS
from calviz.sample.sample import AnyData, Sample, Where, rows_where, where_words

#: Rows of a slice at least.
LEAST_ROWS = 50
#: Expected variance of the hits of a segment below which it is not measured: its tails are hardly known.
LEAST_VARIANCE = 5.0


@dataclass(frozen=True)
class Segment:
    """Rows that share one or two values, or all rows.

    Attributes
    ----------
    where : tuple of (str, str)
        Empty for all rows.
    rows : int
    ecce : float
        Estimated cumulative calibration error: largest minus smallest sum of hits minus scores, over the rows in the order of their
        scores, divided by the number of rows (or the sum of their weights).
    sigma : float
        The same, in standard deviations of the whole sum if the model were calibrated.
    p_value, adjusted : float
        Its p-value, and the one adjusted for all segments (Šidák).
    gap : float
        Mean score minus share of hits.
    interval : Interval
        Of the gap, adjusted for all segments (Bonferroni).
    """

    where: Where
    rows: int
    ecce: float
    sigma: float
    p_value: float
    adjusted: float
    gap: float
    interval: Interval

    @property
    def name(self) -> str:
        """The condition in words."""
        return where_words(self.where, 10_000) or "all rows"


@dataclass(frozen=True, repr=False)
class Multicalibration(metric_results.Displayed):
    """The calibration error over all segments as one number.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    reduction : str
    mce : float
        Multicalibration error: the largest `Segment.sigma`, times the standard deviation of all rows together.
    sigma : float
        The largest `Segment.sigma` itself.
    noise_floor : NoiseFloor
        Mean and 95 % quantile of `mce` for a calibrated model, as if segments were independent, and the p-value of the largest.
    interval : Interval
        Of `mce`: it holds the largest error of the true probabilities, in the same units.
    level : float
    segments : tuple of Segment
        Those with the largest `Segment.sigma` first, at most 20.
    pairs : bool
        Whether pairs of columns are among them.
    measured, small : int
        Number of segments that were measured, and that have too few rows or expected hits.
    skipped : tuple of str
        Columns that were left out, each with its reason.
    beyond : Segment or None
        If the largest error is that of all rows, and beyond noise: the segment with the largest error after scores are moved by the gap of
        all rows with about the same scores, if that is beyond noise too.
    """

    name: str
    rows: int
    reduction: str
    mce: float
    sigma: float
    noise_floor: NoiseFloor
    interval: Interval
    level: float
    segments: tuple[Segment, ...]
    pairs: bool
    measured: int
    small: int
    skipped: tuple[str, ...] = ()
    beyond: Segment | None = None

    @property
    def off(self) -> tuple[Segment, ...]:
        """Segments that are off beyond noise, all segments taken together, at 0.2 %."""
        return tuple(s for s in self.segments if s.adjusted <= SEGMENTS)

    @property
    def worst_where(self) -> Where:
        """The condition of the segment with the largest error, beyond that of all rows where these have it; () if none is."""
        return self.segments[0].where or (self.beyond.where if self.beyond else ())

    @claim(
        "multicalibration",
        says="Over all rows and 59 segments: multicalibration error 4.3 points, beyond noise; largest for site = c; or: off as a whole, and beyond that ...",
        chosen="the segment with the largest error, of all single values and pairs of values; where that is all rows, again with scores that are right for them",
        adjusted="Šidák over the segments, tails with the skewness of the hits, at 0.2 %",
    )
    def sentences(self) -> tuple[str, str]:
        """The number and whether it is beyond noise; and the worst segment, "" within noise."""
        floor, worst = self.noise_floor, self.segments[0]
        beyond = floor.p_value <= SEGMENTS
        text = (
            f"Over all rows and {counted(self.measured - 1, 'segment')}{', with pairs of columns' if self.pairs else ''}: multicalibration error {points(self.mce)} points (95 % CI "
            f"{points(self.interval.low)} to {points(self.interval.high)}; noise floor {points(floor.mean)}), "
            f"{'beyond' if beyond else 'within'} noise (p {p_number(floor.p_value)}{'' if beyond else f', limit {SEGMENTS:g}'})."
        ).replace("95 %", f"{100 * self.level:g} %")
        if not beyond:
            return text, ""
        if worst.where:
            return text, f"Largest for {_named(worst)}: {_gap_words(worst)}."
        whole = f"The scores are off as a whole: no segment is as surely off as all rows, {_gap_words(worst)}."
        if self.beyond is None:
            return text, f"{whole} No segment is found off beyond that."
        one = self.beyond
        low, high = one.interval if one.gap > 0 else one.interval.turned
        return text, (
            f"{whole} Beyond that, most clearly {_named(one)}: mean score minus hits is "
            f"{points(abs(one.gap))} points {'larger' if one.gap > 0 else 'smaller'} than for all rows with such scores "
            f"({points(low)} to {points(high)})."
        )

    def reading(self) -> str:
        """Both sentences."""
        return " ".join(filter(None, self.sentences()))

    def summary(self) -> metric_results.Summary:
        """Summarise the result: the number, and the segments with the largest errors."""
        return metric_results.Summary(
            title=f"of '{shorten(self.name)}': {self.reading()}",
            header=("segment", "rows", "ECCE (points)", "sigma", "adjusted p", "gap (points)"),
            rows=tuple(
                (
                    s.name,
                    f"{s.rows:,}",
                    points(s.ecce),
                    f"{s.sigma:.2f}",
                    p_number(s.adjusted),
                    points(s.gap),
                )
                for s in self.segments
            ),
            notes=self.skipped,
        )

    def frame(self) -> DataFrame:
        """Return a table with one row per segment, the largest error first."""
        return data_frame(
            {
                "segment": s.name,
                **picked(s, "rows ecce sigma p_value"),
                "adjusted_p_value": s.adjusted,
                "gap": s.gap,
                "low": s.interval.low,
                "high": s.interval.high,
            }
            for s in self.segments
        )


def multicalibration(
    data: AnyData,
    columns: Iterable[str] | None = None,
    *,
    pairs: bool | None = None,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    min_rows: int = 50,
    level: float = LEVEL,
    edges: Mapping[str, Iterable[object]] | None = None,
) -> Multicalibration:
    """Measure the calibration error over all segments of the rows as one number.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
    columns, reduction, split, min_rows, edges
        As in `calviz.slices`; all rows together are a segment too.
    pairs : bool, optional
        Whether to include the combinations of two columns; if left out, where their number times that of the rows is at most 500 million.
    level : float
        Level of the intervals.

    Returns
    -------
    Multicalibration

    Raises
    ------
    NotAvailable
        If there is no column, no segment can be measured, or rows are clustered.
    OptionError
        For an unknown column or a value out of range.

    Notes
    -----
    Under calibration the sums of hits minus scores are nearly a Brownian motion, whose range R exceeds r with probability
    ``8 (1 - Phi(r)) - 16 (1 - Phi(2 r)) + ...`` (Feller 1951). p-values are four times the tails on both sides, gamma instead of normal
    where events are rare. The interval adds and subtracts the quantile of the largest range of all segments. Above 2,048 distinct
    scores, neighbours are summed first.

    References
    ----------
    Guy et al. 2025, *Measuring multi-calibration*; Arrieta-Ibarra et al. 2022 (ECCE-R).
    """
    errors.check_level(level)
    if min_rows < 2:
        raise errors.OptionError(f"'min_rows' must be 2 or more, got {min_rows}.")
    sample = Sample.of(data, split=split, reduction=reduction)
    if edges:
        sample = sample.with_data(predictions.cut_columns(sample.data, edges))
    chosen = predictions.chosen_columns(sample.data, columns)
    if pairs is None:
        # Pairs of columns times rows up to which pairs are measured by default: a few seconds.
        pairs = len(chosen) * (len(chosen) - 1) / 2 * sample.data.n <= 500_000_000
    pairs = pairs and len(chosen) > 1
    return sample.view(_measured, columns=chosen, pairs=pairs, min_rows=min_rows, level=level)


def _named(one: Segment) -> str:
    return f"{shorten(one.name, 80)}, {counted(one.rows, 'row')}"


def _gap_words(one: Segment) -> str:
    """The gap with its interval; where errors of both signs cancel in it, this first."""
    low, high = one.interval
    both = "too high for some scores and too low for others; " if low <= 0 <= high else ""
    return (
        f"{both}mean score minus hits {points(one.gap)} points ({points(low)} to {points(high)}, "
        "adjusted for all segments)"
    )


def beyond_noise(
    sample: Sample, columns: Sequence[str], min_rows: int = LEAST_ROWS
) -> Multicalibration | None:
    """The error over all segments of one or two columns; None if it is within noise."""
    own = (PREDICTED, SCORE, *predictions.cycles(sample.data))
    try:
        found = multicalibration(sample, [n for n in columns if n not in own], min_rows=min_rows)
    except errors.NotAvailable:
        return None
    return found if found.noise_floor.p_value <= SEGMENTS else None


def multicalibration_words(sample: Sample, columns: tuple[str, ...]) -> tuple[str, str]:
    """`Multicalibration.sentences` of pages and reports; empty if it cannot be measured, or within noise, where nothing follows."""
    columns = tuple(name for name in columns if name not in (PREDICTED, SCORE))
    try:
        found = multicalibration(sample, columns) if columns else None
    except errors.NotAvailable:
        found = None
    # Beside all rows, which the verdict is about.
    said = ("", "") if found is None or found.measured == 1 else found.sentences()
    return said if said[1] else ("", "")


#: Segments in the result.
_NAMED = 20


@takes_weights
def _measured(
    sample: Sample, *, columns: tuple[str, ...], pairs: bool, min_rows: int, level: float
) -> Multicalibration:
    data, weights = sample.data, sample.weights
    if sample.row_draws.cluster is not None:
        raise errors.NotAvailable(
            "the multicalibration error of clustered rows has no known noise; test slices."
        )
    factors, skipped = predictions.sliced_columns(data, columns, min_rows)
    cell, cells = cells_of(sample.scored.score)
    rows = _Divided(
        factors, slice_tests.row_terms(sample.scored, weights), cell, cells, pairs, min_rows
    )
    found = _segments(rows)
    if not found.where:
        raise errors.NotAvailable(
            f"no segment has {min_rows:,} rows or more and an expected variance of hits of {LEAST_VARIANCE:g}."
        )
    segments = [_segment(rows, found, i, level) for i in found.order[:_NAMED].tolist()]
    whole = rows.terms[0][3]
    assert whole is not None
    unit = float(np.sqrt(whole.sum()) / (data.n if weights is None else weights.sum()))
    mean, q95, quantile = _largest_range(len(found.where), level)
    largest, p = segments[0].sigma, float(found.adjusted.min())
    beyond = None
    if factors and not segments[0].where and p <= SEGMENTS:
        as_all = as_all_rows(sample.scored, cell, cells, weights)
        rows = rows._replace(terms=slice_tests.row_terms(as_all, weights))
        found_beyond = _segments(rows, everywhere=False)
        if found_beyond.where:
            beyond = _segment(rows, found_beyond, int(found_beyond.order[0]), level)
    return Multicalibration(
        name=data.name,
        rows=data.rows,
        reduction=sample.reduction.key,
        mce=largest * unit,
        sigma=largest,
        noise_floor=NoiseFloor(mean * unit, q95 * unit, p),
        interval=Interval(max(largest - quantile, 0.0) * unit, (largest + quantile) * unit),
        level=level,
        segments=tuple(segments),
        pairs=pairs,
        measured=len(found.where),
        small=found.small,
        skipped=skipped,
        beyond=beyond if beyond is not None and beyond.adjusted <= SEGMENTS else None,
    )


class _Divided(NamedTuple):
    """The rows and how they are divided: columns, terms, the cell of each row in the order of the scores."""

    factors: dict[str, Factor]
    terms: slice_tests.RowTerms
    cell: IntArray
    cells: int
    pairs: bool
    min_rows: int


class _Segments(NamedTuple):
    """Segments with enough rows, as columns and number of the combination of values, and their numbers, shape (S,)."""

    where: list[tuple[tuple[str, ...], int]]
    rows: FloatArray
    ecce: FloatArray
    sigma: FloatArray
    p_values: FloatArray
    adjusted: FloatArray
    #: The largest error first.
    order: IntArray
    small: int


def _segments(rows: _Divided, *, everywhere: bool = True) -> _Segments:
    """Measure all segments, with all rows together or without."""
    of_rows, _, of_weighted = rows.terms
    added = [of_rows[0], *of_weighted[:1], of_rows[3], of_rows[4]]
    one = np.zeros_like(rows.cell)
    where: list[tuple[tuple[str, ...], int]] = []
    kept, small = [], 0
    crossed = len(rows.factors) * rows.pairs
    tables = slice_tests.crossed_sums(rows.factors, added, crossed=crossed, bin_of=one, bins=1)
    sums_of = {names: table[:, 0] for names, table in tables if names or everywhere}
    for (names, sums), spread in zip(sums_of.items(), _ranges(rows, list(sums_of)), strict=True):
        large = np.flatnonzero((sums[0] >= rows.min_rows) & (sums[-2] >= LEAST_VARIANCE))
        small += slice_tests.number_of_slices(sums[0], names) - large.size
        where += [(names, i) for i in large.tolist()]
        kept.append(np.vstack([sums[[0, -3, -2, -1]], spread])[:, large])
    count, mass, variance, third, spread = np.concatenate(kept, axis=1)
    sigma = spread / np.sqrt(variance)
    tails = above(spread, 0.0, variance, third) + above(spread, 0.0, variance, -third)
    p_values = np.minimum(4 * tails, 1.0)
    adjusted = -np.expm1(len(where) * np.log1p(-np.minimum(p_values, 1 - 1e-16)))
    # Segments of the same rows differ in the last digits of their sums.
    order = np.lexsort((-mass, -np.round(sigma, 9)))
    return _Segments(where, count, spread / mass, sigma, p_values, adjusted, order, small)


def _segment(rows: _Divided, found: _Segments, i: int, level: float) -> Segment:
    """Describe one segment, with the interval of its gap adjusted for all."""
    names, number = found.where[i]
    codes = slice_tests.crossed_codes([rows.factors[name] for name in names], rows.cell.size)
    own = np.flatnonzero(codes == number)
    of_rows, off, of_weighted = rows.terms
    terms = [None if term is None else term[own] for term in of_rows]
    some = terms, off[own], [term[own] for term in of_weighted]
    sums = slice_tests.sums_of_terms(some, np.zeros(own.size, np.intp), 1)
    gap = float(sums.gap[0])
    half = float(ndtri(1 - (1 - level) / 2 / len(found.where)) * sums.spread[0])
    numbers = (found.ecce, found.sigma, found.p_values, found.adjusted)
    ecce, sigma, p, adjusted = (float(column[i]) for column in numbers)
    where = slice_tests.where_of(names, rows.factors, number)
    interval = Interval(gap - half, gap + half)
    return Segment(where, int(found.rows[i]), ecce, sigma, p, adjusted, gap, interval)


#: Rows that are added up at once, so that what they need stays in the caches of the processor.
_BLOCK = 1 << 16


def _ranges(rows: _Divided, groups: list[tuple[str, ...]]) -> list[FloatArray]:
    """Largest minus smallest sum of hits minus scores, in the order of the scores, of each combination of values; shape (S,) for each group."""
    order = np.argsort(rows.cell.astype(np.uint16), kind="stable")
    cell, off = rows.cell[order], -rows.terms[1][order]
    codes: dict[str, IntArray] = {
        name: factor.codes.astype(np.min_scalar_type(len(factor.levels)))[order]
        for name, factor in rows.factors.items()
    }
    sizes = [[len(rows.factors[name].levels) for name in names] for names in groups]
    # Highest and lowest sum so far, and the last one.
    so_far = [np.zeros((3, int(np.prod(size, dtype=np.intp)))) for size in sizes]
    starts = np.searchsorted(cell, np.arange(rows.cells + 1))
    first = 0
    while first < rows.cells:
        # Whole cells: a sum counts when all rows of its score are in it.
        end = max(int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1, first + 1)
        block = slice(starts[first], starts[end])
        here: IntArray = cell[block] - first
        summand = off[block]
        columns = {name: column[block] for name, column in codes.items()}
        for names, size, sums in zip(groups, sizes, so_far, strict=True):
            high, low, last = sums
            code = np.zeros(summand.size, np.intp)
            for name, levels in zip(names, size, strict=True):
                code *= levels
                code += columns[name]
            if last.size * (end - first) > 2 * summand.size:
                _add_few(sums, code, here, summand)
                continue
            code *= end - first
            code += here
            of_cells = np.bincount(code, summand, minlength=last.size * (end - first))
            path: FloatArray = of_cells.astype(np.float64, copy=False).reshape(last.size, -1)
            path[:, 0] += last
            path.cumsum(axis=1, out=path)
            np.maximum(high, path.max(axis=1), out=high)
            np.minimum(low, path.min(axis=1), out=low)
            last[:] = path[:, -1]
        first = end
    return [high - low for high, low, _ in so_far]


def _add_few(sums: FloatArray, code: IntArray, cell: IntArray, summand: FloatArray) -> None:
    """Go on with the sums, in place, where there are fewer rows than combinations and cells; rows, shape (n,), are in the order of the cells."""
    high, low, last = sums
    order = np.argsort(code.astype(np.min_scalar_type(last.size)), kind="stable")
    code, cell, path = code[order], cell[order], np.cumsum(summand[order])
    of_next = np.flatnonzero((np.diff(code) != 0) | (np.diff(cell) != 0))
    ends = np.append(of_next, code.size - 1)
    code, path = code[ends], path[ends]
    starts = np.append(0, np.flatnonzero(np.diff(code)) + 1)
    own, until = code[starts], path[np.append(starts[1:], code.size) - 1]
    before = np.append(0.0, until[:-1]) - last[own]
    high[own] = np.maximum(high[own], np.maximum.reduceat(path, starts) - before)
    low[own] = np.minimum(low[own], np.minimum.reduceat(path, starts) - before)
    last[own] = until - before


#: Intervals of the scores whose error all rows share.
_SHARED = 50


def as_all_rows(
    events: BinaryEvents, cell: IntArray, cells: int, weights: FloatArray | None
) -> BinaryEvents:
    """The same events with scores that are right for all rows together: moved by the gap of rows with about the same scores, in the same of `cells`; `cell`, `weights`: shape (n,)."""
    part = cell * min(cells, _SHARED) // cells
    w = np.ones(cell.size) if weights is None else weights
    score = events.score.astype(np.float64)
    gap = quotient(np.bincount(part, w * (events.hit - score)), np.bincount(part, w), otherwise=0.0)
    return replace(events, score=np.clip(score + gap[part], 0, 1))


def way_of_rows(sample: Sample, outside: BoolArray, cell: IntArray, rate: float) -> str:
    """In which way rows are off together: by their mean, or else by the largest error over any range of their scores; "" if not beyond chance; `outside`, `cell`: shape (n,)."""
    events, terms = sample.scored, slice_tests.row_terms(sample.scored, sample.weights)
    codes = np.where(outside, 0, 1)
    sums = slice_tests.sums_of_terms(terms, codes, 2, sample.row_draws.cluster)
    if slice_tests.p_against_calibrated(sums, events, codes, sample.weights)[0] <= rate:
        gap = float(sums.gap[0])
        return f"too {'high' if gap > 0 else 'low'} by {amount(points(abs(gap)))} points"
    path = np.cumsum(np.bincount(cell, terms[1] * outside))
    spread = max(path.max(), 0.0) - min(path.min(), 0.0)
    # A sum as large as the range of the path, on the side of the heavier tail.
    largest = replace(sums, score=sums.hits + np.where(sums.third < 0, spread, -spread))
    p = slice_tests.p_against_calibrated(largest, events, codes)[0]
    return "off in places" * bool(4 * p <= rate)


def range_exceeds(r: FloatArray) -> FloatArray:
    """Probability that the range of a Brownian motion on [0, 1] is larger than r, shape (...), for r of 0.3 or more."""
    k = np.arange(1, 60)
    terms = (-1.0) ** (k + 1) * k * ndtr(-k * r[..., None])
    return np.asarray(np.clip(8 * terms.sum(axis=-1), 0, 1))


def _largest_range(segments: int, level: float) -> tuple[float, float, float]:
    """Mean, 95 % quantile and quantile at a level of the largest of independent ranges of Brownian motions."""
    r = np.linspace(0.3, 12, 5_000)
    below = (1 - range_exceeds(r)) ** segments
    mean = 0.3 + float(np.trapezoid(1 - below, r))
    q95, quantile = (float(r[np.searchsorted(below, share)]) for share in (0.95, level))
    return mean, q95, quantile


# ---- Slices that change over time

#: Probabilities nearer to 0 or 1 count as this; and steps of Newton's method to the offset of a slice.
_LEAST, _OWN_STEPS = 1e-6, 5


@takes_weights
def changed_slices(sample: Sample) -> list[tuple[float, float, Where]]:
    """The slices of the default columns whose rows began to follow the scores otherwise than all other rows did, most surely first.

    Beside single values, the pair of values with the largest error is tested, where that is beyond noise. Returns the p-value of each, the
    largest with which any would be among them (Bonferroni), and its condition.
    Without times, and of a profile, there are none.
    """
    data = sample.data
    if data.times is None or data.cells is not None:
        return []
    p_values = _p_of_changes(sample)
    factors, _ = predictions.sliced_columns(data, predictions.usual_columns(data), LEAST_ROWS)
    tested: list[tuple[float, Where]] = [
        (float(p), ((name, factor.levels[i]),))
        for name, factor in factors.items()
        for i, p in enumerate(p_values(factor))
        if p == p
    ]
    # Rows that no column names alone are looked at, too.
    over_all = beyond_noise(sample, predictions.usual_columns(data))
    if over_all is not None and len(pair := over_all.worst_where) > 1:
        tested += p_inside(sample, [pair])
    level = CHANGES / max(len(tested), 1)
    return sorted((p, level, where) for p, where in tested if p <= level)


def p_inside(sample: Sample, wheres: Sequence[Where]) -> list[tuple[float, Where]]:
    """The p-value that each slice changed otherwise than the other rows, and its condition."""
    p_values = _p_of_changes(sample)
    inside = (np.asarray(rows_where(sample.data, where)).astype(np.intp) for where in wheres)
    p = (p_values(Factor(codes, ("", "inside")))[1] for codes in inside)
    return [(float(np.nan_to_num(one, nan=1.0)), w) for one, w in zip(p, wheres, strict=True)]


def _p_of_changes(sample: Sample) -> Callable[[Factor], FloatArray]:
    """`p_of_changes` of the levels of a column, from probabilities that hold for all rows together, moved to those of each level: one that is far off would seem to change otherwise where all change."""
    weights, cluster, scored = sample.weights, sample.row_draws.cluster, sample.scored
    q = as_all_rows(scored, *cells_of(scored.score), weights).score.clip(_LEAST, 1 - _LEAST)
    _, day = np.unique(np.asarray(sample.data.times).astype("datetime64[D]"), return_inverse=True)

    def p_values(factor: Factor) -> FloatArray:
        own, codes, w = q, factor.codes, sample.row_weights
        for _ in range(_OWN_STEPS):
            sums = (np.bincount(codes, w * v) for v in (scored.hit - own, own * (1 - own)))
            step = np.clip(quotient(*sums, otherwise=0.0), -1, 1)[codes]
            own = expit(logit(own) + step).clip(_LEAST, 1 - _LEAST)
        return slice_tests.p_of_changes(scored.hit - own, own, day, factor, weights, cluster)

    return p_values

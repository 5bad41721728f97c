"""Slices: groups of rows by one or two columns, and for which of them the probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from calviz.core import blocks, errors, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, quotient
from calviz.core.entry_specs import Interval, takes_weights
from calviz.core.errors import NotAvailable, claim, data_frame, picked
from calviz.core.events import (
    BinaryEvents,
    BinNumber,
    Reduction,
    assign,
    cells_of,
    equal_width_edges,
)
from calviz.core.features import Cut
from calviz.core.p_values import LARGE, above, benjamini_hochberg, tails_of_hits
from calviz.core.predictions import Dataset
from calviz.core.profile import Profile
from calviz.core.words import condition, counted, percent, points, shorten
from calviz.sample.error_bars import FEWEST_CLUSTERS, SEGMENTS, SLICES, sums_by_cluster
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Sample, Where, rows_where

if TYPE_CHECKING:
    import pandas as pd

Against = Literal["calibrated", "rest"]


@dataclass(frozen=True)
class Slice:
    """Rows that share the values of one or two columns.

    Attributes
    ----------
    where : tuple of (str, str)
        One or two pairs of column and value.
    rows : int
    score, hits : float
        Mean score and share of hits.
    gap : float
        Score minus hits: above 0 overconfident, below 0 underconfident.
    interval : Interval
        Interval of the gap by the normal approximation, not adjusted for the number of slices.
    p_value : float
        Two-sided p-value of the gap (see `Slices.against`).
    adjusted : float
        The p-value adjusted by Benjamini and Hochberg; the slice is off if it is at most the false discovery rate.
    ece, ece_noise : float
        ECE, and its mean for a calibrated model on the same number of rows.
    """

    where: Where
    rows: int
    score: float
    hits: float
    gap: float
    interval: Interval
    p_value: float
    adjusted: float
    ece: float
    ece_noise: float

    @property
    def name(self) -> str:
        """The condition in words: "league = Serie A, age in (23, 31]"."""
        return ", ".join(condition(column, value) for column, value in self.where)


@dataclass(frozen=True, repr=False)
class Slices(Displayed):
    """All slices with enough rows, the most certainly off first.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    gap : float
        Gap of all rows together.
    reduction : str
    against : {"calibrated", "rest"}
        What a slice is tested against: a calibrated model, or the rows that are not in it.
    min_rows : int
    rate : float
        Controlled false discovery rate.
    bins : int
        Number of bins of the ECE.
    slices : tuple of Slice
    small : int
        Number of slices with too few rows.
    apart : bool
        Whether the slice that is most surely off differs from the rest, which is not off.
    differ : tuple of (str, str) pairs
        Conditions of the slices among `off` that also differ from the other rows with about the same scores beyond chance: one after the
        other, the most surely first, each without the rows of those before it. None of clustered rows.
    rest : str
        In which way the rows of none of these are off together: "too high by 5.0 points", "off in places"; "" if that is not found.
    explained : frozenset of (str, str) pairs
        Conditions of slices that would not be off but for rows of the one that is most surely off.
    skipped : tuple of str
        Columns that were left out, each with its reason.
    cuts : dict of str to Cut
        How the columns of numbers, of dates and of many values are cut.
    """

    name: str
    rows: int
    gap: float
    reduction: str
    against: Against
    min_rows: int
    rate: float
    bins: int
    slices: tuple[Slice, ...]
    small: int
    skipped: tuple[str, ...] = ()
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    apart: bool = False
    differ: tuple[Where, ...] = ()
    rest: str = ""
    explained: frozenset[Where] = frozenset()

    @claim("slices")
    def summary(self) -> Summary:
        """Summarise the result: the slices, the most certainly off first."""
        shown = self.slices[:20]
        more = len(self.slices) - len(shown)
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.slices), 'slice')}, {len(self.off)} off beyond chance",
            header=("slice", "rows", "score", "hits", "gap (points)", "off"),
            rows=tuple(
                (
                    s.name,
                    f"{s.rows:,}",
                    percent(s.score, 2),
                    percent(s.hits, 2),
                    points(s.gap),
                    self.word(s),
                )
                for s in shown
            ),
            notes=tuple(
                filter(None, (f"and {more} more" * (more > 0), self.remark, *self.skipped))
            ),
        )

    @property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, adjusted for all slices, and not only by rows of the one that is most surely off."""
        beyond = (s for s in self.slices if s.adjusted <= self.rate)
        return tuple(s for s in beyond if s.where not in self.explained)

    @property
    def named(self) -> tuple[Slice, ...]:
        """The slices to look at: those that are off or, where the rest is off too, those that differ from it."""
        return tuple(s for s in self.off if not self.rest or s.where in self.differ)

    def word(self, one: Slice) -> str:
        """Whether a slice is off: "yes", "as the rest", or ""."""
        return "" if one not in self.off else "yes" if one in self.named else "as the rest"

    @property
    def counted_off(self) -> str:
        """How many are off: "1 of 20 slices is off"."""
        n = len(self.off)
        return f"{n:,} of {counted(len(self.slices), 'slice')} {'is' if n == 1 else 'are'} off"

    @property
    @claim("slices")
    def furthest(self) -> tuple[str, str]:
        """The slice that is most surely off, and in which way: "ward = ICU", "too low"; its gap, where it was chosen, looks larger than it is."""
        worst = self.off[0]
        where = " and ".join(shorten(condition(*one, 40), 40) for one in worst.where)
        return where, f"too {'high' if worst.gap > 0 else 'low'}"

    @property
    @claim("slices")
    @claim(
        "slices-that-differ",
        says="Unlike the rest: site = C; other rows: too high by 5.0 points",
        chosen="the slices that differ most surely, one after the other, of those that are off",
        adjusted="scores moved by the gap of the other rows with about the same scores; Benjamini and Hochberg at 0.5 % over all slices each time",
    )
    def headline(self) -> str:
        """How many are off, and which one most surely; in which way, if tested against a calibrated model. Where the rest is off too, which differ from it."""
        if self.rest:
            if not self.named:
                return f"All rows: {self.rest}; no slice is off beyond that"
            others = len(self.named) - 1
            more = f" and {others:,} more" * (others > 0)
            return f"Unlike the rest: {self.furthest[0]}{more}; other rows: {self.rest}"
        way = f": {self.furthest[1]}" * (self.against == "calibrated")
        return f"{self.counted_off} beyond chance, most surely {self.furthest[0]}{way}"

    @property
    @claim("slices")
    def remark(self) -> str:
        """Say how many slices are off as the rest is, or would not be off without the rows of the first; "" if none."""
        named, alike = len(self.named), len(self.off) - len(self.named)
        slices = counted(alike or len(self.explained), f"{'other ' * bool(named)}slice")
        if alike:
            are = "is" if alike == 1 else "are"
            return f"{slices} {are} off as {'the other' if named else 'all'} rows are."
        without = f"Without the rows of {self.furthest[0]}, {slices} would" if named else ""
        return f"{without} not be off." if self.explained else ""

    @property
    def marks(self) -> tuple[str, str]:
        """What is true of the slices that are named, and of the others."""
        if self.rest:
            return "differs from the rest beyond chance", "as the rest"
        return "off beyond chance", "may be chance"

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per slice."""
        off = {s.where for s in self.off}
        return data_frame(
            {"slice": s.name, **picked(s, "rows score hits gap")}
            | {"low": s.interval.low, "high": s.interval.high, "p_value": s.p_value}
            | {"adjusted_p_value": s.adjusted, "off": s.where in off}
            | {"ece": s.ece, "ece_noise": s.ece_noise, "differs": s.where in self.differ}
            for s in self.slices
        )


#: The false discovery rate of the default slices. The findings, the tab Groups and the report all start with these, so
#: that they agree.
USUAL_RATE = SLICES - SEGMENTS
#: Intervals of the scores in which a slice is compared with the other rows.
_PARTS = 20
#: What is left of the gap of a slice, without the rows of another one that explains it, is less than this share of it.
LEFT = 0.85


@claim(
    "slices",
    says="2 of 10 slices by 'region' are off beyond chance",
    chosen="the slices that are off, of all with 50 rows or more, of numbers too",
    adjusted="Benjamini and Hochberg at 0.5 %; tails of weighted sums by convolution",
)
def usual_slices(sample: Sample) -> Slices | None:
    """Slices of the default columns, one column at a time, each tested against a calibrated model; None without groups.

    The false discovery rate is controlled (Benjamini and Hochberg). Where nothing is off, every discovery is a false one, so
    that the rate is then the probability that any slice is reported as off.
    """
    columns = predictions.usual_columns(sample.data)
    return slices(sample, columns, pairs=False, rate=USUAL_RATE) if columns else None


def slices(
    data: Dataset | Sample | Profile,
    columns: Iterable[str] | None = None,
    *,
    pairs: bool = True,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    against: Against = "calibrated",
    min_rows: int = 50,
    rate: float = 0.05,
    level: float = 0.95,
    bins: BinNumber | None = None,
    edges: Mapping[str, Iterable[object]] | None = None,
) -> Slices:
    """Measure all groups of rows that the columns define, and find those that are off beyond chance.

    Numbers and dates are cut at their deciles, with ties together; of a text with more than 50 values the most frequent 20 are slices,
    and all others one.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        With columns of groups, numbers or texts. For a sample, its own reduction, rows and bins are used where they are left out below, and
        the results are cached with it.
    columns : iterable of str, optional
        Columns of groups, numbers or texts, or the time; all but the time if left out.
    pairs : bool
        Whether to include the combinations of two columns.
    reduction : Reduction or str, optional
        Which (score, hit) pair is judged; the positive class of two if left out, else the top label.
    split : str, optional
        Only the rows of this split.
    against : {"calibrated", "rest"}
        What the gap of a slice is tested against: what a calibrated model with these scores would show,
        or the gap of all rows that are not in the slice.
    min_rows : int
        Slices with fewer rows are counted, not measured.
    rate : float
        False discovery rate: of the slices that are reported as off, at most this share is expected to be
        so by chance (Benjamini & Hochberg 1995, over all slices that are measured).
    level : float
        Level of the intervals, which are not adjusted for the number of slices.
    bins : int, optional
        Number of equal-width bins of the ECE; 15 if left out.
    edges : mapping of str to iterable, optional
        Other inner edges, ascending numbers or dates, of a column; each is the upper end of an interval.

    Raises
    ------
    NotAvailable
        If there is no column to slice by.
    OptionError
        For an unknown column or a value out of range.
    """
    errors.check_whole("min_rows", min_rows, least=2)
    errors.check_level(rate, "rate")
    errors.check_level(level)
    errors.check_choice("against", against, get_args(Against))
    sample = Sample.of(data, split=split, reduction=reduction, bins=bins)
    if edges:
        sample = sample.with_data(predictions.cut_columns(sample.data, edges))
    return sample.view(
        _found,
        rate=rate,
        columns=chosen_columns(sample.data, columns),
        pairs=pairs,
        against=against,
        min_rows=min_rows,
        level=level,
        bins=sample.bins_used,
    )


def chosen_columns(data: Dataset, columns: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to slice by, the usual ones for None; raises NotAvailable without any, OptionError for an unknown one."""
    known = predictions.sliceable_columns(data)
    if not known:
        raise NotAvailable("there is no group column to slice by.")
    chosen = predictions.usual_columns(data) if columns is None else tuple(dict.fromkeys(columns))
    for name in chosen:
        if name not in known:
            raise predictions.no_group_column(data, name)
    return chosen


@takes_weights
def _found(sample: Sample, *, rate: float, **how: Any) -> Slices:
    """Measure the slices, and test those that are off again: which of them differ from the other rows, and which are off without the first.

    Where the rest is not off, the one that is most surely off explains those whose p-value without its rows leads to no discovery, and whose
    gap there is clearly smaller. Where a slice of another column carries what is wrong in it, both together come first, and explain it.
    """
    found = replace(sample.view(_measured, **how), rate=rate)
    if not found.off or found.against == "rest" or sample.data.clusters is not None:
        return found
    found = _told_apart(sample, found)
    if found.rest:
        named = sorted(found.slices, key=lambda s: s.where not in found.differ)
        return replace(found, slices=tuple(named))
    first, largest = found.off[0], found.off[-1].p_value
    if first.where not in found.differ:
        return found
    both = _carrying(sample, first, rate, how) if len(first.where) == 1 else None
    if both is not None:
        first, found = both, replace(found, slices=(both, *found.slices))
    outside = ~np.asarray(rows_where(sample.data, first.where))
    others = [s for s in found.off if s is not first]
    without = _tested(sample, [s.where for s in others], outside)
    explained = {
        s.where
        for s, (p_value, gap) in zip(others, without, strict=True)
        if p_value > largest and gap / s.gap < LEFT
    }
    return replace(found, apart=True, explained=frozenset(explained))


def _told_apart(sample: Sample, found: Slices) -> Slices:
    """Find the slices that differ from the other rows with about the same scores, and in which way the rest is off.

    The one with the smallest p-value of those that are further off, or else of all, is taken out, and the others that may differ are
    tested again, until none is left.
    """
    cell, cells = cells_of(sample.scored.score)
    part = cell * min(cells, _PARTS) // cells
    outside = np.ones(cell.size, bool)
    may, differ = {s.where: s.gap for s in found.off}, list[Where]()
    while may:
        tested = _tested(sample, list(may), outside, part)
        # All slices count, of which the others have been found not to differ.
        p_values = [p for p, _ in tested] + [1.0] * (len(found.slices) - len(may))
        left = [
            (more * gap <= 0, p, -abs(gap), where)
            for (where, gap), (p, more), adjusted in zip(
                may.items(), tested, benjamini_hochberg(p_values), strict=False
            )
            if adjusted <= found.rate
        ]
        if left:
            differ.append(min(left)[-1])
            outside &= ~np.asarray(rows_where(sample.data, differ[-1]))
        may = {where: may[where] for *_, where in left if where not in differ}
    rest = _way_of_the_rest(sample, outside, cell, found.rate)
    return replace(found, differ=tuple(differ), rest=rest)


def _tested(
    sample: Sample, wheres: Sequence[Where], outside: BoolArray, part: IntArray | None = None
) -> list[tuple[float, float]]:
    """The p-value and the gap of slices on the rows `outside`, or how much larger the gap is than that of the other rows in the same `part`; shape (n,) each."""
    data, events, weights = sample.data, sample.scored, sample.weights
    terms = row_terms(events, weights)
    tested: dict[Where, tuple[float, float]] = {}
    for names in dict.fromkeys(tuple(name for name, _ in where) for where in wheres):
        factors = {name: data.sliced(name) for name in names}
        size = math.prod(len(factor.levels) for factor in factors.values())
        codes = np.where(outside, blocks.crossed_codes(factors.values(), data.n), size)
        sums = sums_of_terms(terms, codes, size + 1)
        if part is None:
            p_values, gaps = p_against_calibrated(sums, events, codes, weights), sums.gap
        else:
            table = sums_of_terms(terms, part * (size + 1) + codes, _PARTS * (size + 1))
            parts = table.each(lambda v: v.reshape(*v.shape[:-1], _PARTS, -1))
            whole = parts.each(lambda v: v[..., :-1].sum(axis=-1, keepdims=True))
            p_values, gaps = p_against_rest(sums, parts, whole, events, codes, weights)
        for i in range(size):
            tested[blocks.where_of(names, factors, i)] = float(p_values[i]), float(gaps[i])
    return [tested[where] for where in wheres]


def _way_of_the_rest(sample: Sample, outside: BoolArray, cell: IntArray, rate: float) -> str:
    """In which way rows are off together: by their mean, or else by the largest error over any range of their scores; "" if not beyond chance."""
    events, terms = sample.scored, row_terms(sample.scored, sample.weights)
    codes = np.where(outside, 0, 1)
    sums = sums_of_terms(terms, codes, 2)
    gap, variance, third = (float(v[0]) for v in (sums.gap, sums.variance, sums.third))
    if p_against_calibrated(sums, events, codes, sample.weights)[0] <= rate:
        return f"too {'high' if gap > 0 else 'low'} by {points(abs(gap))} points"
    path = np.cumsum(np.bincount(cell, terms[1] * outside))
    spread = max(path.max(), 0.0) - min(path.min(), 0.0)
    tails = (above(spread, 0.0, variance, side) for side in (third, -third))
    return "off in places" * bool(variance > 0 and 4 * sum(tails) <= rate)


@takes_weights
def _part(sample: Sample, *, where: Where, inside: bool) -> Sample:
    """The rows of a slice, or all other rows."""
    rows = np.asarray(rows_where(sample.data, where)) == inside
    return sample.with_data(sample.data.take(np.flatnonzero(rows)))


#: A slice within another carries what is wrong there if the other rows of that show no gap, by this level, and at most this share of its.
_NO_GAP, _SHARE = 0.05, 0.5


def _carrying(sample: Sample, first: Slice, rate: float, how: dict[str, Any]) -> Slice | None:
    """The slice of another column within `first`, most surely off, that differs from the other rows of `first`, of which none is off; None if there is none.

    Intervals of numbers, and all rows on one side of an edge, are tested with the values, and all are adjusted together.
    """
    others = tuple(name for name in how["columns"] if name != first.where[0][0])
    how = how | {"columns": others, "pairs": False}

    def measured(some: Sample, against: Against) -> Slices:
        return replace(some.view(_measured, **how | {"sides": True, "against": against}), rate=rate)

    part = sample.view(_part, where=first.where, inside=True)
    differ = {s.where for s in measured(part, "rest").off}
    for one in (s for s in measured(part, "calibrated").off if s.where in differ):
        other = part.view(_part, where=one.where, inside=False)
        events, none = other.scored, np.zeros(other.data.n, np.intp)
        sums = slice_sums(events, none, 1, weights=other.weights)
        p = p_against_calibrated(sums, events, none, other.weights)[0]
        no_gap = p > _NO_GAP and sums.gap[0] / one.gap < _SHARE and sums.rows[0] >= how["min_rows"]
        if no_gap and not measured(other, "calibrated").off:
            return replace(one, where=first.where + one.where)
    return None


@takes_weights
def _measured(
    sample: Sample,
    *,
    columns: tuple[str, ...],
    pairs: bool,
    against: Against,
    min_rows: int,
    level: float,
    bins: int,
    sides: bool = False,
) -> Slices:
    """Measure the slices, with `sides` also what lies on either side of each edge of a number; this does not depend on the false discovery rate."""
    data, events, weights = sample.data, sample.scored, sample.weights
    cluster = sample.row_draws.cluster
    each_row = cluster is not None or weights is not None
    if cluster is not None and against == "rest":
        raise NotAvailable(
            "slices of clustered rows cannot be tested against the other rows, which share clusters with them; "
            "test them against a calibrated model."
        )
    terms = row_terms(events, weights)
    factors, skipped = predictions.sliced_columns(data, columns, min_rows)
    bin_of = assign(events.score, equal_width_edges(bins, events.edge_type))
    z = float(ndtri(0.5 + level / 2))
    whole: SliceSums | None = None
    measured: list[Slice] = []
    small = 0

    def measure(
        table: FloatArray, codes: IntArray, names: tuple[str, ...], of: Mapping[str, Factor]
    ) -> SliceSums:
        sums = sums_of_table(table.sum(axis=1), terms, codes, cluster)
        if whole is None:
            return sums
        if against == "rest":
            p_values, _ = p_against_rest(sums, sums, whole, events, codes, weights)
        else:
            p_values = p_against_calibrated(sums, events, codes, weights)
        eces, noises = slice_ece(table, sums.mass)
        gaps, half_widths = sums.gap, z * sums.spread
        for i in np.flatnonzero((sums.rows >= min_rows) & (sums.mass > 0)).tolist():
            gap, half_width = float(gaps[i]), float(half_widths[i])
            measured.append(
                Slice(
                    where=blocks.where_of(names, of, i),
                    rows=int(sums.rows[i]),
                    score=float(sums.score[i] / sums.mass[i]),
                    hits=float(sums.hits[i] / sums.mass[i]),
                    gap=gap,
                    interval=Interval(gap - half_width, gap + half_width),
                    p_value=float(p_values[i]),
                    adjusted=1.0,
                    ece=float(eces[i]),
                    ece_noise=float(noises[i]),
                )
            )
        return sums

    for names, table in blocks.crossed_sums(
        factors, [*terms[0], *terms[2]], pairs=pairs, bin_of=bin_of, bins=bins
    ):
        # Only weights and clusters need each row again.
        codes = (
            blocks.crossed_codes([factors[name] for name in names], data.n) if each_row else bin_of
        )
        before = len(measured)
        sums = measure(table, codes, names, factors)
        if not names:
            whole = sums
            continue
        small += blocks.number_of_slices(sums.rows, names) - (len(measured) - before)
        cut = data.cuts.get(names[0]) if sides else None
        for side, parts in () if cut is None else cut.sides.items():
            in_it = np.isin(factors[names[0]].levels, parts)
            some = table[:, :, in_it].sum(axis=2, keepdims=True)
            of_side = Factor(np.where(in_it[factors[names[0]].codes], 0, 1), (side,))
            measure(some, of_side.codes if each_row else codes, names, {names[0]: of_side})
    assert whole is not None
    return Slices(
        name=data.name,
        rows=data.rows,
        gap=float(whole.gap[0]),
        reduction=sample.reduction.key,
        against=against,
        min_rows=min_rows,
        rate=0.05,
        bins=bins,
        slices=_adjusted(measured),
        small=small,
        skipped=skipped,
        cuts={name: data.cuts[name] for name in columns if name in data.cuts},
    )


def _adjusted(measured: list[Slice]) -> tuple[Slice, ...]:
    """Adjust the p-values for the number of slices, and sort by them, smallest first."""
    if not measured:
        return ()
    adjusted = benjamini_hochberg([s.p_value for s in measured])
    with_adjusted = [replace(s, adjusted=float(p)) for s, p in zip(measured, adjusted, strict=True)]

    def first(s: Slice) -> tuple[float, float]:
        # Slices of the same rows differ in the last digits of their sums.
        return float(f"{s.p_value:.10g}"), -round(abs(s.gap), 12)

    ordered = groupby(sorted(with_adjusted, key=first), key=first)
    return tuple(s for _, equal in ordered for s in sorted(equal, key=lambda s: s.name))


# ---- Sums over the rows of slices and of combinations of columns, and the tests that follow from them

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
    between, clusters : ndarray, shape (S,), optional
        For clustered rows: sum over clusters of the squared sum of s - h in the cluster, and number of clusters.
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
            around = np.maximum(self.between - total**2 / self.clusters, 0)
            scale = self.clusters / np.maximum(self.clusters - 1, 1)
            return np.asarray(np.sqrt(around * scale) / np.maximum(self.mass, _TINY))
        if self.weighted is not None:
            _, squares, cross = self.weighted
            around = self.squares - 2 * self.gap * cross + self.gap**2 * squares
            return np.asarray(np.sqrt(np.maximum(around, 0)) / np.maximum(self.mass, _TINY))
        rows = np.maximum(self.rows, 1)
        return np.asarray(np.sqrt(np.maximum(self.squares / rows - self.gap**2, 0) / rows))

    def rest_of(self, whole: SliceSums) -> SliceSums:
        """The sums of the rows that are not in each slice."""
        every = iter([v for v in vars(whole).values() if v is not None])
        return self.each(lambda v: next(every) - v)

    def each(self, change: Callable[[FloatArray], FloatArray]) -> SliceSums:
        """The same with other arrays; for rows without clusters."""
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
RowTerms = tuple[list[FloatArray | None], FloatArray, list[FloatArray]]


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
    between = clusters = None
    if cluster is not None:
        of_slice, (sums,) = sums_by_cluster(codes, cluster, terms[1])
        between = np.bincount(of_slice, sums**2, minlength=slices).astype(np.float64)
        clusters = np.bincount(of_slice, minlength=slices).astype(np.float64)
    rows, score, hits, variance, third, squares = totals[:6]
    weighted = totals[6:] if terms[2] else None
    return SliceSums(rows, score, hits, variance, third, squares, between, clusters, weighted)


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
    alone = replace(sums, between=None, clusters=None).spread
    more = quotient(sums.spread, alone, otherwise=1.0)
    degrees = np.maximum(sums.clusters - 1, 1)
    quantile = stdtrit(np.stack([np.maximum(sums.rows - 1, 1), degrees]), 0.975)
    fewer = n / np.maximum(more, 1) ** 2 * (quantile[0] / quantile[1]) ** 2
    unanimous = (sums.hits <= 0) | (sums.hits >= sums.mass)
    fewer = np.where(unanimous, np.minimum(fewer, sums.clusters), fewer)
    return np.where(sums.clusters < FEWEST_CLUSTERS, np.nan, fewer)


def p_against_calibrated(
    sums: SliceSums, events: BinaryEvents, codes: IntArray, weights: FloatArray | None = None
) -> FloatArray:
    """Two-sided p-values of the gaps if the model were calibrated, shape (S,): twice the smaller of `tails_if_calibrated`.

    Where all scores are 0 or 1, a gap is impossible (0) or absent (1).

    For clustered rows, the sums of s - h of the clusters are independent with mean 0: a t-test with one degree of freedom less
    than clusters, and with the variance around 0 or that of independent rows, whichever is larger. A slice with fewer than
    `FEWEST_CLUSTERS` clusters has a p-value of 1.
    """
    difference = sums.hits - sums.score
    if sums.between is not None and sums.clusters is not None:
        within = np.sqrt(np.maximum(np.maximum(sums.between, sums.variance), 1e-24))
        p = 2 * stdtr(np.maximum(sums.clusters - 1, 1), -np.abs(difference) / within)
        return np.where(sums.clusters >= FEWEST_CLUSTERS, p, 1.0)
    sure = np.where(np.abs(difference) > 1e-9 * sums.mass, 0.0, 1.0)
    least = tails_if_calibrated(sums, events, codes, weights).min(axis=0)
    return np.where(sums.variance > 1e-24, np.minimum(2 * least, 1.0), sure)


def tails_if_calibrated(
    sums: SliceSums,
    events: BinaryEvents,
    codes: IntArray,
    weights: FloatArray | None = None,
    *,
    shift: FloatArray | float = 0.0,
    more_variance: FloatArray | float = 0.0,
) -> FloatArray:
    """Probabilities of as many hits or more, and of as many or fewer, if the model were calibrated and rows independent, shape (2, S).

    The number of hits is then a sum of independent Bernoulli draws with the scores as probabilities. Its tails
    are taken from a shifted gamma variable (Pearson III) with the same mean, variance and skewness, half a hit
    nearer to the mean (continuity correction): a normal tail is too thin where events are rare. For weighted rows, small ones are
    computed by `calviz.core.p_values.tails_of_hits`, as few rows of large weight may decide such a sum. `shift` and `more_variance`
    are the value and the variance of what is added to the hits.
    """
    difference, added = np.broadcast_arrays(sums.hits - sums.score + shift, more_variance)
    variance = sums.variance + added
    # Half of a usual row's weight, which is 1 for unweighted rows.
    half = quotient(sums.mass, sums.rows, otherwise=0.0) / 2
    tails = np.stack(
        [
            above(difference - half, 0.0, variance, sums.third),
            above(-difference - half, 0.0, variance, -sums.third),
        ]
    )
    small = np.flatnonzero((tails.min(axis=0) <= _SMALL) & (sums.variance > 0))
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
) -> tuple[FloatArray, FloatArray]:
    """Two-sided p-values of the hypothesis that the gap of a slice equals that of the other rows, shape (S,), 1 where there are none; and the difference.

    The sums of `parts`, shape (P, S), are those in intervals of the scores, where other rows have the same gap, and of `whole`, shape
    (P, 1), those of all slices; with the `sums` themselves, shape (S,), and shape (1,), the scores do not count.
    The hits of the slice, plus its rows times the gap of the others, then exceed its scores by 0 on average. Their variance is not
    estimated from the slice, where events may be too few to show it: it is that of a calibrated model, times the ratio of the
    estimated variance of the others to theirs if that is larger than 1. The variance of the others' gap is added.
    """
    rest = parts.rest_of(whole)
    # Where the others are few beside the slice, its rows are left out.
    enough = 4 * rest.mass * sums.mass >= parts.mass * np.atleast_2d(rest.mass).sum(axis=0)
    some = enough & (rest.rows > 0) & (rest.mass > _TINY)
    estimated = np.where(some, rest.spread * rest.mass, 0.0) ** 2
    ratio = np.maximum(quotient(estimated, rest.variance, otherwise=1.0), 1.0)
    of_rest = quotient(np.maximum(estimated, rest.variance), rest.mass**2, otherwise=0.0)
    shift, more_variance = (
        np.atleast_2d(term).sum(axis=0)
        for term in (
            parts.mass * np.where(some, rest.gap, parts.gap),
            np.where(some, parts.mass**2 * of_rest, 0.0) + (ratio - 1) * parts.variance,
        )
    )
    tails = tails_if_calibrated(
        sums, events, codes, weights, shift=shift, more_variance=more_variance
    )
    difference = sums.gap - quotient(shift, sums.mass, otherwise=0.0)
    differs = np.atleast_2d(some).any(axis=0) & (np.abs(difference) > 1e-12)
    return np.where(differs, np.minimum(2 * tails.min(axis=0), 1.0), 1.0), difference


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

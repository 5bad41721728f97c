"""Slices: groups of rows by one or two columns, and for which of them the probabilities are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, get_args

import numpy as np
from scipy.special import ndtri

from calviz.core import errors, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.entry_specs import Interval, takes_weights
from calviz.core.errors import PREDICTED, SCORE, claim, picked
from calviz.core.events import BinNumber, Reduction, assign, cells_of, equal_width_edges
from calviz.core.p_values import benjamini_hochberg, selected
from calviz.sample import class_gaps, slice_tests
from calviz.sample.error_bars import SEGMENTS, SLICES, WITHIN
from calviz.sample.multicalibration import beyond_noise, changed_slices, way_of_rows
from calviz.sample.sample import AnyData, Sample, Where, rows_outside, rows_where, where_words
from calviz.sample.slice_results import Against, Slice, Slices

#: The false discovery rate of the default slices. The findings, the tab Groups and the report all start with these, so
#: that they agree.
USUAL_RATE = SLICES / 2
_TINY = np.finfo(np.float64).tiny
#: Slices whose rows are left out, one after the other, to see which others are off without them.
#: And slices in which the classes are looked at.
_MOST_BESIDE, _MOST_NAMED = 10, 3
#: What is left of the gap of a slice, without the rows of another one that explains it, is less than this share of it.
LEFT = 0.85


@claim(
    "slices",
    says="2 of 10 slices by 'region' are off beyond chance",
    chosen="the slices that are off, of all with 50 rows or more, of numbers too; where none is, the two values with the largest error together",
    adjusted="Benjamini and Hochberg at 0.5 %; two values: Šidák over all segments at 0.2 %; tails of weighted sums by convolution; months: none whose years differ at 1 %; sizes: less the bias of their selection",
)
def usual_slices(sample: Sample) -> Slices | None:
    """Slices of the default columns, each tested against a calibrated model, and two values that are off only together; None without groups.

    The false discovery rate is controlled (Benjamini and Hochberg). Where nothing is off, every discovery is a false one, so
    that the rate is then the probability that any slice is reported as off.
    """
    columns = default_columns(sample)
    return slices(sample, columns, pairs=False, rate=USUAL_RATE) if columns else None


def default_columns(sample: Sample) -> tuple[str, ...]:
    """The columns of the default slices: the usual ones of the file and the predicted of several classes, or the score of the second of two."""
    columns = (*predictions.usual_columns(sample.data), *predictions.cycles(sample.data))
    own = {"top-label": PREDICTED, "positive": SCORE, "class": SCORE}.get(sample.reduction.kind)
    known = predictions.sliceable_columns(sample.data) if columns else ()
    return tuple(name for name in known if name in columns or name == own)


def slices(
    data: AnyData,
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
        Columns of groups, numbers or texts, the time, or "predicted class" of three or more, which is combined with each of the others, or
        "score", the probability of the second of two: each value of the others is tested above it, too. All but the time if left out.
    pairs : bool
        Whether to include the combinations of any two columns.
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
    columns = default_columns(sample) if columns is None else columns
    if edges:
        sample = sample.with_data(predictions.cut_columns(sample.data, edges))
    how = {"pairs": pairs, "against": against, "min_rows": min_rows, "level": level}
    columns = predictions.chosen_columns(sample.data, columns)
    return sample.view(_found, rate=rate, columns=columns, bins=sample.bins_used, **how)


@takes_weights
def _found(sample: Sample, *, rate: float, **how: Any) -> Slices:
    """Measure the slices, and test those that are off again: which of them differ from the other rows, and which are off without the first.

    Where a slice of another column carries what is wrong in the first of them, both together come first, and explain it. Where the rest is
    not off, the first ones, one after the other, explain those that are not off without their rows, adjusted for all slices; those that are
    have the numbers of their other rows. A pair comes before the slice that it is a part of, if that has no p-value of a discovery without it, and a clearly smaller gap.
    """
    changed = [where for *_, where in sample.once(changed_slices) if where[0][0] in how["columns"]]
    found = _at_rate(sample.view(_measured, **how), rate, how["level"])
    found = replace(found, changed=where_words(changed[0]) if changed else "")
    if found.against == "calibrated" and not how["pairs"]:
        found = _with_pairs(sample, found, how)
    data = sample.data
    several = data.kind != "confidence" and data.n_classes > 2 and data.cells is None
    if several and found.against == "calibrated" and sample.reduction.kind == "top-label":
        found = _with_class(sample, found, how)
        found = found if how["pairs"] else _of_other_classes(sample, found, how)
    if not found.off or found.against == "rest":
        return found
    found = _told_apart(sample, found, changed)
    if found.rest:
        named = sorted(found.slices, key=lambda s: s not in found.named)
        found = replace(found, slices=tuple(named))
    first, largest = found.off[0], rate * len(found.off) / len(found.slices)

    def others(one: Slice) -> BoolArray:
        return rows_outside(sample.data, [one.where])

    whole = replace(first, where=first.where[:1]) if first.of_score else first
    # Where errors have both signs, those above a score are surer, but the other rows of its value may be off, too.
    below = [whole.where] * (first.of_score and not found.rest and whole.where in found.differ)
    if any(p <= largest for p, _ in slice_tests.tested(sample, below, others(first), None)):
        as_one = sorted(found.slices, key=lambda s: s.where != whole.where)
        first, found = as_one[0], replace(found, slices=tuple(as_one))
    if found.rest and not found.differ:
        over_all = beyond_noise(sample, how["columns"])
        return replace(found, largest=where_words(over_all.worst_where) if over_all else "")
    if first.where not in found.differ:
        some = [s for s in found.off[1:] if not s.of_class]
        each = slice_tests.tested(sample, [s.where for s in some], others(first), None)
        through = (
            s.where
            for s, (p, gap) in zip(some, each, strict=True)
            if p > _NO_GAP and gap / s.gap < _SHARE
        )
        return replace(found, explained=frozenset(through))
    both = len(whole.where) == 1 and _carrying(sample, whole, rate, how, unlike=bool(found.rest))
    # Rows above a score may be those of another column, if these are as surely off.
    if both and not (first.of_score and both.p_value > first.p_value):
        differ, explained = (both.where, *found.differ), frozenset({first.where})
        others_first = sorted(found.slices, key=lambda s: s.where in explained)
        found = replace(found, slices=(both, *others_first), differ=differ, explained=explained)
    if found.rest:
        return found

    def carries(part: Slice, one: Slice) -> bool:
        p, gap = slice_tests.tested(sample, [one.where], outside & others(part), None)[0]
        # Where no row is left, both are the same.
        return p > largest and 0 != gap / one.gap < LEFT

    named, left, outside = list[Slice](), list(found.off), np.ones(sample.data.n, bool)
    while left and len(named) < _MOST_BESIDE:
        one = next(
            (s for s in left if s.where in changed[:1] and {*s.where} < {*left[0].where}), left[0]
        )
        pairs = (s for s in left if {*one.where} < {*s.where} and not (s.of_score or one.of_class))
        one = next((s for s in pairs if carries(s, one)), one)
        if named and len(one.where) == 1 and not how["pairs"]:
            one = _carrying(sample.rows_of(outside), one, rate, how, unlike=False) or one
        named.append(_outside(sample, one, named, how))
        outside &= others(one)
        left = _left(sample, found, [s for s in left if s.where != one.where], outside)
    off = {s.where for s in (*named, *left)}
    explained = found.explained | ({s.where for s in found.off} - off)
    beside = _at_rate(replace(found, slices=(*named[1:],)), rate, how["level"], len(found.slices))
    rest = sorted(found.slices, key=lambda s: s.where in explained)
    more = (*beside.slices, *left, *(s for s in rest if s.where not in off))
    found = replace(found, apart=True, slices=(named[0], *more), explained=explained)
    return replace(found, differ=(*dict.fromkeys([named[0].where, *found.differ]),))


def _left(sample: Sample, found: Slices, some: Sequence[Slice], outside: BoolArray) -> list[Slice]:
    """Those of some slices whose rows `outside` are off, adjusted for all slices, the most surely first."""
    p_values, some = np.ones(len(found.slices)), sorted(some, key=lambda s: s.of_class)
    for of_class, same in groupby(enumerate(some), lambda item: item[1].of_class):
        at, wheres = zip(*((i, s.where) for i, s in same), strict=True)
        p = [p for p, _ in slice_tests.tested(judging(sample, of_class), wheres, outside, None)]
        p_values[[*at]] = np.minimum(np.array(p) * (sample.data.n_classes if of_class else 1), 1.0)
    each = zip(some, p_values.tolist(), benjamini_hochberg(p_values).tolist(), strict=False)
    left = [replace(s, p_value=p, adjusted=q) for s, p, q in each if q <= found.rate]
    return sorted(left, key=lambda s: (float(f"{s.p_value:.10g}"), len(s.where)))


def _outside(sample: Sample, one: Slice, named: Sequence[Slice], how: dict[str, Any]) -> Slice:
    """A slice with the numbers of its rows outside those named before it, if it shares some with them."""
    inside = np.asarray(rows_where(sample.data, one.where))
    without = [s.where for s in named if (inside & ~rows_outside(sample.data, [s.where])).any()]
    if not without:
        return one
    again = how | {"columns": (), "pairs": False, "min_rows": 1, "only": one.where}
    of = judging(sample, one.of_class).view(_measured, **again, without=(*without,))
    kept = picked(one, "p_value adjusted of_class top")
    return replace(of.slices[0], **kept, without=(*without,))


def _at_rate(found: Slices, rate: float, level: float, tests: int = 0) -> Slices:
    """The slices at a false discovery rate, of so many `tests`, with the gaps to expect on new rows; `level` is that of their intervals."""
    share = sum(s.adjusted <= rate for s in found.slices) / max(tests, len(found.slices), 1)
    least = -ndtri(rate * share / 2)

    def of(one: Slice) -> Slice:
        wide = -ndtri((1 - level) / 2 / slice_tests.ranges_of(found.cuts, dict(one.where)))
        error = (one.interval.high - one.interval.low) / 2 / wide
        if one.adjusted > rate or error <= 0:
            return replace(one, expected=one.gap, expected_interval=one.interval)
        # The normal quantile of the p-value, which may be of a sum that is not normal, is in errors as the test has them.
        z = -ndtri(max(one.p_value, 1e-300) / 2)
        above = (z - least) * abs(one.difference) / z / error
        (less, low), away = selected(above, share), math.copysign(error, one.gap)
        ends = Interval(*sorted((one.gap + away * low, one.gap + away * float(ndtri(0.975)))))
        # Of very few hits, errors are nearly as large as the gap.
        expected = one.gap - math.copysign(min(less * error, abs(one.gap) / 2), one.gap)
        return replace(one, expected=expected, expected_interval=ends)

    return replace(found, rate=rate, slices=tuple(map(of, found.slices)))


def _with_pairs(sample: Sample, found: Slices, how: dict[str, Any]) -> Slices:
    """Where no slice of one column is off, or errors of both signs cancel in it: with the segment of the largest error, if its gap is beyond noise, too, and others of its columns."""
    over_all, data = beyond_noise(sample, how["columns"], how["min_rows"]), sample.data
    if over_all is None or len(worst := over_all.segments[0].where) <= bool(found.off):
        return found
    how = how | {"columns": tuple(name for name, _ in worst), "pairs": True}
    crossed = {s.where: s for s in sample.view(_measured, **how).slices}
    pairs = tuple(
        replace(crossed[s.where], p_value=s.p_value, adjusted=s.adjusted)
        for s in over_all.off
        if s.where in crossed
        and len(s.where) == len(worst)
        and s.interval.low * s.interval.high > 0
    )
    if not pairs or pairs[0].where != worst:
        return found
    if found.off:
        around = (np.asarray(rows_where(data, (part,))) for part in worst)
        whole = np.zeros(data.n, np.intp)
        p = [slice_tests.tested(sample, [worst], rows, whole)[0][0] for rows in around]
        if max(p) * over_all.measured > SEGMENTS or len({s.gap > 0 for s in pairs}) < 2:
            return found
    some = _at_rate(replace(found, slices=pairs), SEGMENTS, how["level"], over_all.measured)
    still = _left(sample, found, found.off, rows_outside(data, [s.where for s in pairs]))
    explained = {s.where for s in found.off}.difference(s.where for s in still)
    others = (s for s in found.slices if s.where not in {s.where for s in pairs})
    return replace(found, slices=(*some.slices, *others), explained=frozenset(explained))


def gap_of_rows(sample: Sample) -> tuple[float, tuple[float, float] | None]:
    """The gap of all rows with its interval, as slices have it; none of few clusters."""
    scored = sample.scored
    gap = float(np.average(scored.score - scored.hit, weights=sample.weights))
    return gap, slice_tests.gap_interval(sample, np.arange(scored.n))


def judging(sample: Sample, of_class: str) -> Sample:
    """The sample that judges the probability of a class, if one is named."""
    return Sample.of(sample, reduction=f"class:{of_class}") if of_class else sample


@claim(
    "class-in-a-slice",
    says="Off where region = East: 'ICU' about 9.1 points too low",
    chosen="the class that is furthest off in the first slice where one is off more surely than the slice itself; and of all slices outside those that are off",
    adjusted="against other rows with about the same probability, too; in slices that are off Bonferroni over all classes, elsewhere over all classes and slices at 0.1 %",
)
def _with_class(sample: Sample, found: Slices, how: dict[str, Any]) -> Slices:
    """Where the probability of one class is off in a slice, and otherwise than in the other rows, more surely than the slice itself: with that in its place."""
    every, bases = np.ones(sample.data.n, bool), dict[Where, Slice]()
    for one in found.off:
        # The most surely off of those of one predicted class and of all.
        bases.setdefault(tuple(part for part in one.where if part[0] != PREDICTED), one)
    for where, one in [item for item in bases.items() if item[0]][:_MOST_NAMED]:
        name = class_gaps.furthest_off(sample.view(_part, where=where, inside=True))
        whole = _of_class(sample, name, where, every, how)
        alone = slice_tests.tested(sample, [one.where], every, sample.view(_alike))[0][0]
        own = max(one.p_value, alone), -one.least_error
        # Of many rows, both p-values may be 0.
        if whole and (whole.p_value, -whole.least_error) < own:
            whole = replace(whole, adjusted=whole.p_value * len(found.slices))
            if whole.adjusted <= found.rate:
                return _with(found, whole, found.rate, how)
    return found


def _of_other_classes(sample: Sample, found: Slices, how: dict[str, Any]) -> Slices:
    """With the classes whose probability is off in a slice, outside those that are off, and otherwise than in other rows with about the same one."""
    columns = tuple(name for name in how["columns"] if name != PREDICTED)
    factors, _ = predictions.sliced_columns(sample.data, columns, how["min_rows"])
    # Those that are off otherwise than the other rows, but predicted classes, which lie across all slices.
    off = [s for s in found.off if s.of_class]
    left = [s for s in found.off if s not in off and (s.where[0][0] != PREDICTED or s.where[1:])]
    outside, alike = (rows_outside(sample.data, [s.where for s in off]), sample.view(_alike))
    while left := left[:_MOST_BESIDE]:
        tests = slice_tests.tested(sample, [s.where for s in left], outside, alike)
        differ = (s for s, (p, _) in zip(left, tests, strict=True) if p <= found.rate)
        if (one := next(differ, None)) is None:
            break
        off.append(one)
        outside &= rows_outside(sample.data, [one.where])
        left = _left(sample, found, [s for s in left if s is not one], outside)
    for where, name in class_gaps.furthest_within(sample, factors, outside, how["min_rows"]):
        part = _of_class(sample, name, where, outside, how)
        if part and part.p_value * len(found.slices) <= WITHIN:
            part = replace(part, adjusted=part.p_value * len(found.slices))
            part = _outside(sample, part, off, how)
            return _of_other_classes(sample, _with(found, part, WITHIN, how), how)
    return found


@takes_weights
def _alike(sample: Sample) -> IntArray:
    return slice_tests.alike(sample)


def _of_class(
    sample: Sample, name: str, where: Where, outside: BoolArray, how: dict[str, Any]
) -> Slice | None:
    """A slice of one class, whose probability is tested on the rows `outside` against a calibrated model's, and that of other rows with about the same; None of too few rows."""
    of = judging(sample, name)
    slices = of.view(_measured, **how | {"columns": (), "only": where}).slices
    parts = None, of.view(_alike)
    (_, gap), _ = tests = [slice_tests.tested(of, [where], outside, part)[0] for part in parts]
    p, difference = max(tests)
    p = p * sample.data.n_classes if gap * difference > 0 else 1.0
    made = (replace(s, p_value=p, difference=difference, of_class=name) for s in slices)
    return next(made, None)


def _with(found: Slices, one: Slice, rate: float, how: dict[str, Any]) -> Slices:
    """With a slice that is named for a class in place of its rows by the top label."""
    same = next((s for s in found.slices if s.where == one.where), None)
    alone = replace(found, slices=(replace(one, top=same),))
    alone = _at_rate(alone, rate, how["level"], len(found.slices))
    some = (*alone.slices, *(s for s in found.slices if s is not same))
    return replace(found, slices=tuple(sorted(some, key=lambda s: s.p_value)))


def _told_apart(sample: Sample, found: Slices, changed: Sequence[Where]) -> Slices:
    """Find the slices that differ from the other rows with about the same scores, and in which way the rest is off.

    The one that differs most surely is taken out, and the others that may differ are tested again, until none is left. Of those about
    as sure, as two that make up all rows are, one that is further off comes first. What lies within another
    one that is off is tested if no other differs, and comes in the place of that if it carries the difference.
    """
    cell, _ = cells_of(sample.scored.score)
    part = sample.view(_alike)
    # One of a class differs, as that is tested with it.
    differ = [s.where for s in found.off if s.of_class]
    outside = rows_outside(sample.data, of_class := (*differ,))
    parts = {s.where: s.gap for s in found.off if _is_part(sample, s, found)}
    may = {s.where: s.gap for s in found.off if s.where not in (*parts, *differ)}
    # One that is right where the others are off differs, too; it is tested if it seems to.
    may |= {s.where: s.gap for s in found.slices if _seems_unlike(s, found)}
    off = {s.where for s in found.off}
    while may:
        tested = slice_tests.tested(sample, list(may), outside, part)
        # All slices count, of which the others have been found not to differ.
        p_values = [p for p, _ in tested] + [1.0] * (len(found.slices) - len(may))
        sure = math.sqrt(max(min(p_values), _TINY))
        left = [
            (p > sure, where not in off, more * gap <= 0, p, -abs(more), where)
            for (where, gap), (p, more), adjusted in zip(
                may.items(), tested, benjamini_hochberg(p_values), strict=False
            )
            if adjusted <= found.rate
        ]
        if left:
            differ.append(min(left)[-1])
            outside &= rows_outside(sample.data, differ[-1:])
        may = {where: may[where] for *_, where in left if where not in differ}
        if not may and not differ:
            may, parts = parts, {}

    for i, where in enumerate(differ):
        for s in (s for s in found.off if {*where} < {*s.where} and where not in of_class):
            within = rows_outside(sample.data, [s.where]) & ~rows_outside(sample.data, [where])
            others = outside | within
            p, more = slice_tests.tested(sample, [where], others, part)[0]
            if p > _NO_GAP and more / s.gap < _SHARE:
                differ[i], outside = s.where, others
                break
    rest = way_of_rows(sample, outside, cell, found.rate)
    first = next((s.where for s in found.off if s.where not in differ), ())
    if rest and first and _alone_off(sample, found, first, outside):
        # The other rows name it, so that this is one test.
        (p, _), *_ = slice_tests.tested(sample, [first], outside, part)
        if p <= found.rate:
            return replace(found, differ=(*differ, first))
        if not differ:
            return found
    above = [s.where for s in found.off if s.of_score and not differ]
    tests = slice_tests.tested(sample, above, outside, part, within=True)
    if tests and (sure := min(tests)[0]) * len(found.slices) <= found.rate:
        # Few others have such scores, compared with all other rows.
        these = [where for where, (p, _) in zip(above, tests, strict=True) if p == sure]
        values = rows_outside(sample.data, [where[:-1] for where in these])
        # Where errors of a value have both signs, they alone may be what its other rows are off by.
        if rest or way_of_rows(sample, values, cell, found.rate):
            differ = these
            rest = way_of_rows(sample, rows_outside(sample.data, differ), cell, found.rate)
    # The slice that changed over time differs from the other rows by that.
    later = [s.where for s in found.off if s.where in changed[:1] and differ]
    if (
        rest
        and later
        and not way_of_rows(sample, outside & rows_outside(sample.data, later), cell, found.rate)
    ):
        return replace(found, differ=(*differ, *later))
    if rest and len(differ) > 1 and outside.mean() < 0.45:
        # The slices differ from one another; not at a half, which balanced columns make.
        return found
    return replace(found, differ=tuple(differ), rest=rest)


def _alone_off(sample: Sample, found: Slices, where: Where, outside: BoolArray) -> bool:
    """Whether a slice differs from all other rows `outside`, whatever their scores, which are not off without it."""
    cell, _ = cells_of(sample.scored.score)
    p, _ = slice_tests.tested(sample, [where], outside, np.zeros_like(cell))[0]
    others = outside & ~np.asarray(rows_where(sample.data, where))
    return p * len(found.slices) <= found.rate and not way_of_rows(sample, others, cell, found.rate)


def _is_part(sample: Sample, one: Slice, found: Slices) -> bool:
    """Whether a slice lies within another one that is off without its rows, too."""
    around = [s.where for s in found.off if {*s.where} < {*one.where}]
    outside = ~np.asarray(rows_where(sample.data, one.where))
    largest = found.rate * len(found.off) / len(found.slices)
    return any(p <= largest for p, _ in slice_tests.tested(sample, around, outside, None))


def _seems_unlike(one: Slice, found: Slices) -> bool:
    """Whether the gap of a slice, but of a predicted class, is about three standard errors or more from that of the other rows."""
    others = found.rows - one.rows
    if not others or one.of_score or one.where[0][0] == PREDICTED:
        return False
    rest = (found.gap * found.rows - one.gap * one.rows) / others
    return abs(one.gap - rest) > 0.75 * (one.interval.high - one.interval.low)


@takes_weights
def _part(sample: Sample, *, where: Where, inside: bool) -> Sample:
    """The rows of a slice, or all other rows."""
    return sample.rows_of(np.asarray(rows_where(sample.data, where)) == inside)


#: A slice within another carries what is wrong there if the other rows of that show no gap, by this level, and at most this share of its.
_NO_GAP, _SHARE = 0.05, 0.5
#: Where fewer are left, the name of a second column says little more.
_LEAST_OTHER = 0.2


def _carrying(
    sample: Sample, first: Slice, rate: float, how: dict[str, Any], *, unlike: bool
) -> Slice | None:
    """The slice of another column within `first`, most surely off, that differs from the other rows of `first`, of which none is off, or `unlike` the rows outside; None if there is none.

    Intervals of numbers, and all rows on one side of an edge, are tested with the values, and all are adjusted together.
    """
    others = tuple(n for n in how["columns"] if n not in (first.where[0][0], PREDICTED, SCORE))
    how = how | {"columns": others, "pairs": False}

    def measured(some: Sample, against: Against) -> Slices:
        both = some.view(_measured, **how | {"sides": True, "against": against})
        return _at_rate(both, rate, how["level"])

    judged = judging(sample, first.of_class)
    part, against = judged.view(_part, where=first.where, inside=True), get_args(Against)[unlike]
    differ = {s.where for s in measured(part, "rest").off}
    for one in (s for s in measured(part, "calibrated").off if s.where in differ):
        outside = ~np.asarray(rows_where(sample.data, first.where + one.where))
        alike = judged.view(_alike) if unlike else None
        p, gap = slice_tests.tested(judged, [first.where], outside, alike)[0]
        other = part.view(_part, where=one.where, inside=False)
        least = max(how["min_rows"], _LEAST_OTHER * part.data.n)
        no_gap = p > _NO_GAP and gap / one.gap < _SHARE and other.data.n >= least
        if no_gap and not measured(other, against).off:
            return replace(one, where=first.where + one.where, of_class=first.of_class)
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
    only: Where = (),
    without: tuple[Where, ...] = (),
) -> Slices:
    """Measure the slices, with `sides` also what lies on either side of each edge of a number, or the rows of `only` some conditions; this does not depend on the false discovery rate."""
    data, events, weights = sample.data, sample.scored, sample.weights
    cluster = sample.row_draws.cluster
    each_row = cluster is not None or weights is not None
    terms = slice_tests.row_terms(events, weights)
    # Predicted classes are crossed with every other column; alone, those of rows that are alike are tested with the classes.
    crossed = PREDICTED in columns and len(columns) > 1
    untested = (PREDICTED,) if crossed and data.alike else ()
    scored = len(columns) > 1 and SCORE in columns and predictions.has_score(data)
    columns = tuple(n for n in sorted(columns, key=PREDICTED.__ne__) if n != SCORE or not scored)
    factors, skipped = predictions.sliced_columns(data, columns, min_rows)
    cycles = {name: factors[name] for name in predictions.cycles(data) if name in factors}
    factors = {n: f for n, f in factors.items() if n not in cycles or len(columns) == 1}
    bin_of = assign(events.score, equal_width_edges(bins, events.edge_type))
    whole: slice_tests.SliceSums | None = None
    of_classes: slice_tests.SliceSums | None = None
    measured: list[Slice] = []
    outside, small = rows_outside(data, without), 0

    def measure(
        table: FloatArray, codes: IntArray, names: tuple[str, ...], of: Mapping[str, Factor]
    ) -> slice_tests.SliceSums:
        sums = slice_tests.sums_of_table(table.sum(axis=1), terms, codes, cluster)
        if whole is None or names == untested:
            return sums
        differences = sums.gap
        if against == "rest":
            p_values, differences = slice_tests.p_against_rest(
                sums, sums, whole, events, codes, weights, cluster
            )
        else:
            p_values = slice_tests.p_against_calibrated(sums, events, codes, weights)
        alone = p_values
        if against == "calibrated" and of_classes is not None and names[0] == PREDICTED:
            p_values, differences = slice_tests.p_of_pairs(
                p_values, sums, of_classes, events, codes, weights, cluster
            )
        eces, noises = slice_tests.slice_ece(table, sums.mass)
        among = slice_tests.ranges_of(data.cuts, names)
        gaps, (low, high) = sums.gap, slice_tests.intervals(sums, (1 - level) / among)
        for i in np.flatnonzero((sums.rows >= min_rows) & (sums.mass > 0)).tolist():
            gap, where = float(gaps[i]), slice_tests.where_of(names, of, i)
            least = slice_tests.p_of_years(sample, where, outside)
            measured.append(
                Slice(
                    where=where,
                    rows=int(sums.rows[i]),
                    score=float(sums.score[i] / sums.mass[i]),
                    hits=float(sums.hits[i] / sums.mass[i]),
                    gap=gap,
                    interval=Interval(float(low[i]), float(high[i])),
                    p_value=max(min(among * float(p_values[i]), 1.0), least),
                    ece=float(eces[i]),
                    ece_noise=float(noises[i]),
                    difference=float(differences[i]),
                    expected_interval=Interval(gap, gap),
                    p_calibrated=max(min(among * float(alone[i]), 1.0), least),
                )
            )
        return sums

    for names, table in slice_tests.crossed_sums(
        factors,
        [*terms[0], *terms[2]],
        crossed=len(factors) if pairs else int(crossed),
        bin_of=bin_of,
        bins=bins,
    ):
        # Only weights, clusters and predicted classes need each row again.
        codes = (
            slice_tests.crossed_codes([factors[name] for name in names], data.n)
            if each_row or (crossed and names[:1] == (PREDICTED,))
            else bin_of
        )
        before = len(measured)
        sums = measure(table, codes, names, factors)
        if not names:
            whole = sums
        if names == (PREDICTED,):
            of_classes = sums
        if names in ((), untested):
            continue
        small += slice_tests.number_of_slices(sums.rows, names) - (len(measured) - before)
        cut = data.cuts.get(names[0]) if sides else None
        for side, parts in () if cut is None or cut.cycle else cut.sides.items():
            in_it = np.isin(factors[names[0]].levels, parts)
            some = table[:, :, in_it].sum(axis=2, keepdims=True)
            of_side = Factor(np.where(in_it[factors[names[0]].codes], 0, 1), (side,))
            measure(some, of_side.codes if each_row else codes, names, {names[0]: of_side})
    if scored and against == "calibrated":
        part = data.sliced(SCORE)
        for name, codes, table in slice_tests.above_edge(part, factors, terms, bin_of):
            one = Factor(np.zeros(data.n, np.intp), part.levels[-1:])
            measure(table, codes, (name, SCORE), {name: factors[name], SCORE: one})
    assert whole is not None
    wheres = [only] * bool(only)
    for name, factor in cycles.items():
        value = slice_tests.furthest_range(data.cuts[name].sides, factor, terms, min_rows)
        wheres += [((name, value),)] * bool(value)
    for where in wheres:
        rows = np.asarray(rows_where(data, where)) & outside
        inside = Factor(rows.astype(np.intp), ("", "inside"))
        of = {name: Factor(np.zeros(data.n, np.intp), (value,)) for name, value in where}
        first = {where[0][0]: of[where[0][0]]}
        for _, codes, table in slice_tests.above_edge(inside, first, terms, bin_of):
            measure(table, codes, (*of,), of)
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

    def first(s: Slice) -> tuple[float, bool, float, str]:
        # Slices of the same rows differ in the last digits of their sums.
        return float(f"{s.p_value:.10g}"), s.of_score, -round(abs(s.gap), 12), s.name

    return tuple(sorted(with_adjusted, key=first))

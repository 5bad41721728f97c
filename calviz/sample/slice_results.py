"""Groups of rows by one or two columns with their gaps, and in words which of them are off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from calviz.core.entry_specs import Interval
from calviz.core.errors import PREDICTED, SCORE, claim, data_frame, picked
from calviz.core.features import Cut
from calviz.core.words import condition, counted, expected_gap, listed, percent, points, shorten
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Where, where_words

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
        Interval of the gap, not adjusted for the number of slices, but of a range of hours for that of ranges: by the normal approximation or, of fewer than 10 hits or misses, the
        mean score minus the exact one of the share of hits.
    p_value : float
        Two-sided p-value of the gap (see `Slices.against`), of a range of hours times the number of ranges.
    adjusted : float
        The p-value adjusted by Benjamini and Hochberg; the slice is off if it is at most the false discovery rate.
    ece, ece_noise : float
        ECE, and its mean for a calibrated model on the same number of rows.
    difference : float
        What the p-value is of: the gap, or how much larger it is than that of the rows that it is compared with.
    expected : float
    expected_interval : Interval
        The gap to expect on new rows: of a slice that is off, which is stated for its gap, less what that selection makes of noise, with a
        95 % interval (`calviz.core.p_values.selected`); else the gap and its interval.
    p_calibrated : float
        The p-value against a calibrated model alone, where `p_value` is also that of a predicted class against its other rows.
    of_class : str
        The class whose probability this is about, as that shows more surely what is off than the top label does; "" for the score itself.
    top : Slice or None
        The same rows by the top label, if they are measured, where this is of one class.
    without : tuple of (str, str) pairs
        The slices more surely off of which it shares rows: the numbers are those of its others.
    """

    where: Where
    rows: int
    score: float
    hits: float
    gap: float
    interval: Interval
    p_value: float
    ece: float
    ece_noise: float
    difference: float
    expected_interval: Interval
    p_calibrated: float
    adjusted: float = 1.0
    expected: float = math.nan
    of_class: str = ""
    top: Slice | None = None
    without: tuple[Where, ...] = ()

    @property
    def of_score(self) -> bool:
        """Whether these are the rows of a value above a score, which are named in place of all of it where they are more surely off."""
        return len(self.where) > 1 and self.where[-1][0] == SCORE

    @property
    def least_error(self) -> float:
        """Sum of the errors of its rows, at least: their number times the end of the interval that is nearer to 0."""
        return self.rows * min(map(abs, self.interval))

    @property
    def name(self) -> str:
        """The condition in words: "league = Serie A, age in (23, 31]", and the class that it is about."""
        where = ", ".join(condition(column, value) for column, value in self.where)
        return f"{where}{self.other_rows}" + f": {listed([self.of_class])}" * bool(self.of_class)

    @property
    def other_rows(self) -> str:
        """Of which of its rows the numbers are: " (not region = East)"; "" if of all."""
        return f" (not {' or '.join(map(where_words, self.without))})" * bool(self.without)


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
        Conditions of the slices that differ from the other rows with about the same scores beyond chance, off themselves or not: one after
        the other, the most surely first, each without the rows of those before it.
    rest : str
        In which way the rows of none of these are off together: "too high by 5.0 points", "off in places"; "" if that is not found.
    explained : frozenset of (str, str) pairs
        Conditions of slices that would not be off but for rows of those that are more surely off.
    largest : str
        Where the rest is off and no slice differs from it: the segment with the largest error, if that is beyond noise.
    changed : str
        The slice that changed over time in another way than the other rows, most surely.
    dated : (str, str) pairs and str
        The conditions of the slice that the verdict on these rows says is off on some days, and "since 2024-03-09" or "until 2024-03-09".
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
    largest: str = ""
    changed: str = ""
    dated: tuple[Where, str] = ((), "")

    @claim("slices")
    def summary(self, *, every: bool = False) -> Summary:
        """Summarise the result: the slices, the most certainly off first, 20 or `every` one."""
        shown, more = (self.slices, 0) if every else (self.own[:20], len(self.own) - 20)
        cells = [(s.name, f"{s.rows:,}", percent(s.score, 2), percent(s.hits, 2)) for s in shown]
        gaps = [(points(s.gap), points(self.on_new_rows(s)), self.word(s)) for s in shown]
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.slices), 'slice')}, {len(self.off)} off beyond chance",
            header=("slice", "rows", "score", "hits", "gap (points)", "on new rows", "off"),
            rows=tuple((*told, *gap) for told, gap in zip(cells, gaps, strict=True)),
            notes=(*filter(None, (f"and {more} more" * (more > 0), self.remark, *self.skipped)),),
        )

    @property
    def own(self) -> tuple[Slice, ...]:
        """The slices but for those that are off only by rows of others, which come last."""
        return tuple(s for s in self.slices if s.where not in self.explained)

    @cached_property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, adjusted for all slices, and not only by rows of those that are more surely off."""
        return tuple(s for s in self.own if s.adjusted <= self.rate)

    @cached_property
    def named(self) -> tuple[Slice, ...]:
        """The slices to look at: those that are off or, where the rest is off too, those that differ from it."""
        return tuple(s for s in self.off if not self.rest or s.where in self.differ)

    def on_new_rows(self, one: Slice) -> float:
        """The gap of a slice to expect on new rows, which is less than that on these if it is off; NaN if it is not."""
        return one.expected if one in self.off else math.nan

    def word(self, one: Slice) -> str:
        """Whether a slice is off: "yes", with ", changed" if it changed over time, or since when, `marks` if as others with such scores are, "within" one that differs, only "by rows of others", "as its class", or ""."""
        if {*one.where} == {*self.dated[0]}:
            return self.dated[1]
        if one.where in self.as_class:
            return "as its class"
        words = "within" if one.where in self.within else self.marks[1]
        if one in self.named:
            words = "yes" + ", changed" * (where_words(one.where) == self.changed)
        return "by rows of others" if one.where in self.explained else words * (one in self.off)

    @cached_property
    def within(self) -> frozenset[Where]:
        """Where the rest is off, too: slices that are not named, of rows of one that differs."""
        rest = (s for s in self.slices if self.rest and s not in self.named)
        return frozenset(s.where for s in rest if any({*w} < {*s.where} for w in self.differ))

    @cached_property
    def as_class(self) -> frozenset[Where]:
        """Slices of a predicted class that a calibrated model would not show (Bonferroni), but which do not differ from the other rows of that class."""
        level = self.rate / max(len(self.slices), 1)
        less = (s for s in self.slices if s.adjusted > self.rate)
        return frozenset(s.where for s in less if s.p_calibrated <= level)

    @property
    def counted_off(self) -> str:
        """How many are off: "1 of 20 slices is off"."""
        n = len(self.off)
        return f"{n:,} of {counted(len(self.slices), 'slice')} {'is' if n == 1 else 'are'} off"

    @property
    @claim("slices")
    def furthest(self) -> tuple[str, str]:
        """The slice that is most surely off, and by how much on new rows: "ward = ICU", "about 7.2 points too low".

        Where it was chosen, its gap looks larger than it is.
        """
        return self.place(self.off[0])

    def place(self, one: Slice) -> tuple[str, str]:
        """A slice in few words, and its gap on new rows."""
        where = " and ".join(shorten(condition(*part, 40), 40) for part in one.where)
        of_class = f"{listed([one.of_class])} " * bool(one.of_class)
        return where + one.other_rows, of_class + expected_gap(one.expected)

    @property
    @claim("slices")
    def also(self) -> str:
        """The slice that is next most surely off, of those that did not change over time; "" if there is none."""
        left = [s for s in self.off[1:] if where_words(s.where) != self.changed]
        return ": ".join(self.place(left[0])[: 1 + (self.against == "calibrated")]) if left else ""

    @property
    @claim("slices")
    @claim(
        "slices-that-differ",
        says="Unlike the rest: site = C (about 7.2 points too low); other rows: too high by 5.0 points",
        chosen="the slices that differ most surely, one after the other, of those that are off",
        adjusted="scores moved by the gap of the other rows with about the same scores; Benjamini and Hochberg at 0.5 % over all slices each time",
    )
    def headline(self) -> str:
        """How many are off, and which one most surely; in which way, if tested against a calibrated model. Where the rest is off too, which differ from it."""
        if self.rest:
            others = len(self.named or self.differ) - 1
            more = f" and {others:,} more" * (others > 0)
            right = [s for s in self.own if s.where in self.differ and s not in self.off][:1]
            if self.named:
                place, *second = (" (".join(self.place(s)) + ")" for s in self.named)
                more = f" and {second[0]}" if others == 1 else more
                of_right = "".join(f"; {where_words(s.where)}: not found off" for s in right)
                return f"Unlike the rest: {place}{more}{of_right}; other rows: {self.rest}"
            if self.differ:
                return f"All rows but {where_words(self.differ[0])}{more}: {self.rest}"
            where = f"largest error beyond noise where {self.largest}"
            alike = dict.fromkeys(v for w in self.as_class for c, v in w if c == PREDICTED)
            or_class = f" and its predicted class ({listed([*alike])})" * bool(alike)
            where = where if self.largest else f"no slice is found off beyond that{or_class}"
            return f"All rows: {self.rest}; {self.change or where}"
        if self.also and self.changed == where_words(self.off[0].where):
            return f"Changed over time: {self.changed}"
        way = f": {self.furthest[1]}" * (self.against == "calibrated")
        return f"{self.counted_off} beyond chance, most clearly {self.furthest[0]}{way}"

    @property
    def change(self) -> str:
        """That a slice changed over time; "" if none did."""
        return f"{self.changed} changed over time" * bool(self.changed)

    @property
    @claim("slices")
    def remark(self) -> str:
        """Say how many slices are off as the rest is, or would not be off without the rows of those that are; "" if none."""
        named = len(self.named)
        alike = sum(s not in self.named and s.where not in self.within for s in self.off)
        slices = counted(alike or len(self.explained), f"{'other ' * bool(named)}slice")
        slices += " is" if (alike or len(self.explained)) == 1 else " are"
        if alike:
            return f"{slices} off,{' but, without the rows of those named,' * bool(self.differ)} not found to differ from other rows with such scores."
        of = self.furthest[0] if named == 1 else f"these {named:,}"
        return f"{slices} off only by rows shared with {of}." if self.explained else ""

    @property
    @claim("slices")
    def marks(self) -> tuple[str, str]:
        """What is true of the slices that are named, and of the others."""
        if not self.rest:
            return "off beyond chance", "may be chance"
        # Of a slice that shares rows with one that differs, only the others are like the rest.
        return "differs from the rest beyond chance", bool(self.differ) * "otherwise " + "as others"

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per slice."""
        off = {s.where for s in self.off}
        return data_frame(
            {"slice": s.name, **picked(s, "rows score hits gap")}
            | {"low": s.interval.low, "high": s.interval.high, "p_value": s.p_value}
            | {"adjusted_p_value": s.adjusted, "off": s.where in off}
            | {"ece": s.ece, "ece_noise": s.ece_noise, "differs": s.where in self.differ}
            | {f"expected_{end}": v for end, v in s.expected_interval._asdict().items()}
            | {"expected_gap": s.expected}
            for s in self.slices
        )

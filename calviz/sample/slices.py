"""Slices: groups of rows by one or two columns, and for which of them the probabilities are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import numpy as np
from scipy.special import ndtri

from calviz.core.entry_specs import takes_weights
from calviz.core.errors import NotAvailable, OptionError, check_level, claim, data_frame, shortened
from calviz.core.events import BinNumber, Reduction, assign, equal_width_edges
from calviz.core.features import MISSING, Cut, as_values, cut_at, cut_of_levels
from calviz.core.p_values import benjamini_hochberg
from calviz.core.predictions import INTERVAL, Dataset
from calviz.core.profile import Profile
from calviz.core.row_columns import Factor
from calviz.core.words import condition, counted, percent, points, shorten
from calviz.sample.error_bars import SEGMENTS, SLICES, Interval
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Sample, Where
from calviz.sample.slice_sums import (
    SliceSums,
    crossed_codes,
    crossed_sums,
    number_of_slices,
    p_against_calibrated,
    p_against_rest,
    row_terms,
    slice_ece,
    sums_of_table,
    where_of,
)

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
                    "yes" if s in self.off else "",
                )
                for s in shown
            ),
            notes=((f"and {more} more",) if more else ()) + self.skipped,
        )

    @property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, adjusted for all slices."""
        return tuple(s for s in self.slices if s.adjusted <= self.rate)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per slice."""
        return data_frame(
            {
                "slice": s.name,
                "rows": s.rows,
                "score": s.score,
                "hits": s.hits,
                "gap": s.gap,
                "low": s.interval.low,
                "high": s.interval.high,
                "p_value": s.p_value,
                "adjusted_p_value": s.adjusted,
                "off": s.adjusted <= self.rate,
                "ece": s.ece,
                "ece_noise": s.ece_noise,
            }
            for s in self.slices
        )


#: The false discovery rate of the default slices. The findings, the tab Groups and the report all start with these, so
#: that they agree.
USUAL_RATE = SLICES - SEGMENTS


def sliceable_columns(data: Dataset) -> tuple[str, ...]:
    """Columns that can be sliced by: groups, numbers, texts of many values, and the time."""
    numbers = [name for name in data.numbers if not name.startswith(INTERVAL)]
    texts = [name for name, text in data.texts.items() if len(text.levels) > 1]
    time = [] if data.times is None else [data.time_name]
    return tuple(dict.fromkeys([*data.groups, *numbers, *texts, *time]))


def usual_columns(data: Dataset) -> tuple[str, ...]:
    """Columns that are sliced by default: all but the time, which the watch tests."""
    time = None if data.times is None else data.time_name
    return tuple(name for name in sliceable_columns(data) if name != time or name in data.groups)


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
    columns = usual_columns(sample.data)
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
    _check(min_rows, rate, level, against)
    sample = Sample.of(data, split=split, reduction=reduction, bins=bins)
    if edges:
        sample = sample.with_data(cut_columns(sample.data, edges))
    measured = sample.view(
        _measured,
        columns=chosen_columns(sample.data, columns),
        pairs=pairs,
        against=against,
        min_rows=min_rows,
        level=level,
        bins=sample.bins_used,
    )
    return replace(measured, rate=rate)


def _check(min_rows: int, rate: float, level: float, against: str) -> None:
    if min_rows < 2:
        raise OptionError(f"'min_rows' must be 2 or more, got {min_rows}.")
    check_level(rate, "rate")
    check_level(level)
    if against not in get_args(Against):
        choices = " or ".join(f"'{name}'" for name in get_args(Against))
        raise OptionError(f"'against' must be {choices}, got '{against}'.")


def chosen_columns(data: Dataset, columns: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to slice by, the usual ones for None; raises NotAvailable without any, OptionError for an unknown one."""
    known = sliceable_columns(data)
    if not known:
        raise NotAvailable("there is no group column to slice by.")
    chosen = usual_columns(data) if columns is None else tuple(dict.fromkeys(columns))
    for name in chosen:
        if name not in known:
            raise no_group_column(data, name)
    return chosen


def edges_of(texts: Iterable[str]) -> dict[str, list[str]]:
    """Read chosen edges, each "age=30,50,65"; raises OptionError."""
    edges: dict[str, list[str]] = {}
    for text in texts:
        name, equals, given = text.rpartition("=")
        if not (name and equals):
            raise OptionError(f"edges must be COL=EDGES, such as age=30,50,65; got '{text}'.")
        edges[name] = given.split(",")
    return edges


D = TypeVar("D", bound=Dataset)


def cut_columns(data: D, edges: Mapping[str, Iterable[object]]) -> D:
    """Return the same data with columns of numbers or dates cut at chosen edges, which every slice of them then has.

    Raises
    ------
    OptionError
        If there is no such column, it holds texts, or the edges are not ascending numbers or dates.
    """
    cuts = dict(data.cuts)
    for name, given in edges.items():
        if name not in sliceable_columns(data):
            raise no_group_column(data, name)
        factor = data.groups.get(name, data.texts.get(name))
        own = cuts.get(name)
        if factor is not None:
            own = cut_of_levels(factor.levels, np.ones(len(factor.levels)))
        cut = cut_at(given, name)
        kind = "texts"
        if own is not None and own.kept is None:
            kind = "dates" if own.dates else "numbers"
        if kind != ("dates" if cut.dates else "numbers"):
            raise OptionError(
                f"'{shortened(name)}' holds {kind} and cannot be cut at {cut.labels[0]}."
            )
        cuts[name] = cut
    result: D = data._with({"cuts": cuts})  # type: ignore[assignment]
    return result


def no_group_column(data: Dataset, column: str) -> OptionError:
    """Return the error about a column that is not among the groups, with those that are."""
    names = ", ".join(shortened(name) for name in sliceable_columns(data)[:10])
    known = f"known: {names}" if names else "these rows have none"
    return OptionError(f"there is no group column '{shortened(column)}'; {known}.")


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
) -> Slices:
    """Measure the slices, which does not depend on the false discovery rate."""
    data, events, weights = sample.data, sample.scored, sample.weights
    cluster = sample.row_draws.cluster
    each_row = cluster is not None or weights is not None
    if cluster is not None and against == "rest":
        raise NotAvailable(
            "slices of clustered rows cannot be tested against the other rows, which share clusters with them; "
            "test them against a calibrated model."
        )
    terms = row_terms(events, weights)
    factors, skipped = sliced_columns(data, columns, min_rows)
    bin_of = assign(events.score, equal_width_edges(bins, events.edge_type))
    z = float(ndtri(0.5 + level / 2))
    whole: SliceSums | None = None
    measured: list[Slice] = []
    small = 0
    for names, table in crossed_sums(
        factors, [*terms[0], *terms[2]], pairs=pairs, bin_of=bin_of, bins=bins
    ):
        # Only weights and clusters need each row again.
        codes = crossed_codes([factors[name] for name in names], data.n) if each_row else bin_of
        sums = sums_of_table(table.sum(axis=1), terms, codes, cluster)
        whole = whole or sums
        if not names:
            continue
        if against == "rest":
            p_values = p_against_rest(sums, whole, events, codes, weights)
        else:
            p_values = p_against_calibrated(sums, events, codes, weights)
        eces, noises = slice_ece(table, sums.mass)
        gaps, half_widths = sums.gap, z * sums.spread
        is_large = (sums.rows >= min_rows) & (sums.mass > 0)
        small += number_of_slices(sums.rows, names) - int(np.count_nonzero(is_large))
        for i in np.flatnonzero(is_large).tolist():
            gap, half_width = float(gaps[i]), float(half_widths[i])
            measured.append(
                Slice(
                    where=where_of(names, factors, i),
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


def sliced_columns(
    data: Dataset, columns: tuple[str, ...], min_rows: int
) -> tuple[dict[str, Factor], tuple[str, ...]]:
    """Columns as they are sliced, by name, and the reasons why others are left out."""
    factors = {name: data.sliced(name) for name in columns}
    why = {name: _why_left_out(data, name, factor, min_rows) for name, factor in factors.items()}
    usable = {name: factor for name, factor in factors.items() if not why[name]}
    return usable, tuple(words for words in why.values() if words)


def _why_left_out(data: Dataset, name: str, factor: Factor, min_rows: int) -> str:
    """Say why a column has no slices; "" if it has."""
    cut = data.cuts.get(name)
    if factor.levels in ((MISSING,), ("",)):
        return f"{name} has no values"
    if cut is None:
        return ""
    texts = data.groups.get(name, data.texts.get(name))
    if texts is not None and len(texts.levels) == data.rows:
        read = None if cut.kept is not None else as_values(texts.levels)
        if read is None or (not cut.dates and (read[0] == np.round(read[0])).all()):
            return f"{name} has a different value in each row"
    if cut.kept is None and len(factor.levels) < 2:
        return f"{name} has one value"
    if (
        cut.kept is not None
        and max(rows for value, rows in factor.counts().items() if value in cut.kept) < min_rows
    ):
        return f"{name} has no value with {min_rows:,} rows or more"
    return ""


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

"""Slices: groups of rows by one or two columns, and for which of them the probabilities are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import get_args

import numpy as np
from scipy.special import ndtri

from calviz.core.arrays import IntArray
from calviz.core.errors import NotAvailable, OptionError, shortened
from calviz.core.factor import Factor
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.numerics.false_discovery import benjamini_hochberg
from calviz.profiles.profile import Profile
from calviz.results.metric_result import Interval
from calviz.results.slices import Against, Slice, Slices
from calviz.sample.false_alarm_levels import SLICES
from calviz.sample.sample import Sample
from calviz.sample.slice_sums import (
    SliceSums,
    bins_of,
    p_against_calibrated,
    p_against_rest,
    slice_ece,
    slice_sums,
)
from calviz.specs.metric import takes_weights

#: Columns with more values than this hold names or numbers rather than groups.
MOST_VALUES = 1_000
#: Pairs of columns with more combinations than this are left out.
MOST_PAIRS = 20_000
#: Columns with more values than this are not sliced by default.
FEW_VALUES = 50


def usual_columns(data: Dataset) -> tuple[str, ...]:
    """Group columns that are sliced by default: those with few values, or the first one if all have many."""
    few = tuple(name for name, f in data.groups.items() if len(f.levels) <= FEW_VALUES)
    return few or tuple(data.groups)[:1]


#: The false discovery rate of the default slices. The findings, the Slices page and the report all start with these, so
#: that they agree.
USUAL_RATE = SLICES


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
    bins: int | None = None,
) -> Slices:
    """Measure all groups of rows that the columns define, and find those that are off beyond chance.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        With group columns. For a sample, its own reduction, rows and bins are used where they are left out below, and
        the results are cached with it.
    columns : iterable of str, optional
        Group columns; all if left out.
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

    Raises
    ------
    NotAvailable
        If there is no group column.
    OptionError
        For an unknown column or a value out of range.
    """
    _check(min_rows, rate, level, against)
    sample = Sample.of(data, split=split, reduction=reduction, bins=bins)
    measured = sample.view(
        _measured,
        columns=_columns(sample.data, columns),
        pairs=pairs,
        against=against,
        min_rows=min_rows,
        level=level,
        bins=sample.bins_used,
    )
    return replace(measured, rate=rate)


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
    if cluster is not None and against == "rest":
        raise NotAvailable(
            "slices of clustered rows cannot be tested against the other rows, which share clusters with them; "
            "test them against a calibrated model."
        )
    whole = slice_sums(events, np.zeros(data.n, dtype=np.intp), 1, cluster, weights)
    bin_of = bins_of(events, bins)
    z = float(ndtri(0.5 + level / 2))
    measured: list[Slice] = []
    skipped: list[str] = []
    small = 0
    for names, codes, values, reason in _groupings(data, columns, pairs):
        if reason:
            skipped.append(reason)
            continue
        sums = slice_sums(events, codes, len(values), cluster, weights)
        p_values = (
            p_against_calibrated(sums) if against == "calibrated" else p_against_rest(sums, whole)
        )
        eces, noises = slice_ece(events, bin_of, bins, codes, len(values), weights)
        is_large = (sums.rows >= min_rows) & (sums.mass > 0)
        small += int(np.count_nonzero(~is_large))
        measured += [
            _slice(
                tuple(zip(names, values[i], strict=True)),
                sums,
                i,
                z=z,
                p_value=float(p_values[i]),
                ece=float(eces[i]),
                ece_noise=float(noises[i]),
            )
            for i in np.flatnonzero(is_large).tolist()
        ]
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
        skipped=tuple(skipped),
    )


def _slice(
    where: tuple[tuple[str, str], ...],
    sums: SliceSums,
    i: int,
    *,
    z: float,
    p_value: float,
    ece: float,
    ece_noise: float,
) -> Slice:
    """Make a slice from number `i` of the sums; its p-value is not adjusted yet."""
    gap, half_width = float(sums.gap[i]), z * float(sums.spread[i])
    return Slice(
        where=where,
        rows=int(sums.rows[i]),
        score=float(sums.score[i] / sums.mass[i]),
        hits=float(sums.hits[i] / sums.mass[i]),
        gap=gap,
        interval=Interval(gap - half_width, gap + half_width),
        p_value=p_value,
        adjusted=1.0,
        ece=ece,
        ece_noise=ece_noise,
    )


def _check(min_rows: int, rate: float, level: float, against: str) -> None:
    if min_rows < 2:
        raise OptionError(f"'min_rows' must be 2 or more, got {min_rows}.")
    for name, value in (("rate", rate), ("level", level)):
        if not 0 < value < 1:
            raise OptionError(f"'{name}' must be between 0 and 1, got {value}.")
    if against not in get_args(Against):
        choices = " or ".join(f"'{name}'" for name in get_args(Against))
        raise OptionError(f"'against' must be {choices}, got '{against}'.")


def _columns(data: Dataset, columns: Iterable[str] | None) -> tuple[str, ...]:
    if not data.groups:
        raise NotAvailable("there is no group column to slice by.")
    chosen = tuple(data.groups if columns is None else dict.fromkeys(columns))
    for name in chosen:
        if name not in data.groups:
            raise no_group_column(data, name)
    return chosen


def no_group_column(data: Dataset, column: str) -> OptionError:
    """Return the error about a column that is not among the groups, with those that are."""
    names = ", ".join(shortened(name) for name in list(data.groups)[:10])
    known = f"known: {names}" if names else "these rows have none"
    return OptionError(f"there is no group column '{shortened(column)}'; {known}.")


Grouping = tuple[tuple[str, ...], IntArray, list[tuple[str, ...]], str]


def _groupings(data: Dataset, columns: tuple[str, ...], pairs: bool) -> Iterator[Grouping]:
    """Yield column names, slice of each row and values of each slice, or the reason why a grouping is skipped."""
    none = np.zeros(0, dtype=np.intp)
    usable: list[str] = []
    for name in columns:
        factor = data.groups[name]
        if len(factor.levels) > MOST_VALUES:
            why = f"{name} has {len(factor.levels):,} values, more than {MOST_VALUES:,}"
            yield (name,), none, [], why
        else:
            usable.append(name)
            yield (name,), factor.codes, [(level,) for level in factor.levels], ""
    for a, b in combinations(usable, 2) if pairs else ():
        first, second = data.groups[a], data.groups[b]
        many = len(first.levels) * len(second.levels)
        if many > MOST_PAIRS:
            why = f"{a} with {b} has {many:,} combinations, more than {MOST_PAIRS:,}"
            yield (a, b), none, [], why
        elif len(first.levels) > 1 and len(second.levels) > 1:
            yield (a, b), *_crossed(first, second), ""


def _crossed(first: Factor, second: Factor) -> tuple[IntArray, list[tuple[str, ...]]]:
    codes = first.codes.astype(np.intp) * len(second.levels) + second.codes
    used, inverse = np.unique(codes, return_inverse=True)
    values: list[tuple[str, ...]] = [
        (first.levels[code // len(second.levels)], second.levels[code % len(second.levels)])
        for code in used.tolist()
    ]
    return inverse.astype(np.intp), values


def _adjusted(measured: list[Slice]) -> tuple[Slice, ...]:
    """Adjust the p-values for the number of slices, and sort by them, smallest first."""
    if not measured:
        return ()
    adjusted = benjamini_hochberg([s.p_value for s in measured])
    with_adjusted = [replace(s, adjusted=float(p)) for s, p in zip(measured, adjusted, strict=True)]
    return tuple(sorted(with_adjusted, key=lambda s: (s.p_value, -abs(s.gap), s.name)))

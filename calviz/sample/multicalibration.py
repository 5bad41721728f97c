"""Multicalibration: the error over all segments of the rows as one number, and the segments where it is largest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.claims import claim
from calviz.core.entry_specs import takes_weights
from calviz.core.errors import NotAvailable, OptionError, check_level, needs
from calviz.core.events import Reduction
from calviz.core.p_values import above
from calviz.core.predictions import Dataset
from calviz.core.profile import Profile
from calviz.core.words import counted, p_number, points, shorten
from calviz.sample.error_bars import LEVEL, SLICES, Interval, NoiseFloor
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import Sample, Where, where_words
from calviz.sample.slices import (
    Grouping,
    chosen_columns,
    cut_columns,
    groupings,
    row_terms,
    sums_of_terms,
)

if TYPE_CHECKING:
    import pandas as pd

#: Expected variance of the hits of a segment below which it is not measured: its tails are hardly known.
LEAST_VARIANCE = 5.0
#: Pairs of columns times rows up to which pairs are measured by default: a second or two.
_PAIRS_TIMES_ROWS = 20_000_000
#: Scores above this number are merged with their neighbours, into cells of about equal counts.
_CELLS = 2_048


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
class Multicalibration(Displayed):
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

    @property
    def off(self) -> tuple[Segment, ...]:
        """Segments that are off beyond noise, all segments taken together, at 1 %."""
        return tuple(s for s in self.segments if s.adjusted <= SLICES)

    @claim(
        "multicalibration",
        says="Over 60 segments: multicalibration error 4.3 points, beyond noise; worst site = c",
        chosen="the segment with the largest error, of all single values and pairs of values",
        adjusted="Šidák over the segments, tails with the skewness of the hits, at 1 %",
    )
    def reading(self) -> str:
        """The number, whether it is beyond noise, and the worst segment, in sentences."""
        floor, worst = self.noise_floor, self.segments[0]
        beyond = floor.p_value <= SLICES
        text = (
            f"Over {counted(self.measured, 'segment')}{', with pairs of columns' if self.pairs else ''}: multicalibration error {points(self.mce)} points (95 % CI "
            f"{points(self.interval.low)} to {points(self.interval.high)}; noise floor {points(floor.mean)}), "
            f"{'beyond' if beyond else 'within'} noise (p {p_number(floor.p_value)})."
        ).replace("95 %", f"{100 * self.level:g} %")
        if not beyond:
            return text
        return (
            f"{text} Largest for {shorten(worst.name, 80)}, {counted(worst.rows, 'row')}: mean score minus hits {points(worst.gap)} points "
            f"({points(worst.interval.low)} to {points(worst.interval.high)}, adjusted for all segments)."
        )

    def summary(self) -> Summary:
        """Summarise the result: the number, and the segments with the largest errors."""
        return Summary(
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

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per segment, the largest error first."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "segment": s.name,
                "rows": s.rows,
                "ecce": s.ecce,
                "sigma": s.sigma,
                "p_value": s.p_value,
                "adjusted_p_value": s.adjusted,
                "gap": s.gap,
                "low": s.interval.low,
                "high": s.interval.high,
            }
            for s in self.segments
        )


def multicalibration(
    data: Dataset | Sample | Profile,
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
        Whether to include the combinations of two columns; if left out, where their number times that of the rows is at most 20 million.
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
    check_level(level)
    if min_rows < 2:
        raise OptionError(f"'min_rows' must be 2 or more, got {min_rows}.")
    sample = Sample.of(data, split=split, reduction=reduction)
    if edges:
        sample = sample.with_data(cut_columns(sample.data, edges))
    chosen = chosen_columns(sample.data, columns)
    if pairs is None:
        pairs = len(chosen) * (len(chosen) - 1) / 2 * sample.data.n <= _PAIRS_TIMES_ROWS
    pairs = pairs and len(chosen) > 1
    return sample.view(_measured, columns=chosen, pairs=pairs, min_rows=min_rows, level=level)


def multicalibration_words(sample: Sample, columns: tuple[str, ...]) -> str:
    """`Multicalibration.reading` of pages and reports; "" if it cannot be measured."""
    try:
        return multicalibration(sample, columns).reading() if columns else ""
    except NotAvailable:
        return ""


#: Segments in the result.
_NAMED = 20


@takes_weights
def _measured(
    sample: Sample, *, columns: tuple[str, ...], pairs: bool, min_rows: int, level: float
) -> Multicalibration:
    data, events, weights = sample.data, sample.scored, sample.weights
    if sample.row_draws.cluster is not None:
        raise NotAvailable(
            "the multicalibration error of clustered rows has no known noise; test slices."
        )
    of_rows, off, _ = terms = row_terms(events, weights)
    cell, cells = _cells(events.score)
    own_variance = np.asarray(of_rows[3], np.float64)
    everywhere: Grouping = ((), np.zeros(data.n, np.intp), [()], "")
    kept: list[tuple[Where, FloatArray, IntArray, int]] = []
    skipped, small = [], 0
    for names, codes, values, why in (everywhere, *groupings(data, columns, pairs, min_rows)):
        if why:
            skipped.append(why)
            continue
        size = len(values)
        sums = np.bincount(codes.astype(np.intp) * cells + cell, -off, minlength=size * cells)
        path = np.cumsum(sums.reshape(size, cells), axis=1)
        spread = np.maximum(path.max(axis=1), 0) - np.minimum(path.min(axis=1), 0)
        rows = np.bincount(codes, minlength=size)
        if events.counted:
            rows = np.bincount(codes, weights, minlength=size)
        mass = rows if weights is None else np.bincount(codes, weights, minlength=size)
        variance, third = (np.bincount(codes, of_rows[i], minlength=size) for i in (3, 4))
        large = np.flatnonzero((rows >= min_rows) & (variance >= LEAST_VARIANCE))
        small += size - large.size
        for i in large.tolist():
            numbers = np.array([rows[i], spread[i], mass[i], variance[i], third[i]])
            kept.append((tuple(zip(names, values[i], strict=True)), numbers, codes, i))
    if not kept:
        raise NotAvailable(
            f"no segment has {min_rows:,} rows or more and an expected variance of hits of {LEAST_VARIANCE:g}."
        )
    rows, spread, mass, variance, third = np.stack([numbers for _, numbers, _, _ in kept], axis=1)
    sigma = spread / np.sqrt(variance)
    tails = above(spread, 0.0, variance, third) + above(spread, 0.0, variance, -third)
    p_values = np.minimum(4 * tails, 1.0)
    adjusted = -np.expm1(len(kept) * np.log1p(-np.minimum(p_values, 1 - 1e-16)))
    order = np.lexsort((-mass, -sigma))
    z = float(ndtri(1 - (1 - level) / 2 / len(kept)))
    segments = []
    for i in order[:_NAMED].tolist():
        where, _, codes, at = kept[i]
        own = sums_of_terms(terms, (codes != at).astype(np.intp), 2)
        gap, half = float(own.gap[0]), z * float(own.spread[0])
        segments.append(
            Segment(
                where,
                int(rows[i]),
                float(spread[i] / mass[i]),
                float(sigma[i]),
                float(p_values[i]),
                float(adjusted[i]),
                gap,
                Interval(gap - half, gap + half),
            )
        )
    unit = float(np.sqrt(own_variance.sum()) / (data.n if weights is None else weights.sum()))
    mean, q95, quantile = _largest_range(len(kept), level)
    largest = float(sigma[order[0]])
    return Multicalibration(
        name=data.name,
        rows=data.rows,
        reduction=sample.reduction.key,
        mce=largest * unit,
        sigma=largest,
        noise_floor=NoiseFloor(mean * unit, q95 * unit, float(adjusted.min())),
        interval=Interval(max(largest - quantile, 0.0) * unit, (largest + quantile) * unit),
        level=level,
        segments=tuple(segments),
        pairs=pairs,
        measured=len(kept),
        small=small,
        skipped=tuple(skipped),
    )


def _cells(score: FloatArray) -> tuple[IntArray, int]:
    """The cell of each row in the order of the scores, shape (n,), and their number; rows of one score are in one cell."""
    _, first, cell, count = np.unique(
        score, return_index=True, return_inverse=True, return_counts=True
    )
    if first.size > _CELLS:
        cell = ((np.cumsum(count) - count) * _CELLS // score.size)[cell]
    return cell.astype(np.intp), min(first.size, _CELLS)


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

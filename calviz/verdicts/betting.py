"""Bets against calibration, what they have won after each look, and confidence sequences of the gaps."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import lambertw, logit, logsumexp

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import Interval
from calviz.core.errors import claim
from calviz.core.row_columns import FINE_CELLS, RowColumns
from calviz.sample.sample import Sample, alike_by

#: Shifts of the logits that are bet on, of all rows and of those in one bin; a true shift below half the smallest is not looked for.
SHIFTS = (0.1, 0.2, 0.4, 0.8, 1.6)
SHIFTS_OF_BINS = (0.2, 0.4, 0.8, 1.6)
#: Factors of the logits, about their median, that are bet on.
SLOPES = (0.5, 0.7, 0.85, 1.2, 1.4, 2.0)
#: Bins of equal counts in the first look, and the share of the wealth bet on all rows, on slopes, and on bins.
BINS, SHARES = 5, (0.7, 0.15, 0.15)
#: How the share of all rows is divided among `SHIFTS`: small ones take many looks anyway, large ones hardly any.
SHARES_OF_SHIFTS = (0.15, 0.35, 0.35, 0.1, 0.05)
#: Share of the wealth that starts with the first look; the s-th look gets 1 / (s (s - 1)) of the rest.
FIRST = 0.8
#: Within this share of the looks, a look is at the start.
ABOUT = 0.05
#: The confidence sequence is tightest at this many times the rows of the first look.
TIGHTEST = 10
#: Logits beyond this count as this.
_FAR = 30.0

Remedy = Literal["offset", "map"]


class Bet(NamedTuple):
    """An alternative: the logits of `bin` (None: of all rows) shifted, or all stretched, and its share of the wealth."""

    kind: Literal["shift", "slope", "bin"]
    size: float
    bin: int | None
    share: float


def bets_on(bins: int) -> tuple[Bet, ...]:
    """The alternatives that are bet on, the same at each look."""
    of_bins = [(sign * size, b) for b in range(bins) for size in SHIFTS_OF_BINS for sign in (1, -1)]
    return (
        *(
            Bet("shift", sign * size, None, SHARES[0] * share / 2)
            for size, share in zip(SHIFTS, SHARES_OF_SHIFTS, strict=True)
            for sign in (1, -1)
        ),
        *(Bet("slope", size, None, SHARES[1] / len(SLOPES)) for size in SLOPES),
        *(Bet("bin", size, b, SHARES[2] / len(of_bins)) for size, b in of_bins),
    )


@dataclass(frozen=True)
class Look:
    """Rows that were looked at together, as sums.

    Attributes
    ----------
    when : str
        The day, or the name of the look.
    digest : str
        Identifies scores and hits, so that no row counts twice.
    rows : int
    units, score, hits : tuple of float
        By bin: number of independent rows (clusters count once, weighted rows as `Watch.heaviest` says), and sums over them of
        scores and hits.
    bets : tuple of float
        Logarithm of the factor by which each bet multiplies its wealth.
    """

    when: str
    digest: str
    rows: int
    units: tuple[float, ...]
    score: tuple[float, ...]
    hits: tuple[float, ...]
    bets: tuple[float, ...]


def days_of(sample: Sample, when: str | None, before: int) -> tuple[list[str], IntArray]:
    """The names of the looks at some rows, and the number of the look of each row, shape (n,)."""
    times = sample.data.times
    if when is not None or times is None:
        return [when or f"look {before + 1}"], np.zeros(sample.data.n, dtype=np.intp)
    days, at = np.unique(times.astype("datetime64[D]"), return_inverse=True)
    return list(map(str, days)), at


def condition(data: RowColumns, look: IntArray, more: bool) -> str:
    """What the chance of a false alarm depends on; "" where clusters have no rows in several looks, of which there may be `more`."""
    if data.clusters is None or data.days_are_clusters:
        return ", if days are independent of each other" * data.days_are_clusters
    pairs = np.unique(np.stack([data.clusters.codes, look]), axis=1)[0]
    again = more or not np.diff(pairs).all()
    return ", if rows of one cluster in several looks are independent" * again


def looks_at(
    sample: Sample,
    names: Sequence[str],
    look: IntArray,
    known: set[str],
    edges: Sequence[float],
    centre: float,
    heaviest: float | None,
) -> Iterator[Look | None]:
    """Yield each look at some rows, which are numbered from 0 on, shape (n,); None for one that is known.

    Slopes are about the logit `centre`; a weight of `heaviest` or more counts as a row.
    """
    data = sample.data
    score = np.asarray(sample.scored.score, dtype=np.float64)
    hit = sample.scored.hit
    counts, middle = row_shares(sample, look, heaviest), score
    if data.cells is not None:
        # Hits and misses of a cell have the same bets, so that these do not depend on the label.
        counts = data.weights
        middle = (np.floor(score * FINE_CELLS) + 0.5).clip(0.5, FINE_CELLS - 0.5) / FINE_CELLS
    bins, n = len(edges) - 1, len(names)
    at = look * bins + np.searchsorted(edges[1:-1], middle, side="left")

    def sums(values: FloatArray) -> FloatArray:
        weights = values if counts is None else counts * values
        return np.bincount(at, weights, minlength=n * bins).reshape(n, bins).astype(np.float64)

    def log_ratios(shift: FloatArray | float) -> FloatArray:
        """Sums of logarithms of likelihood ratios of shifted logits; of a cell, by Jensen's inequality, at most those of its rows."""
        return sums(hit * shift - np.log1p(score * np.expm1(shift)))

    shifted = {
        sign * size: log_ratios(sign * size)
        for size in sorted({*SHIFTS, *SHIFTS_OF_BINS})
        for sign in (1, -1)
    }
    from_centre = logits(middle) - centre
    of_bets = [
        log_ratios((bet.size - 1) * from_centre).sum(1)
        if bet.kind == "slope"
        else shifted[bet.size].sum(1)
        if bet.bin is None
        else shifted[bet.size][:, bet.bin]
        for bet in bets_on(bins)
    ]
    factors = np.stack(of_bets, axis=1)
    columns = [sums(column) for column in (np.ones(score.size), score, hit.astype(np.float64))]
    rows = np.bincount(look, data.weights if data.cells is not None else None, minlength=n)
    order = np.argsort(look, kind="stable")
    for k, of_look in enumerate(np.split(order, np.cumsum(np.bincount(look))[:-1])):
        content = hashlib.sha256(score[of_look].tobytes() + hit[of_look].tobytes())
        if data.weights is not None:
            content.update(data.weights[of_look].tobytes())
        content.update(names[k].encode())
        digest = content.hexdigest()[:16]
        if digest in known:
            yield None
            continue
        units, scores, hits = (tuple(map(float, column[k])) for column in columns)
        logs = tuple(float(f"{value:.9g}") for value in factors[k])
        yield Look(names[k], digest, int(rows[k]), units, scores, hits, logs)


def logits(score: FloatArray) -> FloatArray:
    """Logits of scores, shape (n,), at most 30 from 0."""
    return np.clip(logit(np.asarray(score, dtype=np.float64)), -_FAR, _FAR)


def row_shares(sample: Sample, look: IntArray, heaviest: float | None) -> FloatArray | None:
    """What each row counts, at most 1: its weight, divided by the size of its cluster within the look, or by the design effect of a day that was found to be one."""
    data, shares = sample.data, None
    if data.weights is not None and heaviest is not None:
        shares = np.minimum(data.weights / heaviest, 1)
    if data.clusters is not None:
        codes = look * (data.clusters.codes.max() + 1) + data.clusters.codes
        _, of_row, sizes = np.unique(codes, return_inverse=True, return_counts=True)
        # Rows of a cluster may be as dependent as can be; of days that were found to be clusters it is known.
        alike = alike_by(sample, of_row) if data.days_are_clusters else 1.0
        shares = (1 if shares is None else shares) / (1 + alike * (sizes[of_row] - 1))
    return shares


# ---- Wealth


def _starts(looks: int) -> FloatArray:
    """The share of the wealth that starts with each look, shape (looks,)."""
    later = np.arange(2, looks + 1)
    return np.concatenate([[FIRST], (1 - FIRST) / (later * (later - 1))])


class Wealth:
    """The wealth of the bets after each look, for bins with these edges and at most `alpha` false alarms."""

    def __init__(self, looks: Sequence[Look], edges: Sequence[float], alpha: float) -> None:
        self.looks, self.edges, self.alpha = looks, edges, alpha
        self.bets = bets_on(len(edges) - 1)
        self.shares = np.log([bet.share for bet in self.bets])
        self.factors = np.array([look.bets for look in looks])

    @cached_property
    def logs(self) -> FloatArray:
        """Logarithm of the e-value after each look, shape (T,)."""
        starts = np.log(_starts(len(self.looks)))
        wealth = np.full(len(self.bets), -np.inf)
        after = np.empty_like(self.factors)
        for t, factors in enumerate(self.factors, start=1):
            wealth = np.logaddexp(wealth, starts[t - 1]) + factors
            after[t - 1] = self.shares + wealth
        # What has not started after t looks is (1 - FIRST) / t in all.
        waiting = np.log((1 - FIRST) / np.arange(1, len(after) + 1))
        return np.asarray(np.logaddexp(logsumexp(after, axis=1), waiting))

    @claim(
        "watch",
        says="No longer calibrated, since about ...: an offset explains it",
        chosen="the look, the alternative and the starting time, among all",
        adjusted="a mixture e-process over alternatives and starting times, valid at all looks (Ville's inequality)",
    )
    def found(self) -> tuple[str | None, Remedy | None, float, str | None]:
        """Since when, the remedy, and the offset, by the first look with an alarm, and since when at the latest; None and nan without one."""
        alarms = np.flatnonzero(self.logs >= math.log(1 / self.alpha))
        if not alarms.size:
            return None, None, math.nan, None
        wealth = self._by_start(alarms[0]) + np.log(_starts(alarms[0] + 1))[:, None]
        start = int(np.unravel_index(wealth.argmax(), wealth.shape)[0])
        # If the scores were calibrated before a look, what bets from the first one on have won, over what those from it on have, is 1 at
        # most on average, given the rows since: starts are excluded by this e-value from the last one back (a fixed sequence).
        wealth = logsumexp(self._by_start(len(self.looks) - 1), axis=1)
        latest = int(np.flatnonzero(wealth[0] - wealth < math.log(1 / self.alpha))[-1])
        latest *= latest > ABOUT * len(self.looks)
        return self.looks[start].when, *self._remedy(start), self.looks[latest].when

    def _by_start(self, last: np.intp | int) -> FloatArray:
        """Logarithm of the wealth of each bet after the look `last`, by the look with which it starts, shape (last + 1, B)."""
        return np.asarray(np.cumsum(self.factors[last::-1], axis=0)[::-1] + self.shares)

    def _remedy(self, start: int) -> tuple[Remedy, float]:
        """Whether all bins have the same offset (likelihood-ratio test at the level alpha), and that offset, from a look on.

        The bets on a bin are its log-likelihood at some offsets, less that at 0; between them it is interpolated.
        """
        from scipy.interpolate import CubicSpline  # slow to import, and seldom needed
        from scipy.stats import chi2

        sums = self.factors[start:].sum(0)
        fine = np.linspace(-SHIFTS_OF_BINS[-1], SHIFTS_OF_BINS[-1], 321)
        curves = []
        for b in range(len(self.edges) - 1):
            at = [(0.0, 0.0)]
            at += [(x.size, v) for x, v in zip(self.bets, sums, strict=True) if x.bin == b]
            curves.append(CubicSpline(*np.array(sorted(at)).T)(fine))
        common = np.sum(curves, axis=0)
        statistic = 2 * (np.max(curves, axis=1).sum() - common.max())
        same = chi2.sf(statistic, max(len(curves) - 1, 1)) > self.alpha
        return "offset" if same else "map", float(fine[common.argmax()])

    def gaps(self) -> tuple[Interval, tuple[tuple[float, float, float, Interval], ...]]:
        """Confidence sequence of hit minus score, and by bin: both edges, the mean, and its confidence sequence."""
        units, score, hits = (
            np.array([getattr(look, name) for look in self.looks])
            for name in ("units", "score", "hits")
        )
        alpha, edges = self.alpha, self.edges
        gap = hits - score
        whole = confidence_sequence(gap.sum(1), units.sum(1), alpha)
        bins = []
        for b in range(units.shape[1]):
            has = units[:, b] > 0
            if has.any():
                at = confidence_sequence(gap[has, b], units[has, b], alpha / units.shape[1])
                mean = float(gap[has, b].sum() / units[has, b].sum())
                bins.append((edges[b], edges[b + 1], mean, at))
        return whole, tuple(bins)


def confidence_sequence(sums: FloatArray, counts: FloatArray, alpha: float) -> Interval:
    """Confidence sequence of the mean of hit minus score, after the last look.

    Parameters
    ----------
    sums, counts : ndarray, shape (T,)
        Sum of hit minus score, and number of independent rows, in each look.
    alpha : float
        Chance that any look's interval misses the mean of the expectations so far.

    References
    ----------
    Howard, Ramdas, McAuliffe & Sekhon 2021, eq. 14 (two-sided normal mixture), with the variance 1 / 4 of variables in [0, 1]
    (Hoeffding), and their eq. 29 for the mixture that is tightest after `TIGHTEST` first looks.
    """
    variance, best = counts.sum() / 4, TIGHTEST * counts[0] / 4
    rho = best / (-lambertw(-(alpha**2) / math.e, -1).real - 1)
    reach = math.sqrt((variance + rho) * math.log((variance + rho) / (rho * alpha**2)))
    mean, half = sums.sum() / counts.sum(), reach / counts.sum()
    return Interval(float(max(mean - half, -1)), float(min(mean + half, 1)))

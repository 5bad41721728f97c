"""Signed error of every class and its range for a calibrated model: the basis of all statements about classes.

The ranges are adjusted for the number of classes (`calviz.sample.error_bars.class_level`), so that in all but a few of a thousand
files a calibrated model has every class inside its range. Figures, pages, reports and findings all report a class exactly
where it is outside this range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from calviz.core import blocks, words
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, denominators, quotient
from calviz.core.entry_specs import needs_rows, takes_weights
from calviz.core.p_values import above, middle, middle_of_mean
from calviz.core.predictions import Predictions
from calviz.sample import error_bars, one_vs_rest, true_classes
from calviz.sample.error_bars import CLASS_MEANS, FEWEST_CLUSTERS, ONE_VS_REST_TEST, class_level
from calviz.sample.sample import Sample, Where, full_predictions, predicted_classes

ClassView = Literal["predicted-class", "true-class", "one-vs-rest"]
#: If the typical class is outside its range only with a gap of at least this, a note says so (see `too_few`).
COARSE = 0.2
#: Distances from the range up to this are rounding in sums of single-precision probabilities.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class ClassRanges:
    """Errors of all classes, shape (K,) each.

    Attributes
    ----------
    value : ndarray
        Signed error (see `class_ranges`).
    rows : ndarray
        Number of rows that are predicted as the class (``predicted-class``) or have it as their label.
    has : ndarray of bool
        Whether the class has a value.
    range : (ndarray, ndarray) or None
        Range of the error of a calibrated model; None if unknown.
    needed : ndarray or None
        Smallest distance from the error of a calibrated model at which the class is outside its range; inf where
        no labels could put it outside, as with very few rows.
    """

    value: FloatArray
    rows: FloatArray
    has: BoolArray
    range: tuple[FloatArray, FloatArray] | None
    needed: FloatArray | None = None

    @property
    def beyond(self) -> FloatArray:
        """Signed distance of the error from its range, shape (K,); 0 inside, and without a range."""
        return beyond(self.value, self.range)


@takes_weights
def class_ranges(sample: Sample, *, view: ClassView) -> ClassRanges:
    """Errors by class and their ranges under calibration.

    Parameters
    ----------
    sample : Sample
        Its reduction does not matter.
    view : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows that are predicted as the class (Gupta &
        Ramdas 2022). ``true-class``: the same for the rows whose label is the class (Ao et al. 2023); not 0 for
        a calibrated model. ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.

    Raises
    ------
    NotAvailable
        If the data lack the classes or probabilities that the view needs.
    """
    independent = sample.data.clusters is None
    sums: PredictedClasses | ClassGaps
    if view != "true-class":
        if view == "predicted-class":
            sums = sample.view(predicted_class_sums)
            has, mean = np.asarray(sums.rows > 0), sums.score / denominators(sums.rows)
            level = class_level(int(has.sum()))
        else:
            sums = sample.view(class_gaps)
            has, mean = np.ones(sums.rows.shape, dtype=np.bool_), sums.score / sums.n
            level = class_level(has.size, CLASS_MEANS if has.size > 2 else ONE_VS_REST_TEST)
        spread = sums if independent else sample.view(sums_of_clusters, view=view)
        low, high = spread.calibrated(level)
        if not np.isfinite(low).any():
            return ClassRanges(sums.gap, sums.rows, has, None)
        # The limits of the gap: all rows are hits, or none is.
        low, high = np.maximum(low, mean - 1), np.minimum(high, mean)
        return ClassRanges(sums.gap, sums.rows, has, (low, high), _needed(low, high, mean))
    true = true_classes.true_class_errors_of_sample(sample)
    limits: tuple[FloatArray, FloatArray] | None = None
    half: FloatArray | None = None
    # The probabilities do not tell which true classes the rows of a cluster have together.
    if isinstance(sample.data, Predictions) and independent and sample.data.cells is None:
        limits = true_class_range(sample.view(class_expectation), class_level(true.rows.size))
        half = (limits[1] - limits[0]) / 2
    return ClassRanges(true.mcs, true.rows, np.asarray(true.rows > 0), limits, half)


def _needed(low: FloatArray, high: FloatArray, mean: FloatArray) -> FloatArray:
    """Distance of the nearer end that labels can cross, for ranges around 0: gaps lie between mean score - 1 and mean score."""
    up = np.where(high < mean - _ROUNDING, high, np.inf)
    return np.asarray(np.minimum(up, np.where(low > mean - 1 + _ROUNDING, -low, np.inf)))


def beyond(value: FloatArray, limits: tuple[FloatArray, FloatArray] | None) -> FloatArray:
    """Signed distance of values from their ranges, shape (C,); 0 inside."""
    if limits is None:
        return np.zeros(value.shape)
    # Above the upper end, or (negative) below the lower one; nan, without expected rows, is neither.
    out = np.fmax(value - limits[1], 0) - np.fmax(limits[0] - value, 0)
    return np.asarray(np.where(np.abs(out) > _ROUNDING, out, 0.0))


def too_few(
    rows: FloatArray | IntArray, needed: FloatArray | None, *, rows_in_all: int | None = None
) -> str:
    """Say how large a gap may go unnoticed where classes have few rows; "" if half of the classes can be outside with less than `COARSE`.

    Parameters
    ----------
    rows, needed : ndarray, shape (C,)
        As in `ClassRanges`, for the classes that are judged.
    rows_in_all : int, optional
        Number of rows, for classes that are judged on all rows.

    >>> too_few(np.array([3.0, 3, 60]), np.array([0.625, np.inf, 0.2]))
    'with a median of 3 rows a class, half of the classes could only be found off with a gap above 62 points'
    """
    if needed is None:
        return ""
    needed = needed[~np.isnan(needed)]
    if needed.size < 3:  # one rare class of two says nothing of the other
        return ""
    usual = float(np.sort(needed)[needed.size // 2])
    if usual < COARSE:
        return ""
    median = float(np.median(rows))
    few = f"a median of {median:g} {'row' if median == 1 else 'rows'} a class"
    head = f"with {few if rows_in_all is None else words.counted(rows_in_all, 'row')}, half of the classes could"
    if math.isinf(usual):
        return f"{head} not be found off"
    return f"{head} only be found off with a gap above {math.floor(100 * usual)} points"


@dataclass(frozen=True, eq=False)
class ClassGaps:
    """Sums over the rows, for every column of the probabilities.

    Attributes
    ----------
    n : int
        Number of rows.
    rows : ndarray, shape (K,)
        Rows whose label is the class.
    effective_rows : float
        Effective sample size: n for rows of equal weight.
    powers : ndarray, shape (3, 3, K)
        Sums of p, p^2 and p^3 over all rows, times w, w^2 and w^3 for rows with weights w.
    own : ndarray, shape (2, K)
        Sums of p and p^2 over the rows whose label is the class.
    """

    n: int
    rows: FloatArray
    effective_rows: float
    powers: FloatArray
    own: FloatArray

    @property
    def score(self) -> FloatArray:
        """Sum of the probabilities, shape (K,)."""
        return np.asarray(self.powers[0, 0])

    @property
    def gap(self) -> FloatArray:
        """Mean probability minus frequency, shape (K,)."""
        return np.asarray((self.score - self.rows) / self.n)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of the gap, shape (K,) each, as from a bootstrap with very many resamples.

        The mean of n rows drawn with replacement is approximated by a shifted gamma variable with the same mean, variance
        and skewness.
        """
        n, (p, p2, p3), (own, own2) = self.n, self.powers[:, 0], self.own
        first = (p - self.rows) / n
        second = (p2 - 2 * own + self.rows) / n
        third = (p3 - 3 * own2 + 3 * own - self.rows) / n
        return middle_of_mean(level, self.effective_rows, first, second, third)

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the gap of a calibrated model, shape (K,) each.

        The number of labels of a class is then a sum of independent draws with the probabilities of the rows. As it is an
        integer, the range is widened by half a row on either side (continuity correction).
        """
        variance = self.powers[0, 1] - self.powers[1, 1]
        third = self.powers[0, 2] - 3 * self.powers[1, 2] + 2 * self.powers[2, 2]
        return _range_of_gap(level, self.n, self.score, variance, third)


def _range_of_gap(
    level: float, n: FloatArray | int, score: FloatArray, variance: FloatArray, third: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Range of a gap whose hits are redrawn, shape (K,) each, from sums of scores and cumulants of the hits over n rows."""
    low, high = middle(level, np.zeros(score.shape), variance / n**2, -third / n**3)
    return low - 0.5 / n, high + 0.5 / n


@takes_weights
def class_gaps(sample: Sample) -> ClassGaps:
    """Sum the columns, a block of rows at a time.

    Raises
    ------
    NotAvailable
        For confidence-only data, and profiles without cells of each class.
    """
    if sample.data.cells is not None:
        return _of_cells(sample)
    data, weights = full_predictions(sample), sample.row_weights
    k = data.n_classes
    powers = np.zeros((3, 3, k))
    for rows in blocks.row_blocks(data.probs):
        power = block = data.probs[rows].astype(np.float64)
        times = weights[rows] ** np.array([[1], [2], [3]])
        for total in powers:
            total += times @ power
            power = power * block
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    own: FloatArray = np.stack(
        [np.bincount(data.labels, weights * of_label**power, minlength=k) for power in (1, 2)]
    )
    rows_of: FloatArray = np.bincount(data.labels, weights, minlength=k) * 1.0
    return ClassGaps(data.n, rows_of, blocks.effective_number(weights), powers, own)


def furthest_off(sample: Sample) -> str:
    """The class whose mean probability is furthest from its frequency, by the range of a calibrated model with independent rows."""
    sums = sample.view(class_gaps)
    low, high = sums.calibrated(0.95)
    return str(sample.data.class_names[int(np.abs(sums.gap / (high - low)).argmax())])


#: Slices and classes to test, of those that look furthest off; nearer ones, in standard errors, are off by no adjusted test.
_TRIED, _NEAR = 3, 3.0


def furthest_within(
    sample: Sample, factors: Mapping[str, Factor], outside: BoolArray, min_rows: int
) -> list[tuple[Where, str]]:
    """Values of columns and classes whose mean probability is furthest from its frequency, otherwise than in the other rows, by standard errors of independent rows.

    Parameters
    ----------
    factors : mapping of str to Factor
        The columns.
    outside : ndarray of bool, shape (n,)
        The rows that count.
    min_rows : int
        Fewest of these rows of a value.
    """
    if not factors:
        return []
    data, weights = full_predictions(sample), sample.row_weights
    levels = [((name, value),) for name, factor in factors.items() for value in factor.levels]
    sizes = [len(factor.levels) for factor in factors.values()]
    codes = np.stack([factor.codes for factor in factors.values()], axis=1)
    codes = codes + np.cumsum([0, *sizes[:-1]])
    each, ends = np.repeat(outside * 1.0, len(sizes)), np.arange(data.n + 1) * len(sizes)
    inside = csr_array((each, codes.ravel(), ends), shape=(data.n, len(levels)))
    sums = np.zeros((2, len(levels), data.n_classes))
    for rows in blocks.row_blocks(data.probs):
        p, w = data.probs[rows].astype(np.float64), weights[rows][:, None]
        hit = data.labels[rows][:, None] == np.arange(data.n_classes)
        for total, term in zip(sums, (w * (p - hit), w * w * p * (1 - p)), strict=True):
            total += inside[rows].T @ term
    # All rows have one value of the first column.
    rest = sums[:, : sizes[0]].sum(axis=1, keepdims=True) - sums
    mass, count = inside.T @ weights, inside.T @ np.ones(data.n)
    m, others = mass[:, None], (mass[: sizes[0]].sum() - mass)[:, None]
    own = quotient(sums[0], np.sqrt(sums[1]), otherwise=0.0)
    error = np.sqrt(sums[1] * others**2 + np.abs(rest[1]) * m**2)
    more = quotient(sums[0] * others - rest[0] * m, error, otherwise=0.0)
    away = np.minimum(np.abs(own), np.abs(more)) * (own * more > 0) * (count >= min_rows)[:, None]
    first = np.argsort(-away, axis=None, kind="stable")[:_TRIED]
    found = zip(*(v.tolist() for v in np.unravel_index(first, away.shape)), strict=True)
    return [(levels[i], data.class_names[k]) for i, k in found if away[i, k] > _NEAR]


def _of_cells(sample: Sample) -> ClassGaps:
    samples = sample.view(one_vs_rest.class_samples)
    k, n = len(samples), sample.data.rows
    powers, own, rows = np.zeros((3, 3, k)), np.zeros((2, k)), np.zeros(k)
    for column, one in enumerate(samples):
        events, count = one.scored, one.row_weights
        weighted = np.stack([count * events.score**power for power in (1, 2, 3)])
        # Cells stand for rows of equal weight.
        powers[:, :, column] = weighted.sum(axis=1)[:, None]
        own[:, column] = weighted[:2] @ events.hit
        rows[column] = count @ events.hit
    return ClassGaps(n, rows, n, powers, own)


# ---- Predicted classes

#: Rows summed at a time.
BLOCK_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class PredictedClasses:
    """Sums over rows, grouped by predicted class; shape (K,) each.

    Attributes
    ----------
    rows, hits : ndarray
        Number of rows that are predicted as the class, and of the correct ones among them.
    score : ndarray
        Sum of their confidences c.
    variance, third : ndarray
        Variance and third central moment of the hits of a calibrated model, a sum of independent draws:
        sums of c (1 - c) and c (1 - c) (1 - 2 c).
    residuals : ndarray, shape (2, K)
        Sums of the squares and cubes of confidence minus hit.

    References
    ----------
    Gupta & Ramdas 2022, definition 1 (top-label calibration): P(Y = c(X) | h(X), c(X)) = h(X), here on average
    over the confidences h of each predicted class c.
    """

    rows: FloatArray
    hits: FloatArray
    score: FloatArray
    variance: FloatArray
    third: FloatArray
    residuals: FloatArray
    #: Effective sample size of a mean.
    effective_rows: FloatArray

    @property
    def gap(self) -> FloatArray:
        """Mean confidence minus accuracy, shape (K,); 0 without rows."""
        return np.asarray((self.score - self.hits) / denominators(self.rows))

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of the gap, shape (K,) each, as from a bootstrap with very many resamples of the class's rows."""
        n, first = denominators(self.rows), self.gap
        second, third = self.residuals / n
        return middle_of_mean(level, np.maximum(self.effective_rows, 1), first, second, third)

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the gap of a calibrated model, shape (K,) each, widened by half a row (continuity correction)."""
        n = denominators(self.rows)
        return _range_of_gap(level, n, self.score, self.variance, self.third)


@takes_weights
def predicted_class_sums(sample: Sample) -> PredictedClasses:
    """Group the rows by the class with the largest probability; needs only one score per row.

    Raises
    ------
    NotAvailable
        For confidence-only data without predicted classes.
    """
    data, events, weights = sample.data, sample.top_scored, sample.row_weights
    winner = predicted_classes(data)
    k = data.n_classes or int(winner.max()) + 1
    sums = np.zeros((5, k))
    for start in range(0, data.n, BLOCK_ROWS):  # so that a block stays in the cache
        part = slice(start, start + BLOCK_ROWS)
        w, c = weights[part], events.score[part].astype(np.float64)
        # Cumulants of a weighted sum contain powers of the weights, unless these are numbers of rows; moments of residuals are weighted means.
        again = 1.0 if events.counted else w
        q, r = again * w * c * (1 - c), c - events.hit[part]
        square = w * r * r
        columns = (w * c, q, again * q * (1 - 2 * c), square, square * r)
        for total, column in zip(sums, columns, strict=True):
            total += np.bincount(winner[part], column, minlength=k)
    rows: FloatArray = np.bincount(winner, weights, minlength=k) * 1.0
    return PredictedClasses(
        rows=rows,
        hits=np.bincount(winner[events.hit], weights[events.hit], minlength=k) * 1.0,
        score=sums[0],
        variance=sums[1],
        third=sums[2],
        residuals=sums[3:],
        effective_rows=rows if events.counted else blocks.effective_numbers(winner, weights, k),
    )


# ---- True classes of a calibrated model

#: Bisection steps over the range of a gap, down to a few millionths of a percentage point.
_STEPS = 26


@needs_rows
@takes_weights
def class_expectation(sample: Sample) -> FloatArray:
    """Sums over the rows of ``p``, ``p (1 - p)`` and ``p (1 - p) (1 - 2 p)``, each times 1, g, g^2 and g^3, shape (3, 4, K), for `true_class_range`.

    Row i is in class k with probability ``p_ik`` and then has the gap ``g_ik = conf_i - 1[prediction_i = k]``.

    Raises
    ------
    NotAvailable
        For confidence-only data.
    """
    data = full_predictions(sample)
    winner, k = predicted_classes(data), data.n_classes
    confidence, weights = sample.top_scored.score, sample.row_weights

    def of_block(rows: slice) -> FloatArray:
        sums = np.zeros((3, 4, k))
        # In the precision of the array: its rounding is far below the noise to be measured.
        p = np.array(data.probs[rows], order="C")
        conf, won, w = confidence[rows].astype(np.float64), winner[rows], weights[rows]
        powers = _powers(conf)
        # The m-th cumulant of a weighted sum contains the m-th powers of the weights.
        once, twice, thrice = ((powers * w**m).astype(p.dtype) for m in (1, 2, 3))
        q = p * (1 - p)
        sums[0, :2] += once[:2] @ p
        sums[1, :3] += twice[:3] @ q
        p *= -2
        p += 1
        q *= p
        sums[2] += thrice @ q
        # In the predicted class the gap is conf - 1, not conf.
        change = _powers(conf - 1) - powers
        own = conf * (1 - conf)
        kinds = w * conf, w**2 * own, w * w**2 * own * (1 - 2 * conf)
        for kind, weight in enumerate(kinds):
            for power in range(1, kind + 2):
                sums[kind, power] += np.bincount(won, weight * change[power], minlength=k)
        return sums

    return blocks.sum_over_blocks(data.probs, of_block)


def true_class_range(sums: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Range of the MCS of each true class of a calibrated model, shape (K,) each; ``nan`` without expected rows.

    The MCS of a class is at least c if the sum of ``g_ik - c`` over the rows in the class is at
    least 0: a sum of independent terms, each present with probability ``p_ik``. Its first three cumulants are
    polynomials in c (`sums`, see `class_expectation`), and the range ends where the tails have the probability ``(1 - level) / 2``.
    """
    (p0, p1, *_), (q0, q1, q2, _), (t0, t1, t2, t3) = sums

    def at_least(c: FloatArray) -> FloatArray:
        variance = q2 - 2 * c * q1 + c**2 * q0
        third = t3 - 3 * c * t2 + 3 * c**2 * t1 - c**3 * t0
        return above(np.zeros(c.shape), p1 - c * p0, variance, third)

    ends = []
    for tail in ((1 + level) / 2, (1 - level) / 2):
        low, high = np.full(p0.shape, -1.0), np.ones(p0.shape)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            more = at_least(middle) > tail
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        ends.append(np.where(p0 > 0, (low + high) / 2, np.nan))
    return ends[0], ends[1]


def _powers(base: FloatArray) -> FloatArray:
    """Powers 0 to 3, shape (4, n): products take a tenth of the time of ``**``."""
    powers = np.empty((4, base.size))
    powers[0] = 1
    for power in range(1, 4):
        np.multiply(powers[power - 1], base, out=powers[power])
    return powers


# ---- Clustered rows


@dataclass(frozen=True, eq=False)
class SumsByCluster:
    """Moments of the sums over clusters of score minus hit, for each class, shape (K,) each.

    Attributes
    ----------
    rows, gap : ndarray
        Number of rows of the gap, or sum of their weights, and the gap itself.
    clusters : ndarray
        Number of clusters with such rows.
    variance, between, together : ndarray
        Variance of the sum of the hits of a calibrated model with independent rows, and `calviz.sample.error_bars.squares_of_clusters`.
    second, third : ndarray
        Sums of the squares and cubes of the distances of the sums from the gap times the rows of the cluster.
    """

    rows: FloatArray
    gap: FloatArray
    clusters: FloatArray
    variance: FloatArray
    between: FloatArray
    together: FloatArray
    second: FloatArray
    third: FloatArray

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Interval of the gap, shape (K,) each; ``nan`` for classes with rows in fewer than `FEWEST_CLUSTERS` clusters.

        As from a bootstrap of very many resamples of clusters, with skewness, and widened as the variance is estimated from the
        clusters: by Student's quantile and the unbiased variance.
        """
        degrees = np.maximum(self.clusters - 1, 1)
        wider = stdtrit(degrees, 0.5 + level / 2) / ndtri(0.5 + level / 2)
        wider *= np.sqrt(blocks.quotient(self.clusters, degrees, otherwise=1.0)) / self.rows
        low, high = middle(level, self.gap, self.second * wider**2, self.third * wider**3)
        known = self.clusters >= FEWEST_CLUSTERS
        return np.where(known, low, np.nan), np.where(known, high, np.nan)

    def calibrated(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Range of the gap of a calibrated model, shape (K,) each; ``nan`` for classes that no labels could put outside.

        The test is that of slices (`calviz.sample.slice_tests.p_against_calibrated`).
        """
        quantile = stdtrit(np.maximum(self.clusters - 1, 1), 0.5 + level / 2)
        error = error_bars.error_of_sums(self.variance, self.between, self.together)
        half = quantile * error / self.rows
        # The sum of so many numbers is at most the root of their number times that of their squares.
        half = np.where(quantile**2 < self.clusters, half, np.nan)
        return -half, half


@takes_weights
def sums_of_clusters(sample: Sample, *, view: ClassView) -> SumsByCluster:
    """Sums over clusters of the rows predicted as each class, or one-vs-rest of all rows.

    Raises
    ------
    NotAvailable
        If the data lack the classes or probabilities that the view needs.
    """
    cluster, weights = sample.row_draws.unit, sample.row_weights
    if view == "predicted-class":
        events, winner = sample.top_scored, predicted_classes(sample.data)
        score, classes = events.score.astype(np.float64), sample.data.n_classes
        each = blocks.rows_by_class(winner, classes or int(winner.max()) + 1)
        found = [_moments(cluster[i], weights[i], score[i], events.hit[i]) for i in each]
    else:
        data = full_predictions(sample)
        found = [()] * data.n_classes

        def work(k: int, column: FloatArray) -> None:
            found[k] = _moments(cluster, weights, column, data.labels == k)

        blocks.for_columns(data.probs, work)
    return SumsByCluster(*np.array(found).T)


def _moments(
    cluster: IntArray, weights: FloatArray, score: FloatArray, hit: BoolArray
) -> tuple[float, ...]:
    """What `SumsByCluster` has of one class, whose rows have arguments of shape (n,)."""
    off, deviation = weights * (score - hit), weights * np.sqrt(score * (1 - score))
    columns = (off, deviation, weights * hit, weights)
    sums, *more, mass = (np.bincount(cluster, column) * 1.0 for column in columns)
    one, rows = np.zeros(sums.size, np.intp), mass.sum() or 1.0
    squares = error_bars.squares_of_clusters(one, 1, [sums, *more, mass])
    gap = sums.sum() / rows
    apart = sums - gap * mass
    known = rows, gap, np.count_nonzero(np.bincount(cluster)), deviation @ deviation
    return (*map(float, (*known, *np.ravel(squares), apart @ apart, apart**2 @ apart)),)

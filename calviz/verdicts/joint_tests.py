"""The evidence for a verdict: tests on the same redrawn labels, the direction, size and place of the errors, and scores that rank in reverse."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr

from calviz.core import events, p_values, predictions, probabilities, words
from calviz.core.blocks import FloatArray, IntArray, effective_number, map_threads
from calviz.core.entry_specs import METRICS, Interval, MetricResult, Told, check, takes_weights
from calviz.core.errors import RESAMPLES, NotAvailable, claim
from calviz.metrics.cumulative import ks
from calviz.metrics.proper import brier_miscalibration
from calviz.sample import error_bars
from calviz.sample.binning import FEW_ROWS, BinSums, bin_intervals, expected_share, furthest_off
from calviz.sample.error_bars import CLASS_TEST, LEVEL, OVERALL, p_value, redraw, resampled
from calviz.sample.losses import negative_log_likelihood, squared_error
from calviz.sample.metric_results import Resampling, largest_mean_gap, measured_with_error_bars
from calviz.sample.sample import (
    MIN_ROWS,
    Sample,
    Where,
    chosen_bins,
    event_rate_if_rare,
    event_sums,
    rows_outside,
    rows_where,
)
from calviz.sample.slices import usual_slices
from calviz.sample.step_views import Placements, step_of_rows, steps
from calviz.sample.steps import Steps
from calviz.verdicts.evaluation import BinGap, CalibrationTest, JudgedNumbers

#: If the mean error has one direction, the other is reported too if its side of the ECE is at least this share of the ECE.
LESSER_SHARE = 0.25
#: With two classes, the verdict is about their other view if its error is larger by this factor.
WORSE = 1.25

ErrorDirection = Literal["over", "under", "mixed", "off", "none"]


@dataclass(frozen=True, kw_only=True)
class Evidence(JudgedNumbers):
    """Whether and where the errors of a sample are larger than noise.

    Attributes
    ----------
    reduction : Reduction
        The reduction that the numbers are about: the sample's own or, with two classes, the other view of them if that is
        worse.
    direction : {"over", "under", "mixed", "off", "none"}
        Direction of the error beyond noise; "off" if no direction is shown, "mixed" if both are.
    sides : tuple of bool
        Whether scores are shown to be too high somewhere, and too low somewhere.
    too_high, too_low : BinGap or None
        The bin outside its interval with the largest gap to expect, for each direction that is shown and for that of `worst`.
    """

    reduction: events.Reduction
    direction: ErrorDirection
    sides: tuple[bool, bool]
    too_high: BinGap | None = None
    too_low: BinGap | None = None

    @property
    def beyond_noise(self) -> bool:
        """Whether anything is off beyond noise, adjusted for all tests."""
        return self.direction != "none"

    def test(self, key: str) -> CalibrationTest | None:
        """Return the test of a metric under the reduction that the numbers are about."""
        own = (t for t in self.tests if t.key == key and t.reduction in (self.reduction.key, ""))
        return next(own, None)

    def shows(self, key: str) -> bool:
        """Whether a metric is off beyond noise, adjusted for all tests."""
        test = self.test(key)
        return test is not None and test.adjusted <= OVERALL

    @property
    def shows_itself(self) -> bool:
        """Whether tests of scores and hits under its own reduction show the error, not only those of all classes."""
        return any(t.adjusted <= OVERALL for t in self.tests if t.reduction == self.reduction.key)

    @property
    def shows_places(self) -> bool:
        """Whether its own scores are shown to be off, so that the sentence names where; otherwise only all classes together are."""
        return self.shows_itself or any(self.sides)

    @property
    def off_on_average(self) -> bool:
        """Whether mean score and share of hits differ by more than noise."""
        # Test and interval have to agree: the interval alone is too narrow if all rows are hits.
        excludes_0 = self.interval is None or self.interval_excludes_0
        return self.direction != "none" and self.mcs != 0 and excludes_0 and self.shows("mcs")

    @property
    def strongest(self) -> CalibrationTest:
        """The test with the strongest evidence; the first of equals."""
        own = [t for t in self.tests if t.reduction in (self.reduction.key, "")]
        return min(own, key=lambda t: (t.adjusted, t.p_value))

    @property
    def worst(self) -> BinGap | None:
        """The bin with the larger gap to expect."""
        both = [b for b in (self.too_high, self.too_low) if b is not None]
        return max(both, key=lambda b: abs(b.expected_gap), default=None)


@claim(
    "direction",
    says="too high between 0.8 and 0.9, too low between 0.1 and 0.2",
    chosen="all runs of neighbouring bins",
    adjusted="largest standardised gap over all runs, on redrawn labels",
)
@takes_weights
def collect_evidence(sample: Sample) -> Evidence:
    """Collect the evidence on a sample; intervals and noise floors are those of an evaluation of the same sample."""
    own, *others = sample.once(evidence_of_views)
    for other in others:
        mirrored = other.reduction.kind == "top-label" and event_rate_if_rare(sample) is not None
        larger = not mirrored and _noise_free_size(other) > WORSE * _noise_free_size(own)
        if other.shows_itself and (larger or not own.shows_itself):
            return other
    return own


@claim("worst-bin")
def as_bin(sample: Sample, where: Where) -> str:
    """Where a bin lies that the verdict gives a size of, if it holds the same rows as a slice, but for a tenth; "" if none does."""
    evidence = sample.once(collect_evidence)
    view, inside = sample.but(reduction=evidence.reduction), rows_where(sample.data, where)
    bin_of = events.assign(view.scored.score, chosen_bins(view).edges)
    for one in filter(None, (evidence.too_high, evidence.too_low)):
        which = np.asarray(inside) + 2 * (bin_of == one.index)
        _, *either, both = np.bincount(which, sample.row_counts, 4)
        if both >= 9 * sum(either):
            return one.where
    return ""


@takes_weights
def evidence_of_views(sample: Sample) -> tuple[Evidence, ...]:
    """Collect the evidence on a sample and, with two classes and rows enough, on their other view (`tested_views`)."""
    if sample.data.rows < MIN_ROWS:
        return (_evidence_of(sample, None),)
    return tuple(_evidence_of(view, sample.once(joint)) for view in tested_views(sample))


@claim(
    "sides-of-a-change",
    says="Since about ... forecast too high by 6.8 points; before, not told apart from calibrated",
    chosen="the day, of all, and the strongest of 5 to 10 tests on either side",
    adjusted="size: less the bias of the selection of the change; said only of a change at 2 %; step-down min-p on redrawn labels (Westfall & Young 1993) at 3 % on each side; perhaps: the 95 % interval of the mean gap excludes 0",
)
def side_of_change(
    part: Sample, view: events.Reduction, gap: tuple[float, float, float], less: float
) -> tuple[str, str, str]:
    """Say what the tests of the verdict find on some of the days, and by how much the scores are off in one direction, `less` what a selection makes of noise: as a factor, if they are of rare events, and in points.

    Where these find nothing, but the interval of the mean `gap` of a view, which is told beside, excludes 0: perhaps so.
    """
    evidence = collect_evidence(part.but(resamples=max(part.resamples, RESAMPLES)))
    high, low = map(str.lower, words.too_high(evidence.reduction))
    way = {"over": high, "under": low}.get(evidence.direction)
    if way is None:
        if evidence.direction != "none" or gap[1] <= 0 <= gap[2]:
            nothing = evidence.direction == "none"
            return "not told apart from calibrated" if nothing else "off in places", "", ""
        way = words.too_high(view)[gap[0] < 0].lower()
        size = max(abs(gap[0]) - less, 0.0)
        return (
            f"perhaps {way}",
            "",
            f"{words.amount(words.points(size, words.gap_decimals(size)))} points",
        )
    size = max(abs(evidence.mcs) - less, 0.0)
    observed = evidence.score - math.copysign(size, evidence.mcs)
    times = words.times_off(evidence.score, observed).split(" too ")[0]
    return way, times, f"{words.amount(words.points(size, words.gap_decimals(size)))} points"


def _noise_free_size(evidence: Evidence) -> float:
    """Size of the error without noise, whose square is subtracted: noise adds less to a large error than its own size."""
    beyond = math.sqrt(max(evidence.ece**2 - evidence.noise_floor.mean**2, 0.0))
    return max(abs(evidence.mcs) if evidence.shows("mcs") else 0.0, beyond)


def _evidence_of(sample: Sample, tests: Joint | None) -> Evidence:
    sums, whole = chosen_bins(sample), sample.view(event_sums)

    def measured(key: str, *, noise_floor: bool = False, level: float = LEVEL) -> MetricResult:
        how = Resampling(True, noise_floor, level, "own", sample.resamples, sample.seed)
        return measured_with_error_bars(sample, [METRICS[key]], {}, how)[key]

    ece, mcs = measured(sample.ece_key, noise_floor=True), measured("mcs")
    assert ece.noise_floor is not None
    high = low = beyond = False
    if tests is not None:
        beyond = any(t.adjusted <= OVERALL for t in tests.tests)
        high, low = (beyond and p <= OVERALL for p in tests.sides[sample.reduction.key])
    undirected = Evidence(
        reduction=sample.reduction,
        rows=sample.data.rows,
        score=float(whole.score_sum.sum() / whole.n),
        observed=float(whole.hit_sum.sum() / whole.n),
        mcs=mcs.value,
        interval=mcs.interval,
        ece=ece.value,
        noise_floor=ece.noise_floor,
        # An ECE is never below |MCS|.
        ece_below=ece.interval.high
        if ece.interval
        else largest_mean_gap(sample, mcs.interval, LEVEL),
        direction="off" if beyond else "none",
        sides=(high, low),
        tests=tests.tests if tests else (),
    )
    found = _directed(undirected, sums)
    # Where the mean may be off and one side alone is shown, that is said.
    both = found.direction == "mixed" or (
        found.direction == "off" and not found.interval_excludes_0
    )
    if not both or sample.reduction.kind != "positive":
        return found
    slope = measured("calibration_slope", level=1 - OVERALL)
    if slope.interval is None or slope.interval.low <= 1 <= slope.interval.high:
        return found
    # It does not say what the worst bins deny.
    lower, upper = (found.too_low, found.too_high)[:: 1 if slope.value < 1 else -1]
    turned = lower is not None and upper is not None and lower.low > upper.low
    return found if turned else replace(found, slope=measured("calibration_slope"))


def _directed(evidence: Evidence, sums: BinSums) -> Evidence:
    """Add the direction and the worst bins to the evidence."""
    high, low = evidence.sides
    average = evidence.off_on_average
    high, low = high or (average and evidence.mcs > 0), low or (average and evidence.mcs < 0)
    direction: ErrorDirection = evidence.direction
    if average:
        direction = "over" if evidence.mcs > 0 else "under"
    if high and low and (not average or _lesser(sums) >= LESSER_SHARE * evidence.ece):
        direction = "mixed"
    off = _gaps_of(sums, furthest_off(sums)) if direction != "none" else []
    # Where new rows may be off by nothing, no place is named.
    off = [b for b in off if b.mean_score not in (*b.expected_interval,)]
    # The bin that is worst is named whether or not runs of bins show its direction.
    named = [b for b in off if b is off[0] or (high if b.gap > 0 else low)]
    return replace(
        evidence,
        direction=direction,
        sides=(high, low),
        too_high=next((b for b in named if b.gap > 0), None),
        too_low=next((b for b in named if b.gap < 0), None),
    )


def _lesser(sums: BinSums) -> float:
    """Smaller one of the two sums of weighted gaps, upwards and downwards."""
    weighted = sums.weight * sums.gap
    up = float(np.maximum(weighted, 0).sum())
    return min(up, up - float(weighted.sum()))


def _gaps_of(sums: BinSums, positions: Sequence[int]) -> list[BinGap]:
    """Describe the bins at these positions among those of `bin_intervals`."""
    index, score, low, high = bin_intervals(sums)
    gaps = []
    for position in positions:
        m = int(index[position])
        start, end = map(float, sums.edges[m : m + 2])
        seen = float(score[position]), float(sums.hit_sum[m] / sums.count[m])
        own = Interval(float(low[position]), float(high[position])), int(index.size)
        rows = int(sums.whole_rows[m]), sums.row_words(m)
        few = rows[0] < FEW_ROWS
        gaps.append(BinGap(m, start, end, *rows, *seen, *own, *expected_share(sums, position), few))
    return gaps


# ---- Tests on the same redrawn labels

#: Weights of the tests, which divide the level between them; 1 for all others. Whether scores are off on average comes first; NLL is the
#: most sensitive to scores that are too extreme or too moderate.
WEIGHTS = {"mcs": 3.0, "nll": 1.5}
#: Neighbouring bins are merged until at most this many remain; all runs of these are tested.
MOST_BINS = 40


@dataclass(frozen=True)
class Joint:
    """The tests of a sample, and the directions of its errors.

    Attributes
    ----------
    tests : tuple of CalibrationTest
    sides : dict of str to (float, float)
        By the key of the reduction: p-values of the scores being too high somewhere, and too low somewhere. Each is valid even if
        the scores are off in the other direction everywhere: that only makes the p-value larger.
    """

    tests: tuple[CalibrationTest, ...]
    sides: dict[str, tuple[float, ...]]


def tested_views(sample: Sample) -> tuple[Sample, ...]:
    """Return the sample and, with two classes, their other view: each may hide what the other shows."""
    two = isinstance(sample.data, predictions.Predictions) and sample.data.n_classes == 2
    if two and sample.reduction.kind in ("top-label", "positive", "class"):
        # For a single class, the other view is the top label too.
        other = sample.reduction.other_of_two(sample.data) or events.Reduction()
        return sample, sample.but(reduction=other)
    return (sample,)


@takes_weights
def joint(sample: Sample) -> Joint:
    """Test a sample; p-values are adjusted for all tests made here.

    Under each reduction (`tested_views`): MCS, ECE, KS and the miscalibration part of the Brier score; with a single reduction also
    Spiegelhalter's statistic. For all classes: NLL and Brier score. Functions of hits and scores share their redrawn labels. NLL and
    Brier score of more than two classes are drawn separately, as if they were independent of the rest: conservative by the Gaussian
    correlation inequality (Šidák 1967; Royen 2014) where a small value is a symmetric convex set of statistics, which it is not for the
    miscalibration part of the Brier score. False alarms with 5 and 100 classes were simulated (``benchmarks/claims/verdict.py``).
    """
    views = tested_views(sample)
    two = len(views) == 2
    base = views[1] if two and sample.reduction.kind == "top-label" else sample
    view = base.view(steps)
    calibrated = resampled(view, "under_calibration", **sample.redrawing)
    edges = {s.reduction.key: chosen_bins(s).edges for s in views}
    # At ties, the first class is predicted.
    fold = partial(_folded, ties_flip=two and base.reduction.class_index(base.data) == 1)
    keys = [s.reduction.key for s in views]

    def measure(part: Steps) -> dict[tuple[str, str], FloatArray]:
        """Compute all statistics of a block of resamples, shape (b,) each, by metric and reduction."""
        statistics: dict[tuple[str, str], FloatArray] = {}
        for view in views:
            own = part if view is base else fold(part)
            key = view.reduction.key
            statistics |= {(name, key): value for name, value in _statistics(own, edges[key])}
        if two:
            # Brier score and NLL of two classes are the same in both views.
            statistics["brier", ""] = _brier(part)
            statistics["nll", ""] = _nll(part, probabilities.LOG_FLOOR)
        else:
            statistics["spiegelhalter_z", base.reduction.key] = _spiegelhalter(part)
        return statistics

    measured = measure(view.as_drawn())
    drawn: dict[tuple[str, str], list[FloatArray]] = {}
    parts = list(calibrated.parts())
    for statistics in map_threads(measure, parts, threaded=len(parts) > 1):
        for name, value in statistics.items():
            drawn.setdefault(name, []).append(value)
    columns = {name: np.concatenate(values) for name, values in drawn.items()}
    values = {name: float(value[0]) for name, value in measured.items()}
    sides = {
        key: tuple(p_value(columns.pop((side, key)), values.pop((side, key))) for side in _SIDES)
        for key in keys
    }
    expected = {name: float(column.mean()) for name, column in columns.items()}
    if not two:
        # NLL and Brier score, if there are probabilities of more than two classes.
        for number, (key, make) in enumerate(
            (("nll", negative_log_likelihood), ("brier", squared_error)), start=2
        ):
            try:
                losses = sample.view(make)
                rng = np.random.default_rng([sample.seed, number])
                redrawn = redraw(losses, "under_calibration", rng, sample.resamples)
            except NotAvailable:
                continue
            values[key, ""] = float(losses.mean)
            columns[key, ""] = redrawn.mean
            expected[key, ""] = float(redrawn.mean.mean())
    names = list(columns)
    signed = [name for name in names if name[0] in ("mcs", "spiegelhalter_z", "nll", "brier")]
    shift = {name: expected[name] if name in signed else 0.0 for name in names}
    p, adjusted = p_values.westfall_young(
        np.array([_size(values[n] - shift[n], n in signed) for n in names]),
        np.array([_size(columns[n] - shift[n], n in signed) for n in names]),
        np.array([WEIGHTS.get(n[0], 1.0) for n in names]),
    )
    if not two and sample.data.kind != "confidence" and (sample.data.n_classes or 0) > 2:
        # The means of the classes are tested, too.
        adjusted = np.minimum(adjusted * OVERALL / (OVERALL - error_bars.CLASS_MEANS), 1.0)
    tests = [
        CalibrationTest(*n, values[n], expected[n], float(p[i]), float(adjusted[i]))
        for i, n in enumerate(names)
    ]
    return Joint(tuple(tests), sides)


_SIDES = ("too_high", "too_low")


def _size(value: FloatArray | float, signed: bool) -> FloatArray:
    return np.asarray(np.abs(value) if signed else value)


def _statistics(part: Steps, edges: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    gap = part.score * part.count - part.hits
    n = part.n
    yield "mcs", gap.sum(axis=-1) / n
    starts = np.flatnonzero(np.diff(events.assign(part.score, edges), prepend=-1))
    by_bin = np.add.reduceat(gap, starts, axis=-1)
    yield "ece", np.abs(by_bin).sum(axis=-1) / n
    yield "ks", ks(part)
    yield "brier_miscalibration", brier_miscalibration(part)
    variance = part.count[0] * np.maximum(part.score - part.square, 0)
    high, low = _runs(by_bin, np.add.reduceat(variance, starts))
    yield "too_high", high
    yield "too_low", low


def _runs(gap: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest standardised gap over all runs of neighbouring bins, upwards and downwards, shape (b,) each.

    1 is added to the variance, so that runs with hardly any rows do not dominate.
    """
    if variance.size > MOST_BINS:
        starts = np.linspace(0, variance.size, MOST_BINS, endpoint=False).astype(np.intp)
        gap, variance = np.add.reduceat(gap, starts, axis=-1), np.add.reduceat(variance, starts)
    upto = np.concatenate([np.zeros((gap.shape[0], 1)), np.cumsum(gap, axis=-1)], axis=-1)
    spread = np.concatenate([[0.0], np.cumsum(variance)])
    first, last = np.triu_indices(spread.size, 1)
    z = (upto[:, last] - upto[:, first]) / np.sqrt(spread[last] - spread[first] + 1)
    return z.max(axis=1), -z.min(axis=1)


def _spiegelhalter(part: Steps) -> FloatArray:
    """Spiegelhalter's statistic, scaled equally in all resamples; 0 where it is undefined."""
    weight = 1 - 2 * np.clip(part.score, 0, 1)
    top = ((part.hits - part.count * part.score) * weight).sum(axis=-1)
    variance = float((part.count[0] * weight**2 * part.score * (1 - part.score)).sum())
    return np.asarray(top / np.sqrt(variance) if variance > 0 else np.zeros(top.shape))


def _brier(part: Steps) -> FloatArray:
    """Brier score of two classes, summed over both."""
    square = part.count * part.square - (2 * part.score - 1) * part.hits
    return np.asarray(2 * square.sum(axis=-1) / part.n)


def _nll(part: Steps, least: float) -> FloatArray:
    """NLL of two classes."""
    s = np.clip(part.score, least, 1 - least)
    return np.asarray(
        -(part.hits * np.log(s) + (part.count - part.hits) * np.log1p(-s)).sum(axis=-1) / part.n
    )


def _folded(part: Steps, *, ties_flip: bool) -> Steps:
    """Turn the steps of one of two classes into steps of the top label; equal scores are merged into one step.

    Parameters
    ----------
    part : Steps
        With a leading axis of resamples.
    ties_flip : bool
        Whether a score of 1/2 predicts the other class.
    """
    flip = (part.score < 0.5) | ((part.score == 0.5) & ties_flip)
    score = np.where(flip, 1 - part.score, part.score)
    square = np.where(flip, 1 - 2 * part.score + part.square, part.square)
    order: IntArray = np.argsort(score, kind="stable")
    # Folded scores that differ by less than this are one step.
    starts = np.flatnonzero(np.diff(score[order], prepend=-1) > 1e-7)
    count = np.add.reduceat(part.count[0, order], starts)
    hits = np.where(flip, part.count - part.hits, part.hits)[:, order]
    if starts.size < score.size:
        hits = np.add.reduceat(hits, starts, axis=-1)
    rows = part.count[0, order]
    mean, mean_square = (
        np.add.reduceat(rows * column[order], starts) / count for column in (score, square)
    )
    # By rounding, the mean of equal scores may lie on the other side of the edge of a bin.
    ends = np.append(starts[1:], score.size) - 1
    mean = np.clip(mean, score[order[starts]], score[order[ends]])
    return Steps(mean, np.broadcast_to(count, hits.shape), hits, mean_square, part.params)


# ---- Scores that rank in reverse


#: Level of the test where the verdict finds miscalibration, as it does if scores rank in reverse: this adds nothing to the statements
#: about calibrated files. Otherwise the level is `CLASS_TEST`.
LEVEL_IF_OFF = 0.01
#: Areas between this and 1/2 are negligible, however certain: such scores hardly tell the classes apart.
CLEARLY_BELOW = 0.47
#: Class names up to this length are written out in an option.
NAME = 30


@dataclass(frozen=True)
class AreaTest:
    """Test of an AUROC of 1/2 or more.

    Attributes
    ----------
    of : {"two classes", "class", "confidence"}
        Whose scores: those of the positive one of two classes, of one of more classes, or of the predicted class.
    area : float
        AUROC.
    p_value : float
        One-sided p-value of an area as small as this; 1 if it cannot be tested.
    level : float
        Largest p-value that is beyond chance.
    """

    of: Literal["two classes", "class", "confidence"]
    area: float
    p_value: float
    level: float

    @property
    def in_reverse(self) -> bool:
        """Whether the area is clearly below 1/2, beyond chance."""
        return self.area <= CLEARLY_BELOW and self.p_value <= self.level


@takes_weights
def area_test(sample: Sample) -> AreaTest | None:
    """Test whether the scores rank in reverse; None with fewer than `MIN_ROWS` rows, without hits or misses, or for lower ranks.

    Two classes are tested by the positive one, whatever the reduction; more classes by the reduction's class or by the top label,
    as confidence-only data are.
    """
    data, reduction = sample.data, sample.reduction
    if data.rows < MIN_ROWS:
        return None
    of: Literal["two classes", "class", "confidence"] = "confidence"
    if isinstance(data, predictions.Predictions) and data.n_classes == 2:
        of, reduction = "two classes", events.Reduction.of("positive")
    elif reduction.kind == "class":
        of = "class"
    elif reduction.kind != "top-label":
        return None
    tested = _area(sample.but(reduction=reduction))
    if tested is None:
        return None
    area, p = tested
    # The evidence takes time, and is needed only where it decides.
    open_ = area <= CLEARLY_BELOW and CLASS_TEST < p <= LEVEL_IF_OFF
    off = open_ and sample.once(collect_evidence).beyond_noise
    return AreaTest(of, area, p, LEVEL_IF_OFF if off else CLASS_TEST)


def _area(sample: Sample) -> tuple[float, float] | None:
    """AUROC and its one-sided p-value; None without hits or misses.

    The standard deviation is the larger of two: that of an area of scores which do not depend on the hits (Mann & Whitney 1947, with
    ties), and that estimated from the rows (DeLong et al. 1988), for clusters from the sums over each (Obuchowski 1997). The
    p-value is that of a normal variable or, of weighted and clustered rows, of Student's t with the effective number of groups
    of the rarer kind, less 1.
    """
    view = sample.view(steps)
    placed = Placements.of(view)
    if placed is None:
        return None
    if sample.data.alike:
        independent = _rank_variance(placed) * sum(
            1 / float(kind.sum()) for kind in (placed.hits, placed.misses)
        )
        return placed.area, float(ndtr(-_below_half(placed, max(placed.variance, independent))))
    return placed.area, _p_of_unlike_rows(sample, placed, step_of_rows(sample.scored, view))


def _p_of_unlike_rows(sample: Sample, placed: Placements, step: IntArray) -> float:
    hit, weight, draws = sample.scored.hit, sample.row_weights, sample.row_draws
    group, g = draws.unit, draws.clusters
    of_group = np.bincount(group, placed.influences(step, hit, weight), minlength=g)
    independent, freedom = 0.0, math.inf
    for kind in (hit, ~hit):
        own = weight * kind / (weight @ kind)
        independent += _rank_variance(placed) * float(own @ own)
        per_group = np.bincount(group, own, minlength=g).astype(np.float64)
        freedom = min(freedom, effective_number(per_group) - 1)
    if freedom < 1:
        return 1.0
    variance = float(of_group @ of_group) * g / (g - 1) if g > 1 else 0.0
    return float(stdtr(freedom, -_below_half(placed, max(variance, independent))))


def _rank_variance(placed: Placements) -> float:
    """Variance of the mid-ranks of all rows, as shares of their number, by the rows less 1."""
    count = placed.hits + placed.misses
    n = float(count.sum())
    return float(count @ np.square((np.cumsum(count) - count / 2) / n - 0.5)) / max(n - 1, 1.0)


def _below_half(placed: Placements, variance: float) -> float:
    """Distance of the area below 1/2, in standard deviations; 0 if nothing varies."""
    return (0.5 - placed.area) / variance**0.5 if variance > 0 else 0.0


@claim(
    "in-reverse",
    says="The scores rank in reverse",
    chosen="nothing",
    adjusted="one-sided test of the AUROC at 1 %, or at a sixth of it if nothing else is found",
)
def in_reverse(sample: Sample) -> bool:
    """Whether the scores rank in reverse, beyond chance."""
    test = sample.once(area_test)
    return test is not None and test.in_reverse


@claim("in-reverse")
def reverse_words(sample: Sample) -> str:
    """Return the sentence of the verdict on scores that rank in reverse; "" if they do not."""
    test = sample.once(area_test)
    if test is None or not test.in_reverse:
        return ""
    if test.of == "two classes":
        return "The scores rank the classes in reverse: are they of the other class?"
    if test.of == "class":
        name = words.shorten(sample.reduction.class_name, NAME)
        return f"The scores rank the rows in reverse: are they of another class than '{name}'?"
    return "The confidence ranks the predictions in reverse: the most confident ones are the most often wrong."


@check(
    "CAL026",
    "Scores that rank in reverse",
    reference="Mann & Whitney 1947; DeLong et al. 1988; Obuchowski 1997",
    clusters=True,
    weights=True,
)
@claim("in-reverse")
def ranks_in_reverse(sample: Sample) -> Iterator[Told]:
    """Report an AUROC clearly below 1/2, and what to read or check."""
    test = sample.once(area_test)
    if test is None or not test.in_reverse:
        return
    rows = words.counted(sample.data.rows, "row")
    seen = f"AUROC {words.decimal(test.area, 3)}, where useless scores have 0.5 ({words.p_value(test.p_value)})"
    names = sample.data.class_names
    if test.of == "two classes":
        text = (
            f"The scores rank the classes in reverse on {rows}: {seen}; are they of {words.listed(names[:1])}, not of {words.listed(names[1:])}? "
            f"If so, name the classes in the other order{_other_order(names)}; where the header names the class of a column, or the "
            "labels are numbers of columns, correct those."
        )
    elif test.of == "class":
        text = (
            f"The scores of {words.listed([sample.reduction.class_name])} rank in reverse on {rows}: {seen}; check which class each score "
            "column is of."
        )
    else:
        check = "which class each score column is of"
        if sample.data.cells is not None:  # of probabilities or of a confidence
            check = "what the scores are of, and what the labels mean"
        elif not isinstance(sample.data, predictions.Predictions):
            check = "that 1 means a right prediction, and that the score is a confidence, which is large for sure predictions"
        text = f"The most confident predictions are the most often wrong on {rows}: {seen}; check {check}."
    yield "warning", text


def _other_order(names: Sequence[str]) -> str:
    """The options that name two classes in the other order, for the command line and for Python; "" for names that do not fit there."""
    turned = names[::-1]
    if any(len(name) > NAME or "," in name or not name.isprintable() for name in names):
        return ""
    option = shlex.quote(",".join(turned))
    return f" (--class-names {option}, or class_names={list(turned)})"


@takes_weights
def rest_of_rows(sample: Sample) -> Sample | None:
    """The rows outside the slices that are named; None if these do not differ from them beyond chance, none is off, or too few are left."""
    found = usual_slices(sample)
    if found is None or not (found.apart or (found.rest and found.named)):
        return None
    outside = rows_outside(sample.data, [s.where for s in found.named])
    others = sample.rows_of(outside) if outside.any() else None
    return others if others and others.data.rows >= MIN_ROWS else None

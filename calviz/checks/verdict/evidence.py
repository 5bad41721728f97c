"""Evidence for the verdict and the checks of miscalibration: gaps, and the gaps that noise alone produces."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calviz.checks.verdict.joint_tests import Joint, joint, tested_views
from calviz.core.reduction import Reduction
from calviz.metrics.binned import ece
from calviz.metrics.mcs import mcs
from calviz.numerics.proportions import clopper_pearson
from calviz.results.metric_result import Interval, NoiseFloor
from calviz.results.verdict import BinGap, CalibrationTest
from calviz.sample.bin_gaps import bin_intervals, bins_off
from calviz.sample.binning import BinSums
from calviz.sample.error_bars import interval, p_value, resampled
from calviz.sample.false_alarm_levels import OVERALL
from calviz.sample.sample import Sample, chosen_bins, event_sums
from calviz.specs.metric import METRICS, takes_weights

#: With fewer rows there is no statement on calibration: any estimate is mostly noise.
MIN_ROWS = 30
#: With fewer hits or misses than this, resampling rows is unreliable.
FEW = 10
#: If the mean error has one direction, the other is reported too if its side of the ECE is at least this share of the ECE.
LESSER_SHARE = 0.25
#: With two classes, the verdict is about their other view if its error is larger by this factor.
WORSE = 1.25

ErrorDirection = Literal["over", "under", "mixed", "off", "none"]


@dataclass(frozen=True)
class Evidence:
    """Whether and where the errors of a sample are larger than noise.

    Attributes
    ----------
    reduction : Reduction
        The reduction that the numbers are about: the sample's own or, with two classes, the other view of them if that is
        worse.
    rows : int
    score, observed : float
        Mean score and share of hits.
    mcs : float
        Their difference; above 0 the scores are too high.
    interval : Interval or None
        Bootstrap interval of `mcs`; None if resampling changes nothing.
    ece : float
    floor : NoiseFloor
        The ECE of a calibrated model with the same scores.
    ece_below : float
        Upper bound of the true ECE at 95 % confidence.
    direction : {"over", "under", "mixed", "off", "none"}
        Direction of the error beyond noise; "off" if no direction is shown, "mixed" if both are.
    sides : tuple of bool
        Whether scores are shown to be too high somewhere, and too low somewhere.
    too_high, too_low : BinGap or None
        The bin that is most certainly off, for each direction that is shown.
    tests : tuple of CalibrationTest
        All tests, under every reduction considered; empty with fewer than `MIN_ROWS` rows.
    """

    reduction: Reduction
    rows: int
    score: float
    observed: float
    mcs: float
    interval: Interval | None
    ece: float
    floor: NoiseFloor
    ece_below: float
    direction: ErrorDirection
    sides: tuple[bool, bool]
    too_high: BinGap | None
    too_low: BinGap | None
    tests: tuple[CalibrationTest, ...]

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
    def off_on_average(self) -> bool:
        """Whether mean score and share of hits differ by more than noise."""
        # Test and interval have to agree: the interval alone is too narrow if all rows are hits.
        excludes_zero = self.interval is None or not self.interval.low <= 0 <= self.interval.high
        return self.direction != "none" and self.mcs != 0 and excludes_zero and self.shows("mcs")

    @property
    def strongest(self) -> CalibrationTest:
        """The test with the strongest evidence; the first of equals."""
        own = [t for t in self.tests if t.reduction in (self.reduction.key, "")]
        return min(own, key=lambda t: (t.adjusted, t.p_value))

    @property
    def worst(self) -> BinGap | None:
        """The larger of the two gaps."""
        both = [b for b in (self.too_high, self.too_low) if b is not None]
        return max(both, key=lambda b: abs(b.gap), default=None)


@takes_weights
def collect_evidence(sample: Sample) -> Evidence:
    """Collect the evidence on a sample; intervals and noise floors are those of an evaluation of the same sample."""
    if sample.data.rows < MIN_ROWS:
        return _evidence_of(sample, None)
    tests = sample.once(joint)
    candidates = [
        _evidence_of(view, tests)
        for view in tested_views(sample)
        if _is_candidate(view, sample, tests)
    ]
    own, *others = candidates
    for other in others:
        if not own.shows_itself or _noise_free_size(other) > WORSE * _noise_free_size(own):
            return other
    return own


def _is_candidate(view: Sample, sample: Sample, tests: Joint) -> bool:
    """Whether a view is a candidate: the sample itself always is, its other view if a test of that view shows an error."""
    key = view.reduction.key
    own = [t for t in tests.tests if t.reduction == key and t.adjusted <= OVERALL]
    return view is sample or bool(own)


def _noise_free_size(evidence: Evidence) -> float:
    """Size of the error without noise, whose square is subtracted: noise adds less to a large error than its own size."""
    beyond = math.sqrt(max(evidence.ece**2 - evidence.floor.mean**2, 0.0))
    return max(abs(evidence.mcs) if evidence.shows("mcs") else 0.0, beyond)


def _evidence_of(sample: Sample, tests: Joint | None) -> Evidence:
    sums = chosen_bins(sample)
    whole = sample.view(event_sums)
    difference, error = float(mcs(whole)), float(ece(sums))
    calibrated = ece(resampled(sums, "under_calibration", **sample.redrawing))
    drawn = ece(resampled(sums, "bootstrap", **sample.redrawing))
    ece_interval = interval(
        drawn,
        value=error,
        view=sums,
        method=METRICS["ece"].interval,
        calibrated=calibrated,
        bounds=METRICS["ece"].bounds,
    )
    floor = NoiseFloor(
        float(calibrated.mean()),
        float(np.quantile(calibrated, 0.95)),
        p_value(calibrated, error),
    )
    mcs_drawn = mcs(resampled(whole, "bootstrap", **sample.redrawing))
    mcs_interval = interval(mcs_drawn, view=whole, value=difference, bounds=METRICS["mcs"].bounds)
    key = sample.reduction.key
    high = low = beyond = False
    if tests is not None:
        beyond = any(t.adjusted <= OVERALL for t in tests.tests)
        sides = tests.sides[key]
        high, low = (beyond and p <= OVERALL for p in (sides.too_high, sides.too_low))
    undirected = Evidence(
        reduction=sample.reduction,
        rows=sample.data.rows,
        score=float(whole.score_sum.sum() / whole.n),
        observed=float(whole.hit_sum.sum() / whole.n),
        mcs=difference,
        interval=mcs_interval,
        ece=error,
        floor=floor,
        ece_below=_below(whole, ece_interval, mcs_interval),
        direction="off" if beyond else "none",
        sides=(high, low),
        too_high=None,
        too_low=None,
        tests=tests.tests if tests else (),
    )
    return _directed(undirected, sums)


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
    gaps = _worst_bins(sums)
    return replace(
        evidence,
        direction=direction,
        sides=(high, low),
        too_high=gaps[0] if high else None,
        too_low=gaps[1] if low else None,
    )


def _lesser(sums: BinSums) -> float:
    """Smaller one of the two sums of weighted gaps, upwards and downwards."""
    weighted = sums.weight * sums.gap
    up = float(np.maximum(weighted, 0).sum())
    return min(up, up - float(weighted.sum()))


def _below(whole: BinSums, ece_interval: Interval | None, mcs_interval: Interval | None) -> float:
    """Upper bound of the true ECE at 95 % confidence: the upper end of its interval, and at least that of |MCS|.

    An ECE is never below |MCS|, so that a smaller bound would contradict the interval of the MCS. If (nearly) all rows are
    hits, or none, resampling is unreliable: an exact interval for the share of hits then bounds |MCS|.
    """
    ends = [] if mcs_interval is None else [abs(end) for end in mcs_interval]
    if ece_interval is not None:
        ends.append(ece_interval.high)
    hits, n = (float(v.sum()) for v in whole.trials)
    if ece_interval is None or min(hits, n - hits) < FEW:
        score = float(whole.score_sum.sum()) / float(whole.n)
        ends += [abs(score - float(share)) for share in clopper_pearson(hits, n)]
    return max(ends)


def _worst_bins(sums: BinSums) -> tuple[BinGap | None, BinGap | None]:
    """Return the bins furthest outside their adjusted interval, with scores too high and too low."""
    index, score, low, high = bin_intervals(sums)
    worst_bins: list[BinGap | None] = []
    for worst in bins_off(sums):
        if worst is None:
            worst_bins.append(None)
            continue
        m = int(index[worst])
        worst_bins.append(
            BinGap(
                index=m,
                low=float(sums.edges[m]),
                high=float(sums.edges[m + 1]),
                rows=int(sums.whole_rows[m]),
                mean_score=float(score[worst]),
                observed=float(sums.hit_sum[m] / sums.count[m]),
                interval=Interval(float(low[worst]), float(high[worst])),
                bins=int(index.size),
            )
        )
    return worst_bins[0], worst_bins[1]

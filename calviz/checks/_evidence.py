"""What the verdict and the checks on miscalibration go by: gaps, and what noise alone would do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.results import Interval, NoiseFloor
from calviz.core.words import ends
from calviz.metrics.binned import ece
from calviz.metrics.confidence import mcs
from calviz.numerics.binning import BinSums, Scheme
from calviz.numerics.error_bars import LEVEL, interval, p_value, stream
from calviz.numerics.proportions import clopper_pearson
from calviz.numerics.sample import Sample, bin_sums, event_sums

#: Share of calibrated models that may be called miscalibrated. It is divided between the two questions
#: asked of every sample, "off on average?" (MCS) and "off anywhere?" (ECE).
ALPHA = 0.05
#: A model is off in both directions where the lesser one has at least this share of the ECE.
LESSER_SHARE = 0.25

Direction = Literal["over", "under", "mixed", "none"]


@dataclass(frozen=True)
class BinGap:
    """One bin whose gap noise does not explain.

    Attributes
    ----------
    index : int
        0-based, empty bins included.
    low, high : float
        The bin's edges.
    rows : int
    mean_score, observed : float
    interval : Interval
        Exact interval of the share of hits.
    """

    index: int
    low: float
    high: float
    rows: int
    mean_score: float
    observed: float
    interval: Interval

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.mean_score - self.observed

    @property
    def where(self) -> str:
        """Its place in words ("0.8 and 0.9")."""
        return " and ".join(ends(self.low, self.high, tolerance=0.06))


@dataclass(frozen=True)
class Evidence:
    """Whether and where a sample is off by more than noise.

    Attributes
    ----------
    rows : int
    score, observed : float
        Mean score and share of hits.
    mcs : float
        Their difference; above 0 the scores are too high.
    interval : Interval or None
        Bootstrap interval of `mcs`; None where resampling changes nothing.
    mcs_p : float
        Two-sided p-value of `mcs` under calibration.
    ece : float
    floor : NoiseFloor
        The ECE of a calibrated model on as many rows.
    direction : {"over", "under", "mixed", "none"}
        Which way it is off, beyond noise.
    too_high, too_low : BinGap or None
        The bin that is most certainly off, in either direction.
    """

    rows: int
    score: float
    observed: float
    mcs: float
    interval: Interval | None
    mcs_p: float
    ece: float
    floor: NoiseFloor
    direction: Direction
    too_high: BinGap | None
    too_low: BinGap | None

    @property
    def off_on_average(self) -> bool:
        """Whether mean score and share of hits differ by more than noise."""
        # Both ways of seeing noise have to agree: the interval is narrow where all rows hit.
        apart = self.interval is None or not self.interval.low <= 0 <= self.interval.high
        return self.mcs != 0 and self.mcs_p <= ALPHA / 2 and apart

    @property
    def worst(self) -> BinGap | None:
        """The larger of the two gaps."""
        both = [b for b in (self.too_high, self.too_low) if b is not None]
        return max(both, key=lambda b: abs(b.gap), default=None)


def evidence(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> Evidence:
    """Weigh a sample; intervals and noise floors are those of an evaluation with the same seed."""
    sums = sample.view(bin_sums, bins=bins, scheme=scheme)
    whole = sample.view(event_sums)
    off = float(mcs(whole))
    drawn_off = mcs(whole.under_calibration(stream(seed, "under_calibration"), resamples))
    calibrated = sums.under_calibration(stream(seed, "under_calibration"), resamples)
    error, drawn_error = float(ece(sums)), ece(calibrated)
    mean_off = float(drawn_off.mean())
    found = Evidence(
        rows=sample.data.n,
        score=float(whole.score_sum.sum() / whole.n),
        observed=float(whole.hit_sum.sum() / whole.n),
        mcs=off,
        interval=interval(mcs(whole.bootstrap(stream(seed, "bootstrap"), resamples)), value=off),
        mcs_p=p_value(np.abs(drawn_off - mean_off), abs(off - mean_off)),
        ece=error,
        floor=NoiseFloor(
            float(drawn_error.mean()),
            float(np.quantile(drawn_error, 0.95)),
            p_value(drawn_error, error),
        ),
        direction="none",
        **_worst_bins(sums),
    )
    return replace(found, direction=_direction(found, sums, calibrated))


def _direction(found: Evidence, sums: BinSums, calibrated: BinSums) -> Direction:
    if not found.off_on_average and found.floor.p_value > ALPHA / 2:
        return "none"
    lesser = float(_lesser(sums))
    in_both = (
        lesser >= LESSER_SHARE * found.ece and p_value(_lesser(calibrated), lesser) <= ALPHA / 2
    )
    if in_both or not found.off_on_average:
        return "mixed"
    return "over" if found.mcs > 0 else "under"


def _lesser(sums: BinSums) -> FloatArray:
    """The smaller one of the weighted gaps upwards and downwards, shape (...)."""
    weighted = sums.weight * sums.gap
    up = np.maximum(weighted, 0).sum(axis=-1)
    return np.asarray(np.minimum(up, up - weighted.sum(axis=-1)))


def _worst_bins(sums: BinSums) -> dict[str, BinGap | None]:
    """The bins that are most certainly off: that stay furthest from their interval, corrected for their number."""
    filled = np.flatnonzero(sums.count)
    count, hits, score = sums.count[filled], sums.hit_sum[filled], sums.confidence[filled]
    low, high = clopper_pearson(hits, count, level=1 - ALPHA / filled.size)
    found: dict[str, BinGap | None] = {}
    for name, distance in (("too_high", score - high), ("too_low", low - score)):
        worst = int(np.argmax(distance))
        found[name] = None
        if distance[worst] > 0:
            m = int(filled[worst])
            exact = clopper_pearson(hits[worst], count[worst], level=LEVEL)
            found[name] = BinGap(
                index=m,
                low=float(sums.edges[m]),
                high=float(sums.edges[m + 1]),
                rows=int(count[worst]),
                mean_score=float(score[worst]),
                observed=float(hits[worst] / count[worst]),
                interval=Interval(float(exact[0]), float(exact[1])),
            )
    return found

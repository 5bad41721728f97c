"""The verdict on a sample, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calviz.results.metric_result import Interval, NoiseFloor
from calviz.text.gaps import SLIGHT, gap_decimals, share_decimals
from calviz.text.words import decimals_for, range_ends

VerdictDirection = Literal["over", "under", "mixed", "off", "calibrated", "undecided"]


@dataclass(frozen=True)
class BinGap:
    """A bin whose gap is beyond noise.

    Attributes
    ----------
    index : int
        0-based, empty bins included.
    low, high : float
        Edges of the bin.
    rows : int
    mean_score, observed : float
    interval : Interval
        Exact interval of the share of hits, simultaneous at 95 % for all bins.
    bins : int
        Number of non-empty bins, which the interval is adjusted for.
    """

    index: int
    low: float
    high: float
    rows: int
    mean_score: float
    observed: float
    interval: Interval
    bins: int

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.mean_score - self.observed

    @property
    def slight(self) -> bool:
        """Whether the gap is slight."""
        return abs(self.gap) < SLIGHT

    @property
    def share_decimals(self) -> int:
        """Number of decimals of both shares in percent."""
        return share_decimals(self.mean_score, self.observed)

    @property
    def where(self) -> str:
        """The edges in words ("0.8 and 0.9")."""
        return " and ".join(range_ends(self.low, self.high, tolerance=0.06))


@dataclass(frozen=True)
class CalibrationTest:
    """One of the tests that the verdict is based on.

    Attributes
    ----------
    key : str
        The tested metric.
    reduction : str
        Written form of the reduction; empty if the metric uses all classes.
    value, expected : float
        The metric, and its mean for a calibrated model.
    p_value : float
        p-value of this test alone.
    adjusted : float
        The p-value adjusted for all tests of the verdict (Westfall & Young 1993).
    """

    key: str
    reduction: str
    value: float
    expected: float
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class Verdict:
    """The verdict on a sample, and the numbers behind it.

    Attributes
    ----------
    sentence : str
        The verdict in words (plain text; a class name in it is shortened, not escaped).
    direction : {"over", "under", "mixed", "off", "calibrated", "undecided"}
        In this order: scores too high; too low; both, in different places; off without a clear direction, or only in classes
        or slices; no miscalibration found; too few rows to tell.
    reduction : str
        The reduction that the sentence and the numbers are about: the requested one or, with two classes, the other one
        if it is worse.
    rows : int
    score, observed : float
        Mean score and share of hits (mean confidence and accuracy, for the top label).
    mcs : float
        Mean score minus share of hits; positive if the scores are too high.
    interval : Interval or None
        95 % bootstrap interval of `mcs`, if available.
    ece : float
        Expected calibration error with the requested bins.
    noise_floor : NoiseFloor
        The ECE of a calibrated model on the same number of rows.
    ece_below : float
        Upper 95 % confidence bound of the true ECE.
    worst : BinGap or None
        The bin that is most certainly off in the direction of the verdict; None if no single bin is
        off beyond noise.
    tests : tuple of CalibrationTest
        Tests of the sample as a whole; empty if there are too few rows.
    beyond_noise : bool
        Whether any of `tests` is beyond noise, adjusted for their number.
    classes_off : tuple of str
        Groups of classes that are off beyond noise, in words; only if the sample as a whole is not.
    slices, slices_off : int
        Number of tested slices of the usual group columns, and of those that are off beyond chance.
    tells_apart : bool
        False if the probabilities hardly discriminate between the classes (`calviz.checks.no_discrimination`).
    other_view : str or None
        What the reduction of two-class data that `sentence` is not about shows, if it differs.
    """

    sentence: str
    direction: VerdictDirection
    reduction: str
    rows: int
    score: float
    observed: float
    mcs: float
    interval: Interval | None
    ece: float
    noise_floor: NoiseFloor
    ece_below: float
    worst: BinGap | None
    tests: tuple[CalibrationTest, ...] = ()
    beyond_noise: bool = False
    classes_off: tuple[str, ...] = ()
    slices: int = 0
    slices_off: int = 0
    tells_apart: bool = True
    other_view: str | None = None

    @property
    def mcs_decimals(self) -> int:
        """Number of decimals of `mcs` in points."""
        return mcs_decimals(self.interval)

    @property
    def share_decimals(self) -> int:
        """Number of decimals of `score` and `observed` in percent."""
        return share_decimals(self.score, self.observed, self.mcs_decimals, gap_decimals(self.ece))


def mcs_decimals(interval: Interval | None) -> int:
    """Number of decimals of an MCS in points that its uncertainty justifies."""
    if interval is None:
        return 1
    return decimals_for(50 * (interval.high - interval.low), figures=1, most=2)

"""What the verdict says, and the numbers that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calviz.results.evaluation import Interval, NoiseFloor
from calviz.results.gaps import SLIGHT, gap_decimals, share_decimals
from calviz.text.words import decimals_for, ends

VerdictDirection = Literal["over", "under", "mixed", "off", "calibrated", "undecided"]


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
        Exact interval of the share of hits, at 95 % for all bins together.
    bins : int
        How many bins have rows: what the interval is adjusted for.
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
        """Whether the gap is a slight one."""
        return abs(self.gap) < SLIGHT

    @property
    def share_decimals(self) -> int:
        """Decimals of both shares in percent."""
        return share_decimals(self.mean_score, self.observed)

    @property
    def where(self) -> str:
        """Its place in words ("0.8 and 0.9")."""
        return " and ".join(ends(self.low, self.high, tolerance=0.06))


@dataclass(frozen=True)
class CalibrationTest:
    """One test that the verdict makes of a sample.

    Attributes
    ----------
    key : str
        The metric that is tested.
    reduction : str
        Written form of the reduction; empty if the metric looks at all classes.
    value, expected : float
        The metric, and its mean for a calibrated model.
    p_value : float
        Of this test alone.
    adjusted : float
        The p-value with all tests of the verdict taken together (Westfall & Young 1993).
    """

    key: str
    reduction: str
    value: float
    expected: float
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class Verdict:
    """The verdict on a sample, and the numbers that it rests on.

    Attributes
    ----------
    sentence : str
        The verdict in words (plain text; a class name in it is shortened, not escaped).
    direction : {"over", "under", "mixed", "off", "calibrated", "undecided"}
        Scores too high, too low, both in different places, off without a direction that is shown (or in classes or slices only),
        no miscalibration found; or too few rows to tell.
    reduction : str
        What the sentence and the numbers are about: the reduction that was asked for, or, with two classes, the other
        view of them where that one is worse.
    rows : int
    score, observed : float
        Mean score and share of hits (mean confidence and accuracy, for the top label).
    mcs : float
        Their difference; above 0 the scores are too high.
    interval : Interval or None
        95 % bootstrap interval of `mcs`; None if there is none.
    ece : float
        Expected calibration error over the bins that were asked for.
    noise_floor : NoiseFloor
        The ECE of a calibrated model on the same number of rows.
    ece_below : float
        The true ECE is below this with 95 % confidence.
    worst : BinGap or None
        The bin that is most certainly off in the direction of the verdict; None if no single bin
        is off beyond noise.
    tests : tuple of CalibrationTest
        What was tested on the sample as a whole; empty if there are too few rows.
    beyond_noise : bool
        Whether any of `tests` is beyond noise, adjusted for their number.
    classes_off : tuple of str
        Where the sample as a whole shows nothing: which groups of classes are off beyond noise, in words.
    slices, slices_off : int
        How many slices of the usual group columns were tested, and how many are off beyond chance.
    tells_apart : bool
        False where the probabilities hardly tell the classes apart (`calviz.checks.no_discrimination`).
    other_view : str or None
        What the view of two classes shows that `sentence` does not speak of, where it differs.
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
        """Decimals of `mcs` in points."""
        return mcs_decimals(self.interval)

    @property
    def share_decimals(self) -> int:
        """Decimals of `score` and `observed` in percent."""
        return share_decimals(self.score, self.observed, self.mcs_decimals, gap_decimals(self.ece))


def mcs_decimals(interval: Interval | None) -> int:
    """The number of decimals of an MCS in points that its uncertainty allows."""
    if interval is None:
        return 1
    return decimals_for(50 * (interval.high - interval.low), figures=1, most=2)

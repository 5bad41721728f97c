"""Whether these probabilities can be trusted, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calviz.checks._evidence import BinGap, Evidence, evidence
from calviz.core.reduction import Reduction
from calviz.core.results import Interval, NoiseFloor
from calviz.core.words import counted, decimals_for, percent, points, score_and_hit, shorten
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample

#: Below this there is no verdict: any estimate is mostly noise.
MIN_ROWS = 30
#: Smaller differences and errors are called slight.
SLIGHT = 0.01
#: Where a calibrated model would show an ECE up to this or more, seeing nothing means little.
BLUNT = 0.1

VerdictDirection = Literal["over", "under", "mixed", "calibrated", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a sample, and the numbers that it rests on.

    Attributes
    ----------
    sentence : str
        The verdict in words (plain text; a class name in it is shortened, not escaped).
    direction : {"over", "under", "mixed", "calibrated", "undecided"}
        Scores too high, too low, both in different places, neither beyond noise; or too few rows to tell.
    rows : int
    score, observed : float
        Mean score and share of hits (mean confidence and accuracy, for the top label).
    mcs : float
        Their difference; above 0 the scores are too high.
    interval : Interval or None
        95 % bootstrap interval of `mcs`; None where there is none.
    ece : float
        Expected calibration error over the bins that were asked for.
    noise_floor : NoiseFloor
        The ECE of a calibrated model on as many rows.
    worst : BinGap or None
        The bin that is most certainly off in the direction of the verdict; None where no single bin
        is off beyond noise.
    """

    sentence: str
    direction: VerdictDirection
    rows: int
    score: float
    observed: float
    mcs: float
    interval: Interval | None
    ece: float
    noise_floor: NoiseFloor
    worst: BinGap | None


def verdict(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> Verdict:
    """Judge a sample.

    Parameters
    ----------
    sample : Sample
    bins, scheme
        The bins of the ECE and of "worst between".
    seed, resamples : int
        Of interval and noise floor; both are those of an evaluation with the same numbers.

    Notes
    -----
    A model counts as miscalibrated where its MCS or its ECE is one that a calibrated model shows in
    fewer than 2.5 % of samples of this size (5 % for the two together). A bin counts as off where its mean
    score lies outside the exact interval of its hits, at 95 % for all bins together.
    """
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    direction, sentence = _judge(seen, sample.reduction)
    worst = {"over": seen.too_high, "under": seen.too_low, "mixed": seen.worst}.get(direction)
    return Verdict(
        sentence=sentence,
        direction=direction,
        rows=seen.rows,
        score=seen.score,
        observed=seen.observed,
        mcs=seen.mcs,
        interval=seen.interval,
        ece=seen.ece,
        noise_floor=seen.floor,
        worst=worst,
    )


def _judge(seen: Evidence, reduction: Reduction) -> tuple[VerdictDirection, str]:
    if seen.rows == 1:
        return "undecided", "A single row says nothing about calibration."
    if seen.rows < MIN_ROWS:
        score, hit = score_and_hit(reduction)
        return "undecided", (
            f"{seen.rows} rows are too few for a verdict (at least {MIN_ROWS}): the {score} is "
            f"{percent(seen.score)}, the {hit} {percent(seen.observed)}."
        )
    if seen.direction == "none":
        return _nothing(seen)
    if seen.direction == "mixed":
        return "mixed", _mixed(seen, reduction)
    worst = seen.too_high if seen.direction == "over" else seen.too_low
    size = points(abs(seen.mcs), _decimals(seen))
    tail = f"; worst between {worst.where}" if worst else ""
    head = _by(reduction, seen.direction, size, slight=abs(seen.mcs) < SLIGHT)
    return seen.direction, f"{head}{_interval(seen)} on {counted(seen.rows, 'row')}{tail}."


def _nothing(seen: Evidence) -> tuple[VerdictDirection, str]:
    rows = counted(seen.rows, "row")
    comparison = f"ECE {_against(seen)}"
    if seen.floor.q95 >= BLUNT:
        return "undecided", (
            f"No miscalibration beyond noise, but {rows} cannot show much: {comparison}."
        )
    return "calibrated", f"No miscalibration beyond noise on {rows}: {comparison}."


def _mixed(seen: Evidence, reduction: Reduction) -> str:
    rows = counted(seen.rows, "row")
    if seen.off_on_average:
        way = "over" if seen.mcs > 0 else "under"
        head = f"{_by(reduction, way, points(abs(seen.mcs), _decimals(seen)))} on average{_interval(seen)} on {rows}"
    else:
        head = f"Not off on average{_interval(seen, value=True)} on {rows}"
    places = [
        f"{_size(abs(worst.gap))} points {way} between {worst.where}"
        for worst, way in ((seen.too_high, "too high"), (seen.too_low, "too low"))
        if worst
    ]
    where = " and ".join(places) or "off in places"
    return f"{head}, but {where}: ECE {_against(seen)}."


def _against(seen: Evidence) -> str:
    decimals = decimals_for(100 * seen.ece, most=2)
    value, mean, q95 = (points(v, decimals) for v in (seen.ece, seen.floor.mean, seen.floor.q95))
    return (
        f"{value} points where a calibrated model would show {mean} on average (95 % below {q95})"
    )


def _by(reduction: Reduction, way: str, size: str, *, slight: bool = False) -> str:
    """Begin the sentence: "Overconfident by 6.1 points"."""
    if reduction.kind == "top-label":
        word = "overconfident" if way == "over" else "underconfident"
        text = f"slightly {word}, by {size} points" if slight else f"{word} by {size} points"
        return text[0].upper() + text[1:]
    noun = {
        "positive": "Forecasts",
        "class": f"Probabilities of '{shorten(reduction.class_name, 30)}'",
        "top-r": f"Probabilities of the class ranked {reduction.r}",
        "within-top-r": f"Sums of the {reduction.r} largest probabilities",
    }[reduction.kind]
    much = "slightly too" if slight else "too"
    return f"{noun} {much} {'high' if way == 'over' else 'low'} by {size} points"


def _interval(seen: Evidence, *, value: bool = False) -> str:
    """The interval of the MCS in parentheses, in the direction that the sentence states; with the value if asked."""
    decimals = _decimals(seen)
    parts = [f"{points(seen.mcs, decimals)} points"] if value else []
    if seen.interval is not None:
        turned = -1 if seen.mcs < 0 and not value else 1
        low, high = sorted(turned * end for end in seen.interval)
        parts.append(f"95 % CI {points(low, decimals)} to {points(high, decimals)}")
    return f" ({', '.join(parts)})" if parts else ""


def _decimals(seen: Evidence) -> int:
    """As many as the uncertainty leaves room for."""
    if seen.interval is None:
        return 1
    return decimals_for(50 * (seen.interval.high - seen.interval.low), figures=1, most=2)


def _size(value: float) -> str:
    return points(value, decimals_for(100 * value, most=2))

"""Whether these probabilities can be trusted, in one sentence."""

from __future__ import annotations

from calviz.checks.no_discrimination import shuffled
from calviz.checks.support.one_vs_rest import of_the_top_label
from calviz.checks.verdict.class_sentences import classes_off, classes_unseen
from calviz.checks.verdict.evidence import MIN_ROWS, Evidence, collect_evidence
from calviz.checks.verdict.other_view import other_view
from calviz.core.reduction import Reduction
from calviz.results.slices import Slices
from calviz.results.verdict import CalibrationTest, Verdict, VerdictDirection, mcs_decimals
from calviz.sample.sample import Sample
from calviz.sample.slices import usual_slices
from calviz.specs.metric import METRICS, takes_weights
from calviz.text.gaps import SLIGHT
from calviz.text.words import (
    SINGLE_ROW,
    counted,
    decimal,
    decimals_for,
    p_value,
    percent,
    points,
    points_decimals,
    score_and_hit,
    shorten,
)

#: If the upper bound of the ECE is this or more, finding no error means little: the verdict is undecided.
BLUNT = 0.1


@takes_weights
def verdict(sample: Sample) -> Verdict:
    """Judge a sample; interval and noise floor are those of an evaluation of the same sample.

    Notes
    -----
    The tests and the adjustment of p-values are in `calviz.checks.verdict.joint_tests`; at most 3 % of calibrated models
    are called miscalibrated (`calviz.sample.false_alarm_levels`). Another 1 % may have slices that are reported as off.
    """
    evidence = sample.once(collect_evidence)
    # A profile has cells instead of single rows.
    each_row = sample.data.cells is None
    alike = sample.data.alike and each_row
    by_group = usual_slices(sample) if evidence.rows >= MIN_ROWS else None
    tells_apart = evidence.rows < MIN_ROWS or not alike or sample.view(shuffled).tells_apart
    quiet = evidence.rows >= MIN_ROWS and evidence.direction == "none"
    # Ranges of the classes assume independent, equally weighted rows.
    classes = classes_off(sample) if quiet and sample.data.alike else ()
    no_error_words = nothing_found(evidence, sample) if quiet else ""
    direction, sentence = _judge(evidence, sample, no_error_words, classes, by_group, tells_apart)
    worst = {
        "over": evidence.too_high,
        "under": evidence.too_low,
        "mixed": evidence.worst,
        "off": evidence.worst,
    }.get(evidence.direction)
    return Verdict(
        sentence=sentence,
        direction=direction,
        reduction=evidence.reduction.key,
        rows=evidence.rows,
        score=evidence.score,
        observed=evidence.observed,
        mcs=evidence.mcs,
        interval=evidence.interval,
        ece=evidence.ece,
        noise_floor=evidence.floor,
        ece_below=evidence.ece_below,
        worst=worst,
        tests=evidence.tests,
        beyond_noise=evidence.beyond_noise,
        classes_off=classes,
        slices=len(by_group.slices) if by_group else 0,
        slices_off=len(by_group.off) if by_group else 0,
        tells_apart=tells_apart,
        other_view=other_view(sample),
    )


def _judge(
    evidence: Evidence,
    sample: Sample,
    quiet: str,
    classes: tuple[str, ...],
    by_group: Slices | None,
    tells_apart: bool,
) -> tuple[VerdictDirection, str]:
    if evidence.rows == 1:
        return "undecided", SINGLE_ROW
    if evidence.rows < MIN_ROWS:
        score, hit = score_and_hit(evidence.reduction)
        return "undecided", (
            f"{evidence.rows} rows are too few for a verdict (at least {MIN_ROWS}): the {score} is "
            f"{percent(evidence.score)}, the {hit} {percent(evidence.observed)}."
        )
    no_discrimination = "" if tells_apart else "; the probabilities hardly tell the classes apart"
    if evidence.direction != "none":
        return evidence.direction, f"{_off(evidence, sample)}{no_discrimination}."
    but = list(classes)
    if by_group and by_group.off:
        off, slices = len(by_group.off), counted(len(by_group.slices), "slice")
        but.append(f"{off:,} of {slices} {'is' if off == 1 else 'are'} off")
    unseen = classes_unseen(sample) if sample.data.alike and sample.data.weights is None else ""
    if but:
        return "off", f"{quiet}, but {' and '.join(but)}{no_discrimination}."
    direction: VerdictDirection = "undecided" if evidence.ece_below >= BLUNT else "calibrated"
    return direction, f"{quiet}{unseen}{no_discrimination}."


def nothing_found(evidence: Evidence, sample: Sample) -> str:
    """Begin the sentence for a sample without an error beyond noise: the rows, and how large the error may still be."""
    of_top_label = of_the_top_label(sample)
    below = points(evidence.ece_below, points_decimals(evidence.ece))
    return (
        f"No miscalibration{of_top_label} found on {rows_words(sample)}: ECE is below {below} points with "
        "95 % confidence"
    )


def rows_words(sample: Sample) -> str:
    """Describe the rows: "3,000 rows in 100 clusters", "3,000 weighted rows"."""
    data = sample.data
    rows = counted(data.rows, "row" if data.alike or data.weights is None else "weighted row")
    if data.clusters is None:
        return rows
    return f"{rows} in {counted(len(data.clusters.levels), 'cluster')}"


def _off(evidence: Evidence, sample: Sample) -> str:
    rows = rows_words(sample)
    if evidence.direction in ("over", "under"):
        worst = evidence.too_high if evidence.direction == "over" else evidence.too_low
        size = points(abs(evidence.mcs), mcs_decimals(evidence.interval))
        tail = f"; worst between {worst.where}" if worst else ""
        head = _by(evidence, sample, size, slight=abs(evidence.mcs) < SLIGHT)
        return f"{head}{_interval(evidence)} on {rows}{tail}"
    if not evidence.shows_itself and not any(evidence.sides):
        label = shorten(evidence.reduction.label, 40)
        return (
            f"No miscalibration of the {label} found on {rows}, but the probabilities of all classes are off: "
            f"{strongest(evidence)}"
        )
    if evidence.off_on_average:
        head = _by(evidence, sample, points(abs(evidence.mcs), mcs_decimals(evidence.interval)))
        head = f"{head} on average{_interval(evidence)} on {rows}"
    else:
        head = f"{_other(evidence, sample)}not off on average{_interval(evidence, value=True)} on {rows}"
        head = head[0].upper() + head[1:]
    places = [
        f"{_size(abs(worst.gap))} points {way} between {worst.where}"
        if worst
        else f"{way} in places"
        for worst, shown, way in (
            (evidence.too_high, evidence.sides[0], "too high"),
            (evidence.too_low, evidence.sides[1], "too low"),
        )
        if shown and (worst or not evidence.off_on_average)
    ]
    return f"{head}, but {' and '.join(places) or 'off in places'}: {strongest(evidence)}"


def strongest(evidence: Evidence) -> str:
    """Describe the metric with the strongest evidence of an error, compared with a calibrated model."""
    test = evidence.test("ece")
    if test is None or not evidence.shows("ece"):
        test = evidence.strongest
    if test.key == "ece":
        return f"ECE {_against(evidence)}"
    return f"{against(test)} ({p_value(test.adjusted)}, adjusted for {len(evidence.tests)} tests)"


def against(test: CalibrationTest) -> str:
    """Describe a metric, and what a calibrated model would show: "KS error 1.20 points where ... 0.61 on average"."""
    metric = METRICS[test.key]
    gap = abs(test.value - test.expected)
    if metric.unit == "plain":
        decimals = decimals_for(gap, least=3, most=6)
        value, expected = (decimal(v, decimals) for v in (test.value, test.expected))
    else:
        decimals = max(points_decimals(test.value), decimals_for(100 * gap, most=2))
        value, expected = (points(v, decimals) for v in (test.value, test.expected))
        value += " points"
    return f"{metric.label} {value} where a calibrated model would show {expected} on average"


def _against(evidence: Evidence) -> str:
    decimals = points_decimals(evidence.ece)
    value, mean, q95 = (
        points(v, decimals) for v in (evidence.ece, evidence.floor.mean, evidence.floor.q95)
    )
    return (
        f"{value} points where a calibrated model would show {mean} on average (95 % below {q95})"
    )


def _other(evidence: Evidence, sample: Sample) -> str:
    """Name the reduction that a sentence is about, if it is not the one asked for."""
    if evidence.reduction == sample.reduction:
        return ""
    if evidence.reduction.kind == "top-label":
        return "confidence in the predicted class "
    return f"probability of '{shorten(sample.data.class_names[1], 30)}' "


def _by(evidence: Evidence, sample: Sample, size: str, *, slight: bool = False) -> str:
    """Begin the sentence: "Overconfident by 6.1 points"."""
    reduction: Reduction = evidence.reduction
    way = "over" if evidence.mcs > 0 else "under"
    is_own = reduction == sample.reduction
    if reduction.kind == "top-label":
        word = "overconfident" if way == "over" else "underconfident"
        text = f"slightly {word}, by {size} points" if slight else f"{word} by {size} points"
        return text[0].upper() + text[1:] + ("" if is_own else " in the predicted class")
    noun = {
        "positive": "Forecasts"
        if is_own
        else f"Probabilities of '{shorten(sample.data.class_names[1], 30)}'",
        "class": f"Probabilities of '{shorten(reduction.class_name, 30)}'",
        "top-r": f"Probabilities of the class ranked {reduction.r}",
        "within-top-r": f"Sums of the {reduction.r} largest probabilities",
    }[reduction.kind]
    much = "slightly too" if slight else "too"
    return f"{noun} {much} {'high' if way == 'over' else 'low'} by {size} points"


def _interval(evidence: Evidence, *, value: bool = False) -> str:
    """Format the interval of the MCS in parentheses, in the direction that the sentence states; `value` adds the MCS itself."""
    decimals = mcs_decimals(evidence.interval)
    parts = [f"{points(evidence.mcs, decimals)} points"] if value else []
    if evidence.interval is not None:
        turned = -1 if evidence.mcs < 0 and not value else 1
        low, high = sorted(turned * end for end in evidence.interval)
        parts.append(f"95 % CI {points(low, decimals)} to {points(high, decimals)}")
    return f" ({', '.join(parts)})" if parts else ""


def _size(value: float) -> str:
    return points(value, decimals_for(100 * value, most=2))

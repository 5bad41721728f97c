"""The verdict in one sentence, what the other view of two classes shows, and the verdict explained in five sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np

from calviz.core import entry_specs, events, words
from calviz.core.errors import claim
from calviz.core.words import counted, decimal, percent, points, points_decimals, shorten
from calviz.sample.binning import expected_share
from calviz.sample.sample import (
    MIN_ROWS,
    Sample,
    event_rate_if_rare,
    event_sums,
    rate_if_rare,
    rows_where,
    where_words,
)
from calviz.sample.slice_results import Slice, Slices
from calviz.sample.slices import usual_slices
from calviz.verdicts import evaluation, joint_tests, row_checks, watching
from calviz.verdicts.data_checks import KINDS, classes_off, classes_unseen, of_what, ranges_of
from calviz.verdicts.evaluation import JudgedNumbers, Verdict, VerdictDirection
from calviz.verdicts.joint_tests import Evidence, rest_of_rows

#: If the upper bound of the ECE is this or more, or half the rate of a rare event, finding no error means little: the verdict is undecided.
BLUNT = 0.1
#: Level of the test alone at which a mean gap is perhaps there: at 5 %, this is said of 4.9 % of files without one.
PERHAPS = 0.04


@claim(
    "miscalibration",
    says="Overconfident by 6.1 points (95 % CI ...); or: no miscalibration found",
    chosen="the strongest of 5 to 10 tests, and the worse of two views",
    adjusted="step-down min-p on redrawn labels (Westfall & Young 1993) at 3 %",
)
@entry_specs.takes_weights
def judged(sample: Sample, rows: str = "") -> Verdict:
    """Judge a sample; interval and noise floor are those of an evaluation of the same sample.

    `rows` is what the sentence calls its rows, `rows_words` if left out.

    Notes
    -----
    The tests and the adjustment of p-values are in `calviz.verdicts.joint_tests`; at most 3 % of calibrated models
    are called miscalibrated (`calviz.sample.error_bars`). Another 1 % may have classes, and another slices, that are reported as off.
    """
    evidence = sample.once(joint_tests.collect_evidence)
    # A profile has cells instead of single rows.
    alike = sample.data.alike and sample.data.cells is None
    by_group = usual_slices(sample) if evidence.rows >= MIN_ROWS else None
    reverse = joint_tests.reverse_words(sample)
    tells_apart = bool(reverse) or evidence.rows < MIN_ROWS or not alike
    tells_apart = tells_apart or sample.once(row_checks.hardly_telling) is None
    quiet = evidence.rows >= MIN_ROWS and evidence.direction == "none"
    classes = classes_off(sample) if quiet else ()
    if classes and _off_by_a_slice(sample):
        classes = ()
    describe = _off if evidence.beyond_noise else nothing_found
    told = describe(evidence, sample, rows or rows_words(sample))
    direction, sentence = _judge(evidence, sample, told, classes, by_group, tells_apart)
    state = None if reverse or evidence.rows < MIN_ROWS else sample.once(watching.watched)
    found, one, elsewhere = None if state is None else state.found, "", ""
    worst = by_group.off[0] if by_group and by_group.off else None
    dated = state is not None and state.is_dated
    leads = _leads(by_group, found, sample, dated) if found else evidence.beyond_noise
    if worst and not reverse and leads:
        one, elsewhere = one_slice_off(sample)
    found = None if one else found
    change = days = ""
    if state is not None and found is not None:
        change = state.headline
        told_of = state.within if state.within and found is not state.change else found
        days = f"{words.capitalised(told_of.when(state.shown))}."
        if by_group and worst and {*worst.where} == {*found.where}:
            place = by_group.furthest[1]
            sentence = sentence.replace(place, f"{place} over all days")
    if said := one or (change and f"{change}. {days}"):
        sentence = f"{said} All rows together: {sentence[0].lower()}{sentence[1:]}"
    if reverse:
        sentence = f"{reverse} {sentence}"
    off_where = worst.where if worst else ()
    if reverse or change:
        direction = "off" if direction in ("calibrated", "undecided") else direction
    return Verdict(
        sentence=sentence,
        direction=direction,
        reduction=evidence.reduction.key,
        worst=evidence.worst,
        names_worst=evidence.worst is not None and evidence.shows_places,
        beyond_noise=evidence.beyond_noise,
        classes_off=classes,
        slices=len(by_group.slices) if by_group else 0,
        slices_off=len(by_group.off) if by_group else 0,
        off_in=by_group.furthest if by_group and off_where else None,
        off_where=off_where,
        off_class=worst.of_class if worst else "",
        off_alone=off_where if one and not elsewhere else (),
        elsewhere=elsewhere,
        changed=change,
        changed_where=() if found is None else found.where,
        changed_days=("", "") if found is None else found.days,
        tells_apart=tells_apart,
        in_reverse=bool(reverse),
        seen_by_other=seen_by_other(sample),
        **{f.name: getattr(evidence, f.name) for f in fields(JudgedNumbers)},
    )


@claim("miscalibration")
def of_all_rows(verdict: Verdict, sample: Sample) -> Verdict:
    """The verdict without what it says of slices, classes and changes, which a diagram of all rows does not show."""
    evidence = sample.once(joint_tests.collect_evidence)
    describe = _off if evidence.beyond_noise else nothing_found
    told = describe(evidence, sample, rows_words(sample))
    direction, sentence = _judge(evidence, sample, told, (), None, verdict.tells_apart)
    verdict = replace(verdict, sentence=sentence, direction=direction, changed="", elsewhere="")
    return replace(verdict, classes_off=(), slices_off=0, off_in=None, off_alone=())


def _leads(by_group: Slices | None, found: watching.Change, sample: Sample, dated: bool) -> bool:
    """Whether slices that are off lead the headline before a change, as they do if its day is not well known."""
    # What surely holds more of the error leads: rows times the lower end of the gap, or of what changes, on the days that are surely after it.
    # On the new rows of a slice, the change tells.
    named = [s for s in by_group.named if not {*s.where} & {*found.where}] if by_group else []
    if by_group is None or by_group.named[:1] != (*named[:1],):
        return False
    return _least_error(named, sample) > found.least_error(sample) * dated


def _least_error(some: Iterable[Slice], sample: Sample) -> float:
    """Sum of the errors of the rows of slices, at least; each row counts once, with the first slice that has it."""
    left, total = np.array(sample.row_counts, dtype=np.float64), 0.0
    for one in some:
        inside = np.asarray(rows_where(sample.data, one.where))
        total += left[inside].sum() / one.rows * one.least_error
        left[inside] = 0
    return total


@claim("classes")
def _off_by_a_slice(sample: Sample) -> bool:
    """Whether classes are off by the rows of the slice most surely off: without these, none is, and gaps are less than half as large."""
    rest = sample.once(rest_of_rows)
    if rest is None or classes_off(rest):
        return False
    for view, *_ in KINDS:
        of_all, left = (ranges_of(some, view) for some in (sample, rest))
        if of_all is not None and left is not None:
            # Of true classes, the range of a calibrated model is not around 0.
            now, was = (np.abs(r.value - np.mean(r.range or 0, axis=0)) for r in (left, of_all))
            if (off := of_all.has & (of_all.beyond != 0)).any():
                return bool((2 * now < was)[off].all())
    return False


@claim("miscalibration")
def _judge(
    evidence: Evidence,
    sample: Sample,
    told: str,
    classes: tuple[str, ...],
    by_group: Slices | None,
    tells_apart: bool,
) -> tuple[VerdictDirection, str]:
    if evidence.rows == 1:
        return "undecided", words.SINGLE_ROW
    if evidence.rows < MIN_ROWS:
        score, hit = words.score_and_hit(evidence.reduction)
        return "undecided", (
            f"{evidence.rows} rows are too few for a verdict (at least {MIN_ROWS}): the {score} is "
            f"{percent(evidence.score)}, the {hit} {percent(evidence.observed)}."
        )
    no_discrimination = "" if tells_apart else "; the probabilities hardly tell the classes apart"
    if evidence.direction != "none":
        return evidence.direction, f"{told}{no_discrimination}."
    but = list(classes)
    if by_group and by_group.off:
        but.append(f"{by_group.counted_off}, most clearly {': '.join(by_group.furthest)}")
    unseen = classes_unseen(sample) if sample.data.alike and sample.data.weights is None else ""
    if but:
        return "off", f"{told}, but {' and '.join(but)}{no_discrimination}."
    few = evidence.ece_below >= min(BLUNT, (rate_if_rare(sample) or 1.0) / 2)
    too_few = "; these rows are too few to tell" * few
    return "undecided" if few else "calibrated", f"{told}{unseen}{no_discrimination}{too_few}."


@claim(
    "one-slice",
    says="Off where region = West: about 7.2 points too low. No miscalibration found on the other 6,789 rows",
    chosen="the slice that is most surely off, of all",
    adjusted="it differs from the rest, Benjamini and Hochberg at 0.5 % over all slices; the rest: the tests of the verdict and of slices",
)
@claim(
    "off-most",
    says="Off most where region = West: about 20.1 points too low; other rows: too high by 5.0 points; or, of several: off in 2 slices, most clearly",
    chosen="the slice that is most surely off, of all",
    adjusted="as for slices that differ; the lower end of its interval holds as much of the error as the other rows, by their ECE",
)
def one_slice_off(sample: Sample) -> tuple[str, str]:
    """Say that scores are off in one slice, and that nothing is found on all other rows or, where that slice holds most of the error, how they are off.

    Returns the sentences and, in the second case, how the other rows are off; twice "" if neither is so.
    """
    slices, rest = usual_slices(sample), sample.once(rest_of_rows)
    if slices is None or rest is None:
        return "", ""
    evidence, more = rest.once(joint_tests.collect_evidence), len(slices.named) - 1
    where, others = f"where {': '.join(slices.furthest)}", f"the other {_all_rows(rest)}"
    # The headline of a change names it by itself.
    if slices.changed in [where_words(s.where) for s in slices.named[1:]]:
        where += f"; {slices.change}"
    elif more == 1:
        where += f"; also where {': '.join(slices.place(slices.named[1]))}"
    in_many, surely = f" in {more + 1:,} slices," * bool(more), " clearly" * bool(more)
    describe = _off if evidence.beyond_noise or slices.rest else nothing_found
    classes = _by_classes(evidence, rest)
    told = f"On {others}, {classes}" if classes else describe(evidence, rest, others)
    ways = {"over": "too high", "under": "too low"}
    if evidence.reduction != sample.reduction:
        ways = {"over": "overconfident", "under": "underconfident"}
    way = ways.get(evidence.direction)
    size = points(abs(evidence.mcs), evidence.mcs_decimals)
    extreme = (*_classes_named(evidence, rest), evidence.extreme or "off in places")[0]
    elsewhere = classes or slices.rest or (f"{way} by {size} points" if way else extreme)
    if not evidence.beyond_noise and slices.apart:
        verdict, state = judged(rest, others), rest.once(watching.watched)
        if state and verdict.changed:
            return f"Off{in_many} most{surely} {where}. {told}, but {state.dated}.", state.dated
        is_right = verdict.direction == "calibrated"
        if not (more or verdict.direction == "off"):
            return f"Off {where}. {verdict.sentence}" * is_right, ""
        elsewhere = evaluation.NOT_OFF if is_right else elsewhere
        return f"Off{in_many} most{surely} {where}. {verdict.sentence}", elsewhere
    whole = sample.once(joint_tests.collect_evidence)
    held, sides = _least_error(slices.named, sample), whole.interval or (0.0, 0.0)
    others_hold, on_average = evidence.rows * evidence.ece, whole.direction in ("over", "under")
    if on_average and held < min(others_hold, whole.rows * min(map(abs, sides))):
        return "", ""
    surely = " clearly" * bool(more or held < others_hold)
    return f"Off{in_many} most{surely} {where}. {told}.", elsewhere


@claim("slices")
def where_off(sample: Sample) -> tuple[str, Slice | None]:
    """Say in how many slices scores are off and where most clearly, as the verdict does; "" and None if there is none to look at."""
    slices = usual_slices(sample)
    if slices is None or not slices.named:
        return "", None
    in_many = f" in {len(slices.named):,} slices, most clearly" * (len(slices.named) > 1)
    return f"off{in_many} where {': '.join(slices.furthest)}", slices.off[0]


@claim(
    "ece-below",
    says="ECE is below 4.5 points with 95 % confidence",
    chosen="nothing; said if nothing is found",
    adjusted="the larger of the upper ends of the ECE and of the absolute MCS",
)
def nothing_found(evidence: Evidence, sample: Sample, rows: str = "") -> str:
    """Begin the sentence for a sample without an error beyond noise: the rows (`rows`, in words), and how large the error may still be."""
    below = points(evidence.ece_below, points_decimals(evidence.ece))
    rate = rate_if_rare(sample) or 1.0
    of_rate = f" ({percent(evidence.ece_below / rate, 0)} of the base rate)" * (rate < 0.5)
    return (
        f"No miscalibration{of_what(sample)} found on {rows or rows_words(sample)}: ECE is below {below} points{of_rate} with "
        "95 % confidence"
    )


def rows_words(sample: Sample) -> str:
    """Describe the rows: "3,000 rows in 100 clusters", "3,000 weighted rows", "12 events in 3,000 rows" if they are rare."""
    if sample.data.cells is None and (rate_if_rare(sample) or 1.0) < 0.5:
        events = counted(int(np.count_nonzero(sample.scored.hit)), "event")
        return f"{events} in {_all_rows(sample)}"
    return _all_rows(sample)


def _all_rows(sample: Sample) -> str:
    data = sample.data
    weighted = data.weights is not None and not data.alike and not data.prevalence
    rows = counted(data.rows, "weighted row") if weighted else data.rows_words
    if data.clusters is None:
        return rows
    return f"{rows} in {counted(len(data.clusters.levels), 'day' if data.days_are_clusters else 'cluster')}"


@claim(
    "off-on-average",
    says="Not shown to be off on average (0.2 points, 95 % CI ...), but off in places; or: perhaps off on average",
    chosen="the worse of two views",
    adjusted="off: the verdict's step-down min-p; perhaps: the 95 % interval excludes 0 and the test of it alone agrees at 4 %",
)
def _off(evidence: Evidence, sample: Sample, rows: str) -> str:
    if evidence.direction in ("over", "under"):
        worst = evidence.worst
        size = points(abs(evidence.mcs), evidence.mcs_decimals)
        against = evidence.too_low if evidence.mcs > 0 else evidence.too_high
        tail = (
            "" if worst is None or worst is against else f", furthest off on new rows {worst.place}"
        )
        if against is not None and (worst is against or not against.slight):
            tail += f", but {words.expected_gap(against.expected_gap)} {against.place}"
        head = _by(evidence, sample, size)
        return f"{head}{_interval(evidence)} on {rows}{tail}"
    if not (evidence.shows_places or evidence.extremes):
        label = shorten(evidence.reduction.label, 40)
        # "The probabilities of the classes against the rest" would say the same again.
        of_some = (off for off in classes_off(sample) if not off.startswith("the probabilities"))
        classes = "".join(f"{off}, and " for off in of_some)
        head = f"No miscalibration of the {label} found on {rows}, but {classes}the probabilities of all classes are off"
        return f"{head}: {strongest(evidence)}"
    but = "but"
    if evidence.off_on_average:
        head = _by(evidence, sample, points(abs(evidence.mcs), evidence.mcs_decimals))
        head = f"{head} on average{_interval(evidence)} on {rows}"
    else:
        how, but = _on_average(evidence)
        head = f"{_other(evidence, sample)}{how} off on average{_interval(evidence, value=True)} on {rows}"
        head = head[0].upper() + head[1:]
    places = [
        f"{words.expected_gap(worst.expected_gap)} {worst.place}" if worst else f"{way} in places"
        for worst, shown, way in (
            (evidence.too_high, evidence.sides[0], "too high"),
            (evidence.too_low, evidence.sides[1], "too low"),
        )
        if worst or (shown and not evidence.off_on_average)
    ]
    said = _classes_named(evidence, sample) or filter(
        None, (evidence.extreme, " and ".join(places))
    )
    return f"{head}, {but} {', '.join(said) or 'off in places'}: {strongest(evidence)}"


def _classes_named(evidence: Evidence, sample: Sample) -> tuple[str, ...]:
    """The classes that are off, where no place is shown, or the rows predicted as these surely hold more of the error than the places that are named."""
    if not (evidence.shows_places or evidence.extremes):
        return classes_off(sample)
    is_top = evidence.reduction.kind == "top-label" and not evidence.extremes
    ranges = ranges_of(sample, "predicted-class") if is_top else None
    if ranges is None:
        return ()
    named = filter(None, (evidence.too_high, evidence.too_low))
    in_places = sum(worst.rows * abs(worst.expected_gap) for worst in named)
    surely = (ranges.rows * np.abs(ranges.beyond))[ranges.has].sum()
    return classes_off(sample) if surely > in_places else ()


def _by_classes(evidence: Evidence, sample: Sample) -> str:
    """The predicted classes that are off, where the rows of the others have less than half the mean gap: no size is that of all rows; else ""."""
    if (ranges := ranges_of(sample, "predicted-class")) is None:
        return ""
    rows = ranges.rows * (~ranges.has | (ranges.beyond == 0))
    gap = abs(np.nansum(rows * ranges.value)) / max(rows.sum(), 1)
    return "".join(classes_off(sample)) * bool(rows.any() and 2 * gap < abs(evidence.mcs))


def _on_average(evidence: Evidence) -> tuple[str, str]:
    """How the scores are off on average, which the test does not show after adjustment: interval and test alone may leave it open."""
    test = evidence.test("mcs")
    is_open = evidence.interval_excludes_0 and test is not None and test.p_value <= PERHAPS
    return ("perhaps", "and") if is_open else ("not shown to be", "but")


def strongest(evidence: Evidence) -> str:
    """Describe the metric with the strongest evidence of an error, compared with a calibrated model."""
    test = evidence.test("ece")
    if test is None or not evidence.shows("ece"):
        test = evidence.strongest
    if test.key == "ece":
        return f"ECE {_ece_against(evidence)}"
    return f"{against(test)} ({words.p_value(test.adjusted)}, adjusted for {len(evidence.tests)} tests)"


def against(test: evaluation.CalibrationTest) -> str:
    """Describe a metric, and what a calibrated model would show: "KS error 1.20 points where ... 0.61 on average"."""
    metric = entry_specs.METRICS[test.key]
    gap = abs(test.value - test.expected)
    if metric.unit == "plain":
        decimals = words.decimals_for(gap, least=3, most=6)
        value, expected = (decimal(v, decimals) for v in (test.value, test.expected))
    else:
        decimals = max(points_decimals(test.value), words.decimals_for(100 * gap, most=2))
        value, expected = (points(v, decimals) for v in (test.value, test.expected))
        value += " points"
    return f"{metric.label} {value} where a calibrated model would show {expected} on average"


def _ece_against(evidence: Evidence) -> str:
    decimals = points_decimals(evidence.ece)
    numbers = (evidence.ece, evidence.noise_floor.mean, evidence.noise_floor.q95)
    value, mean, q95 = (points(v, decimals) for v in numbers)
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


def _by(evidence: Evidence, sample: Sample, size: str) -> str:
    """Begin the sentence: "Overconfident by 6.1 points"."""
    reduction: events.Reduction = evidence.reduction
    way = "over" if evidence.mcs > 0 else "under"
    is_own = reduction == sample.reduction
    if reduction.kind == "top-label":
        text = f"{way.capitalize()}confident by {size} points"
        return text + ("" if is_own else " in the predicted class")
    noun = {
        "positive": "Forecasts"
        if is_own
        else f"Probabilities of '{shorten(sample.data.class_names[1], 30)}'",
        "class": f"Probabilities of '{shorten(reduction.class_name, 30)}'",
        "top-r": f"Probabilities of the class ranked {reduction.r}",
        "within-top-r": f"Sums of the {reduction.r} largest probabilities",
    }[reduction.kind]
    return f"{noun} too {'high' if way == 'over' else 'low'} by {size} points"


def _interval(evidence: Evidence, *, value: bool = False) -> str:
    """Format the interval of the MCS in parentheses, in the direction that the sentence states; `value` adds the MCS itself."""
    decimals = evidence.mcs_decimals
    parts = [f"{points(evidence.mcs, decimals)} points"] if value else []
    if evidence.interval is not None:
        turned = -1 if evidence.mcs < 0 and not value else 1
        low, high = sorted(turned * end for end in evidence.interval)
        parts.append(f"95 % CI {points(low, decimals)} to {points(high, decimals)}")
    return f" ({', '.join(parts)})" if parts else ""


# ---- Two views of two classes


@claim("off-on-average")
def seen_by_other(sample: Sample) -> tuple[str, str] | None:
    """Describe what the other reduction of two classes shows, if one of the two is off beyond noise.

    Parameters
    ----------
    sample : Sample

    Returns
    -------
    (str, str) or None
        A statement and its numbers; None without a second view, if both show the same or nothing beyond noise, or for the top label
        of a rare event.

    Notes
    -----
    With gaps A = sum (p - y) of the rows above 1/2 and B of those below, the positive class is off on average by
    (A + B)/n and the top label by (A - B)/n: what adds up in one cancels in the other. "Beyond noise" is decided by the
    tests of the verdict, which cover both views.
    """
    if sample.reduction.other_of_two(sample.data) is None or sample.data.rows < MIN_ROWS:
        return None
    reduction = sample.once(joint_tests.collect_evidence).reduction
    views = sample.once(joint_tests.evidence_of_views)
    this, other = sorted(views, key=lambda view: view.reduction != reduction)
    shown = [
        (points(view.score - view.observed), points(view.ece, points_decimals(view.ece)))
        for view in views
    ]
    if not (this.shows_itself or other.shows_itself) or shown[0] == shown[1]:
        return None
    if other.reduction.kind == "top-label" and event_rate_if_rare(sample, 0.2):
        return None  # of a rare event, nearly all rows have the other label: the top label shows the same in other words
    head = f"Seen by the {other.reduction.label}"
    score, hit = words.score_and_hit(other.reduction)
    digits = words.share_decimals(other.score, other.observed, 1, least=2)
    means = f"{score} {percent(other.score, digits)}, {hit} {percent(other.observed, digits)}"
    if other.shows("mcs"):
        return f"{head}, {_way(other)}", f"{means}."
    decimals = points_decimals(other.ece)
    value, noise = points(other.ece, decimals), points(other.noise_floor.mean, decimals)
    against = f"ECE {value} points where a calibrated model would show {noise}"
    if other.shows_itself:
        how, but = _on_average(other)
        return f"{head}, it is {how} off on average, {but} in places", f"{means}, {against}."
    why = " Errors above and below a score of 1/2 cancel there." if this.shows("mcs") else ""
    rows = counted(this.rows, "row")
    return f"{head}, these {rows} do not show it", f"{means}, {against}.{why}"


def _way(view: Evidence) -> str:
    gap = view.score - view.observed
    size = points(abs(gap))
    if view.reduction.kind == "top-label":
        word = "overconfident" if gap > 0 else "underconfident"
        return f"the predictions are {word} by {size} points"
    return f"the forecasts are {size} points too {'high' if gap > 0 else 'low'}"


# ---- Five sentences

#: Shares are given per hundred rows, as people understand them best.
HUNDRED = 100


def explained(sample: Sample, verdict: Verdict) -> tuple[str, ...]:
    """Explain a verdict: what was seen, what follows, where it is worst, an example, and what to do.

    The numbers are those of the verdict, with its digits.

    Parameters
    ----------
    sample : Sample
        The rows that were judged.
    verdict : Verdict
        The verdict on these rows.

    Returns
    -------
    tuple of str
        Five sentences.
    """
    reduction = events.Reduction.of(verdict.reduction)
    groups = usual_slices(sample) if verdict.slices_off else None
    off = groups.named if groups else ()
    also = f"; also off: {groups.also}" if groups and groups.also and not groups.rest else ""
    if verdict.off_alone:
        verdict = replace(verdict, worst=None, beyond_noise=False, direction="off")
    if verdict.elsewhere:
        verdict, also = replace(verdict, worst=None), f"{also}; other rows: {verdict.elsewhere}"
    s = _Sentences(
        verdict,
        reduction,
        _class_words(sample, reduction),
        off[0] if off else None,
        also,
        verdict.beyond_noise and sample.once(row_checks.label_errors_found) is not None,
        _expected(sample, verdict),
        classes_off(sample) if verdict.beyond_noise else (),
    )
    return (s.seen(rows_words(sample)), s.follows(), s.where(), s.example(), s.to_do())


def _expected(sample: Sample, verdict: Verdict) -> tuple[float, entry_specs.Interval] | None:
    """Share of hits to expect in the worst bin, or of all rows if they are off on average, with its interval."""
    if verdict.worst is not None:
        return verdict.worst.expected, verdict.worst.expected_interval
    if not verdict.interval_excludes_0:
        return None
    view = sample.but(reduction=events.Reduction.of(verdict.reduction))
    return expected_share(view.view(event_sums), 0)


def _class_words(sample: Sample, reduction: events.Reduction) -> str:
    names = sample.data.class_names
    if reduction.kind == "positive" and len(names) > 1:
        return f"'{shorten(names[1], 30)}'"
    return f"'{shorten(reduction.class_name, 30)}'"


@dataclass(frozen=True)
class _Sentences:
    """The sentences about one verdict."""

    verdict: Verdict
    reduction: events.Reduction
    name: str
    group: Slice | None
    also: str
    labels: bool
    expected: tuple[float, entry_specs.Interval] | None
    classes: tuple[str, ...]

    @property
    def mean_score(self) -> str:
        return _share(self.verdict.score, self.verdict.share_decimals)

    @property
    def hit_share(self) -> str:
        return _share(self.verdict.observed, self.verdict.share_decimals)

    @property
    def few(self) -> bool:
        return self.verdict.rows < MIN_ROWS

    def seen(self, rows: str) -> str:
        """Sentence on what the model said, and what happened."""
        r = self.reduction
        if self.verdict.rows == 1:
            if r.kind == "top-label":
                outcome = "right" if self.verdict.observed else "wrong"
                return f"On {rows}, the model was {self.mean_score} sure of its answer, and the answer was {outcome}."
            outcome = "came true" if self.verdict.observed else "did not come true"
            return f"On {rows}, the model gave the outcome in question a probability of {self.mean_score}, and that {outcome}."
        p, right = self.mean_score, f"right in {self.hit_share} of the cases"
        texts = {
            "top-label": f"the model was {p} sure of its answer on average, and its answer was {right}",
            "top-r": f"the model gave its choice number {r.r} a probability of {p} on average, and that choice was {right}",
            "within-top-r": f"the model gave its {r.r} best choices a probability of {p} together on average, and one of them was {right}",
        }
        named = f"the model gave {self.name} a probability of {p} on average, and {self.name} came true in {self.hit_share} of the cases"
        return f"On {rows}, {texts.get(r.kind, named)}."

    @claim("miscalibration")
    def follows(self) -> str:
        """Sentence on whether that is an error, and how large it is."""
        v = self.verdict
        if v.rows == 1:
            return words.SINGLE_ROW
        if self.few:
            return (
                f"{v.rows} rows are too few to say whether these probabilities can be trusted, which takes {MIN_ROWS} "
                "at least."
            )
        if v.direction in ("over", "under"):
            much = "too much" if v.direction == "over" else "too little"
            return (
                f"So it promises {much}, by {_points(abs(v.mcs), v.mcs_decimals)} on average, which chance does not "
                "explain."
            )
        if v.direction == "mixed":
            return "So it promises too much in some places and too little in others, which chance does not explain."
        if v.beyond_noise:
            average = "may be chance" if v.interval_excludes_0 else "is near enough"
            return f"On average that {average}, but in detail its probabilities are further off than chance explains."
        if v.direction == "off":
            off = list(v.classes_off)
            if v.slices_off:
                are = "is" if v.slices_off == 1 else "are"
                off.append(f"{v.slices_off:,} of {counted(v.slices, 'group')} of rows {are} off")
            if v.in_reverse:
                off.append("they rank the rows in reverse")
            if v.changed:
                off.append(f"what they mean has changed{' in one group' * bool(v.changed_where)}")
            part = "Outside one group" if v.off_alone else "As a whole"
            return f"{part} no fault was found in its probabilities, but {' and '.join(off)}."
        below = f"below {_points(v.ece_below, points_decimals(v.ece))}"
        if v.direction == "calibrated":
            return f"No fault was found in its probabilities: if they are wrong, then by an error {below}."
        return f"No fault was found in its probabilities, but there are so few rows that only an error {below} can be promised."

    @claim("worst-bin")
    def where(self) -> str:
        """Sentence on where it is worst, or that no place stands out."""
        v, worst = self.verdict, self.verdict.worst
        gap = _points(abs(v.mcs), v.mcs_decimals)
        if v.changed:
            return f"{v.changed}."
        if worst is not None:
            digits = min(v.share_decimals, worst.share_decimals)
            return (
                f"On new rows it will be furthest off where it says {worst.percents} percent ({worst.row_words}): on average it says "
                f"{_share(worst.mean_score, digits)} there, and {_share(worst.expected, digits)} is to be expected."
            )
        if v.beyond_noise and self.group is None:
            but = f", but {self.classes[0]}" if self.classes else ": the fault is spread over many"
            return f"No single range of its probabilities stands out{but}."
        if self.few:
            return f"What it said and what happened differ by {gap}, and with so few rows that says little."
        if (group := self.group) is not None:
            which = " and ".join(f"{shorten(c, 40)} is {shorten(v, 60)}" for c, v in group.where)
            of_class = f" for {words.listed([group.of_class])}" * bool(group.of_class)
            return (
                f"Most clearly off are the {counted(group.rows, 'row')} whose {which}: on average it says "
                f"{_share(group.score, v.share_decimals)}{of_class}, and {_share(group.score - group.expected, v.share_decimals)} "
                f"is to be expected{self.also}."
            )
        return (
            f"What it said and what happened differ by {gap} on average, which chance can explain."
        )

    @claim("worst-bin")
    def example(self) -> str:
        """Sentence on what it means for a hundred rows."""
        v, worst = self.verdict, self.verdict.worst
        if v.in_reverse:
            return "Its scores rank in reverse: where it promises more, less comes true."
        if not v.tells_apart:
            return "Its probabilities hardly tell the classes apart, so decisions gain little from them either way."
        if self.few:
            return "Until there are more, nothing should depend on them."
        if v.changed:
            rows = "new rows of that group" if v.changed_where else "new rows"
            return f"What came true before the change tells little about {rows}."
        promised = _of_hundred(v.score if worst is None else worst.mean_score)
        if v.beyond_noise:
            share, ends = self.expected or (v.observed, ())
            kept, *between = (_of_hundred(x) for x in (share, *ends))
            if set(between) - {promised}:
                low, high = between
                chosen = (
                    "" if worst is None else "; what is chosen as the worst looks worse than it is"
                )
                such = "rows like all of these" if worst is None else "such rows"
                return (
                    f"Of {HUNDRED} {such}, where it promises {promised}, expect {_about(kept)} to come true (between {low} and "
                    f"{high}{chosen})."
                )
            return f"On average {_about(kept)} of {HUNDRED} rows come true, but a single promise may be far off."
        if v.direction == "undecided":
            return f"These rows are too few to tell whether {promised} of {HUNDRED} come true where it promises so."
        where = "Elsewhere, where" if v.off_alone else "Where"
        return (
            f"{where} it promises that {promised} of {HUNDRED} come true, expect about that many."
        )

    @claim("wrong-labels")
    def to_do(self) -> str:
        """Sentence on what to do about it."""
        v = self.verdict
        if v.in_reverse:
            return (
                "First find out what the scores are of, such as the other class; until then nothing should depend on "
                "them."
            )
        if v.ended:
            return "Nothing is left to correct on rows from after the change: judge new rows by these alone."
        if v.beyond_noise or v.changed:
            of = "of that group " * bool(v.changed_where)
            known = f"{of}from after the change" if v.changed else "whose outcome is known"
            then = "the model itself stays as it is"
            if self.labels:
                then = "then look at the labels that it finds least likely: some may be wrong, or it is too sure there"
            return f"Before anybody acts on these probabilities, correct them with rows {known}; {then}."
        if v.direction == "off":
            others = "; for the others nothing was found" * (not v.elsewhere)
            return f"Look at these {'groups' if v.slices_off else 'classes'} before anybody acts on their probabilities{others}."
        if v.direction == "calibrated":
            return "They can be used as they are, for as long as new rows are like these."
        return "Collect more rows whose outcome is known, and look again."


def _of_hundred(share: float) -> str:
    """Number per hundred; a share that rounds to 0 or 100 without being either is "fewer than 1" or "more than 99"."""
    if 0 < share < 0.5 / HUNDRED:
        return "fewer than 1"
    if 1 - 0.5 / HUNDRED < share < 1:
        return f"more than {HUNDRED - 1}"
    return str(round(HUNDRED * share))


def _about(number: str) -> str:
    return f"about {number}" if number.isdigit() else number


def _share(value: float, digits: int) -> str:
    """Format a share without a percent sign: "91.5 percent", with the same digits as on all pages."""
    return f"{decimal(HUNDRED * value, digits)} percent"


def _points(value: float, decimals: int) -> str:
    return f"{decimal(HUNDRED * value, decimals)} percentage points"

"""Findings about what the data can tell (few rows, tied or impossible scores, clusters, profiles), and about the classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import CHECKS, Told, check, takes_weights
from calviz.core.errors import Finding, NotAvailable, claim
from calviz.core.p_values import above_drawn, selected
from calviz.core.predictions import Predictions
from calviz.core.words import counted, decimal, decimals_for, full_sentence, listed, percent, points
from calviz.metrics.classes import classwise_ece, classwise_ks, ks_classwise
from calviz.sample import class_gaps
from calviz.sample.binning import FEW_ROWS
from calviz.sample.error_bars import CLASS_MEANS, ONE_VS_REST_TEST, class_level, resampled
from calviz.sample.losses import clipped_words, negative_log_likelihood
from calviz.sample.one_vs_rest import classwise_equal_width, knows_classes
from calviz.sample.sample import MIN_ROWS, Sample, chosen_bins, event_sums


@check("CAL004", "Too few rows", clusters=True, weights=True)
def few_rows(sample: Sample) -> Iterator[Told]:
    """Report fewer than `MIN_ROWS` rows."""
    n = sample.data.rows
    if n == 1:
        yield (
            "error",
            "n = 1: no estimate is meaningful, and there are no intervals; evaluate more rows.",
        )
    elif n < MIN_ROWS:
        yield (
            "warning",
            f"n = {n}: estimates are hardly meaningful with fewer than {MIN_ROWS} rows, and "
            "bootstrap intervals are too narrow; evaluate more rows.",
        )


@check("CAL003", "Too few rows per bin", clusters=True, about="values")
def few_rows_per_bin(sample: Sample) -> Iterator[Told]:
    """Count the bins with few rows."""
    count = chosen_bins(sample).count
    filled = int(np.count_nonzero(count))
    sparse = (count > 0) & (count < FEW_ROWS)
    few = int(np.count_nonzero(sparse))
    if sample.data.rows < MIN_ROWS or few == 0:
        return
    rows = counted(int(count[sparse].sum()), "row")
    # It is a warning if at least this share of the non-empty bins has few rows.
    many = few >= 0.5 * filled
    remedy = "; use fewer bins, or bins of equal mass" if many and filled > 1 else ""
    yield (
        "warning" if many else "info",
        f"{few} of the {counted(filled, 'bin')} with rows {'has' if few == 1 else 'have'} fewer than "
        f"{FEW_ROWS} rows ({rows} in all): {'its' if few == 1 else 'their'} observed frequency "
        f"is uncertain{remedy}.",
    )


#: Scores are heavily tied if at least this many rows share a score on average.
ROWS_PER_SCORE = 10


@check("CAL009", "Heavily tied scores", clusters=True, about="values")
def ties(sample: Sample) -> Iterator[Told]:
    """Count distinct scores."""
    score = sample.events.ordered.score
    n = sample.events.n
    if n < MIN_ROWS:
        return
    distinct = 1 + int(np.count_nonzero(score[1:] != score[:-1]))
    rows = counted(n, "row")
    if distinct <= 2 and {score[0], score[-1]} <= {0, 1}:
        remedy = "if they come from predict, give those of predict_proba"
        yield "warning", f"All scores of {rows} are 0 or 1: {remedy}."
    elif distinct == 1:
        yield (
            "warning",
            f"All {rows} have the score {float(score[0]):.4g}: they cannot be ranked, and the "
            "diagram is a single bin.",
        )
    elif n >= ROWS_PER_SCORE * distinct:
        yield (
            "info",
            f"The scores of {rows} take only {distinct:,} different values: numbers by bin depend on "
            "which side of an edge a value falls, and bins of equal mass hold unequal numbers of rows.",
        )


@check("CAL005", "One class among the labels", clusters=True, weights=True)
def one_class(sample: Sample) -> Iterator[Told]:
    """Report data in which all labels are equal."""
    data = sample.data
    if data.labels is None or data.n < 2 or (data.labels != data.labels[0]).any():
        return
    label = int(data.labels[0])
    name = data.class_names[label] if data.class_names else str(label)
    yield (
        "warning",
        f"All {counted(data.rows, 'row')} have the label {listed([name])}: whether the model tells classes "
        "apart cannot be seen; numbers for other classes are undefined, and means over classes leave them out.",
    )


#: Rows that are worth this share of as many independent ones are as good as these.
NEARLY_ALL = 0.95
#: With fewer clusters than this, intervals are rough although they follow Student's t: they assume that the sums of clusters are normal.
FEW_CLUSTERS = 20


@check("CAL024", "Rows in clusters or with weights", clusters=True, weights=True)
def rows_not_alike(sample: Sample) -> Iterator[Told]:
    """Report the effective sample size of weighted or clustered rows, if it is clearly below their number or rough."""
    data = sample.data
    if data.alike:
        return
    whole = sample.view(event_sums)
    assert whole.effective is not None
    independent = f"about {float(whole.effective[0]):,.0f} independent rows"
    information = f"as much information as {independent}"
    few = data.clusters is not None and len(data.clusters.levels) < FEW_CLUSTERS
    if not few and whole.effective[0] >= NEARLY_ALL * data.n:
        return
    if data.clusters is None:
        head = f"The {counted(data.n, 'row')} have weights and carry {information} of equal weight"
        error_bars = "error bars follow the weights"
    else:
        clusters = len(data.clusters.levels)
        size = decimal(float(np.mean(np.bincount(data.clusters.codes))), 1)
        both = ", with weights," if data.weights is not None else ""
        head = (
            f"The {counted(data.n, 'row')}{both} are in {counted(clusters, 'cluster')} of {size} rows on average, and "
            f"carry {information}"
        )
        error_bars = "intervals and p-values resample clusters"
        if few:
            error_bars += f"; with fewer than {FEW_CLUSTERS} clusters, intervals are only rough"
    short = f"The {counted(data.n, 'row')} count as {independent}"
    yield ("warning" if few else "info", f"{head}; {error_bars}.", short)


#: Share of the rows from which saturated scores are reported; a single wrong one always is.
SHARE = 0.01


@check("CAL007", "Saturated scores", clusters=True, about="certainty", before="CAL001")
def saturated(sample: Sample) -> Iterator[Told]:
    """Count scores of exactly 0 and 1, and how many of them are contradicted by their label."""
    score, hit = sample.events.score, sample.events.hit
    n, top = sample.events.n, sample.reduction.kind == "top-label"
    wrong: dict[str, str] = {}
    for value, refutes, event in ((0, hit, "happened"), (1, ~hit, "did not happen")):
        at = score == value
        rows, refuted = int(np.count_nonzero(at)), int(np.count_nonzero(at & refutes))
        what = f"{counted(rows, 'score is', 'scores are')} exactly {value} ({percent(rows / n)} of the rows)"
        said = f"{'is' if refuted == 1 else 'are'} wrong" if top else f"the event {event}"
        of = f"{'in ' * (not top)}{refuted:,} of"
        if refuted:
            short = f"{of} {counted(rows, 'row')} scored exactly {value} {said}"
            wrong[short] = f"{what}, and {of} them {said}"
        elif rows >= SHARE * n:
            yield "info", f"{what}."
    if wrong:
        yield "warning", f"{'; '.join(wrong.values())}.", words.capitalised(", ".join(wrong))


@check("CAL008", "Probability zero on the true class", clusters=True, weights=True, about="values")
def zero_probability(sample: Sample) -> Iterator[Told]:
    """Count the rows whose NLL was clipped."""
    try:
        # The view and words of the metric itself, so that both agree.
        statement = clipped_words(sample.view(negative_log_likelihood))
    except NotAvailable:
        return
    if statement:
        yield "warning", statement


# ---- All classes against the rest

#: Numbers of redraws of the labels; a p-value is read from a tail fitted to the errors of the redraws. If the p-value with the first
#: number is at or below the level of the test but above `FAR`, the second number decides: few redraws determine the tail poorly.
REDRAWS, MORE_REDRAWS, FAR = 100, 400, 1e-8
#: Largest numbers of rows and of probabilities for which labels are redrawn (about half a second). Larger data are judged on some rows.
MOST_ROWS, MOST_ENTRIES = 20_000, 1 << 22


@dataclass(frozen=True, eq=False)
class AgainstNoise:
    """A class-wise error, its mean for a calibrated model, and the p-value."""

    value: float
    calibrated: float
    p_value: float

    @property
    def off(self) -> bool:
        """Whether the value is more than a calibrated model would show."""
        return self.p_value <= ONE_VS_REST_TEST


@dataclass(frozen=True, eq=False)
class OneVsRestEvidence:
    """Evidence on all classes against the rest.

    Attributes
    ----------
    sample : Sample
    beyond : ndarray, shape (K,)
        Distance by which each class's mean probability minus frequency lies outside its range, signed; 0 inside.
    ece, ks : AgainstNoise
        Class-wise ECE and class-wise KS.
    rows : int
        Number of rows on which these two were computed; for large data, fewer than all.
    """

    sample: Sample
    beyond: FloatArray
    ece: AgainstNoise
    ks: AgainstNoise
    rows: int

    @property
    def off(self) -> bool:
        """Whether any of the three tests finds more than a calibrated model would show."""
        return bool(self.beyond.any()) or self.ece.off or self.ks.off

    @property
    def words(self) -> str:
        """Text that names what is off, with its numbers."""
        parts = []
        for name, error in (("class-wise ECE", self.ece), ("class-wise KS", self.ks)):
            if error.off:
                decimals = decimals_for(100 * (error.value - error.calibrated), least=2)
                value, mean = (points(v, decimals) for v in (error.value, error.calibrated))
                parts.append(f"{name} {value} points where a calibrated model would show {mean}")
        if parts and self.rows < self.sample.data.rows:
            parts[-1] += (
                f" (judged on {self.rows:,} of {self.sample.data.rows:,} rows drawn at random)"
            )
        return " and ".join(parts)


@claim("classes")
def means_off(sample: Sample, beyond: FloatArray) -> str:
    """Text that names the classes that are off on average: "of 3 classes against the rest, 2 are too high on average, most 'z', ..."."""
    view, names = sample.view(class_gaps.class_gaps), sample.data.class_names
    k = int(np.abs(beyond).argmax())
    forecast, frequency = (float(v[k]) / view.n for v in (view.score, view.rows))
    decimals = decimals_for(100 * (forecast - frequency), least=2)
    sides = [
        f"{int(which.sum()):,} {'is' if which.sum() == 1 else 'are'} too {word}"
        for which, word in ((beyond > 0, "high"), (beyond < 0, "low"))
        if which.any()
    ]
    return (
        f"of {counted(view.rows.size, 'class', 'classes')} against the rest, {' and '.join(sides)} on average, "
        f"{furthest(beyond, 'beyond noise ')}{listed([names[k]])}, {percent(forecast, decimals)} for a frequency of {percent(frequency, decimals)}"
    )


@takes_weights
def one_vs_rest(sample: Sample) -> OneVsRestEvidence | None:
    """Test every class against the rest; None for data without probabilities of all classes, a profile of two classes, and weighted or clustered rows.

    The p-values of class-wise ECE and KS come from labels redrawn from the rows' probabilities; for large
    data, on a random part of the rows (`MOST_ROWS`, `MOST_ENTRIES`).
    """
    data = sample.data
    if data.cells is None:
        has_all_classes = isinstance(data, Predictions)
    else:
        has_all_classes = knows_classes(data) and not isinstance(data, Predictions)
    if not has_all_classes or not data.alike:
        return None
    most = max(1, min(MOST_ROWS, MOST_ENTRIES // data.n_classes))
    part = sample
    if data.cells is None and data.n > most:
        chosen = np.sort(np.random.default_rng(sample.seed).choice(data.n, most, replace=False))
        part = Sample(data.take(chosen))
    try:
        ece = _against(
            classwise_ece, part.view(classwise_equal_width, bins=sample.bins_used), sample.seed
        )
        ks = _against(ks_classwise, part.view(classwise_ks), sample.seed)
    except NotAvailable:  # more classes than can be redrawn
        return None
    return OneVsRestEvidence(
        sample=sample,
        beyond=sample.view(class_gaps.class_ranges, view="one-vs-rest").beyond,
        ece=ece,
        ks=ks,
        rows=part.data.rows,
    )


def _against(metric: Callable[[Any], FloatArray], view: Any, seed: int) -> AgainstNoise:
    value = float(metric(view))
    alike = float(metric(view.as_drawn())[0]) if hasattr(view, "as_drawn") else value
    for redraws in (REDRAWS, MORE_REDRAWS):
        drawn = metric(resampled(view, "under_calibration", seed=seed, resamples=redraws))
        against_noise = AgainstNoise(value, float(np.mean(drawn)), above_drawn(drawn, alike))
        if not FAR < against_noise.p_value <= ONE_VS_REST_TEST:
            break
    return against_noise


def of_what(sample: Sample) -> str:
    """Return " of 'a'" for a class, " of the top label" if "no miscalibration" holds only for the top label, "" if it holds for all classes.

    It holds only for the top label if the file lacks the other probabilities, or if those are miscalibrated.
    """
    if sample.reduction.kind == "class":
        return f" of {listed([sample.reduction.class_name])}"
    if sample.reduction.kind != "top-label":
        return ""
    classes = sample.once(one_vs_rest)
    return " of the top label" if classes is None or classes.off else ""


# ---- In the verdict

#: The views of the classes, and what these are called there.
KINDS: tuple[tuple[class_gaps.ClassView, str, str], ...] = (
    ("predicted-class", "predicted class", ""),
    ("true-class", "true class", ""),
    ("one-vs-rest", "class", " against the rest"),
)


@claim(
    "classes",
    says="3 of 10 classes are off; of 10 predicted classes the model is overconfident on 2, furthest beyond noise where it says 'a'",
    chosen="the classes that are off, in three views",
    adjusted="range of a calibrated model, Bonferroni over classes; each view at a sixth of 1 %, means of 3 classes or more against the rest at 0.5 %, out of the 3 % of the verdict",
)
def classes_off(sample: Sample) -> tuple[str, ...]:
    """Return a text on the classes outside the range of a calibrated model: "2 of 10 predicted classes are off, furthest beyond noise 'a'".

    Of predicted classes if any of these is off, or else of true classes, or against the rest.
    """
    if not CHECKS["CAL023"].takes(sample.data):
        return ()
    for view, noun, more in KINDS:
        ranges = ranges_of(sample, view)
        if ranges is not None and (off := np.where(ranges.has, ranges.beyond, 0.0)).any():
            if _of_one_event(sample):
                return (_sides_of_half(off),)
            if view == "one-vs-rest" and off.size > 2:
                return (_means(sample, off),)
            return (_count(sample, off, int(ranges.has.sum()), noun, more),)
    rest = sample.once(one_vs_rest) if sample.reduction.kind == "top-label" else None
    off_in_rest = rest is not None and rest.off
    return ("the probabilities of the classes against the rest are off",) if off_in_rest else ()


def ranges_of(sample: Sample, view: class_gaps.ClassView) -> class_gaps.ClassRanges | None:
    """Return the ranges of a calibrated model for the classes of a view; None where there are none, by true class of one event, and against the rest except under the top label."""
    needless = {"true-class": _of_one_event(sample), "one-vs-rest": sample.reduction.kind != "top-label"}  # fmt: skip
    if needless.get(view):
        return None
    try:
        ranges = sample.view(class_gaps.class_ranges, view=view)
    except NotAvailable:
        return None
    return None if ranges.range is None else ranges


def _of_one_event(sample: Sample) -> bool:
    """Whether the two predicted classes are the forecasts of an event up to 0.5 and above."""
    return sample.data.n_classes == 2 and sample.reduction.kind == "positive"


@claim("classes")
def _sides_of_half(off: FloatArray) -> str:
    """Say which forecasts of the event are off: "forecasts up to 0.5 are too high and above 0.5 are too low"."""
    # Up to 0.5 the other class is predicted: a confidence that is too high is a forecast that is too low.
    sides = {"up to 0.5 are": -off[0], "above 0.5 are": off[1]}
    ways = {side: f"too {'high' if by > 0 else 'low'}" for side, by in sides.items() if by}
    if len(ways) > len({*ways.values()}):
        return f"forecasts on both sides of 0.5 are {ways['above 0.5 are']}"
    return f"forecasts {' and '.join(f'{side} {way}' for side, way in ways.items())}"


@claim("classes")
def _count(sample: Sample, off: FloatArray, total: int, noun: str, more: str = "") -> str:
    n, name = np.count_nonzero(off), _name(sample, int(np.abs(off).argmax()))
    return f"{n:,} of {counted(total, noun, noun + 'es')}{more} {'is' if n == 1 else 'are'} off, {furthest(off, 'beyond noise ')}{listed([name])}"


@claim("classes")
def _means(sample: Sample, off: FloatArray) -> str:
    k = int(np.abs(off).argmax())
    gap, beyond = float(sample.view(class_gaps.class_gaps).gap[k]), abs(off[k])
    # It is stated as it is beyond its range, which makes it too large (Zhong & Prentice 2008).
    error = max(abs(gap) - beyond, 1e-9) / ndtri((1 + class_level(off.size, CLASS_MEANS)) / 2)
    gap -= np.sign(gap) * min(selected(beyond / error)[0] * error, abs(gap))
    count = _count(sample, off, off.size, "class", " against the rest") + ","
    return f"{count if np.count_nonzero(off) > 1 else f'{listed([_name(sample, k)])} is'} {words.expected_gap(gap)} on average"


def classes_unseen(sample: Sample) -> str:
    """Return the end of a sentence on errors that the predicted classes have too few rows to show; "" if they have enough."""
    if sample.reduction.kind != "top-label" or (sample.data.n_classes or 0) == 2:
        return ""
    ranges = ranges_of(sample, "predicted-class")
    if ranges is None or ranges.needed is None or ranges.beyond[ranges.has].any():
        return ""
    text = class_gaps.too_few(ranges.rows[ranges.has], ranges.needed[ranges.has])
    return f"; {text}" if text else ""


# ---- Checks


@check("CAL023", "Classes too high or too low against the rest", clusters=True, cells=True, about="one-vs-rest")  # fmt: skip
@claim("classes")
def against_the_rest(sample: Sample) -> Iterator[Told]:
    """Compare the mean probability of every class with its frequency."""
    # Of two classes, the positive one is what the verdict is about under its own reduction.
    if sample.data.n_classes == 2 and sample.reduction.kind != "top-label":
        return
    if sample.data.kind == "confidence" and sample.data.cells is None:
        return
    beyond = sample.view(class_gaps.class_ranges, view="one-vs-rest").beyond
    if beyond.any():
        text = means_off(sample, beyond)
        found, k = _furthest_off(sample, "predicted-class"), int(np.abs(beyond).argmax())
        # A class that is off where it is predicted is named as that.
        way = "low" if beyond[k] < 0 else "high"
        short = f"{listed([sample.data.class_names[k]])} is too {way} on average: {text.rpartition(', ')[2]}"
        yield "warning", full_sentence(text), "" if found is not None and found[1][k] else short


def _furthest_off(
    sample: Sample, view: class_gaps.ClassView
) -> tuple[class_gaps.ClassRanges, FloatArray, int, tuple[str, str, str]] | None:
    """Return ranges, distances from them (K,), and of the class furthest off its number, its value and range; None if none is off."""
    ranges = ranges_of(sample, view)
    if ranges is None or not (off := np.where(ranges.has, ranges.beyond, 0.0)).any():
        return None
    k = int(np.abs(off).argmax())
    # Where the other class than the event is predicted, errors of its forecast have the other sign.
    sign = -1 if k == 0 and _of_one_event(sample) else 1
    low, high = sorted(sign * float(end[k]) for end in ranges.range or ())
    return ranges, off, k, words.outside_range(sign * float(ranges.value[k]), low, high)


@check("CAL013", "True classes outside the range of a calibrated model", about="true-class")
@claim("classes")
def class_confidence(sample: Sample) -> Iterator[Told]:
    """Compare the MCS of every true class with the range of a calibrated model, which is not centred at 0."""
    found = _furthest_off(sample, "true-class")
    if found is None:
        return
    ranges, off, k, (value, low, high) = found
    classes = int(ranges.has.sum())
    sides = named_sides(off, ("more confident", "less confident"), classes)
    total = counted(classes, "true class", "true classes")
    yield (
        "warning",
        f"Of {total} the model is {sides} than a calibrated model would be, {furthest(off, 'beyond noise ')}on "
        f"{listed([sample.data.class_names[k]])}: confidence minus accuracy is {value} points "
        f"on {counted(int(ranges.rows[k]), 'row')}, where a calibrated model would show {low} to {high}.",
        f"Of {total} the model is {sides} than if calibrated, {furthest(off, 'beyond noise ')}on {listed([sample.data.class_names[k]])}",
    )


# Its findings come first: they name the class to act on.
@check(
    "CAL020",
    "Predicted classes that are over- or underconfident",
    reference="Gupta & Ramdas 2022",
    about="predicted-class",
    clusters=True,
    before="CAL012",
)
@claim("classes")
def predicted_class(sample: Sample) -> Iterator[Told]:
    """Compare confidence and accuracy of each predicted class (Gupta & Ramdas 2022)."""
    found = _furthest_off(sample, "predicted-class")
    if found is None:
        return
    ranges, off, k, (value, low, high) = found
    sums = sample.view(class_gaps.predicted_class_sums)
    rows = float(sums.rows[k])
    score, hits = float(sums.score[k]) / rows, float(sums.hits[k]) / rows
    decimals = words.share_decimals(score, hits, len(value.partition(".")[2]))
    classes = int(ranges.has.sum())
    total = counted(classes, "predicted class", "predicted classes")
    sides = named_sides(off, ("overconfident", "underconfident"), classes)
    where, shares = f"where it says {listed([_name(sample, k)])}", ("mean confidence", "accuracy")
    head = f"Of {total} the model is {sides}"
    if _of_one_event(sample):
        head = words.capitalised(_sides_of_half(off))
        shares = ("mean forecast", "frequency")
        where = f"{'above' if k else 'up to'} 0.5" if off.all() else ""
        score, hits = (score, hits) if k else (1 - score, 1 - hits)
    elif (off > 0).any() and (off < 0).any():
        where += f" ({'over' if off[k] > 0 else 'under'}confident)"
    elif classes == 1:
        head = f"The model is {sides.removesuffix(' on one')}"
    furthest_words = where and f", {furthest(off, '')}{where}"
    yield (
        "warning",
        f"{head} beyond noise{furthest_words} ({counted(int(rows), 'row')}): {shares[0]} "
        f"{percent(score, decimals)} but {shares[1]} {percent(hits, decimals)}, a difference of "
        f"{value} points where a calibrated model would show {low} to {high}.",
        f"{head}, {furthest(off, 'beyond noise ')}{where}" if where else head,
    )


def _name(sample: Sample, k: int) -> str:
    names = sample.data.class_names
    return names[k] if names else str(k)


def to_act_on(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings with one answer to "which class?": those by predicted class, which is known when the model is used.

    Where there is one by predicted class, those by true class are left out, and those against the rest unless they name another class.
    """
    found = tuple(findings)
    if all(finding.code != "CAL020" for finding in found):
        return found
    return tuple(f for f in found if f.code != "CAL013" and (f.code != "CAL023" or f.short))


@check("CAL006", "Classes without rows", clusters=True, weights=True)
def empty_classes(sample: Sample) -> Iterator[Told]:
    """Name the classes that are the label of no row, if several others have rows (for a single class, see CAL005)."""
    data = sample.data
    if data.labels is None or not data.class_names or data.n < 2:
        return
    rows = np.bincount(data.labels, minlength=data.n_classes)
    empty = [data.class_names[k] for k in np.flatnonzero(rows == 0)]
    if not empty or len(empty) == data.n_classes - 1:
        return
    verb = "has" if len(empty) == 1 else "have"
    yield (
        "warning",
        f"{len(empty):,} of {data.n_classes:,} classes {verb} no rows ({listed(empty)}): "
        "numbers per class are undefined there, and means over classes leave them out.",
    )


def named_sides(off: FloatArray, directions: tuple[str, str], classes: int) -> str:
    """Text on how many of the classes are off in each direction: "overconfident on 2 and underconfident on one", "overconfident on all"."""
    every = {1: "one"} | ({classes: "both" if classes == 2 else "all"} if classes > 1 else {})
    sides = zip((int((off > 0).sum()), int((off < 0).sum())), directions, strict=True)
    return " and ".join(f"{word} on {every.get(n, f'{n:,}')}" for n, word in sides if n)


def furthest(off: FloatArray, of: str) -> str:
    """Return "furthest " and `of` if several classes are off, to precede the one that is; "" if it is the only one."""
    return f"furthest {of}" if np.count_nonzero(off) > 1 else ""

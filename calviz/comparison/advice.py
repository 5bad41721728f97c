"""Which recalibrators to try first, and which to use after a comparison; both draw on experiments on many data sets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from calviz.comparison.comparison_results import Advice, Comparison, Guideline, MethodResult
from calviz.core import words
from calviz.core.entry_specs import METRICS, RECALIBRATORS, UNCALIBRATED, FitFacts, cheap_method
from calviz.core.errors import claim
from calviz.core.predictions import Dataset, Predictions, usual_columns
from calviz.core.words import listed
from calviz.sample.sample import MIN_ROWS, AnyData, Sample, Where, rows_where, where_words
from calviz.sample.slice_results import Slice
from calviz.sample.slices import gap_of_rows, judging, usual_slices
from calviz.verdicts.watching import watched


@dataclass(frozen=True)
class Suggestion:
    """A set of recalibrators to start with.

    Attributes
    ----------
    methods : tuple of str
        Keys, in the order of the registry.
    usual : tuple of str
        Those to start with if each method is fitted many times (`RecalibratorSpec.preselected`).
    left_out : mapping of str to str
        Reason for each method that works on these data but is not suggested.
    impossible : mapping of str to str
        Reason for each method that is not defined for these data.
    """

    methods: tuple[str, ...]
    usual: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)


def suggest(data: Dataset, fit_rows: int) -> Suggestion:
    """Choose methods by the kind of data, and by what wins on data with similar numbers of classes and calibration rows.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    fit_rows : int
        Number of rows that the methods will be fitted on.
    """
    confidence = data.kind == "confidence"
    facts = FitFacts(
        rows=fit_rows,
        classes=2 if confidence else data.n_classes,
        logits=isinstance(data, Predictions) and data.logits is not None,
    )
    possible: list[str] = []
    left_out: dict[str, str] = {}
    impossible: dict[str, str] = {}
    for spec in RECALIBRATORS:
        if spec.key == UNCALIBRATED:
            continue
        if confidence and not spec.confidence_only:
            impossible[spec.key] = "it needs the scores of all classes, and the file has one."
        elif spec.takes_columns and not usual_columns(data):
            impossible[spec.key] = "there is no column of groups or numbers to segment by."
        elif reason := spec.left_out(facts):
            left_out[spec.key] = reason
        else:
            possible.append(spec.key)
    group = evidence(facts.classes, fit_rows)
    # The cheap method is what a user was told of first.
    # Number of suggested methods that win most often on such data, in addition to the usual ones that keep every predicted class.
    winning = [*[key for key in group.ranking if key in possible][:5], cheap_method(data)]
    specs = [RECALIBRATORS[key] for key in possible]
    winning += [s.key for s in specs if s.preselected and s.accuracy_preserving]
    winning += [s.key for s in specs if s.family == "Automatic"]
    # Methods that the experiments do not include are suggested.
    methods = [key for key in possible if key in winning or key not in group.records]
    left_out |= {key: _rank(key, group) for key in possible if key not in methods}
    usual = tuple(key for key in methods if RECALIBRATORS[key].preselected)
    return Suggestion(tuple(methods), usual, left_out, impossible)


def _rank(key: str, group: ExperimentGroup) -> str:
    return (
        f"it wins less often on such data: number {group.ranking.index(key) + 1} of {len(group.ranking)} methods in "
        f"{group.experiments:,} experiments ({group.source}; {group.like})."
    )


# ---- Advice after a comparison


#: Rows of "a large calibration data set", overall and per class: about where IROvA-TS takes the lead in their figures 6 and 11-13.
LARGE_SET, LARGE_PER_CLASS = 5_000, 25


#: The rule, with the method of the one comparison that is made if the verdict finds nothing, and the criterion.
RULE = (
    "Rule: recalibrate if the verdict finds miscalibration, or if {method} is better than the uncalibrated model beyond noise (where the "
    "verdict finds it in places only: if any method is); take the simplest method within one standard error of the best {criterion}, of "
    "those whose ECE is not told apart from the best. If a slice that no map of all rows repairs stays off, or keeps more than half of its "
    "gap, take a map for it; if the "
    "other rows are off too, {segments}, if it corrects by the columns of the slice. Neither is taken if a proper score or the ECE is "
    "worse beyond noise. If a map of all rows is better beyond noise than that of the slice, or not worse where the other rows are off "
    "too, it is fitted to the other rows, and both together are taken where their loss is smaller than that of either."
)
#: The method that repairs a slice, and what to do about one that was not compared.
SEGMENTS = "segments"
COMPARE_AGAIN = "was not compared: add it to the methods and compare again before you choose."


@claim(
    "advice",
    says="Advice: Temperature scaling; or: leave the model as it is",
    chosen="whether to recalibrate, and one of all compared methods",
    adjusted="the verdict, or one comparison named beforehand, beyond noise; then the simplest within one standard error of the best, or "
    "a map for the slice that the verdict names",
)
def advise(comparison: Comparison, data: Dataset, *, keep_classes: bool = False) -> Advice:
    """Choose a method by `RULE`; the first reason says what decided, after a change in time, which the advice gives way to.

    The verdict is that before recalibration (`Comparison.found`). The one comparison is that of `auto`, or of the method that wins most
    often on similar data, with the uncalibrated model, beyond noise as in the table. The simplest method is that whose map holds the
    fewest numbers; of two, one that keeps every predicted class, then the one that wins more often on similar data. Methods of which a
    proper score or the ECE is worse beyond noise are not taken.

    Parameters
    ----------
    comparison : Comparison
        A comparison with paired intervals; without, there is no advice.
    data : Predictions or ConfidencePredictions
        The compared data.
    keep_classes : bool
        Whether no predicted class may change.
    """
    rule = guideline(data, comparison.fit.rows, keep_classes=keep_classes)
    if why := _why_none(comparison):
        return Advice(UNCALIBRATED, (why, rule.reason), given=False)
    name = comparison.column(str(comparison.criterion)).written.heading.removesuffix(" (points)")
    first = _named_beforehand(comparison, rule, keep_classes)
    candidates = comparison.candidates(keep_classes=keep_classes)
    near = [key for best in candidates[:1] for key in comparison.near[best] if key in candidates]
    # What is as good by a proper score may still be miscalibrated, where that is a small part of the score.
    even = [key for key in near if key in comparison.tied.get("ece", near)] or near
    sample = Sample.of(data, reduction=comparison.reduction)
    state = sample.once(watched)
    leads = not comparison.off_where or data.time_name in dict(comparison.off_where)
    # Where the verdict names a slice, a change counts if its day is well known, or if it is in another one that is named.
    change = None if state is None else state.found
    named = change and change.where in [s.where for s in comparison.off]
    change = change if leads or named or (state and state.is_dated) else None
    ended = change is not None and bool(change.days[1])
    caveat = (change_words(sample),) if change else ()
    rest = [
        *([f"Verdict before recalibration: {comparison.found}"] if comparison.found else []),
        compared_words(comparison, data),
        *filter(None, [comparison.infinite]),
        RULE.format(method=_label(first), criterion=name, segments=_label(SEGMENTS)),
        " ".join(filter(None, (rule.reason, _not_judged(rule, comparison, data)))),
    ]
    proven = not comparison.found and first in candidates and comparison.is_better(first)
    taken = even if comparison.found or proven else ()
    chosen = min(taken, key=lambda key: _simplicity(comparison[key], rule), default=UNCALIBRATED)
    own = next((m.key for m in comparison if m.is_of_slice), SEGMENTS)
    within = change is not None and bool(change.where) and not ended
    # What the verdict names first is answered first; the change in another slice after it.
    since, second = within and leads, within and not leads
    off = _stays_off(comparison, chosen, since)
    why_not = _why_not(comparison, own, keep_classes) if off else ""
    rather = off and not why_not and _rather(comparison, own, chosen, name)
    if since and off and own != SEGMENTS and (chosen in (own, UNCALIBRATED) or not why_not):
        caveat = ()
    why_not = rather or why_not
    if off and not why_not and chosen != own:
        chosen, near = own, []
        why = f"{_found(comparison)}. {comparison.alone}"
    elif ended:
        return Advice(UNCALIBRATED, (*caveat, *rest))
    elif chosen == UNCALIBRATED:
        left = _left(comparison, name, first, keep_classes)
        why = " ".join(filter(None, (left, comparison.alone, why_not)))
        # To leave the model would deny the verdict.
        return Advice(UNCALIBRATED, (*caveat, why, *rest), given=not off)
    else:
        why = _found(comparison)
        if not comparison.found:
            why = f"The verdict finds no miscalibration, but {_label(first)} is better than the uncalibrated model beyond noise"
        among = _among(comparison, chosen, candidates, near, even)
        why = f"{why}, and {comparison[chosen].label} {among}"
    cautions = cautions_of(comparison, comparison[chosen])
    if second:
        turn = change_words(sample).replace(words.NOT_SINCE, words.IN_TURN)
        caveat, cautions = (), (*cautions, turn)
    if why_not and chosen != own:
        stays = _in_slice(comparison, chosen, own)[0] if rather else ""
        cautions = (*cautions, f"{stays} {comparison.alone} {why_not}".lstrip())
    return Advice(
        chosen,
        (
            *caveat,
            words.full_sentence(why),
            _measured(comparison, name, chosen, near),
            *rest,
            *cautions,
            "The choice was made on the evaluation rows: fresh rows would confirm it.",
        ),
        cautions=cautions,
        label=comparison[chosen].label,
    )


def change_words(data: AnyData, *, split: str | None = None) -> str:
    """Say what a change in time means for a map of all these rows; "" if none is found."""
    state = Sample.of(data, split=split).once(watched)
    if state is None or state.found is None:
        return ""
    return f"{state.headline}. {words.ENDED if state.found.days[1] else words.NOT_SINCE}"


def compared_words(comparison: Comparison, data: Dataset) -> str:
    """Say which methods were compared, of how many, and how to compare others."""
    known = suggest(data, comparison.fit.rows)
    possible = {*known.methods, *known.left_out}
    taken = sum(m.key in possible for m in comparison)
    if taken not in (len(known.methods), len(possible)):
        return f"Compared: {taken} of {len(possible)} methods for such data."
    of, other, count = f"{len(possible)} methods for such data", "all", ""
    which = f"the {taken} suggested of {of}"
    if taken == len(possible):
        which, other, count = f"all {of}", "suggested", f"{len(known.methods)} "
    return f"Compared: {which}; with {'the ' * bool(count)}{count}{other} (--methods {other}; {words.capitalised(other)} in the app) the advice may differ."


def _why_none(comparison: Comparison) -> str:
    """Say why there is no advice; "" if there is one."""
    if not any(m.ok and m.key != UNCALIBRATED for m in comparison):
        return "No method was fitted, so there is no basis for a choice."
    if comparison.in_sample:
        return (
            "The maps were fitted on the rows that judge them, where flexible methods look better than they are: that is no basis for a "
            "choice."
        )
    if comparison.criterion is None:
        return "No error bars of a metric that ranks methods (such as the NLL): compare with intervals."
    if comparison.found is None:
        return f"{words.counted(comparison.evaluation.rows, 'evaluation row')} cannot tell whether the model is miscalibrated: it takes {MIN_ROWS}."
    return ""


def _named_beforehand(comparison: Comparison, rule: Guideline, keep_classes: bool) -> str:
    """Return the method that is compared with the uncalibrated model: `auto`, or the one that wins most often on such data."""
    ready = [m for m in comparison.ready if m.key != UNCALIBRATED]
    allowed = [m.key for m in ready if not (keep_classes and m.predictions_changed)]
    ranked = [key for key in ("auto", *rule.ranking) if key in allowed]
    return (*ranked, *allowed, UNCALIBRATED)[0]


def _stays_off(comparison: Comparison, chosen: str, since: bool) -> bool:
    """Whether a method leaves the slice off that no map of all rows repairs alone, beyond chance or by more than half of its gap, as none repairs one `since` a change."""
    before, after = (comparison[key].calibrated for key in (UNCALIBRATED, chosen))
    stays = since or (chosen == UNCALIBRATED and not comparison.named)
    stays = stays or any(
        _in_slice(comparison, chosen, m.key)[1] > 0.5 for m in comparison if m.is_of_slice
    )
    return bool(comparison.alone and (stays or still_off_words(before, after, comparison.named)))


def _rather(comparison: Comparison, own: str, chosen: str, name: str) -> str:
    """Say why a map of all rows is taken rather than that of the slice; "" if it is not."""
    if chosen in (own, UNCALIBRATED) or own == SEGMENTS:
        return ""
    best = comparison.tied[str(comparison.criterion)]
    both = "others" in comparison.slice_options
    if own in best and (comparison.in_places or both or chosen not in best):
        return ""
    if comparison.in_places:
        return f"{comparison[chosen].label} has a better {name} than a map for it."
    return "Other rows are off, too."


def _why_not(comparison: Comparison, own: str, keep_classes: bool) -> str:
    """Say why the method that corrects the slice which the verdict names is not advised; "" if it is."""
    result = comparison.methods.get(own)
    if result is None:
        return f"{_label(own)} {COMPARE_AGAIN}"
    label = result.label
    if not result.ok:
        return f"{label} has no result here: {result.reason}"
    if result.worse_in:
        return f"{label} is worse by {' and '.join(result.worse_in)} than the uncalibrated model beyond noise."
    if keep_classes and result.predictions_changed:
        return f"{label} changes predicted classes."
    if abs(_in_slice(comparison, own, own)[1]) > 1:
        return f"{label} takes it further off on the judged rows."
    if own != SEGMENTS:
        return ""
    columns = [column for column, _ in comparison.off_where]
    corrects = set(columns) <= set(getattr(result.recalibrator, "needed_columns", ()))
    if result.recalibrator is None:
        # Under cross-fitting there are several maps.
        corrects = not still_off_words(comparison[UNCALIBRATED].calibrated, result.calibrated)
    few = f"{label} does not correct by {listed(columns)}: the fitting rows do not show that it differs."
    return "" if corrects else few


def _among(
    comparison: Comparison,
    chosen: str,
    candidates: tuple[str, ...],
    near: list[str],
    even: list[str],
) -> str:
    """Say how the chosen method stands among the candidates, those near the best, and those of them with an even ECE."""
    name = METRICS[str(comparison.criterion)].label
    leads = comparison.ranking(str(comparison.criterion))[0] == candidates[0]
    of = " of the methods" + " that are no other one alone" * (not leads)
    noise = " beyond noise" * comparison.in_places
    if noise and not leads:
        of = " of the methods that are better beyond noise"
    others = [k for k in comparison.tied[str(comparison.criterion)] if k != chosen] * leads
    beside = comparison[others[0]].label if len(others) == 1 else f"{len(others)} other methods"
    even_at = f"; not told apart from it at 95 % (≈): {beside}" * bool(others)
    among = f"has the best {name}{of}, by more than one standard error{even_at}"
    if len(near) > 1:
        best = comparison[candidates[0]].label
        lead = f" ({best}, whose lead may be chance)" if chosen != candidates[0] else ""
        which = f"is the simplest of {len(even)}" if len(even) > 1 else f"alone of {len(near)}"
        ece = " has an ECE that is not told apart from the best" if len(even) == 1 else ""
        among = f"{which} methods within one standard error of the best {name}{lead}{ece}"
        if 1 < len(even) < len(near):
            among += ", with an ECE that is not told apart from the best"
    elif len(candidates) == 1:
        among = f"is the only method with a better {name}{noise}"
    return among


def _simplicity(result: MethodResult, rule: Guideline) -> tuple[int, bool, int]:
    wins = rule.ranking.index(result.key) if result.key in rule.ranking else len(rule.ranking)
    return result.numbers, not result.accuracy_preserving, wins


def _found(comparison: Comparison) -> str:
    """Say that the verdict finds miscalibration, of all rows or in places."""
    return f"The verdict finds miscalibration{' in places' * comparison.in_places}"


@claim("advice")
def _left(comparison: Comparison, name: str, first: str, keep_classes: bool) -> str:
    """Say why the model should be left as it is."""
    named = comparison if comparison.found else (comparison[first],)
    costs = [m for m in named if comparison.is_better(m.key) and m.worse_in]
    but = ""
    if costs:
        worse = " and ".join(costs[0].worse_in)
        but = f"{costs[0].label} is better by {name}, but worse by {worse}, than the uncalibrated model beyond noise."
    if comparison.found:
        of = " that keeps every predicted class" if keep_classes else ""
        noise = " beyond noise" * comparison.in_places
        return (
            f"{_found(comparison)}, but no method{of} has a better {name} than the uncalibrated model{noise} on "
            f"{comparison.evaluation.rows:,} evaluation rows without a worse proper score or ECE. {but}"
        ).rstrip()
    if first == UNCALIBRATED:
        return "The verdict finds no miscalibration, and no method keeps every predicted class."
    if comparison.is_better(first):
        return f"The verdict finds no miscalibration, and {but}"
    return f"The verdict finds no miscalibration, and {_label(first)} is not better than the uncalibrated model beyond noise by {name}."


def _measured(comparison: Comparison, name: str, chosen: str, near: list[str]) -> str:
    """Say what the chosen method gains, and which others are within one standard error of the best."""
    criterion = str(comparison.criterion)
    before, after = map(comparison.column(criterion).number, (UNCALIBRATED, chosen))
    decimals = words.decimals_for(before - after, figures=2, least=4, most=6)
    was, then = (words.decimal(value, decimals) for value in (before, after))
    rows = f"{comparison.evaluation.rows:,} evaluation rows"
    text = f"The map brings the {name} from {was} to {then} on {rows}"
    if not comparison.is_better(chosen):
        text = f"The gain on all {rows} is within noise ({name} {was} before, {then} after)"
        of_slice = bool(comparison.alone) and chosen.startswith(("slice+", SEGMENTS))
        text += "; what the map mends is the slice" * of_slice
    others = [comparison[key].label for key in near if key != chosen]
    # Semicolons, because labels contain commas.
    listed = "; ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return f"{text}{f'; also within one standard error of the best: {listed}' if others else ''}."


@claim("segments")
def moved_words(method: str, before: Dataset | None, after: Dataset | None) -> str:
    """Say how far segments move the mean score of the slice that they move most, of rows in no slice that is off; "" for other methods."""
    if method != SEGMENTS or before is None or after is None:
        return ""
    fine, found = np.ones(before.n, bool), usual_slices(Sample.of(before))
    for one in found.off if found else ():
        fine[rows_where(before, one.where)] = False
    both = (Sample.of(data.take(np.flatnonzero(fine))) for data in (before, after) if fine.any())
    scores = [{s.where: s.score for s in some.slices} for some in map(usual_slices, both) if some]
    if not scores or not scores[0]:
        return ""
    # A slice that a part of it makes off is mended with it.
    off = () if found is None else (*found.explained, *(one.where for one in found.off))
    whole = [w for w in scores[0] if any({*w} <= {*part} for part in off)]
    moved = {
        w: scores[1][w] - score
        for w, score in scores[0].items()
        if w in scores[1] and w not in whole
    }
    if not moved:
        return ""
    where = max(moved, key=lambda where: abs(moved[where]))
    return f"The map moves rows of slices that were not found off, too, most where {where_words(where)}: by {words.signed_points(moved[where])} points on average."


@claim(
    "still-off",
    says="Where topic = legal, scores stay off: about 19.1 points too high",
    chosen="the slices that are named before the map, on these rows or on more of the file, or of all after it; of these, the two most surely off",
    adjusted="the tests after the map of those named before at 0.5 % together (Bonferroni), of all slices as before it; the gap less what its choice makes of noise (Zhong & Prentice 2008)",
)
def still_off_words(
    before: Dataset | None,
    after: Dataset | None,
    more: Sequence[Slice] = (),
    most: int | None = 1,
    but: Where = (),
) -> str:
    """Say how far the slice that is named before a map is off after it, or the first of so many, and of those named on `more` rows; "" if that is not beyond chance.

    With None for `most`, of all that are named before it, `but` one, and of those that are found off only after it.
    """
    if before is None or after is None:
        return ""
    samples = Sample.of(before), Sample.of(after)
    found, then = map(usual_slices, samples)
    if found is None or then is None:
        return ""
    named = {s.where: s for s in (*found.named[:most], *more) if s.where != but}
    left: list[tuple[float, float, str, Where]] = []

    def add(one: Slice, p: float, gap: float, stay: str) -> None:
        of_class = f" of {listed([one.of_class])}" * bool(one.of_class)
        said = (
            f"Where {found.place(one)[0]}, scores{of_class} {stay} off: {words.expected_gap(gap)}."
        )
        left.append((p, -abs(gap), said, one.where))

    for first in named.values():
        both = (usual_slices(judging(some, first.of_class)) for some in samples)
        was, one = (
            next((s.top or s for s in some.slices if s.where == first.where), None)
            for some in both
            if some
        )
        if one is not None and one.p_value <= found.rate / len(named):
            # What is named on more rows may not be off on these before the map.
            stay = "stay" if was is not None and was.p_value <= found.rate else "are then"
            # The verdict after the map has it with its own number.
            told = {(s.where, s.of_class): s.expected for s in then.named}
            gap = told.get((first.where, first.of_class), one.gap - (first.gap - first.expected))
            add(replace(first, without=()), one.p_value, gap, stay)
    for s in then.named if most is None else ():
        said = [*(where for *_, where in left), *[but] * bool(but)]
        if not any({*s.where} <= {*where} or {*where} <= {*s.where} for where in said):
            add(s, s.p_value, s.expected, "are then")
    return " ".join(said for _, _, said, _ in sorted(left)[:2])


def left_off_words(used: Dataset, before: Dataset, after: Dataset) -> str:
    """Say what stays off on judged rows after a map, of the slices that are off on all used rows."""
    return still_off_words(before, after, getattr(usual_slices(Sample.of(used)), "named", ()), None)


def guideline(data: Dataset, fit_rows: int, *, keep_classes: bool = False) -> Guideline:
    """Return what wins on data with similar numbers of classes and calibration rows, and what Zhang et al. (2020, appendix G) recommend.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    fit_rows : int
        Number of calibration rows.
    keep_classes : bool
        Whether no predicted class may change.
    """
    confidence = data.kind == "confidence"
    group = evidence(2 if confidence else data.n_classes, fit_rows)
    allowed = [
        key
        for key in group.ranking
        if (RECALIBRATORS[key].accuracy_preserving or not keep_classes)
        and (RECALIBRATORS[key].confidence_only or not confidence)
    ]
    first = next(iter(allowed), None)
    where = f"{group.experiments:,} experiments ({group.source}; {group.like})"
    sentence = short = f"No method of {where} keeps every predicted class."
    if first is not None:
        of = " of those that keep every predicted class" if keep_classes else ""
        sentence = f"In {where} {_label(first)} wins most often{of}: {group.record_words(first)}."
        short = f"On data like these, {_label(first)} wins most often."
    other = "" if confidence else f" {_zhang(data.n_classes, fit_rows, keep_classes)}"
    return Guideline(tuple(allowed), sentence + other, short)


def _zhang(classes: int, rows: int, keep_classes: bool) -> str:
    """Return the guideline of Zhang et al. as a sentence."""
    large = rows >= max(LARGE_SET, LARGE_PER_CLASS * classes)
    # Number of classes of a complex task: for Zhang et al. those of CIFAR-100 and ImageNet are complex, that of CIFAR-10 is not.
    if classes >= 100 and large and not keep_classes:
        method = (
            "temperature scaling, then one-vs-rest isotonic regression, for many classes and rows"
        )
    else:
        method = "ensemble temperature scaling for general use"
    return f"Zhang et al. (2020, appendix G) recommend {method}."


def _label(key: str) -> str:
    return RECALIBRATORS[key].label


def _not_judged(rule: Guideline, comparison: Comparison, data: Dataset) -> str:
    """Say what to do if the recommended method has no result; "" if it has one."""
    recommended = comparison.methods.get(str(rule.method))
    if rule.method is None or (recommended is not None and recommended.ok):
        return ""
    if recommended is not None:
        return f"{_label(rule.method)} has no result here: {recommended.reason}"
    head = f"{_label(rule.method)} ('{rule.method}')"
    why = suggest(data, comparison.fit.rows).left_out.get(rule.method)
    if why is not None:
        return f"{head} was not compared, and need not be: {why}"
    return f"{head} {COMPARE_AGAIN}"


def cautions_of(comparison: Comparison, result: MethodResult) -> tuple[str, ...]:
    """Say what a map changes besides, and what stays off."""
    before, after = comparison[UNCALIBRATED].calibrated, result.calibrated
    of = f"{result.predictions_changed:,} of {comparison.evaluation.rows:,} rows"
    columns = getattr(result.recalibrator, "needed_columns", ())
    but = comparison.off_where if result.is_of_slice else ()
    sentences = (
        comparison.moved * result.is_of_slice,
        "" if result.is_of_slice or columns else comparison.unclear,
        _in_slice(comparison, result.key, result.key)[0],
        f"The map corrects by {listed(columns)}: new rows need that too." if columns else "",
        f"The map changes the predicted class of {of}." if result.predictions_changed else "",
        still_off_words(before, after, (*comparison.named, *comparison.off), None, but),
        moved_words(result.key, before, after),
    )
    return tuple(filter(None, sentences))


def rows_of_slice(comparison: Comparison, data: Dataset) -> npt.NDArray[np.intp]:
    """The rows of the slice that has a map of its own."""
    met = rows_where(data, comparison.off_where)
    return np.arange(data.n) if met is None else np.flatnonzero(met)


def _in_slice(comparison: Comparison, key: str, own: str) -> tuple[str, float]:
    """Say what map `key` does to the judged rows of the slice of map `own`, and what share of their gap it leaves; "" if there are none."""
    before, after = (comparison[k].calibrated for k in (UNCALIBRATED, key))
    if not comparison[own].is_of_slice or before is None or after is None:
        return "", 0.0
    rows = rows_of_slice(comparison, before)
    if not rows.size:
        return "", 0.0
    both = (Sample.of(d.take(rows), reduction=comparison.reduction) for d in (before, after))
    parts = [judging(some, comparison.off_class) for some in both]
    (old, _), (new, around) = map(gap_of_rows, parts)
    within = f" (95 % CI {' to '.join(map(words.signed_points, around))})" if around else ""
    ends = [(float(s.scored.score.min()), float(s.scored.score.max())) for s in parts]
    decimals = words.decimals_for(*(high - low for low, high in ends), least=2)
    was, then = (" to ".join(words.decimal(end, decimals) for end in pair) for pair in ends)
    score, hit = words.score_and_hit(parts[0].reduction)
    score += f" of {listed([comparison.off_class])}" * bool(comparison.off_class)
    return (
        f"On the {words.counted(rows.size, 'judged row')} of the slice, {score} minus {hit} is {words.signed_points(old)} points before "
        f"the map and {words.signed_points(new)} after it{within}; scores there, {was} before, become {then}."
    ), new / old if old else math.inf


# ---- Evidence


#: Written by ``benchmarks/record_arena.py``; the first group that matches the data is used.
_FILE = "arena_evidence.json"


@dataclass(frozen=True)
class Record:
    """Record of one method in a group of experiments.

    Attributes
    ----------
    brier, nll : float
        Winrates: mean share of the other methods with a strictly larger score.
    worse_brier : float
        Share of the experiments in which the Brier score is larger (worse) than without calibration.
    """

    brier: float
    nll: float
    worse_brier: float

    @property
    def winrate(self) -> float:
        """Mean of the two winrates."""
        return (self.brier + self.nll) / 2


@dataclass(frozen=True)
class ExperimentGroup:
    """Experiments with similar numbers of classes and calibration rows.

    Attributes
    ----------
    source : str
        Source of the experiments, in words.
    experiments : int
    classes, rows : (int, int or None)
        Range: from the first number up to, but not including, the second; None for no upper end.
    like : str
        The two ranges in words ("2 classes, 1,000 to 4,999 calibration rows").
    records : mapping of str to Record
        By the key of the method.
    """

    source: str
    experiments: int
    classes: tuple[int, int | None]
    rows: tuple[int, int | None]
    like: str
    records: Mapping[str, Record]

    def holds(self, classes: int, rows: int) -> bool:
        """Whether data with these numbers belong to the group."""
        return all(
            low <= value and (high is None or value < high)
            for value, (low, high) in ((classes, self.classes), (rows, self.rows))
        )

    @property
    def ranking(self) -> tuple[str, ...]:
        """Keys of the methods, highest mean winrate first, without the uncalibrated model."""
        keys = [key for key in self.records if key != UNCALIBRATED]
        return tuple(sorted(keys, key=lambda key: (-self.records[key].winrate, key)))

    def record_words(self, key: str) -> str:
        """Return the winrates of a method, and how often it does harm, in words."""
        record = self.records[key]
        share = round(100 * record.worse_brier)
        often = f"in {share} %" if share else "in less than 1 %"
        if not record.worse_brier:
            often = "in none of them"
        return (
            f"winrate {record.brier:.2f} by Brier score and {record.nll:.2f} by log loss, Brier score worse than without "
            f"calibration {often}"
        )


def evidence(classes: int, rows: int) -> ExperimentGroup:
    """Return the experiments that are most similar to the data.

    Parameters
    ----------
    classes : int
    rows : int
        Number of calibration rows.
    """
    return next(group for group in _groups() if group.holds(classes, rows))


@cache
def _groups() -> tuple[ExperimentGroup, ...]:
    record = json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return tuple(
        ExperimentGroup(
            source=group["source"],
            experiments=group["experiments"],
            classes=tuple(group["classes"]),
            rows=tuple(group["rows"]),
            like=group["like"],
            records={k: Record(**v) for k, v in group["methods"].items() if k in RECALIBRATORS},
        )
        for group in record["groups"]
    )

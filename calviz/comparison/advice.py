"""Advice on a recalibrator: what wins on similar data in published experiments, combined with the comparison at hand."""

from __future__ import annotations

from calviz.comparison.arena_evidence import evidence
from calviz.comparison.methods_to_try import suggest
from calviz.core.predictions import Dataset
from calviz.results.advice import Advice, Guideline
from calviz.results.comparison import Comparison, MethodResult
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED
from calviz.text.words import decimal, decimals_for

#: Number of classes of a complex task: for Zhang et al. those of CIFAR-100 and ImageNet are complex, that of CIFAR-10 is not.
MANY_CLASSES = 100
#: Rows of "a large calibration data set", overall and per class: about where IROvA-TS takes the lead in their figures 6 and 11-13.
LARGE_SET, LARGE_PER_CLASS = 5_000, 25


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
        for key in (group.keeping() if keep_classes else group.ranking)
        if RECALIBRATORS[key].confidence_only or not confidence
    ]
    first = next(iter(allowed), None)
    where = f"{group.experiments:,} experiments ({group.source}; {group.like})"
    sentence = (
        f"In {where} {_label(first)} wins most often{' of those that keep every predicted class' if keep_classes else ''}: "
        f"{group.record_words(first)}."
        if first is not None
        else f"No method of {where} keeps every predicted class."
    )
    other = "" if confidence else f" {_zhang(data.n_classes, fit_rows, keep_classes)}"
    return Guideline(tuple(allowed), sentence + other)


def _zhang(classes: int, rows: int, keep_classes: bool) -> str:
    """Return the guideline of Zhang et al. as a sentence."""
    large = rows >= max(LARGE_SET, LARGE_PER_CLASS * classes)
    if classes >= MANY_CLASSES and large and not keep_classes:
        method = (
            "temperature scaling, then one-vs-rest isotonic regression, for many classes and rows"
        )
    else:
        method = "ensemble temperature scaling for general use"
    return f"Zhang et al. (2020, appendix G) recommend {method}."


def advise(comparison: Comparison, data: Dataset, *, keep_classes: bool = False) -> Advice:
    """Choose a method by a comparison and by what wins on similar data elsewhere; the reasons say where the two differ.

    Methods that are not told apart from the best one (adjusted for all pairs) count as equal if they are also better
    than the uncalibrated model beyond noise and their NLL is not worse. Among equals the order is: the uncalibrated model,
    the method that wins most often on similar data, the best value. The reasons state this rule.

    Parameters
    ----------
    comparison : Comparison
        A comparison with paired intervals.
    data : Predictions or ConfidencePredictions
        The compared data.
    keep_classes : bool
        Whether no predicted class may change.
    """
    rule = guideline(data, comparison.fit.rows, keep_classes=keep_classes)
    if not any(m.ok and m.key != UNCALIBRATED for m in comparison):
        return Advice(UNCALIBRATED, ("No method was fitted, so there is no basis for a choice.",))
    criterion = comparison.criterion
    if criterion is None:
        return Advice(UNCALIBRATED, ("There are no paired intervals to judge by.", rule.reason))
    allowed = [
        key
        for key in comparison.ranking(criterion)
        if key == UNCALIBRATED or not keep_classes or not comparison[key].predictions_changed
    ]
    name = METRICS[criterion].label
    tied = comparison.tied[criterion]
    best = allowed[0]
    # If the best method is not allowed, ties with it say nothing about the allowed ones.
    equal = [key for key in allowed if key in tied] if best in tied else [best]
    chosen = UNCALIBRATED
    if UNCALIBRATED not in equal:
        chosen = _first([key for key in equal if not _objection(comparison, key)], rule)
    reasons = [*_measured(comparison, criterion, name, chosen, best, equal)]
    reasons.append(_rule(comparison, criterion, name, chosen, best, equal, rule))
    reasons.append(_held_against(rule, chosen, equal, comparison, name, data))
    reasons += _keep_in_mind(comparison, comparison[chosen])
    return Advice(chosen, tuple(r for r in reasons if r))


def _objection(comparison: Comparison, key: str) -> str | None:
    """Say why a method that is tied with the best is still no improvement; None if it is one."""
    differences = comparison[key].differences
    nll = differences.get("nll")
    if nll is not None and nll.verdict == "worse":
        return "NLL is worse than that of the uncalibrated model beyond noise"
    criterion = comparison.criterion
    change = differences.get(criterion) if criterion else None
    if criterion and change is not None and change.verdict != "better":
        return f"{METRICS[criterion].label} is not better than that of the uncalibrated model beyond noise"
    return None


def _first(sound: list[str], rule: Guideline) -> str:
    """Return the method that wins most often on such data, or the one with the best value if no experiments are known."""
    return next((key for key in rule.ranking if key in sound), next(iter(sound), UNCALIBRATED))


def _rule(
    comparison: Comparison,
    criterion: str,
    name: str,
    chosen: str,
    best: str,
    equal: list[str],
    rule: Guideline,
) -> str:
    """State the rule and the criterion that decided; empty without ties."""
    if len(equal) == 1:
        return ""
    share = comparison[best].best_share.get(criterion)
    top = f"{_label(best)}, best in {100 * share:.0f} %" if share is not None else _label(best)
    objected = any(_objection(comparison, key) for key in equal if key != UNCALIBRATED)
    if chosen == UNCALIBRATED and UNCALIBRATED not in equal:
        return ""
    why = (
        "a model that is left as it is comes first"
        if chosen == UNCALIBRATED
        else "what wins most often on such data comes first"
        if chosen in rule.ranking
        else "the best value comes first"
    )
    better = (
        ", is better than that of the uncalibrated model, and whose NLL is not worse"
        if objected and chosen != UNCALIBRATED
        else ""
    )
    return f"Rule: among all whose {name} is not told apart from the best ({top}){better}, {why}."


def _label(key: str) -> str:
    return RECALIBRATORS[key].label


def _measured(
    comparison: Comparison, criterion: str, name: str, chosen: str, best: str, equal: list[str]
) -> list[str]:
    rows = f"{comparison.evaluation.rows:,} evaluation rows"
    if chosen == UNCALIBRATED:
        if UNCALIBRATED not in equal and (objection := _objection(comparison, best)):
            return [f"{_label(best)} has the best {name} on {rows}, but its {objection}."]
        if best == UNCALIBRATED:
            return [f"No method has a better {name} than the uncalibrated model on {rows}."]
        apart = comparison[best].differences.get(criterion)
        if apart is not None and apart.verdict == "better":
            # The table says so, where it compares each method with the uncalibrated model alone.
            head = (
                f"{_label(best)} has the best {name} on {rows}, better beyond noise than that of the uncalibrated model if methods "
                "are compared with it only; with all pairs of methods taken into account, the two are not told apart."
            )
        else:
            head = (
                f"No method is better than the uncalibrated model beyond noise: the best {name} on {rows} is that "
                f"of {_label(best)}, and the two are not told apart."
            )
        return [
            head,
            "That does not make the model calibrated: on more rows, as with cross-fitting, a method may prove better.",
        ]
    winner = comparison[chosen]
    before = comparison[UNCALIBRATED].metrics[criterion].value
    after = winner.metrics[criterion].value
    decimals = decimals_for(before - after, figures=2, least=4, most=6)
    change = f"from {decimal(before, decimals)} to {decimal(after, decimals)}"
    if chosen == best and len(equal) == 1:
        return [f"{_label(chosen)} has the best {name} on {rows}, {change}, beyond noise."]
    others = [_label(key) for key in equal if key != chosen]
    # Semicolons, because labels contain commas.
    listed = "; ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return [
        f"{_label(chosen)} brings the {name} {change} on {rows}; it cannot be told apart from {listed}."
    ]


def _held_against(
    rule: Guideline,
    chosen: str,
    equal: list[str],
    comparison: Comparison,
    name: str,
    data: Dataset,
) -> str:
    if rule.method in (None, chosen):
        return rule.reason
    recommended = comparison.methods.get(str(rule.method))
    if recommended is None:
        return f"{rule.reason} {_not_compared(str(rule.method), comparison, data)}"
    if not recommended.ok:
        return f"{rule.reason} It has no result here: {recommended.reason}"
    if rule.method in equal and (objection := _objection(comparison, str(rule.method))):
        return f"{rule.reason} Here the {objection} ({_label(str(rule.method))})."
    criterion = str(comparison.criterion)
    # Ties are with the best of all methods, which may not be allowed if classes must stay.
    if chosen == UNCALIBRATED or rule.method in (*equal, *comparison.tied[criterion]):
        return rule.reason
    best = comparison.ranking(criterion)[0]
    return f"{rule.reason} Here the {name} of {_label(str(rule.method))} is worse than that of {_label(best)} beyond noise."


def _not_compared(method: str, comparison: Comparison, data: Dataset) -> str:
    """Say what to do if the recommended method was not compared."""
    why = suggest(data, comparison.fit.rows).left_out.get(method)
    if why is not None:
        return f"{_label(method)} ('{method}') was not compared, and need not be: {why}"
    return f"{_label(method)} ('{method}') was not compared: add it to the methods and compare again before you choose."


def _keep_in_mind(comparison: Comparison, result: MethodResult) -> list[str]:
    sentences = []
    if result.predictions_changed:
        sentences.append(
            f"It changes the predicted class of {result.predictions_changed:,} of "
            f"{comparison.evaluation.rows:,} rows."
        )
    if comparison.in_sample:
        sentences.append(
            "The maps were fitted on these rows: flexible methods look better than they are, and this is "
            "no basis for a choice."
        )
    elif result.key != UNCALIBRATED:
        sentences.append("The choice was made on the evaluation rows: fresh rows would confirm it.")
    return sentences

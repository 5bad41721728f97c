"""Which recalibrator to take, and why: what wins on such data elsewhere, held against what was measured here."""

from __future__ import annotations

from calviz.comparison.arena_evidence import evidence
from calviz.comparison.methods_to_try import suggest
from calviz.core.predictions import Dataset
from calviz.results.advice import Advice, Guideline
from calviz.results.comparison import Comparison, MethodResult
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED
from calviz.text.words import decimal, decimals_for

#: Zhang et al. call tasks of CIFAR-100 and of ImageNet complex, those of CIFAR-10 not.
MANY_CLASSES = 100
#: "A large calibration data set": where IROvA-TS overtakes in their figures 6 and 11 to 13, about.
LARGE_SET, LARGE_PER_CLASS = 5_000, 25


def guideline(data: Dataset, fit_rows: int, *, keep_classes: bool = False) -> Guideline:
    """What wins on data with as many classes and calibration rows, and what Zhang et al. (2020, appendix G) recommend.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    fit_rows : int
        Calibration rows.
    keep_classes : bool
        Whether no predicted class may change.
    """
    confidence = data.kind == "confidence"
    known = evidence(2 if confidence else data.n_classes, fit_rows)
    allowed = [
        key
        for key in (known.keeping() if keep_classes else known.ranking)
        if RECALIBRATORS[key].confidence_only or not confidence
    ]
    first = next(iter(allowed), None)
    where = f"{known.experiments:,} experiments ({known.source}; {known.like})"
    said = (
        f"In {where} {_label(first)} wins most often{' of those that keep every predicted class' if keep_classes else ''}: "
        f"{known.said_of(first)}."
        if first is not None
        else f"No method of {where} keeps every predicted class."
    )
    other = "" if confidence else f" {_zhang(data.n_classes, fit_rows, keep_classes)}"
    return Guideline(tuple(allowed), said + other)


def _zhang(classes: int, rows: int, keep_classes: bool) -> str:
    """The published guideline, as one more source."""
    large = rows >= max(LARGE_SET, LARGE_PER_CLASS * classes)
    if classes >= MANY_CLASSES and large and not keep_classes:
        what = (
            "temperature scaling, then one-vs-rest isotonic regression, for many classes and rows"
        )
    else:
        what = "ensemble temperature scaling for general use"
    return f"Zhang et al. (2020, appendix G) recommend {what}."


def advise(comparison: Comparison, data: Dataset, *, keep_classes: bool = False) -> Advice:
    """Hold what wins on such data elsewhere against a comparison, and say so if another method is better here.

    The methods that are not told apart from the best one (all pairs taken into account) count as equal, if they are also better
    than the uncalibrated model beyond noise, and their NLL is not worse than its. Among
    them comes first: leaving the model as it is, what wins most often on data like these, the smaller value. The reasons state this rule.

    Parameters
    ----------
    comparison : Comparison
        With paired intervals.
    data : Predictions or ConfidencePredictions
        What was compared.
    keep_classes : bool
        Whether no predicted class may change.
    """
    rule = guideline(data, comparison.fit.rows, keep_classes=keep_classes)
    if not any(m.ok and m.key != UNCALIBRATED for m in comparison):
        return Advice(UNCALIBRATED, ("No method was fitted, so there is no ground for a choice.",))
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
    # Where the best of all is ruled out, ties with it say nothing about those that are left.
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
    """Why a method that is tied with the best is no improvement all the same: what of it is worse or not better."""
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
    """The one that wins most often on such data; the smaller value, of those that are not known."""
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
    """The rule and what decided, in the words of the table."""
    if len(equal) == 1:
        return ""
    share = comparison[best].best_share.get(criterion)
    top = f"{_label(best)}, best in {100 * share:.0f} %" if share is not None else _label(best)
    objected = {
        said for key in equal if key != UNCALIBRATED and (said := _objection(comparison, key))
    }
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
        if not any(m.ok for m in comparison if m.key != UNCALIBRATED):
            return ["No method was fitted, so there is no ground for a choice."]
        if UNCALIBRATED not in equal and (said := _objection(comparison, best)):
            return [f"{_label(best)} has the best {name} on {rows}, but its {said}."]
        if best == UNCALIBRATED:
            return [f"No method has a better {name} than the uncalibrated model on {rows}."]
        return [
            f"No method is better than the uncalibrated model beyond noise: the best {name} on {rows} is that "
            f"of {_label(best)}, and the two are not told apart.",
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
    # Labels have commas of their own.
    listed = "; ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
    return [
        f"{_label(chosen)} takes the {name} {change} on {rows}; it cannot be told apart from {listed}."
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
        return f"{rule.reason} There is no result of it here: {recommended.reason}"
    if rule.method in equal and (said := _objection(comparison, str(rule.method))):
        return f"{rule.reason} Here the {said} ({_label(str(rule.method))})."
    criterion = str(comparison.criterion)
    # Ties are those with the best of all, which may be ruled out where classes must stay.
    if chosen == UNCALIBRATED or rule.method in (*equal, *comparison.tied[criterion]):
        return rule.reason
    best = comparison.ranking(criterion)[0]
    return f"{rule.reason} Here the {name} of {_label(str(rule.method))} is worse than that of {_label(best)} beyond noise."


def _not_compared(method: str, comparison: Comparison, data: Dataset) -> str:
    """What to do about the recommended method if it was not tried."""
    why = suggest(data, comparison.fit.rows).left_out.get(method)
    if why is not None:
        return f"{_label(method)} ('{method}') was not compared, and need not be: {why}"
    return f"{_label(method)} ('{method}') was not compared: add it to the methods and compare again before you choose."


def _keep_in_mind(comparison: Comparison, found: MethodResult) -> list[str]:
    said = []
    if found.predictions_changed:
        said.append(
            f"It changes the predicted class of {found.predictions_changed:,} of "
            f"{comparison.evaluation.rows:,} rows."
        )
    if comparison.in_sample:
        said.append(
            "These are the rows that fitted the maps: flexible methods look better than they are, and this is "
            "no ground for a choice."
        )
    elif found.key != UNCALIBRATED:
        said.append("The choice was made on the evaluation rows: fresh rows would confirm it.")
    return said

"""Which recalibrators to try first, and which to use after a comparison; both draw on experiments on many data sets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from calviz.comparison.comparison_results import Advice, Comparison, Guideline, MethodResult
from calviz.core.entry_specs import METRICS, RECALIBRATORS, UNCALIBRATED, FitFacts
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import decimal, decimals_for

#: Number of suggested methods that win most often on such data, in addition to the usual ones that keep every predicted class.
BEST = 5


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
        elif reason := spec.left_out(facts):
            left_out[spec.key] = reason
        else:
            possible.append(spec.key)
    group = evidence(facts.classes, fit_rows)
    winning = [key for key in group.ranking if key in possible][:BEST]
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


#: Number of classes of a complex task: for Zhang et al. those of CIFAR-100 and ImageNet are complex, that of CIFAR-10 is not.
MANY_CLASSES = 100
#: Rows of "a large calibration data set", overall and per class: about where IROvA-TS takes the lead in their figures 6 and 11-13.
LARGE_SET, LARGE_PER_CLASS = 5_000, 25


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
        chosen = _most_often([key for key in equal if not _objection(comparison, key)], rule)
    reasons = [*_measured(comparison, criterion, name, chosen, best, equal)]
    reasons.append(_rule(comparison, criterion, name, chosen, best, equal, rule))
    reasons.append(_held_against(rule, chosen, equal, comparison, name, data))
    reasons += _keep_in_mind(comparison, comparison[chosen])
    return Advice(chosen, tuple(r for r in reasons if r))


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


def _most_often(sound: list[str], rule: Guideline) -> str:
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
    worse_brier, worse_nll : float
        Share of the experiments in which the score is larger (worse) than without calibration.
    gain : float
        Mean gain in the Brier score over no calibration.
    """

    brier: float
    nll: float
    worse_brier: float
    worse_nll: float
    gain: float

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

    def keeping(self) -> tuple[str, ...]:
        """Return the methods of the ranking that keep every predicted class."""
        return tuple(key for key in self.ranking if RECALIBRATORS[key].accuracy_preserving)

    def record_words(self, key: str) -> str:
        """Return the winrates of a method, and how often it does harm, in words."""
        record = self.records[key]
        share = round(100 * record.worse_brier)
        often = (
            f"in {share} %"
            if share
            else "in none of them"
            if not record.worse_brier
            else "in less than 1 %"
        )
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
            classes=(group["classes"][0], group["classes"][1]),
            rows=(group["rows"][0], group["rows"][1]),
            like=group["like"],
            records={
                key: Record(**values)
                for key, values in group["methods"].items()
                if key in RECALIBRATORS
            },
        )
        for group in record["groups"]
    )

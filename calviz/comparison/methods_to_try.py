"""Which recalibrators to try first on given data, and why the others are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calviz.comparison.arena_evidence import ExperimentGroup, evidence
from calviz.core.predictions import Dataset, Predictions
from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED, FitFacts

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

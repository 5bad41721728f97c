"""Which recalibrators are worth trying first on some data, and why the others are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calviz.comparison.arena_evidence import Group, evidence
from calviz.core.predictions import Dataset, Predictions
from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED, FitFacts

#: So many of the methods that win most often on such data are suggested, besides the usual ones that keep every predicted class.
BEST = 5


@dataclass(frozen=True)
class Suggestion:
    """A set of recalibrators to begin with.

    Attributes
    ----------
    methods : tuple of str
        Keys, in the order of the registry.
    usual : tuple of str
        Those of them to begin with where each is fitted many times (`RecalibratorSpec.usual`).
    left_out : mapping of str to str
        Of methods that work on these data and are not among them: why.
    impossible : mapping of str to str
        Of methods that have no meaning for these data: why.
    """

    methods: tuple[str, ...]
    usual: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)


def suggest(data: Dataset, fit_rows: int) -> Suggestion:
    """Choose methods by the kind of data, and by what wins on data with as many classes and calibration rows.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    fit_rows : int
        Rows that the methods will be fitted on.
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
    known = evidence(facts.classes, fit_rows)
    winning = [key for key in known.ranking if key in possible][:BEST]
    specs = [RECALIBRATORS[key] for key in possible]
    winning += [s.key for s in specs if s.usual and s.accuracy_preserving]
    winning += [s.key for s in specs if s.family == "Automatic"]
    # A method that the experiments do not know is not held against it.
    methods = [key for key in possible if key in winning or key not in known.records]
    left_out |= {key: _rank(key, known) for key in possible if key not in methods}
    usual = tuple(key for key in methods if RECALIBRATORS[key].usual)
    return Suggestion(tuple(methods), usual, left_out, impossible)


def _rank(key: str, known: Group) -> str:
    return (
        f"it wins less often on such data: number {known.ranking.index(key) + 1} of {len(known.ranking)} methods in "
        f"{known.experiments:,} experiments ({known.source}; {known.like})."
    )

"""One entry per metric, recalibrator and check, from their registries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from calviz.core.errors import OptionError
from calviz.specs.check import CHECKS
from calviz.specs.metric import DIRECTION_WORDS, METRICS, Direction, Parameter
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import capitalised, range_end

EntryKind = Literal["metric", "recalibrator", "finding"]


@dataclass(frozen=True)
class LearnEntry:
    """The documentation of a metric, a recalibrator or a finding.

    Attributes
    ----------
    key : str
        The name on the command line and in JSON.
    kind : {"metric", "recalibrator", "finding"}
    title, family, summary : str
    formula : str
        LaTeX; empty if there is none.
    facts : tuple of str
        Short remarks: what is better, whether the predicted class is kept.
    reference : str
    parameters : tuple of Parameter
        Parameters that a user may set.
    """

    key: str
    kind: EntryKind
    title: str
    family: str
    summary: str
    formula: str
    facts: tuple[str, ...]
    reference: str
    parameters: tuple[Parameter, ...] = ()


def _better(direction: Direction) -> str:
    if direction == "none":
        return "describes the data; neither direction is better"
    return f"{DIRECTION_WORDS[direction]} is better"


def _metrics() -> Iterator[LearnEntry]:
    for m in METRICS:
        low, high = m.bounds
        yield LearnEntry(
            m.key,
            "metric",
            m.label,
            m.family,
            m.summary,
            m.formula,
            (_better(m.direction), f"between {range_end(low)} and {range_end(high)}"),
            m.reference,
            m.parameters,
        )


def _recalibrators() -> Iterator[LearnEntry]:
    for r in RECALIBRATORS:
        keeps = "keeps" if r.accuracy_preserving else "may change"
        facts = [f"{keeps} the predicted class", f"computes with {r.needs}"]
        if r.confidence_only:
            facts.append("works on confidence-only data")
        yield LearnEntry(
            r.key,
            "recalibrator",
            r.label,
            r.family,
            r.summary,
            r.formula,
            tuple(facts),
            r.reference,
            r.parameters,
        )


def _findings() -> Iterator[LearnEntry]:
    for c in CHECKS:
        title = capitalised(c.title)
        yield LearnEntry(c.key, "finding", title, "Findings", "", "", (), c.reference)


def entries() -> tuple[LearnEntry, ...]:
    """Return all entries: metrics, then recalibrators, then findings."""
    return (*_metrics(), *_recalibrators(), *_findings())


def entry(key: str) -> LearnEntry:
    """Return the entry of a key.

    Raises
    ------
    OptionError
        If there is none.
    """
    for candidate in entries():
        if candidate.key == key:
            return candidate
    raise OptionError(f"there is no metric, recalibrator or finding '{key}'.")

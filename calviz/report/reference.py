"""The documentation of all metrics, recalibrators and findings: their registries, and the texts of `reference.toml`.

``python -m calviz.report.reference`` writes docs/reference.md.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calviz.core import entry_specs, errors, words
from calviz.core.entry_specs import CHECKS, METRICS, Direction, Metric, Parameter, RecalibratorSpec
from calviz.data.format import Notice

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
    return f"{entry_specs.DIRECTION_WORDS[direction]} is better"


def _of(kind: EntryKind, spec: Metric | RecalibratorSpec, *facts: str) -> LearnEntry:
    names = spec.label, spec.family, spec.summary, spec.formula
    return LearnEntry(spec.key, kind, *names, facts, spec.reference, spec.parameters)


def entries() -> Iterator[LearnEntry]:
    """Yield all entries: metrics, then recalibrators, then findings."""
    for m in METRICS:
        low, high = map(words.range_end, m.bounds)
        yield _of("metric", m, _better(m.direction), f"between {low} and {high}")
    for r in entry_specs.RECALIBRATORS:
        keeps = "keeps" if r.accuracy_preserving else "may change"
        facts = [f"{keeps} the predicted class", f"computes with {r.needs}"]
        if r.confidence_only:
            facts.append("works on confidence-only data")
        yield _of("recalibrator", r, *facts)
    for c in CHECKS:
        title = words.capitalised(c.title)
        yield LearnEntry(c.key, "finding", title, "Findings", "", "", (), c.reference)


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
    raise errors.OptionError(f"there is no metric, recalibrator or finding '{key}'.")


# ---- Texts written by hand


@dataclass(frozen=True)
class MetricQuestion:
    """A question, the metrics that answer it, and advice on reading them.

    Attributes
    ----------
    text : str
    metrics : tuple of str
        Keys of metrics.
    advice : str
    """

    text: str
    metrics: tuple[str, ...]
    advice: str


def _line(text: str) -> str:
    return " ".join(text.split())


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: The terms used on the pages, and their meanings in this project.
GLOSSARY = {word: _line(meaning) for word, meaning in _TEXTS["glossary"].items()}

#: Which metrics answer which question.
QUESTIONS = tuple(
    MetricQuestion(q["text"], tuple(q["metrics"]), _line(q["advice"])) for q in _TEXTS["questions"]
)

#: What no metric can say.
LIMITS = tuple(map(_line, _TEXTS["limits"]))

#: Authors, title and where it appeared of each publication, by the form in which it is cited ("Guo et al. 2017").
SOURCES = {short: _line(full) for short, full in _TEXTS["sources"].items()}


def sources_in(text: str) -> tuple[str, ...]:
    """Return the publications that a text cites, in the form in which they are cited."""
    return tuple(short for short in SOURCES if short in text)


# ---- docs/reference.md


_TITLES: dict[EntryKind, str] = {
    "metric": "Metrics",
    "recalibrator": "Recalibrators",
    "finding": "Findings",
}


def markdown() -> str:
    """Return the whole document; the same registries give the same text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What the numbers mean\n"
    yield "Made by `python -m calviz.report.reference` from the registries; change those, not this file."
    yield "\n## Which number when\n"
    for question in QUESTIONS:
        names = ", ".join(METRICS[key].label for key in question.metrics)
        yield f"- **{question.text}** {names}. {question.advice}"
    yield "\n## Limits\n"
    for limit in LIMITS:
        yield f"- {limit}"
    for kind, title in _TITLES.items():
        yield from _chapter(title, [e for e in entries() if e.kind == kind])
    yield "\n## Notices about a file"
    for notice in Notice:
        yield f"\n**{notice.value}**: {notice.title}"
    yield "\n## Glossary\n"
    for word, meaning in GLOSSARY.items():
        yield f"- **{word}.** {meaning}"
    yield "\n## References\n"
    for short, full in SOURCES.items():
        yield f"- *{short}.* {full}"


def _chapter(title: str, chapter: list[LearnEntry]) -> Iterator[str]:
    yield f"\n## {title}"
    family = ""
    families = list(dict.fromkeys(e.family for e in chapter))
    for e in sorted(chapter, key=lambda e: families.index(e.family)):
        if e.family not in (family, title):
            family = e.family
            yield f"\n### {family}"
        if not e.summary:
            yield f"\n**{e.key}**: {e.title}"
            continue
        yield f"\n**{e.title}** (`{e.key}`)  \n{e.summary}"
        if e.formula:
            yield f"\n$${e.formula}$$"
        facts = "; ".join([*e.facts, *(f"`{p.name}={p.default}`" for p in e.parameters)])
        yield f"\n{facts}. Source: {e.reference}."


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())

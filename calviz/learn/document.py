"""The content of the page Learn, and the notices about files, as one Markdown document: ``python -m calviz.learn.document``."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.data.notices import Notice
from calviz.learn.entries import EntryKind, LearnEntry, entries
from calviz.learn.glossary import GLOSSARY
from calviz.learn.guide import LIMITS, QUESTIONS
from calviz.learn.publications import SOURCES
from calviz.specs.metric import METRICS

_TITLES: dict[EntryKind, str] = {
    "metric": "Metrics",
    "recalibrator": "Recalibrators",
    "finding": "Findings",
}


def markdown() -> str:
    """Return the whole document; the same registries give the same text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# What the numbers mean"
    yield ""
    yield "Made by `python -m calviz.learn.document` from the registries; change those, not this file."
    yield ""
    yield "## Which number when"
    yield ""
    for question in QUESTIONS:
        names = ", ".join(METRICS[key].label for key in question.metrics)
        yield f"- **{question.text}** {names}. {question.advice}"
    yield ""
    yield "## Limits"
    yield ""
    for limit in LIMITS:
        yield f"- {limit}"
    for kind, title in _TITLES.items():
        yield from _chapter(title, [e for e in entries() if e.kind == kind])
    yield ""
    yield "## Notices about a file"
    for notice in Notice:
        yield ""
        yield f"**{notice.value}**: {notice.title}"
    yield ""
    yield "## Glossary"
    yield ""
    for term in GLOSSARY:
        yield f"- **{term.word}.** {term.meaning}"
    yield ""
    yield "## References"
    yield ""
    for source in SOURCES:
        yield f"- *{source.short}.* {source.full}"


def _chapter(title: str, chapter: list[LearnEntry]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    family = ""
    for e in sorted(chapter, key=lambda e: _first(chapter, e.family)):
        if e.family not in (family, title):
            family = e.family
            yield ""
            yield f"### {family}"
        yield ""
        yield f"**{e.title}** (`{e.key}`)  " if e.summary else f"**{e.key}**: {e.title}"
        if e.summary:
            yield e.summary
        if e.formula:
            yield ""
            yield f"$${e.formula}$$"
        facts = list(e.facts)
        facts += [f"`{p.name}={p.default}`" for p in e.parameters]
        if e.summary:
            yield ""
            yield "; ".join(facts) + f". Source: {e.reference}."


def _first(chapter: list[LearnEntry], family: str) -> int:
    """Position of the first entry of a family."""
    return next(i for i, e in enumerate(chapter) if e.family == family)


if __name__ == "__main__":
    import sys

    sys.stdout.write(markdown())

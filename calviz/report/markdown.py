"""A report as Markdown: a model card to keep with the model."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.core.version import __version__
from calviz.report.blocks import (
    Block,
    Cards,
    Chart,
    Facts,
    Findings,
    Heading,
    Lead,
    Note,
    TableBlock,
    Terms,
    Text,
)
from calviz.report.document import Report
from calviz.report.metric_tables import RIGHT, texts
from calviz.text.escape import markdown_text
from calviz.text.export import markdown_table
from calviz.text.words import full_sentence, shorten

#: Largest number of table rows in the card; the other files hold all.
MOST_ROWS = 60


def to_markdown(report: Report) -> str:
    """Write a report as Markdown, with names and notes escaped; charts become descriptions and tables."""
    return "\n\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {_(report.title)}"
    by = [_(text) for text in (report.author, report.date) if text]
    if by:
        yield " · ".join(by)
    for paragraph in report.paragraphs:
        yield "  \n".join(_(line) for line in paragraph.splitlines())
    several = len(report.parts) > 1
    for part in report.parts:
        yield f"## {_(part.name)}"
        for written in part.sections:
            yield f"### {_(written.section.title)}"
            for block in written.blocks:
                yield from _block(block)
    for written in report.shared:
        yield f"{'##' if several else '###'} {_(written.section.title)}"
        for block in written.blocks:
            yield from _block(block)
    yield f"*Written by calviz {__version__}.*"


def _(text: str) -> str:
    return markdown_text(shorten(text, 5_000))


def _block(block: Block) -> Iterator[str]:
    match block:
        case Lead():
            yield f"**{_(block.text)}**"
            yield _(block.below)
        case Note():
            yield f"*{_(block.text)}*"
        case Heading():
            yield f"#### {_(block.text)}"
        case Text():
            yield _(block.text)
        case Facts():
            yield "\n".join(f"- **{_(name)}:** {_(value)}" for name, value in block.items)
        case Findings():
            yield "\n".join(
                f"- **{f.severity} {_(f.code)}** {_(full_sentence(f.message))}"
                for f in block.findings
            )
        case Cards():
            shown = texts({r.key: r for r in block.results}).drop(
                columns=["family", "note", "better"]
            )
            yield _table(shown, [c for c in shown.columns if c in RIGHT])
        case Terms():
            yield "\n".join(
                f"- **{_(t.name)}:** {_(t.meaning)} ({_(t.source)})" for t in block.terms
            )
        case TableBlock():
            yield _table(block.shown, list(block.right))
        case Chart():
            yield f"**{_(block.title)}.** {_(block.alt)}"
            yield _table(block.table.shown, list(block.table.right))


def _table(shown: pd.DataFrame, right: list[str]) -> str:
    text = markdown_table(shown.head(MOST_ROWS), right=right).rstrip()
    left = len(shown) - MOST_ROWS
    return f"{text}\n\n*{left:,} more rows are left out.*" if left > 0 else text

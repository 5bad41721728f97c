"""The verdict for readers who do not know the terms: five sentences and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from calviz import analysis
from calviz.figures.hundred_squares import HundredSquares
from calviz.report.blocks import Block, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.words import percent, whole


def make(subject: Subject) -> Iterator[Block]:
    """Yield the meaning of the verdict, what to do, and what is promised for a hundred rows."""
    yield Text(" ".join(analysis.explain(subject.sample)))
    if subject.verdict.rows > 1:
        figure = HundredSquares.compute(subject.verdict)
        share = partial(percent, decimals=figure.decimals)
        yield chart(
            figure,
            key="of-a-hundred",
            title="Of a hundred rows",
            caption=caption(subject, "Of a hundred rows"),
            formats={
                "rows_of": ("Which rows", str),
                "rows": ("Rows", whole),
                "promised": ("Promised", share),
                "happened": ("Happened", share),
            },
            width=WIDTH,
        )


SECTIONS.register(
    Section(
        "explained", "In plain words", 15, "Five sentences without a symbol, and a picture", make
    )
)

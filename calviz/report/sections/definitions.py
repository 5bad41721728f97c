"""Meaning, formula and source of each metric."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.report.blocks import Block, Note, Term, Terms
from calviz.report.metric_tables import families
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.specs.metric import DIRECTION_WORDS, METRICS
from calviz.text.words import range_end


def make(subject: Subject) -> Iterator[Block]:
    """Yield one entry per metric, in the order of the table."""
    ordered = [m for family in families() for m in METRICS if m.family == family]
    yield Note("Score: the probability that the model gives; hit: whether its event happened.")
    yield Terms(
        tuple(
            Term(
                m.label,
                m.summary.replace("``", ""),
                m.formula,
                m.reference,
                f"better: {DIRECTION_WORDS[m.direction]}; range {range_end(m.bounds[0])} to {range_end(m.bounds[1])}",
            )
            for m in ordered
        )
    )


SECTIONS.register(
    Section(
        "definitions",
        "What the numbers mean",
        100,
        "Meaning, formula and source of each metric",
        make,
        shared=True,
        brief=True,
    )
)

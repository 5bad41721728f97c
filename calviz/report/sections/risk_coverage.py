"""Accuracy when doubtful predictions are referred to an expert."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.risk_coverage import RiskCoverage
from calviz.report.blocks import Block, Text, chart, spread
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.words import percent

#: Number of table rows on the page.
ROWS = 21


def make(subject: Subject) -> Iterator[Block]:
    """Yield the accuracy of the predictions that are kept."""
    figure = subject.sample.top_label.view(
        RiskCoverage.compute, ranking="confidence", seed=subject.sample.seed
    )
    yield Text(figure.describe().split("ranked by confidence. ", 1)[-1])
    yield chart(
        figure,
        key="risk-coverage",
        title="Accuracy of the predictions that are kept",
        caption=caption(subject, "Ranked by confidence"),
        formats={
            "coverage": ("kept", percent),
            "referred": ("referred", percent),
            "accuracy": ("accuracy", percent),
            "risk": ("risk", percent),
            "risk_low": ("95 % CI of the risk from", percent),
            "risk_high": ("to", percent),
            "perfect_risk": ("perfect ranking", percent),
        },
        rows=spread(figure.coverage.size, ROWS),
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "risk-coverage",
        "Risk and coverage",
        60,
        "Accuracy when doubtful predictions are referred",
        make,
    )
)

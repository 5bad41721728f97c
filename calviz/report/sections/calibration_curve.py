"""The flexible calibration curve, and its distance from the scores."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.calibration_curve import CalibrationCurve
from calviz.report.blocks import Block, Text, chart, spread
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.words import decimal

#: Number of table rows on the page.
ROWS = 21


def make(subject: Subject) -> Iterator[Block]:
    """Yield the spline with its confidence band."""
    figure = subject.sample.view(CalibrationCurve.compute)
    yield Text(figure.describe().split(": ", 1)[-1])
    yield chart(
        figure,
        key="calibration-curve",
        title="Flexible calibration curve",
        caption=caption(subject, figure.caption()[-1]),
        formats={
            "score": ("score", decimal),
            "probability": ("observed", decimal),
            "low": ("95 % band from", decimal),
            "high": ("to", decimal),
        },
        rows=spread(figure.band.score.size, ROWS),
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "calibration-curve",
        "Calibration curve",
        35,
        "Observed frequency as a smooth function of the score",
        make,
    )
)

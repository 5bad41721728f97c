"""The gap between scores and hits, without bins."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.corp import CorpDiagram
from calviz.figures.cumulative import Cumulative
from calviz.figures.decision_loss import DecisionLoss
from calviz.report.blocks import Block, Note, Text, chart, spread
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.words import decimal, percent, signed_points

#: Number of table rows on the page.
ROWS = 40


def make(subject: Subject) -> Iterator[Block]:
    """Yield the four panels of Gupta et al., the isotonic curve, and the decision loss."""
    figure = subject.sample.view(Cumulative.compute, estimate="smooth", seed=subject.sample.seed)
    yield Text(figure.reading(subject.verdict))
    yield chart(
        figure,
        key="cumulative",
        title="Cumulative score and hits",
        caption=caption(subject),
        formats={
            "fractile": ("share of rows", decimal),
            "score": ("score up to", decimal),
            "cumulative_score": ("cumulative score", decimal),
            "cumulative_hits": ("cumulative hits", decimal),
            "gap": ("gap (points)", signed_points),
            "probability": ("probability of a hit", decimal),
        },
        rows=spread(figure.score.size, ROWS, int(figure.maximum)),
        width=WIDTH,
    )
    yield Note(
        "Rows are sorted by score; from the lowest score upwards, the scores and the hits are summed up. For a calibrated "
        "model the two sums stay together: the KS error is where they are furthest apart."
    )
    yield from _isotonic(subject)
    yield from _decisions(subject)


def _isotonic(subject: Subject) -> Iterator[Block]:
    """Yield the probability of a hit as an isotonic curve, with both bands."""
    figure = subject.sample.view(CorpDiagram.compute, seed=subject.sample.seed)
    yield chart(
        figure,
        key="corp",
        title="Isotonic probability of a hit",
        caption=caption(subject),
        formats={
            "score": ("score", decimal),
            "probability": ("probability of a hit", decimal),
            "consistency_low": ("if calibrated from", decimal),
            "consistency_high": ("if calibrated to", decimal),
            "confidence_low": ("confidence band from", decimal),
            "confidence_high": ("confidence band to", decimal),
        },
        rows=spread(figure.score.size, ROWS),
        width=WIDTH,
    )
    yield Note(figure.reading())


def _decisions(subject: Subject) -> Iterator[Block]:
    """Yield the cost of miscalibration at every cutoff."""
    figure = subject.sample.view(DecisionLoss.compute, seed=subject.sample.seed)
    yield chart(
        figure,
        key="decision-loss",
        title="Decision loss",
        caption=caption(subject),
        formats={
            "cutoff": ("cutoff", decimal),
            "loss": ("loss, of the stake", lambda v: percent(v, 2)),
            "calibrated_mean": ("mean if calibrated", lambda v: percent(v, 2)),
            "calibrated_high": ("at most if calibrated", lambda v: percent(v, 2)),
        },
        rows=spread(figure.cutoff.size, ROWS),
        width=WIDTH,
    )
    yield Note(figure.reading())


SECTIONS.register(
    Section(
        "cumulative",
        "Cumulative & KS",
        40,
        "The bin-free panels, the KS error, and the isotonic curve",
        make,
    )
)

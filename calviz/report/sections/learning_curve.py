"""How many labels a recalibrator needs."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.learning_curve import LearningCurves
from calviz.report.blocks import Block, Chart, Note, Text, chart
from calviz.report.chart_caption import WIDTH
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.learning_curve import LearningCurve
from calviz.results.metric_words import value_text
from calviz.specs.metric import METRICS, QUOTED
from calviz.text.words import shorten, whole


def make(subject: Subject) -> Iterator[Block]:
    """Yield the answer, the number of labels each method needs, and the curves."""
    curve = subject.learning
    if curve is None or not curve.methods:
        return
    drawn = sorted(METRICS.in_table("drawn"), key=lambda key: key != QUOTED)
    keys = [key for key in drawn if key in curve.directions and curve.uncalibrated[key].available]
    for at, key in enumerate(keys):
        figure = LearningCurves.compute(curve, metric=key)
        if at == 0:
            yield Text(figure.answer())
            for text in (*figure.warnings(), *map(figure.sentence, figure.needed())):
                yield Text(text)
        yield _chart(figure, curve)
    rows = curve.rows_words(lambda how: shorten(how, 100))
    yield Note(f"{rows} Binned metrics: {curve.bins_words}.")


def _chart(figure: LearningCurves, curve: LearningCurve) -> Chart:
    def written(value: float) -> str:
        return value_text(figure.metric, value)

    label = METRICS[figure.metric].label
    return chart(
        figure,
        key=f"learning-curve-{figure.metric}",
        title=f"{label} by number of labels",
        caption=figure.caption(),
        formats={
            "method": ("method", figure.label),
            "rows": ("labels", whole),
            "mean": (f"mean {label}", written),
            "low": ("5 % of draws below", written),
            "high": ("95 % below", written),
            "draws": ("draws", whole),
        },
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "learning-curve",
        "Labels needed",
        72,
        "How many labels recalibration needs",
        make,
        shows_result="learning",
    )
)

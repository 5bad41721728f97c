"""How many labels a recalibrator needs."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.learning import LearningCurve
from calviz.core.metric import METRICS
from calviz.core.units import value_text
from calviz.core.words import counted, shorten
from calviz.figures import LearningCurves
from calviz.report.blocks import Block, Chart, Note, Text, chart
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.report.wording import WIDTH, count

#: What is drawn, of what was computed.
SHOWN = ("ece", "nll", "accuracy")


def make(subject: Subject) -> Iterator[Block]:
    """The answer, what each method needs, and the curves."""
    curve = subject.learning
    if curve is None or not curve.methods:
        return
    keys = [key for key in SHOWN if key in curve.directions and curve.uncalibrated[key].available]
    for at, key in enumerate(keys):
        figure = LearningCurves.compute(curve, metric=key)
        if at == 0:
            yield Text(figure.answer())
            for text in (*figure.warnings(), *map(figure.sentence, figure.needed())):
                yield Text(text)
        yield _chart(figure, curve)
    yield Note(
        f"Every fit is judged on the same {counted(curve.evaluation.rows, 'row')} "
        f"({shorten(curve.evaluation.how, 100)}); labels are drawn from {curve.fit.rows:,} others "
        f"({shorten(curve.fit.how, 100)}). A band holds 5 to 95 % of the draws."
    )


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
            "rows": ("labels", count),
            "mean": (f"mean {label}", written),
            "low": ("5 % of draws below", written),
            "high": ("95 % below", written),
            "draws": ("draws", count),
        },
        width=WIDTH,
    )


SECTIONS.register(
    Section("learning-curve", "Labels needed", 72, "How many labels recalibration needs", make)
)

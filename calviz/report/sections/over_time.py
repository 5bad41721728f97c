"""Whether the probabilities stay calibrated over time."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.comparison.over_time import over_time
from calviz.core.errors import CalvizError
from calviz.figures.over_time import OverTimeLine
from calviz.report.blocks import Block, Note, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.metric_words import value_text
from calviz.results.over_time import OverTime
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights
from calviz.text.words import p_number, whole


def make(subject: Subject) -> Iterator[Block]:
    """Yield the log loss of each period, and recalibration on the past; nothing without times."""
    sample = subject.sample
    if sample.data.times is None:
        return
    try:
        result = sample.once(_over_time)
    except CalvizError as error:
        yield Note(str(error))
        return
    figure = OverTimeLine.compute(result)
    yield Text(figure.answer())
    if figure.past():
        yield Text(figure.past())

    def written(value: float) -> str:
        return value_text(result.metric, value)

    yield chart(
        figure,
        key="over-time",
        title=f"{figure.label} by {result.every}",
        caption=caption(subject),
        formats={
            "period": ("period", str),
            "rows": ("rows", whole),
            "value": (figure.label, written),
            "low": ("95 % CI from", written),
            "high": ("to", written),
            "noise_mean": ("noise", written),
            "adjusted": ("adjusted p-value", p_number),
        },
        width=WIDTH,
    )


@takes_weights
def _over_time(sample: Sample) -> OverTime:
    return over_time(sample)


SECTIONS.register(
    Section(
        "over-time",
        "Over time",
        66,
        "Periods, changes, and recalibration on the past",
        make,
    )
)

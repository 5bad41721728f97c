"""Errors of the classes, compared with what a calibrated model would show."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.errors import NotAvailable
from calviz.figures.class_bars import TITLES, ClassBars, Mode, headline, quick_redrawing
from calviz.report.blocks import Block, CellFormat, Chart, Note, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.words import shorten, signed_points, whole

_KEYS: dict[Mode, str] = {
    "predicted-class": "classes-predicted",
    "one-vs-rest": "classes-one-vs-rest",
    "true-class": "classes",
}
_COLUMNS: dict[str, tuple[str, CellFormat]] = {
    "class": ("class", lambda name: shorten(name, 60)),
    "rows": ("rows", whole),
    "value": ("error (points)", signed_points),
    "ci_low": ("95 % CI from", signed_points),
    "ci_high": ("to", signed_points),
    "band_low": ("calibrated from", signed_points),
    "band_high": ("to ", signed_points),
    "beyond": ("beyond it", signed_points),
}


def make(subject: Subject) -> Iterator[Block]:
    """Yield the error of each class by predicted class, one-vs-rest, and by true class."""
    views = {}
    reason = ""
    for mode in _KEYS:
        try:
            views[mode] = _bars(subject, mode)
        except NotAvailable as error:
            reason = str(error)
    if not views:
        raise NotAvailable(reason)
    yield Text(headline(views.values())[0])
    for mode, bars in views.items():
        yield Text(bars.shares())
        yield _chart(subject, bars, _KEYS[mode])
    yield Note(
        "Grey: the range of a perfectly calibrated model, adjusted for the number of classes. By true class it is not "
        "centred at 0, as the rows of one true class hold more wrong predictions than the rows that the model gave "
        "to it."
    )


def _bars(subject: Subject, mode: Mode) -> ClassBars:
    sample = subject.sample.top_label
    return sample.view(ClassBars.compute, mode=mode, **quick_redrawing(sample))


def _chart(subject: Subject, bars: ClassBars, key: str) -> Chart:
    return chart(
        bars,
        key=key,
        title=TITLES[bars.mode],
        caption=caption(subject, TITLES[bars.mode]),
        formats=_COLUMNS,
        width=WIDTH,
    )


SECTIONS.register(
    Section("classwise", "Classes", 50, "The error of each class against its noise", make)
)

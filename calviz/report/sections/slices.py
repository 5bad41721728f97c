"""For whom the probabilities are wrong: the groups of rows, and their pairs."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.figures.drawing.bullet import Bullet
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.blocks import Block, CellFormat, Note, TableBlock, Text, chart, formatted
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.slices import Slices
from calviz.sample.slices import usual_slices
from calviz.text.gaps import share_cell
from calviz.text.words import (
    counted,
    p_number,
    percent,
    points,
    shorten,
    signed_points,
    whole,
)

_COLUMNS: dict[str, tuple[str, CellFormat]] = {
    "slice": ("slice", lambda name: shorten(name, 80)),
    "rows": ("rows", whole),
    "score": ("mean score", share_cell),
    "hits": ("hits", share_cell),
    "gap": ("gap (points)", signed_points),
    "low": ("95 % CI from", signed_points),
    "high": ("to", signed_points),
    "p_value": ("p-value", p_number),
    "adjusted_p_value": ("adjusted", p_number),
    "off": ("off", lambda off: "yes" if off else ""),
    "ece": ("ECE (points)", points),
    "ece_noise": ("noise (points)", points),
}


def make(subject: Subject) -> Iterator[Block]:
    """Yield the slices with the strongest evidence of an error, and the table of all."""
    if not subject.sample.data.groups:
        return
    slices = subject.slices or usual_slices(subject.sample)
    if slices is None:
        return
    figure = SliceGaps.compute(slices)
    yield Text(figure.answer())
    if slices.slices:
        yield chart(
            figure,
            key="slices-drawn",
            title="The slices that are most surely off",
            caption=caption(subject),
            formats={name: _COLUMNS[name] for name in ("slice", "rows", "gap", "low", "high")},
            width=WIDTH,
        )
        yield _all(slices)
    yield Note(_method_words(slices))


def _all(slices: Slices) -> TableBlock:
    frame = slices.frame()
    shown = formatted(frame, _COLUMNS)
    right = [heading for name, (heading, _) in _COLUMNS.items() if name not in ("slice", "off")]
    title = f"All {counted(len(frame), 'slice')}"
    bullets = [Bullet(s.gap, (s.interval.low, s.interval.high)) for s in slices.slices]
    return TableBlock("slices", title, shown, frame, right, folded=True, bullets=bullets)


def _method_words(slices: Slices) -> str:
    against = (
        "what a calibrated model shows" if slices.against == "calibrated" else "the other rows"
    )
    pairs = ", and pairs of them" if any(len(s.where) > 1 for s in slices.slices) else ""
    text = (
        f"Groups with at least {counted(slices.min_rows, 'row')}{pairs}, each tested against "
        f"{against}; intervals are each for itself, adjusted p-values for all slices together (Benjamini and "
        f"Hochberg, at most {percent(slices.rate, 0)} false discoveries)."
    )
    if slices.small:
        text += f" {counted(slices.small, 'slice')} with fewer rows not measured."
    return " ".join(
        [text, *(f"Left out: {shorten(reason, 200)}." for reason in slices.skipped[:5])]
    )


SECTIONS.register(
    Section(
        "slices", "Slices", 55, "For whom it is wrong, group by group", make, shows_result="slices"
    )
)

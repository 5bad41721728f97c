"""The findings about classes, in a few words for the verdict."""

from __future__ import annotations

from calviz.checks.support.one_vs_rest import one_vs_rest
from calviz.core.arrays import BoolArray
from calviz.core.errors import NotAvailable
from calviz.sample.class_ranges import ClassView, class_ranges, too_few
from calviz.sample.sample import Sample
from calviz.text.words import counted

_KINDS: tuple[tuple[ClassView, str], ...] = (
    ("predicted-class", "predicted class"),
    ("true-class", "true class"),
)


def classes_off(sample: Sample) -> tuple[str, ...]:
    """Return texts on the classes outside the range of a calibrated model: "2 of 10 predicted classes are off"."""
    texts = []
    for view, noun in _KINDS:
        try:
            ranges = sample.view(class_ranges, view=view)
        except NotAvailable:
            continue
        off = (ranges.beyond != 0)[ranges.has]
        if ranges.range is not None and off.any():
            texts.append(_count(off, noun))
    if sample.reduction.kind == "top-label":
        rest = sample.once(one_vs_rest)
        if rest is not None and rest.means_off:
            texts.append(_count(rest.beyond != 0, "class", " against the rest"))
        elif rest is not None and rest.off:
            texts.append("the probabilities of the classes against the rest are off")
    return tuple(texts)


def _count(off: BoolArray, noun: str, more: str = "") -> str:
    classes = counted(off.size, noun, f"{noun}es")
    return f"{int(off.sum()):,} of {classes}{more} {'is' if off.sum() == 1 else 'are'} off"


def classes_unseen(sample: Sample) -> str:
    """Return the end of a sentence on errors that the predicted classes have too few rows to show; "" if they have enough."""
    if sample.reduction.kind != "top-label" or (sample.data.n_classes or 0) == 2:
        return ""
    try:
        ranges = sample.view(class_ranges, view="predicted-class")
    except NotAvailable:
        return ""
    if ranges.range is None or ranges.needed is None or (ranges.beyond != 0)[ranges.has].any():
        return ""
    text = too_few(ranges.rows[ranges.has], ranges.needed[ranges.has])
    return f"; {text}" if text else ""

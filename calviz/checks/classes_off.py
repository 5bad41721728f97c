"""What the findings about classes say, in a few words for the verdict."""

from __future__ import annotations

from calviz.checks._one_vs_rest import one_vs_rest
from calviz.core.errors import NotAvailable
from calviz.core.words import counted
from calviz.numerics.class_ranges import ClassView, class_ranges
from calviz.numerics.sample import Sample

_KINDS: tuple[tuple[ClassView, str], ...] = (
    ("predicted-class", "predicted class"),
    ("true-class", "true class"),
)


def classes_off(sample: Sample, *, bins: int = 15, seed: int = 0) -> tuple[str, ...]:
    """Which groups of classes lie outside the range of a calibrated model: "2 of 10 predicted classes are off".

    Parameters
    ----------
    sample : Sample
    bins, seed : int
        Of the class-wise ECE, and of the labels that are redrawn for it.
    """
    said = []
    for view, noun in _KINDS:
        try:
            found = sample.view(class_ranges, view=view)
        except NotAvailable:
            continue
        off = int(((found.beyond != 0) & found.has).sum()) if found.range is not None else 0
        if off:
            of = counted(int(found.has.sum()), noun, f"{noun}es")
            said.append(f"{off:,} of {of} {'is' if off == 1 else 'are'} off")
    if sample.reduction.kind == "top-label":
        rest = sample.view(one_vs_rest, bins=bins, seed=seed)
        if rest is not None and rest.off:
            said.append("the probabilities of the other classes are off")
    return tuple(said)

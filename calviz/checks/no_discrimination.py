"""CAL016: probabilities that do not tell the classes apart, however well calibrated they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calviz.checks._evidence import MIN_ROWS
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.predictions import Predictions
from calviz.core.words import counted, decimal, decimals_for, percent
from calviz.numerics.label_shuffling import LabelShuffling, label_shuffling
from calviz.numerics.sample import Sample

#: Standard normal quantile of a one-sided test at 5 %.
ONE_SIDED = 1.645
#: Absence of evidence is not enough: the correlation must be shown to be below this (an AUROC of about 0.6 where both
#: classes are as frequent).
CLEAR = 0.2


@dataclass(frozen=True)
class Shuffled:
    """The probabilities beside shuffled labels; None where there are no probabilities of all classes, or one class only."""

    found: LabelShuffling | None

    @property
    def tells_apart(self) -> bool:
        """False where there is no skill beyond noise, and what there may be is little."""
        f = self.found
        return f is None or f.z > ONE_SIDED or f.correlation(ONE_SIDED) >= CLEAR


def shuffled(sample: Sample) -> Shuffled:
    """Compare the labels with shuffled ones."""
    data = sample.data
    if not isinstance(data, Predictions) or bool((data.labels == data.labels[0]).all()):
        return Shuffled(None)
    return Shuffled(label_shuffling(data))


def no_discrimination(sample: Sample) -> Iterator[Finding]:
    """Say so where shuffling the labels would change nothing."""
    if sample.data.n < MIN_ROWS:
        return
    seen = sample.view(shuffled)
    f = seen.found
    if f is None or seen.tells_apart:
        return
    if f.scale == 0:
        how = "they are the same in all rows"
    else:
        decimals = max(1, decimals_for(100 * f.spread, figures=1, most=3))
        how = (
            f"the true class is given {percent(f.of_true, decimals)} on average, and {percent(f.shuffled, decimals)} "
            f"with the labels shuffled (correlation below {decimal(max(f.correlation(ONE_SIDED), 0.01), 2)} with 95 % "
            "confidence)"
        )
    yield Finding(
        "CAL016",
        "warning",
        f"The probabilities do not tell the classes apart beyond noise on {counted(sample.data.n, 'row')}: {how}; a model "
        "may be calibrated and useless.",
    )


CHECKS.register(Check("CAL016", "No discrimination", no_discrimination))

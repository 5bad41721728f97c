"""CAL016: probabilities that do not tell the classes apart, however well calibrated they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from calviz.checks.kernels.label_shuffling import LabelShuffling, label_shuffling
from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, decimal, decimals_for, percent

#: Standard normal quantiles for a one-sided test at 1 % and a one-sided 95 % bound.
BEYOND_NOISE, BOUND = 2.326, 1.645
#: Absence of evidence is not enough: the effect must be shown to be below this (an AUROC of about 0.64) ...
CLEAR = 0.5
#: ... and below this (an AUROC of about 0.53) it is negligible, however significant.
NEGLIGIBLE = 0.1


@dataclass(frozen=True)
class Shuffled:
    """The probabilities compared with shuffled labels; None without probabilities of all classes, or with one class only."""

    shuffling: LabelShuffling | None

    @property
    def tells_apart(self) -> bool:
        """False if there is no skill beyond noise, or almost none."""
        f = self.shuffling
        if f is None:
            return True
        return f.effect(BOUND) >= (CLEAR if f.z <= BEYOND_NOISE else NEGLIGIBLE)


def shuffled(sample: Sample) -> Shuffled:
    """Compare the probabilities of the labels with those of shuffled labels."""
    data = sample.data
    if not isinstance(data, Predictions) or bool((data.labels == data.labels[0]).all()):
        return Shuffled(None)
    return Shuffled(label_shuffling(data))


def no_discrimination(sample: Sample) -> Iterator[Finding]:
    """Report probabilities for which shuffling the labels would change next to nothing."""
    if sample.data.rows < MIN_ROWS:
        return
    comparison = sample.view(shuffled)
    f = comparison.shuffling
    if f is None or comparison.tells_apart:
        return
    if f.spread == 0:
        reason = "they are the same in all rows"
    else:
        decimals = max(1, decimals_for(100 * f.spread, figures=1, most=3))
        reason = (
            f"the true class is given {percent(f.of_true, decimals)} on average, and {percent(f.shuffled, decimals)} "
            f"with the labels shuffled (standardised difference below {decimal(max(f.effect(BOUND), 0.01), 2)} with 95 % "
            "confidence)"
        )
    yield Finding(
        "CAL016",
        "warning",
        f"The probabilities hardly tell the classes apart on {counted(sample.data.rows, 'row')}: {reason}; "
        "calibrated probabilities may still be useless.",
    )


CHECKS.register(Check("CAL016", "No discrimination", no_discrimination))

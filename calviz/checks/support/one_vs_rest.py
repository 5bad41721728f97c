"""Whether the probabilities of all classes, not only the largest one, agree with the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.checks.support.class_sides import most_if_several
from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.metrics.classwise import classwise_ece, ks_classwise
from calviz.metrics.kernels.classwise_ks import classwise_ks
from calviz.numerics.skewed_sum_tails import above_drawn
from calviz.sample.class_gaps import class_gaps
from calviz.sample.class_ranges import class_ranges
from calviz.sample.error_bars import resampled
from calviz.sample.false_alarm_levels import CLASS_TEST
from calviz.sample.one_vs_rest import classwise_equal_width
from calviz.sample.one_vs_rest_of_profiles import knows_classes
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights
from calviz.text.words import counted, decimals_for, listed, percent, points

#: Numbers of redraws of the labels; a p-value is read from a tail fitted to the errors of the redraws. If the p-value with the first
#: number is at or below the level of the test but above `FAR`, the second number decides: few redraws determine the tail poorly.
REDRAWS, MORE_REDRAWS, FAR = 100, 400, 1e-8
#: Largest numbers of rows and of probabilities for which labels are redrawn (about half a second). Larger data are judged on some rows.
MOST_ROWS, MOST_ENTRIES = 20_000, 1 << 22
#: Level of each of the three tests (means of the classes, class-wise ECE, class-wise KS).
LEVEL_OF_EACH_TEST = CLASS_TEST / 3


@dataclass(frozen=True, eq=False)
class AgainstNoise:
    """A class-wise error, its mean for a calibrated model, and the p-value."""

    value: float
    calibrated: float
    p_value: float

    @property
    def off(self) -> bool:
        """Whether the value is more than a calibrated model would show."""
        return self.p_value <= LEVEL_OF_EACH_TEST


@dataclass(frozen=True, eq=False)
class OneVsRestEvidence:
    """Evidence on all classes against the rest.

    Attributes
    ----------
    sample : Sample
    beyond : ndarray, shape (K,)
        Distance by which each class's mean probability minus frequency lies outside its range, signed; 0 inside.
    ece, ks : AgainstNoise
        Class-wise ECE and class-wise KS.
    rows : int
        Number of rows on which these two were computed; for large data, fewer than all.
    """

    sample: Sample
    beyond: FloatArray
    ece: AgainstNoise
    ks: AgainstNoise
    rows: int

    @property
    def means_off(self) -> bool:
        """Whether a class is too high or too low on average."""
        return bool(self.beyond.any())

    @property
    def off(self) -> bool:
        """Whether any of the three tests finds more than a calibrated model would show."""
        return self.means_off or self.ece.off or self.ks.off

    @property
    def words(self) -> str:
        """Text that names what is off, with its numbers."""
        parts = []
        for name, error in (("class-wise ECE", self.ece), ("class-wise KS", self.ks)):
            if error.off:
                decimals = decimals_for(100 * (error.value - error.calibrated), least=2)
                value, mean = (points(v, decimals) for v in (error.value, error.calibrated))
                parts.append(f"{name} {value} points where a calibrated model would show {mean}")
        if parts and self.rows < self.sample.data.rows:
            parts[-1] += (
                f" (judged on {self.rows:,} of {self.sample.data.rows:,} rows drawn at random)"
            )
        return " and ".join(parts) or means_off(self.sample, self.beyond)


def means_off(sample: Sample, beyond: FloatArray) -> str:
    """Text that names the classes that are off on average: "of 3 classes against the rest, 2 are too high on average, most 'z', ..."."""
    view, names = sample.view(class_gaps), sample.data.class_names
    k = int(np.abs(beyond).argmax())
    forecast, frequency = (float(v[k]) / view.n for v in (view.powers[0], view.rows))
    decimals = decimals_for(100 * (forecast - frequency), least=2)
    sides = [
        f"{int(which.sum()):,} {'is' if which.sum() == 1 else 'are'} too {word}"
        for which, word in ((beyond > 0, "high"), (beyond < 0, "low"))
        if which.any()
    ]
    return (
        f"of {counted(view.rows.size, 'class', 'classes')} against the rest, {' and '.join(sides)} on average, "
        f"{most_if_several(beyond)}{listed([names[k]])}, {percent(forecast, decimals)} for a frequency of {percent(frequency, decimals)}"
    )


@takes_weights
def one_vs_rest(sample: Sample) -> OneVsRestEvidence | None:
    """Test every class against the rest; None for data without probabilities of all classes, a profile of two classes, and weighted or clustered rows.

    The p-values of class-wise ECE and KS come from labels redrawn from the rows' probabilities; for large
    data, on a random part of the rows (`MOST_ROWS`, `MOST_ENTRIES`).
    """
    data = sample.data
    if data.cells is None:
        has_all_classes = isinstance(data, Predictions)
    else:
        has_all_classes = knows_classes(data) and not isinstance(data, Predictions)
    if not has_all_classes or not data.alike:
        return None
    most = max(1, min(MOST_ROWS, MOST_ENTRIES // data.n_classes))
    part = sample
    if data.cells is None and data.n > most:
        chosen = np.sort(np.random.default_rng(sample.seed).choice(data.n, most, replace=False))
        part = Sample(data.take(chosen))
    try:
        ece = _against(
            classwise_ece, part.view(classwise_equal_width, bins=sample.bins_used), sample.seed
        )
        ks = _against(ks_classwise, part.view(classwise_ks), sample.seed)
    except NotAvailable:  # more classes than can be redrawn
        return None
    return OneVsRestEvidence(
        sample=sample,
        beyond=sample.view(class_ranges, view="one-vs-rest").beyond,
        ece=ece,
        ks=ks,
        rows=part.data.rows,
    )


def _against(metric: Callable[[Any], FloatArray], view: Any, seed: int) -> AgainstNoise:
    value = float(metric(view))
    alike = float(metric(view.as_drawn())[0]) if hasattr(view, "as_drawn") else value
    for redraws in (REDRAWS, MORE_REDRAWS):
        drawn = metric(resampled(view, "under_calibration", seed=seed, resamples=redraws))
        against_noise = AgainstNoise(value, float(np.mean(drawn)), above_drawn(drawn, alike))
        if not FAR < against_noise.p_value <= LEVEL_OF_EACH_TEST:
            break
    return against_noise


def of_the_top_label(sample: Sample) -> str:
    """Return " of the top label" if "no miscalibration" holds only for the top label, "" if it holds for all classes.

    It holds only for the top label if the file lacks the other probabilities, or if those are miscalibrated. Under other
    reductions the sentence itself names the score.
    """
    if sample.reduction.kind != "top-label":
        return ""
    classes = sample.once(one_vs_rest)
    return " of the top label" if classes is None or classes.off else ""

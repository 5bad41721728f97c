"""Whether the probabilities of all classes, not only the largest one, agree with the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.metrics.classwise import classwise_ece, ks_classwise
from calviz.metrics.kernels.classwise_ks import classwise_ks
from calviz.numerics.skewed_sum_tails import above_drawn
from calviz.sample.class_gaps import class_gaps
from calviz.sample.class_ranges import class_ranges
from calviz.sample.classes_of_cells import knows_classes
from calviz.sample.error_bars import resampled
from calviz.sample.false_alarm_levels import CLASS_TEST
from calviz.sample.one_vs_rest import classwise_equal_width
from calviz.sample.sample import Sample
from calviz.specs.metric import takes_weights
from calviz.text.words import counted, decimals_for, listed, percent, points

#: Labels are redrawn this often, and the tail of the draws is fitted. Where it seems to be beyond noise, but is not far
#: beyond, more draws decide: few do not know the tail well.
REDRAWS, MORE_REDRAWS, FAR = 100, 400, 1e-8
#: Rows, and probabilities, that labels are redrawn for: about half a second. Of larger data, some rows are judged.
MOST_ROWS, MOST_ENTRIES = 20_000, 1 << 22
#: Each of the three tests (means of the classes, class-wise ECE, class-wise KS).
LEVEL = CLASS_TEST / 3


@dataclass(frozen=True, eq=False)
class AgainstNoise:
    """A class-wise error, what a calibrated model would show on average, and the probability of as much."""

    value: float
    calibrated: float
    p_value: float

    @property
    def off(self) -> bool:
        """Whether the value is more than a calibrated model would show."""
        return self.p_value <= LEVEL


@dataclass(frozen=True, eq=False)
class OneVsRest:
    """Evidence on all classes against the rest.

    Attributes
    ----------
    sample : Sample
    beyond : ndarray, shape (K,)
        How far each class's mean probability minus frequency lies outside its range, with its sign.
    ece, ks : AgainstNoise
        Class-wise ECE and class-wise KS.
    rows : int
        Rows that these two were judged on; fewer than there are for large data.
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
        """Whether any of the three tests sees more than a calibrated model would show."""
        return self.means_off or self.ece.off or self.ks.off

    @property
    def words(self) -> str:
        """What is off, with its numbers."""
        parts = []
        for name, found in (("class-wise ECE", self.ece), ("class-wise KS", self.ks)):
            if found.off:
                decimals = decimals_for(100 * (found.value - found.calibrated), least=2)
                value, mean = (points(v, decimals) for v in (found.value, found.calibrated))
                parts.append(f"{name} {value} points where a calibrated model would show {mean}")
        if parts and self.rows < self.sample.data.rows:
            parts[-1] += (
                f" (judged on {self.rows:,} of {self.sample.data.rows:,} rows drawn at random)"
            )
        return " and ".join(parts) or means_off(self.sample, self.beyond)


def means_off(sample: Sample, beyond: FloatArray) -> str:
    """Which classes are off on average: "2 of 3 classes are ..., most 'z': ..."."""
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
        f"{'most ' if np.count_nonzero(beyond) > 1 else ''}{listed([names[k]])}, {percent(forecast, decimals)} for a frequency of {percent(frequency, decimals)}"
    )


@takes_weights
def one_vs_rest(sample: Sample) -> OneVsRest | None:
    """Test every class against the rest; None for data without the probabilities of all classes, for a profile of two, and for weighted rows.

    The p-values of class-wise ECE and KS come from labels redrawn from the rows' probabilities. For large
    data these are drawn for some rows only (`MOST_ROWS`, `MOST_ENTRIES`), chosen at random.
    """
    data = sample.data
    if data.cells is None:
        known = isinstance(data, Predictions) and data.weights is None
    else:
        known = knows_classes(data) and not isinstance(data, Predictions)
    if not known:
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
    return OneVsRest(
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
        if not FAR < against_noise.p_value <= LEVEL:
            break
    return against_noise


def of_the_top_label(sample: Sample) -> str:
    """Return " of the top label" if "no miscalibration" holds only for that, and "" if it holds for all classes.

    It holds for that alone where the other probabilities are not in the file, or are not as calibrated as the top
    one; of other reductions than the top label, the sentence names the score itself.
    """
    if sample.reduction.kind != "top-label":
        return ""
    classes = sample.once(one_vs_rest)
    return " of the top label" if classes is None or classes.off else ""

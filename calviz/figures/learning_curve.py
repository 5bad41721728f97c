"""A metric against the number of calibration rows, one curve per recalibrator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.errors import OptionError
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure
from calviz.results.learning_curve import LabelsNeeded, LearningCurve, LearningPoint
from calviz.results.metric_words import value_text
from calviz.specs.metric import METRICS, QUOTED
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import counted, listed, shorten

#: A curve has settled where it has reached this share of its final gain.
SETTLED = 0.9
#: Gains below this count as zero.
ZERO = 1e-9
_COLUMNS = ("method", "rows", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class LearningCurves(Figure):
    """One metric of a learning curve, ready to draw.

    Drawn from a result, not from predictions: `calviz.learning_curve` fits, this class draws.

    Attributes
    ----------
    curve : LearningCurve
    metric : str

    References
    ----------
    Zhang et al. 2020, figure 6.
    """

    curve: LearningCurve
    metric: str

    @classmethod
    def compute(cls, curve: LearningCurve, *, metric: str = QUOTED) -> Self:
        """Choose the metric to draw.

        Raises
        ------
        OptionError
            If the curve does not have this metric.
        """
        if metric not in curve.directions:
            metrics = ", ".join(curve.directions)
            raise OptionError(f"'{metric}' is not in this learning curve; it has {metrics}.")
        return cls(curve, metric)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of calibration rows tried."""
        return tuple(sorted({p.rows for p in self.curve.points}))

    @property
    def before(self) -> float:
        """Metric of the uncalibrated model."""
        return self.curve.uncalibrated[self.metric].value

    @property
    def noise_floor(self) -> float | None:
        """Mean of the metric for a calibrated model on the evaluation rows; None unless the metric is an error in [0, 1]."""
        floor = self.curve.uncalibrated[self.metric].noise_floor
        upper = METRICS[self.metric].tail == "upper" and METRICS[self.metric].bounds == (0.0, 1.0)
        return floor.mean if floor is not None and upper else None

    def points(self, method: str) -> tuple[LearningPoint, ...]:
        """Points of one method, by increasing number of rows."""
        return self.curve.of(method, self.metric)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per method and number of rows, with the two reference lines as columns."""
        points = [p for method in self.curve.methods for p in self.points(method)]
        columns = {name: [getattr(p, name) for p in points] for name in _COLUMNS}
        floor = np.nan if self.noise_floor is None else self.noise_floor
        return (
            columns
            | {"draws": [p.repeats for p in points]}
            | {
                "uncalibrated": np.full(len(points), self.before),
                "noise_floor": np.full(len(points), floor),
            }
        )

    def caption(self) -> tuple[str, ...]:
        """Name; metric and evaluation rows: one line each."""
        judged = self.curve.evaluation
        details = [METRICS[self.metric].label, f"judged on {counted(judged.rows, 'row')}"]
        if judged.split is not None:
            details[-1] += f" of split {shorten(judged.split)}"
        details += [shorten(Reduction.of(self.curve.reduction).label), f"seed {self.curve.seed}"]
        return shorten(self.curve.name, NAME_LENGTH), " · ".join(details)

    def needed(self) -> tuple[LabelsNeeded, ...]:
        """Number of labels each method needs, fewest first."""
        needs = [self.curve.needed(m, self.metric, within=1 - SETTLED) for m in self.curve.methods]
        most = 1 + max(self.sizes, default=0)
        return tuple(
            sorted(
                filter(None, needs),
                key=lambda n: (n.better_from or most, n.settled_from or most, -n.gain),
            )
        )

    def answer(self) -> str:
        """Say in a few sentences how many labels are needed."""
        label, needed = METRICS[self.metric].label, self.needed()
        if METRICS[self.metric].direction == "none" or not needed:
            return f"No method has a curve of the {label} to judge by."
        first = needed[0]
        name = self.label(first.method)
        if first.better_from is None:
            text = (
                f"With up to {counted(first.largest, 'label')} no method is reliably better than the "
                f"uncalibrated model by {label}, beyond the noise of {self._judges()}."
            )
        else:
            only = " already, the fewest tried," if first.better_from == self.sizes[0] else ""
            text = (
                f"{counted(first.better_from, 'label')}{only} are enough for {name}: from there on its {label} "
                "is better than that of the uncalibrated model in 95 % of the draws, and beyond the noise of "
                f"{self._judges()}."
            )
        return f"{text} {self._at_most(first.largest)}"

    def _judges(self) -> str:
        return f"the {counted(self.curve.evaluation.rows, 'evaluation row')}"

    def _at_most(self, largest: int) -> str:
        best = dict(self.curve.best(self.metric))[largest]
        label = METRICS[self.metric].label
        if best == UNCALIBRATED:
            return f"With all {largest:,} none is better."
        value = self.points(best)[-1].mean
        return (
            f"With {largest:,}, {self.label(best)} has the best {label}: "
            f"{value_text(self.metric, value)}, against {value_text(self.metric, self.before)} uncalibrated."
        )

    def sentence(self, needed: LabelsNeeded) -> str:
        """Say how many labels one method needs."""
        name = self.label(needed.method)
        if abs(needed.gain) < ZERO:
            return f"{name}: the same as the uncalibrated model."
        if needed.gain <= 0:
            return f"{name}: with {counted(needed.largest, 'label')} not better than the uncalibrated model."
        parts = [f"{name}: "]
        if needed.better_from is None:
            parts.append(f"not reliably better with up to {counted(needed.largest, 'label')}")
        else:
            parts.append(f"better from {counted(needed.better_from, 'label')} on")
        if needed.settled_from is not None and needed.settled_from < needed.largest:
            parts.append(
                f"; {SETTLED:.0%} of its gain from {needed.settled_from:,} on".replace("%", " %")
            )
        elif needed.better_from is not None:
            parts.append("; more labels may still help")
        return "".join(parts) + "."

    def warnings(self) -> tuple[str, ...]:
        """Caveats for reading the curves."""
        caveats = []
        floor = self.curve.uncalibrated[self.metric].noise_floor
        if floor is not None and self.noise_floor is not None and floor.p_value > 0.05:
            caveats.append(
                f"The {METRICS[self.metric].label} of the uncalibrated model is within noise on these "
                f"{self.curve.evaluation.rows:,} rows: there is little to gain, and differences mean little."
            )
        if self.curve.failures:
            names = listed([self.label(m) for m in self.curve.failures])
            caveats.append(
                f"Some fits failed ({names}); their points are of the fits that succeeded."
            )
        return tuple(caveats)

    def label(self, method: str) -> str:
        """Label of a method."""
        return self.curve.labels.get(method, method)

    def describe(self) -> str:
        """Say in plain words what the curves show."""
        judged = counted(self.curve.evaluation.rows, "row")
        sizes = self.sizes
        span = f"{sizes[0]:,} to {counted(sizes[-1], 'calibration row')}" if sizes else "no rows"
        return (
            f"{METRICS[self.metric].label} of {shorten(self.curve.name, NAME_LENGTH)} against the number of "
            f"calibration rows, {span}, always judged on the same {judged}. {self.answer()}"
        )

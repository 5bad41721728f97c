"""Selective prediction at one point of the risk-coverage curve, chosen by the user."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.sample import cell_bounds_of_order
from calviz.sample.ranking import coverage_at, errors_at_coverage
from calviz.sample.sample import Sample
from calviz.sample.step_views import StepsWithParams, over_steps, top_label_steps
from calviz.specs.metric import metric

_selective = partial(
    metric,
    family="Selective prediction",
    bounds=(0.0, 1.0),
    direction="higher",
    tail="two-sided",
    paired=False,
    reference="Geifman & El-Yaniv 2017",
)


class PointOf(StepsWithParams):
    """Steps, and a point of their risk-coverage curve; resamples are shared with the other selective metrics."""


_over = over_steps(lambda view, drawn, *_: PointOf(drawn, view.params), top_label_steps)


def _share(name: str, value: Any, *, above_zero: bool) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not (0 < value <= 1 or (value == 0 and not above_zero)):
        rule = "above 0 and at most 1" if above_zero else "from 0 to 1"
        raise OptionError(f"'{name}' must be a number {rule}, got {value!r}.")
    return float(value)


@_over
def at_coverage(sample: Sample, *, coverage: float = 0.8) -> PointOf:
    """Steps of the top label, and the coverage at which accuracy is computed."""
    share = _share("coverage", coverage, above_zero=True)
    return PointOf(sample.view(top_label_steps), {"coverage": share})


@_over
def at_risk(sample: Sample, *, risk: float = 0.05) -> PointOf:
    """Steps of the top label, and the largest error rate allowed."""
    share = _share("risk", risk, above_zero=False)
    return PointOf(sample.view(top_label_steps), {"risk": share})


@_selective(
    key="accuracy_at_coverage",
    unit="percent",
    label="Accuracy at a coverage",
    formula=r"1 - \mathrm{risk}(c)",
    view=at_coverage,
    bound=lambda sample, view: cell_bounds_of_order.of_coverage(sample, view.params["coverage"]),
)
def accuracy_at_coverage(view: PointOf) -> FloatArray:
    """Accuracy on the most confident share c of the rows (80 % by default); inside a group of ties the expected value is taken.

    Steps of shape (..., G) give values of shape (...).
    """
    coverage = view.params["coverage"]
    return np.asarray(1 - errors_at_coverage(view.steps, coverage) / (coverage * view.steps.n))


@_selective(
    key="coverage_at_risk",
    unit="percent",
    label="Coverage at a risk",
    formula=r"\max \{ c : \mathrm{risk}(c) \le r \}",
    view=at_risk,
    bound=lambda sample, view: cell_bounds_of_order.of_coverage_at(sample, view.params["risk"]),
)
def coverage_at_risk(view: PointOf) -> FloatArray:
    """Largest share of the rows that a confidence threshold can keep with an error rate of at most r among them (5 % by default); 0 if no threshold achieves it.

    Steps of shape (..., G) give values of shape (...).

    Tied rows are kept together or not at all, because no threshold tells them apart. The threshold is chosen on
    the rows it is judged on (again on each resample), so on other rows the risk is likely to be a little
    larger; Geifman & El-Yaniv's algorithm 1, which guarantees a risk, keeps fewer rows.
    """
    return coverage_at(view.steps, view.params["risk"])

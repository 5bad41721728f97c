"""How metrics are written: as a share, as a difference of shares, or as the number itself."""

from __future__ import annotations

import math

from calviz.core.metric import METRICS, Unit
from calviz.core.words import decimal, decimals_for, percent, points


def unit_of(metric: str) -> Unit:
    """The unit of a metric, by its key."""
    return METRICS[metric].unit


def scale_of(metric: str, *, difference: bool = False) -> tuple[float, str]:
    """What values are multiplied by, and the sign or word after them.

    >>> scale_of("accuracy"), scale_of("accuracy", difference=True), scale_of("nll")
    ((100.0, '%'), (100.0, 'points'), (1.0, ''))
    """
    unit = unit_of(metric)
    if unit == "percent" and not difference:
        return 100.0, "%"
    return (1.0, "") if unit == "plain" else (100.0, "points")


def value_text(metric: str, value: float) -> str:
    """A value with its unit, in a sentence.

    >>> value_text("accuracy", 0.912), value_text("ece", 0.0541), value_text("nll", 0.2571)
    ('91.2 %', '5.4 points', '0.257')
    """
    if math.isnan(value):
        return "no value"
    unit = unit_of(metric)
    if unit == "percent":
        return percent(value)
    if unit == "points":
        return f"{points(value, decimals_for(100 * value, figures=2, least=1, most=2))} points"
    return decimal(value, decimals_for(value, figures=3, least=3, most=5))

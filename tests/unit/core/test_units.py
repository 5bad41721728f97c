"""How metrics are written."""

import pytest

from calviz.core.metric import METRICS
from calviz.core.units import value_text


def test_what_is_written_in_points_or_percent_lies_within_one():
    within = [m for m in METRICS if m.unit != "plain"]
    assert len(within) > 20
    assert all(-1 <= low <= high <= 1 for low, high in (m.bounds for m in within))


def test_what_may_lie_on_both_sides_of_zero_is_best_there():
    # Written with a plus sign for that reason.
    points = [m for m in METRICS if m.unit == "points"]
    assert {m.key for m in points if m.direction == "zero"} == {
        m.key for m in points if m.bounds[0] < 0 < m.bounds[1]
    }


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("accuracy", 1.0, "100.0 %"),
        ("ece", 0.1234, "12.3 points"),
        ("ece", 0.00039, "0.04 points"),
        ("mcs", -0.154, "−15.4 points"),
        ("nll", 1.2345, "1.234"),
        ("aurc", 0.00535, "0.00535"),
        ("nll", float("nan"), "no value"),
    ],
)
def test_values_in_sentences(metric, value, text):
    assert value_text(metric, value) == text

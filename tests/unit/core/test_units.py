"""How metrics are written."""

import pytest

from calviz.core.metric import METRICS
from calviz.core.units import UNITS, value_text


def test_every_metric_with_a_unit_exists():
    assert set(UNITS) <= set(METRICS.keys())


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

"""How results are named and written."""

import numpy as np
import pytest

import calviz
from calviz.core.results import MetricResult
from calviz.core.written import Written, name_of


@pytest.mark.parametrize(
    ("key", "options", "name"),
    [
        ("accuracy_at_coverage", {"coverage": 0.7}, "Accuracy at a coverage (70 %)"),
        ("coverage_at_risk", {"risk": 0.1}, "Coverage at a risk (10 %)"),
        ("coverage_at_risk", {"risk": 0.0}, "Coverage at a risk (0 %)"),
        ("ece", {"bins": 5}, "ECE"),
    ],
)
def test_names_say_at_which_point_of_a_curve(key, options, name):
    data = calviz.Predictions(probs=np.array([0.2, 0.9]), labels=np.array([0, 1]))
    assert name_of(calviz.evaluate(data, [key], **options)[key]) == name


@pytest.mark.parametrize(
    ("key", "values", "texts"),
    [
        ("accuracy", [0.9123, 1.0], ["91.2\u00a0%", "100.0\u00a0%"]),
        ("ece", [0.1234, 0.00561, float("nan")], ["12.34", "0.56", "–"]),
        ("mcs", [0.1, -0.002], ["+10.00", "−0.20"]),
        ("nll", [1.05, 0.3], ["1.0500", "0.3000"]),
        ("aurc", [0.07359, 0.00535], ["0.07359", "0.00535"]),
    ],
)
def test_a_column_has_the_same_decimals_everywhere(key, values, texts):
    results = [MetricResult(key, value) for value in values]
    written = Written.column(results)
    assert [written.of(r.value) for r in results] == texts


def test_a_value_alone_has_no_more_decimals_than_make_sense():
    assert Written(MetricResult("nll", 1.0049)).value == "1.005"
    assert Written(MetricResult("ece", 0.00646)).value == "0.65"
    assert Written(MetricResult("ece", 0.1234)).value == "12.3"

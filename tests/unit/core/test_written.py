"""How results are named and written."""

import numpy as np
import pytest

import calviz
from calviz.core.written import name_of


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

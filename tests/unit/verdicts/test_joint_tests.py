"""The statistics that the verdict tests are those of the metrics, whichever way they are computed from the steps."""

import numpy as np
import pytest

import calviz
from calviz.sample.sample import Sample
from calviz.verdicts.joint_tests import joint


def two_classes():
    """Scores on a grid of 1/40, so that many are 1/2 and most have a score that mirrors them."""
    rng = np.random.default_rng(0)
    score = rng.integers(1, 40, 400) / 40
    return calviz.Predictions(probs=score, labels=(rng.random(400) < score**2).astype(int))


@pytest.mark.parametrize("reduction", ["positive", "top-label", "class:0"])
def test_of_two_classes_both_views_are_those_of_the_metrics(reduction):
    data = two_classes()
    tests = joint(Sample(data, reduction, resamples=20)).tests
    assert len({test.reduction for test in tests if test.reduction}) == 2
    seen = {test.key for test in tests}
    assert seen == {"mcs", "ece", "ks", "brier_miscalibration", "brier", "nll"}
    for test in tests:
        wanted = calviz.evaluate(data, [test.key], reduction=test.reduction or reduction)
        assert test.value == pytest.approx(wanted[test.key].value, abs=1e-9), test


def test_of_more_classes_too():
    rng = np.random.default_rng(1)
    data = calviz.Predictions(probs=rng.dirichlet([1, 1, 1], 300), labels=rng.integers(3, size=300))
    tests = joint(Sample(data, "top-label", resamples=20)).tests
    assert "spiegelhalter_z" in {test.key for test in tests}
    for test in tests:
        wanted = calviz.evaluate(data, [test.key], reduction="top-label")[test.key].value
        assert test.value == pytest.approx(wanted, abs=1e-6), test

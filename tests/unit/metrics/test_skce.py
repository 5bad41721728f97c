"""SKCE against a double loop, and what it is under calibration."""

import math

import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from tests.inputs.simulated import draw_labels


def sample(n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), size=n)
    return probs, rng.integers(0, k, size=n)


def evaluated(probs, labels, **options):
    return calviz.evaluate(Predictions(probs=probs, labels=labels), ["skce"], **options)["skce"]


def double_loop(probs, labels, kernel, width):
    n = len(labels)
    one_hot = np.eye(probs.shape[1])[labels]
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                d = math.dist(probs[i], probs[j]) / width
                k = math.exp(-d) if kernel == "laplacian" else math.exp(-(d**2) / 2)
                total += k * float((one_hot[i] - probs[i]) @ (one_hot[j] - probs[j]))
    return total / (n * (n - 1))


@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
@pytest.mark.parametrize("width", [None, 0.2])
def test_against_a_double_loop(kernel, width):
    probs, labels = sample()
    result = evaluated(
        probs, labels, kernel=kernel, **({} if width is None else {"kernel_bandwidth": width})
    )
    if width is None:
        pairs = [math.dist(p, q) for i, p in enumerate(probs) for q in probs[:i]]
        width = float(np.median(pairs))
        assert result.params["kernel_bandwidth"] == pytest.approx(width)
    assert result.value == pytest.approx(double_loop(probs, labels, kernel, width))


def test_says_which_rows_it_used():
    probs, labels = sample(n=300)
    capped = evaluated(probs, labels, kernel_rows=100)
    assert capped.params["rows"] == 100
    assert evaluated(probs, labels).params["rows"] == 300
    # The choice has a seed of its own, so that the value is always the same.
    assert evaluated(probs, labels, kernel_rows=100, seed=5).value == capped.value


def test_equal_rows_and_one_row():
    # Every pair has distance 0: the mean of the products of the residuals.
    probs, labels = np.full((4, 2), 0.5), np.array([0, 0, 0, 1])
    assert evaluated(probs, labels).value == pytest.approx((3 * 0.5 - 3 * 0.5) * 2 / 12)
    assert evaluated(probs[:1], labels[:1], ci=True).reason == "undefined: one row makes no pair."
    assert evaluated(probs[:2], labels[:2], ci=True).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    "options", [{"kernel_rows": 1}, {"kernel_bandwidth": 0.0}, {"kernel": "linear"}]
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match="kernel"):
        evaluated(*sample(), **options)


@pytest.mark.slow
def test_is_unbiased_and_its_floor_fits_under_calibration():
    rng = np.random.default_rng(1)
    values, p_values = [], []
    for _ in range(150):
        probs = rng.dirichlet(np.ones(3), size=60)
        labels = draw_labels(probs, rng)
        result = evaluated(probs, labels, noise_floor=True, resamples=99)
        values.append(result.value)
        p_values.append(result.noise_floor.p_value)
    assert abs(np.mean(values)) < 3.5 * np.std(values) / math.sqrt(150)
    assert 0.005 < np.mean(np.array(p_values) <= 0.1) < 0.2

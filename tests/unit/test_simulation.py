"""Simulated models whose truth is known: p-values are uniform, intervals cover."""

import numpy as np
import pytest
from scipy import stats

import calviz

FLOORS = ("ks", "ece", "smece", "kde_ece", "classwise_ece")
RUNS = 250


@pytest.fixture(scope="module")
def p_values():
    """p-values of calibrated models of three classes, shape per key (RUNS,)."""
    found = {key: [] for key in FLOORS}
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        probs = rng.dirichlet([2.0, 1.0, 0.5], size=150)
        labels = (rng.random((150, 1)) > np.cumsum(probs, axis=1)[:, :2]).sum(axis=1)
        data = calviz.Predictions(probs=probs, labels=labels)
        result = calviz.evaluate(data, FLOORS, noise_floor=True, resamples=99, seed=seed)
        for r in result:
            found[r.key].append(r.noise_floor.p_value)
    return found


@pytest.mark.parametrize("key", FLOORS)
def test_p_values_of_calibrated_models_are_uniform(p_values, key):
    # They are multiples of 1/100; the test allows for that.
    assert stats.kstest(np.array(p_values[key]) - 0.005, "uniform").pvalue > 1e-3
    small = np.mean(np.array(p_values[key]) <= 0.05)
    assert small < 0.05 + 4 * np.sqrt(0.05 * 0.95 / RUNS)


def test_intervals_cover_the_truth():
    # One column of a beta distribution, hits by a known curve: the estimands are integrals.
    keys = ("mcs", "brier", "calibration_slope", "auroc_failure")
    rng = np.random.default_rng(1)

    def sample(n):
        score = rng.beta(2, 2, size=n)
        logit = 0.2 + 0.7 * np.log(score / (1 - score))
        return calviz.Predictions(probs=score, labels=rng.random(n) < 1 / (1 + np.exp(-logit)))

    truth = calviz.evaluate(sample(1_000_000), keys, reduction="positive")
    covered = dict.fromkeys(keys, 0)
    for seed in range(RUNS):
        result = calviz.evaluate(
            sample(300), keys, reduction="positive", ci=True, resamples=200, seed=seed
        )
        for r in result:
            covered[r.key] += r.interval.low <= truth[r.key].value <= r.interval.high
    for key in keys:
        # 95 %, give or take three and a half standard errors; `benchmarks/coverage.py` is finer.
        assert 0.90 <= covered[key] / RUNS <= 0.99, key

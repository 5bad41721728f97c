"""Simulated models whose truth is known: p-values are uniform, intervals cover.

`benchmarks/coverage.py` is the longer study, and `docs/uncertainty.md` says what it found.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import calviz
from calviz.core.entry_specs import METRICS
from calviz.sample.error_bars import p_value, stream
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from tests.inputs.simulated import draw_labels

pytestmark = pytest.mark.slow

#: Representatives of the families; p-values of "brier" and after it are two-sided.
FLOORS = ("ece", "ks", "smece", "kde_ece", "classwise_ece", "brier", "mcs", "spiegelhalter_z")
RUNS = 120
#: Intervals of means and smooth functions of them, and of errors that cannot fall below 0.
LINEAR = ("mcs", "brier", "nll", "calibration_slope")
ERRORS = ("ece", "ece_l2", "ece_debiased", "mce", "ks")


def curve(n, rng, intercept, slope):
    """One column of a beta distribution, and hits by a logistic curve over it."""
    score = rng.beta(2, 2, size=n)
    hits = rng.random(n) < expit(intercept + slope * logit(score))
    return calviz.Predictions(probs=score, labels=hits)


def slack(share, runs, errors=3.5):
    """So many standard errors of a share."""
    return errors * np.sqrt(share * (1 - share) / runs)


@pytest.fixture(scope="module")
def p_values():
    """p-values of calibrated models of three classes, shape per key (RUNS,)."""
    values = {key: [] for key in FLOORS}
    for seed in range(RUNS):
        rng = np.random.default_rng([7, seed])
        probs = rng.dirichlet([2.0, 1.0, 0.5], size=150)
        labels = draw_labels(probs, rng)
        data = calviz.Predictions(probs=probs, labels=labels)
        for r in calviz.evaluate(data, FLOORS, noise_floor=True, resamples=99, seed=seed):
            values[r.key].append(r.noise_floor.p_value)
    return {key: np.array(p) for key, p in values.items()}


@pytest.mark.parametrize("key", FLOORS)
def test_p_values_of_calibrated_models_are_uniform(p_values, key):
    # They are multiples of 1/100; the test allows for that.
    assert stats.kstest(p_values[key] - 0.005, "uniform").pvalue > 1e-3
    assert np.mean(p_values[key] <= 0.05) < 0.05 + slack(0.05, RUNS)


def test_p_values_are_uniform_where_resamples_group_neighbouring_steps():
    runs, values = 100, []
    for seed in range(runs):
        data = curve(3_000, np.random.default_rng([8, seed]), 0, 1)
        (r,) = calviz.evaluate(
            data, ["ks"], reduction="positive", noise_floor=True, resamples=49, seed=seed
        )
        values.append(r.noise_floor.p_value)
    assert stats.kstest(np.array(values) - 0.01, "uniform").pvalue > 1e-3


def test_the_p_value_of_ks_compares_the_same_steps():
    # The value looks at 9,000 places and its resamples at 2,048, where a maximum is smaller: so must
    # be the value that is compared with them.
    sample = Sample(curve(9_000, np.random.default_rng(3), 0, 1), "positive")
    view = sample.view(steps)
    drawn = view.under_calibration(stream(0, "under_calibration"), 200)
    gap = np.concatenate([np.abs(part.cumulative_gap).max(axis=1) for part in drawn.parts()])
    base = view.merged()
    coarse = np.abs(np.cumsum(base.count * base.score - base.hits)).max() / 9_000
    (r,) = calviz.evaluate(
        sample.data, ["ks"], reduction="positive", noise_floor=True, resamples=200
    )
    assert base.score.size <= 2_048 < 9_000 == view.score.size
    assert coarse < r.value
    assert r.noise_floor.p_value == p_value(gap, coarse)


@pytest.fixture(scope="module")
def coverage():
    """Shares of intervals that hold the truth, with and without miscalibration, by key."""
    # The estimands are integrals over the beta distribution.
    score = (np.arange(200_000) + 0.5) / 200_000
    weight = stats.beta(2, 2).pdf(score) / score.size
    runs, shares = 100, {}
    for intercept, slope in ((0, 1), (0.2, 0.7)):
        truth = expit(intercept + slope * logit(score))
        gap = score - truth
        bins = np.minimum((15 * score).astype(int), 14)
        per_bin = np.bincount(bins, gap * weight) / np.bincount(bins, weight)
        known = {
            "mcs": gap @ weight,
            "brier": 2 * (gap**2 + truth * (1 - truth)) @ weight,
            "nll": -(truth * np.log(score) + (1 - truth) * np.log(1 - score)) @ weight,
            "calibration_slope": slope,
            "mce": np.abs(per_bin).max(),
            "ks": np.abs(np.cumsum(gap * weight)).max(),
            "ece": np.abs(gap) @ weight,
            **dict.fromkeys(("ece_l2", "ece_debiased"), gap**2 @ weight),
        }
        inside = {key: [] for key in known}
        for seed in range(runs):
            data = curve(400, np.random.default_rng([9, seed]), intercept, slope)
            for r in calviz.evaluate(
                data,
                list(known),
                reduction="positive",
                ci=True,
                noise_floor=False,
                resamples=100,
                seed=seed,
            ):
                low, high = r.interval
                assert low <= r.value <= high
                inside[r.key].append(low <= known[r.key] + 1e-12 and known[r.key] <= high)
        shares |= {(key, slope): np.mean(value) for key, value in inside.items()}
    return runs, shares


@pytest.mark.parametrize("slope", [1, 0.7])
@pytest.mark.parametrize("key", LINEAR)
def test_intervals_cover_the_truth(coverage, key, slope):
    runs, shares = coverage
    assert METRICS[key].interval == "percentile"
    assert 0.93 - slack(0.93, runs) <= shares[key, slope] <= 0.97 + slack(0.97, runs)


@pytest.mark.parametrize("slope", [1, 0.7])
@pytest.mark.parametrize("key", ERRORS)
def test_intervals_of_biased_errors_cover_the_truth(coverage, key, slope):
    # Rather too wide than too narrow: the way of the quantiles between the two simulated populations is not known.
    runs, shares = coverage
    assert METRICS[key].interval != "percentile"
    assert shares[key, slope] >= 0.93 - slack(0.93, runs)

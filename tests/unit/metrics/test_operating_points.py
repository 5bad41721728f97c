"""Accuracy at a coverage and coverage at a risk: by hand, by brute force, over resampled rows."""

import math

import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.words import percent


def evaluated(confidence, correct, key, **options):
    data = calviz.ConfidencePredictions(
        confidence=np.asarray(confidence), correct=np.asarray(correct)
    )
    return calviz.evaluate(data, [key], **options)[key]


def sample(n=300, decimals=8, seed=0):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.beta(3, 1, size=n), decimals)
    return confidence, rng.random(n) < 0.2 + 0.75 * confidence


def plain_coverage(confidence, correct, risk):
    """Try every threshold."""
    best = 0.0
    for threshold in np.unique(confidence):
        kept = confidence >= threshold
        if np.count_nonzero(kept & ~correct) <= risk * np.count_nonzero(kept) + 1e-9:
            best = max(best, kept.mean())
    return best


def plain_accuracy(confidence, correct, coverage):
    """Keep whole rows from the top, of the last group of ties the share that is still needed."""
    target, rows, hits = coverage * len(confidence), 0.0, 0.0
    for threshold in np.unique(confidence)[::-1]:
        tied = confidence == threshold
        share = min(1.0, (target - rows) / tied.sum())
        rows += share * tied.sum()
        hits += share * np.count_nonzero(tied & correct)
        if share < 1:
            break
    return hits / target


def test_by_hand():
    confidence, correct = [0.9, 0.8, 0.7, 0.7, 0.6], [True, True, False, True, True]
    # Errors among the kept: 0 of 1, 0 of 2, 1 of 4 (both of the tie), 1 of 5.
    for risk, coverage in ((0, 0.4), (0.19, 0.4), (0.2, 1.0), (1, 1.0)):
        assert evaluated(confidence, correct, "coverage_at_risk", risk=risk).value == coverage
    # 3 of 5 rows: the two at the top, and half of a tie with one hit.
    at_60 = evaluated(confidence, correct, "accuracy_at_coverage", coverage=0.6).value
    assert at_60 == pytest.approx(2.5 / 3)
    assert evaluated([0.9, 0.8], [False, True], "coverage_at_risk", risk=0.4).value == 0


@pytest.mark.parametrize("decimals", [8, 1])
def test_against_brute_force(decimals):
    confidence, correct = sample(decimals=decimals)
    for risk in (0, 0.02, 0.05, 0.1, 0.2, 1):
        result = evaluated(confidence, correct, "coverage_at_risk", risk=risk)
        assert result.value == pytest.approx(plain_coverage(confidence, correct, risk))
        assert result.params == {"risk": risk}
    for coverage in (0.01, 0.7, 0.8, 0.9, 0.95, 1):
        value = evaluated(confidence, correct, "accuracy_at_coverage", coverage=coverage).value
        assert value == pytest.approx(plain_accuracy(confidence, correct, coverage))


def test_the_fixed_key_is_one_of_them():
    confidence, correct = sample()
    at_90 = evaluated(confidence, correct, "accuracy_at_coverage", coverage=0.9, ci=True)
    fixed = evaluated(confidence, correct, "accuracy_at_90_coverage", ci=True)
    assert (at_90.value, at_90.interval) == (fixed.value, fixed.interval)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "options", "plain"),
    [
        ("coverage_at_risk", {"risk": 0.1}, plain_coverage),
        ("accuracy_at_coverage", {"coverage": 0.7}, plain_accuracy),
    ],
)
def test_intervals_are_those_of_resampled_rows(key, options, plain):
    confidence, correct = sample(200, decimals=2)
    rng = np.random.default_rng(3)
    (setting,) = options.values()
    drawn = []
    for _ in range(600):
        rows = rng.integers(200, size=200)
        drawn.append(plain(confidence[rows], correct[rows], setting))
    low, high = np.quantile(drawn, [0.025, 0.975])
    interval = evaluated(confidence, correct, key, ci=True, **options).interval
    assert interval == pytest.approx((low, high), abs=0.2 * (high - low))


def test_the_figure_agrees():
    confidence, correct = sample(100)
    data = calviz.ConfidencePredictions(confidence=confidence, correct=correct)
    figure = calviz.figures.RiskCoverage.compute(data)
    result = evaluated(confidence, correct, "coverage_at_risk", risk=0.08, ci=True)
    assert figure.coverage_interval(0.08) == result.interval
    low, high = map(percent, result.interval)
    assert figure.at_risk(0.08).sentence.endswith(
        f"{percent(result.value)} (95 % CI {low} to {high}) could be kept at 8.0 % errors."
    )
    assert math.isnan(figure.at_risk(0).accuracy) == (figure.at_risk(0).kept == 0)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "x", True, None])
def test_what_is_refused(value):
    for key, name in (("coverage_at_risk", "risk"), ("accuracy_at_coverage", "coverage")):
        with pytest.raises(OptionError, match=name):
            evaluated([0.9], [True], key, **{name: value})

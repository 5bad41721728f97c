"""The adaptive test over scales: by brute force over pairs of rows, at its level, and with power at any width."""

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps


def predictions(score, hit, weights=None):
    probs = np.asarray(score, dtype=float)
    return calviz.Predictions(probs=probs, labels=np.asarray(hit), weights=weights)


def brute(score, hit, w, most=10):
    """The largest over scales, and its number of bins, from all pairs of rows."""
    r, v = w * (hit - score), w**2 * score * (1 - score)
    values = {}
    for j in range(min(most, int(np.log2(score.size))) + 1):
        bins = 2**j
        bin_of = np.maximum(np.ceil(score * bins), 1)
        same = (bin_of[:, None] == bin_of) & ~np.eye(score.size, dtype=bool)
        rows = (bin_of[:, None] == bin_of) @ w
        spread = np.sqrt(2 * (np.outer(v, v) * same / rows[:, None] ** 2).sum())
        if spread > 0:
            total = (np.outer(r, r) * same / rows[:, None]).sum()
            values[bins] = total / spread, total / w.sum()
    bins = max(values, key=lambda b: values[b][0])
    return bins, *values[bins]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [8, 1])
def test_against_all_pairs(decimals, weighted):
    rng = np.random.default_rng(0)
    score = rng.random(150).round(decimals)
    hit = (rng.random(150) < score**1.5).astype(int)
    w = rng.exponential(size=150) if weighted else None
    bins, value, error = brute(score, hit, np.ones(150) if w is None else w)
    result = calviz.evaluate(predictions(score, hit, w), ["tcal"], reduction="positive")["tcal"]
    assert result.value == pytest.approx(value, rel=1e-9)
    assert result.details["bins"] == bins
    assert result.details["squared_error"] == pytest.approx(error, rel=1e-9)


def test_each_scale_is_standard_under_calibration():
    # With labels drawn from the scores, every scale has mean 0 and variance 1.
    from calviz.metrics.clinical import _scales

    rng = np.random.default_rng(1)
    score = rng.random(600)
    view = Sample(predictions(score, rng.random(600) < score), "positive").view(steps)
    drawn = view.under_calibration(rng, 2_000)
    z = np.concatenate([_scales(part).standardised for part in drawn.parts()])
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.12)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.15)


def test_errors_of_any_width_are_found():
    rng = np.random.default_rng(2)
    score = rng.uniform(0.2, 0.8, 20_000)
    waves = {2: 0.03, 64: 0.12}  # periods, and how far off
    for periods, size in waves.items():
        hit = rng.random(20_000) < score + size * np.sin(2 * np.pi * periods * score)
        result = calviz.evaluate(
            predictions(score, hit), ["tcal"], reduction="positive", noise_floor=True, resamples=199
        )["tcal"]
        assert result.noise_floor.p_value <= 0.01
        # About half a period, or less.
        assert periods <= result.details["bins"] <= 8 * periods
    assert METRICS["tcal"].tail == "upper"


def test_without_two_rows_that_are_in_doubt_there_is_no_value():
    for score in ([0.3], [0.0, 1.0, 1.0]):
        evaluation = calviz.evaluate(
            predictions(score, [0] * len(score)), ["tcal"], reduction="positive"
        )
        assert np.isnan(evaluation["tcal"].value)
        assert evaluation["tcal"].reason

"""The CORP decomposition against scikit-learn's isotonic regression, and its identities."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

import calviz

KEYS = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")


def evaluated(score, hit, **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, KEYS, reduction="positive", **options)


def plain(score, hit):
    fitted = IsotonicRegression().fit(score, hit).predict(score)
    mean = hit.mean()
    recalibrated = ((fitted - hit) ** 2).mean()
    own, constant = ((score - hit) ** 2).mean(), mean * (1 - mean)
    return own - recalibrated, constant - recalibrated, constant


@pytest.mark.parametrize("decimals", [10, 2, 1])
def test_against_scikit_learn(decimals):
    rng = np.random.default_rng(0)
    score = np.round(rng.random(800), decimals)
    hit = (rng.random(800) < score**2).astype(float)
    assert [r.value for r in evaluated(score, hit.astype(int))] == pytest.approx(plain(score, hit))


def test_by_hand():
    # Isotonic frequencies 1/2, 1/2, 1.
    miscalibration, discrimination, uncertainty = (
        r.value for r in evaluated([0.2, 0.4, 0.9], [1, 0, 1])
    )
    assert miscalibration == pytest.approx((0.64 + 0.16 + 0.01 - 0.5) / 3)
    assert discrimination == pytest.approx(2 / 9 - 0.5 / 3)
    assert uncertainty == pytest.approx(2 / 9)


def test_perfect_scores():
    assert [r.value for r in evaluated([0, 1, 1, 0], [0, 1, 1, 0])] == [0, 0.25, 0.25]


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_intervals_are_those_of_resampled_rows():
    rng = np.random.default_rng(1)
    score = rng.random(300)
    hit = (rng.random(300) < score).astype(float)
    rows = rng.integers(300, size=(400, 300))
    drawn = np.array([plain(score[r], hit[r]) for r in rows])
    evaluation = evaluated(score, hit.astype(int), ci=True, interval="percentile")
    for result, values in zip(evaluation, drawn.T, strict=True):
        low, high = np.quantile(values, [0.025, 0.975])
        expected = min(low, result.value), max(high, result.value)
        assert result.interval == pytest.approx(expected, abs=0.2 * (high - low))


@pytest.mark.parametrize("reduction", ["positive", "top-label", "class:0"])
def test_the_score_beside_the_parts_is_their_sum_and_that_of_scikit_learn(reduction):
    rng = np.random.default_rng(1)
    p = np.round(rng.random(500), 2)
    y = (rng.random(500) < p).astype(int)
    data = calviz.Predictions(probs=np.stack([1 - p, p], axis=1), labels=y)
    e = calviz.evaluate(data, ["brier", "brier_binary", *KEYS], reduction=reduction)
    own, miscalibration, discrimination, uncertainty = (e[k].value for k in ("brier_binary", *KEYS))
    assert own == pytest.approx(miscalibration - discrimination + uncertainty)
    # scikit-learn's default is the scale of one column; the sum over both classes is twice that.
    assert own == pytest.approx(brier_score_loss(y, p))
    assert e["brier"].value == pytest.approx(2 * own)

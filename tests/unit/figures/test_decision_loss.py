"""The decision loss row by row, and what it is of a calibrated model."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calviz
from calviz.figures.net_benefit import DecisionLoss, decision_loss


def test_by_hand():
    # One score of 0.3, half of its rows hits: between 0.3 and 0.5 it should be acted on, and is not.
    cutoffs = np.array([0.1, 0.3, 0.4, 0.5, 0.7])
    result = decision_loss(np.array([0.3]), np.array([4.0]), np.array([2.0]), cutoffs)
    assert result == pytest.approx([0, 0.2 / 0.7, 0.1 / 0.6, 0, 0])
    # A second one of 0.8 without doubt: at 0.9 those should be acted on as well.
    result = decision_loss(
        np.array([0.3, 0.8]), np.array([3.0, 1.0]), np.array([0.0, 1.0]), np.array([0.2, 0.9])
    )
    assert result == pytest.approx([0.75 * 0.2 / 0.8, 0.25 * 0.1 / 0.9])


def test_against_the_gain_of_acting():
    rng = np.random.default_rng(0)
    score = rng.random(400).round(2)
    hit = rng.random(400) < score**1.5
    p = calviz.Predictions(probs=score, labels=hit)
    figure = DecisionLoss.compute(p, reduction="positive")
    q = IsotonicRegression().fit(score, hit).predict(score)
    for cutoff, loss in list(zip(figure.cutoff, figure.loss, strict=True))[1:-1:7]:
        # What acting gains on average where q is the probability, by deciding with q instead of the score.
        gain = (q - cutoff) / max(cutoff, 1 - cutoff)
        expected = (gain * (q > cutoff)).mean() - (gain * (score > cutoff)).mean()
        assert loss == pytest.approx(expected, abs=1e-9)
    assert figure.worst[1] == figure.loss.max()


def test_a_calibrated_model_is_within_noise_and_another_is_not():
    rng = np.random.default_rng(1)
    score = rng.random(3_000)
    for power, beyond in ((1.0, False), (1.6, True)):
        labels = rng.random(3_000) < score**power
        figure = DecisionLoss.compute(calviz.Predictions(probs=score, labels=labels))
        assert figure.beyond_noise is beyond
        assert ("more than" if beyond else "within") in figure.describe()
        assert figure.frame().shape == (201, 4)

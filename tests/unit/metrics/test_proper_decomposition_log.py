"""The parts of the log loss by hand, at probabilities of 0, and resampled where steps are put together."""

import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import log_loss

import calviz
from calviz.sample.losses import log_steps
from calviz.sample.sample import Sample
from calviz.sample.steps import MAX_STEPS

KEYS = ("nll_miscalibration", "nll_discrimination", "nll_uncertainty")


def predictions(score, hit):
    return calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))


def evaluated(score, hit, **options):
    return calviz.evaluate(predictions(score, hit), KEYS, reduction="positive", **options)


def plain(score, hit):
    fitted = IsotonicRegression().fit(score, hit).predict(score)
    own, recalibrated, constant = (
        log_loss(hit, p, labels=[0, 1]) for p in (score, fitted, np.full(hit.size, hit.mean()))
    )
    return own - recalibrated, constant - recalibrated, constant


def test_by_hand():
    # Isotonic frequencies 1/2, 1/2, 1; two of three are hits.
    values = [r.value for r in evaluated([0.2, 0.4, 0.9], [1, 0, 1])]
    own = -(math.log(0.2) + math.log(0.6) + math.log(0.9)) / 3
    fitted, constant = 2 * math.log(2) / 3, math.log(3) - 2 / 3 * math.log(2)
    assert values == pytest.approx([own - fitted, constant - fitted, constant])


def test_a_probability_of_0_counts_as_in_the_nll():
    evaluation = evaluated([0.0, 0.5, 1.0], [1, 0, 1])
    assert evaluation["nll_miscalibration"].details["clipped_rows"] == 1
    assert "counts as 2.2e-16, a loss of 36" in evaluation["nll_miscalibration"].note
    p = predictions([0.0, 0.5, 1.0], [1, 0, 1])
    nll = calviz.evaluate(p, ["nll"])["nll"].value
    parts = [r.value for r in evaluation]
    assert parts[0] - parts[1] + parts[2] == pytest.approx(nll)


def test_resamples_of_many_steps_are_those_of_their_rows():
    # Scores over many orders of magnitude, among them exact zeros: a step of merged scores is no single score.
    rng = np.random.default_rng(0)
    score = rng.beta(0.2, 0.6, 3 * MAX_STEPS)
    score[:40] = 0
    hit = rng.random(score.size) < 0.9 * score + 0.02
    view = Sample(predictions(score, hit), "positive").view(log_steps)
    assert view.steps.merged().size <= MAX_STEPS < view.steps.size
    # At the resolution of the resamples the loss of the sample is what it is.
    assert float(view.as_drawn().log_loss()[0]) == pytest.approx(float(view.log_loss()), rel=1e-12)
    p = np.maximum(score, np.finfo(float).eps)
    losses = np.where(hit, -np.log(p), -np.log1p(-score))
    drawn = view.bootstrap(rng, 500).log_loss()
    assert drawn.mean() == pytest.approx(losses.mean(), abs=5 * losses.std() / np.sqrt(losses.size))
    # Of drawn hits, the expectation is the entropy of each score.
    entropy = -(score * np.log(p) + (1 - score) * np.log1p(-score))
    calm = view.under_calibration(rng, 500).log_loss()
    assert calm.mean() == pytest.approx(entropy.mean(), abs=6 * calm.std() / np.sqrt(500))


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_intervals_are_those_of_resampled_rows():
    rng = np.random.default_rng(1)
    score = rng.uniform(0.02, 0.98, 300)
    hit = (rng.random(300) < score).astype(float)
    rows = rng.integers(300, size=(150, 300))
    drawn = np.array([plain(score[r], hit[r]) for r in rows])
    evaluation = evaluated(score, hit.astype(int), ci=True, interval="percentile")
    for result, values in zip(evaluation, drawn.T, strict=True):
        low, high = np.quantile(values, [0.025, 0.975])
        expected = min(low, result.value), max(high, result.value)
        assert result.interval == pytest.approx(expected, abs=0.25 * (high - low))

"""Cross-fitted parts: sums, truths in closed form, fits made one by one, and what they are of calibrated models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, xlogy
from sklearn.metrics import brier_score_loss, log_loss

import calviz
from calviz.sample.cross_fitted import FOLDS, OWN_ROWS, cross_fitted, make_cross_fitted
from calviz.sample.sample import Sample
from calviz.sample.steps import steps

KEYS = ("nll_calibration", "nll_refinement", "brier_calibration", "brier_refinement")
KEYS += ("ce_l1_unbiased",)


def predictions(score, hit):
    return calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))


def values(score, hit, **options):
    found = calviz.evaluate(predictions(score, hit), KEYS, reduction="positive", **options)
    return {key: found[key].value for key in KEYS}


@pytest.mark.parametrize("decimals", [8, 1])
def test_calibration_and_refinement_add_up_to_the_score(decimals):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.06, 0.94, 900).round(decimals)
    hit = (rng.random(900) < score**1.5).astype(int)
    found = values(score, hit)
    whole = found["nll_calibration"] + found["nll_refinement"]
    assert whole == pytest.approx(log_loss(hit, score), abs=1e-12)
    whole = found["brier_calibration"] + found["brier_refinement"]
    assert whole == pytest.approx(brier_score_loss(hit, score), abs=1e-12)


def test_truths_in_closed_form():
    # Scores uniform on (0, 1), probabilities their squares.
    rng = np.random.default_rng(1)
    n = 100_000
    score = rng.random(n)
    found = values(score, rng.random(n) < score**2)

    def divergence(s):
        q = s * s
        return xlogy(q, q / s) + xlogy(1 - q, (1 - q) / (1 - s))

    # Three standard errors, and a little for a spline that is not the square.
    assert found["nll_calibration"] == pytest.approx(quad(divergence, 0, 1)[0], abs=0.006)
    assert found["brier_calibration"] == pytest.approx(1 / 30, abs=0.003)  # of (s - s^2)^2
    assert found["ce_l1_unbiased"] == pytest.approx(1 / 6, abs=0.005)
    # Twice the squared spread of the probabilities is what no recalibration takes off.
    assert found["brier_refinement"] == pytest.approx(1 / 3 - 1 / 5, abs=0.003)


def test_each_row_has_a_fit_that_did_not_see_its_fold():
    rng = np.random.default_rng(2)
    score = np.sort(rng.uniform(0.05, 0.95, 60))
    hit = (rng.random(60) < score**2).astype(int)
    view = make_cross_fitted(Sample(predictions(score, hit), "positive").view(steps))
    z = np.log(score) - np.log1p(-score)
    cell = np.searchsorted((view.z[1:] + view.z[:-1]) / 2, z)
    losses, gaps = [], []
    for fold in range(FOLDS):
        # Rows are dealt out in the order of their scores.
        out = np.arange(60) % FOLDS == fold
        x = view.x[cell]
        own = OWN_ROWS / (~out).sum()

        def loss(theta, x=x, out=out, own=own):
            margin = view.z[cell] + x @ theta
            fit = np.logaddexp(0, margin) - hit * margin
            self = np.logaddexp(0, margin) - expit(view.z[cell]) * margin
            return (fit + own * self)[~out].sum() + view.penalty @ theta**2 / 2

        theta = minimize(loss, np.zeros(x.shape[1]), method="BFGS", tol=1e-9).x
        margin = view.z[cell] + x @ theta
        losses += list((np.logaddexp(0, margin) - hit * margin)[out])
        gaps += list((np.sign(x @ theta) * (hit - score))[out])
    found = values(score, hit)
    assert found["nll_refinement"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert found["ce_l1_unbiased"] == pytest.approx(np.mean(gaps), abs=1e-12)


@pytest.mark.parametrize("levels", [None, 6])
def test_of_calibrated_models_there_is_nothing_to_gain(levels):
    # Also where rows are tied: folds whose hits were dealt out evenly would make noise look like a gain.
    rng = np.random.default_rng(3)
    score = rng.random(400) if levels is None else np.arange(1, levels + 1)[rng.integers(levels, size=400)] / (levels + 1)  # fmt: skip
    found = [values(score, rng.random(400) < score, resamples=1) for _ in range(60)]
    for key, most in (("nll_calibration", 0.0), ("brier_calibration", 0.0), ("ce_l1_unbiased", 0)):
        drawn = np.array([f[key] for f in found])
        assert drawn.mean() <= most + 3 * drawn.std() / np.sqrt(60), key
    gaps = np.array([f["ce_l1_unbiased"] for f in found])
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(60)


def test_redrawn_hits_are_fitted_as_the_rows_are():
    rng = np.random.default_rng(4)
    score = rng.random(300)
    sample = Sample(predictions(score, rng.random(300) < score), "positive")
    drawn = sample.view(cross_fitted).under_calibration(rng, 20)
    (part,) = drawn.parts()
    for at, theta in enumerate(part.weights()):
        one = replace(part, hits=part.hits[at])
        np.testing.assert_allclose(theta @ part.x.T, one.weights() @ part.x.T, atol=0.05)


def test_few_rows_are_refused_with_a_reason():
    found = calviz.evaluate(predictions([0.2, 0.7], [0, 1]), KEYS, reduction="positive")
    assert all("fewer than 20 rows" in found[key].reason for key in KEYS)


@pytest.mark.slow
def test_intervals_hold_what_is_true():
    # Of calibrated scores nothing; of squares what the closed forms above say.
    truths = {"nll_calibration": 0.0, "brier_calibration": 0.0, "ce_l1_unbiased": 0.0}
    for power, truth in ((1, truths), (2, {"brier_calibration": 1 / 30, "ce_l1_unbiased": 1 / 6})):
        held, runs = dict.fromkeys(truth, 0), 20
        for seed in range(runs):
            rng = np.random.default_rng([seed, power])
            score = rng.random(300)
            data = predictions(score, rng.random(300) < score**power)
            found = calviz.evaluate(data, list(truth), reduction="positive", ci=True, resamples=60)
            for key, at in truth.items():
                held[key] += found[key].interval.low <= at <= found[key].interval.high
        # Binomial(20, .95) is below 15 with probability .0003.
        assert min(held.values()) >= 15, held

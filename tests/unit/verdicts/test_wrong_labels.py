"""CAL021: wrong labels are suspected where labels are wrong, and not where the model is overconfident."""

import re

import numpy as np
import pytest
from scipy import optimize

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few
from calviz.core.entry_specs import CHECKS
from calviz.sample.sample import Sample
from calviz.verdicts.row_checks import label_errors, label_errors_found
from calviz.verdicts.sentence import explained, judged
from tests.inputs.simulated import draw_labels, softmax


def findings(seed, *, k=10, scale=6.0, sharpen=1.0, wrong=0.0, n=2_000, **own):
    """Calibrated softmax scores with logits times `sharpen`, and a share of the labels replaced by another class."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * scale
    labels = draw_labels(softmax(z), rng)
    flipped = rng.random(n) < wrong
    labels = np.where(flipped, (labels + rng.integers(1, k, n)) % k, labels)
    p = softmax(sharpen * z).astype(np.float32)
    return list(
        CHECKS["CAL021"].findings(Sample(calviz.Predictions(probs=p, labels=labels, **own)))
    )


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("sharpen", [1.0, 1.5, 3.0])
def test_a_calibrated_or_overconfident_model_is_not_suspected(k, sharpen):
    assert sum(bool(findings(seed, k=k, sharpen=sharpen)) for seed in range(25)) <= 1


@pytest.mark.parametrize(
    ("k", "sharpen", "power"), [(2, 1.0, 0.9), (3, 1.0, 0.9), (10, 1.0, 0.9), (10, 1.5, 0.9)]
)
def test_two_wrong_labels_of_a_hundred_are_seen(k, sharpen, power):
    spoken = [bool(findings(seed, k=k, sharpen=sharpen, wrong=0.02)) for seed in range(25)]
    assert np.mean(spoken) >= power


def test_the_rows_are_named_and_the_least_probable_comes_first():
    names = np.array([f"image {i}" for i in range(2_000)])
    (finding,) = findings(0, wrong=0.05, ids=names)
    rows = findings(0, wrong=0.05)[0].message.split("first rows ")[1].rstrip(".").split(", ")
    assert ("first ids " + ", ".join(f"image {int(r.replace(',', '')) - 1}" for r in rows)) in (
        finding.message.replace("\n", "")
    )
    assert finding.message.startswith("The labels of ")


def test_confidence_only():
    rng = np.random.default_rng(0)
    confidence = 1 - 10.0 ** rng.uniform(-8, -0.5, 4_000)
    right = rng.random(4_000) < confidence
    calibrated = calviz.ConfidencePredictions(confidence=confidence, correct=right)
    noisy = calviz.ConfidencePredictions(
        confidence=confidence, correct=right & (rng.random(4_000) > 0.02)
    )
    assert not list(CHECKS["CAL021"].findings(Sample(calibrated)))
    (finding,) = CHECKS["CAL021"].findings(Sample(noisy))
    assert "suspect wrong labels" in finding.message


def sample_of(seed, *, k, scale, n, sharpen=1.0, wrong=0.0, **own):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * scale
    labels = draw_labels(softmax(z), rng)
    flipped = rng.random(n) < wrong
    labels = np.where(flipped, (labels + rng.integers(1, k, n)) % k, labels)
    return Sample(
        calviz.Predictions(probs=softmax(sharpen * z), labels=labels, **own), resamples=200
    )


@pytest.mark.parametrize(("k", "sharpen"), [(2, 1.0), (10, 1.0), (10, 1.5), (3, 0.8)])
def test_likelihoods_of_both_explanations_are_the_largest(k, sharpen):
    """Against a general minimiser."""
    sample = sample_of(k, k=k, scale=3.0, n=1_000, sharpen=sharpen, wrong=0.05)
    p, y = sample.data.probs, sample.data.labels

    def loss(share, log_factor):
        q = softmax(np.exp(log_factor) * np.log(p))[np.arange(y.size), y]
        return -np.log((1 - share) * q + share / k).sum()

    found, none = label_errors(sample), loss(0, 0)
    share = optimize.minimize_scalar(lambda e: loss(e, 0), bounds=(0, 1), method="bounded")
    factor = optimize.minimize_scalar(lambda b: loss(0, b), bounds=(-3, 3), method="bounded")
    both = optimize.minimize(
        lambda x: loss(*x), [0.05, 0], method="L-BFGS-B", bounds=[(0, 0.9), (-3, 3)]
    )
    assert found.of_share == pytest.approx(none - share.fun, abs=0.01)
    assert found.share == pytest.approx(share.x * (k - 1) / k, abs=1e-3)
    assert found.of_factor == pytest.approx(none - factor.fun, abs=0.01)
    assert found.factor == pytest.approx(np.exp(-factor.x), rel=2e-3)
    assert found.of_both == pytest.approx(none - both.fun, abs=0.02)
    assert found.together == pytest.approx((both.x[0] * (k - 1) / k, np.exp(-both.x[1])), rel=0.05)


def test_where_both_explain_the_rows_both_are_named():
    sample = sample_of(4, k=2, scale=2.0, n=1_000, wrong=0.05)
    errors = label_errors_found(sample)
    assert not errors.shown
    (finding,) = CHECKS["CAL021"].findings(sample)
    assert re.match(
        r"\d\.\d % wrong labels explain these rows as well as logits 1\.\d\d times too large \(log-likelihood \d\.\d (less|more)\): "
        r"look at the labels before recalibrating, first rows ",
        finding.message,
    )
    assert explained(sample, judged(sample))[-1].startswith("First look at the labels")


@pytest.mark.parametrize("own", ["weights", "clusters"])
def test_weighted_or_clustered_rows_are_not_compared(own):
    column = {own: np.random.default_rng(0).integers(1, 40, 2_000)}
    sample = sample_of(0, k=3, scale=6.0, n=2_000, wrong=0.05, **column)
    assert label_errors_found(sample) is None
    assert "labels" not in explained(sample, judged(sample))[-1]


def test_an_overconfident_model_is_to_be_corrected():
    sample = sample_of(0, k=5, scale=3.0, n=2_000, sharpen=1.5)
    assert label_errors(sample).factor_too
    assert label_errors_found(sample) is None
    assert "correct them" in explained(sample, judged(sample))[-1]


@pytest.mark.slow
def test_rates_of_the_simulations():
    every_simulation()
    where = "5 classes, 2,000 rows"
    there = SIMULATIONS[f"wrong-labels: named, 3 % wrong labels, {where}"].outcomes(20, seed=7)
    assert np.mean(there) >= too_few(0.95, 20)
    for case in ("logits x 1, 5", "logits x 2, 5", "confidence only, logits x 1.5, 100"):
        none = SIMULATIONS[f"wrong-labels: named where there are none, {case} classes, 2,000 rows"]
        assert not np.any(none.outcomes(20, seed=7))

"""CAL021: wrong labels are suspected where labels are wrong, and not where the model is overconfident."""

import numpy as np
import pytest

import calviz
from calviz.sample.sample import Sample
from calviz.verdicts.row_checks import wrong_labels
from tests.inputs.simulated import draw_labels, softmax


def findings(seed, *, k=10, scale=6.0, sharpen=1.0, wrong=0.0, n=2_000, **own):
    """Calibrated softmax scores with logits times `sharpen`, and a share of the labels replaced by another class."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * scale
    labels = draw_labels(softmax(z), rng)
    flipped = rng.random(n) < wrong
    labels = np.where(flipped, (labels + rng.integers(1, k, n)) % k, labels)
    p = softmax(sharpen * z).astype(np.float32)
    return list(wrong_labels(Sample(calviz.Predictions(probs=p, labels=labels, **own))))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("sharpen", [1.0, 1.5, 3.0])
def test_a_calibrated_or_overconfident_model_is_not_suspected(k, sharpen):
    assert sum(bool(findings(seed, k=k, sharpen=sharpen)) for seed in range(25)) <= 1


@pytest.mark.parametrize(("k", "sharpen", "power"), [(3, 1.0, 0.8), (10, 1.0, 0.7), (10, 1.5, 0.7)])
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
    assert not list(wrong_labels(Sample(calibrated)))
    (finding,) = wrong_labels(Sample(noisy))
    assert "suspect wrong labels" in finding.message

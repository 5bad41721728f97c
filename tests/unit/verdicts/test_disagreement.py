"""Findings about metrics that disagree and about true classes: CAL012 and CAL013."""

import numpy as np
import pytest

import calviz
from calviz.sample.class_gaps import class_expectation, true_class_range
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from tests.inputs.simulated import draw_labels


def messages(data, code, reduction="top-label", resamples=1_000):
    results = findings_of(Sample(data, reduction, resamples=resamples))
    return [f.message for f in results if f.code == code]


def positive(n, truth, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return calviz.Predictions(probs=score, labels=rng.random(n) < truth(score))


def classes(n=4_000, k=4, seed=0, sharpen=1.0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.8), n)
    labels = draw_labels(probs, rng)
    probs = probs**sharpen
    return calviz.Predictions(
        probs=probs / probs.sum(axis=1, keepdims=True),
        labels=labels,
        class_names=tuple("abcdefgh"[:k]),
    )


@pytest.mark.slow
def test_calibrated_models_have_neither():
    spoken = []
    for seed in range(20):
        sample = Sample(classes(1_500, seed=seed), resamples=200)
        spoken += [f.message for f in findings_of(sample) if f.code in ("CAL012", "CAL013")]
        spoken += messages(positive(1_500, lambda s: s, seed), "CAL012", "positive", 200)
    assert len(spoken) <= 3, spoken


@pytest.mark.slow
def test_cal012_mcs_hides_what_cancels():
    data = positive(6_000, lambda s: 0.5 + 0.5 * (s - 0.5))
    findings = messages(data, "CAL012", "positive")
    (text,) = [t for t in findings if t.startswith("MCS and ECE disagree")]
    assert "where the ECE is 1" in text  # E|s - t| = 0.5 * E|s - 1/2| = 12.5 points
    off = positive(6_000, lambda s: np.clip(s - 0.1, 0, 1))
    assert not messages(off, "CAL012", "positive")


def test_cal012_ks_cancels_where_signs_alternate():
    # Fifteen bins, each off by 4 points in the direction that its neighbours are not. Hits fall evenly,
    # without noise: the ECE is 14/15 of 4 points and, as the last bin ends at 1, 1/15 of 2.8
    # ((0.96 - 14/15) 0.04 + 0.04 * 0.02 = 0.0667 * 0.028); KS that of one bin, 4/15.
    score = (np.arange(20_000) + 0.5) / 20_000
    upto = np.floor(np.cumsum(np.clip(score + 0.04 * (-1) ** np.floor(15 * score), 0, 1)) + 0.5)
    data = calviz.Predictions(probs=score, labels=np.diff(upto, prepend=0).astype(int))
    (text,) = [t for t in messages(data, "CAL012", "positive") if not t.startswith("MCS")]
    assert text.startswith("The ECE sees an error that KS does not, KS 0.2")
    # Whole hits leave up to half a hit per bin of 1,333 rows.
    assert float(text.split("ECE ")[2].split()[0]) == pytest.approx(3.92, abs=0.05)
    assert "errors that alternate along the scores" in text


@pytest.mark.slow
def test_cal012_ks_agrees_where_the_sign_stays():
    off = positive(20_000, lambda s: np.clip(s - 0.04, 0, 1))
    assert not messages(off, "CAL012", "positive")


@pytest.mark.slow
def test_cal012_bins_drown_a_small_error():
    values = []
    for seed in range(8):
        data = positive(4_000, lambda s: np.clip(s - 0.022, 0, 1), seed)
        values += messages(data, "CAL012", "positive")
    assert any(t.startswith("KS sees an error that the ECE does not") for t in values)


@pytest.mark.slow
def test_cal012_classes_hide_behind_the_confidence():
    rng = np.random.default_rng(0)
    n = 6_000
    # The winner is right as often as it says; the rest goes to the other two the wrong way round.
    top = rng.uniform(0.5, 0.9, n)
    probs = np.stack([top, 0.9 * (1 - top), 0.1 * (1 - top)], axis=1)
    right = rng.random(n) < top
    labels = np.where(right, 0, np.where(rng.random(n) < 0.9, 2, 1))
    data = calviz.Predictions(probs=probs, labels=labels, class_names=("x", "y", "z"))
    (text,) = messages(data, "CAL012")
    assert text.startswith(
        "The confidence of the top label shows no miscalibration, but the probabilities of all classes do: "
    )
    assert "class-wise ECE" in text
    (means,) = messages(data, "CAL023")
    assert means.startswith(
        "Of 3 classes against the rest, 1 is too high and 1 is too low on average, most 'z'"
    )


def test_range_of_a_true_class_against_simulation():
    data = classes(800, k=3)
    low, high = true_class_range(class_expectation(Sample(data)), 0.8)
    rng = np.random.default_rng(3)
    confidence, winner = data.probs.max(1), data.probs.argmax(1)
    upto = np.cumsum(data.probs, axis=1)[:, :-1]
    drawn = []
    for _ in range(3_000):
        y = (rng.random(800)[:, None] > upto).sum(axis=1)
        gap = confidence - (winner == y)
        drawn.append([gap[y == k].mean() for k in range(3)])
    np.testing.assert_allclose([low, high], np.quantile(drawn, [0.1, 0.9], axis=0), atol=3e-3)


@pytest.mark.parametrize(("sharpen", "word"), [(3.0, "more confident"), (0.4, "less confident")])
def test_cal013_names_the_worst_class(sharpen, word):
    data = classes(sharpen=sharpen)
    (text,) = messages(data, "CAL013")
    assert text.startswith(
        f"Of 4 true classes the model is {word} on 4 than a calibrated model would be"
    )
    assert "calibrated model would show" in text


def test_cal013_needs_probabilities_and_classes():
    data = calviz.ConfidencePredictions(confidence=np.full(100, 0.9), correct=np.arange(100) < 10)
    assert not messages(data, "CAL013")
    assert not messages(classes(8, sharpen=3), "CAL013")

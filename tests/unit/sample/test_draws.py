"""Rows and labels drawn at random have the distribution that they should have."""

import numpy as np
import pytest
from scipy import stats

from calviz.core.blocks import watching
from calviz.core.errors import NotAvailable
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.sample import draws as redrawn_rows_and_labels
from calviz.sample.draws import Redraws, random_rows, redrawn_labels, row_counts


@pytest.mark.parametrize("k", [2, 5, 60, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_follow_the_probabilities(k, dtype):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(k, 0.5), size=7).astype(dtype)
    probs[0] = 0
    probs[0, k // 2] = 1  # certain
    probs[1] = 0
    probs[1, [0, -1]] = 0.25, 0.75  # no mass between
    redrawn_rows_and_labels = 6000
    labels = redrawn_labels(probs, rng, redrawn_rows_and_labels)
    assert labels.shape == (redrawn_rows_and_labels, 7)
    exact = probs.astype(float) / probs.sum(axis=1, dtype=float, keepdims=True)
    for row, p in zip(labels.T, exact, strict=True):
        count = np.bincount(row, minlength=k)
        assert count.size == k
        assert not count[p == 0].any()
        expected = redrawn_rows_and_labels * p
        large = expected > 5
        if large.sum() > 1:
            seen = np.append(count[large], count[~large].sum()) + 1e-9
            mean = np.append(expected[large], expected[~large].sum()) + 1e-9
            assert stats.chisquare(seen, mean * seen.sum() / mean.sum()).pvalue > 1e-5


def test_labels_of_different_rows_and_draws_are_independent():
    probs = np.full((400, 3), 1 / 3)
    labels = redrawn_labels(probs, np.random.default_rng(1), 400).astype(float)
    for a, b in ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.015


@pytest.mark.parametrize("n", [1, 3, 1000, (1 << 24) + 1])
def test_random_rows_are_uniform(n):
    rows = random_rows(np.random.default_rng(2), n, 20_000)
    assert rows.min() >= 0
    assert rows.max() < n
    assert stats.kstest((rows + 0.5) / n, "uniform").statistic < 0.5 / n + 0.015


def test_row_counts_are_samples_with_replacement():
    counts = np.concatenate(list(row_counts(np.random.default_rng(3), 200, 3000)))
    np.testing.assert_array_equal(counts.sum(axis=1), 200)
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.1)
    # Binomial(200, 1 / 200).
    expected = stats.binom.pmf(range(5), 200, 1 / 200)
    np.testing.assert_allclose(np.bincount(counts.ravel())[:5] / counts.size, expected, atol=2e-3)


def test_draws_are_shared_and_reproducible():
    rng = np.random.default_rng(4)
    data = Predictions(probs=rng.dirichlet(np.ones(3), 50), labels=rng.integers(0, 3, 50))
    shared = Redraws(data)
    one, two = (list(shared.labels(np.random.default_rng(0), 30)) for _ in range(2))
    assert one[0] is two[0]
    fresh = list(Redraws(data).labels(np.random.default_rng(0), 30))
    np.testing.assert_array_equal(np.concatenate(one), np.concatenate(fresh))
    weights = np.concatenate(list(shared.weights(np.random.default_rng(0), 30)), axis=1)
    assert weights.shape == (50, 30)
    np.testing.assert_array_equal(weights.sum(axis=0), 50)


def test_draws_say_how_far_they_are_and_may_be_stopped(monkeypatch):
    monkeypatch.setattr(redrawn_rows_and_labels, "BLOCK_DRAWS", 1)  # 16 draws at a time
    rng = np.random.default_rng(6)
    data = Predictions(probs=rng.dirichlet(np.ones(3), 20), labels=rng.integers(0, 3, 20))
    messages = []
    with watching(messages.append):
        list(Redraws(data).weights(rng, 40))
        list(Redraws(data).labels(rng, 40))
    messages = [words for words in messages if words]
    assert messages[:3] == [f"resampling the rows: {done} of 40" for done in (0, 16, 32)]
    assert messages[3:] == [f"redrawing the labels: {done} of 40" for done in (0, 16, 32)]


def test_labels_need_the_probabilities():
    data = ConfidencePredictions(confidence=np.array([0.5]), correct=np.array([True]))
    with pytest.raises(NotAvailable, match="probabilities of all classes"):
        list(Redraws(data).labels(np.random.default_rng(0), 3))

"""Rows worth looking at, by a plain sort."""

import numpy as np
import pytest

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.sample.chosen_rows import notable_rows
from calviz.sample.sample import Sample


def sample(n=500, **options):
    rng = np.random.default_rng(3)
    p = calviz.Predictions(probs=rng.dirichlet([0.4] * 3, n), labels=rng.integers(3, size=n))
    return Sample(p, **options)


def test_rows_are_those_of_a_plain_sort():
    s = sample(bins=7)
    p = s.data
    confidence, hit = p.probs.max(1), p.probs.argmax(1) == p.labels
    expected = {
        "mistake": np.abs(confidence - hit),
        "loss": -np.log(np.maximum(p.probs[np.arange(p.n), p.labels], 2.2e-16)),
    }
    bins = np.maximum(np.ceil(confidence * 7).astype(int) - 1, 0)
    share = np.array([hit[bins == m].mean() if (bins == m).any() else 0 for m in range(7)])
    expected["bin"] = np.abs(hit - share[bins])
    for why, value in expected.items():
        rows, result = notable_rows(s, why, most=40)
        np.testing.assert_allclose(result, np.sort(value)[::-1][:40], rtol=1e-6)
        np.testing.assert_allclose(value[rows], result, rtol=1e-6)
        assert len(set(rows.tolist())) == 40
    assert notable_rows(sample(5), "loss")[0].size == 5


def test_rows_that_are_predicted_right_are_no_mistakes():
    p = calviz.Predictions(
        probs=[[0.4, 0.35, 0.25], [0.1, 0.7, 0.2], [0.6, 0.3, 0.1]], labels=[0, 0, 0]
    )
    assert notable_rows(Sample(p), "mistake")[0].tolist() == [1]
    assert notable_rows(Sample(p.take(np.array([0, 2]))), "mistake")[0].size == 0
    # As an event, class 0 is missed where its score is below 0.5.
    rows, value = notable_rows(Sample(p, reduction="class:0"), "mistake")
    assert rows.tolist() == [1, 0]
    np.testing.assert_allclose(value, [0.9, 0.6])


def test_what_cannot_be_said_is_said():
    p = calviz.ConfidencePredictions(confidence=np.full(9, 0.8), correct=np.arange(9) > 2)
    with pytest.raises(NotAvailable, match="probabilities of all classes"):
        notable_rows(Sample(p), "loss")
    with pytest.raises(OptionError, match="'why'"):
        notable_rows(sample(), "odd")

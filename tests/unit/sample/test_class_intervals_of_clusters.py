"""Intervals of class errors of clustered rows against a bootstrap of clusters by hand."""

import numpy as np
import pytest

import calviz
from calviz.figures.class_bars import ClassBars


def _clustered(seed=0, clusters=150, weights=False):
    """Three classes; rows of a cluster share most of the luck of their labels."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), rng.integers(3, 12, clusters))
    z = rng.normal(0, 1, (clusters, 3))[of] + rng.normal(0, 1, (of.size, 3))
    probs = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    true = np.exp(z / 2 + rng.normal(0, 1, (clusters, 3))[of])
    true /= true.sum(axis=1, keepdims=True)
    labels = (rng.random(of.size)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    w = rng.uniform(0.5, 3, of.size) if weights else None
    return calviz.Predictions(probs=probs, labels=labels, clusters=of, weights=w), of


def _errors(p, times, mode, k):
    """Error of a class if row i counts ``times[b, i]`` times, shape (b,)."""
    winner = p.probs.argmax(axis=1)
    if mode == "one-vs-rest":
        residual, inside = p.probs[:, k] - (p.labels == k), np.ones(p.n)
    else:
        inside = (winner == k).astype(float)
        residual = p.probs.max(axis=1) - (p.labels == winner)
    return times @ (residual * inside) / (times @ inside)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_they_are_those_of_resampled_clusters(mode, weights):
    p, of = _clustered(weights=weights)
    bars = ClassBars.compute(p, mode=mode)
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(150, np.full(150, 1 / 150), size=8_000)[:, of].astype(float)
    if weights:
        drawn *= p.weights
    for k in range(3):
        low, high = np.quantile(_errors(p, drawn, mode, k), [0.025, 0.975])
        width = high - low
        assert bars.interval[0][k] == pytest.approx(low, abs=0.06 * width)
        assert bars.interval[1][k] == pytest.approx(high, abs=0.06 * width)


@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_rows_repeated_in_their_cluster_have_the_intervals_of_the_rows_once(mode):
    p, _ = _clustered()
    repeated = calviz.Predictions(
        probs=np.repeat(p.probs, 3, axis=0),
        labels=np.repeat(p.labels, 3),
        clusters=np.repeat(np.arange(p.n), 3),
    )
    once = calviz.Predictions(probs=p.probs, labels=p.labels)
    mine, theirs = (ClassBars.compute(data, mode=mode).interval for data in (repeated, once))
    np.testing.assert_allclose(mine, theirs, atol=0.001)


def test_a_class_in_few_clusters_has_none():
    p, _ = _clustered(clusters=7)
    for mode in ("predicted-class", "one-vs-rest"):
        assert np.isnan(ClassBars.compute(p, mode=mode).interval).all()

"""Rows that count more than others, and rows that depend on each other."""

import numpy as np

import calviz
from tests.inputs.simulated import draw_labels


def two_classes(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    y = (rng.random(n) < p**1.3).astype(int)
    return calviz.Predictions(probs=p, labels=y, **columns)


def dependent(groups=60, rows=10, seed=1, share=0.5):
    """Calibrated rows of which those of one cluster share some of their luck."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(groups), rows)
    p = rng.uniform(0.2, 0.8, cluster.size)
    shared = rng.random(groups)[cluster]
    own = rng.random(cluster.size)
    luck = np.where(rng.random(cluster.size) < share, shared, own)
    return calviz.Predictions(probs=p, labels=(luck < p).astype(int), clusters=cluster)


def three_classes(n=300, seed=8, **columns):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([1, 1, 1], n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, **columns)

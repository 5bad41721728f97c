"""Simulated scores whose true calibration map is known."""

import numpy as np
import pytest


def simulate(n, k, temperature=1.0, seed=0, spread=2.0):
    """Logits z, and labels drawn from softmax(z / temperature)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=spread, size=(n, k))
    p = softmax(z / temperature)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return z, y


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture(scope="session")
def simulated():
    return simulate

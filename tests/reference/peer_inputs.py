"""Inputs of the recorded peers: made the same way where they are recorded and where they are tested."""

import numpy as np

#: Rows, classes, how many times too far apart the logits are.
CASES = {"two": (1_200, 2, 1.5), "five": (1_500, 5, 2.0), "twelve": (2_000, 12, 3.0)}


def inputs(case):
    """Probabilities, shape (n, K), and labels; classes differ in how far their logits are off."""
    n, k, factor = CASES[case]
    rng = np.random.default_rng(n)
    labels = rng.integers(k, size=n)
    z = rng.standard_normal((n, k))
    z[np.arange(n), labels] += 1.6
    z = factor * z * np.linspace(0.8, 1.2, k) + np.linspace(-0.3, 0.3, k)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True), labels


def losses(p, labels):
    """NLL and Brier score."""
    own = np.maximum(p[np.arange(labels.size), labels], 1e-300)
    brier = (p * p).sum(axis=1) + 1 - 2 * own
    return float(-np.log(own).mean()), float(brier.mean())

"""Labels and scores of models whose true probabilities are known, and how many of the scores a profile keeps."""

import numpy as np
from scipy import special


def softmax(z):
    """Return the probabilities of logits, shape (n, K)."""
    return special.softmax(z, axis=1)


def draw_labels(probs, rng):
    """Draw the label of each row, shape (n,), from its probabilities, shape (n, K)."""
    return (rng.random((len(probs), 1)) > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)


def simulate(n, k, temperature=1.0, seed=0, spread=2.0):
    """Return logits z, shape (n, k), and labels drawn from softmax(z / temperature)."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=spread, size=(n, k))
    return z, draw_labels(softmax(z / temperature), rng)


def keep_few_scores(monkeypatch, most):
    """Let profiles keep at most so many distinct scores; of more, cells are summed up."""
    for module in ("core.profile", "data.any_size.profiling", "data.any_size.sums"):
        monkeypatch.setattr(f"calviz.{module}.FEW_SCORES", most)

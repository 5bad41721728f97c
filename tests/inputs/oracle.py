"""Textbook definitions, written once more: what files must give, whatever their form."""

from __future__ import annotations

import numpy as np


def plain_metrics(probs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Accuracy, NLL, Brier score and ECE; bins [a, b) of the top probability."""
    rows = np.arange(len(labels))
    top, hit = probs.max(axis=1), probs.argmax(axis=1) == labels
    one_hot = np.zeros(probs.shape)
    one_hot[rows, labels] = 1
    values = {
        "accuracy": hit.mean(),
        "nll": -np.log(probs[rows, labels]).mean(),
        "brier": ((probs - one_hot) ** 2).sum(axis=1).mean(),
    }
    return {k: float(v) for k, v in values.items()} | {
        f"ece{m}": plain_ece(top, hit, m) for m in (10, 15)
    }


def plain_ece(score: np.ndarray, hit: np.ndarray, bins: int) -> float:
    place = np.minimum((score * bins).astype(int), bins - 1)
    return sum(abs(float((score - hit)[place == b].sum())) for b in range(bins)) / len(score)

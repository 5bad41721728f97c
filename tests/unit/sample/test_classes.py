"""The table of true classes against one class at a time."""

import numpy as np
import pytest

from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions
from calviz.metrics.cumulative import ks
from calviz.sample.sample import Sample
from calviz.sample.steps import make_steps
from calviz.sample.true_classes import class_table


def sample_of(score, hit, labels, k):
    names = tuple(f"class {i}" for i in range(k))
    data = ConfidencePredictions(confidence=score, correct=hit, labels=labels, class_names=names)
    return Sample(data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k", "decimals"), [(1, 3, None), (900, 12, None), (900, 12, 1)])
def test_every_class_alone(n, k, decimals, dtype):
    rng = np.random.default_rng(1)
    score = rng.random(n)
    if decimals is not None:
        score = np.round(score, decimals)
    score = score.astype(dtype)
    hit, labels = rng.random(n) < score, rng.integers(k - 2, size=n)  # two classes without rows
    table = class_table(sample_of(score, hit, labels, k))
    for c in range(k):
        rows = labels == c
        assert table.rows[c] == rows.sum()
        values = [getattr(table, f)[c] for f in ("accuracy", "confidence", "mcs", "ks")]
        if not rows.any():
            assert np.isnan(values).all()
            continue
        alone = BinaryEvents(score[rows], hit[rows])
        accuracy, confidence = hit[rows].mean(), score[rows].mean(dtype=float)
        expected = [
            accuracy,
            confidence,
            confidence - accuracy,
            float(ks(make_steps(alone))),
        ]
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_by_hand():
    table = class_table(sample_of([0.9, 0.8, 0.6], [True, False, False], [0, 0, 1], 3))
    np.testing.assert_allclose(table.accuracy, [0.5, 0, np.nan])
    np.testing.assert_allclose(table.confidence, [0.85, 0.6, np.nan])
    np.testing.assert_allclose(table.ece, [0.45, 0.6, np.nan])  # (0.1 + 0.8) / 2: bins of their own
    np.testing.assert_allclose(table.mcs, [0.35, 0.6, np.nan])
    np.testing.assert_allclose(table.ks, [0.4, 0.6, np.nan])  # 0.8 / 2 after the lower score

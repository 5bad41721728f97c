"""The numbers of some rows, by hand."""

import numpy as np
import pytest
from scipy.stats import beta

import calviz
from calviz.sample.chosen_rows import part_numbers
from calviz.sample.sample import Sample

PROBS = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
LABELS = np.array([0, 1, 1, 1])


def _sample(**columns):
    p = calviz.Predictions(probs=PROBS, labels=LABELS, **columns)
    return Sample(p, reduction="top-label")


def test_numbers_of_two_rows_by_hand():
    some = part_numbers(_sample(), np.array([0, 1]))
    assert (some.rows, some.share) == (2, 0.5)
    assert some.score == pytest.approx(0.85)
    assert some.observed == 0.5
    assert some.gap == pytest.approx(0.35)
    assert some.misses == 1  # the only mistake of all four rows
    losses = -np.log([0.9, 0.2, 0.7, 0.6])
    assert some.log_loss == pytest.approx(losses[:2].mean())
    assert some.loss_share == pytest.approx(losses[:2].sum() / losses.sum())
    # Clopper and Pearson's interval of 1 of 2, as quantiles of beta distributions.
    low, high = beta.ppf([0.025, 0.975], [1, 2], [2, 1])
    assert tuple(some.interval) == pytest.approx((0.85 - high, 0.85 - low))


def test_all_rows_are_the_sample_and_none_are_nothing():
    every = part_numbers(_sample())
    assert (every.rows, every.share, every.misses, every.loss_share) == (4, 1, 1, 1)
    none = part_numbers(_sample(), np.array([], dtype=int))
    assert none.rows == 0
    assert none.share == 0
    assert np.isnan(none.score)
    assert none.interval is None


def test_weights_count_and_rows_of_one_cluster_are_one_observation():
    weighted = part_numbers(_sample(weights=np.array([3.0, 1, 1, 1])), np.array([0, 1]))
    assert weighted.share == pytest.approx(4 / 6)
    assert weighted.observed == pytest.approx(0.75)
    alike = part_numbers(_sample(clusters=["a", "a", "b", "b"]), np.array([0, 1]))
    apart = part_numbers(_sample(), np.array([0, 1]))
    assert alike.interval.low < apart.interval.low
    assert alike.interval.high > apart.interval.high


def test_the_loss_of_all_rows_is_the_nll_with_the_same_limit():
    probs = np.array([[1 - 1e-20, 1e-20], [0.3, 0.7], [1.0, 0.0]])
    p = calviz.Predictions(probs=probs, labels=np.array([1, 1, 1]))
    by_hand = -(np.log(0.7) + 2 * np.log(np.finfo(float).eps)) / 3
    assert part_numbers(Sample(p)).log_loss == pytest.approx(by_hand)
    assert calviz.evaluate(p, ["nll"])["nll"].value == pytest.approx(by_hand)

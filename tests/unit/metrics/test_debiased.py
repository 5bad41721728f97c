"""Debiased ECE against uncertainty-calibration, and what its bias is."""

import calibration
import numpy as np
import pytest

import calviz


def evaluated(score, hit, **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, ["ece_debiased", "ece_l2"], reduction="positive", **options)


@pytest.mark.parametrize("bins", [5, 15])
def test_against_uncertainty_calibration(bins):
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    hit = rng.random(2000) < score**2
    binned = calibration.utils.bin(
        list(zip(score, hit.astype(int), strict=True)),
        calibration.utils.get_equal_bins(score, num_bins=bins),
    )
    theirs = calibration.utils.unbiased_square_ce(binned)
    mine = evaluated(score, hit, bins=bins)["ece_debiased"]
    assert mine.value == pytest.approx(theirs, rel=1e-9)
    assert mine.details["root"] == pytest.approx(np.sqrt(theirs), rel=1e-9)


def test_by_hand():
    # Two bins of two rows: gaps 0.2 and 0.3, hit rates 1/2 and 1.
    result = evaluated([0.6, 0.8, 0.3, 0.4][::-1], [1, 0, 1, 1][::-1], bins=2)
    # Ascending 0.3, 0.4 | 0.6, 0.8 with hits 1, 1 | 1, 0.
    expected = ((0.35 - 1) ** 2 + (0.7 - 0.5) ** 2 - 0.25) / 2
    assert result["ece_debiased"].value == pytest.approx(expected)


def test_bins_of_one_row_add_nothing():
    assert evaluated([0.3, 0.7], [1, 0], bins=2)["ece_debiased"].value == 0


@pytest.mark.slow
def test_is_around_zero_for_calibrated_scores():
    rng = np.random.default_rng(1)
    values = []
    for _ in range(200):
        score = rng.random(200)
        values.append(evaluated(score, rng.random(200) < score)["ece_debiased"].value)
    assert min(values) < 0
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(200)
    assert evaluated([0.4] * 10, [1] * 4 + [0] * 6)["ece_debiased"].details["root"] == 0

"""ECE and its family: by hand, against peers, against closed forms."""

import calibration
import numpy as np
import pytest
import relplot
from sklearn.calibration import calibration_curve

import calviz
from calviz.core.predictions import Predictions
from calviz.metrics import binned
from calviz.metrics import binned as mcs
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, bin_sums


def positive(score, hit, keys, **options):
    data = Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    result = calviz.evaluate(data, keys, reduction="positive", **options)
    return [result[key].value for key in keys]


def untied(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return score, rng.random(n) < score**1.5


def test_by_hand():
    # Bins (0, 1/2] and (1/2, 1]: means 0.3 and 0.8, hits 1/2 and 2/3.
    score, hit = [0.2, 0.4, 0.7, 0.8, 0.9], [1, 0, 1, 0, 1]
    ece, ece_l2, rmsce, mce, mcs = positive(
        score, hit, ["ece", "ece_l2", "rmsce", "mce", "mcs"], bins=2
    )
    low, high = 0.2, 0.8 - 2 / 3
    assert ece == pytest.approx((2 * low + 3 * high) / 5, abs=1e-15)
    assert ece_l2 == pytest.approx((2 * low**2 + 3 * high**2) / 5, abs=1e-15)
    assert rmsce == pytest.approx(np.sqrt(ece_l2), abs=1e-15)
    assert mce == pytest.approx(low, abs=1e-15)
    assert mcs == pytest.approx(0.6 - 0.6, abs=1e-15)


def test_equal_mass_and_sturges_by_hand():
    score, hit = [0.6, 0.7, 0.8, 0.9], [0, 1, 1, 1]
    equal_mass, sturges = positive(score, hit, ["ece_equal_mass", "ece_sturges"], bins=2)
    # Two rows each: gaps 0.65 - 0.5 and 0.85 - 1.
    assert equal_mass == pytest.approx(0.15, abs=1e-15)
    # ceil(log2 4) + 1 = 3 bins: all rows above 2/3 but the first, which is in (1/3, 2/3].
    assert sturges == pytest.approx((0.6 + 3 * 0.2) / 4, abs=1e-15)


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 100])
def test_ece_against_peers(bins):
    score, hit = untied()
    (ece,) = positive(score, hit, ["ece"], bins=bins)
    assert ece == pytest.approx(
        calibration.get_ece(score, hit.astype(int), num_bins=bins), abs=1e-12
    )
    if bins > 1:  # its bins are left-closed, which is the same here
        assert ece == pytest.approx(relplot.metrics.binnedECE(score, hit, bins), abs=1e-12)
    accuracy, mean = calibration_curve(hit, score, n_bins=bins)
    rows = np.histogram(score, bins, (0, 1))[0]
    (mce,) = positive(score, hit, ["mce"], bins=bins)
    gaps = np.abs(mean - accuracy)
    assert mce == pytest.approx(gaps.max(), abs=1e-12)
    assert ece == pytest.approx(np.average(gaps, weights=rows[rows > 0]), abs=1e-12)


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("bins", [2, 15, 40])
def test_against_uncertainty_calibration_also_with_ties(bins, decimals):
    score, hit = untied(1001)
    if decimals:
        score = np.round(score, decimals)
    labels = hit.astype(int)
    rmsce, equal_mass = positive(score, hit, ["rmsce", "ece_equal_mass"], bins=bins)
    peer = calibration.lower_bound_scaling_ce(
        score,
        labels,
        p=2,
        debias=False,
        num_bins=bins,
        binning_scheme=calibration.utils.get_equal_prob_bins,
    )
    assert rmsce == pytest.approx(peer, abs=1e-12)
    peer = calibration.get_ece_em(score, labels, num_bins=bins)
    assert equal_mass == pytest.approx(peer, abs=1e-12)


@pytest.mark.parametrize("key", ["ece", "ece_equal_mass", "ece_sturges"])
def test_one_sided_bins_give_the_mean_gap(key):
    # Every bin is overconfident by construction, so that all ECEs are mean score - accuracy.
    score, hit = np.linspace(0.54, 1, 400), np.arange(400) % 4 == 0
    value, mcs = positive(score, hit, [key, "mcs"])
    assert value == pytest.approx(mcs, abs=1e-12)
    assert mcs == pytest.approx(0.77 - 0.25, abs=1e-12)


def test_known_calibration_error():
    n = 50_000
    # P(hit | s) = s^2 with uniform s: the error is the integral of s - s^2, 1/6, its square s^2(1-s)^2, 1/30.
    rng = np.random.default_rng(0)
    score = rng.random(n)
    ece, ece_l2, mcs = positive(score, rng.random(n) < score**2, ["ece", "ece_l2", "mcs"])
    assert ece == pytest.approx(1 / 6, abs=0.008)
    assert ece_l2 == pytest.approx(1 / 30, abs=0.003)
    assert mcs == pytest.approx(1 / 6, abs=0.008)


@pytest.mark.parametrize("bins", [1, 3, 15, 200])
def test_mcs_is_the_difference_of_the_means_whatever_the_bins(bins):
    score, hit = untied(777)
    data = Predictions(probs=score, labels=hit)
    sums = bin_sums(Sample(data, "positive"), bins=bins)
    binned_form = (sums.weight * sums.gap).sum()
    assert binned_form == pytest.approx(score.mean() - hit.mean(), abs=1e-13)
    assert float(mcs.mcs(sums)) == pytest.approx(binned_form, abs=1e-13)


def test_values_keep_the_axis_of_resamples():
    one = BinSums(np.array([0.0, 0.5, 1.0]), np.arange(8.0).reshape(2, 2, 2))
    many = BinSums(one.edges, np.stack([one.cells] * 5))
    for value in (binned.ece, binned.ece_l2, binned.rmsce, binned.mce, mcs.mcs):
        assert np.shape(value(one)) == ()
        np.testing.assert_allclose(value(many), np.full(5, float(value(one))))

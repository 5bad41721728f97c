"""KDE-ECE and smECE against sums over all rows at every node, relplot, and a case with known truth."""

import numpy as np
import pytest
import relplot
from scipy.optimize import brentq

import calviz
from calviz.core.errors import OptionError
from calviz.metrics import smooth as smooth_module


def evaluated(score, hit, keys=("kde_ece", "kde_ece_l2", "smece", "ece"), **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, keys, reduction="positive", **options)


def sample(n=120, seed=0, *, saturated=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 0.6, size=n)
    score[:saturated] = np.arange(saturated) % 2
    return score, rng.random(n) < 0.15 + 0.6 * score


def direct_kde(score, hit, width, d):
    """Triweight densities with mirror images, summed over all rows at 2,001 points."""
    t = np.linspace(0, 1, 2001)
    images = np.concatenate([score, -score, 2 - score])

    def density(weight):
        u = (t[:, None] - images) / width
        kernel = np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0) / width
        return kernel @ np.tile(weight, 3) / len(score)

    rows, hits = density(np.ones(len(score))), density(hit.astype(float))
    frequency = np.clip(np.divide(hits, rows, out=np.zeros_like(rows), where=rows > 0), 0, 1)
    return np.trapezoid(np.abs(t - frequency) ** d * rows, t)


def direct_smooth(score, hit, sigma):
    """The same for the smoothed residuals of smECE, with two mirror images on each side."""
    t = np.linspace(0, 1, 1001)
    images = np.concatenate([sign * score + shift for shift in (-2, 0, 2) for sign in (1, -1)])
    kernel = np.exp(-(((t[:, None] - images) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
    return np.trapezoid(np.abs(kernel @ np.tile(score - hit, 6)) / len(score), t)


@pytest.mark.slow
@pytest.mark.parametrize("saturated", [0, 30])
@pytest.mark.parametrize("width", [None, 0.02, 0.3])
def test_kde_ece_is_the_direct_sum(width, saturated):
    score, hit = sample(saturated=saturated)
    result = evaluated(score, hit, **({} if width is None else {"bandwidth": width}))
    if width is None:
        width = 1.06 * score.std() * len(score) ** -0.2
        assert result["kde_ece"].params["bandwidth"] == pytest.approx(width)
    for key, d in (("kde_ece", 1), ("kde_ece_l2", 2)):
        assert result[key].value == pytest.approx(direct_kde(score, hit, width, d), rel=2e-3)


def test_kde_ece_of_one_score_is_the_gap_of_the_means():
    result = evaluated([0.7] * 10, [1] * 4 + [0] * 6)
    assert result["kde_ece"].value == pytest.approx(0.3)
    assert result["kde_ece_l2"].value == pytest.approx(0.09)


@pytest.mark.parametrize("width", [0, -1.0, np.inf, np.nan, "wide"])
def test_bandwidth_must_be_a_positive_number(width):
    with pytest.raises(OptionError, match="'bandwidth' must be a number above 0"):
        evaluated([0.1, 0.7], [0, 1], bandwidth=width)


def synthetic(beta0, beta1, n, rng):
    """Zhang et al. 2020, appendix E: eq. 13 and 14, the second class being the hit."""
    x = np.where(rng.random(n) < 0.5, -1.0, 1.0) + rng.standard_normal(n)
    first = 1 / (1 + np.exp(-beta0 - beta1 * x))
    hit = rng.random(n) < 1 / (1 + np.exp(2 * x))  # the first class is the one at -1
    truth = 1 / (1 + np.exp(-2 * (beta0 + np.log(1 / first - 1)) / beta1))
    return first, hit, truth


def true_error(beta0, beta1):
    """The mean gap between score and frequency over eq. 13's mixture of two normals, by quadrature."""
    x = np.linspace(-9, 9, 20_001)
    density = (np.exp(-((x - 1) ** 2) / 2) + np.exp(-((x + 1) ** 2) / 2)) / np.sqrt(8 * np.pi)
    gap = 1 / (1 + np.exp(-beta0 - beta1 * x)) - 1 / (1 + np.exp(2 * x))
    return np.trapezoid(np.abs(gap) * density, x)


@pytest.mark.parametrize(("betas", "percent"), [((0.5, -1.5), 7.44), ((0.2, -1.9), 2.35)])
def test_the_truth_of_appendix_e(betas, percent):
    # The mean of the gap at each row is the published true error.
    score, _, frequency = synthetic(*betas, 200_000, np.random.default_rng(2))
    assert true_error(*betas) == pytest.approx(np.abs(score - frequency).mean(), rel=0.01)
    assert true_error(*betas) == pytest.approx(percent / 100, abs=5e-5)


@pytest.mark.parametrize("n", [64, 128, 256, 512, 1024])
@pytest.mark.parametrize("betas", [(0.5, -1.5), (0.2, -1.9)], ids=["less", "better"])
def test_kde_ece_is_nearer_to_the_truth_than_fifteen_bins(betas, n):
    rng = np.random.default_rng(7)
    truth = true_error(*betas)
    apart = {"kde_ece": [], "ece": []}
    for _ in range(100):
        score, hit, _ = synthetic(*betas, n, rng)
        result = evaluated(score, hit, ("kde_ece", "ece"))
        for key, errors in apart.items():
            errors.append(abs(result[key].value - truth))
    assert np.mean(apart["kde_ece"]) < np.mean(apart["ece"])


def test_the_closed_form_of_the_synthetic_case_holds():
    # Rows near one score have its frequency of hits.
    score, hit, truth = synthetic(0.5, -1.5, 400_000, np.random.default_rng(1))
    bins = (score * 20).astype(int)
    rows = np.bincount(bins)
    np.testing.assert_allclose(
        np.bincount(bins, hit) / rows, np.bincount(bins, truth) / rows, atol=0.02
    )


@pytest.mark.parametrize("saturated", [0, 30])
@pytest.mark.parametrize("seed", [0, 1])
def test_smece_is_the_fixed_point_of_the_direct_integral(seed, saturated):
    score, hit = sample(seed=seed, saturated=saturated)
    direct = brentq(lambda sigma: direct_smooth(score, hit, sigma) - sigma, 1e-3, 1, xtol=1e-7)
    assert evaluated(score, hit)["smece"].value == pytest.approx(direct, rel=2e-5)


def test_smece_agrees_with_relplot_where_nothing_is_saturated():
    rng = np.random.default_rng(3)
    score = rng.uniform(0.1, 0.9, size=2000)
    hit = rng.random(2000) < score**1.5
    theirs = relplot.smECE(score, hit.astype(float))
    # It bisects ten times for the width only.
    assert evaluated(score, hit)["smece"].value == pytest.approx(theirs, rel=1e-3)


def test_smece_of_one_score_is_the_gap():
    assert evaluated([0.7] * 10, [1] * 4 + [0] * 6)["smece"].value == pytest.approx(0.3)


def test_smece_of_perfect_scores_is_zero():
    assert evaluated([0.0, 1.0, 1.0], [0, 1, 1])["smece"].value == 0


@pytest.mark.slow
def test_error_bars_are_those_of_resampled_rows_and_redrawn_labels():
    keys = ("kde_ece", "kde_ece_l2", "smece")
    score, hit = sample(300, seed=5)
    width = 1.06 * score.std() * 300**-0.2
    rng = np.random.default_rng(11)

    def values(score, hit):
        return [r.value for r in evaluated(score, hit, keys, bandwidth=width)]

    rows = [rng.integers(300, size=300) for _ in range(250)]
    drawn = np.array([values(score[r], hit[r]) for r in rows])
    calibrated = np.array([values(score, rng.random(300) < score) for _ in range(250)])
    result = evaluated(score, hit, keys, ci=True, interval="percentile")
    for key, one, redrawn in zip(keys, drawn.T, calibrated.T, strict=True):
        # The quantiles of 250 draws are themselves uncertain by about a sixth of the spread.
        slack = 0.25 * np.std(one)
        ends = np.quantile(one, [0.025, 0.975])
        assert result[key].interval == pytest.approx(ends, abs=2 * slack)
        assert result[key].noise_floor.mean == pytest.approx(np.mean(redrawn), rel=0.06)


def test_values_of_many_rows_and_of_their_summary_agree():
    # Above 2,048 distinct scores resamples are of merged steps, in single precision.
    rng = np.random.default_rng(4)
    score = rng.random(20_000)
    result = evaluated(score, rng.random(20_000) < score**1.3, ci=True, resamples=200)
    for key in ("kde_ece", "kde_ece_l2", "smece"):
        low, high = result[key].interval
        assert low < result[key].value < high
        assert (low + high) / 2 == pytest.approx(result[key].value, rel=0.05)


@pytest.mark.parametrize("kind", ["uniform", "ends", "narrow", "tied"])
def test_values_are_as_exact_as_the_reference_page_says(monkeypatch, kind):
    # The limits in calviz/report/reference.toml: within 0.00001 and 0.0000001 of a grid that is 32 times as fine.
    rng = np.random.default_rng(0)
    score = {
        "uniform": rng.random(800),
        "ends": rng.beta(0.3, 0.2, 800),
        "narrow": np.clip(rng.normal(0.9, 0.05, 800), 0, 1),
        "tied": rng.random(800).round(1),
    }[kind]
    hit = rng.random(800) < score**1.5
    coarse = evaluated(score, hit)
    monkeypatch.setattr(smooth_module, "VALUE_CELLS", 32 * smooth_module.VALUE_CELLS)
    monkeypatch.setattr(smooth_module, "SMECE_NODES", 32 * smooth_module.SMECE_NODES + 1)
    fine = evaluated(score, hit)
    for key, near in (("kde_ece", 1e-5), ("kde_ece_l2", 1e-5), ("smece", 1e-7)):
        assert coarse[key].value == pytest.approx(fine[key].value, abs=near)

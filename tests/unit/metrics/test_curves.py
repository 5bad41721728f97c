"""Calibration curves and smooth errors."""

import json

import numpy as np
import pytest
import relplot
from scipy import optimize, stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit, logit

from benchmarks import record_r
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents
from calviz.metrics import smooth as smooth_module
from calviz.sample import logistic_curves as flexible_curve
from calviz.sample.logistic_curves import band, fitted_curve
from calviz.sample.steps import make_steps
from tests.inputs.reliability import event_metrics

# ---- Flexible calibration curves against SciPy, closed forms and known truths


KEYS = ["ici", "e50", "e90", "emax", "eci"]


def steps_of(score, hit):
    return make_steps(BinaryEvents(np.asarray(score, float), np.asarray(hit, bool)))


def bent(n, seed=0, shape=lambda z: np.sign(z) * z * z / 2):
    z = np.random.default_rng(seed).normal(scale=2, size=n)
    score, truth = expit(z), expit(shape(z))
    return score, np.random.default_rng(seed + 1).random(n) < truth, truth


def evaluated(score, hit, keys=KEYS, **options):
    return event_metrics(score, hit, keys, **options)


def test_a_distortion_that_a_line_does_not_see():
    score, hit, truth = bent(20_000)
    true = np.abs(truth - score)

    def apart(z):
        return abs(expit(np.sign(z) * z * z / 2) - expit(z)) * stats.norm.pdf(z, scale=2)

    # Of all scores, not only of these.
    ici = sum(quad(apart, *ends)[0] for ends in ((-20, -2), (-2, 0), (0, 2), (2, 20)))
    assert true.mean() == pytest.approx(ici, abs=5 * true.std() / 20_000**0.5)
    for kind, near in (("spline", 0.004), ("loess", 0.012)):
        e = evaluated(score, hit, curve=kind)
        assert e["ici"].value == pytest.approx(ici, abs=near)
        assert e["e90"].value == pytest.approx(np.quantile(true, 0.9), abs=2 * near)
        assert e["eci"].value == pytest.approx(100 * (true**2).mean(), abs=25 * near)
    assert evaluated(score, hit, ["ici"], curve="logistic")["ici"].value < ici / 2


def test_the_spline_is_at_the_optimum_of_its_penalised_likelihood():
    score, hit, _ = bent(150)
    z, hit = np.sort(logit(score)), hit[np.argsort(score)]
    rank = np.arange(150) + 0.5
    knots = np.interp(np.linspace(0, 150, flexible_curve.KNOTS), rank, z)
    scale = z.std()

    def loss(values):
        g = CubicSpline(knots / scale, values, bc_type="natural")
        at, left, right = z / scale, knots[0] / scale, knots[-1] / scale
        inside = g(np.clip(at, left, right))
        inside += g(left, 1) * np.minimum(at - left, 0) + g(right, 1) * np.maximum(at - right, 0)
        rough = sum(
            quad(lambda u: float(g(u, 2)) ** 2, a, b)[0]
            for a, b in zip(knots[:-1] / scale, knots[1:] / scale, strict=True)
        )
        margin = z + inside
        likelihood = np.logaddexp(0, margin) - hit * margin
        return likelihood.sum() + flexible_curve.STRENGTH * rough / 2, margin

    solution = optimize.minimize(
        lambda v: loss(v)[0], np.zeros(knots.size), method="BFGS", options={"gtol": 1e-5}
    )
    wanted = expit(loss(solution.x)[1])
    np.testing.assert_allclose(
        fitted_curve(steps_of(score, hit_of(score, hit)), "spline"), wanted, atol=2e-4
    )


def hit_of(score, sorted_hit):
    hit = np.empty(score.size, dtype=bool)
    hit[np.argsort(score)] = sorted_hit
    return hit


def test_loess_by_a_local_quadratic_fit_of_its_own():
    score, hit, _ = bent(120, seed=3)
    view = steps_of(score, hit)
    order = np.argsort(score)
    s, h = score[order], hit[order].astype(float)
    wanted = []
    for x in s:
        reach = np.abs(s - x)
        width = np.sort(reach)[int(120 * 0.75) - 1]
        weight = np.clip(1 - (reach / width) ** 3, 0, None) ** 1.5
        wanted.append(np.polyval(np.polyfit(s - x, h, 2, w=weight), 0.0))
    np.testing.assert_allclose(fitted_curve(view, "loess"), np.clip(wanted, 0, 1), atol=1e-6)


@pytest.mark.parametrize("kind", ["spline", "loess", "logistic"])
def test_resamples_are_fitted_as_their_rows_are(kind):
    score, hit, _ = bent(400, seed=5)
    view = steps_of(score, hit)
    drawn = view.bootstrap(np.random.default_rng(0), 3)
    result = fitted_curve(drawn, kind)
    for b in range(3):
        count, hits = drawn.count[b].astype(int), drawn.hits[b].astype(int)
        labels = np.concatenate([np.arange(c) < k for c, k in zip(count, hits, strict=True)])
        own = fitted_curve(steps_of(np.repeat(view.score, count), labels), kind)
        # Knots and half-widths stay those of the sample.
        near = 1e-4 if kind == "logistic" else 0.05
        assert np.abs(result[b][count > 0] - own).mean() < near


@pytest.mark.parametrize("kind", ["spline", "loess"])
def test_the_band_holds_the_truth_as_often_as_it_says(kind):
    inside = []
    for seed in range(60):
        score, hit, _ = bent(1_000, seed=10 + seed, shape=lambda z: 0.3 + 0.8 * z)
        computed_band = band(steps_of(score, hit), kind, points=9)
        truth = expit(0.3 + 0.8 * logit(computed_band.score))
        inside.append(((computed_band.low <= truth) & (truth <= computed_band.high))[1:-1])
    assert 0.9 <= np.mean(inside) <= 0.99


def test_p_values_are_uniform_where_scores_are_calibrated():
    rng = np.random.default_rng(8)
    p_values = []
    for _ in range(60):
        score = rng.beta(1, 2, size=150)
        e = evaluated(score, rng.random(150) < score, ["ici"], noise_floor=True, resamples=59)
        p_values.append(e["ici"].noise_floor.p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.parametrize(
    ("score", "hit"),
    [
        ([0.3, 0.3], [1, 1]),
        ([0.9], [1]),
        ([0.0, 0.0, 1.0], [0, 1, 1]),
        ([0.1, 0.2, 0.8], [0, 0, 1]),
    ],
)
def test_few_rows_have_a_flexible_curve(score, hit):
    for kind in ("spline", "loess"):
        e = evaluated(score, hit, curve=kind, ci=True, resamples=20)
        assert all(r.value >= 0 for r in e)
        assert np.isfinite(band(steps_of(score, hit), kind).low).all()


def test_an_unknown_curve():
    with pytest.raises(OptionError, match="'curve' must be one of spline, loess, logistic"):
        evaluated([0.2, 0.6], [0, 1], ["ici"], curve="lowess")


@pytest.mark.parametrize(("name", "near"), [("small", 2e-4), ("tied", 1e-7), ("large", 3e-4)])
def test_loess_is_that_of_r(name, near):
    """Of R's local fits; by default R has them at the corners of a grid, and blends between these."""
    score, hit = record_r.cases()[name]
    expected = json.loads(record_r.RECORDED.read_text())["values"][name]
    view = steps_of(score, hit)
    fitted = np.interp(score[:: record_r.EVERY], view.score, fitted_curve(view, "loess"))
    np.testing.assert_allclose(fitted, expected["direct"], atol=near)
    np.testing.assert_allclose(fitted, expected["usual"], atol=0.01)
    ici = evaluated(score, hit, ["ici"], curve="loess")["ici"].value
    assert ici == pytest.approx(expected["ici"][0], abs=0.001)


# ---- KDE-ECE and smECE against sums over all rows at every node, relplot, and a case with known truth


def evaluated_of_smooth(score, hit, keys=("kde_ece", "kde_ece_l2", "smece", "ece"), **options):
    return event_metrics(score, hit, keys, **options)


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
    result = evaluated_of_smooth(score, hit, **({} if width is None else {"bandwidth": width}))
    if width is None:
        width = 1.06 * score.std() * len(score) ** -0.2
        assert result["kde_ece"].params["bandwidth"] == pytest.approx(width)
    for key, d in (("kde_ece", 1), ("kde_ece_l2", 2)):
        assert result[key].value == pytest.approx(direct_kde(score, hit, width, d), rel=2e-3)


def test_kde_ece_of_one_score_is_the_gap_of_the_means():
    result = evaluated_of_smooth([0.7] * 10, [1] * 4 + [0] * 6)
    assert result["kde_ece"].value == pytest.approx(0.3)
    assert result["kde_ece_l2"].value == pytest.approx(0.09)


@pytest.mark.parametrize("width", [0, -1.0, np.inf, np.nan, "wide"])
def test_bandwidth_must_be_a_positive_number(width):
    with pytest.raises(OptionError, match="'bandwidth' must be a number above 0"):
        evaluated_of_smooth([0.1, 0.7], [0, 1], bandwidth=width)


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
        result = evaluated_of_smooth(score, hit, ("kde_ece", "ece"))
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
    assert evaluated_of_smooth(score, hit)["smece"].value == pytest.approx(direct, rel=2e-5)


def test_smece_agrees_with_relplot_where_nothing_is_saturated():
    rng = np.random.default_rng(3)
    score = rng.uniform(0.1, 0.9, size=2000)
    hit = rng.random(2000) < score**1.5
    theirs = relplot.smECE(score, hit.astype(float))
    # It bisects ten times for the width only.
    assert evaluated_of_smooth(score, hit)["smece"].value == pytest.approx(theirs, rel=1e-3)


def test_smece_of_one_score_is_the_gap():
    assert evaluated_of_smooth([0.7] * 10, [1] * 4 + [0] * 6)["smece"].value == pytest.approx(0.3)


def test_smece_of_perfect_scores_is_zero():
    assert evaluated_of_smooth([0.0, 1.0, 1.0], [0, 1, 1])["smece"].value == 0


@pytest.mark.slow
def test_error_bars_are_those_of_resampled_rows_and_redrawn_labels():
    keys = ("kde_ece", "kde_ece_l2", "smece")
    score, hit = sample(300, seed=5)
    width = 1.06 * score.std() * 300**-0.2
    rng = np.random.default_rng(11)

    def values(score, hit):
        return [r.value for r in evaluated_of_smooth(score, hit, keys, bandwidth=width)]

    rows = [rng.integers(300, size=300) for _ in range(250)]
    drawn = np.array([values(score[r], hit[r]) for r in rows])
    calibrated = np.array([values(score, rng.random(300) < score) for _ in range(250)])
    result = evaluated_of_smooth(score, hit, keys, ci=True, interval="percentile")
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
    result = evaluated_of_smooth(score, rng.random(20_000) < score**1.3, ci=True, resamples=200)
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
    coarse = evaluated_of_smooth(score, hit)
    monkeypatch.setattr(smooth_module, "VALUE_CELLS", 32 * smooth_module.VALUE_CELLS)
    monkeypatch.setattr(smooth_module, "SMECE_NODES", 32 * smooth_module.SMECE_NODES + 1)
    fine = evaluated_of_smooth(score, hit)
    for key, near in (("kde_ece", 1e-5), ("kde_ece_l2", 1e-5), ("smece", 1e-7)):
        assert coarse[key].value == pytest.approx(fine[key].value, abs=near)

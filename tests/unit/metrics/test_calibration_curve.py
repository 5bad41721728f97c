"""Flexible calibration curves against SciPy, closed forms and known truths."""

import json

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit

import calviz
from benchmarks import record_r
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents
from calviz.sample import logistic_curves as flexible_curve
from calviz.sample.logistic_curves import band, fitted_curve
from calviz.sample.steps import make_steps

KEYS = ["ici", "e50", "e90", "emax", "eci"]


def steps_of(score, hit):
    return make_steps(BinaryEvents(np.asarray(score, float), np.asarray(hit, bool)))


def bent(n, seed=0, shape=lambda z: np.sign(z) * z * z / 2):
    z = np.random.default_rng(seed).normal(scale=2, size=n)
    score, truth = expit(z), expit(shape(z))
    return score, np.random.default_rng(seed + 1).random(n) < truth, truth


def evaluated(score, hit, keys=KEYS, **options):
    p = calviz.Predictions(probs=np.asarray(score), labels=np.asarray(hit, int))
    return calviz.evaluate(p, keys, reduction="positive", **options)


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

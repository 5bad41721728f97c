import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

import calviz
from calviz.core.events import BinaryEvents
from calviz.core.predictions import Predictions
from calviz.recalibrators.spline import (
    ClasswiseSpline,
    SplineRecalibrator,
    fit_bounded,
    fit_spline,
    pieces,
    slopes,
    spline_map,
    values,
)
from tests.inputs.simulated import simulate, softmax


def test_the_natural_spline_is_scipys():
    rng = np.random.default_rng(0)
    knots = np.linspace(0, 1, 7)
    at_knots = rng.normal(size=7)
    other = CubicSpline(knots, at_knots, bc_type="natural")
    t = np.linspace(0, 1, 400)
    # Fitting the spline to itself gives it back.
    cubics = fit_spline([(t, other(t))], 7, "natural")
    np.testing.assert_allclose(values(cubics, t), other(t), atol=1e-9)
    np.testing.assert_allclose(slopes(cubics, t), other(t, 1), atol=1e-8)


def test_the_fit_is_least_squares():
    rng = np.random.default_rng(1)
    t = np.sort(rng.random(300))
    v = rng.normal(size=300)
    knots = np.linspace(0, 1, 6)
    basis = np.stack([CubicSpline(knots, e, bc_type="natural")(t) for e in np.eye(6)], axis=1)
    other = basis @ np.linalg.lstsq(basis, v)[0]
    np.testing.assert_allclose(values(fit_spline([(t, v)], 6, "natural"), t), other, atol=1e-9)


@pytest.mark.parametrize("run_out", ["parabolic", "cubic"])
def test_run_outs(run_out):
    cubics = pieces(6, run_out) @ np.random.default_rng(0).normal(size=6)
    m = np.append(2 * cubics[:, 2], 2 * cubics[-1, 2] + 6 * cubics[-1, 3] / 5)
    if run_out == "parabolic":
        assert m[0] == pytest.approx(m[1])
        assert m[-1] == pytest.approx(m[-2])
    else:
        assert m[0] - m[1] == pytest.approx(m[1] - m[2])
        assert m[-1] - m[-2] == pytest.approx(m[-2] - m[-3])


def test_a_cubic_is_its_own_spline_with_cubic_run_out():
    t = np.linspace(0, 1, 200)
    v = 1 - 2 * t + 3 * t**2 - 0.7 * t**3
    cubics = fit_spline([(t, v)], 6, "cubic")
    np.testing.assert_allclose(slopes(cubics, t), -2 + 6 * t - 2.1 * t**2, atol=1e-8)


def test_finds_the_true_map():
    rng = np.random.default_rng(3)
    score = rng.random(200_000)
    hit = rng.random(score.size) < score**2
    fitted = spline_map(BinaryEvents(score, hit).ordered)
    new = np.linspace(0.1, 0.9, 30)
    np.testing.assert_allclose(fitted(new), new**2, atol=0.02)


def test_tied_scores_get_the_hit_rate_of_their_group():
    rng = np.random.default_rng(3)
    score = rng.random(100_000).round(1)
    hit = rng.random(score.size) < score**2
    fitted = spline_map(BinaryEvents(score, hit).ordered)
    tied = np.arange(1, 10) / 10
    assert fitted.x.size <= 11
    np.testing.assert_allclose(fitted(tied), tied**2, atol=0.02)


@pytest.mark.parametrize("k", [2, 10])
def test_brings_ks_down_on_other_rows(k):
    z, y = simulate(20_000, k, temperature=2.2)
    p = softmax(z)
    fitted = SplineRecalibrator().fit(p[:10_000], y[:10_000])
    rest, labels = p[10_000:], y[10_000:]

    def ks(q, reduction="top-label"):
        data = Predictions(probs=q, labels=labels)
        return calviz.evaluate(data, ["ks"], reduction=reduction)["ks"].value

    assert ks(rest) > 0.1
    assert ks(fitted.transform(rest)) < 0.012
    by_class = ClasswiseSpline().fit(p[:10_000], y[:10_000]).transform(rest)
    assert ks(by_class, "class:1") < 0.012


def test_keeps_the_predicted_class_wherever_the_confidence_allows_it():
    z, y = simulate(5_000, 6, temperature=4)
    p = softmax(z)
    fitted = SplineRecalibrator().fit(p, y)
    out = fitted.transform(p)
    confidence = fitted.map_(p.max(axis=1))
    possible = confidence >= 1 / 6
    assert possible.mean() > 0.5
    np.testing.assert_array_equal(out.argmax(axis=1)[possible], p.argmax(axis=1)[possible])
    np.testing.assert_allclose(out[np.arange(y.size), p.argmax(axis=1)], confidence, atol=1e-9)
    # The order of the others stays.
    np.testing.assert_array_equal(
        np.argsort(out, axis=1)[possible][:, :4], np.argsort(p, axis=1)[possible][:, :4]
    )


def test_within_top_2_sets_the_sum():
    z, y = simulate(4_000, 5, temperature=2)
    p = softmax(z)
    fitted = SplineRecalibrator(mode="within-top-r", r=2).fit(p, y)
    out = fitted.transform(p)
    top = np.argsort(-p, axis=1)[:, :2]
    rows = np.arange(y.size)[:, None]
    np.testing.assert_allclose(
        out[rows, top].sum(axis=1), fitted.map_(p[rows, top].sum(axis=1)), atol=1e-9
    )
    ratio = out[rows, top] / p[rows, top]
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-9)


def saturated(n=600):
    """Scores whose hits jump, so that the derivative of a free spline leaves [0, 1]."""
    rng = np.random.default_rng(4)
    score = np.sort(rng.random(n))
    return BinaryEvents(score, score > 0.6)


def test_the_bounded_spline_is_the_quadratic_programme():
    events = saturated()
    n = events.n
    t, v = np.arange(1, n + 1) / n, np.cumsum(events.ordered.hit) / n
    knots = np.linspace(0, 1, 6)
    cubics = fit_bounded([(t, v)], 6, "natural")
    fine = np.linspace(0, 1, 1_001)
    slope = slopes(cubics, fine)
    assert slope.min() > -1e-4
    assert slope.max() < 1 + 1e-4
    # A general solver, with SciPy's own natural splines.
    basis = np.stack([CubicSpline(knots, row, bc_type="natural")(t) for row in np.eye(6)], axis=1)
    rates = np.stack(
        [CubicSpline(knots, row, bc_type="natural")(fine, 1) for row in np.eye(6)], axis=1
    )
    free = np.linalg.lstsq(basis, v)[0]
    assert (rates @ free).max() > 1.1
    assert (rates @ free).min() < -0.02
    other = minimize(
        lambda a: ((basis @ a - v) ** 2).mean(),
        knots,
        jac=lambda a: 2 * basis.T @ (basis @ a - v) / n,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda a: rates[::5] @ a, "jac": lambda a: rates[::5]},
            {"type": "ineq", "fun": lambda a: 1 - rates[::5] @ a, "jac": lambda a: -rates[::5]},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert ((values(cubics, t) - v) ** 2).mean() == pytest.approx(other.fun, rel=1e-3)


def test_bounds_that_are_not_reached_change_nothing():
    rng = np.random.default_rng(0)
    score = np.sort(0.2 + 0.6 * rng.random(4_000))
    v = np.cumsum(rng.random(4_000) < score) / 4_000
    points = [(np.arange(1, 4_001) / 4_000, v)]
    bounded, free = fit_bounded(points, 6, "natural"), fit_spline(points, 6, "natural")
    np.testing.assert_allclose(bounded, free, atol=1e-6)


def test_a_bounded_map_is_one_of_probabilities():
    events = saturated()
    p = np.stack([1 - events.score, events.score], axis=1)
    fitted = ClasswiseSpline(bounded=True).fit(p, events.hit.astype(int))
    out = fitted.transform(p)
    assert out.min() >= 0
    np.testing.assert_allclose(out.sum(axis=1), 1)
    assert out[:100, 1].max() < 0.05
    assert out[-100:, 1].min() > 0.9


@pytest.mark.parametrize("cap", [False, True])
def test_a_remainder_too_small_to_rescale_is_shared_evenly_in_the_snippet_too(cap):
    z, y = simulate(300, 3, temperature=2.0, seed=0)
    fitted = SplineRecalibrator(cap=cap, floor=None).fit(softmax(z), y)
    rows = np.array([[1.0, 3e-310, 1e-310], [0.0, 1.0, 5e-324], [1e-320, 0.0, 1.0]])
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    out = fitted.transform(rows)
    np.testing.assert_allclose(program["recalibrate"](rows), out, atol=1e-6)
    np.testing.assert_allclose(out.sum(axis=1), 1)

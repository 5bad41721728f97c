import numpy as np
import pytest

from calviz.recalibrators.gaussian_process import GaussianProcess, LatentProblem, warp
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from tests.inputs.simulated import draw_labels, simulate, softmax


def nll(p, y):
    return -np.log(p[np.arange(y.size), y]).mean()


def test_gradient():
    z, y = simulate(300, 5)
    x = np.log(softmax(z))
    problem = LatentProblem(x, y, 4)
    theta = 0.3 * np.random.default_rng(0).normal(size=4 + 10 + 2)
    _, gradient = problem.negative_bound(theta)
    step = 1e-3
    other = [
        (problem.negative_bound(theta + step * e)[0] - problem.negative_bound(theta - step * e)[0])
        / (2 * step)
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, other, atol=2e-4)


def test_the_bound_with_a_certain_function_is_the_likelihood():
    """With nothing left uncertain, what is bounded is the softmax likelihood itself."""
    z, y = simulate(200, 3)
    x = np.log(softmax(z))
    problem = LatentProblem(x, y, 3)
    total, responsibilities = problem.responsibilities(np.zeros(problem.grid.size))
    assert total / 200 == pytest.approx(0, abs=1e-6)  # log sum exp of log-probabilities
    np.testing.assert_allclose(responsibilities.sum(), 200, rtol=1e-5)
    np.testing.assert_allclose(problem.label_counts.sum(), 200)


def test_a_row_that_counts_as_several_is_as_many_rows():
    z, y = simulate(200, 3)
    x, counts = np.log(softmax(z)), np.random.default_rng(1).integers(1, 4, 200)
    many = np.repeat(np.arange(200), counts)
    theta = 0.3 * np.random.default_rng(0).normal(size=4 + 10 + 2)
    weighted = LatentProblem(x, y, 4, counts.astype(float)).negative_bound(theta)
    copied = LatentProblem(x[many], y[many], 4).negative_bound(theta)
    assert weighted[0] == pytest.approx(copied[0], rel=1e-6)
    np.testing.assert_allclose(weighted[1], copied[1], atol=1e-6)


def test_weights_of_the_method_add_up_to_their_effective_number(monkeypatch):
    z, y = simulate(200, 3)
    w, seen = np.random.default_rng(1).exponential(size=200), []
    original = LatentProblem.__init__

    def noted(self, x, labels, inducing, weights=None):
        seen.append(weights)
        original(self, x, labels, inducing, weights)

    monkeypatch.setattr(LatentProblem, "__init__", noted)
    GaussianProcess().fit(softmax(z), y, sample_weight=w)
    np.testing.assert_allclose(seen[0], w * w.sum() / (w @ w))


def test_warp_is_fine_near_zero():
    np.testing.assert_allclose(warp(np.array([0.0, -np.expm1(1.0)])), [0, -1], atol=1e-12)


@pytest.mark.slow
def test_learns_what_a_temperature_cannot():
    rng = np.random.default_rng(2)
    n, k = 6_000, 8
    z = rng.normal(scale=2.5, size=(n, k))
    log_p = np.log(softmax(z))
    # The true map bends: sharp near 0, flat far below.
    true = softmax(-3 * np.log1p(-log_p / 3))
    y = draw_labels(true, rng)
    p = np.exp(log_p)
    half = slice(0, n // 2)
    rest = slice(n // 2, n)
    gp = GaussianProcess().fit(p[half], y[half])
    ts = TemperatureScaling().fit(p[half], y[half])
    best = nll(true[rest], y[rest])
    assert nll(gp.transform(p[rest]), y[rest]) - best < 0.2 * (
        nll(ts.transform(p[rest]), y[rest]) - best
    )


def test_is_temperature_scaling_where_that_is_right():
    z, y = simulate(4_000, 5, temperature=1.7)
    gp = GaussianProcess(input="logits").fit(z, y)
    np.testing.assert_allclose(gp.transform(z), softmax(z / 1.7), atol=0.03)


@pytest.mark.slow
def test_large_data_are_thinned_and_that_is_said():
    z, y = simulate(400, 5)
    fitted = GaussianProcess(max_pairs=1_000, input="logits").fit(z, y)
    assert fitted.warnings_[0] == "fitted on one row in 2 (200 of 400), to limit the time it takes."


@pytest.mark.slow
def test_the_prior_mean_is_temperature_scaling():
    z, y = simulate(400, 3, temperature=2.0, seed=5)
    p = softmax(z)
    temperature = TemperatureScaling().fit(p, y).temperature_
    fitted = GaussianProcess().fit(p, y)
    assert fitted.scale_ == pytest.approx(1 / temperature, rel=1e-6)
    # Far below all scores that were seen the function goes back to it, up to a constant.
    x = np.exp(np.array([-60.0, -50.0]))
    assert np.diff(fitted.curve(x))[0] == pytest.approx(10 / temperature, rel=0.05)

import numpy as np
import pytest
from scipy.optimize import minimize

from calviz.recalibrators.temperature_scaling import (
    EnsembleTemperatureScaling,
    likelihood_weights,
    squared_error_weights,
)
from tests.inputs.simulated import simulate, softmax


def by_search(loss, start=(0.4, 0.3, 0.3)):
    return minimize(
        loss,
        start,
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )


@pytest.mark.parametrize("seed", range(12))
def test_weights_of_the_squared_error_are_those_of_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(5, 3))
    gram, own = a.T @ a, rng.normal(size=3)
    w = squared_error_weights(gram, own)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)

    def loss(v):
        return v @ gram @ v - 2 * own @ v

    assert loss(w) <= by_search(loss).fun + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_weights_of_the_likelihood_are_those_of_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    own = rng.random((200, 3)) ** rng.uniform(0.2, 3, size=3)
    w = likelihood_weights(own)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)

    def loss(v):
        return -np.log(own @ v).mean()

    assert loss(w) <= by_search(loss).fun + 1e-9


@pytest.mark.parametrize("loss", ["mse", "nll"])
def test_is_never_worse_than_temperature_scaling_on_its_own_rows(loss):
    z, y = simulate(600, 6, temperature=1.4)
    # Some labels at random: the uniform part has something to do.
    y[::5] = np.random.default_rng(0).integers(0, 6, y[::5].size)
    p = softmax(2.5 * z)
    fitted = EnsembleTemperatureScaling(loss=loss).fit(p, y)

    def score(q):
        if loss == "nll":
            return -np.log(q[np.arange(y.size), y]).mean()
        return ((q - np.eye(6)[y]) ** 2).sum(axis=1).mean()

    tempered = softmax(np.log(p) / fitted.temperature_)
    assert score(fitted.transform(p)) < score(tempered)
    assert fitted.weights_[2] > 0.02
    w = fitted.weights_
    np.testing.assert_allclose(fitted.transform(p), w[0] * tempered + w[1] * p + w[2] / 6)


def test_a_calibrated_model_with_temperature_one_has_weights():
    """The two components coincide, so that their weights are not determined; their sum is."""
    z = np.array([[np.log(3), 0.0]] * 4)
    fitted = EnsembleTemperatureScaling(input="logits").fit(z, [0, 0, 0, 1])
    assert fitted.temperature_ == pytest.approx(1)
    np.testing.assert_allclose(fitted.transform(z)[:, 0], 0.75)


@pytest.mark.parametrize("loss", ["mse", "nll"])
def test_a_joint_search_finds_what_a_general_solver_finds(loss):
    z, y = simulate(500, 4, temperature=1.4, seed=3)
    y[::6] = np.random.default_rng(1).integers(0, 4, y[::6].size)
    p = softmax(2.5 * z)
    log_p = np.log(p)

    def value(q):
        if loss == "nll":
            return -np.log(q[np.arange(y.size), y]).mean()
        return ((q - np.eye(4)[y]) ** 2).sum(axis=1).mean()

    def objective(v):
        a, b = v[:2]
        return value(a * softmax(log_p / v[2]) + b * p + (1 - a - b) / 4)

    joint = EnsembleTemperatureScaling(loss=loss, joint=True).fit(p, y)
    ours = value(joint.transform(p))
    assert ours <= value(EnsembleTemperatureScaling(loss=loss).fit(p, y).transform(p)) + 1e-15
    start = [*joint.weights_[:2], joint.temperature_]
    general = [
        minimize(
            objective,
            x,
            method="SLSQP",
            bounds=[(0, 1), (0, 1), (0.1, 50)],
            constraints={"type": "ineq", "fun": lambda v: 1 - v[0] - v[1]},
            options={"ftol": 1e-14},
        ).fun
        for x in (start, [0.8, 0.1, start[2]])
    ]
    assert ours <= min(general) + 1e-7

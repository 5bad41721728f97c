import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calviz.core.events import Reduction
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores
from calviz.recalibrators import temperature_scaling as temperature_search
from calviz.recalibrators.temperature_scaling import (
    GRID,
    ClasswiseTemperature,
    best_gamma,
    ece_of_temperatures,
)
from calviz.sample.binning import bin_events
from calviz.sample.sample import reduce
from tests.inputs.simulated import draw_labels, simulate, softmax


def plain_ece(z, y, temperatures):
    data = Predictions(probs=softmax(z / temperatures), labels=y)
    sums = bin_events(reduce(data, Reduction()), bins=15)
    return float((sums.weight * np.abs(sums.gap)).sum())


def unequal(n=1_200, k=4):
    """Logits of which some classes are overconfident and some are not."""
    z, _ = simulate(n, k, seed=5)
    p = softmax(z * np.linspace(0.4, 1.3, k))
    y = draw_labels(p, np.random.default_rng(1))
    return z, y


def test_the_ece_of_the_search_is_the_ece():
    z, y = unequal()
    temperatures = np.random.default_rng(0).uniform(0.5, 3, size=(5, 4))
    result = ece_of_temperatures(Scores(z, "logits", "logits"), y, 1 / temperatures)
    np.testing.assert_allclose(result, [plain_ece(z, y, t) for t in temperatures], atol=1e-12)


def test_gamma_has_the_lowest_ece_of_the_whole_grid():
    z, y = unequal(n=300)
    direction = np.array([1.0, 0.2, -0.3, -0.8])
    gamma, error = best_gamma(Scores(z, "logits", "logits"), y, 1.3, direction)
    every = [plain_ece(z, y, 1.3 * (1 + g * direction)) for g in GRID[::10]]
    assert error == pytest.approx(plain_ece(z, y, 1.3 * (1 + gamma * direction)))
    assert error <= min(every) + 1e-12


@pytest.mark.slow
def test_the_short_search_comes_close(monkeypatch):
    z, y = unequal(n=2_000)
    scores, direction = Scores(z, "logits", "logits"), np.array([1.0, 0.2, -0.3, -0.8])
    _, exact = best_gamma(scores, y, 1.3, direction)
    monkeypatch.setattr(temperature_search, "_EXHAUSTIVE", 0)
    _, short = best_gamma(scores, y, 1.3, direction)
    assert exact <= short <= exact + 0.002


def test_the_temperatures_are_equation_9():
    z, y = unequal()
    fitted = ClasswiseTemperature(input="logits").fit(z, y)
    p = softmax(z / fitted.temperature_)
    gap = p.max(axis=1) - (p.argmax(axis=1) == y)
    mcs = np.array([gap[y == k].mean() for k in range(4)])
    wanted = fitted.temperature_ * (1 + fitted.gamma_ * mcs / np.abs(mcs).max())
    np.testing.assert_allclose(fitted.temperatures_, wanted)
    assert plain_ece(z, y, fitted.temperatures_) <= plain_ece(z, y, fitted.temperature_)


def test_clipping_outliers_first():
    mcs = np.array([0.1, 0.12, 0.11, 0.09, 0.9])
    fitted = ClasswiseTemperature(normalize="iqr-max")
    low, high = np.quantile(mcs, [0.25, 0.75])
    top = high + 1.5 * (high - low)
    np.testing.assert_allclose(fitted._direction(mcs), np.minimum(mcs, top) / top)


@pytest.mark.slow
def test_the_authors_equations_step_by_step():
    """Every step of Ao 2023, section 3, written down plainly, over the whole grid of gamma."""
    z, y = unequal(n=400, k=3)

    def nll(t):
        p = softmax(z / t)
        return -np.log(p[np.arange(y.size), y]).mean()

    common = minimize_scalar(nll, bounds=(0.1, 10), method="bounded", options={"xatol": 1e-12}).x

    def mcs_and_ece(temperatures):
        p = softmax(z / temperatures)
        confidence, right = p.max(axis=1), p.argmax(axis=1) == y
        error = 0.0
        for m in range(15):
            inside = (confidence > m / 15) & (confidence <= (m + 1) / 15)
            error += abs((confidence[inside] - right[inside]).sum()) / y.size
        return [(confidence - right)[y == k].mean() for k in range(3)], error

    mcs, _ = mcs_and_ece(common)
    direction = np.array(mcs) / np.abs(mcs).max()
    grid = [i / 1000 for i in range(-999, 1000)]
    errors = np.array([mcs_and_ece(common * (1 + g * direction))[1] for g in grid])
    fitted = ClasswiseTemperature(input="logits").fit(z, y)
    assert fitted.temperature_ == pytest.approx(common, rel=1e-6)
    assert errors[grid.index(fitted.gamma_)] <= errors.min() + 1e-9
    np.testing.assert_allclose(
        fitted.temperatures_, common * (1 + fitted.gamma_ * direction), rtol=1e-5
    )

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import _SigmoidCalibration

from calviz.core.probabilities import Scores
from calviz.recalibrators import platt_scaling
from calviz.recalibrators.platt_scaling import (
    AffineScaling,
    BetaCalibration,
    LogisticProblem,
    PlattScaling,
    fit_logistic,
)
from tests.inputs.simulated import simulate, softmax


def binary(n=800, seed=2, a=0.7, b=-0.4):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, size=n).clip(1e-4, 1 - 1e-4)
    y = rng.random(n) < 1 / (1 + np.exp(-(a * np.log(p / (1 - p)) + b)))
    return np.stack([1 - p, p], axis=1), y.astype(int)


def loss(theta, x, y):
    margin = x @ theta
    return np.logaddexp(0, margin).sum() - margin[y == 1].sum()


def gradient(theta, x, y):
    return x.T @ (1 / (1 + np.exp(-(x @ theta))) - y)


def best(x, y, bounds=None):
    start = np.zeros(x.shape[1])
    return minimize(
        loss, start, args=(x, y), jac=gradient, bounds=bounds, tol=1e-14, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5_000},
    ).x  # fmt: skip


def features(p, kind):
    log_p, rest = np.log(p), np.log1p(-p)
    columns = [log_p - rest] if kind == "platt" else [log_p, -rest]
    return np.stack([*columns, np.ones_like(p)], axis=1)


@pytest.mark.parametrize("n", [12, 600])
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_the_sigmoid_of_scikit_learn(n, separable, weighted):
    rng = np.random.default_rng(n)
    p = rng.uniform(0.01, 0.99, n)
    y = (p > 0.5).astype(int) if separable else (rng.random(n) < 0.2 + 0.6 * p).astype(int)
    w = rng.integers(1, 4, n).astype(float) if weighted else None
    if weighted:
        w /= w.mean()
    fitted = PlattScaling().fit(np.stack([1 - p, p], axis=1), y, sample_weight=w)
    z = np.log(p / (1 - p))
    sigmoid = _SigmoidCalibration().fit(z, y, w)
    theirs = sigmoid.predict(z)
    # Its search ends at a tolerance, too.
    np.testing.assert_allclose(
        fitted.predict_proba(np.stack([1 - p, p], axis=1))[:, 1], theirs, atol=2e-4
    )
    assert fitted.coefficients_[:, 0] == pytest.approx(
        [-sigmoid.a_, -sigmoid.b_], rel=2e-3, abs=2e-3
    )


def test_affine_scaling_is_a_logistic_regression():
    p, y = binary()
    fitted = AffineScaling().fit(p, y)
    np.testing.assert_allclose(
        fitted.coefficients_[:, 0], best(features(p[:, 1], "platt"), y), rtol=1e-5
    )
    assert fitted.describe().keys() == {"a", "b", "floor"}


def test_affine_scaling_of_few_scores_by_hand():
    """Two scores with hit rates of 1/4 and 2/3: the logistic curve through both is exact."""
    p = np.array([0.3] * 4 + [0.8] * 3)
    y = np.array([0, 0, 0, 1, 0, 1, 1])
    fitted = AffineScaling().fit(np.stack([1 - p, p], axis=1), y)
    np.testing.assert_allclose(
        fitted.transform([[0.7, 0.3], [0.2, 0.8]])[:, 1], [1 / 4, 2 / 3], rtol=1e-7
    )


def test_platt_with_few_scores_by_hand():
    """As before; of 3 positive rows each counts as 4/5, of 4 negative ones as 1/6, so that the mean targets of the scores are met."""
    p = np.array([0.3] * 4 + [0.8] * 3)
    y = np.array([0, 0, 0, 1, 0, 1, 1])
    fitted = PlattScaling().fit(np.stack([1 - p, p], axis=1), y)
    wanted = [(3 / 6 + 4 / 5) / 4, (1 / 6 + 8 / 5) / 3]
    np.testing.assert_allclose(fitted.transform([[0.7, 0.3], [0.2, 0.8]])[:, 1], wanted, rtol=1e-7)


def test_beta_is_a_logistic_regression_on_two_logarithms():
    p, y = binary()
    fitted = BetaCalibration().fit(p, y)
    np.testing.assert_allclose(
        fitted.coefficients_[:, 0], best(features(p[:, 1], "beta"), y), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("flip", [0, 1])
def test_beta_keeps_slopes_from_being_negative(flip):
    rng = np.random.default_rng(8)
    p = rng.random(600).clip(0.01, 0.99)
    # The hit rate falls where p is small, so that the free fit has a negative slope.
    rate = np.where(p < 0.5, 0.9 - p, p)
    y = (rng.random(600) < rate).astype(int)
    columns = np.stack([1 - p, p], axis=1)
    if flip:
        columns, y = columns[:, ::-1].copy(), 1 - y
    x = features(columns[:, 1], "beta")
    assert best(x, y)[:2].min() < 0
    bounded = best(x, y, bounds=[(0, None), (0, None), (None, None)])
    coefficients = BetaCalibration().fit(columns, y).coefficients_[:, 0]
    assert coefficients[:2].min() == 0
    assert loss(coefficients, x, y) <= loss(bounded, x, y) + 1e-6


def test_beta_without_a_slope_of_nearly_separated_scores():
    # Scores in a narrow range, as of a margin: without the one slope the steep free fit is far off everywhere.
    rng = np.random.default_rng(0)
    y = np.arange(70) % 2
    p = np.where(y == 1, 0.52, 0.48) + rng.normal(scale=0.006, size=70)
    p[:2] = [0.515, 0.485]
    coefficients = BetaCalibration().fit(np.stack([1 - p, p], axis=1), y).coefficients_[:, 0]
    x = features(p, "beta")
    assert best(x, y)[:2].min() < 0
    bounded = best(x, y, bounds=[(0, None), (0, None), (None, None)])
    assert coefficients[:2].min() == 0
    assert loss(coefficients, x, y) <= loss(bounded, x, y) + 1e-6


def test_beta_is_betacals():
    betacal = pytest.importorskip("betacal")
    p, y = binary(n=2_000)
    other = betacal.BetaCalibration("abm").fit(p[:, 1:], y)
    fitted = BetaCalibration().fit(p, y)
    x = features(p[:, 1], "beta")
    a, b, m = other.calibrator_.map_
    theirs = np.array([a, b, b * np.log(1 - m) - a * np.log(m)])
    ours = fitted.coefficients_[:, 0]
    # betacal stops at scikit-learn's tolerance: ours must be as good, and near.
    assert loss(ours, x, y) <= loss(theirs, x, y) + 1e-9
    np.testing.assert_allclose(fitted.transform(p)[:, 1], other.predict(p[:, 1:]), atol=2e-3)


@pytest.mark.parametrize("cls", [AffineScaling, BetaCalibration])
@pytest.mark.parametrize("few", [2, 8])
def test_several_classes_are_each_against_the_rest(cls, few, monkeypatch):
    # With 2, the last ones are fitted apart from the others.
    monkeypatch.setattr(platt_scaling, "_FEW", few)
    z, y = simulate(900, 4, temperature=1.8, seed=6)
    p = softmax(z)
    kind = "platt" if cls is AffineScaling else "beta"
    fitted = cls().fit(p, y)
    shares = []
    for j in range(4):
        x = features(p[:, j], kind)
        bounds = [(0, None)] * (x.shape[1] - 1) + [(None, None)]
        theta = best(x, (y == j).astype(int), bounds if kind == "beta" else None)
        np.testing.assert_allclose(fitted.coefficients_[:, j], theta, rtol=2e-3, atol=2e-3)
        shares.append(1 / (1 + np.exp(-(x @ fitted.coefficients_[:, j]))))
    other = np.stack(shares, axis=1)
    other /= other.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(p), other, atol=1e-12)


def test_a_search_on_some_rows_first_ends_in_the_same_place():
    p, y = binary(n=30_000)
    x = features(p[:, 1], "platt")
    solution = fit_logistic(
        Scores(p, "probabilities", "probabilities", 1e-9),
        y,
        PlattScaling._features,
        np.array([1.0, 0.0]),
    )
    np.testing.assert_allclose(solution.parameters[:, 0], best(x, y), rtol=1e-5)
    assert solution.converged


@pytest.mark.slow
def test_float32_reaches_the_optimum():
    p, y = binary(n=1_200_000)
    narrow = p.astype(np.float32)
    scores = Scores(narrow, "probabilities", "probabilities", 1e-9)
    solution = fit_logistic(scores, y, BetaCalibration._features, np.array([1.0, 1.0, 0.0]))
    exact = fit_logistic(
        Scores(narrow[::1].astype(np.float64), "probabilities", "probabilities", 1e-9),
        y,
        BetaCalibration._features,
        np.array([1.0, 1.0, 0.0]),
    )
    np.testing.assert_allclose(solution.parameters, exact.parameters, rtol=1e-3)


@pytest.mark.parametrize("ties", [False, True])
def test_separated_rows_are_said_and_fitted_with_smoothed_labels(ties):
    p = np.array([0.1, 0.2, 0.8, 0.9] * 10 + [0.5, 0.5] * ties)
    y = np.append((p[:40] > 0.5).astype(int), [0, 1] * ties)
    columns = np.stack([1 - p, p], axis=1)
    fitted = AffineScaling().fit(columns, y)
    assert "separated" in fitted.warnings_[0]
    platt = PlattScaling().fit(columns, y)
    np.testing.assert_allclose(fitted.coefficients_, platt.coefficients_, rtol=1e-6)
    again = AffineScaling().fit(columns, y, sample_weight=np.ones(y.size))
    np.testing.assert_allclose(again.coefficients_, platt.coefficients_, rtol=1e-4, atol=1e-6)
    assert 0.9 < fitted.transform([[0.2, 0.8]])[0, 1] < 0.9999


@pytest.mark.parametrize("steep", [1.0, 60.0])
def test_two_classes_are_summed_as_many_are(steep):
    p = np.random.default_rng(0).random(400)
    y = (np.random.default_rng(1).random(400) < p).astype(np.intp)
    scores = Scores(np.stack([1 - p, p], axis=1), "probabilities", "probabilities")
    problem = LogisticProblem(scores, y, BetaCalibration._features, 3)
    theta = steep * np.array([[1.2], [0.7], [-0.3]])
    fast = problem.at(theta)
    problem.stored_features = None
    for one, plain in zip(fast, problem.at(theta), strict=True):
        np.testing.assert_allclose(one, plain, rtol=1e-9, atol=1e-12)

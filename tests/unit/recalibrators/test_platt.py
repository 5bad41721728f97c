"""Logistic maps of two classes."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression

from calviz.core.blocks import Stopped, watching
from calviz.core.curve_fits import Basis, roughness
from calviz.core.errors import InputError, OptionError
from calviz.core.probabilities import Scores
from calviz.recalibrators import logit_spline as fitting
from calviz.recalibrators import platt_scaling
from calviz.recalibrators.logit_spline import (
    STRENGTHS,
    LogisticSpline,
    LogitSpline,
    LogOddsCells,
    _SplineProblem,
)
from calviz.recalibrators.platt_scaling import (
    AffineScaling,
    BetaCalibration,
    LinearScaling,
    LogisticProblem,
    PlattScaling,
    QuadraticScaling,
    fit_logistic,
)
from calviz.recalibrators.temperature_scaling import TemperatureScaling
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


# ---- Linear, affine and quadratic scaling


POWERS = {LinearScaling: (1,), AffineScaling: (1, 0), QuadraticScaling: (1, 2, 0)}


def binary_of_quadratic(n=900, seed=2, bend=0.15):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-(0.2 + 0.8 * z + bend * z * z)))
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], axis=1), y.astype(int)


def unpenalised(p, y, powers):
    z = logit(p)
    x = np.stack([z**power for power in powers], axis=1)
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1_000
    )
    return model.fit(x, y).coef_[0]


@pytest.mark.parametrize("cls", POWERS)
def test_it_is_scikit_learns_regression_without_penalty(cls):
    p, y = binary_of_quadratic()
    coefficients = cls().fit(p, y).coefficients_[:, 0]
    wanted = unpenalised(p[:, 1], y, POWERS[cls])
    np.testing.assert_allclose(coefficients[: wanted.size], wanted, rtol=1e-6)
    if cls is LinearScaling:
        assert coefficients[1] == 0


@pytest.mark.parametrize("cls", POWERS)
def test_several_classes_are_each_against_the_rest_and_normalised(cls):
    z, y = simulate(900, 4, temperature=1.8, seed=6)
    p = softmax(z)
    fitted = cls().fit(p, y)
    shares = np.empty_like(p)
    for k in range(4):
        theta = unpenalised(p[:, k], y == k, POWERS[cls])
        margin = sum(
            t * logit(p[:, k]) ** power for t, power in zip(theta, POWERS[cls], strict=True)
        )
        shares[:, k] = 1 / (1 + np.exp(-margin))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(p), shares, atol=2e-6)


def test_linear_scaling_of_two_classes_is_temperature_scaling():
    p, y = binary_of_quadratic()
    linear, temperature = LinearScaling().fit(p, y), TemperatureScaling().fit(p, y)
    assert linear.describe()["a"] == pytest.approx(1 / temperature.temperature_, rel=1e-6)
    np.testing.assert_allclose(linear.transform([[0.5, 0.5]]), [[0.5, 0.5]])


def test_affine_scaling_is_platt_scaling_without_smoothed_labels():
    p, y = binary_of_quadratic()
    affine, platt = AffineScaling().fit(p, y), PlattScaling().fit(p, y)
    assert 0 < np.abs(affine.transform(p) - platt.transform(p)).max() < 0.02
    assert affine.to_dict()["method"] == "affine"


def three_rates(first, second, third):
    """Scores with the log-odds -1, 0 and 1, and these hits of ten each: the parabola through the three is exact."""
    p = np.repeat(1 / (1 + np.exp([1.0, 0.0, -1.0])), 10)
    y = np.concatenate([np.arange(10) < hits for hits in (first, second, third)]).astype(int)
    return np.stack([1 - p, p], axis=1), y


def test_a_parabola_through_three_rates_by_hand():
    p, y = three_rates(2, 4, 7)
    low, middle, high = logit(np.array([0.2, 0.4, 0.7]))
    fitted = QuadraticScaling().fit(p, y)
    description = fitted.describe()
    assert description["a"] == pytest.approx(middle, rel=1e-6)
    assert description["b"] == pytest.approx((high - low) / 2, rel=1e-6)
    assert description["c"] == pytest.approx((high + low) / 2 - middle, rel=1e-6)
    np.testing.assert_allclose(fitted.transform(p[[0, 10, 20]])[:, 1], [0.2, 0.4, 0.7], rtol=1e-6)
    # -b / 2c = -4.1 is outside of the scores, so that nothing falls.
    assert description["turns_at"] is None
    assert not fitted.warnings_


@pytest.mark.parametrize(("rates", "side"), [((4, 2, 7), "below"), ((3, 8, 6), "above")])
def test_a_parabola_that_turns_among_the_scores_is_said(rates, side):
    p, y = three_rates(*rates)
    fitted = QuadraticScaling().fit(p, y)
    low, middle, high = logit(np.array(rates) / 10)
    b, c = (high - low) / 2, (high + low) / 2 - middle
    score = 1 / (1 + np.exp(b / (2 * c)))
    assert fitted.describe()["turns_at"] == pytest.approx(score, rel=1e-5)
    (warnings,) = fitted.warnings_
    assert warnings == (
        f"the map is not monotone: it turns at a score of {score:.4g}, and reverses the order of scores {side} that."
    )
    # It is so: out there the map falls with the score.
    rest = np.linspace(score, 0.73, 9) if side == "above" else np.linspace(0.27, score, 9)
    assert (np.diff(fitted.transform(np.stack([1 - rest, rest], axis=1))[:, 1]) < 0).all()


def test_turns_of_several_classes_are_counted():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=2_000)
    # Only class 2 is likelier at both ends than in the middle.
    chance = np.abs(2 * p[:, 2] - 1) ** 2
    y = np.where(rng.random(2_000) < chance, 2, rng.integers(2, size=2_000))
    fitted = QuadraticScaling().fit(p, y)
    turned = np.flatnonzero(~np.isnan(fitted.turns()))
    assert 2 in turned
    assert f"the maps of {turned.size} of 3 classes are not monotone" in fitted.warnings_[0]


def test_wide_logits_and_a_million_rows_in_single_precision():
    rng = np.random.default_rng(1)
    z = rng.normal(scale=30, size=300_000)
    y = (rng.random(z.size) < 1 / (1 + np.exp(-(0.1 + 0.05 * z + 1e-3 * z * z)))).astype(int)
    logits = np.stack([np.zeros_like(z), z], axis=1)
    double = QuadraticScaling(input="logits").fit(logits, y).coefficients_[:, 0]
    single = QuadraticScaling(input="logits").fit(logits.astype(np.float32), y).coefficients_[:, 0]
    np.testing.assert_allclose(double, [0.05, 1e-3, 0.1], rtol=0.1)
    np.testing.assert_allclose(single, double, rtol=1e-3)


def test_a_damaged_map_is_refused():
    record = QuadraticScaling().fit(*binary_of_quadratic()).to_dict()
    record["fitted"]["range_"] = [[0.0]]
    with pytest.raises(InputError, match="damaged"):
        QuadraticScaling.from_dict(record)


KNOTS = np.array([-3.0, -1.2, -1.0, 0.5, 0.6, 4.0])


def wavy(n, seed=0, size=0.8):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-z - size * np.sin(1.5 * z)))
    return z, y.astype(int)


def columns(z):
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], axis=1)


def test_it_is_scipys_natural_spline_and_straight_beyond():
    values = np.random.default_rng(0).normal(size=KNOTS.size)
    peer = CubicSpline(KNOTS, values, bc_type="natural")
    result = LogitSpline.through(KNOTS, values, 1.0)
    z = np.linspace(-3, 4, 201)
    np.testing.assert_allclose(result(z) - z, peer(z), atol=1e-12)
    for beyond, end in ((-5.0, -3.0), (9.0, 4.0)):
        line = peer(end) + (beyond - end) * peer(end, 1)
        assert result(np.array([beyond]))[0] - beyond == pytest.approx(line)


def test_the_penalty_is_the_integral_of_the_squared_second_derivative():
    values = np.random.default_rng(1).normal(size=KNOTS.size)
    spline = CubicSpline(KNOTS, values, bc_type="natural")
    integral = sum(quad(lambda x: spline(x, 2) ** 2, a, b)[0] for a, b in pairwise(KNOTS))
    assert values @ roughness(KNOTS) @ values == pytest.approx(integral, rel=1e-10)


def test_the_basis_spans_all_natural_splines_and_its_weights_are_their_roughness():
    z, y = wavy(400)
    cells = LogOddsCells.of(z, y, 5)
    basis = Basis.of(cells.z, cells.rows.sum(axis=1), 7)
    theta = np.random.default_rng(2).normal(size=basis.bent.size)
    assert np.linalg.matrix_rank(basis.at_knots) == basis.knots.size
    u = (basis.knots - z.mean()) / z.std()
    values = basis.at_knots @ theta
    assert values @ roughness(u) @ values == pytest.approx((theta**2) @ basis.bent, rel=1e-6)


def penalised(z, y, knots, strength, own_rows):
    """The optimum by SciPy, over values at the knots: every row on its own, the penalty by quadrature on the second derivatives."""
    n, u = z.size, (knots - z.mean()) / z.std()
    hat = CubicSpline(knots, np.eye(knots.size), bc_type="natural")(z)
    bends = CubicSpline(u, np.eye(knots.size), bc_type="natural")(u, 2)
    own = own_rows / n
    target = y + own / (1 + np.exp(-z))

    def loss(v):
        margin = z + hat @ v
        c = bends @ v
        # The square of a line from a to b, over an interval of width h: h (a^2 + a b + b^2) / 3.
        rough = (np.diff(u) * (c[1:] ** 2 + c[1:] * c[:-1] + c[:-1] ** 2)).sum() / 3
        share = 1 / (1 + np.exp(-margin))
        value = ((1 + own) * np.logaddexp(0, margin) - target * margin).sum() + strength * rough / 2
        grad_rough = bends.T @ _rough_gradient(c, np.diff(u))
        return value, hat.T @ ((1 + own) * share - target) + strength * grad_rough / 2

    solution = minimize(
        loss,
        np.zeros(knots.size),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8, "maxiter": 5_000},
    )
    return solution.x


def _rough_gradient(c, h):
    out = np.zeros_like(c)
    out[1:] += h * (2 * c[1:] + c[:-1]) / 3
    out[:-1] += h * (2 * c[:-1] + c[1:]) / 3
    return out


@pytest.mark.parametrize("strength", [0.5, 30.0])
@pytest.mark.parametrize("own_rows", [0.0, 20.0])
def test_the_optimum_is_scipys(strength, own_rows):
    z, y = wavy(600)
    solution = LogisticSpline(knots=7, folds=5, own_rows=own_rows, strength=strength)._spline(
        z, y, None
    )
    wanted = penalised(z, y, solution.knots, strength, own_rows)
    np.testing.assert_allclose(solution.values, wanted, atol=2e-4)


def test_without_an_own_row_and_under_the_strongest_penalty_it_is_a_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    z, y = wavy(500)
    solution = LogisticSpline(knots=10, folds=5, own_rows=0.0, strength=np.inf)._spline(z, y, None)
    line = LogisticRegression(C=np.inf, tol=1e-12).fit(z[:, None], y)
    at = np.array([-3.0, 0.0, 5.0])
    np.testing.assert_allclose(solution(at), line.intercept_ + line.coef_[0] * at, atol=1e-4)


def test_the_strength_is_that_of_the_rule():
    """Five-fold cross-validation, row by row, of the same splines fitted by themselves."""
    z, y = wavy(400, seed=5)
    cells = LogOddsCells.of(z, y, 5)
    basis = Basis.of(cells.z, cells.rows.sum(axis=1), 20)
    best_strength = _SplineProblem(cells, basis.at(cells.z), basis.bent, 5.0).best_strength()
    order = np.lexsort((y, z))
    fold = np.empty(z.size, dtype=int)
    fold[order] = np.arange(z.size) % 5
    losses = np.empty((len(STRENGTHS), z.size))
    for at, strength in enumerate(STRENGTHS):
        for f in range(5):
            held = fold == f
            part = LogOddsCells.of(z[~held], y[~held], 2)
            theta = _SplineProblem(part, basis.at(part.z), basis.bent, 5.0).fitted(strength)
            margin = z[held] + basis.at(z[held]) @ theta
            losses[at, held] = np.logaddexp(0, margin) - y[held] * margin
    excess = losses - losses[losses.mean(axis=1).argmin()]
    error = excess.std(axis=1) / np.sqrt(z.size)
    wanted = next(
        s for s, e, se in zip(STRENGTHS, excess.mean(axis=1), error, strict=True) if e <= se
    )
    assert best_strength == wanted


def test_straight_data_get_a_straight_line_and_wavy_data_a_curve():
    straight, wave = (wavy(4_000, seed=1, size=size) for size in (0.0, 0.8))
    assert LogisticSpline().fit(columns(straight[0]), straight[1]).strengths_[0] == 0
    fitted = LogisticSpline().fit(columns(wave[0]), wave[1])
    assert 0 < fitted.strengths_[0] < 100
    z = np.linspace(-3, 3, 50)
    truth = 1 / (1 + np.exp(-z - 0.8 * np.sin(1.5 * z)))
    assert np.abs(fitted.curve(1 / (1 + np.exp(-z))) - truth).max() < 0.06


def test_where_rows_are_few_it_stays_near_the_scores():
    rng = np.random.default_rng(4)
    p = np.array([0.3, 0.4, 0.6, 0.7])
    X, y = np.stack([1 - p, p], axis=1), np.array([0, 0, 1, 1])
    near = LogisticSpline().fit(X, y).transform(X)[:, 1]
    nearer = LogisticSpline(own_rows=1_000.0).fit(X, y).transform(X)[:, 1]
    assert np.abs(near - p).max() < 0.25
    assert np.abs(nearer - p).max() < 5e-3
    # And with many it goes where they are.
    z = rng.normal(size=20_000)
    y = (rng.random(z.size) < 1 / (1 + np.exp(-2 * z - 1))).astype(int)
    curve = LogisticSpline().fit(columns(z), y).curve(np.array([0.5]))
    assert curve[0] == pytest.approx(1 / (1 + np.exp(-1)), abs=0.02)


def test_cells_change_nothing_that_can_be_seen(monkeypatch):
    z, y = wavy(6_000, seed=3)
    rough = LogisticSpline(knots=20, folds=5, own_rows=5.0, strength=1.0)._spline(z, y, None)
    monkeypatch.setattr(fitting, "CELLS", 100_000)
    exact = LogisticSpline(knots=20, folds=5, own_rows=5.0, strength=1.0)._spline(z, y, None)
    at = np.linspace(*np.quantile(z, [0.001, 0.999]), 400)
    shares = [1 / (1 + np.exp(-value(at))) for value in (rough, exact)]
    assert np.abs(shares[0] - shares[1]).max() < 5e-4


def test_cells_hold_all_rows_and_equal_scores_share_one():
    z, y = wavy(5_000)
    z = np.round(z, 3)
    cells = LogOddsCells.of(z, y, 5)
    assert cells.z.size <= fitting.CELLS + 1
    assert cells.rows.sum() == 5_000
    assert cells.hits.sum() == y.sum()
    assert (np.diff(cells.z) > 0).all()
    assert cells.z @ cells.rows.sum(axis=1) == pytest.approx(z.sum())
    few = LogOddsCells.of(np.repeat([0.1, 0.2], 50), np.tile([0, 1], 50), 5)
    np.testing.assert_array_equal(few.rows, np.full((2, 5), 10))
    np.testing.assert_array_equal(few.hits.sum(axis=1), [25, 25])


def test_the_order_of_rows_is_of_no_matter_to_the_last_digit():
    z, y = wavy(3_000)
    order = np.random.default_rng(0).permutation(z.size)
    one, other = (LogisticSpline().fit(columns(z[r]), y[r]) for r in (np.arange(z.size), order))
    np.testing.assert_array_equal(one.values_[0], other.values_[0])


def test_one_score_only():
    X, y = np.tile([0.4, 0.6], (50, 1)), np.arange(50) % 5 == 0
    out = LogisticSpline().fit(X, y.astype(int)).transform(X)
    # Five own rows at 0.6 beside 50 of which 10 are hits.
    np.testing.assert_allclose(out[:, 1], (10 + 5 * 0.6) / 55, atol=1e-6)


def test_it_can_be_stopped_while_it_cross_validates():
    messages = []

    def watcher(doing):
        messages.append(doing)
        if len(messages) > 3:
            raise Stopped

    z, y = wavy(500)
    with watching(watcher), pytest.raises(Stopped):
        LogisticSpline().fit(columns(z), y)
    assert "cross-validating the penalty" in messages


@pytest.mark.parametrize(
    "options",
    [{"knots": 1}, {"folds": 1}, {"own_rows": -1.0}, {"own_rows": np.nan}, {"strength": 0.0}],
)
def test_options_that_are_not_allowed(options):
    with pytest.raises(OptionError):
        LogisticSpline(**options).fit(columns(wavy(50)[0]), wavy(50)[1])


def test_damaged_maps_are_refused():
    z, y = wavy(300)
    record = LogisticSpline().fit(columns(z), y).to_dict()
    for name, value in (("knots_", [[1.0, 0.0]]), ("values_", [[0.0]]), ("bends_", [])):
        broken = {**record, "fitted": {**record["fitted"], name: value}}
        with pytest.raises(InputError, match=r"damaged|maps for"):
            LogisticSpline.from_dict(broken)

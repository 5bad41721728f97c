from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

from calviz.core.blocks import Stopped, watching
from calviz.core.curve_fits import Basis, roughness
from calviz.core.errors import InputError, OptionError
from calviz.recalibrators import logit_spline as fitting
from calviz.recalibrators.logit_spline import (
    STRENGTHS,
    LogisticSpline,
    LogitSpline,
    LogOddsCells,
    _SplineProblem,
)

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

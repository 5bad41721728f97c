"""Structured scaling against its written objective, and against what follows from it."""

import json

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from calviz.core.blocks import Stopped, watching
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.probabilities import Scores
from calviz.recalibrators import softmax_losses
from calviz.recalibrators.base import load_map
from calviz.recalibrators.matrix import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
    VectorScaling,
)
from calviz.recalibrators.softmax_fits import fit_penalised, minimise
from calviz.recalibrators.softmax_losses import Penalty, StructuredProblem, VectorProblem
from tests.inputs.simulated import draw_labels, softmax

BOTH = pytest.mark.parametrize("method", [StructuredVectorScaling, StructuredMatrixScaling])


def shifted(n, k, seed=0):
    """Logits whose classes are off by different factors and offsets, with some confusion between neighbours."""
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=2, size=(n, k))
    w = np.diag(np.linspace(0.4, 0.9, k)) + 0.15 * np.eye(k, k=1)
    p = softmax(z @ w.T + np.linspace(-0.6, 0.6, k))
    return z, draw_labels(p, rng)


def mixed_by_hand(z, y):
    """1/T by the sign of the gradient in its logarithm, and the logarithms of the mixed probabilities."""
    n, k = z.shape
    own = z[np.arange(n), y].mean()

    def slope(u):
        return (z * softmax(np.exp(u) * z)).sum(axis=1).mean() - own

    inverse = np.exp(brentq(slope, -16, 16, xtol=1e-14))
    return inverse, np.log(n / (n + 1) * softmax(inverse * z) + 1 / ((n + 1) * k))


def rates(method, k):
    """K, and K (K - 1) off the diagonal: of the factors, or of the matrix, and of the offsets."""
    if method is StructuredVectorScaling:
        return np.full((2, k), k)
    of = np.full((k, k), k * (k - 1)) - k * (k - 2) * np.eye(k)
    return np.hstack([of, np.full((k, 1), k)])


def objective(method, m, y, strength):
    """Value and slope of the written objective in the deviations from the identity, as one vector."""
    n, k = m.shape
    weights = strength * rates(method, k) / n

    def value(flat):
        x = flat.reshape(weights.shape)
        if method is StructuredVectorScaling:
            u = m * (1 + x[0]) + x[1]
        else:
            u = m @ (np.eye(k) + x[:, :-1]).T + x[:, -1]
        p = softmax(u)
        loss = -np.log(p[np.arange(n), y]).mean() + (weights * x**2).sum()
        p[np.arange(n), y] -= 1
        if method is StructuredVectorScaling:
            slope = np.stack([(p * m).mean(axis=0), p.mean(axis=0)])
        else:
            slope = np.hstack([p.T @ m / n, p.mean(axis=0)[:, None]])
        return loss, (slope + 2 * weights * x).ravel()

    return value, weights.shape


def optimum(method, m, y, strength):
    value, shape = objective(method, m, y, strength)
    solution = minimize(
        value, np.zeros(np.prod(shape)), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    return solution.x.reshape(shape), solution.fun


def apart(fitted):
    """Deviations of the fitted map from the identity."""
    k = fitted.intercepts_.size
    if isinstance(fitted, StructuredVectorScaling):
        return np.stack([fitted.weights_ - 1, fitted.intercepts_])
    return np.hstack([fitted.weights_ - np.eye(k), fitted.intercepts_[:, None]])


@BOTH
@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_the_map_is_the_optimum_of_the_written_objective(method, k, strength):
    z, y = shifted(500, k)
    p = softmax(z)
    inverse, m = mixed_by_hand(np.log(p), y)
    fitted = method(strength=strength).fit(p, y)
    assert 1 / fitted.temperature_ == pytest.approx(inverse, rel=1e-6)
    other, least = optimum(method, m, y, strength)
    value, _ = objective(method, m, y, strength)
    assert value(apart(fitted).ravel())[0] <= least + 1e-11
    np.testing.assert_allclose(apart(fitted), other, atol=2e-5)
    assert not fitted.warnings_
    # The penalties are not what decides it all.
    assert np.abs(other).max() > 0.02


@BOTH
def test_the_slope_at_the_map_is_zero_by_differences(method):
    z, y = shifted(300, 3)
    _, m = mixed_by_hand(z, y)
    value, _ = objective(method, m, y, 1.0)
    x = apart(method(input="logits").fit(z, y)).ravel()
    steps = 1e-5 * np.eye(x.size)
    slopes = [(value(x + step)[0] - value(x - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(slopes, 0, atol=1e-6)


@BOTH
def test_kernels_have_the_gradient_of_their_value(method):
    z, y = shifted(60, 5)
    x = np.random.default_rng(1).normal(size=rates(method, 5).shape)
    problem = problem_of(method, z, y, 0.3)
    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    slopes = [(problem.at(x + step)[0] - problem.at(x - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(problem.at(x)[1].ravel(), slopes, atol=1e-6)


def start_of(method, k):
    return np.stack([np.ones(k), np.zeros(k)]) if method is StructuredVectorScaling else np.eye(k, k + 1)  # fmt: skip


def problem_of(method, m, y, strength=1.0):
    k = m.shape[1]
    penalty = Penalty(strength * rates(method, k) / y.size, start_of(method, k))
    if method is StructuredVectorScaling:
        return VectorProblem(m, y, penalty)
    return StructuredProblem(Scores(m, "logits", "logits"), y, penalty)


@BOTH
def test_every_row_twice_is_the_same_problem_at_the_same_strength_per_row(method):
    z, y = shifted(200, 4)
    k = 4
    once = fit_penalised(problem_of(method, z, y), start_of(method, k)).x
    twice = problem_of(method, np.repeat(z, 2, axis=0), np.repeat(y, 2), strength=2.0)
    np.testing.assert_allclose(fit_penalised(twice, start_of(method, k)).x, once, atol=1e-6)


@BOTH
def test_at_a_great_strength_only_the_mixed_temperature_is_left(method):
    z, y = shifted(300, 4)
    _, m = mixed_by_hand(z, y)
    fitted = method(strength=1e9, input="logits").fit(z, y)
    np.testing.assert_allclose(fitted.transform(z), np.exp(m), atol=1e-7)
    # A probability of nearly 0 is as if one row more said nothing.
    sure = fitted.transform(np.array([[0.0, 1e4, 0.0, 0.0]]))
    np.testing.assert_allclose(sure[0, 0], 1 / (301 * 4), rtol=1e-5)


def test_at_no_strength_it_is_vector_scaling_of_the_mixed_logarithms():
    z, y = shifted(800, 4)
    _, m = mixed_by_hand(z, y)
    fitted = StructuredVectorScaling(strength=1e-7, input="logits").fit(z, y)
    free = VectorScaling(input="logits").fit(m, y)
    np.testing.assert_allclose(fitted.transform(z), free.transform(m), atol=1e-4)


def test_offsets_and_columns_add_up_to_what_the_penalty_leaves():
    """The softmax sees no sum over classes, so at the optimum that of each penalty's slope is 0."""
    z, y = shifted(400, 4)
    fitted = StructuredMatrixScaling(input="logits").fit(z, y)
    assert fitted.intercepts_.sum() == pytest.approx(0, abs=1e-6)
    columns = (rates(StructuredMatrixScaling, 4) * apart(fitted)).sum(axis=0)
    np.testing.assert_allclose(columns, 0, atol=1e-5)


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_many_classes_other_hessians_lead_to_the_same_place(method, dtype, monkeypatch):
    z, y = shifted(1_000, 9)
    z = z.astype(dtype)
    few = method(input="logits").fit(z, y)
    monkeypatch.setattr(StructuredProblem, "most_dense", 1)
    monkeypatch.setattr(softmax_losses, "TOGETHER", 1)
    many = method(input="logits").fit(z, y)
    np.testing.assert_allclose(many.weights_, few.weights_, atol=2e-5)
    np.testing.assert_allclose(many.intercepts_, few.intercepts_, atol=2e-5)
    assert not many.warnings_


def test_the_hessian_along_directions_is_exact_there_and_positive(monkeypatch):
    monkeypatch.setattr(StructuredProblem, "most_dense", 1)
    k = 4
    z, y = shifted(600, k)
    _, m = mixed_by_hand(z, y)
    problem = problem_of(StructuredMatrixScaling, m, y)
    x = start_of(StructuredMatrixScaling, k)
    inverse = problem.inverse(x)
    columns = np.stack([inverse(e.reshape(k, k + 1)).ravel() for e in np.eye(k * (k + 1))])
    np.testing.assert_allclose(columns, columns.T, atol=1e-6)
    assert np.linalg.eigvalsh(columns).min() > 0
    # Diagonal and offsets alone, where only they move: their own block of the Hessian.
    steps = 1e-5 * np.eye(k * (k + 1)).reshape(-1, k, k + 1)
    h = np.stack([((problem.at(x + s)[1] - problem.at(x - s)[1]) / 2e-5).ravel() for s in steps])
    # Preconditioned, no direction is stiffer or softer than another by more than a few times.
    spectrum = np.linalg.eigvals(columns @ h).real
    assert spectrum.max() / spectrum.min() < 25
    assert np.linalg.cond(h) > 4 * spectrum.max() / spectrum.min()


@BOTH
def test_large_data_are_fitted_to_some_rows_first(method):
    z, y = shifted(30_000, 4)
    fitted = method(input="logits").fit(z, y)
    _, m = mixed_by_hand(z, y)
    value, _ = objective(method, m, y, 1.0)
    assert np.abs(value(apart(fitted).ravel())[1]).max() < 1e-5


@BOTH
def test_a_part_of_the_rows_is_the_problem_of_these_rows(method):
    z, y = shifted(300, 3)
    x = np.random.default_rng(0).normal(size=rates(method, 3).shape)
    rows = np.arange(0, 300, 7)
    part = problem_of(method, z, y).of_rows(rows)
    copied = problem_of(method, z[rows], y[rows])
    for one, other in ((part, copied), (part.every(3), copied.every(3))):
        assert one.likelihood(x)[0] == pytest.approx(other.likelihood(x)[0], rel=1e-12)
        np.testing.assert_allclose(one.likelihood(x)[1], other.likelihood(x)[1], atol=1e-12)
    g = np.random.default_rng(1).normal(size=x.shape)
    part.penalty = copied.penalty
    np.testing.assert_allclose(part.inverse(x)(g), copied.inverse(x)(g), rtol=1e-6)


@BOTH
def test_the_strength_of_cross_validation_is_that_of_a_loop(method):
    z, y = shifted(150, 3, seed=4)
    _, m = mixed_by_hand(z, y)
    fitted = method(strength="cv", input="logits").fit(z, y)
    # Rows of a class are dealt out in turn, one class after the other.
    fold = np.empty(150, dtype=int)
    fold[np.argsort(y, kind="stable")] = np.arange(150) % 5
    looked = fitted.searched_
    np.testing.assert_array_equal(looked[:, 0], 2.0 ** np.arange(4, 4 - len(looked), -1))
    assert fitted.strength_ == looked[looked[:, 1].argmin(), 0]
    for multiple, result in looked[[0, len(looked) // 2, -1]]:
        total = 0.0
        for one in range(5):
            x, _ = optimum(method, m[fold != one], y[fold != one], multiple)
            loss, _ = objective(method, m[fold == one], y[fold == one], 0.0)
            total += loss(x.ravel())[0] * (fold == one).sum()
        assert result == pytest.approx(total / 150, abs=3e-4)
    # Said, and taken home.
    description = fitted.describe()
    assert description["strength"] == fitted.strength_
    assert description["cross_validated_nll"]["16"] == looked[0, 1]
    again = load_map(json.loads(json.dumps(fitted.to_dict())))
    assert again.describe() == description
    given = method(strength=fitted.strength_, input="logits").fit(z, y)
    np.testing.assert_allclose(given.transform(z), fitted.transform(z), atol=1e-12)
    assert "cross_validated_nll" not in given.describe()


@BOTH
def test_the_least_and_the_greatest_strength_are_said(method):
    z, y = shifted(4_000, 3)
    fitted = method(strength="cv", input="logits").fit(z, y)
    at_the_end = fitted.strength_ in (1 / 16, 16)
    assert any("of those that are tried" in w for w in fitted.warnings_) == at_the_end


@BOTH
def test_the_search_says_where_it_is_and_stops_where_it_is_told(method):
    z, y = shifted(200, 3)
    messages = []

    def watcher(doing):
        messages.append(doing)
        if "strength 2 of at most 9, fold 3 of 5" in doing:
            raise Stopped

    with pytest.raises(Stopped), watching(watcher):
        method(strength="cv", input="logits").fit(z, y)
    searched = [
        s for s in messages if s.startswith("cross-validating the strength of the penalties")
    ]
    assert len(searched) == 8
    with pytest.raises(Stopped), watching(lambda doing: stop_at("fitting the map", doing)):
        method(input="logits").fit(z, y)


def stop_at(what, doing):
    if doing == what:
        raise Stopped


@BOTH
@pytest.mark.parametrize("strength", [0, -1.0, np.inf, np.nan, True, "strong", None])
def test_strengths_that_are_none_are_refused(method, strength):
    z, y = shifted(50, 3)
    with pytest.raises(OptionError, match="'strength' must be a number above 0 or \"cv\""):
        method(strength=strength, input="logits").fit(z, y)


def test_a_fit_that_would_take_too_long_is_refused_with_its_estimate():
    z, y = shifted(3_000, 30)
    slow = {"max_seconds": 1e-9, "input": "logits"}
    with pytest.raises(NotAvailable, match=r"930 parameters .* about \d+ seconds, .* raise 'max"):
        StructuredMatrixScaling(**slow).fit(z, y)
    with pytest.raises(NotAvailable, match="give a number as 'strength'"):
        StructuredMatrixScaling(strength="cv", **slow).fit(z, y)


@BOTH
def test_a_class_without_rows_stays_as_it_is(method):
    z, y = shifted(400, 4)
    fitted = method(input="logits").fit(z[y != 2], y[y != 2])
    identity = np.eye(4)[2] if fitted.weights_.ndim == 2 else 1
    np.testing.assert_array_equal(fitted.weights_[2], identity)
    assert fitted.intercepts_[2] == 0
    assert "1 of 4 classes have no calibration rows (column 2)" in fitted.warnings_[0]


@BOTH
@pytest.mark.parametrize("k", [2, 5])
def test_few_rows_give_a_map_near_the_mixed_temperature(method, k):
    z = np.eye(k)[:, ::-1][: min(k, 3)] * 2.0
    y = np.arange(z.shape[0])
    out = method(input="logits").fit(z, y).transform(z)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1)
    assert out.min() > 0


@BOTH
def test_scores_without_an_optimal_temperature_are_said(method):
    y = np.repeat(np.arange(3), 30)
    right = method(input="logits").fit(5.0 * np.eye(3)[y], y)
    assert "separable" in right.warnings_[0]
    wrong = method(input="logits").fit(-5.0 * np.eye(3)[y], y)
    assert "say nothing" in wrong.warnings_[0]
    assert np.log(wrong.temperature_) >= 16
    assert np.log(right.temperature_) <= -6


def test_the_last_step_of_a_search_may_be_taken_without_looking():
    h = np.array([1.0, 3.0])

    def function(x):
        return 0.5 * float(x @ (h * x)), h * x

    for last, left in ((False, 1e-3), (True, 0.0)):
        solution = minimise(
            function, np.full(2, 1e-3), lambda g: g / h, tolerance=1e-3, last_step=last
        )
        assert solution.passes == 1
        np.testing.assert_allclose(solution.x, left, atol=1e-15)

"""Vector and matrix scaling."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize, minimize_scalar
from sklearn.linear_model import LogisticRegression

from calviz.core.errors import NotAvailable
from calviz.core.events import Reduction
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores
from calviz.recalibrators import softmax_fits, softmax_losses
from calviz.recalibrators import temperature_scaling as temperature_search
from calviz.recalibrators.matrix import DirichletCalibration, MatrixScaling, VectorScaling
from calviz.recalibrators.softmax_fits import minimise, truncated_newton
from calviz.recalibrators.softmax_losses import MatrixProblem, Penalty, VectorProblem
from calviz.recalibrators.temperature_scaling import (
    GRID,
    ClasswiseTemperature,
    best_gamma,
    ece_of_temperatures,
)
from calviz.sample.binning import bin_events
from calviz.sample.sample import reduce
from tests.inputs.simulated import draw_labels, simulate, softmax


def nll(p, y):
    return -np.log(p[np.arange(y.size), y]).mean()


def logits(z):
    return Scores(z, "logits", "logits")


def mapped(n=1_500, k=4, seed=0):
    """Logits whose true map is a vector scaling with offsets."""
    z, _ = simulate(n, k, seed=seed)
    w, b = np.linspace(0.4, 0.9, k), np.linspace(-0.5, 0.5, k)
    p = softmax(w * z + b)
    y = draw_labels(p, np.random.default_rng(seed + 1))
    return z, y, w, b


@pytest.mark.parametrize("k", [3, 7])
def test_gradients(k):
    z, y = simulate(60, k)
    rng = np.random.default_rng(0)
    penalty = Penalty(rng.random((k, k + 1)))
    vector, matrix = VectorProblem(z, y), MatrixProblem(logits(z), y, penalty, 0.7)
    for problem, x in [(vector, rng.normal(size=(2, k))), (matrix, rng.normal(size=(k, k + 1)))]:
        result = problem.at(x)[1].ravel()
        other = approx_fprime(x.ravel(), lambda v, p=problem, s=x.shape: p.at(v.reshape(s))[0])
        np.testing.assert_allclose(result, other, atol=2e-6)


def test_the_hessians_are_those_of_the_gradients():
    k = 3
    z, y = simulate(200, k)
    rng = np.random.default_rng(0)
    for problem, shape in [
        (VectorProblem(z, y), (2, k)),
        (MatrixProblem(logits(z), y, Penalty(np.full((k, k + 1), 0.01)), 1.0), (k, k + 1)),
    ]:
        x = rng.normal(size=shape)
        columns = []
        for e in np.eye(x.size):
            step = 1e-5 * e.reshape(shape)
            up, down = problem.at(x + step)[1], problem.at(x - step)[1]
            columns.append((up - down).ravel() / 2e-5)
        h = np.stack(columns)
        g = problem.at(x)[1]
        solved = problem.inverse(x)(g).ravel()
        np.testing.assert_allclose(h @ solved, g.ravel(), atol=1e-5)


def test_vector_scaling_reaches_the_optimum_of_a_general_solver():
    z, y, _, _ = mapped()
    fitted = VectorScaling(input="logits").fit(z, y)
    problem = VectorProblem(z, y)
    x = np.stack([fitted.weights_, fitted.intercepts_])
    other = minimise(
        problem.at, np.stack([np.ones(4), np.zeros(4)]), lambda g: g, tolerance=1e-13,
        max_passes=3_000,
    )  # fmt: skip
    assert nll(fitted.transform(z), y) <= other.value + 1e-9
    np.testing.assert_allclose(x[0], other.x[0], rtol=1e-3)
    assert np.abs(problem.at(x)[1]).max() < 1e-6
    assert fitted.intercepts_.sum() == pytest.approx(0, abs=1e-12)


def test_vector_scaling_finds_the_map_that_made_the_labels():
    z, y, w, b = mapped(n=100_000)
    fitted = VectorScaling(input="logits").fit(z, y)
    np.testing.assert_allclose(fitted.weights_, w, atol=0.02)
    np.testing.assert_allclose(fitted.intercepts_, b, atol=0.03)


@pytest.mark.parametrize("l2", [0.0, 0.01])
def test_matrix_scaling_is_scikit_learns_multinomial_regression(l2):
    z, y, _, _ = mapped()
    fitted = MatrixScaling(l2=l2, input="logits").fit(z, y)
    if l2:
        # Ours has its penalty in units of the scores and on the offsets too: compare the objective.
        unit = np.sqrt(np.mean((z - z.mean(axis=1, keepdims=True)) ** 2))
        inputs, free = np.hstack([z / unit, np.ones((y.size, 1))]), False
    else:
        inputs, free = z, True
    # scikit-learn: C * sum of losses + half the squares.
    c = 1 / (2 * max(l2, 1e-8) * y.size)
    other = LogisticRegression(C=c, tol=1e-10, max_iter=20_000, fit_intercept=free).fit(inputs, y)
    calibrated, wanted = fitted.transform(z), other.predict_proba(inputs)
    np.testing.assert_allclose(calibrated, wanted, atol=1e-4)


def test_dirichlet_is_matrix_scaling_of_log_probabilities():
    z, y, _, _ = mapped()
    p = softmax(z)
    a = DirichletCalibration(regularisation="odir", off_diagonal=0.1, intercept=0.1).fit(p, y)
    problem = MatrixProblem(logits(np.log(p)), y, a._penalty(4, (0.1, 0.1)))
    x = np.hstack([a.weights_, a.intercepts_[:, None]])
    assert np.abs(problem.at(x)[1]).max() < 1e-6
    np.testing.assert_allclose(
        a.transform(p), softmax(np.log(p) @ a.weights_.T + a.intercepts_), atol=1e-12
    )


@pytest.mark.parametrize("k", [3, 4])
def test_odir_is_the_mean_square_of_the_off_diagonal_and_of_the_offsets(k):
    """Kull 2019: the loss plus each strength times a mean square; at the optimum its slope is zero."""
    z, y = simulate(500, k, temperature=1.5, seed=8)
    p = softmax(z)
    strengths = {"off_diagonal": 0.3, "intercept": 0.7}
    fitted = DirichletCalibration(regularisation="odir", **strengths).fit(p, y)
    off = ~np.eye(k, dtype=bool)

    def objective(x):
        w, b = x[: k * k].reshape(k, k), x[k * k :]
        own = softmax(np.log(p) @ w.T + b)[np.arange(y.size), y]
        return -np.log(own).mean() + 0.3 * np.mean(w[off] ** 2) + 0.7 * np.mean(b**2)

    x = np.append(fitted.weights_.ravel(), fitted.intercepts_)
    slope = [(objective(x + step) - objective(x - step)) / 2e-5 for step in 1e-5 * np.eye(x.size)]
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    # The penalties are not small beside the loss: with others the slope would be far from zero.
    assert np.abs(fitted.weights_[off]).max() > 1e-2
    assert np.abs(fitted.intercepts_).max() > 1e-3


def test_strengths_of_matrix_scaling_are_kulls_divided_by_the_spread_squared():
    z, y = simulate(400, 3, temperature=2)
    p = softmax(z)
    logs = np.log(p)
    spread = np.sqrt(((logs - logs.mean(axis=1, keepdims=True)) ** 2).mean())
    assert spread > 1.5
    mine = MatrixScaling(regularisation="odir", off_diagonal=0.3, intercept=0.7).fit(p, y)
    # Dirichlet calibration has the penalty of the paper, and without logits the same scores.
    kull = DirichletCalibration(
        regularisation="odir", off_diagonal=0.3 * spread**2, intercept=0.7
    ).fit(p, y)
    np.testing.assert_allclose(mine.transform(p), kull.transform(p), atol=1e-5)
    assert "s squared it is the strength of Kull" in mine.describe()["strengths_unit"]
    assert "strengths_unit" not in kull.describe()


def test_odir_strengths_shrink_what_they_name():
    z, y, _, _ = mapped()
    strong = {"regularisation": "odir", "input": "logits"}
    off = MatrixScaling(off_diagonal=1e6, intercept=1e-3, **strong).fit(z, y)
    assert off.describe()["largest_off_diagonal"] < 1e-3
    assert np.abs(off.intercepts_).max() > 0.1
    flat = MatrixScaling(off_diagonal=1e-3, intercept=1e6, **strong).fit(z, y)
    assert np.abs(flat.intercepts_).max() < 1e-3
    # Without either, it is vector scaling.
    vector = VectorScaling(input="logits").fit(z, y)
    both = MatrixScaling(off_diagonal=1e7, intercept=0.0, **strong).fit(z, y)
    np.testing.assert_allclose(np.diag(both.weights_), vector.weights_, atol=2e-3)


def test_cross_validation_tells_a_vector_scaling_from_a_mixing():
    z, y, _, _ = mapped(n=600)
    fitted = MatrixScaling(regularisation="odir", input="logits").fit(z, y)
    free = MatrixScaling(input="logits").fit(z, y)
    new, labels, _, _ = mapped(n=20_000, seed=7)
    assert nll(fitted.transform(new), labels) <= nll(free.transform(new), labels)
    assert fitted.strengths_[0] >= 1


def test_products_are_those_of_the_hessian():
    k = 4
    z, y = simulate(300, k)
    problem = MatrixProblem(logits(z), y, Penalty(np.full((k, k + 1), 0.01)), 0.7)
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(2, k, k + 1))
    slopes = [problem.at(x + step * v)[1] for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(problem.hessian(x)(v), (slopes[0] - slopes[1]) / 2e-5, atol=1e-5)


def test_truncated_newton_on_a_badly_scaled_logistic_regression():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(400, 30)) * np.geomspace(1e-2, 10, 30)
    y = rng.random(400) < 1 / (1 + np.exp(-a @ rng.normal(size=30)))

    def function(x):
        m = a @ x
        p = 1 / (1 + np.exp(-m))
        return float(np.logaddexp(0, m).sum() - m[y].sum() + 1e-3 * x @ x), a.T @ (p - y) + 2e-3 * x

    def hessian(x):
        p = 1 / (1 + np.exp(-a @ x))
        return lambda v: a.T @ (p * (1 - p) * (a @ v)) + 2e-3 * v

    solution = truncated_newton(
        function, np.zeros(30), lambda x: lambda g: g / (a**2).sum(axis=0), hessian,
        tolerance=1e-9, max_passes=5_000,
    )  # fmt: skip
    assert solution.converged
    other = minimize(lambda x: function(x)[0], np.zeros(30), jac=lambda x: function(x)[1],
                     method="BFGS", options={"gtol": 1e-7, "maxiter": 5_000})  # fmt: skip
    assert solution.value <= other.fun + 1e-6


def test_a_hard_fit_of_many_classes_goes_on_with_newton_steps(monkeypatch):
    z, y, _, _ = mapped(k=6)
    exact = MatrixScaling(l2=1e-6, input="logits").fit(z, y)
    monkeypatch.setattr(MatrixProblem, "most_dense", 1)
    monkeypatch.setattr(softmax_fits, "_EASY", 1)
    other = MatrixScaling(l2=1e-6, input="logits").fit(z, y)
    assert not other.warnings_
    # A tenth of a nat over all rows.
    assert nll(other.transform(z), y) <= nll(exact.transform(z), y) + 0.1 / y.size


@pytest.mark.parametrize("way", ["by_class", "kronecker"])
def test_with_many_classes_other_hessians_lead_to_the_same_place(way, monkeypatch):
    z, y, _, _ = mapped(k=6)
    exact = MatrixScaling(l2=1e-3, input="logits").fit(z, y)
    monkeypatch.setattr(MatrixProblem, "most_dense", 1)
    if way == "kronecker":
        monkeypatch.setattr(softmax_losses, "BLOCKS", 1)
    other = MatrixScaling(l2=1e-3, input="logits").fit(z, y)
    np.testing.assert_allclose(other.transform(z), exact.transform(z), atol=1e-4)
    assert not other.warnings_


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"off_diagonal": 1e-3, "intercept": 1e-3}, {"intercept": 1.0}])
def test_a_fit_of_many_classes_needs_at_most_twice_the_memory_of_the_scores(given):
    # Weak penalties take Newton's method, a strength that is not given a search.
    z, y = simulate(8_000, 60)
    z = z.astype(np.float32)
    method = MatrixScaling(regularisation="odir", input="logits", **given)
    method.fit(z[:300], y[:300])  # what the first fit imports is not counted
    tracemalloc.start()
    try:
        method.fit(z, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * z.nbytes


def test_large_data_are_fitted_to_some_rows_first():
    z, y, _, _ = mapped(n=70_000)
    fitted = VectorScaling(input="logits").fit(z, y)
    x = np.stack([fitted.weights_, fitted.intercepts_])
    assert np.abs(VectorProblem(z, y).at(x)[1]).max() < 1e-6


def test_a_fit_that_would_take_too_long_is_refused_with_its_estimate():
    z, y = simulate(3_000, 30)
    with pytest.raises(NotAvailable, match=r"about \d+ seconds, above the limit of 0; raise"):
        MatrixScaling(max_seconds=1e-9, input="logits").fit(z, y)
    with pytest.raises(NotAvailable, match="give 'off_diagonal' and 'intercept'"):
        MatrixScaling(regularisation="odir", max_seconds=1e-9, input="logits").fit(z, y)


def test_too_few_rows_for_so_many_weights_is_said():
    z, y = simulate(100, 12)
    fitted = MatrixScaling(input="logits").fit(z, y)
    assert any("156 parameters from 100 calibration rows" in w for w in fitted.warnings_)


def test_minimise_on_a_quadratic_with_its_hessian_is_newton():
    h = np.diag([1.0, 10.0, 100.0])
    solution = minimise(
        lambda x: (0.5 * x @ h @ x, h @ x), np.ones(3), lambda g: g / np.diag(h), tolerance=1e-14
    )
    assert solution.converged
    assert solution.passes == 2
    np.testing.assert_allclose(solution.x, 0, atol=1e-12)


def test_minimise_goes_on_where_steps_are_far_too_long_at_first():
    # The directions are 10^13 times the gradient: many halvings promise little before one of them holds.
    solution = minimise(
        lambda x: (1 + 1e-10 * float(np.sqrt(1 + x @ x)), 1e-10 * x / np.sqrt(1 + x @ x)),
        np.array([3.0]),
        lambda g: 1e13 * g,
        tolerance=1e-16,
    )
    assert abs(solution.x[0]) < 1e-2


def test_a_part_of_the_rows_is_the_problem_of_these_rows():
    z, y = simulate(600, 5)
    z = z.astype(np.float32)
    penalty = Penalty(np.full((5, 6), 0.01))
    x = np.random.default_rng(0).normal(size=(5, 6))
    rows = np.arange(0, 600, 7)
    part, copied = (
        MatrixProblem(logits(z), y, penalty).of_rows(rows),
        MatrixProblem(logits(z[rows]), y[rows], penalty),
    )
    for one, other in (
        (part, copied),
        (part.every(3), copied.every(3)),
        (
            part.of_rows(np.arange(9, 20)),
            MatrixProblem(logits(z[rows][9:20]), y[rows][9:20], penalty),
        ),
    ):
        assert one.n == other.n
        assert one.at(x)[0] == pytest.approx(other.at(x)[0], rel=1e-12)
        np.testing.assert_allclose(one.at(x)[1], other.at(x)[1], rtol=1e-9, atol=1e-12)


def test_the_hessian_of_every_class_alone_is_its_block_of_the_whole():
    k = 3
    z, y = simulate(200, k)
    problem = VectorProblem(z, y)
    x = np.random.default_rng(0).normal(size=(2, k))
    p = softmax(x[0] * z + x[1])
    g = np.random.default_rng(1).normal(size=(2, k))
    problem.classwise_hessian = True
    solved = problem.inverse(x)(g)
    for c in range(k):
        inputs = np.stack([z[:, c], np.ones(y.size)])
        block = (inputs * p[:, c] * (1 - p[:, c])) @ inputs.T / y.size
        np.testing.assert_allclose(block @ solved[:, c], g[:, c], rtol=1e-6)


@pytest.mark.parametrize("together", [False, True], ids=["apart", "moving together"])
def test_vector_scaling_of_many_classes_is_that_of_few(monkeypatch, together):
    z, y, _, _ = mapped(k=6)
    if together:
        # Three nearly equal classes in each of two groups, a mile apart.
        z = z + np.repeat([[0.0, 30.0]], 3, axis=1) * np.where(y < 3, -1, 1)[:, None]
    plain = VectorScaling(input="logits").fit(z, y)
    ways = []
    inverse = VectorProblem.inverse
    monkeypatch.setattr(
        VectorProblem,
        "inverse",
        lambda self, x: (ways.append(self.classwise_hessian), inverse(self, x))[1],
    )
    monkeypatch.setattr(softmax_losses, "TOGETHER", 1)
    monkeypatch.setattr(softmax_fits, "_CLASSWISE_PASSES", 3)
    fitted = VectorScaling(input="logits").fit(z, y)
    # Three passes are not enough: it goes on with what the classes share.
    assert ways == [True, False]
    np.testing.assert_allclose(fitted.weights_, plain.weights_, rtol=1e-3, atol=1e-3)
    monkeypatch.setattr(softmax_fits, "_CLASSWISE_PASSES", 300)
    fitted = VectorScaling(input="logits").fit(z, y)
    assert ways == [True, False, True]
    np.testing.assert_allclose(fitted.weights_, plain.weights_, rtol=1e-3, atol=1e-3)


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
    result = ece_of_temperatures(
        Scores(z, "logits", "logits"), y, 1 / temperatures, np.ones(y.size)
    )
    np.testing.assert_allclose(result, [plain_ece(z, y, t) for t in temperatures], atol=1e-12)


def test_gamma_has_the_lowest_ece_of_the_whole_grid():
    z, y = unequal(n=300)
    direction = np.array([1.0, 0.2, -0.3, -0.8])
    gamma, error = best_gamma(Scores(z, "logits", "logits"), y, 1.3, direction, np.ones(y.size))
    every = [plain_ece(z, y, 1.3 * (1 + g * direction)) for g in GRID[::10]]
    assert error == pytest.approx(plain_ece(z, y, 1.3 * (1 + gamma * direction)))
    assert error <= min(every) + 1e-12


@pytest.mark.slow
def test_the_short_search_comes_close(monkeypatch):
    z, y = unequal(n=2_000)
    scores, direction = Scores(z, "logits", "logits"), np.array([1.0, 0.2, -0.3, -0.8])
    _, exact = best_gamma(scores, y, 1.3, direction, np.ones(y.size))
    monkeypatch.setattr(temperature_search, "_EXHAUSTIVE", 0)
    _, short = best_gamma(scores, y, 1.3, direction, np.ones(y.size))
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


def test_an_offset_of_all_classes_alike_is_no_sign_of_separable_rows():
    """Of these rows, in this order, the fit ends with offsets of 159 in all classes, which change nothing."""
    rng = np.random.default_rng(438)
    probs = rng.dirichlet(np.ones(3), size=120)
    labels = draw_labels(probs**0.7 / (probs**0.7).sum(axis=1, keepdims=True), rng)
    order = rng.permutation(120)
    one = VectorScaling().fit(probs, labels)
    other = VectorScaling().fit(probs[order], labels[order])
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-4)
    np.testing.assert_allclose(one.intercepts_, other.intercepts_, atol=1e-4)
    assert one.warnings_ == other.warnings_ == ()

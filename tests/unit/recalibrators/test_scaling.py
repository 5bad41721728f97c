"""Temperatures and ensembles of them."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import norm
from sklearn.metrics import log_loss

from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED
from calviz.core.errors import InputError, OptionError
from calviz.core.probabilities import (
    Scores,
    _TemperatureProblem,
    complement,
    fit_temperature,
    raise_to,
)
from calviz.recalibrators import auto
from calviz.recalibrators.auto import (
    FEW_ROWS,
    MOST_ROWS,
    RAMP,
    AutomaticRecalibrator,
    HeldOut,
    best_shares,
    extra_standard_errors,
    order_of_rows,
    rows_to_choose_on,
    shuffled_folds,
)
from calviz.recalibrators.base import load_map
from calviz.recalibrators.temperature_scaling import (
    EnsembleTemperatureScaling,
    TemperatureScaling,
    likelihood_weights,
    squared_error_weights,
)
from tests.inputs.simulated import draw_labels, simulate, softmax


def plain_loss(z, y, temperature, loss):
    p = softmax(z / temperature)
    own = p[np.arange(y.size), y]
    if loss == "nll":
        return -np.log(own).mean()
    return ((p - np.eye(z.shape[1])[y]) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("k", [2, 5, 60])
@pytest.mark.parametrize("true", [0.3, 2.5])
def test_is_the_minimum_that_a_plain_search_finds(loss, k, true):
    z, y = simulate(1_500, k, temperature=true, seed=k)
    temperature = TemperatureScaling(loss=loss, input="logits").fit(z, y).temperature_
    other = minimize_scalar(
        lambda t: plain_loss(z, y, t, loss), bracket=(0.8 * true, true), options={"xtol": 1e-10}
    )
    assert temperature == pytest.approx(other.x, rel=1e-6)


def test_finds_the_temperature_that_made_the_labels():
    z, y = simulate(200_000, 4, temperature=1.6, seed=5)
    assert TemperatureScaling(input="logits").fit(z, y).temperature_ == pytest.approx(1.6, rel=0.01)


def test_two_rows_by_hand():
    """Logits (a, 0): right in 3 of 4 rows, so that the best map gives 3/4: a / T = log 3."""
    z = np.array([[1.7, 0.0]] * 4)
    fitted = TemperatureScaling(input="logits").fit(z, [0, 0, 0, 1])
    assert fitted.temperature_ == pytest.approx(1.7 / np.log(3), rel=1e-8)
    np.testing.assert_allclose(fitted.transform(z)[:, 0], 0.75)


@pytest.mark.parametrize("factor", [1e-6, 100, 1e7])
@pytest.mark.parametrize("loss", ["nll", "mse"])
def test_scales_with_the_logits(factor, loss):
    z, y = simulate(800, 4, temperature=2)
    one = TemperatureScaling(loss=loss, input="logits").fit(z, y).temperature_
    other = TemperatureScaling(loss=loss, input="logits").fit(factor * z, y).temperature_
    assert other == pytest.approx(factor * one, rel=1e-6)


def test_float32_and_float64_agree():
    z, y = simulate(3_000, 20, temperature=1.3)
    narrow = z.astype(np.float32)
    a = TemperatureScaling(input="logits").fit(narrow, y).temperature_
    b = TemperatureScaling(input="logits").fit(narrow.astype(np.float64), y).temperature_
    assert a == pytest.approx(b, rel=1e-6)


@pytest.mark.slow
def test_many_rows_in_single_precision_reach_the_optimum():
    z, y = simulate(60_000, 50, temperature=1.4)
    narrow = z.astype(np.float32)
    a = TemperatureScaling(input="logits").fit(narrow, y).temperature_
    b = TemperatureScaling(input="logits").fit(narrow.astype(np.float64), y).temperature_
    other = minimize_scalar(
        lambda t: plain_loss(narrow.astype(float), y, t, "nll"), bracket=(1.3, 1.5), tol=1e-10
    )
    assert a == pytest.approx(other.x, rel=1e-6)
    assert b == pytest.approx(other.x, rel=1e-6)


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("k", [3, 40])
def test_derivatives(loss, k):
    z, y = simulate(200, k)
    problem = _TemperatureProblem(Scores(z, "logits", "logits"), y, loss)
    for beta in (0.2, 1.0, 3.0):
        h = 1e-4
        low, at, high = (problem.at(b) for b in (beta - h, beta, beta + h))
        assert at.value == pytest.approx(plain_loss(z, y, 1 / beta, loss), rel=1e-12)
        assert at.slope == pytest.approx((high.value - low.value) / (2 * h), abs=1e-6)
        assert at.curvature == pytest.approx((high.slope - low.slope) / (2 * h), abs=1e-5)


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("ties", [0, 2])
def test_separable_rows_are_fitted_with_smoothed_labels_and_say_so(loss, ties):
    # Of 40 rows, perhaps with ties that are right or wrong at any T, by hand: 41/42 and 1/42 are met where exp(5/T) = 41.
    z = np.array([[5.0, 0.0], [0.0, 5.0]] * 20 + [[1.0, 1.0]] * ties)
    fitted = TemperatureScaling(input="logits", loss=loss).fit(z, [0, 1] * 20 + [0, 1][:ties])
    assert "separable" in fitted.warnings_[0]
    assert fitted.temperature_ == pytest.approx(5 / np.log(41 + ties), rel=1e-4)


def test_scores_that_are_worse_than_chance_end_at_the_upper_bound_and_say_so():
    z = np.array([[5.0, 0.0], [0.0, 5.0]] * 20)
    fitted = TemperatureScaling(input="logits").fit(z, [1, 0] * 20)
    assert "upper bound" in fitted.warnings_[0]
    np.testing.assert_allclose(fitted.transform(z), 0.5, atol=1e-3)


def test_equal_scores_have_no_temperature_and_stay_uniform():
    p = np.full((40, 4), 0.25)
    np.testing.assert_allclose(TemperatureScaling().fit(p, [0, 1, 2, 3] * 10).transform(p), 0.25)


def test_logits_and_their_probabilities_have_one_temperature():
    z, y = simulate(500, 4, temperature=3)
    a = TemperatureScaling(input="logits").fit(z, y).temperature_
    b = TemperatureScaling().fit(softmax(z), y).temperature_
    assert a == pytest.approx(b, rel=1e-8)


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, 2.0**-126), (np.float64, 2.0**-1022)])
def test_without_a_floor_zeros_count_as_the_smallest_normal_number_of_their_type(dtype, least):
    subnormal = np.nextafter(dtype(0), dtype(1))
    p = np.array([[0.99, 0.01, 0.0], [0.2, 0.4, 0.4], [1 - 0.25, 0.25, subnormal]], dtype=dtype)
    fitted = TemperatureScaling(floor=None).fit(p, [0, 1, 1])
    assert fitted.floor_ == fitted.describe()["floor"] == fitted.to_dict()["floor"] == least
    block = Scores(p, "probabilities", "logits", fitted.floor_).block(slice(0, 3))
    np.testing.assert_array_equal(block[[0, 2], 2], np.log(dtype(least)))
    assert not fitted.warnings_


def test_the_floor_can_be_set_and_is_of_no_matter_to_logits():
    p = np.array([[0.99, 0.01, 0.0], [0.2, 0.4, 0.4]])
    fitted = TemperatureScaling(floor=1e-6).fit(p, [0, 1])
    assert fitted.floor_ == fitted.describe()["floor"] == fitted.to_dict()["floor"] == 1e-6
    assert "floor" not in TemperatureScaling(input="logits").fit(p, [0, 1]).describe()


def test_a_map_from_double_precision_reads_zeros_of_single_precision():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.4, 0.4], [0.1, 0.9, 0.0]])
    out = TemperatureScaling().fit(p, [0, 1, 0]).transform(p.astype(np.float32))
    assert np.isfinite(out).all()


def test_zeros_on_the_true_class_are_said():
    p = np.array([[1.0, 0.0], [0.6, 0.4], [0.3, 0.7]] * 20)
    y = np.array([0, 1, 1] * 20)
    y[:6:3] = 1
    assert not TemperatureScaling().fit(p, y).warnings_
    (warnings,) = TemperatureScaling(floor=None).fit(p, y).warnings_
    assert (
        "2 of 60 calibration rows give their true class a probability of 0, read as 2.23e-308"
        in warnings
    )
    assert "leave 'floor' at \"auto\", which is 0.01 here" in warnings
    (warnings,) = TemperatureScaling(loss="mse", floor=None).fit(p, y).warnings_
    assert "they hardly count in the fit, and stay next to 0" in warnings
    before = TemperatureScaling(loss="mse", floor=None).fit(p, y).transform(p[:1])[0, 1]
    after = TemperatureScaling(loss="mse", floor=0.01).fit(p, y).transform(p[:1])[0, 1]
    assert before < 1e-6 < after


def test_the_complement_is_exact_beside_one():
    p = np.array([[1.0, 1e-20, 2e-20], [0.5, 0.25, 0.25]])
    rest = complement(p)
    np.testing.assert_allclose(rest, [[3e-20, 1, 1], [0.5, 0.75, 0.75]], rtol=1e-15)
    np.testing.assert_array_equal(p[0], [1.0, 1e-20, 2e-20])


def test_the_search_reads_large_data_only_a_few_times():
    z, y = simulate(50_000, 5, temperature=1.5)
    assert fit_temperature(Scores(z, "logits", "logits"), y).passes <= 2


def test_low_exponents_are_raised_and_others_left_alone():
    for lowest in (-3.0, -90.0):
        block = np.array([[lowest, -80.5, -2.0], [0.0, -1.0, -79.5]])[:, ::2]
        wanted = np.maximum(block, -80)
        raise_to(-80, block)
        np.testing.assert_array_equal(block, wanted)
    raise_to(-80, np.empty((0, 3)))


@pytest.mark.parametrize("k", [3, 40])
def test_the_scores_are_not_written_to(k):
    z, y = simulate(300, k)
    for array in (z, z.astype(np.float32)):
        kept = array.copy()
        scores = Scores(array, "logits", "logits")
        assert np.shares_memory(scores.read_only_block(slice(0, 9), array.dtype.type), array)
        fit_temperature(scores, y)
        np.testing.assert_array_equal(array, kept)


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
    w = likelihood_weights(own, np.ones(200))
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


# ---- The automatic mixture: its weights and gains by hand, and what it does where the truth is known


def drawn(rng, n, k=3, scale=1.0):
    """Probabilities whose logits are `scale` times the true ones, and labels."""
    p = rng.dirichlet(np.full(k, 0.8), n)
    labels = draw_labels(p, rng)
    text = np.maximum(p, 1e-12) ** scale
    return text / text.sum(axis=1, keepdims=True), labels


def held_out_of(rng, n=60, k=4, methods=3):
    """Random probabilities of several methods in two folds, whole and summed up."""
    whole = rng.dirichlet(np.ones(k), (methods, n))
    labels = rng.integers(k, size=n)
    folds = np.arange(n) % 2
    parts = [(np.flatnonzero(folds == f), [m[folds == f] for m in whole]) for f in (0, 1)]
    return whole, labels, HeldOut.of(parts, labels)


def test_losses_and_gains_are_those_of_the_probabilities():
    rng = np.random.default_rng(0)
    whole, labels, result = held_out_of(rng)
    weights = np.array([[0.2, 0.5, 0.3], [0.6, 0.4, 0]])
    mixed = np.einsum("nm,mnk->nk", weights[np.arange(60) % 2], whole)
    truth = np.eye(4)[labels]
    one, other = (((p - truth) ** 2).sum(axis=1) for p in (whole[0], mixed))
    gains = result.gains(weights)
    np.testing.assert_allclose(gains[1], one - other, atol=1e-12)
    by_scikit = log_loss(labels, whole[0]) - log_loss(labels, mixed)
    assert gains[0].mean() == pytest.approx(by_scikit, abs=1e-12)
    np.testing.assert_allclose(result.losses[1][:, 1], ((whole[1] - truth) ** 2).sum(axis=1))


def test_shares_of_two_methods_are_those_of_the_normal_limit():
    rng = np.random.default_rng(1)
    losses = rng.normal([0, 0.03], size=(1, 2_000, 2))
    apart = losses[0, :, 1] - losses[0, :, 0]
    expected = norm.cdf(apart.mean() / (apart.std() / 2_000**0.5))
    # 1,000 resamples: two standard errors are 3 points.
    assert best_shares(losses, rng)[0, 0] == pytest.approx(expected, abs=0.035)


def test_equal_methods_share_and_a_dominated_one_gets_nothing():
    rng = np.random.default_rng(2)
    one = rng.random(100)
    shares = best_shares(np.stack([one, one, one + 1], axis=1)[None], rng)
    np.testing.assert_allclose(shares[0], [0.5, 0.5, 0])


def test_every_fold_has_its_part_of_every_class():
    rng = np.random.default_rng(3)
    _, labels = drawn(rng, 500)
    fold = shuffled_folds(labels, 5, rng)
    for k in range(3):
        assert np.ptp(np.bincount(fold[labels == k], minlength=5)) <= 1


def test_the_order_of_rows_is_that_of_their_scores():
    rng = np.random.default_rng(4)
    p, labels = drawn(rng, 300)
    shuffled, renamed = rng.permutation(300), rng.permutation(3)
    order = order_of_rows(p, labels)
    other = order_of_rows(p[shuffled][:, renamed], np.argsort(renamed)[labels[shuffled]])
    np.testing.assert_array_equal(shuffled[other], order)
    np.testing.assert_array_equal(rows_to_choose_on(300), np.arange(300))
    assert rows_to_choose_on(3 * MOST_ROWS).size == MOST_ROWS


def test_few_rows_leave_the_model_alone_and_say_so():
    p, labels = drawn(np.random.default_rng(10), 12)
    labels[:2] = 0, 1
    fitted = AutomaticRecalibrator().fit(p, labels)
    assert [part.key for part in fitted.parts_] == [UNCALIBRATED]
    assert "too few" in fitted.warnings_[0]


@pytest.mark.parametrize(
    ("rows", "more"), [(50, 2.4), (200, 1.2), (400, 0.6), (800, 0), (10_000, 0)]
)
def test_few_rows_ask_for_more(rows, more):
    assert extra_standard_errors(rows) == pytest.approx(more)


def test_the_limits_in_the_description_are_those_that_are_used():
    words = " ".join((AutomaticRecalibrator.__doc__ or "").split())
    assert f"all of it from {RAMP[1]:g} standard errors, none below {RAMP[0]:g}," in words
    assert f"with fewer than {FEW_ROWS} rows both limits are higher" in words
    assert (
        f"by {extra_standard_errors(500):.1f} with 500 rows and by {extra_standard_errors(200):.1f} with 200"
        in words
    )


@pytest.mark.slow
def test_a_calibrated_model_is_hardly_changed_and_an_overconfident_one_is_mended():
    rng = np.random.default_rng(5)
    cost, worse, flexible = [], 0, []
    for _ in range(3):
        p, labels = drawn(rng, 400)
        fresh, truth = drawn(rng, 4_000)
        maps = AutomaticRecalibrator(), RECALIBRATORS["isotonic"].make()
        for into, fitted in zip((cost, flexible), maps, strict=True):
            after = fitted.fit(p, labels).transform(fresh)
            into.append(log_loss(truth, after) - log_loss(truth, fresh))
        p, labels = drawn(rng, 400, scale=2)
        fitted = AutomaticRecalibrator().fit(p, labels)
        fresh, truth = drawn(rng, 2_000, scale=2)
        worse += log_loss(truth, fitted.transform(fresh)) > log_loss(truth, fresh)
    # A parameter that is not needed costs 1 / (2 n) = 0.00125 on average; vector scaling has five.
    assert np.mean(cost) < 2 * 0.00125
    assert np.mean(flexible) > 5 * 0.00125
    assert worse == 0


@pytest.mark.slow
def test_all_or_one_and_caution():
    rng = np.random.default_rng(6)
    p, labels = drawn(rng, 400, scale=1.8)
    mixture, one = (AutomaticRecalibrator(combine=how).fit(p, labels) for how in ("mixture", "one"))
    assert len(mixture.parts_) > 1
    assert mixture.weights_.sum() == pytest.approx(1)
    assert len(one.parts_) == 1
    alone = RECALIBRATORS[one.parts_[0].key].make().fit(p, labels)
    np.testing.assert_array_equal(one.transform(p), alone.transform(p))
    careful = AutomaticRecalibrator(caution=100).fit(p, labels)
    assert [part.key for part in careful.parts_] == [UNCALIBRATED]
    np.testing.assert_allclose(careful.transform(p), p, atol=1e-12)
    assert "both have to be above" in careful.reason
    # A map that was saved before it said how much it asks for.
    old = careful.to_dict()
    del old["fitted"]["evidence"]["counts_from"]
    assert "no gain in both scores" in load_map(old).reason


@pytest.mark.slow
def test_the_mixture_is_the_weighted_mean_of_its_parts():
    rng = np.random.default_rng(7)
    p, labels = drawn(rng, 300, scale=1.8)
    fitted = AutomaticRecalibrator().fit(p, labels)
    by_hand = sum(
        w * RECALIBRATORS[part.key].make().fit(p, labels).transform(p)
        for w, part in zip(fitted.weights_, fitted.parts_, strict=True)
    )
    np.testing.assert_allclose(fitted.transform(p), by_hand, atol=1e-12)


@pytest.mark.slow
def test_methods_far_behind_are_not_fitted_to_all_folds_and_change_no_weight(monkeypatch):
    p, labels = drawn(np.random.default_rng(8), 1_200)
    p = p * [20, 1, 1]  # so that one temperature for all classes does not help
    p /= p.sum(axis=1, keepdims=True)
    fitted = AutomaticRecalibrator().fit(p, labels)
    monkeypatch.setattr(auto, "FAR_BEHIND", 1e9)
    whole = AutomaticRecalibrator().fit(p, labels)
    assert [part.key for part in fitted.parts_] == [part.key for part in whole.parts_]
    np.testing.assert_allclose(fitted.weights_, whole.weights_, atol=0.02)
    told, measured = (f.evidence_["methods"] for f in (fitted, whole))
    estimated = [key for key in told if told[key]["nll"] != measured[key]["nll"]]
    assert estimated
    for key in estimated:
        assert told[key]["best_nll"] == told[key]["best_brier"] == 0
        assert told[key]["brier"] == pytest.approx(measured[key]["brier"], abs=0.05)


@pytest.mark.slow
def test_what_was_tried_is_told():
    rng = np.random.default_rng(8)
    p, labels = drawn(rng, 300, scale=1.8)
    description = AutomaticRecalibrator().fit(p, labels).describe()
    members = {s.key for s in RECALIBRATORS if s.mixed_up_to >= 3} | {UNCALIBRATED}
    assert set(description["methods"]) == members
    assert sum(m["best_nll"] for m in description["methods"].values()) == pytest.approx(1)
    assert description["why"].endswith(" s.")
    json.dumps(description)


@pytest.mark.slow
def test_a_saved_mixture_that_was_changed_is_refused():
    rng = np.random.default_rng(9)
    p, labels = drawn(rng, 300, scale=1.8)
    record = AutomaticRecalibrator().fit(p, labels).to_dict()
    record["fitted"]["weights"][0] += 0.5
    with pytest.raises(InputError, match="sum to 1"):
        load_map(record)


@pytest.mark.parametrize("wrong", [{"caution": -1.0}, {"caution": float("nan")}, {"folds": 1}])
def test_impossible_parameters(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        AutomaticRecalibrator(**wrong).fit([[0.5, 0.5]] * 4, [0, 1, 0, 1])

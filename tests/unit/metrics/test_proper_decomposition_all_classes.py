"""Cross-fitted parts of all classes: probmetrics' values, temperatures fitted one by one, and what they are of calibrated models."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

import calviz
from benchmarks.record_refinement import RECORDED, cases
from calviz.core.predictions import Predictions, with_rows
from calviz.sample import cross_fitted_classes
from calviz.sample.cross_fitted_classes import FOLDS, fit_folds, folds
from calviz.sample.sample import Sample
from tests.inputs.simulated import draw_labels

KEYS = [f"{s}_{p}_all" for s in ("nll", "brier") for p in ("calibration", "refinement")]
CASES = cases()


def rows(n, k=5, sharpness=1.0, seed=0):
    rng = np.random.default_rng([seed, n])
    z = 2 * rng.standard_normal((n, k))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return calviz.Predictions(probs=softmax(sharpness * z, axis=1), labels=labels)


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_probmetrics(name):
    probs, labels = CASES[name]
    expected = json.loads(RECORDED.read_text())["values"][name]
    data = calviz.Predictions(probs=probs, labels=labels)
    nll, brier = fit_folds(data, np.arange(labels.size) % FOLDS).mean()
    assert nll == pytest.approx(expected["refinement_logloss_ts-mix_ours"], abs=1e-7)
    assert brier == pytest.approx(expected["refinement_brier_ts-mix_ours"], abs=1e-7)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_they_add_up_and_leave_the_own_fold_out(weighted, clustered):
    data, w = rows(120, sharpness=1.7), np.ones(120)
    columns, cluster = {}, np.random.default_rng(2).integers(30, size=120)
    if clustered:
        columns["clusters"] = cluster
    if weighted:
        w = np.random.default_rng(1).integers(1, 5, 120)
        columns["weights"], w = w, w / w.mean()
    if columns:
        data = with_rows(data, **columns)
    evaluation = calviz.evaluate(data, [*KEYS, "nll", "brier"])
    for score in ("nll", "brier"):
        parts = (
            evaluation[f"{score}_calibration_all"].value
            + evaluation[f"{score}_refinement_all"].value
        )
        assert parts == pytest.approx(evaluation[score].value, abs=1e-12)
    fold, z = Sample(data).view(folds).fold, np.log(data.probs)
    if clustered:
        assert (
            np.unique(np.column_stack([cluster, fold]), axis=0).shape[0] == np.unique(cluster).size
        )
    losses = np.zeros(120)
    for f in range(FOLDS):
        out, y = fold == f, data.labels

        def loss(beta, kept=~out, y=y):
            return -w[kept] @ log_softmax(beta * z[kept], axis=1)[np.arange(kept.sum()), y[kept]]

        beta = minimize_scalar(loss, bounds=(0.1, 3), method="bounded").x
        m = w[~out].sum() ** 2 / (w[~out] ** 2).sum()
        p = m / (m + 1) * softmax(beta * z[out], axis=1) + 1 / ((m + 1) * 5)
        losses[out] = -np.log(p[np.arange(out.sum()), y[out]])
    assert evaluation["nll_refinement_all"].value == pytest.approx(np.mean(w * losses), abs=1e-5)


def test_copies_of_rows_in_clusters_say_no_more_than_the_rows():
    # Sums of residuals whose sign is kept or changed have the covariance of redrawn labels, on average over samples.
    spread = {"plain": [], "copies": []}
    for seed in range(4):
        plain = rows(300, 3, seed=seed)
        thrice = np.repeat(np.arange(300), 3)
        copies = with_rows(plain.take(thrice), clusters=thrice)
        for name, data in (("plain", plain), ("copies", copies)):
            how = {"ci": True, "findings": False, "resamples": 150}
            evaluation = calviz.evaluate(data, ["nll_refinement_all", "nll_calibration_all"], **how)
            inside = evaluation["nll_refinement_all"].interval
            floor = evaluation["nll_calibration_all"].noise_floor
            spread[name].append((inside.high - inside.low, floor.q95 - floor.mean))
    one, three = (np.mean(spread[name], axis=0) for name in ("plain", "copies"))
    np.testing.assert_allclose(three, one, rtol=0.3)


def test_the_order_of_rows_and_logits_change_nothing():
    data = rows(90)
    order = np.random.default_rng(3).permutation(90)
    whole, other = (calviz.evaluate(d, KEYS) for d in (data, data.take(order)))
    logits = calviz.Predictions(logits=np.log(data.probs) + 3, labels=data.labels)
    same = calviz.evaluate(logits, KEYS)
    for key in KEYS:
        assert other[key].value == pytest.approx(whole[key].value, abs=1e-12)
        assert same[key].value == pytest.approx(whole[key].value, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 600])  # labels drawn one by one, and their sums
def test_p_values_of_weighted_calibrated_rows_are_uniform(n):
    p_values = []
    for seed in range(40):
        w = np.random.default_rng(seed).exponential(size=n)
        data = with_rows(rows(n, 3, seed=seed), weights=w)
        evaluation = calviz.evaluate(
            data, KEYS[::2], noise_floor=True, findings=False, resamples=80
        )
        p_values.append([evaluation[key].noise_floor.p_value for key in KEYS[::2]])
    # Of 40 uniform numbers 7 are below .05 in 0.3 % of cases; the mean has a standard error of .046.
    assert np.sum(np.array(p_values) <= 0.05, axis=0).max() < 7
    np.testing.assert_allclose(np.mean(p_values, axis=0), 0.5, atol=0.14)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 900])  # labels drawn one by one, and their sums
def test_of_calibrated_models_p_values_are_uniform_and_intervals_hold_zero(n):
    small, half, holds, runs = 0, 0, 0, 40
    for seed in range(runs):
        evaluation = calviz.evaluate(rows(n, seed=seed), KEYS[::2], ci=True, resamples=100)
        p = np.array([evaluation[key].noise_floor.p_value for key in KEYS[::2]])
        small, half = small + (p <= 0.05), half + (p <= 0.5)
        holds = holds + np.array([r.interval.low <= 0 <= r.interval.high for r in evaluation])
    # Binomial(40, .05), (40, .5) and (40, .95), each to 1 in 1,000.
    assert (small <= 7).all()
    assert ((half >= 10) & (half <= 30)).all()
    assert (holds >= 33).all()


@pytest.mark.slow
def test_redrawn_labels_are_fitted_as_drawn_ones_are():
    """Newton's step and the parabola against values of labels that are drawn and evaluated anew."""
    data = rows(400)
    drawn = Sample(data).view(folds).redrawn(np.random.default_rng(0), 4000, score="nll", part="calibration")  # fmt: skip
    rng, exact = np.random.default_rng(1), []
    for _ in range(60):
        labels = draw_labels(data.probs, rng)
        again = calviz.Predictions(probs=data.probs, labels=labels)
        exact.append(calviz.evaluate(again, ["nll_calibration_all"])["nll_calibration_all"].value)
    assert drawn.mean() == pytest.approx(np.mean(exact), abs=3.5 * np.std(exact) / np.sqrt(60))


def test_where_they_do_not_apply_they_say_why():
    two = calviz.evaluate(rows(60, k=2), ["nll_calibration_all"])["nll_calibration_all"]
    assert "for two classes" in two.reason
    few = calviz.evaluate(rows(19), ["nll_calibration_all"])["nll_calibration_all"]
    assert "fewer than 20 rows" in few.reason


def test_a_temperature_of_some_of_the_rows_loses_nothing_to_speak_of(monkeypatch):
    rng = np.random.default_rng(8)
    z = rng.normal(size=(20_000, 3))
    labels = (2 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = calviz.Predictions(probs=softmax(z, axis=1), labels=labels)
    keys = ["nll_refinement_all", "nll_calibration_all"]
    every = calviz.evaluate(p, keys)
    monkeypatch.setattr(cross_fitted_classes, "FIT_BYTES", 2_000 * 24)
    some = calviz.evaluate(p, keys)
    for key in keys:
        # A fit to m rows loses 1 / (2 m) nats on average; five times as much is beyond chance.
        assert abs(some[key].value - every[key].value) < 5 / (2 * 2_000)


def test_rows_are_put_in_order_by_the_first_key_that_differs():
    rng = np.random.default_rng(9)
    keys = [rng.integers(4, size=20_000).astype(float) for _ in range(3)]
    first, *others = keys
    order = cross_fitted_classes._in_order(first.astype(np.uint64), lambda rows: tuple(k[rows] for k in others))  # fmt: skip
    expected = np.lexsort(keys[::-1])
    # `lexsort` is stable: rows that tie in all keys stay in their order.
    np.testing.assert_array_equal(order, expected)


def test_each_fold_has_the_same_rows_whatever_their_order():
    rng = np.random.default_rng(11)
    one = rng.dirichlet(np.ones(4), 60).astype(np.float32)
    kind, label_of_kind = rng.integers(60, size=4_000), rng.integers(4, size=60)

    def rows_per_fold(kind):
        data = Predictions(probs=one[kind], labels=label_of_kind[kind])
        table = np.zeros((60, FOLDS))
        np.add.at(table, (kind, cross_fitted_classes._fold_of_rows(data)), 1)
        return table

    np.testing.assert_array_equal(rows_per_fold(rng.permutation(kind)), rows_per_fold(kind))


@pytest.mark.parametrize("most", [1, 7, 1_000, 30_000])
def test_a_thinned_selection_is_every_nth_row(most):
    chosen = np.random.default_rng(0).random(20_000) < 0.8
    rows = np.flatnonzero(chosen)
    np.testing.assert_array_equal(
        cross_fitted_classes._thinned(chosen, most), rows[:: -(-rows.size // most)]
    )

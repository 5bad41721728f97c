"""Parts of proper scores, over all classes and cross-fitted."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax, xlogy
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GroupKFold

import calviz
from benchmarks.record_refinement import RECORDED, cases
from calviz.core.blocks import Factor
from calviz.core.predictions import Predictions, with_rows
from calviz.sample import cross_fitted as cross_fitting
from calviz.sample.cross_fitted import FOLDS, OWN_ROWS, cross_fitted, fit_folds, fold_of_rows, folds
from calviz.sample.sample import Sample
from tests.inputs.simulated import draw_labels

# ---- Cross-fitted parts of all classes: probmetrics' values, temperatures fitted one by one, and what they are of calibrated models


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
    monkeypatch.setattr(cross_fitting, "FIT_BYTES", 2_000 * 24)
    some = calviz.evaluate(p, keys)
    for key in keys:
        # A fit to m rows loses 1 / (2 m) nats on average; five times as much is beyond chance.
        assert abs(some[key].value - every[key].value) < 5 / (2 * 2_000)


def test_rows_are_put_in_order_by_the_first_key_that_differs():
    rng = np.random.default_rng(9)
    keys = [rng.integers(4, size=20_000).astype(float) for _ in range(3)]
    first, *others = keys
    order = cross_fitting._in_order(first.astype(np.uint64), lambda rows: tuple(k[rows] for k in others))  # fmt: skip
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
        np.add.at(table, (kind, cross_fitting._fold_of_rows(data)), 1)
        return table

    np.testing.assert_array_equal(rows_per_fold(rng.permutation(kind)), rows_per_fold(kind))


@pytest.mark.parametrize("most", [1, 7, 1_000, 30_000])
def test_a_thinned_selection_is_every_nth_row(most):
    chosen = np.random.default_rng(0).random(20_000) < 0.8
    rows = np.flatnonzero(chosen)
    np.testing.assert_array_equal(
        cross_fitting._thinned(chosen, most), rows[:: -(-rows.size // most)]
    )


# ---- Cross-fitted parts: sums, truths in closed form, fits made one by one, and what they are of calibrated models


KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED = (
    "nll_calibration",
    "nll_refinement",
    "brier_calibration",
    "brier_refinement",
)
KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED += ("ce_l1_unbiased",)


def predictions(score, hit, weights=None, clusters=None):
    return Predictions(probs=score, labels=hit, weights=weights, clusters=clusters)


def values(score, hit, weights=None, clusters=None, **options):
    data = predictions(score, hit, weights, clusters)
    evaluation = calviz.evaluate(
        data, KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED, reduction="positive", **options
    )
    return {key: evaluation[key].value for key in KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [8, 1])
def test_calibration_and_refinement_add_up_to_the_score(decimals, weighted):
    rng = np.random.default_rng(0)
    w = rng.exponential(size=900) if weighted else None
    score = rng.uniform(0.06, 0.94, 900).round(decimals)
    hit = (rng.random(900) < score**1.5).astype(int)
    result = values(score, hit, w)
    whole = result["nll_calibration"] + result["nll_refinement"]
    assert whole == pytest.approx(log_loss(hit, score, sample_weight=w), abs=1e-12)
    whole = result["brier_calibration"] + result["brier_refinement"]
    assert whole == pytest.approx(brier_score_loss(hit, score, sample_weight=w), abs=1e-12)


def test_truths_in_closed_form():
    # Scores uniform on (0, 1), probabilities their squares.
    rng = np.random.default_rng(1)
    n = 100_000
    score = rng.random(n)
    result = values(score, rng.random(n) < score**2)

    def divergence(s):
        q = s * s
        return xlogy(q, q / s) + xlogy(1 - q, (1 - q) / (1 - s))

    # Three standard errors, and a little for a spline that is not the square.
    assert result["nll_calibration"] == pytest.approx(quad(divergence, 0, 1)[0], abs=0.006)
    assert result["brier_calibration"] == pytest.approx(1 / 30, abs=0.003)  # of (s - s^2)^2
    assert result["ce_l1_unbiased"] == pytest.approx(1 / 6, abs=0.005)
    # Twice the squared spread of the probabilities is what no recalibration takes off.
    assert result["brier_refinement"] == pytest.approx(1 / 3 - 1 / 5, abs=0.003)


@pytest.mark.parametrize(
    ("weighted", "clustered"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_each_row_has_a_fit_that_did_not_see_its_fold(weighted, clustered):
    rng = np.random.default_rng(2)
    score = np.sort(rng.uniform(0.05, 0.95, 60))
    hit = (rng.random(60) < score**2).astype(int)
    counts = rng.integers(1, 5, 60) if weighted else None
    w = np.ones(60) if counts is None else counts / counts.mean()
    # Rows are dealt out in the order of their scores; clusters, of different sizes, as scikit-learn does.
    fold, cluster = np.arange(60) % FOLDS, None
    if clustered:
        cluster = rng.permutation(np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 15]))
        for f, (_, judged) in enumerate(GroupKFold(FOLDS).split(score, groups=cluster)):
            fold[judged] = f
    view = Sample(predictions(score, hit, counts, cluster), "positive").view(cross_fitted)
    z = np.log(score) - np.log1p(-score)
    cell = np.searchsorted((view.z[1:] + view.z[:-1]) / 2, z)
    losses, gaps = np.zeros(60), np.zeros(60)
    for f in range(FOLDS):
        out = fold == f
        x = view.x[cell]
        own = OWN_ROWS / w[~out].sum()

        def loss(theta, x=x, out=out, own=own):
            margin = view.z[cell] + x @ theta
            fit = np.logaddexp(0, margin) - hit * margin
            self = np.logaddexp(0, margin) - expit(view.z[cell]) * margin
            return w[~out] @ (fit + own * self)[~out] + view.penalty @ theta**2 / 2

        theta = minimize(loss, np.zeros(x.shape[1]), method="BFGS", tol=1e-9).x
        margin = view.z[cell] + x @ theta
        losses[out] = (np.logaddexp(0, margin) - hit * margin)[out]
        gaps[out] = (np.sign(x @ theta) * (hit - score))[out]
    result = values(score, hit, counts, cluster)
    assert result["nll_refinement"] == pytest.approx(np.mean(w * losses), abs=1e-5)
    assert result["ce_l1_unbiased"] == pytest.approx(np.mean(w * gaps), abs=1e-12)


@pytest.mark.parametrize("levels", [None, 6])
def test_of_calibrated_models_there_is_nothing_to_gain(levels):
    # Also where rows are tied: folds whose hits were dealt out evenly would make noise look like a gain.
    rng = np.random.default_rng(3)
    score = rng.random(400) if levels is None else np.arange(1, levels + 1)[rng.integers(levels, size=400)] / (levels + 1)  # fmt: skip
    results = [values(score, rng.random(400) < score, resamples=1) for _ in range(60)]
    for key, most in (("nll_calibration", 0.0), ("brier_calibration", 0.0), ("ce_l1_unbiased", 0)):
        drawn = np.array([f[key] for f in results])
        assert drawn.mean() <= most + 3 * drawn.std() / np.sqrt(60), key
    gaps = np.array([f["ce_l1_unbiased"] for f in results])
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(60)


def test_redrawn_hits_are_fitted_as_the_rows_are():
    rng = np.random.default_rng(4)
    score = rng.random(300)
    sample = Sample(predictions(score, rng.random(300) < score), "positive")
    drawn = sample.view(cross_fitted).under_calibration(rng, 20)
    (part,) = drawn.parts()
    for at, theta in enumerate(part.weights()):
        one = replace(part, hits=part.hits[at])
        np.testing.assert_allclose(theta @ part.x.T, one.weights() @ part.x.T, atol=0.05)


def test_weighted_rows_fall_into_the_same_folds_whatever_their_order():
    rng = np.random.default_rng(5)
    score, w = rng.random(200).round(1) * 0.9 + 0.05, rng.exponential(size=200)
    w[:10] = 0
    hit, order = (rng.random(200) < score).astype(int), rng.permutation(200)
    one, other = values(score, hit, w), values(score[order], hit[order], 8 * w[order])
    fewer = values(score[10:], hit[10:], w[10:])
    assert other == pytest.approx(one, abs=1e-12)
    # The penalty of a curve is for as many rows as there are.
    assert fewer == pytest.approx(one, abs=1e-3)


def test_clusters_are_dealt_out_whole_whatever_the_order_of_their_rows():
    rng = np.random.default_rng(7)
    cluster = np.repeat(np.arange(70), rng.integers(1, 9, 70))
    fold = fold_of_rows(Factor.of(cluster))
    assert np.unique(np.column_stack([cluster, fold]), axis=0).shape[0] == 70
    peer = [judged.size for _, judged in GroupKFold(FOLDS).split(cluster, groups=cluster)]
    assert sorted(np.bincount(fold)) == sorted(peer)
    order = rng.permutation(cluster.size)
    np.testing.assert_array_equal(fold_of_rows(Factor.of(cluster[order])), fold[order])


def in_clusters(seed, clusters=60, size=10, share=0.8, power=1.0):
    """A share of the rows of a cluster take their hits from one uniform number."""
    rng = np.random.default_rng(seed)
    n, cluster = clusters * size, np.repeat(np.arange(clusters), size)
    score, luck = rng.uniform(0.05, 0.95, n), rng.random(clusters)[cluster]
    luck = np.where(rng.random(n) < share, luck, rng.random(n))
    return score, (luck < score**power).astype(int), cluster


@pytest.mark.slow
def test_clustered_calibrated_rows_have_nothing_to_gain_beyond_noise():
    keys, how = ["nll_calibration", "ce_l1_unbiased"], {"reduction": "positive", "findings": False}
    p_values, alone, held = [], [], 0
    for seed in range(30):
        score, hit, cluster = in_clusters(seed)
        for value, kept in (
            (predictions(score, hit, None, cluster), p_values),
            (predictions(score, hit), alone),
        ):
            done = calviz.evaluate(value, keys, ci=True, resamples=40, **how)
            kept.append([done[key].noise_floor.p_value for key in keys])
            inside = done["ce_l1_unbiased"].interval
            held += kept is p_values and inside.low <= 0 <= inside.high
    # Of 30 uniform numbers 6 are below .05 in 0.3 % of cases; the mean has a standard error of .053.
    assert np.sum(np.array(p_values) <= 0.05, axis=0).max() < 6
    np.testing.assert_allclose(np.mean(p_values, axis=0), 0.5, atol=0.16)
    assert held >= 25
    # Taken as alike they would seem to gain far more often.
    assert np.sum(np.array(alone) <= 0.05, axis=0).min() >= 6


@pytest.mark.slow
@pytest.mark.parametrize("n", [250, 900])  # hits drawn one by one, and as sums over cells
def test_p_values_of_weighted_calibrated_rows_are_uniform_of_proper_decomposition_cross_fitted(
    n, monkeypatch
):
    monkeypatch.setattr("calviz.sample.draws.MOST_GROUPS", 500)
    keys, p_values = ["nll_calibration", "ce_l1_unbiased", "tcal"], []
    for seed in range(40):
        rng = np.random.default_rng([seed, n])
        score, w = rng.uniform(0.05, 0.95, n), rng.exponential(size=n)
        data = predictions(score, rng.random(n) < score, w)
        evaluation = calviz.evaluate(
            data, keys, reduction="positive", noise_floor=True, findings=False, resamples=40
        )
        p_values.append([evaluation[key].noise_floor.p_value for key in keys])
    # Of 40 uniform numbers 7 are below .05 in 0.3 % of cases; the mean has a standard error of .046.
    assert np.sum(np.array(p_values) <= 0.05, axis=0).max() < 7
    np.testing.assert_allclose(np.mean(p_values, axis=0), 0.5, atol=0.14)


def test_intervals_of_weighted_rows_are_those_of_fewer():
    # The width is that of Kish's effective number of rows.
    rng = np.random.default_rng(6)
    n = 1_500
    score, w = rng.random(n), rng.exponential(size=n)
    hit = rng.random(n) < score**2
    how = {"reduction": "positive", "ci": True, "findings": False, "resamples": 200}
    widths = []
    for weights in (None, w):
        evaluation = calviz.evaluate(predictions(score, hit, weights), ["brier_refinement"], **how)
        inside = evaluation["brier_refinement"].interval
        widths.append(inside.high - inside.low)
    effective = w.sum() ** 2 / (w @ w)
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(n / effective), rel=0.25)


def test_few_rows_are_refused_with_a_reason():
    evaluation = calviz.evaluate(
        predictions([0.2, 0.7], [0, 1]),
        KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED,
        reduction="positive",
    )
    assert all(
        "fewer than 20 rows" in evaluation[key].reason
        for key in KEYS_OF_PROPER_DECOMPOSITION_CROSS_FITTED
    )


@pytest.mark.slow
def test_intervals_hold_what_is_true():
    # Of calibrated scores nothing; of squares what the closed forms above say.
    truths = {"nll_calibration": 0.0, "brier_calibration": 0.0, "ce_l1_unbiased": 0.0}
    for power, truth in ((1, truths), (2, {"brier_calibration": 1 / 30, "ce_l1_unbiased": 1 / 6})):
        held, runs = dict.fromkeys(truth, 0), 20
        for seed in range(runs):
            rng = np.random.default_rng([seed, power])
            score = rng.random(300)
            data = predictions(score, rng.random(300) < score**power)
            evaluation = calviz.evaluate(
                data, list(truth), reduction="positive", ci=True, resamples=60
            )
            for key, at in truth.items():
                held[key] += evaluation[key].interval.low <= at <= evaluation[key].interval.high
        # Binomial(20, .95) is below 15 with probability .0003.
        assert min(held.values()) >= 15, held

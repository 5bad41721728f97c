"""Proper scores and their parts."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp
from sklearn import metrics as sklearn
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss

import calviz
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.metrics.smooth import falling_fixed_points
from calviz.sample.losses import log_steps
from calviz.sample.sample import Sample
from calviz.sample.steps import MAX_STEPS
from tests.inputs.reliability import event_metrics

# ---- Accuracy, error, NLL and Brier score: by hand and against scikit-learn


KEYS = ["accuracy", "error", "nll", "brier"]


def values(probs, labels, keys=KEYS):
    result = calviz.evaluate(Predictions(probs=probs, labels=labels), keys)
    return [result[key].value for key in keys]


def sample(n, k, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), size=n).astype(dtype)
    return probs, np.r_[np.arange(k), rng.integers(k, size=n - k)]


def test_by_hand():
    accuracy, error, nll, brier = values([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], [0, 1])
    assert accuracy == 0.5
    assert error == 0.5
    assert nll == pytest.approx((math.log(2) + math.log(10)) / 2, abs=1e-15)
    assert brier == pytest.approx((0.25 + 2 * 0.0625 + 0.01 + 0.81 + 0.64) / 2, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3, 10, 40])
def test_against_scikit_learn(k, dtype):
    probs, labels = sample(800, k, dtype)
    wide = probs.astype(float)
    wide /= wide.sum(axis=1, keepdims=True)  # float32 rows sum to 1 up to 1e-7
    names = list(range(k))
    accuracy, error, nll, brier = values(probs, labels)
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    assert accuracy == sklearn.accuracy_score(labels, probs.argmax(axis=1))
    assert error == pytest.approx(1 - accuracy, abs=1e-15)
    clipped = np.clip(wide, np.finfo(np.float64).eps, 1)
    assert nll == pytest.approx(
        sklearn.log_loss(labels, clipped / clipped.sum(axis=1, keepdims=True), labels=names),
        abs=10 * tolerance,
    )
    peer = sklearn.brier_score_loss(labels, wide, labels=names, scale_by_half=False)
    assert brier == pytest.approx(peer, abs=tolerance)


def test_one_column_form_of_two_classes():
    probs, labels = sample(300, 2)
    result = calviz.evaluate(Predictions(probs=probs, labels=labels), ["brier"])["brier"]
    assert result.details["one_column"] == pytest.approx(
        sklearn.brier_score_loss(labels, probs[:, 1]), abs=1e-14
    )
    three = calviz.evaluate(Predictions(probs=np.eye(3), labels=[0, 1, 2]), ["brier"])["brier"]
    assert "one_column" not in three.details


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certain_mistakes_stay_finite_and_are_counted(dtype):
    data = Predictions(probs=np.array([[1, 0], [1, 0], [0.5, 0.5]], dtype=dtype), labels=[0, 1, 1])
    result = calviz.evaluate(data, ["nll"])["nll"]
    clip = -math.log(np.finfo(np.float64).eps)
    assert result.value == pytest.approx((clip + math.log(2)) / 3, abs=1e-12)
    assert result.details["clipped_rows"] == 1
    assert result.note.startswith(
        "1 row (33.33 %) gives the true class a probability of 0, or one below "
    )
    sure = calviz.evaluate(Predictions(probs=np.eye(2), labels=[0, 1]), ["nll"])["nll"]
    assert math.copysign(1, sure.value) == 1  # 0, not -0
    assert sure.details["clipped_rows"] == 0
    assert sure.note is None


def doubled(probs: np.ndarray) -> np.ndarray:
    """Probabilities in double precision, whose rows sum to 1 for scikit-learn."""
    wide = probs.astype(np.float64)
    return wide / wide.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 5])
def test_nll_with_zeros_is_that_of_scikit_learn(dtype, k):
    rng = np.random.default_rng(k)
    votes = rng.multinomial(10, rng.dirichlet(np.full(k, 0.3), size=400))
    p, y = (votes / 10).astype(dtype), rng.integers(k, size=400)
    result = calviz.evaluate(Predictions(probs=p, labels=y), ["nll"], ci=True, resamples=50)["nll"]
    # The limit is that of double precision for all; scikit-learn also lowers a 1, by the machine epsilon.
    wanted = log_loss(y, doubled(p), labels=range(k))
    assert result.value == pytest.approx(wanted, rel=1e-6)
    assert result.details["clipped_rows"] == np.count_nonzero(p[np.arange(400), y] == 0) > 0
    assert result.interval.low < result.value < result.interval.high


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nll_of_logits_is_exact_where_their_softmax_is_zero(dtype):
    z = np.array([[0, 900, -5], [0, -3_000, -80], [2, 1, 0]], dtype=dtype)
    y = [0, 1, 2]
    result = calviz.evaluate(Predictions(logits=z, labels=y), ["nll"], ci=True, resamples=50)["nll"]
    wanted = (logsumexp(z.astype(float), axis=1) - z[np.arange(3), y]).mean()
    assert result.value == pytest.approx(wanted, rel=1e-7)
    assert result.details["clipped_rows"] == 0
    assert result.note.startswith("2 rows (66.67 %) give the true class a probability of 0, or one")
    assert result.note.endswith("the loss is computed from the logits, exactly and unclipped.")
    calm = Predictions(logits=np.array([[0.0, 1], [2, 1]]), labels=[0, 1])
    assert calviz.evaluate(calm, ["nll"])["nll"].note is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_lower_probability_of_the_true_class_never_lowers_any_log_loss(dtype):
    # From 1/2 to the smallest number above 0, and 0: over the limit of the type, and over the smallest normal number.
    eps = float(np.finfo(np.float64).eps)
    values = [*2.0 ** -np.arange(1, 149, 4), 1.5 * eps, eps, eps / 1.5, 1e-44]
    values += [1e-300, 5e-324] if dtype == np.float64 else []
    p = np.array([*sorted(values, reverse=True), 0.0], dtype)
    before = {}
    for of_true in p:
        probs = np.array([[1 - of_true, of_true], [0.5, 0.5]], dtype)
        data = Predictions(probs=probs, labels=[1, 0])
        e = calviz.evaluate(data, KEYS_OF_LOG_LOSSES, reduction="positive")
        now = {"nll": e["nll"].value, "parts": sum(s * e[k].value for s, k in SIGNED_PARTS)}
        wanted = log_loss([1, 0], doubled(probs), labels=[0, 1])
        for name, value in now.items():
            assert value >= before.get(name, 0.0) - 1e-15, (name, of_true)
            assert value == pytest.approx(wanted, rel=1e-6), (name, of_true)
        assert e["nll"].details["clipped_rows"] == (of_true < eps)
        assert e["nll_miscalibration"].details["clipped_rows"] == (of_true < eps)
        before = now


SIGNED_PARTS = ((1, "nll_miscalibration"), (-1, "nll_discrimination"), (1, "nll_uncertainty"))
KEYS_OF_LOG_LOSSES = ["nll", *(key for _, key in SIGNED_PARTS)]


def test_a_tie_predicts_the_first_class():
    assert values([[0.5, 0.5]], [0], ["accuracy"]) == [1]
    assert values([[0.5, 0.5]], [1], ["accuracy"]) == [0]


def test_large_arrays_go_through_blocks():
    probs, labels = sample(4000, 150, np.float32)
    brier, nll = values(probs, labels, ["brier", "nll"])
    one_hot = np.eye(150)[labels]
    assert brier == pytest.approx(((probs.astype(float) - one_hot) ** 2).sum() / 4000, abs=1e-12)
    p = probs[np.arange(4000), labels].astype(float)
    p = np.maximum(p, np.finfo(np.float64).eps)
    assert nll == pytest.approx(-np.log(p).mean(), abs=1e-12)


@pytest.mark.parametrize("reduction", ["top-label", "positive", "class:0"])
def test_accuracy_does_not_depend_on_the_reduction(reduction):
    probs, labels = sample(200, 2)
    data = Predictions(probs=probs, labels=labels)
    expected = (probs.argmax(axis=1) == labels).mean()
    assert calviz.evaluate(data, ["accuracy"], reduction=reduction)["accuracy"].value == expected


def test_confidence_only_data_say_why_there_is_no_value():
    data = ConfidencePredictions(confidence=[0.9, 0.6, 0.7], correct=[True, False, True])
    result = calviz.evaluate(data, KEYS)
    assert result["accuracy"].value == pytest.approx(2 / 3)
    for key in ("nll", "brier"):
        assert math.isnan(result[key].value)
        assert "confidence-only" in result[key].reason


# ---- The CORP decomposition against scikit-learn's isotonic regression, and its identities


KEYS_OF_PROPER_DECOMPOSITION = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")


evaluated = partial(event_metrics, keys=KEYS_OF_PROPER_DECOMPOSITION)


def plain(score, hit):
    fitted = IsotonicRegression().fit(score, hit).predict(score)
    mean = hit.mean()
    recalibrated = ((fitted - hit) ** 2).mean()
    own, constant = ((score - hit) ** 2).mean(), mean * (1 - mean)
    return own - recalibrated, constant - recalibrated, constant


@pytest.mark.parametrize("decimals", [10, 2, 1])
def test_against_scikit_learn_of_proper_decomposition(decimals):
    rng = np.random.default_rng(0)
    score = np.round(rng.random(800), decimals)
    hit = (rng.random(800) < score**2).astype(float)
    assert [r.value for r in evaluated(score, hit.astype(int))] == pytest.approx(plain(score, hit))


def test_by_hand_of_proper_decomposition():
    # Isotonic frequencies 1/2, 1/2, 1.
    miscalibration, discrimination, uncertainty = (
        r.value for r in evaluated([0.2, 0.4, 0.9], [1, 0, 1])
    )
    assert miscalibration == pytest.approx((0.64 + 0.16 + 0.01 - 0.5) / 3)
    assert discrimination == pytest.approx(2 / 9 - 0.5 / 3)
    assert uncertainty == pytest.approx(2 / 9)


@pytest.mark.parametrize("weighted", [False, True])
def test_skill_is_one_less_the_ratio_of_scikit_learns_brier_losses(weighted):
    rng = np.random.default_rng(3)
    score = rng.random(400)
    hit = (rng.random(400) < score**2).astype(int)
    weights = rng.uniform(0.5, 2, 400) if weighted else None
    rate = np.full(400, np.average(hit, weights=weights))
    losses = [brier_score_loss(hit, p, sample_weight=weights) for p in (score, rate)]
    probs = np.stack([1 - score, score], axis=1)
    data = Predictions(probs=probs, labels=hit, weights=weights)
    result = calviz.evaluate(data, ["brier_skill"], reduction="positive")["brier_skill"]
    assert result.value == pytest.approx(1 - losses[0] / losses[1], abs=1e-12)


def test_skill_needs_hits_and_misses():
    (result,) = event_metrics([0.2, 0.9], [1, 1], keys=["brier_skill"])
    assert math.isnan(result.value)
    assert "every row is a hit" in result.reason


def test_perfect_scores():
    assert [r.value for r in evaluated([0, 1, 1, 0], [0, 1, 1, 0])] == [0, 0.25, 0.25]


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_intervals_are_those_of_resampled_rows():
    rng = np.random.default_rng(1)
    score = rng.random(300)
    hit = (rng.random(300) < score).astype(float)
    rows = rng.integers(300, size=(400, 300))
    drawn = np.array([plain(score[r], hit[r]) for r in rows])
    evaluation = evaluated(score, hit.astype(int), ci=True, interval="percentile")
    for result, values in zip(evaluation, drawn.T, strict=True):
        low, high = np.quantile(values, [0.025, 0.975])
        expected = min(low, result.value), max(high, result.value)
        assert result.interval == pytest.approx(expected, abs=0.2 * (high - low))


@pytest.mark.parametrize("reduction", ["positive", "top-label", "class:0"])
def test_the_score_beside_the_parts_is_their_sum_and_that_of_scikit_learn(reduction):
    rng = np.random.default_rng(1)
    p = np.round(rng.random(500), 2)
    y = (rng.random(500) < p).astype(int)
    data = calviz.Predictions(probs=np.stack([1 - p, p], axis=1), labels=y)
    e = calviz.evaluate(
        data, ["brier", "brier_binary", *KEYS_OF_PROPER_DECOMPOSITION], reduction=reduction
    )
    own, miscalibration, discrimination, uncertainty = (
        e[k].value for k in ("brier_binary", *KEYS_OF_PROPER_DECOMPOSITION)
    )
    assert own == pytest.approx(miscalibration - discrimination + uncertainty)
    # scikit-learn's default is the scale of one column; the sum over both classes is twice that.
    assert own == pytest.approx(brier_score_loss(y, p))
    assert e["brier"].value == pytest.approx(2 * own)


# ---- The parts of the log loss by hand, at probabilities of 0, and resampled where steps are put together


KEYS_OF_PROPER_DECOMPOSITION_LOG = ("nll_miscalibration", "nll_discrimination", "nll_uncertainty")


evaluated_of_proper_decomposition_log = partial(
    event_metrics, keys=KEYS_OF_PROPER_DECOMPOSITION_LOG
)


def plain_of_proper_decomposition_log(score, hit):
    fitted = IsotonicRegression().fit(score, hit).predict(score)
    own, recalibrated, constant = (
        log_loss(hit, p, labels=[0, 1]) for p in (score, fitted, np.full(hit.size, hit.mean()))
    )
    return own - recalibrated, constant - recalibrated, constant


def test_by_hand_of_proper_decomposition_log():
    # Isotonic frequencies 1/2, 1/2, 1; two of three are hits.
    values = [r.value for r in evaluated_of_proper_decomposition_log([0.2, 0.4, 0.9], [1, 0, 1])]
    own = -(math.log(0.2) + math.log(0.6) + math.log(0.9)) / 3
    fitted, constant = 2 * math.log(2) / 3, math.log(3) - 2 / 3 * math.log(2)
    assert values == pytest.approx([own - fitted, constant - fitted, constant])


def test_a_probability_of_0_counts_as_in_the_nll():
    evaluation = evaluated_of_proper_decomposition_log([0.0, 0.5, 1.0], [1, 0, 1])
    assert evaluation["nll_miscalibration"].details["clipped_rows"] == 1
    assert "counts as 2.2e-16, a loss of 36" in evaluation["nll_miscalibration"].note
    p = Predictions(probs=[0.0, 0.5, 1.0], labels=[1, 0, 1])
    nll = calviz.evaluate(p, ["nll"])["nll"].value
    parts = [r.value for r in evaluation]
    assert parts[0] - parts[1] + parts[2] == pytest.approx(nll)


def test_resamples_of_many_steps_are_those_of_their_rows():
    # Scores over many orders of magnitude, among them exact zeros: a step of merged scores is no single score.
    rng = np.random.default_rng(0)
    score = rng.beta(0.2, 0.6, 3 * MAX_STEPS)
    score[:40] = 0
    hit = rng.random(score.size) < 0.9 * score + 0.02
    view = Sample(Predictions(probs=score, labels=hit), "positive").view(log_steps)
    assert view.steps.merged().size <= MAX_STEPS < view.steps.size
    # At the resolution of the resamples the loss of the sample is what it is.
    assert float(view.as_drawn().log_loss()[0]) == pytest.approx(float(view.log_loss()), rel=1e-12)
    p = np.maximum(score, np.finfo(float).eps)
    losses = np.where(hit, -np.log(p), -np.log1p(-score))
    drawn = view.bootstrap(rng, 500).log_loss()
    assert drawn.mean() == pytest.approx(losses.mean(), abs=5 * losses.std() / np.sqrt(losses.size))
    # Of drawn hits, the expectation is the entropy of each score.
    entropy = -(score * np.log(p) + (1 - score) * np.log1p(-score))
    calm = view.under_calibration(rng, 500).log_loss()
    assert calm.mean() == pytest.approx(entropy.mean(), abs=6 * calm.std() / np.sqrt(500))


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_intervals_are_those_of_resampled_rows_of_proper_decomposition_log():
    rng = np.random.default_rng(1)
    score = rng.uniform(0.02, 0.98, 300)
    hit = (rng.random(300) < score).astype(float)
    rows = rng.integers(300, size=(150, 300))
    drawn = np.array([plain_of_proper_decomposition_log(score[r], hit[r]) for r in rows])
    evaluation = evaluated_of_proper_decomposition_log(
        score, hit.astype(int), ci=True, interval="percentile"
    )
    for result, values in zip(evaluation, drawn.T, strict=True):
        low, high = np.quantile(values, [0.025, 0.975])
        expected = min(low, result.value), max(high, result.value)
        assert result.interval == pytest.approx(expected, abs=0.25 * (high - low))


# ---- Fixed points of falling functions


SCALES = np.array([0.001, 0.02, 0.3, 1.0, 5.0, 200.0])


def falling(x, rows):
    return np.exp(-SCALES[rows] * x) / (1 + SCALES[rows])


@pytest.mark.parametrize("start", [0.0, 0.1, 0.9, 1.0])
def test_against_brentq(start):
    expected = [brentq(lambda x, i=i: falling(x, i) - x, 0, 1) for i in range(SCALES.size)]
    solution = falling_fixed_points(falling, SCALES.size, start=start, tolerance=1e-12)
    np.testing.assert_allclose(solution, expected, atol=1e-10)


def test_constants_and_ends():
    values = np.array([0.0, 0.25, 1.0])
    solution = falling_fixed_points(lambda x, rows: values[rows], 3, start=0.5, tolerance=1e-12)
    np.testing.assert_allclose(solution, values, atol=1e-12)


def test_few_evaluations():
    calls = []

    def counted(x, rows):
        calls.append(rows.size)
        return falling(x, rows)

    falling_fixed_points(counted, SCALES.size, start=0.1, tolerance=1e-6)
    assert len(calls) <= 12
    assert calls == sorted(calls, reverse=True)  # those that are done leave


def test_a_function_that_rises_a_little_still_ends():
    solution = falling_fixed_points(
        lambda x, rows: 0.3 + 1e-4 * np.sin(1e3 * x), 1, start=0.1, tolerance=1e-5
    )
    assert solution[0] == pytest.approx(0.3, abs=2e-4)

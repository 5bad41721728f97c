"""Accuracy, error, NLL and Brier score: by hand and against scikit-learn."""

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn import metrics as sklearn
from sklearn.metrics import log_loss

import calviz
from calviz.core.predictions import ConfidencePredictions, Predictions

KEYS = ["accuracy", "error", "nll", "brier"]


def values(probs, labels, keys=KEYS):
    result = calviz.evaluate(Predictions(probs=np.asarray(probs), labels=np.asarray(labels)), keys)
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

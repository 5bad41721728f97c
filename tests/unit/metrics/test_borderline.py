"""Borderline samples: every metric has a value, or nan with a reason of its own; nothing warns."""

import math

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import ConfidencePredictions, Predictions

ALL = METRICS.keys()
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), size=40)
LABELS = RNG.integers(0, 3, size=40)
CERTAIN = np.eye(3)[LABELS]
HALF = RNG.random(60)
HALF[:30] = np.arange(30) % 2


def confidence(n, **columns):
    c = np.random.default_rng(1).random(n)
    return ConfidencePredictions(confidence=c, correct=c > 0.4, **columns)


SAMPLES = {
    "one row": Predictions(probs=[[0.7, 0.3]], labels=[0]),
    "one wrong row": Predictions(probs=[[0.7, 0.3]], labels=[1]),
    "one certain row": Predictions(probs=[[1.0, 0.0]], labels=[0]),
    "one certain wrong row": Predictions(probs=[[1.0, 0.0]], labels=[1]),
    "two rows": Predictions(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0]),
    "one class": Predictions(probs=PROBS, labels=np.zeros(40, dtype=int)),
    "a class without rows": Predictions(probs=PROBS, labels=LABELS % 2),
    "all equal": Predictions(probs=np.full((40, 4), 0.25), labels=np.arange(40) % 4),
    "all one half": Predictions(probs=np.full((30, 2), 0.5), labels=np.arange(30) % 2),
    "certain and right": Predictions(probs=CERTAIN, labels=LABELS),
    "certain and wrong": Predictions(probs=CERTAIN, labels=(LABELS + 1) % 3),
    "certain": Predictions(probs=CERTAIN, labels=np.roll(LABELS, 1)),
    "all right": Predictions(probs=PROBS, labels=PROBS.argmax(axis=1)),
    "all wrong": Predictions(probs=PROBS, labels=PROBS.argmin(axis=1)),
    "some certain": Predictions(probs=HALF, labels=RNG.random(60) < HALF),
    "float32": Predictions(probs=PROBS.astype(np.float32), labels=LABELS),
    "a little below 0": Predictions(
        probs=np.array([[1 + 1e-7, -1e-7], [0.5, 0.5], [0.2, 0.8]]), labels=[0, 1, 0]
    ),
    "more classes than rows": Predictions(
        probs=RNG.dirichlet(np.full(40, 0.1), size=20), labels=RNG.integers(0, 40, size=20)
    ),
    "confidence only": confidence(30),
    "one row of confidence": confidence(1),
    "confidence with classes": confidence(
        30, labels=np.arange(30) % 3, class_names=("a", "b", "c")
    ),
    "confidence with labels": confidence(30, labels=np.arange(30) % 3),
}


def reductions(data):
    if data.kind == "confidence":
        return ["top-label"]
    return ["top-label", "positive" if data.n_classes == 2 else "class:1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_values_or_reasons(name):
    data = SAMPLES[name]
    for reduction in reductions(data):
        for r in calviz.evaluate(data, reduction=reduction, ci=True, resamples=40):
            low, high = METRICS[r.key].bounds
            if r.reason is None:
                assert low - 1e-9 <= r.value <= high + 1e-9, r.key
            else:
                assert math.isnan(r.value)
                assert r.reason.endswith(".")
                assert r.reason != "undefined on these rows."
                assert r.interval is None
                assert r.noise_floor is None
            if r.interval is not None:
                assert low - 1e-6 <= r.interval.low < r.interval.high <= high + 1e-6, r.key
            if r.noise_floor is not None:
                assert 0 < r.noise_floor.p_value <= 1


def test_two_classes_as_one_column_or_two():
    one = Predictions(probs=HALF, labels=HALF > 0.3)
    two = Predictions(probs=np.stack([1 - HALF, HALF], axis=1), labels=HALF > 0.3)
    for a, b in zip(calviz.evaluate(one), calviz.evaluate(two), strict=True):
        assert a.value == b.value or (math.isnan(a.value) and a.reason == b.reason)


def test_float32_and_float64_agree():
    narrow = PROBS.astype(np.float32)
    a, b = (
        calviz.evaluate(Predictions(probs=p, labels=LABELS)) for p in (narrow, narrow.astype(float))
    )
    for key in ALL:
        assert a[key].value == pytest.approx(b[key].value, rel=1e-4, abs=1e-6, nan_ok=True), key


@pytest.mark.parametrize("key", ALL)
def test_rows_in_another_order_and_doubled(key):
    data = Predictions(probs=np.round(PROBS * 0.9 + 1 / 30, 3) / 1.0, labels=LABELS)
    value = calviz.evaluate(data, [key])[key].value
    order = np.random.default_rng(2).permutation(40)
    assert calviz.evaluate(data.take(order), [key])[key].value == pytest.approx(value, nan_ok=True)
    doubled = calviz.evaluate(data.take(np.tile(np.arange(40), 2)), [key])[key].value
    # What depends on the number of rows by its definition.
    if key not in DEPENDS_ON_N:
        assert doubled == pytest.approx(value, nan_ok=True)


DEPENDS_ON_N = {
    *("ece_equal_mass", "ece_sturges", "ece_debiased", "ece_sweep", "tace", "skce"),
    *("kde_ece", "kde_ece_l2", "spiegelhalter_z", "hosmer_lemeshow", "tcal"),
    *("nll_calibration", "nll_refinement", "brier_calibration", "brier_refinement"),
    *("nll_calibration_all", "nll_refinement_all", "brier_calibration_all", "brier_refinement_all"),
    "ce_l1_unbiased",
    # The penalty of the curve weighs less where there are more rows; what parameters gain by chance is divided by their number.
    *("ici", "e50", "e90", "emax", "eci"),
    *("unreliability", "discrimination_index", "quality_index"),
}

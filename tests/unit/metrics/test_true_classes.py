"""The family of Ao et al. 2023: by hand, against loops, and the paper's identity."""

import math

import numpy as np
import pytest

import calviz
from calviz.core.predictions import ConfidencePredictions, Predictions
from tests.inputs.simulated import draw_labels

KEYS = (
    *("wsece", "msece", "cece", "wsmcs", "wsmcs_over", "wsmcs_under"),
    *("over_mcs", "under_mcs", "over_share", "under_share"),
)


def evaluated(confidence, correct, labels, names=("a", "b", "c"), **options):
    data = ConfidencePredictions(
        confidence=np.asarray(confidence, dtype=float),
        correct=np.asarray(correct, dtype=bool),
        labels=np.asarray(labels),
        class_names=names,
    )
    return calviz.evaluate(data, KEYS, **options)


def plain(confidence, correct, labels, n_classes, bins=15):
    """Every number from its equation (3-8 and table 2), class by class and bin by bin."""
    rows, ece, mcs = [], [], []
    for k in range(n_classes):
        mine = labels == k
        rows.append(mine.sum())
        bin_of = np.ceil(confidence[mine] * bins).clip(1, bins)
        gap = confidence[mine] - correct[mine]
        sums = [gap[bin_of == m].sum() for m in range(1, bins + 1)]
        ece.append(np.abs(sums).sum() / max(mine.sum(), 1))
        mcs.append(sum(sums) / max(mine.sum(), 1))
    rows, ece, mcs = map(np.array, (rows, ece, mcs))
    total, some = rows.sum(), (rows > 0).sum()
    over, under = (rows > 0) & (mcs > 0), (rows > 0) & (mcs < 0)
    plus, minus = (rows * mcs)[over].sum() / total, (rows * mcs)[under].sum() / total
    return {
        "wsece": (rows * ece).sum() / total,
        "msece": ece[rows > 0].mean(),
        "cece": (ece**2).sum() / ece.sum(),
        "wsmcs_over": plus,
        "wsmcs_under": minus,
        "wsmcs": over.sum() / some * plus + under.sum() / some * minus,
        "over_mcs": mcs[over].mean() if over.any() else math.nan,
        "under_mcs": mcs[under].mean() if under.any() else math.nan,
        "over_share": over.sum() / some,
        "under_share": under.sum() / some,
    }


def sample(n=400, k=6, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, size=n)
    confidence = rng.uniform(1 / k, 1, size=n)
    correct = rng.random(n) < confidence + 0.3 * (labels / (k - 1) - 0.5)
    return confidence, correct, labels


def test_by_hand():
    # Class a: 0.9 and 0.7, one right: MCS 0.3. Class b: 0.6, right: -0.4. Class c has no rows.
    result = evaluated([0.9, 0.7, 0.6], [1, 0, 1], [0, 0, 1])
    expected = {
        "wsece": (2 * 0.4 + 0.4) / 3,  # a: (|0.9 - 1| + |0.7 - 0|) / 2
        "msece": 0.4,
        "cece": 0.4,
        "wsmcs_over": 0.2,
        "wsmcs_under": -0.4 / 3,
        "wsmcs": 0.5 * 0.2 - 0.5 * 0.4 / 3,
        "over_mcs": 0.3,
        "under_mcs": -0.4,
        "over_share": 0.5,
        "under_share": 0.5,
    }
    assert {r.key: r.value for r in result} == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_against_a_loop(seed):
    confidence, correct, labels = sample(seed=seed)
    result = evaluated(confidence, correct, labels, names=tuple("abcdefgh"))  # g, h: no rows
    assert {r.key: r.value for r in result} == pytest.approx(plain(confidence, correct, labels, 8))


def test_the_papers_identity_on_balanced_classes():
    confidence, correct, _ = sample(n=600)
    labels = np.repeat(np.arange(6), 100)
    correct = np.random.default_rng(1).random(600) < confidence + 0.3 * (labels / 5 - 0.5)
    r = evaluated(confidence, correct, labels, names=tuple("abcdef"))
    shares = r["over_share"].value, r["under_share"].value
    assert min(shares) > 0
    identity = shares[0] ** 2 * r["over_mcs"].value + shares[1] ** 2 * r["under_mcs"].value
    assert r["wsmcs"].value == pytest.approx(identity)


def test_a_class_that_is_exactly_right_counts_in_neither_share():
    # A mean confidence of 1/2 and one of two right, in sums that round.
    result = evaluated([0.1, 0.9, 0.8], [0, 1, 1], [0, 0, 1], names=("a", "b"))
    assert result["over_share"].value == 0
    assert result["under_share"].value == 0.5
    assert math.isnan(result["over_mcs"].value)
    assert (
        result["over_mcs"].reason == "undefined: on no class is the confidence above the accuracy."
    )


def test_perfect_predictions():
    result = evaluated([1.0, 1.0], [1, 1], [0, 1])
    assert [result[key].value for key in ("wsece", "msece", "cece", "wsmcs")] == [0, 0, 0, 0]
    assert (
        result["under_mcs"].reason == "undefined: on no class is the confidence below the accuracy."
    )


def test_full_predictions_use_the_top_label_under_any_reduction():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet(np.ones(4), size=300)
    labels = draw_labels(probs, rng)
    data = Predictions(probs=probs, labels=labels)
    expected = plain(probs.max(axis=1), probs.argmax(axis=1) == labels, labels, 4)
    for reduction in ("top-label", "class:2", "top-2"):
        result = calviz.evaluate(data, KEYS, reduction=reduction)
        assert {r.key: r.value for r in result} == pytest.approx(expected, nan_ok=True)


def test_data_without_classes():
    data = ConfidencePredictions(confidence=np.array([0.5]), correct=np.array([True]))
    for r in calviz.evaluate(data, KEYS):
        assert r.reason == "not available: these data do not name the true classes."


def test_error_bars_are_those_of_resampled_rows_and_redrawn_labels():
    rng = np.random.default_rng(3)
    n, k = 250, 4
    probs = rng.dirichlet(np.full(k, 0.7), size=n)
    labels = draw_labels(probs, rng)
    top, winner = probs.max(axis=1), probs.argmax(axis=1)
    data = Predictions(probs=probs, labels=labels)
    result = calviz.evaluate(data, KEYS, ci=True, interval="percentile")
    rows = rng.integers(n, size=(400, n))
    drawn = [plain(top[r], winner[r] == labels[r], labels[r], k) for r in rows]
    upto = probs.cumsum(axis=1)[:, :-1]
    redrawn = [(rng.random((n, 1)) > upto).sum(axis=1) for _ in range(150)]
    floor = [plain(top, winner == y, y, k) for y in redrawn]
    for key in ("wsece", "msece", "cece", "wsmcs"):
        values = np.array([d[key] for d in drawn])
        low, high = np.quantile(values, [0.025, 0.975])
        expected = min(low, result[key].value), max(high, result[key].value)
        assert result[key].interval == pytest.approx(expected, abs=0.2 * (high - low))
        under = np.array([f[key] for f in floor])
        slack = 4 * under.std() / math.sqrt(150)
        assert result[key].noise_floor.mean == pytest.approx(under.mean(), abs=slack)


def test_a_calibrated_model_looks_miscalibrated_by_true_class():
    # Which is why these metrics come with the floor that a calibrated model would show.
    rng = np.random.default_rng(4)
    probs = rng.dirichlet([3, 1, 1], size=3000)
    labels = (rng.random((3000, 1)) > np.cumsum(probs, axis=1)).sum(axis=1)
    result = calviz.evaluate(Predictions(probs=probs, labels=labels), ["wsece", "ece"], ci=True)
    assert result["wsece"].value > 5 * result["ece"].value
    assert result["wsece"].noise_floor.p_value > 0.01

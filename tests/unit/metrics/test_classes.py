"""Metrics of classes."""

import math

import calibration
import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.metrics import classes as classwise_ks
from tests.inputs.simulated import draw_labels

# ---- One-vs-rest metrics against loops over the classes, and their resampling against the long way


KEYS = ("classwise_ece", "tace", "ks_classwise")


def sample(n=300, k=5, seed=0, dtype=np.float64, decimals=None):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.4), size=n)
    labels = draw_labels(probs**0.7 / (probs**0.7).sum(1, keepdims=True), rng)
    if decimals is not None:  # few distinct values, and rows that still sum to 1
        probs = rng.multinomial(10**decimals, probs) / 10**decimals
    return probs.astype(dtype), labels


def evaluated(probs, labels, keys=KEYS, **options):
    return calviz.evaluate(Predictions(probs=probs, labels=labels), keys, **options)


def one_class(data, k, key, **options):
    return calviz.evaluate(data, [key], reduction=f"class:{k}", **options)[key].value


def plain_tace(probs, labels, bins, threshold):
    errors = []
    for k in range(probs.shape[1]):
        kept = np.flatnonzero(probs[:, k] > threshold)
        score, hit = probs[kept, k].astype(float), (labels[kept] == k).astype(float)
        order = np.argsort(score, kind="stable")
        last = [score[p[-1]] for p in np.array_split(order, bins) if p.size]
        bin_of = np.searchsorted(np.unique(last[:-1]), score) if last else []
        gaps = [abs((score - hit)[bin_of == m].sum()) for m in np.unique(bin_of)]
        errors.append(sum(gaps) / max(kept.size, 1))
    return np.mean(errors)


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_over_the_classes(dtype, decimals):
    probs, labels = sample(dtype=dtype, decimals=decimals)
    data = Predictions(probs=probs, labels=labels)
    result = calviz.evaluate(data, KEYS, bins=7, threshold=0.02)
    for key, single in (("classwise_ece", "ece"), ("ks_classwise", "ks")):
        expected = np.mean([one_class(data, k, single, bins=7) for k in range(5)])
        assert result[key].value == pytest.approx(expected, rel=1e-7)
    assert result["tace"].value == pytest.approx(plain_tace(probs, labels, 7, 0.02), rel=1e-7)


def test_class_wise_ece_against_uncertainty_calibration():
    probs, labels = sample()
    theirs = calibration.get_ece(probs, labels, num_bins=15, mode="marginal")
    assert evaluated(probs, labels)["classwise_ece"].value == pytest.approx(theirs)


@pytest.mark.slow
def test_many_classes_agree_with_few_at_a_time():
    # 500 columns are summed and sorted in groups.
    probs, labels = sample(n=3000, k=500, dtype=np.float32)
    data = Predictions(probs=probs, labels=labels)
    result = calviz.evaluate(data, KEYS)
    for key, single in (("classwise_ece", "ece"), ("ks_classwise", "ks")):
        some = range(0, 500, 50)
        columns = calviz.sample.sample.Sample(data).view(
            next(m for m in calviz.core.entry_specs.METRICS if m.key == key).view
        )
        singles = [one_class(data, k, single) for k in some]
        np.testing.assert_allclose(columns.errors[list(some)], singles, atol=1e-8)
    assert result["tace"].value == pytest.approx(plain_tace(probs, labels, 15, 1e-3), rel=1e-6)


def test_one_bin_is_the_gap_of_the_means():
    probs, labels = sample()
    gaps = np.abs(probs.mean(axis=0) - np.bincount(labels, minlength=5) / 300)
    assert evaluated(probs, labels, bins=1)["classwise_ece"].value == pytest.approx(gaps.mean())


def test_a_class_without_rows_counts():
    probs = np.array([[0.5, 0.5, 0.0], [0.6, 0.2, 0.2]])
    result = evaluated(probs, np.array([0, 0]), bins=1)
    assert result["classwise_ece"].value == pytest.approx((0.45 + 0.35 + 0.1) / 3)
    assert result["ks_classwise"].value == pytest.approx((0.45 + 0.35 + 0.1) / 3)


def test_tace_without_any_probability_above_the_threshold():
    result = evaluated(np.full((4, 4), 0.25), np.arange(4), threshold=0.3, ci=True)["tace"]
    assert result.reason == "undefined: no probability is above the threshold."


@pytest.mark.parametrize("threshold", [-0.1, 1, np.nan, "high"])
def test_threshold_is_checked(threshold):
    with pytest.raises(OptionError, match="'threshold' must be a number from 0 up to 1"):
        evaluated(*sample(n=5), threshold=threshold)


@pytest.mark.parametrize("bins", [0, 1001])
def test_bins_are_checked(bins):
    with pytest.raises(OptionError, match="number of bins"):
        evaluated(*sample(n=5), ["classwise_ece"], bins=bins)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "decimals"), [(5, None), (5, 1), (40, None)])
def test_error_bars_are_those_of_resampled_rows_and_redrawn_labels(k, decimals):
    probs, labels = sample(k=k, decimals=decimals)
    n = len(labels)
    rng = np.random.default_rng(5)
    exact = probs / probs.sum(axis=1, keepdims=True)
    rows = [rng.integers(n, size=n) for _ in range(120)]
    upto = exact.cumsum(axis=1)[:, :-1]
    calibrated = [(rng.random((n, 1)) > upto).sum(axis=1) for _ in range(120)]
    result = evaluated(probs, labels, ci=True, interval="percentile")
    resampled = [evaluated(probs[r], labels[r], KEYS[::2]) for r in rows]
    redrawn = [evaluated(probs, y) for y in calibrated]
    for key in KEYS[::2]:
        drawn = [one[key].value for one in resampled]
        floor = [one[key].value for one in redrawn]
        # Resamples lie above the value, which the interval still contains.
        low, high = np.mean(drawn) + np.array([-1.96, 1.96]) * np.std(drawn)
        expected = min(low, result[key].value), high
        assert result[key].interval == pytest.approx(expected, abs=0.7 * np.std(drawn))
        assert result[key].noise_floor.mean == pytest.approx(np.mean(floor), rel=0.04)
    # The cuts of TACE stay where they are, so that only its floor is that of whole samples.
    floor = [one["tace"].value for one in redrawn]
    assert result["tace"].noise_floor.mean == pytest.approx(np.mean(floor), rel=0.04)


@pytest.mark.parametrize("rows", [1, 7, 64, 1_000])
@pytest.mark.parametrize("decimals", [1, 3])
def test_cumulative_gaps_go_on_from_block_to_block(monkeypatch, decimals, rows):
    monkeypatch.setattr(classwise_ks, "SUMMED_ROWS", rows)
    rng = np.random.default_rng(rows)
    score = np.round(rng.random(300), decimals)
    hit = rng.random(300) < score**2
    # By definition: at every distinct score, what is scored up to it minus what happened.
    upto = np.unique(score)
    gap = [score[score <= s].sum() - hit[score <= s].sum() for s in upto]
    result = classwise_ks._one_error(np.sort(score), np.sort(score[hit]))
    assert result == pytest.approx(np.abs(gap).max(), rel=1e-12)


# ---- The family of Ao et al. 2023: by hand, against loops, and the paper's identity


KEYS_OF_TRUE_CLASSES = (
    *("wsece", "msece", "cece", "wsmcs", "wsmcs_over", "wsmcs_under"),
    *("over_mcs", "under_mcs", "over_share", "under_share"),
)


def evaluated_of_true_classes(confidence, correct, labels, names=("a", "b", "c"), **options):
    data = ConfidencePredictions(
        confidence=confidence, correct=correct, labels=labels, class_names=names
    )
    return calviz.evaluate(data, KEYS_OF_TRUE_CLASSES, **options)


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


def sample_of_true_classes(n=400, k=6, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, size=n)
    confidence = rng.uniform(1 / k, 1, size=n)
    correct = rng.random(n) < confidence + 0.3 * (labels / (k - 1) - 0.5)
    return confidence, correct, labels


def test_by_hand():
    # Class a: 0.9 and 0.7, one right: MCS 0.3. Class b: 0.6, right: -0.4. Class c has no rows.
    result = evaluated_of_true_classes([0.9, 0.7, 0.6], [1, 0, 1], [0, 0, 1])
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
    confidence, correct, labels = sample_of_true_classes(seed=seed)
    result = evaluated_of_true_classes(
        confidence, correct, labels, names=tuple("abcdefgh")
    )  # g, h: no rows
    assert {r.key: r.value for r in result} == pytest.approx(plain(confidence, correct, labels, 8))


def test_the_papers_identity_on_balanced_classes():
    confidence, correct, _ = sample_of_true_classes(n=600)
    labels = np.repeat(np.arange(6), 100)
    correct = np.random.default_rng(1).random(600) < confidence + 0.3 * (labels / 5 - 0.5)
    r = evaluated_of_true_classes(confidence, correct, labels, names=tuple("abcdef"))
    shares = r["over_share"].value, r["under_share"].value
    assert min(shares) > 0
    identity = shares[0] ** 2 * r["over_mcs"].value + shares[1] ** 2 * r["under_mcs"].value
    assert r["wsmcs"].value == pytest.approx(identity)


def test_a_class_that_is_exactly_right_counts_in_neither_share():
    # A mean confidence of 1/2 and one of two right, in sums that round.
    result = evaluated_of_true_classes([0.1, 0.9, 0.8], [0, 1, 1], [0, 0, 1], names=("a", "b"))
    assert result["over_share"].value == 0
    assert result["under_share"].value == 0.5
    assert math.isnan(result["over_mcs"].value)
    assert (
        result["over_mcs"].reason == "undefined: on no class is the confidence above the accuracy."
    )


def test_perfect_predictions():
    result = evaluated_of_true_classes([1.0, 1.0], [1, 1], [0, 1])
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
        result = calviz.evaluate(data, KEYS_OF_TRUE_CLASSES, reduction=reduction)
        assert {r.key: r.value for r in result} == pytest.approx(expected, nan_ok=True)


def test_data_without_classes():
    data = ConfidencePredictions(confidence=np.array([0.5]), correct=np.array([True]))
    for r in calviz.evaluate(data, KEYS_OF_TRUE_CLASSES):
        assert r.reason == "not available: these data do not name the true classes."


def test_error_bars_are_those_of_resampled_rows_and_redrawn_labels_of_true_classes():
    rng = np.random.default_rng(3)
    n, k = 250, 4
    probs = rng.dirichlet(np.full(k, 0.7), size=n)
    labels = draw_labels(probs, rng)
    top, winner = probs.max(axis=1), probs.argmax(axis=1)
    data = Predictions(probs=probs, labels=labels)
    result = calviz.evaluate(data, KEYS_OF_TRUE_CLASSES, ci=True, interval="percentile")
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

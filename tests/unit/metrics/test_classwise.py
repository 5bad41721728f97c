"""One-vs-rest metrics against loops over the classes, and their resampling against the long way."""

import calibration
import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.metrics import classes as classwise_ks
from tests.inputs.simulated import draw_labels

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

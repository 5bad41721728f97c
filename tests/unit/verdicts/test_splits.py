"""Findings about splits: CAL010 and CAL011."""

import numpy as np
import pytest

import calviz
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.miscalibration_checks import split_accuracy
from calviz.verdicts.row_checks import row_hashes


def messages(data, code):
    return [f.message for f in findings_of(Sample(data, resamples=50)) if f.code == code]


def confidence(correct, splits, **own):
    correct = np.asarray(correct)
    return calviz.ConfidencePredictions(
        confidence=np.linspace(0.4, 0.95, correct.size), correct=correct, splits=splits, **own
    )


def classes(n, splits, k=5, seed=0, **own):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), n)
    return calviz.Predictions(probs=probs, labels=rng.integers(k, size=n), splits=splits, **own)


def test_cal010_accuracy_differs():
    splits = np.repeat(["fit", "test"], [400, 200])
    correct = np.r_[np.arange(400) < 390, np.arange(200) < 150]
    (text,) = messages(confidence(correct, splits), "CAL010")
    assert "'fit' 97.5 % (400 rows) against 'test' 75.0 % (200 rows)" in text
    # 97.5 % against 96.5 % of 200 rows each: nothing.
    near = np.r_[np.arange(200) < 195, np.arange(200) < 193]
    assert not messages(confidence(near, np.repeat(["a", "b"], 200)), "CAL010")
    # One of the two has too few rows to tell.
    assert not messages(confidence(correct, np.repeat(["a", "b"], [590, 10])), "CAL010")
    assert not messages(confidence(correct, None), "CAL010")
    assert not messages(confidence(correct, np.full(600, "a")), "CAL010")


@pytest.mark.slow
def test_cal010_is_rare_by_chance():
    rng = np.random.default_rng(0)
    splits = np.arange(300) % 3
    spoken = sum(
        bool(messages(confidence(rng.random(300) < 0.8, splits), "CAL010")) for _ in range(60)
    )
    assert spoken <= 4


@pytest.mark.parametrize("ids", [np.arange(100) % 90, [f"row {i % 90}" for i in range(100)]])
def test_cal011_same_id(ids):
    data = classes(100, np.repeat(["a", "b"], [90, 10]), ids=np.asarray(ids))
    (text,) = messages(data, "CAL011")
    assert text.startswith("20 rows (20.0 %) have an id that is also in another split")
    within = classes(100, np.repeat(["a", "b"], 50), ids=np.arange(100) // 2)
    assert not messages(within, "CAL011")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cal011_identical_rows(dtype):
    one = classes(200, None)
    rows = np.r_[np.arange(200), np.arange(15)]
    splits = np.repeat(["a", "b"], [200, 15])
    data = calviz.Predictions(
        probs=one.probs[rows].astype(dtype), labels=one.labels[rows], splits=splits
    )
    (text,) = messages(data, "CAL011")
    assert text.startswith("30 rows (14.0 %) are identical to a row of another split")
    # The same probabilities with another label are another row.
    other = calviz.Predictions(
        probs=data.probs, labels=np.r_[one.labels, (one.labels[:15] + 1) % 5], splits=splits
    )
    assert not messages(other, "CAL011")
    assert not messages(classes(300, np.arange(300) % 2), "CAL011")


def test_cal011_coarse_scores_are_no_evidence():
    rng = np.random.default_rng(0)
    score = rng.random(500).round(2)
    data = calviz.Predictions(
        probs=score, labels=rng.integers(2, size=500), splits=np.arange(500) % 2
    )
    assert not messages(data, "CAL011")
    certain = np.eye(3)[rng.integers(3, size=200)]
    data = calviz.Predictions(probs=certain, labels=certain.argmax(1), splits=np.arange(200) % 2)
    assert not messages(data, "CAL011")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes(dtype):
    rng = np.random.default_rng(0)
    grid = rng.integers(0, 17, size=(20_000, 4)).astype(dtype) / 16  # short floats: few bits differ
    hashes = row_hashes(grid)
    assert np.unique(hashes).size == np.unique(grid, axis=0).shape[0]
    np.testing.assert_array_equal(row_hashes(grid[::-1]), hashes[::-1])
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(grid)), hashes)
    swapped = row_hashes(grid[:, ::-1])
    assert (swapped == hashes).mean() < 0.02  # the order of the columns matters


def test_weighted_rows_are_looked_at_too():
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(3), 200)
    probs[150:] = probs[:50]
    p = calviz.Predictions(
        probs=probs,
        labels=np.arange(200) % 50 % 3,
        weights=rng.exponential(size=200),
        splits=np.repeat(["a", "b"], [150, 50]),
    )
    (value,) = [f for f in findings_of(Sample(p)) if f.code == "CAL011"]
    assert value.message.startswith("100 rows (50.0 %)")


@pytest.mark.parametrize(
    ("right", "spoken"),
    [
        # 1,000 rows each, half of them right: the difference has a standard deviation of sqrt(0.5 / 1000) = 0.02236.
        ((528, 473), False),  # 2.46 of these: p = 0.014, both sides together
        ((530, 470), True),  # 2.68: 0.0073
        ((534, 465, 500, 500), False),  # 3.09: 0.0020 for each of six pairs, 0.012
        ((536, 464, 500, 500), True),  # 3.22: 0.0077
    ],
)
def test_cal010_asks_for_one_in_a_hundred_of_all_pairs(right, spoken):
    splits = np.repeat([f"s{i}" for i in range(len(right))], 1_000)
    correct = np.concatenate([np.arange(1_000) < count for count in right])
    data = confidence(correct, splits)
    assert len(list(split_accuracy(Sample(data, "top-label")))) == spoken

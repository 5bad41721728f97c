import json
import time

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents, ordered_rows
from calviz.recalibrators.base import load_map
from calviz.recalibrators.isotonic import IsotonicRecalibrator, VennAbers, venn_abers
from tests.inputs.simulated import simulate, softmax


def added(score, hit, at, label):
    """The value of scikit-learn's isotonic regression at a score, with that score and a label added."""
    x, y = np.append(score, at), np.append(hit.astype(float), label)
    return IsotonicRegression().fit(x, y).predict([at])[0]


@pytest.mark.parametrize("seed", range(25))
def test_both_are_isotonic_regressions_with_one_more_row(seed):
    rng = np.random.default_rng(seed)
    n, levels = rng.integers(2, 40), rng.integers(2, 30)
    score = rng.integers(0, levels, n) / levels
    rate = (score, 1 - score, np.full(n, 0.5), np.full(n, 0.02))[seed % 4]
    hit = rng.random(n) < rate
    pair = venn_abers(BinaryEvents(score, hit).ordered)
    own = np.unique(score)
    # At the scores of the rows, just beside them, half-way, and beyond all.
    at = np.concatenate([own, own - 1e-7, own + 1e-7, (own[1:] + own[:-1]) / 2, [-0.1, 1.1]])
    for value, label in ((pair.lower, 0), (pair.upper, 1)):
        wanted = [added(score, hit, s, label) for s in at]
        np.testing.assert_allclose(value(at), wanted, atol=1e-14)
    p0, p1 = pair.lower(at), pair.upper(at)
    np.testing.assert_allclose(pair.merged()(at), p1 / (1 - p0 + p1), atol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_weights_of_any_span(seed):
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 12, 60) / 12
    hit, weights = rng.random(60) < score, 10 ** rng.uniform(-30, 0, 60)
    weights /= weights.mean()
    pair = venn_abers(*ordered_rows(score, hit, weights))
    for value, label in ((pair.lower, 0), (pair.upper, 1)):
        for at in np.unique(score):
            x, y, w = np.append(score, at), np.append(hit, label), np.append(weights, 1.0)
            wanted = IsotonicRegression().fit(x, y, w).predict([at])[0]
            assert value(np.array([at]))[0] == pytest.approx(wanted, abs=1e-9)


def test_four_rows_by_hand():
    # Hits 0, 1, 0, 1 at 0.2, 0.4, 0.6, 0.8; a row at 0.5 is in the middle piece, of one hit in two.
    p = np.array([0.2, 0.4, 0.6, 0.8])
    fitted = VennAbers().fit(np.stack([1 - p, p], axis=1), [0, 1, 0, 1])
    lower, upper = fitted.intervals([[0.5, 0.5]])[0, 0]
    assert (lower, upper) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert fitted.transform([[0.5, 0.5]])[0, 1] == pytest.approx((2 / 3) / (1 - 1 / 3 + 2 / 3))
    # Below all rows a miss is certain to stay one; above all a hit.
    ends = fitted.intervals([[0.9, 0.1], [0.1, 0.9]])[:, 0]
    np.testing.assert_allclose(ends, [[0, 1 / 2], [1 / 2, 1]])


def test_the_pair_holds_isotonic_regression_and_the_probability():
    rng = np.random.default_rng(3)
    p = rng.random(800)
    y = (rng.random(800) < p).astype(int)
    X = np.stack([1 - p, p], axis=1)
    fitted = VennAbers().fit(X, y)
    pair = fitted.intervals(X)
    assert pair.shape == (800, 1, 2)
    merged, isotonic = (
        fitted.transform(X)[:, 1],
        IsotonicRecalibrator(cap=False).fit(X, y).transform(X)[:, 1],
    )
    for inside in (merged, isotonic):
        assert (pair[:, 0, 0] <= inside + 1e-8).all()
        assert (inside <= pair[:, 0, 1] + 1e-8).all()
    assert 0 < merged.min() < merged.max() < 1


def test_validity():
    """One of the two is perfectly calibrated: with the label, the picked one is on average the hit rate (Vovk 2015, theorem 1)."""
    rng = np.random.default_rng(0)
    picked, hits = [], []
    for _ in range(400):
        p = rng.random(21)
        y = (rng.random(21) < p**3).astype(int)
        if len(set(y[:20])) < 2:
            continue
        pair = venn_abers(BinaryEvents(p[:20], y[:20] == 1).ordered)
        picked.append((pair.upper if y[20] else pair.lower)(p[20:])[0])
        hits.append(y[20])
    error = np.std(np.array(hits) - picked) / np.sqrt(len(hits))
    assert abs(np.mean(hits) - np.mean(picked)) < 3 * error


def test_several_classes_have_a_pair_each():
    z, y = simulate(300, 3, temperature=1.5)
    p = softmax(z)
    fitted = VennAbers().fit(p, y)
    pair = fitted.intervals(p)
    assert pair.shape == (300, 3, 2)
    merged = pair[..., 1] / (1 - pair[..., 0] + pair[..., 1])
    np.testing.assert_allclose(
        fitted.transform(p), merged / merged.sum(axis=1, keepdims=True), atol=1e-12
    )
    for k in range(3):
        alone = VennAbers().fit(np.stack([1 - p[:, k], p[:, k]], axis=1), (y == k).astype(int))
        np.testing.assert_array_equal(alone.upper_[0].y, fitted.upper_[k].y)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("given", ["probabilities", "logits"])
def test_pairs_go_through_json_and_are_in_the_snippet(k, given):
    z, y = simulate(250, k, temperature=1.5)
    x = z if given == "logits" else softmax(z.copy())
    fitted = VennAbers(input=given).fit(x, y)
    restored = load_map(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(restored.intervals(x), fitted.intervals(x))
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    p = softmax(z.copy())
    np.testing.assert_allclose(
        np.stack(program["mapped_pairs"](p), axis=2), fitted.intervals(x), atol=1e-6
    )


def test_a_composition_hands_them_out_too():
    z, y = simulate(250, 2, temperature=1.5)
    p = softmax(z)
    spec = RECALIBRATORS["temperature+venn-abers"]
    assert spec.interval_columns == ("p0", "p1")
    fitted = spec.make().fit(p, y)
    pair = fitted.intervals(p)[:, 0]
    merged = pair[:, 1] / (1 - pair[:, 0] + pair[:, 1])
    np.testing.assert_allclose(fitted.transform(p)[:, 1], merged, atol=1e-9)


def test_other_methods_say_that_they_have_none():
    z, y = simulate(100, 2, temperature=1.5)
    p = softmax(z)
    with pytest.raises(NotAvailable, match="'isotonic' has no intervals"):
        IsotonicRecalibrator().fit(p, y).intervals(p)


@pytest.mark.slow
def test_time_grows_with_the_rows_and_not_with_their_square():
    rng = np.random.default_rng(0)
    seconds = []
    for n in (20_000, 200_000):
        score = rng.random(n)
        ordered = BinaryEvents(score, rng.random(n) < score).ordered
        best = np.inf
        for _ in range(3):
            began = time.thread_time()
            venn_abers(ordered)
            best = min(best, time.thread_time() - began)
        seconds.append(best)
    # Ten times the rows: 12 times the work; with all pairs it would be 100 times.
    assert seconds[1] < 40 * seconds[0]

"""Isotonic maps and Venn-Abers."""

import json
import time

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents, ordered_rows
from calviz.recalibrators import isotonic as irm
from calviz.recalibrators.base import load_map
from calviz.recalibrators.isotonic import (
    CenteredIsotonicRecalibrator,
    IsotonicRecalibrator,
    MulticlassIsotonic,
    Positives,
    ScoresAroundPositives,
    VennAbers,
    constant_pieces,
    through_pieces,
    venn_abers,
)
from tests.inputs.simulated import simulate, softmax


def fitted_map(score, hit):
    return through_pieces(
        constant_pieces(ScoresAroundPositives.of(np.sort(score), Positives.of(score[hit])))
    )


def test_pooling_by_hand():
    """Hits 0 1 0 | 1 1 | 0 1: the second violates and is pooled with the third, (1 + 0) / 2 = 1/2; then 3/4 for 1 1 0 x."""
    score = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    hit = np.array([0, 1, 0, 1, 1, 0, 1], dtype=bool)
    result = fitted_map(score, hit)
    np.testing.assert_allclose(result(score), [0, 1 / 2, 1 / 2, 2 / 3, 2 / 3, 2 / 3, 1])
    # Between the pieces a line, beyond them constant.
    np.testing.assert_allclose(result(np.array([0.0, 0.15, 0.35, 0.9])), [0, 0.25, 7 / 12, 1])


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("rate", [0.02, 0.5, 0.98])
def test_is_scikit_learns(decimals, rate):
    rng = np.random.default_rng(3)
    score = rng.random(500)
    if decimals:
        score = score.round(decimals)
    hit = rng.random(500) < rate * score
    hit[:2] = [True, False]
    new = rng.random(1_000)
    other = IsotonicRegression(out_of_bounds="clip").fit(score, hit)
    result = fitted_map(score, hit)
    np.testing.assert_allclose(result(new), other.predict(new), atol=1e-12)
    np.testing.assert_allclose(result(score), other.predict(score), atol=1e-12)


def test_runs_merge_to_the_whole():
    rng = np.random.default_rng(0)
    score = rng.random(400).round(2)
    at = Positives.of(score[rng.random(400) < 0.2])
    whole = ScoresAroundPositives.of(np.sort(score), at)
    merged = ScoresAroundPositives.of(np.sort(score[:150]), at).merged(
        ScoresAroundPositives.of(np.sort(score[150:]), at)
    )
    for name in ("below", "upto", "under", "over", "lowest", "highest", "n"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(merged, name))


@pytest.mark.parametrize("k", [2, 5])
def test_one_against_the_rest_is_scikit_learns_normalised(k):
    z, y = simulate(700, k, temperature=2, seed=4)
    p = softmax(z)
    new = softmax(simulate(300, k, seed=9)[0])
    columns = []
    for j in range(k):
        one = IsotonicRegression(out_of_bounds="clip").fit(p[:, j], y == j)
        columns.append(one.predict(new[:, j]))
    other = np.stack(columns, axis=1)
    if k == 2:
        other[:, 0] = 1 - other[:, 1]
    other += 1e-9 * new
    other /= other.sum(axis=1, keepdims=True)
    calibrated = IsotonicRecalibrator(cap=False).fit(p, y).transform(new)
    np.testing.assert_allclose(calibrated, other, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_for_all_classes_is_scikit_learns_on_all_pairs(dtype, monkeypatch):
    monkeypatch.setattr(irm, "_RUN_BYTES", 1_000)
    z, y = simulate(400, 5, temperature=2, seed=4)
    p = softmax(z).astype(dtype)
    one = IsotonicRegression(out_of_bounds="clip").fit(
        p.astype(float).ravel(), np.eye(5)[y].ravel()
    )
    other = one.predict(p.astype(float).ravel()).reshape(p.shape) + 1e-9 * p
    other /= other.sum(axis=1, keepdims=True)
    calibrated = MulticlassIsotonic(cap=False).fit(p, y).transform(p)
    # scikit-learn takes float32 numbers that are closer than 1e-6 for one.
    np.testing.assert_allclose(calibrated, other, atol=1e-7 if dtype is np.float64 else 1e-3)


def test_for_all_classes_a_row_below_every_positive_stays_as_it_is():
    p = np.array([[0.5, 0.3, 0.2]] * 4 + [[0.4, 0.35, 0.25]])
    fitted = MulticlassIsotonic().fit(p, [0, 0, 0, 0, 1])
    low = np.array([[0.19, 0.4, 0.41]])
    assert fitted.transform(low).argmax() == 2


def test_a_row_that_all_classes_map_to_zero_keeps_its_probabilities():
    """Zhang 2020, section 3.3.2: (g + eps p) over its sum, which is p itself where every g is 0."""
    # In every class scores up to 0.5 never hit, and 0.9 always does.
    wrong = [[0.5, 0.4, 0.1], [0.1, 0.5, 0.4], [0.4, 0.1, 0.5]] * 4
    sure = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]] * 4
    p = np.array(wrong + sure)
    # The labels of the first rows are classes that they give 0: these rows are misses for all the others.
    p = np.hstack([p, np.zeros((24, 1))])
    y = np.array([3] * 12 + [0, 1, 2] * 4)
    fitted = IsotonicRecalibrator(cap=False).fit(p, y)
    new = np.array([[0.5, 0.3, 0.2, 0.0]])
    # The fourth class has the same score everywhere, and hits in half of the rows.
    g = np.array([0, 0, 0, 0.5])
    wanted = (g + 1e-9 * new) / (g + 1e-9 * new).sum()
    np.testing.assert_allclose(fitted.transform(new), wanted, rtol=1e-12)
    assert fitted.transform(new)[0, 0] == pytest.approx(1e-9, rel=1e-6)


def test_irm_is_strictly_increasing_by_its_epsilon():
    z, y = simulate(300, 4, seed=2)
    p = softmax(z)
    for epsilon in (1e-9, 1e-3):
        fitted = MulticlassIsotonic(epsilon=epsilon, cap=False).fit(p, y)
        pairs = IsotonicRegression(out_of_bounds="clip").fit(p.ravel(), np.eye(4)[y].ravel())
        g = pairs.predict(p.ravel()).reshape(p.shape) + epsilon * p
        np.testing.assert_allclose(
            fitted.transform(p), g / g.sum(axis=1, keepdims=True), atol=1e-11
        )
        # Also on one piece of the map the order is that of the probabilities.
        out = fitted.transform(np.array([[0.5, 0.25 + 1e-6, 0.25 - 1e-6, 0.0]]))[0]
        assert out[0] > out[1] > out[2] > out[3]


def test_a_piece_without_hits_is_what_its_rows_support():
    """Hits 0 0 0 | 1 0 1 | 1: 3 misses below support 1/8, one hit above 1 - 1/4; in between as before."""
    p = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    y = np.array([0, 0, 0, 1, 0, 1, 1])
    # 1 0 is pooled to 1/2; 1 1 above is one piece of two rows, 1 - 1/6.
    fitted = IsotonicRecalibrator().fit(np.stack([1 - p, p], axis=1), y)
    curve = fitted.curve(p)
    np.testing.assert_allclose(curve, [1 / 8] * 3 + [1 / 2] * 2 + [5 / 6] * 2)
    uncapped = IsotonicRecalibrator(cap=False).fit(np.stack([1 - p, p], axis=1), y)
    np.testing.assert_allclose(uncapped.curve(p), [0] * 3 + [1 / 2] * 2 + [1] * 2)


def test_a_cap_does_not_pass_the_next_piece():
    """One miss would support 1/4, but the nine rows above it are at 1/9: increasing all the same."""
    p = np.linspace(0.1, 0.9, 11)
    y = np.array([0, 1] + [0] * 8 + [1])
    curve = IsotonicRecalibrator().fit(np.stack([1 - p, p], axis=1), y).curve(p)
    np.testing.assert_allclose(curve, [1 / 9] * 10 + [3 / 4])
    # The other way round: the last piece is no lower than the one below it.
    curve = IsotonicRecalibrator().fit(np.stack([1 - p, p], axis=1), 1 - y[::-1]).curve(p)
    np.testing.assert_allclose(curve, [1 / 4] + [8 / 9] * 10)


def test_the_cap_of_irm_counts_pairs():
    """Of 4 x 3 pairs the 7 lowest are misses: 1/16; all labels are the largest but one."""
    p = np.array([[0.6, 0.3, 0.1], [0.15, 0.65, 0.2], [0.25, 0.05, 0.7], [0.45, 0.35, 0.2]])
    y = np.array([0, 1, 2, 1])
    fitted = MulticlassIsotonic().fit(p, y)
    # 0.05 to 0.3 are 7 misses, 0.35 is a hit, 0.45 a miss, 0.6, 0.65 and 0.7 are hits.
    np.testing.assert_allclose(
        fitted.curve(np.array([0.05, 0.3, 0.35, 0.45, 0.6, 0.7])),
        [1 / 16, 1 / 16, 1 / 2, 1 / 2, 7 / 8, 7 / 8],
    )


@pytest.mark.parametrize("k", [2, 3, 12])
def test_the_cap_of_irm_keeps_predicted_classes_and_their_order(k):
    z, y = simulate(400, k, temperature=0.3, spread=3)
    p = softmax(z)
    out = MulticlassIsotonic().fit(p, y).transform(p)
    np.testing.assert_array_equal(out.argmax(axis=1), p.argmax(axis=1))
    order = np.argsort(p, axis=1)
    assert (np.diff(np.take_along_axis(out, order, axis=1), axis=1) >= 0).all()


def both(p):
    p = np.asarray(p, dtype=float)
    return np.stack([1 - p, p], axis=1)


#: Pieces: two misses (0.1, 0.2); (0.3, 0.4, 0.5, 0.6) with one hit each half; (0.7, 0.8) with hits alone.
SCORES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
LABELS = [0, 0, 1, 0, 1, 0, 1, 1]


def points(fitted):
    (maps,) = fitted.maps_
    return np.stack([maps.x, maps.y], axis=1)


def test_the_paper_by_hand():
    fitted = CenteredIsotonicRecalibrator(smooth=False).fit(both(SCORES), LABELS)
    # Pieces at 0 and 1 keep both ends; the others stand at their mean score.
    wanted = [(0.1, 0), (0.2, 0), (0.45, 0.5), (0.7, 1), (0.8, 1)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)
    np.testing.assert_allclose(
        fitted.curve(np.array([0.0, 0.325, 0.45, 0.575, 1.0])), [0, 0.25, 0.5, 0.75, 1]
    )


def test_smooth_values_by_hand():
    fitted = CenteredIsotonicRecalibrator().fit(both(SCORES), LABELS)
    # (H + 1/2) / (n + 1): 0.5 / 3, 2.5 / 5, 2.5 / 3.
    wanted = [(0.1, 1 / 6), (0.2, 1 / 6), (0.45, 0.5), (0.7, 5 / 6), (0.8, 5 / 6)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)


def test_outer_pieces_that_are_not_sure_keep_their_outer_end():
    # (0.1, 0.2, 0.3) with one hit; (0.5, 0.6, 0.9) with two.
    fitted = CenteredIsotonicRecalibrator(smooth=False).fit(
        both([0.1, 0.2, 0.3, 0.5, 0.6, 0.9]), [1, 0, 0, 1, 1, 0]
    )
    wanted = [(0.1, 1 / 3), (0.2, 1 / 3), (2 / 3, 2 / 3), (0.9, 2 / 3)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)


def test_smooth_values_that_do_not_ascend_are_pooled():
    # Nine of ten, then one of one: 9.5 / 11 = 0.864 and 1.5 / 2 = 0.75, so (9.5 + 1.5) / (11 + 2).
    p = np.append(np.linspace(0.5, 0.59, 10), [0.2, 0.9])
    y = np.append(np.arange(10) > 0, [0, 1]).astype(int)
    y[:10] = y[:10][::-1]  # its only miss comes last
    fitted = CenteredIsotonicRecalibrator().fit(both(p), y)
    values = np.unique(points(fitted)[:, 1])
    np.testing.assert_allclose(values, [0.25, 11 / 13], atol=1e-15)
    x = points(fitted)[:, 0]
    assert x[-2:] == pytest.approx([(p[:10].sum() + 0.9) / 11, 0.9])


def test_rows_of_one_score_are_one_point():
    fitted = CenteredIsotonicRecalibrator().fit(both([0.4] * 6), [1, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(points(fitted), [(0.4, 2.5 / 7)])


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_rises_between_the_pieces_of_isotonic_regression(smooth, dtype):
    rng = np.random.default_rng(0)
    p = rng.random(2_000).astype(dtype)
    y = (rng.random(2_000) < p**2).astype(int)
    X = np.stack([1 - p, p], axis=1)
    fitted = CenteredIsotonicRecalibrator(smooth=smooth).fit(X, y)
    x, value = fitted.maps_[0].x, fitted.maps_[0].y
    assert (np.diff(x) > 0).all()
    assert (np.diff(value) >= 0).all()
    assert (value[0] > 0) == (value[-1] < 1) == smooth
    # As many values as isotonic regression has, and every one is that of a piece.
    if not smooth:
        steps = IsotonicRecalibrator(cap=False).fit(X, y).maps_[0].y
        np.testing.assert_allclose(np.unique(value), np.unique(steps))
        # Weighted means of the points of the pieces are those of the rows.
        assert fitted.transform(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)


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

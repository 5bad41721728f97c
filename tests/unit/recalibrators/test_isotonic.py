import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calviz.recalibrators import isotonic as irm
from calviz.recalibrators.isotonic import (
    IsotonicRecalibrator,
    MulticlassIsotonic,
    Positives,
    ScoresAroundPositives,
    constant_pieces,
    through_pieces,
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

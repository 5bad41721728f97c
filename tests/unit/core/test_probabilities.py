"""Probabilities at the edge: exact zeros, near ties, divisions by nothing."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.special import softmax as softmax_of_near_ties

import calviz
from calviz.core.blocks import (
    denominators,
    effective_number,
    effective_numbers,
    effective_numbers_of_sums,
    quotient,
)
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents, Ordered, ends_of_near_ties, one_score_per_tie
from calviz.core.probabilities import (
    EPSILON,
    ZeroFloor,
    automatic_floor,
    check_floor,
    chosen_floor,
    smallest_normal,
)
from calviz.recalibrators.isotonic import (
    Positives,
    ScoresAroundPositives,
    constant_pieces,
    through_pieces,
)
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from tests.inputs.simulated import draw_labels, softmax

# ---- What an exact score of 0 counts as, and that nothing else changes


TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def labels_of(p):
    return p.argmax(axis=1)


@TYPES
@pytest.mark.parametrize(("smallest", "floor"), [(1e-3, 5e-4), (0.02, 0.01), (0.1, 0.01)])
def test_a_zero_counts_as_half_of_the_smallest_positive_score_at_most_a_hundredth(
    dtype, smallest, floor
):
    p = np.array([[1, 0, 0], [0.5, 0.5 - smallest, smallest]], dtype=dtype)
    result = automatic_floor(p, labels_of(p))
    assert result.value == pytest.approx(floor, rel=1e-6)
    np.testing.assert_allclose(result.raise_zeros(p.copy())[0], [1, floor, floor], rtol=1e-6)
    np.testing.assert_array_equal(result.raise_zeros(p.copy())[1], p[1])


def test_two_classes_look_at_both_sides():
    p = np.array([0.0, 0.3, 0.5, 0.996])
    both = np.stack([1 - p, p], axis=1)
    # The smallest positive p is 0.3, the smallest positive 1 - p is 0.004.
    assert automatic_floor(both, np.array([0, 0, 1, 1])).value == pytest.approx(0.002)


@TYPES
def test_rows_without_zeros_are_left_alone_bit_for_bit(dtype):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 4)) * np.where(np.arange(500) < 50, 5, 30)[:, None]
    p = np.maximum(softmax(z), 1e-37).astype(dtype)
    floor = automatic_floor(p[:50], labels_of(p[:50]))
    assert (p[50:] < floor.value).any()
    np.testing.assert_array_equal(floor.raise_zeros(p.copy()), p)


@TYPES
@pytest.mark.parametrize("clips", [True, False])
def test_the_order_within_a_row_is_kept(dtype, clips):
    p = np.array([[0.7, 0.3, 0], [1, 1e-9, 0], [1, 1e-30, 0], [1, 0, 0]], dtype=dtype)
    out = ZeroFloor(1e-6, clips=clips).raise_zeros(p.copy())
    assert (out > 0).all()
    assert (np.diff(out, axis=1) <= 0).all()
    if not clips:
        np.testing.assert_array_equal(out[p > 0], p[p > 0])
        assert (out[:3, 1] > out[:3, 2]).all()


def test_subnormal_numbers_count_as_the_smallest_normal_one():
    p = np.array([[1.0, 1e-310]])
    for floor in (ZeroFloor(), ZeroFloor(1e-16, clips=False)):
        assert floor.raise_zeros(p.copy())[0, 1] == smallest_normal(np.float64)


@pytest.mark.parametrize("clips", [True, False])
def test_the_source_does_the_same(clips):
    p = np.array([[0.7, 0.3, 0], [1, 1e-9, 0], [1, 1e-30, 0], [1, 0, 0]])
    floor = ZeroFloor(1e-6, clips=clips)
    read = eval(floor.source("p"), {"np": np, "p": p})
    np.testing.assert_allclose(read, floor.raise_zeros(p.copy()), rtol=1e-12)


def underflowed(n, share, seed=0):
    """Softmax of wide logits whose smallest scores underflowed, and labels that a `share` of rows get wrong."""
    rng = np.random.default_rng(seed)
    z = 300 * rng.normal(size=(n, 3))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p[p < 1e-200] = 0
    p /= p.sum(axis=1, keepdims=True)
    y = labels_of(p)
    wrong = rng.random(n) < share
    y[wrong] = rng.integers(3, size=wrong.sum())
    return p, y


def cross_validated_loss(p, y, floor, folds=5):
    """By SciPy, with folds of its own."""
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    logs = np.log(np.maximum(p, floor))
    fold = np.random.default_rng(1).permutation(y.size) % folds

    def loss(beta, rows):
        return -log_softmax(beta * logs[rows], axis=1)[np.arange(rows.size), y[rows]].sum()

    total = 0.0
    for one in range(folds):
        kept, held_out = np.flatnonzero(fold != one), np.flatnonzero(fold == one)
        at = minimize_scalar(lambda t: loss(np.exp(t), kept), bounds=(-12, 3), method="bounded")  # noqa: B023
        total += loss(np.exp(at.x), held_out)
    return total / y.size


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_where_the_smallest_score_is_an_underflow_the_floor_is_cross_validated(share):
    p, y = underflowed(600, share)
    assert p[p > 0].min() < 1e-100
    value = automatic_floor(p, y).value
    candidates = [1e-15, 1e-12, 1e-9, 1e-6, 1 / (3 * 601), 1e-3]
    assert value == chosen_floor(p, y)
    assert min(abs(value / c - 1) for c in candidates) < 1e-12
    losses = [cross_validated_loss(p, y, c) for c in candidates]
    best = min(losses)
    at = int(np.argmin([abs(value / c - 1) for c in candidates]))
    # With other folds nearly the same loss; the worst candidate is far from it.
    assert losses[at] - best < 0.1 * (max(losses) - best)
    assert max(losses) - best > 0.005


def test_an_underflow_that_no_true_class_refutes_is_halved():
    p = np.array([[1, 1e-20, 0], [0.5, 0.5, 0]])
    assert automatic_floor(p, np.array([0, 1])).value == 5e-21


@pytest.mark.slow
def test_large_data_are_chosen_from_in_a_moment_and_find_rare_zeros():
    p, y = underflowed(100_000, 0.0)
    wrong = np.flatnonzero(p.min(axis=1) == 0)[:20]
    y[wrong] = p[wrong].argmin(axis=1)
    assert 0 < automatic_floor(p, y).value <= 1e-3


def test_without_zeros_the_floor_is_that_of_the_loss_or_lower():
    p = np.full((2, 2), 0.5)
    assert automatic_floor(p, np.array([0, 1])) == ZeroFloor(EPSILON, clips=False)
    p = np.array([[1, 1e-20], [0.5, 0.5]])
    assert automatic_floor(p, np.array([0, 1])) == ZeroFloor(5e-21, clips=False)


@pytest.mark.parametrize("floor", ["high", 0, 1, -0.5, True, np.nan, [1e-3]])
def test_other_floors_are_refused(floor):
    with pytest.raises(OptionError, match="'floor' must be \"auto\", None or a number"):
        check_floor(floor)


@pytest.mark.parametrize("floor", ["auto", None, 1e-300, 0.5, np.float32(1e-3)])
def test_floors(floor):
    check_floor(floor)


# ---- Scores that differ by rounding only are ties: two ways to compute them give the same numbers


KEYS = ["ks", "ks_signed", "ece_equal_mass", "ece_sweep", "aurc", "e_aurc", "auroc_failure"]
KEYS += ["brier_miscalibration", "brier_discrimination", "kde_ece", "smece"]


def two_ways(n, seed, levels):
    """The same probabilities from logits: softmax, and expit of the difference; many rows per level."""
    rng = np.random.default_rng(seed)
    difference = rng.normal(0, 2, levels)[rng.integers(levels, size=n)]
    shift = rng.normal(0, 3, n)  # changes the rounding, not the probabilities
    logits = np.stack([shift, shift + difference], axis=1)
    labels = rng.random(n) < expit(0.7 * difference)
    return softmax_of_near_ties(logits, axis=1)[:, 1], expit(difference), labels


@pytest.mark.parametrize(("n", "levels"), [(300, 12), (4_000, 40), (20_000, 5_000)])
@pytest.mark.parametrize("reduction", ["positive", "top-label"])
def test_two_ways_to_compute_scores_give_the_same_numbers(n, levels, reduction):
    one, other, labels = two_ways(n, 1, levels)
    assert np.unique(one).size > np.unique(other).size == min(levels, np.unique(other).size)
    values = [
        calviz.evaluate(calviz.Predictions(probs=p, labels=labels), KEYS, reduction=reduction)
        for p in (one, other)
    ]
    for a, b in zip(*values, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-10, abs=1e-12), a.key


def columns_in_two_ways(n, levels, seed=3):
    """Rows of four classes from few distinct logits, exactly tied and with the rounding of shifted logits."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 1.5, (levels, 4))[rng.integers(levels, size=n)]
    exact = softmax_of_near_ties(logits, axis=1)
    shifted = softmax_of_near_ties(logits + rng.normal(0, 30, (n, 1)), axis=1)
    labels = draw_labels(exact, rng)
    return exact, shifted, labels


@pytest.mark.parametrize("n", [400, 5_000])
def test_errors_of_classes_see_near_ties_as_ties(n):
    exact, shifted, labels = columns_in_two_ways(n, 20)
    assert np.unique(shifted[:, 0]).size > np.unique(exact[:, 0]).size
    keys = ["ks_classwise", "tace"]
    one, other = (
        calviz.evaluate(calviz.Predictions(probs=p, labels=labels), keys, ci=True, resamples=100)
        for p in (exact, shifted)
    )
    for a, b in zip(one, other, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9), a.key
    # Drawn again with the same seeds: the same rows, the same steps.
    a, b = one["ks_classwise"], other["ks_classwise"]
    assert (a.interval.low, a.interval.high) == pytest.approx(
        (b.interval.low, b.interval.high), rel=1e-5
    )
    assert a.noise_floor.q95 == pytest.approx(b.noise_floor.q95, rel=1e-5)


@pytest.mark.parametrize("method", ["isotonic", "irm", "histogram", "bbq"])
def test_maps_see_near_ties_as_ties(method):
    options = {"scheme": "equal-mass"} if method == "histogram" else {}
    exact, shifted, labels = columns_in_two_ways(3_000, 20)
    one, other = (
        RECALIBRATORS[method].make(**options).fit(p, labels).transform(p) for p in (exact, shifted)
    )
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_isotonic_gives_a_near_tie_its_mean():
    # One positive and two misses that differ by rounding: a third each, whatever the order.
    score = np.array([0.2, 0.6, 0.6 * (1 - 4e-16), 0.6 * (1 + 4e-16), 0.9])
    for hit in np.eye(3, dtype=bool):
        hits = np.concatenate([[False], hit, [True]])
        fitted = through_pieces(
            constant_pieces(ScoresAroundPositives.of(np.sort(score), Positives.of(score[hits])))
        )
        assert fitted(np.array([0.6])) == pytest.approx(1 / 3, abs=1e-9)


def test_isotonic_keeps_the_order_of_many_close_scores():
    # Steps of half of rounding: a chain, whose ends are far apart.
    score = 0.5 + 0.25e-12 * np.arange(400)
    hit = np.arange(400) >= 200
    fitted = through_pieces(
        constant_pieces(ScoresAroundPositives.of(score, Positives.of(score[hit])))
    )
    np.testing.assert_array_equal(fitted(score), hit)


def test_the_largest_score_stands_for_a_tie_and_misses_come_first():
    score = np.array([0.2, 0.2 * (1 + 1e-15), 0.2 * (1 + 3e-13), 0.5, 0.5, 0.7])
    hit = np.array([True, False, True, False, True, True])
    ordered = one_score_per_tie(Ordered(score, hit))
    assert ordered.score.tolist() == [score[2]] * 3 + [0.5, 0.5, 0.7]
    assert ordered.hit.tolist() == [False, True, True, False, True, True]


def test_without_near_ties_nothing_changes():
    rng = np.random.default_rng(0)
    for score in (np.sort(rng.random(1_000)), np.sort(rng.integers(0, 9, 1_000) / 9)):
        rows = Ordered(score, rng.random(1_000) < 0.5)
        assert one_score_per_tie(rows) is rows
    # Just beyond rounding.
    rows = Ordered(np.array([0.3, 0.3 * (1 + 2e-12)]), np.array([True, False]))
    assert one_score_per_tie(rows) is rows


def test_single_precision_is_left_alone():
    score = np.array([0.5, np.nextafter(np.float32(0.5), np.float32(1))], dtype=np.float32)
    rows = Ordered(score, np.array([True, False]))
    assert one_score_per_tie(rows) is rows


def test_a_score_and_what_is_left_of_1_are_one_step():
    # Hundredths, some as p and some as 1 - (1 - p): 101 of them, and of the top label the 51 from 0.5 on.
    hundredths = np.arange(101) / 100
    score = np.concatenate([hundredths, 1 - hundredths])
    assert np.unique(score).size > 101
    p = calviz.Predictions(probs=score, labels=np.arange(202) % 2)
    for reduction, steps_there in (("positive", 101), ("top-label", 51)):
        assert Sample(p, reduction).view(steps).size == steps_there


def test_many_close_scores_near_1_keep_their_order():
    # Saturated: each is within rounding of the next, the first and the last are not.
    rng = np.random.default_rng(0)
    score = np.sort(1 - 10 ** -rng.uniform(7, 15, 100_000))
    hit = rng.random(score.size) < 0.5
    ordered = one_score_per_tie(Ordered(score, hit))
    assert np.unique(ordered.score).size > 0.5 * np.unique(score).size
    assert np.abs(ordered.score / score - 1).max() <= 1e-12
    assert (np.diff(ordered.score) >= 0).all()
    assert ordered.hit.sum() == hit.sum()


def test_exact_ties_inside_a_long_run_stay_ties():
    score = np.array([1 - 3e-12, 1 - 2.2e-12, 1 - 2.2e-12, 1 - 1.4e-12, 1 - 0.6e-12])
    hit = np.array([False, True, True, False, True])
    ordered = one_score_per_tie(Ordered(score, hit))
    np.testing.assert_array_equal(ordered.score, score)
    np.testing.assert_array_equal(ordered.hit, hit)


def test_bins_count_every_score_as_it_is():
    # One row on the edge 0.2 of equal-width bins, one a rounding error above it.
    above = np.nextafter(0.2, 1)
    events = BinaryEvents(np.array([above, 0.2]), np.array([False, True]))
    assert events.rows.score.tolist() == [0.2, above]
    assert events.ordered.score.tolist() == [above, above]
    p = calviz.Predictions(probs=events.score, labels=events.hit)
    e = calviz.evaluate(p, ["ece"], bins=5, ci=True, resamples=50)
    assert e["ece"].value == pytest.approx((0.8 + 0.2) / 2)


def test_many_near_ties_are_those_of_a_plain_loop():
    # More rows than are compared at a time, a tie and a chain longer than that, and pairs throughout.
    rng = np.random.default_rng(3)
    pairs = np.repeat(rng.random(20_000), 2) * (1 + 3e-13 * rng.integers(-1, 2, 40_000))
    tie = 0.25 * (1 + 1e-17 * np.arange(40_000))
    chain = 0.75 + 0.3e-12 * np.arange(40_000)
    score = np.sort(np.concatenate([pairs, tie, chain]))
    hit = rng.random(score.size) < 0.5
    rows = Ordered(score, hit)
    expected_score, expected_hit, start = score.copy(), hit.copy(), 0
    for end in np.flatnonzero(np.append(np.diff(score) > 1e-12 * score[1:], True)).tolist():
        if score[end] - score[start] <= 1e-12 * score[end]:
            expected_score[start : end + 1] = score[end]
            expected_hit[start : end + 1] = np.sort(hit[start : end + 1])
        start = end + 1
    changed = np.flatnonzero(expected_score != score)
    result = one_score_per_tie(rows)
    np.testing.assert_array_equal(result.score, expected_score)
    np.testing.assert_array_equal(result.hit[changed], expected_hit[changed])
    assert result.hit.sum() == hit.sum()
    at = rng.integers(score.size, size=1_000)
    np.testing.assert_array_equal(score[ends_of_near_ties(score, at)], expected_score[at])


def test_quotients_without_a_denominator():
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 0.0])
    np.testing.assert_array_equal(quotient(a, b), [[0.5, np.nan], [1.5, np.nan]])
    np.testing.assert_array_equal(quotient(a, b, otherwise=0.0), [[0.5, 0], [1.5, 0]])
    usual = np.array([7.0, 8.0])
    np.testing.assert_array_equal(quotient(a, b, otherwise=usual), [[0.5, 8], [1.5, 8]])
    np.testing.assert_array_equal(usual, [7, 8])
    assert quotient(np.asarray(3.0), np.asarray(2.0)) == 1.5
    np.testing.assert_array_equal(denominators(np.array([0.0, 0.5, 3.0])), [1, 0.5, 3])


def test_effective_numbers_by_hand():
    # (1 + 1 + 2)^2 / (1 + 1 + 4) and (3)^2 / 9; no row has the third number.
    group, weights = np.array([0, 1, 0, 0]), np.array([1.0, 3.0, 1.0, 2.0])
    np.testing.assert_allclose(effective_numbers(group, weights, 3), [16 / 6, 1, 0])
    assert effective_number(weights[group == 0]) == pytest.approx(16 / 6)
    assert effective_numbers_of_sums(np.array([4.0]), np.array([6.0])) == pytest.approx(16 / 6)

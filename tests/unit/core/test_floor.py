"""What an exact score of 0 counts as, and that nothing else changes."""

import numpy as np
import pytest

from calviz.core.errors import OptionError
from calviz.core.probabilities import EPSILON, ZeroFloor, check_floor, smallest_normal
from calviz.core.temperature import automatic_floor, chosen_floor
from tests.inputs.simulated import softmax

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

"""Reductions against what they mean: argmax, a stable sort, a column."""

import tracemalloc

import numpy as np
import pytest

from calviz.core import blocks
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import Reduction
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.sample.sample import predicted_classes, reduce, top_label

# Both sides of TRANSPOSED_CLASSES, and more rows than one block of either.
SHAPES = [(1, 2), (7, 3), (5000, 16), (5000, 17), (3000, 400)]


def make(n, k, dtype, *, tied, seed=0):
    rng = np.random.default_rng(seed)
    if tied:
        # Counts of few parts: many rows with two or more equal largest probabilities.
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    else:
        probs = rng.dirichlet(np.full(k, 0.3), size=n)
    labels = rng.integers(k, size=n)
    return Predictions(probs=probs.astype(dtype), labels=labels)


def plain(data, r, within):
    order = np.argsort(-data.probs.astype(np.float64), axis=1, kind="stable")[:, :r]
    top = np.take_along_axis(data.probs.astype(np.float64), order, axis=1)
    is_label = order == data.labels[:, None]
    if within:
        return np.minimum(top.sum(axis=1), 1), is_label.any(axis=1)
    return top[:, -1], is_label[:, -1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_top_label_is_max_and_argmax(n, k, tied, dtype):
    data = make(n, k, dtype, tied=tied)
    score, winner = top_label(data)
    np.testing.assert_array_equal(score, data.probs.max(axis=1))
    np.testing.assert_array_equal(winner, data.probs.argmax(axis=1))
    np.testing.assert_array_equal(predicted_classes(data), winner)
    assert score.dtype == dtype
    events = reduce(data, Reduction())
    np.testing.assert_array_equal(events.hit, data.probs.argmax(axis=1) == data.labels)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("r", [2, 3, "all"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n", "k"), [(9, 3), (4000, 5), (1500, 40)])
def test_ranked_reductions_are_a_stable_sort(n, k, tied, r, within):
    data = make(n, k, np.float32, tied=tied, seed=n)
    rank = k if r == "all" else r
    events = reduce(data, Reduction("within-top-r" if within else "top-r", rank))
    score, hit = plain(data, rank, within)
    np.testing.assert_allclose(events.score, score, rtol=1e-6)
    np.testing.assert_array_equal(events.hit, hit)


def test_ranks_by_hand():
    data = Predictions(probs=np.array([[0.2, 0.4, 0.4], [0.5, 0.3, 0.2]]), labels=np.array([2, 2]))
    one, within = (reduce(data, Reduction(kind, 2)) for kind in ("top-r", "within-top-r"))
    np.testing.assert_array_equal(one.score, [0.4, 0.3])
    np.testing.assert_array_equal(one.hit, [True, False])  # class 1 ranks before its equal, class 2
    np.testing.assert_allclose(within.score, [0.8, 0.8])
    np.testing.assert_array_equal(within.hit, [True, False])


def test_ranks_share_out_the_rows():
    data = make(3000, 6, np.float64, tied=True)
    ranks = [reduce(data, Reduction.of(f"top-{r}")) for r in range(1, 7)]
    np.testing.assert_array_equal(np.sum([e.hit for e in ranks], axis=0), 1)
    np.testing.assert_allclose(np.sum([e.score for e in ranks], axis=0), 1)
    within = reduce(data, Reduction.of("within-top-3"))
    np.testing.assert_array_equal(within.hit, np.any([e.hit for e in ranks[:3]], axis=0))


def test_class_and_positive():
    data = make(500, 2, np.float32, tied=False)
    for key in ("positive", "class:1"):
        events = reduce(data, Reduction.of(key))
        np.testing.assert_array_equal(events.score, data.probs[:, 1])
        np.testing.assert_array_equal(events.hit, data.labels == 1)


def test_any_memory_layout():
    data = make(3000, 40, np.float32, tied=True)
    turned = Predictions(probs=np.asfortranarray(data.probs), labels=data.labels)
    strided = Predictions(probs=np.repeat(data.probs, 2, axis=0)[::2], labels=data.labels)
    for key in ("top-label", "top-2", "within-top-12", "class:3"):
        expected = reduce(data, Reduction.of(key))
        for other in (turned, strided):
            events = reduce(other, Reduction.of(key))
            np.testing.assert_array_equal(events.score, expected.score)
            np.testing.assert_array_equal(events.hit, expected.hit)


def test_locked_arrays_are_not_copied():
    data = make(4000, 500, np.float32, tied=False)
    assert not data.probs.flags.writeable
    reduce(data, Reduction())  # whatever is allocated once
    tracemalloc.start()
    reduce(data, Reduction())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.05 * data.probs.nbytes


def test_threads_give_the_same(monkeypatch):
    data = make(5000, 30, np.float32, tied=True)
    expected = top_label(data)
    monkeypatch.setattr(blocks, "THREADED_BYTES", 0)
    monkeypatch.setattr(blocks, "available_cores", lambda: 3)
    for mine, other in zip(top_label(data), expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_an_error_in_a_thread_is_passed_on(monkeypatch):
    monkeypatch.setattr(blocks, "THREADED_BYTES", 0)
    monkeypatch.setattr(blocks, "available_cores", lambda: 2)

    def fail(rows):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blocks.for_row_blocks(np.zeros((10, 2)), fail)


def test_blocks_cover_every_row_once():
    seen = np.zeros(1000, dtype=int)
    for rows in blocks.row_blocks(np.zeros((1000, 3)), block_bytes=24 * 7):
        seen[rows] += 1
    assert (seen == 1).all()


def test_sums_do_not_pass_one():
    data = Predictions(probs=np.array([[0.7, 0.3 + 1e-7, 0.0]]), labels=[0])
    assert reduce(data, Reduction.of("within-top-2")).score[0] <= 1


def test_confidence_only_data_have_the_top_label_only():
    data = ConfidencePredictions(confidence=[0.9, 0.6], correct=[True, False])
    events = reduce(data, Reduction())
    np.testing.assert_array_equal(events.score, [0.9, 0.6])
    with pytest.raises(NotAvailable, match="confidence-only"):
        reduce(data, Reduction.of("top-2"))


@pytest.mark.parametrize("key", ["top-9", "within-top-9", "class:wolf", "positive"])
def test_what_the_data_do_not_have(key):
    with pytest.raises(OptionError):
        reduce(make(5, 3, np.float64, tied=False), Reduction.of(key))

"""Reductions and one class against the rest."""

import tracemalloc

import numpy as np
import pytest

from calviz.core import blocks
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import Reduction
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.metrics import classes as classwise_ks
from calviz.metrics.classes import classwise_ks as ks_view
from calviz.sample import draws as row_tables
from calviz.sample.draws import BUDGET, RowDraws, affordable, redrawn_labels, row_counts
from calviz.sample.one_vs_rest import _class_labels, classwise_equal_width, classwise_thresholded
from calviz.sample.sample import Sample, predicted_classes, reduce
from calviz.sample.true_classes import true_class_errors

# ---- Reductions against what they mean: argmax, a stable sort, a column


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
    events = reduce(data, Reduction())
    np.testing.assert_array_equal(events.score, data.probs.max(axis=1))
    np.testing.assert_array_equal(predicted_classes(data), data.probs.argmax(axis=1))
    assert events.score.dtype == dtype
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
    expected = reduce(data, Reduction())
    monkeypatch.setattr(blocks, "THREADED_BYTES", 0)
    monkeypatch.setattr(blocks, "available_cores", lambda: 3)
    mine = reduce(data, Reduction())
    np.testing.assert_array_equal(mine.score, expected.score)
    np.testing.assert_array_equal(mine.hit, expected.hit)


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


# ---- Weighted and relabelled errors of all classes against the plain ones


def data(n=250, k=6, seed=0, tied=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), size=n)
    if tied:
        probs = rng.multinomial(8, probs) / 8
    return Predictions(probs=probs.astype(dtype), labels=rng.integers(0, k, n))


def weights(n, draws=5):
    return np.concatenate(list(row_counts(np.random.default_rng(1), n, draws))).T


def repeated(sample, weight):
    """The data with every row as often as it was drawn."""
    return sample.take(np.repeat(np.arange(sample.n), weight))


@pytest.mark.parametrize("tied", [False, True])
def test_equal_width_weights_are_repeated_rows(tied):
    d = data(tied=tied)
    w = weights(d.n)
    errors = classwise_equal_width(Sample(d), bins=7).columns.weighted_errors(w.astype(np.float32))
    for mine, weight in zip(errors, w.T, strict=True):
        expected = classwise_equal_width(Sample(repeated(d, weight)), bins=7).errors
        np.testing.assert_allclose(mine, expected, atol=1e-6)


def test_thresholded_weights_keep_the_bins():
    d = data()
    view = classwise_thresholded(Sample(d), bins=4, threshold=0.05)
    w = weights(d.n)
    errors = view.columns.weighted_errors(w.astype(np.float32))
    for mine, weight in zip(errors, w.T, strict=True):
        for k in range(d.n_classes):
            score = d.probs[:, k]
            kept = score > 0.05
            cuts = view.columns.class_bins.inner[k]
            bin_of = np.searchsorted(cuts, score[kept])
            gap = (score - (d.labels == k))[kept] * weight[kept]
            expected = np.abs(np.bincount(bin_of, gap)).sum() / weight[kept].sum()
            assert mine[k] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("make", [classwise_equal_width, classwise_thresholded])
@pytest.mark.parametrize("tied", [False, True])
def test_other_labels(make, tied):
    d = data(tied=tied)
    labels = redrawn_labels(d.probs, np.random.default_rng(2), 4)
    columns = make(Sample(d), bins=5).columns
    # One after the other without a table, together with one.
    for y, together in zip(labels, columns.errors(labels), strict=True):
        plain = make(Sample(Predictions(probs=d.probs, labels=y)), bins=5).errors
        np.testing.assert_allclose(together, plain, atol=1e-12)
        np.testing.assert_allclose(columns.errors(y[None])[0], plain, atol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("group", [1 << 20, 500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ks_of_resamples(tied, group, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "GROUP_ENTRIES", group)
    d = data(tied=tied, dtype=dtype)
    labels = redrawn_labels(d.probs, np.random.default_rng(3), 4)
    w = weights(d.n)
    values = {"labels": [], "weights": []}
    for ranked in classwise_ks._ranked_groups(d.probs):
        values["labels"].append(ranked.errors(labels))
        intervals = classwise_ks._Intervals(d, ranked.first)
        values["weights"].append(intervals.errors(w.astype(np.float32)))
    for mine, y in zip(np.concatenate(values["labels"], axis=1), labels, strict=True):
        plain = ks_view(Sample(Predictions(probs=d.probs, labels=y))).errors
        np.testing.assert_allclose(mine, plain, atol=1e-12)
    for mine, weight in zip(np.concatenate(values["weights"], axis=1), w.T, strict=True):
        plain = ks_view(Sample(repeated(d, weight))).errors
        np.testing.assert_allclose(mine, plain, atol=1e-6)


@pytest.mark.parametrize("lowest", [0.0, -0.0, -1e-7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_with_the_numbers_of_their_rows_are_sorted_as_alone(dtype, lowest):
    columns = np.random.default_rng(4).random((3, 40)).round(1).astype(dtype)
    columns[:, 7] = lowest
    order, score = classwise_ks._sorted(columns)
    np.testing.assert_array_equal(score, np.sort(columns, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(columns, order, axis=1), score)
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(40), (3, 1)))


@pytest.mark.parametrize("make", [classwise_equal_width, classwise_thresholded])
def test_hits_by_table_are_those_of_each_label(make):
    columns = make(Sample(data(dtype=np.float32)), bins=5).columns
    labels = np.random.default_rng(5).integers(0, 6, 250).astype(np.uint8)
    np.testing.assert_array_equal(columns._hits_by_table(labels), columns.plain_hits(labels))


@pytest.mark.parametrize(
    "make", [classwise_equal_width, classwise_thresholded, ks_view, true_class_errors]
)
@pytest.mark.parametrize("kind", ["draws", "groups"])
def test_rows_in_blocks_sum_to_those_at_once(make, kind, monkeypatch):
    d = data(dtype=np.float32)
    w = weights(d.n).astype(np.uint8)
    if kind == "groups":
        w = RowDraws(d.n, np.arange(d.n) // 3).counts(np.random.default_rng(2), 5)

    def errors():
        view = make(Sample(d))
        if make is ks_view:
            return classwise_ks._weighted_errors_of(d)(w)
        return np.stack(
            (view.columns if hasattr(view, "columns") else view.source).weighted_errors(w)
        )

    at_once = errors()
    monkeypatch.setattr(row_tables, "KEPT_ENTRIES", 0)
    monkeypatch.setattr(row_tables.RowTables.__init__, "__kwdefaults__", {"length": 37})
    monkeypatch.setattr(classwise_ks, "INTERVAL_ROWS", 41)
    monkeypatch.setattr(classwise_ks, "INTERVAL_SUMS", 1)
    np.testing.assert_allclose(errors(), at_once, rtol=0, atol=1e-6)


def test_budget():
    assert affordable(1000, 1.0) == 1000
    assert affordable(1000, BUDGET / 250) == 250
    assert affordable(1000, BUDGET / 500, start=BUDGET / 2) == 250
    assert affordable(20, BUDGET / 50) == 20
    with pytest.raises(NotAvailable, match="too large to resample"):
        affordable(1000, BUDGET / 50)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_labels_follow_from_all_weights_of_a_draw(scale):
    d = data()
    w = weights(d.n) * scale
    drawn = _class_labels(Sample(d))(w)
    # The same weights draw the same labels, in any sample and memory layout: differences are paired.
    np.testing.assert_array_equal(_class_labels(Sample(d))(np.asfortranarray(w)), drawn)
    # Another draw, by however little, draws others.
    for row in (0, d.n - 1):
        other = w.copy()
        other[row] += 0.25 * scale
        assert (_class_labels(Sample(d))(other) != drawn).mean() > 0.1

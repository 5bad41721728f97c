"""Weighted and relabelled errors of all classes against the plain ones."""

import numpy as np
import pytest

from calviz.core import blocks
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.metrics import classes as classwise_ks
from calviz.metrics.classes import classwise_ks as ks_view
from calviz.sample import draws as row_tables
from calviz.sample.draws import BUDGET, RowDraws, affordable, redrawn_labels, row_counts
from calviz.sample.one_vs_rest import _class_labels, classwise_equal_width, classwise_thresholded
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors


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

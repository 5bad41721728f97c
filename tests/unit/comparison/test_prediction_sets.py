"""Prediction sets against MAPIE, by hand, and by simulation."""

import json

import numpy as np
import pytest
from scipy import stats

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import with_rows
from tests.inputs.command_line import run
from tests.inputs.simulated import draw_labels


def data(n=1_200, k=4, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.6), size=n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(
        probs=probs, labels=labels, splits=["fit"] * 700 + ["judge"] * (n - 700)
    )


class Given:
    """A classifier whose features are its probabilities."""

    def __init__(self, k):
        self.classes_ = np.arange(k)

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return X.argmax(axis=1)


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_lac_is_mapies(coverage):
    mapie = pytest.importorskip("mapie.classification")
    p = data()
    peer = mapie.SplitConformalClassifier(
        Given(4), confidence_level=coverage, conformity_score="lac", prefit=True
    )
    peer.conformalize(p.probs[:700], p.labels[:700])
    sets = peer.predict_set(p.probs[700:])[1][:, :, 0]
    result = calviz.prediction_sets(p, coverage=coverage, fit_split="fit")
    assert result.overall.size == pytest.approx(sets.sum(axis=1).mean())
    assert result.overall.covered == sets[np.arange(500), p.labels[700:]].sum()
    for k, of in enumerate(result.classes):
        rows = p.labels[700:] == k
        assert (of.rows, of.covered) == (rows.sum(), sets[rows, k].sum())
    assert result.sizes.tolist() == np.bincount(sets.sum(axis=1), minlength=5).tolist()


def test_the_threshold_by_hand():
    # Of 19 conformity scores 0.05 ... 0.95 the ceil(20 * 0.8) = 16th smallest; for 98 % nineteen rows are too few.
    probs = np.linspace(0.95, 0.05, 19)
    p = calviz.Predictions(
        probs=np.stack([probs, 1 - probs], axis=1).repeat(2, axis=0),
        labels=np.zeros(38, int),
        splits=["fit", "judge"] * 19,
    )
    sets = calviz.prediction_sets(p, coverage=0.8, fit_split="fit")
    assert sets.threshold == pytest.approx(0.8)
    assert sets.overall.covered == 16
    alone = calviz.prediction_sets(p, coverage=0.98, fit_split="fit")
    assert alone.threshold == np.inf
    assert alone.overall.size == 2


def test_aps_row_by_row():
    p = data(900)
    sets = calviz.prediction_sets(p, method="aps", coverage=0.85, fit_split="fit", seed=3)
    rng = np.random.default_rng(3)

    def strange(row, u, c):
        order = sorted(range(4), key=lambda j: -row[j])
        before = order[: order.index(c)]
        return sum(row[j] for j in before) + (1 - u) * row[c]

    us = rng.random(700)
    scores = sorted(strange(p.probs[i], us[i], p.labels[i]) for i in range(700))
    assert sets.threshold == pytest.approx(scores[int(np.ceil(701 * 0.85)) - 1])
    us, sizes = rng.random(200), []
    for i, u in zip(range(700, 900), us, strict=True):
        inside = [strange(p.probs[i], u, c) <= sets.threshold + 1e-12 for c in range(4)]
        sizes.append(max(sum(inside), 1))
    assert sets.overall.size == pytest.approx(np.mean(sizes))


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_coverage_is_what_was_asked_for(method):
    covered = 0
    for seed in range(12):
        p = data(1_100, seed=seed)
        covered += calviz.prediction_sets(
            p, method=method, coverage=0.8, fit_split="fit"
        ).overall.covered
    # APS may be above: empty sets get a class.
    expected = stats.binomtest(covered, 12 * 400, 0.8).proportion_estimate
    assert 0.78 <= expected <= 0.84


def test_what_cannot_be_had():
    top = calviz.ConfidencePredictions(confidence=np.array([0.6]), correct=np.array([True]))
    with pytest.raises(NotAvailable, match="a set needs the probabilities of all classes"):
        calviz.prediction_sets(top)
    for wrong in (0, 1, 1.5, True):
        with pytest.raises(OptionError, match="'coverage' must lie between 0 and 1"):
            calviz.prediction_sets(data(800), coverage=wrong)
    with pytest.raises(OptionError, match="need separate rows for their threshold"):
        calviz.prediction_sets(data(800), cross_fit=5)


def test_the_command_line(tmp_path):
    p = data(800)
    np.savez(tmp_path / "p.npz", probs=p.probs, labels=p.labels)
    asked = ["sets", str(tmp_path / "p.npz"), "--fit-fraction", "0.5", "--coverage", "0.8"]
    shown = run(*asked)
    assert shown.exit_code == 0, shown.stderr
    assert "The sets hold the true class of" in shown.stdout
    record = json.loads(run(*asked, "--json", "-").stdout)
    assert record["calviz"] == calviz.__version__
    assert record["overall"]["rows"] == 400
    assert sum(record["sizes"]) == 400


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_equal_weights_and_rows_of_weight_zero_change_nothing(method):
    p = data()
    plain = calviz.prediction_sets(p, method=method, fit_split="fit")
    weights = np.full(1_200, 2.0)
    weights[[3, 900]] = 0
    counts = p.take(np.flatnonzero(weights))
    with_zeros = calviz.prediction_sets(
        with_rows(p, weights=weights), method=method, fit_split="fit"
    )
    without = calviz.prediction_sets(counts, method=method, fit_split="fit")
    assert with_zeros.threshold == without.threshold
    assert with_zeros.overall == without.overall
    assert plain.overall.coverage == plain.overall.covered / plain.overall.rows


def test_weights_by_hand():
    # Scores 1 - p of the true class: 0.1, 0.2, ..., 1; the last three rows are judged.
    p = np.r_[np.arange(9, -1, -1) / 10, 0.95, 0.45, 0.05]
    d = calviz.Predictions(
        probs=np.stack([p, 1 - p], axis=1),
        labels=np.zeros(13, dtype=int),
        splits=["fit"] * 10 + ["judge"] * 3,
        weights=np.r_[5, np.ones(9), 4, 4, 1],
    )
    # The fit weighs 14 and one more row of mean weight 1.4: 0.8 of 15.4 is 12.3, which 0.9 reaches, with 13.
    s = calviz.prediction_sets(d, coverage=0.8, fit_split="fit")
    assert s.threshold == pytest.approx(0.9)
    # Sets {0}, {0, 1} and {1}, of weights 4, 4 and 1.
    assert s.overall.covered == 2
    assert s.overall.coverage == pytest.approx(8 / 9)
    assert s.overall.size == pytest.approx(13 / 9)


def test_intervals_of_clustered_rows_are_wider():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 200)[np.repeat(np.arange(200), 10)]
    labels = np.array([rng.choice(4, p=row) for row in probs[::10]])[np.repeat(np.arange(200), 10)]
    splits = ["fit"] * 1_000 + ["judge"] * 1_000
    d = calviz.Predictions(probs=probs, labels=labels, splits=splits)
    alone = calviz.prediction_sets(d, fit_split="fit").overall
    grouped = with_rows(d, clusters=np.repeat(np.arange(200), 10))
    together = calviz.prediction_sets(grouped, fit_split="fit").overall
    assert (together.coverage, together.size) == (alone.coverage, alone.size)
    for name in ("coverage_interval", "size_interval"):
        ends, wide = getattr(alone, name), getattr(together, name)
        # Ten equal rows are worth one.
        assert (wide.high - wide.low) / (ends.high - ends.low) == pytest.approx(10**0.5, rel=0.1)
    few = with_rows(d, clusters=np.repeat(np.arange(4), 500))
    assert calviz.prediction_sets(few, fit_split="fit").overall.coverage_interval == (0, 1)


def test_clusters_of_independent_rows_hardly_change_the_intervals_whatever_their_sizes():
    rows = data(2_000)
    rng = np.random.default_rng(4)
    sizes = rng.geometric(0.1, 400)
    clusters = np.repeat(np.arange(400), sizes)[: rows.n]
    plain = calviz.prediction_sets(rows, fit_split="fit", eval_split="judge").overall
    clustered = calviz.prediction_sets(
        with_rows(rows, clusters=clusters), fit_split="fit", eval_split="judge"
    ).overall
    for name in ("coverage_interval", "size_interval"):
        low, high = getattr(plain, name)
        wide = getattr(clustered, name)
        assert wide.high - wide.low < 1.5 * (high - low)


def test_the_scale_of_the_weights_does_not_matter():
    p, weights = data(), np.random.default_rng(0).uniform(0.5, 1.5, 1_200)
    plain, large = (
        calviz.prediction_sets(with_rows(p, weights=w), fit_split="fit")
        for w in (weights, weights * 1e306)
    )
    assert large.threshold == plain.threshold
    assert large.overall.coverage == pytest.approx(plain.overall.coverage)


def test_where_all_rows_are_covered_each_cluster_counts_as_one_row():
    rng = np.random.default_rng(0)
    n = 400
    labels = rng.integers(2, size=n)
    sure = np.where(labels == 1, 0.9, 0.1)
    d = calviz.Predictions(
        probs=sure,
        labels=labels,
        splits=["fit"] * 200 + ["judge"] * 200,
        clusters=np.repeat(np.arange(40), 10),
    )
    sets = calviz.prediction_sets(d, fit_split="fit", eval_split="judge").overall
    assert sets.coverage == 1
    # 20 clusters, of which all are covered with probability p**20.
    assert sets.coverage_interval == pytest.approx((0.025 ** (1 / 20), 1))


def test_a_threshold_for_each_class_by_hand():
    # Of class 0 nine rows with scores 0.1 ... 0.9 are fitted: for 80 % the 8th. Of class 1 three rows, where 4 are needed.
    p = np.r_[np.arange(9, 0, -1) / 10, [0.6, 0.7, 0.8], [0.15, 0.25, 0.9, 0.4]]
    labels = np.r_[np.zeros(9), np.ones(3), [0, 0, 0, 1]].astype(int)
    probs = np.where(
        (labels == 0)[:, None], np.stack([p, 1 - p], axis=1), np.stack([1 - p, p], axis=1)
    )
    d = calviz.Predictions(
        probs=probs, labels=labels, splits=["fit"] * 12 + ["judge"] * 4, class_names=["a", "b"]
    )
    s = calviz.prediction_sets(d, coverage=0.8, fit_split="fit", per_class=True)
    assert s.thresholds == pytest.approx((0.8, np.inf))
    assert s.too_few == {"b": 3}
    # Class a is in the set where its probability is 0.2 or more: not in the first row; b is in every set.
    assert [c.covered for c in s.classes] == [2, 1]
    assert s.overall.size == pytest.approx((1 + 2 + 2 + 2) / 4)
    assert (
        "Every set holds 'b': a threshold for 80.0 % takes 4 rows of a class, and here are 3 at most."
        in s.reading()
    )
    one = calviz.prediction_sets(d, coverage=0.8, fit_split="fit")
    assert (one.beside.size, one.beside.covered) == (s.overall.size, s.overall.covered)
    assert (s.beside.size, s.beside.covered) == (one.overall.size, one.overall.covered)


def test_a_class_is_compared_with_the_others_on_the_same_rows():
    every_simulation()
    name = "set-coverage-by-class: said of a class that the model knows less well, 5 classes, 1,000 rows"
    assert np.mean(SIMULATIONS[name].outcomes(30, seed=5)) >= too_few(0.95, 30)
    for case in ("LAC, 2 classes, 400 rows", "LAC, 5 classes, 2,000 weighted rows"):
        alike = SIMULATIONS[f"set-coverage-by-class: said of classes that are alike, {case}"]
        assert np.mean(alike.outcomes(40, seed=5)) <= too_many(0.05, 40)


def test_what_is_said_of_a_class_that_is_held_less():
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=2_000)
    z = rng.normal(size=(2_000, 3))
    z[np.arange(2_000), labels] += np.where(labels == 0, 0.3, 2.0)
    d = calviz.Predictions(
        probs=np.exp(z) / np.exp(z).sum(axis=1, keepdims=True),
        labels=labels,
        splits=["a", "b"] * 1_000,
    )
    s = calviz.prediction_sets(d, fit_split="a", eval_split="b")
    one = s.least
    rows, held = one.rows, one.covered
    rest = s.overall.rows - rows, s.overall.covered - held
    fisher = stats.fisher_exact(
        [[held, rows - held], [rest[1], rest[0] - rest[1]]], alternative="less"
    )
    binomial = stats.binomtest(held, rows, 0.9, alternative="less")
    assert one.p_value == pytest.approx(3 * max(fisher.pvalue, binomial.pvalue))
    ends = stats.binomtest(held, rows).proportion_ci(1 - 0.05 / 3)
    assert one.together == pytest.approx((ends.low, ends.high))
    assert f"of '0' they hold {100 * held / rows:.1f}" in s.reading()
    assert f"(Mondrian) they would have {s.beside.size:.2f} classes on average" in s.reading()

"""`Calibrated`, learning curves, and prediction sets."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from calviz.comparison.compare import compare
from calviz.comparison.comparison_results import Difference, RowsUsed
from calviz.comparison.learning_curves import (
    FURTHEST,
    LearningCurve,
    LearningPoint,
    _points,
    learning_curve,
)
from calviz.core.entry_specs import Interval, MetricResult
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.predictions import Predictions, with_rows
from tests.inputs.command_line import run
from tests.inputs.simulated import draw_labels, simulate, softmax

# ---- A classifier with a recalibrator behind it, and scorers, against scikit-learn's own


X, Y = make_classification(900, 12, n_informative=5, n_classes=3, random_state=0)
NAMES = np.array(["c", "a", "b"])[Y]


def test_a_frozen_classifier_is_calibrated_as_by_scikit_learn():
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], NAMES[:300]))
    own = calviz.Calibrated(frozen, method="temperature").fit(X[300:600], NAMES[300:600])
    peer = CalibratedClassifierCV(frozen, method="temperature").fit(X[300:600], NAMES[300:600])
    np.testing.assert_allclose(own.predict_proba(X[600:]), peer.predict_proba(X[600:]), atol=2e-3)
    assert own.classes_.tolist() == ["a", "b", "c"]
    assert (own.predict(X[600:]) == frozen.predict(X[600:])).all()  # it keeps the classes
    assert own.n_features_in_ == 12


@pytest.mark.parametrize("method", ["temperature", "beta", "vector"])
def test_a_weight_is_the_row_so_often(method):
    frozen = FrozenEstimator(GaussianNB().fit(X[:300], NAMES[:300]))
    rows, counts = np.arange(300, 600), np.random.default_rng(0).integers(1, 4, 300)
    own = calviz.Calibrated(frozen, method=method)
    weighted = own.fit(X[rows], NAMES[rows], sample_weight=counts).predict_proba(X[600:])
    many = np.repeat(rows, counts)
    copied = own.fit(X[many], NAMES[many]).predict_proba(X[600:])
    np.testing.assert_allclose(weighted, copied, atol=2e-4)
    assert np.abs(weighted - own.fit(X[rows], NAMES[rows]).predict_proba(X[600:])).max() > 1e-3


def test_weights_go_to_the_classifier_too_if_it_takes_them():
    weights = np.random.default_rng(0).integers(1, 4, 600)
    own = calviz.Calibrated(GaussianNB(), method="temperature").fit(X[:600], Y[:600], weights)
    alone = GaussianNB().fit(X[:600], Y[:600], weights)
    np.testing.assert_array_equal(own.estimator_.predict_proba(X), alone.predict_proba(X))
    taking_none = calviz.Calibrated(KNeighborsClassifier(), method="temperature")
    weighted = taking_none.fit(X[:600], Y[:600], weights).recalibrator_.temperature_
    assert weighted != taking_none.fit(X[:600], Y[:600]).recalibrator_.temperature_


def test_logits_are_asked_for_by_name():
    svc = LinearSVC().fit(X[:300], NAMES[:300])
    with pytest.raises(InputError, match='by response_method="decision_function"'):
        calviz.Calibrated(FrozenEstimator(svc), method="temperature").fit(
            X[300:600], NAMES[300:600]
        )
    given = {"method": "temperature", "response_method": "decision_function"}
    model = calviz.Calibrated(FrozenEstimator(svc), **given).fit(X[300:600], NAMES[300:600])
    scores = svc.decision_function(X[600:]) / model.recalibrator_.temperature_
    expected = softmax(scores)
    np.testing.assert_allclose(model.predict_proba(X[600:]), expected, rtol=1e-6)


@pytest.mark.slow
def test_scikit_learns_own_checks():
    result = check_estimator(
        calviz.Calibrated(GaussianNB(), method="temperature", cv=2),
        on_fail=None,
        on_skip=None,
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": "copies of a row are in other folds, and 'cv' is a number"
        },
    )
    failed = {r["check_name"]: r["exception"] for r in result if r["status"] == "failed"}
    assert not failed
    assert len(result) > 40


@pytest.mark.parametrize(
    ("rows", "given", "error", "message"),
    [
        (slice(0, 0), {}, InputError, "there are no rows"),
        (Y == 0, {}, InputError, "all .* rows have one class, 'c'"),
        (np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:1]], {}, InputError, "the class 'a' has one row"),
        (slice(None), {"method": "magic"}, OptionError, "there is no recalibrator 'magic'"),
        (slice(None), {"cv": 1}, OptionError, "'cv' must be a whole number, 2 or more"),
        (slice(None), {"response_method": "predict"}, OptionError, "'response_method' must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_said(rows, given, error, message):
    with pytest.raises(error, match=message):
        calviz.Calibrated(GaussianNB(), **{"method": "temperature"} | given).fit(
            X[rows], NAMES[rows]
        )


def test_labels_that_the_classifier_does_not_know():
    clf = GaussianNB().fit(X[Y > 0], NAMES[Y > 0])
    with pytest.raises(
        InputError, match=r"label 'c' is none of the classes that .* knows \('a', 'b'\)"
    ):
        calviz.Calibrated(FrozenEstimator(clf), method="temperature").fit(X, NAMES)


@pytest.mark.parametrize(
    ("metric", "own"), [("nll", "neg_log_loss"), ("brier", "neg_brier_score"), ("accuracy", "accuracy")]
)  # fmt: skip
def test_scores_are_those_of_scikit_learn(metric, own):
    clf = LogisticRegression()
    peer = get_scorer(own)
    result = cross_val_score(clf, X, NAMES, scoring=calviz.scorer(metric), cv=3)
    np.testing.assert_allclose(
        result, cross_val_score(clf, X, NAMES, scoring=peer, cv=3), rtol=1e-9
    )


def test_a_signed_error_is_best_at_zero_and_a_search_takes_the_scorer():
    clf = LogisticRegression().fit(X, NAMES)
    p = calviz.Predictions.from_estimator(clf, X, NAMES)
    mcs = calviz.evaluate(p, ["mcs"])["mcs"].value
    assert calviz.scorer("mcs")(clf, X, NAMES) == -abs(mcs)
    top = calviz.scorer("ece", reduction="class:a", bins=5)
    assert (
        top(clf, X, NAMES) == -calviz.evaluate(p, ["ece"], reduction="class:a", bins=5)["ece"].value
    )
    assert repr(top) == "calviz.scorer('ece', reduction='class:a', bins=5)"
    search = GridSearchCV(clf, {"C": [1e-6, 1.0]}, scoring=calviz.scorer("nll"), cv=2).fit(X, NAMES)
    assert search.best_params_ == {"C": 1.0}
    with pytest.raises(OptionError, match="'magic'"):
        calviz.scorer("magic")


def test_recalibrators_are_public_and_stand_for_a_model():
    scaling = calviz.recalibrators.TemperatureScaling()
    probs = GaussianNB().fit(X, Y).predict_proba(X)
    scaling.fit(probs, Y)
    np.testing.assert_array_equal(scaling.predict_proba(probs), scaling.transform(probs))
    assert (
        "IsotonicRegression" in str(dir(calviz.recalibrators))
        or len(dir(calviz.recalibrators)) > 20
    )
    with pytest.raises(AttributeError, match="there is no recalibrator 'Magic'"):
        _ = calviz.recalibrators.Magic


# ---- Learning curves: what methods reach with so many rows to fit on


@pytest.mark.usefixtures("few_candidates")
def test_learning_curve(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature", "isotonic"],
        sizes=[50, 400],
        repeats=3,
        metrics=["nll", "accuracy"],
        progress=lambda i, n: seen.append((i, n)),
    )
    frame = curve.frame()
    assert len(frame) == 3 * 2 * 2
    assert seen[-1] == (12, 12)  # of all rows there is one draw
    assert frame[frame["rows"] == 400]["repeats"].tolist() == [1] * 6
    nll = frame[frame["metric"] == "nll"].set_index(["method", "rows"])["mean"]
    # One parameter learns from few rows, four step functions need many.
    assert nll["temperature", 50] < nll["isotonic", 50]
    assert nll["isotonic", 400] < nll["isotonic", 50]
    (few,) = (p for p in curve.of("temperature", "nll") if p.rows == 50)
    assert few.low < few.mean < few.high  # every draw is another one
    at_all = frame[(frame["rows"] == 400) & (frame["method"] == "temperature")]
    np.testing.assert_allclose(at_all["low"], at_all["high"])
    assert (curve.fit.split, curve.evaluation.split) == ("calibration", "test")
    wanted = calviz.evaluate(data, ["nll", "accuracy"], split="test")
    for metric in ("nll", "accuracy"):
        before = curve.uncalibrated[metric]
        assert before.value == wanted[metric].value
        assert before.interval.low < before.value < before.interval.high
        assert {p.mean for p in curve.of("identity", metric)} == {before.value}
    assert curve.uncalibrated["nll"].noise_floor is not None
    # With all rows the fit is that of a comparison on the same splits.
    alone = compare(data, ["temperature"], metrics=["nll"])["temperature"].metrics["nll"].value
    assert nll["temperature", 400] == pytest.approx(alone)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    ("metric", "before", "gain"),
    [("nll", 0.7, 0.2), ("accuracy", 0.4, 0.1), ("mcs", -0.6, 0.1), ("auroc", 0.5, 0.0)],
)
def test_a_band_holds_the_middle_90_percent_of_the_draws(metric, before, gain):
    key = "ets", 50, metric
    end = Interval(-0.3, -0.1) if metric == "nll" else Interval(0.1 - 0.2, 0.1 + 0.2)
    difference = Difference(-0.2 if metric == "nll" else 0.1, end, "better")
    (point,) = _points(
        {key: [i / 100 for i in range(101)]},
        {key: difference},
        {metric: MetricResult(metric, before)},
    )
    assert (point.mean, point.low, point.high) == pytest.approx((0.5, 0.05, 0.95))
    assert point.repeats == 101
    assert point.verdict == "better"
    assert point.gain == pytest.approx(gain)
    assert point.spread == pytest.approx(np.std(np.arange(101) / 100, ddof=1))
    # Half of a 95 % interval is 1.96 standard errors.
    assert point.noise == pytest.approx({"nll": 0.1}.get(metric, 0.2) / 1.96, rel=1e-3)


@pytest.mark.usefixtures("few_candidates")
def test_a_learning_curve_keeps_what_is_finished(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature"],
        sizes=[50, 100],
        repeats=2,
        progress=lambda *message: seen.append(message),
        stop=lambda: len(seen) == 4,
    )
    assert {(p.method, p.rows, p.repeats) for p in curve.points} == {
        ("identity", 50, 2),
        ("temperature", 50, 2),
    }


@pytest.mark.usefixtures("few_candidates")
def test_a_learning_curve_survives_what_cannot_be_fitted():
    z, y = simulate(400, 3, 2.0)
    y[:] = 0
    y[300:] = np.arange(100) % 3
    data = Predictions(
        probs=softmax(z), labels=y, splits=np.repeat(["calibration", "test"], [300, 100])
    )
    curve = learning_curve(data, ["temperature"], sizes=[20], repeats=2, metrics=["nll"])
    assert "nothing to fit" in curve.failures["temperature"]
    assert {p.method for p in curve.points} == {"identity"}
    with pytest.raises(OptionError, match="'sizes' must be"):
        learning_curve(data, ["temperature"], sizes=[5])


# ---- Prediction sets against MAPIE, by hand, and by simulation


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


@pytest.mark.slow
def test_a_class_is_compared_with_the_others_on_the_same_rows():
    every_simulation()
    name = "set-coverage-by-class: said of a class that the model knows less well, 5 classes, 1,000 rows"
    assert SIMULATIONS[name].keeps_to(30, seed=5, at_least=too_few(0.95, 30))
    for case in ("LAC, 2 classes, 400 rows", "LAC, 5 classes, 2,000 weighted rows"):
        alike = SIMULATIONS[f"set-coverage-by-class: said of classes that are alike, {case}"]
        assert alike.keeps_to(40, seed=5, at_most=too_many(0.05, 40))


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


# ---- How many labels are needed, on curves drawn by hand


SIZES = (10, 20, 40, 80)


def curve(before, direction="lower", draws=(5, 5, 5, 1), noise=0.0, **methods):
    """One metric; of each method (gain, standard deviation) at each of the sizes."""
    points = [
        LearningPoint(
            method,
            rows,
            "m",
            before - gain,
            before - gain,
            before - gain,
            repeats,
            None,
            gain,
            spread,
            noise,
        )
        for method, values in methods.items()
        for rows, repeats, (gain, spread) in zip(SIZES, draws, values, strict=True)
    ]
    return LearningCurve(
        name="by hand",
        points=tuple(points),
        failures={},
        fit=RowsUsed("calibration", 100, ""),
        evaluation=RowsUsed("test", 100, ""),
        reduction="top-label",
        seed=0,
        uncalibrated={"m": MetricResult("m", before)},
        directions={"m": direction},
        labels={},
    )


def test_the_tolerance_limit_is_that_of_drawn_gains():
    # Gains of normal draws that share the fraction f of a pool: a common part of variance f and own ones of 1 - f.
    rng = np.random.default_rng(0)
    k, size, pool, error, missed = 8, 40, 100, 0.05, 0
    f, runs = size / pool, 3_000
    for _ in range(runs):
        gains = 3 + np.sqrt(f) * rng.normal() + np.sqrt(1 - f) * rng.normal(size=k)
        point = LearningPoint(
            "a", size, "m", 0, 0, 0, k, None, gains.mean(), gains.std(ddof=1), 0.0
        )
        missed += point.least_gain(pool, error) > 3 - FURTHEST
    assert missed / runs == pytest.approx(error, abs=3.5 * np.sqrt(error / runs))


def test_better_is_what_nearly_all_draws_are_at_every_larger_number():
    # 20 spoils 10, which is better as well.
    values = [(0.08, 0.01), (0.02, 0.01), (0.08, 0.01), (0.08, math.nan)]
    result = curve(0.1, a=values).needed("a", "m")
    assert result.better_from == 40
    assert result.largest == 80
    # Noise of the evaluation rows is added; unknown noise tells nothing.
    assert curve(0.1, noise=0.04, a=values).needed("a", "m").better_from is None
    assert curve(0.1, noise=math.nan, a=values).needed("a", "m").better_from is None
    # Two methods share the error.
    assert curve(0.1, a=values, b=values).needed("a", "m").better_from is None
    # A fit that failed does not count as better.
    fewer = [
        replace(p, repeats=4) if (p.method, p.rows) == ("a", 40) else p
        for p in curve(0.1, a=values, identity=values).points
    ]
    assert replace(curve(0.1, a=values), points=tuple(fewer)).needed("a", "m").better_from is None
    assert replace(curve(0.1, a=values), clustered=True).needed("a", "m").better_from is None


def test_it_settles_where_most_of_the_gain_is_reached():
    values = [(0.02, 0.1), (0.05, 0.1), (0.053, 0.1), (0.06, math.nan)]
    result = curve(0.1, a=values).needed("a", "m")
    assert result.gain == pytest.approx(0.06)
    # 90 % of the gain is 0.054.
    assert result.settled_from == 80
    assert curve(0.1, a=values).needed("a", "m", within=0.2).settled_from == 20


def test_one_draw_says_nothing_by_itself():
    values = [(0.01, 0.05)] * 3 + [(0.06, math.nan)]
    assert curve(0.1, a=values).needed("a", "m").better_from is None
    # All rows must not contradict.
    values = [(0.08, 0.01)] * 3 + [(-0.01, math.nan)]
    assert curve(0.1, a=values).needed("a", "m").better_from is None
    several = [(0.01, 0.05)] * 3 + [(0.06, 0.001)]
    assert curve(0.1, draws=(5, 5, 5, 5), a=several).needed("a", "m").better_from == 80


def test_no_gain_never_settles():
    result = curve(0.1, a=[(-0.1, 0.0)] * 4).needed("a", "m")
    assert result.gain == pytest.approx(-0.1)
    assert result.settled_from is None


def test_what_only_describes_has_no_answer():
    assert curve(0.1, "none", a=[(-0.1, 0.0)] * 4).needed("a", "m") is None
    assert curve(float("nan"), a=[(-0.1, 0.0)] * 4).needed("a", "m") is None
    assert curve(0.1, a=[(-0.1, 0.0)] * 4).needed("b", "m") is None
    with pytest.raises(OptionError, match="'n' is not in this learning curve"):
        curve(0.1, a=[(-0.1, 0.0)] * 4).needed("a", "n")


def test_the_best_at_each_number_of_rows():
    a, b, identity = (
        [(0.25 - v, 0.0) for v in values]
        for values in ((0.1, 0.3, 0.3, 0.3), (0.2, 0.2, 0.4, 0.1), (0.25,) * 4)
    )
    result = curve(0.25, identity=identity, a=a, b=b)
    assert result.best("m") == ((10, "a"), (20, "b"), (40, "identity"), (80, "b"))
    assert result.methods == ("a", "b")

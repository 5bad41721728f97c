"""A classifier with a recalibrator behind it, and scorers, against scikit-learn's own."""

import numpy as np
import pytest
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
from calviz.core.errors import InputError, OptionError
from tests.inputs.simulated import softmax

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

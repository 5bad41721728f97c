"""Predictions of arrays with labels of any kind, of estimators and of frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calviz
from calviz.core.errors import CalvizError, InputError, OptionError

P = calviz.Predictions
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
TWO = [[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]]
ONE = [0.3, 0.8, 0.6]


@pytest.mark.parametrize(
    ("y", "scores", "given", "labels", "names"),
    [
        ([0, 1, 2], THREE, {}, [0, 1, 2], ("0", "1", "2")),
        ([0, 0, 2], THREE, {}, [0, 0, 2], ("0", "1", "2")),
        ([1, 2, 3], THREE, {}, [0, 1, 2], ("1", "2", "3")),
        ([1.0, 2.0, 3.0], THREE, {}, [0, 1, 2], ("1", "2", "3")),
        (["dog", "cat", "fox"], THREE, {}, [1, 0, 2], ("cat", "dog", "fox")),
        (["dog", "cat", "cat"], THREE, {"class_names": ["fox", "dog", "cat"]}, [1, 2, 2], ("fox", "dog", "cat")),
        ([0, 2, 1], THREE, {"class_names": ["x", "y", "z"]}, [0, 2, 1], ("x", "y", "z")),
        (pd.Series(["lo", "hi", "lo"], dtype=pd.CategoricalDtype(["lo", "mid", "hi"])), THREE, {}, [1, 0, 1], ("hi", "lo", "mid")),
        ([True, False, True], ONE, {}, [1, 0, 1], ("False", "True")),
        ([-1, 1, 1], ONE, {}, [0, 1, 1], ("-1", "1")),
        (["No", "Yes", "No"], ONE, {}, [0, 1, 0], ("No", "Yes")),
        (["a", "b", "b"], ONE, {"pos_label": "a"}, [1, 0, 0], ("b", "a")),
        ([1, 2, 2], ONE, {"pos_label": 2}, [0, 1, 1], ("1", "2")),
        (["a", "b", "b"], TWO, {}, [0, 1, 1], ("a", "b")),
        (np.array([[0], [1], [1]]), TWO, {}, [0, 1, 1], ("0", "1")),
        (["a", "b", "b"], pd.DataFrame(TWO, columns=["p_b", "p_a"]), {}, [1, 0, 0], ("b", "a")),
    ],
)  # fmt: skip
def test_labels_of_any_kind(y, scores, given, labels, names):
    p = P.from_arrays(y, scores, **given)
    assert p.labels.tolist() == labels
    assert p.class_names == names


def test_the_positive_class_is_the_second_column():
    p = P.from_arrays(["a", "b", "b"], TWO, pos_label="a")
    assert p.class_names == ("b", "a")
    np.testing.assert_array_equal(p.probs, np.array(TWO)[:, ::-1])
    assert p.labels.tolist() == [1, 0, 0]
    one = P.from_arrays([1, 0, 1], [2.0, -1.0, 0.5], kind="logits")
    np.testing.assert_allclose(one.probs[:, 1], 1 / (1 + np.exp(-np.array([2.0, -1.0, 0.5]))))


@pytest.mark.parametrize(
    ("y", "scores", "given", "message"),
    [
        ([0, 1], THREE, {}, "3 rows of probabilities but 2 labels"),
        ([0, 1, 7], TWO, {}, "3 different labels (0, 1, 7) but 2 columns"),
        (["a", "b", "b"], THREE, {}, "2 different labels ('a', 'b') but 3 columns"),
        (["a", "b", "wolf"], THREE, {"class_names": "abc"}, "class_names is one text"),
        (["a", "b", "wolf"], THREE, {"class_names": ["a", "b", "c"]}, "row 3: label 'wolf' is none of the classes"),
        (["a", "b", "b"], ONE, {}, "nothing says which of them the probability refers to; say so by pos_label"),
        (["a", "b", "c"], ONE, {}, "one column of scores, which is for two classes"),
        (["a", "b", "b"], TWO, {"pos_label": "z"}, "pos_label='z' is none of the labels"),
        (["a", None, "b"], TWO, {}, "row 2: 1 of 3 labels is missing"),
        ([0, np.nan, 1], TWO, {}, "row 2: 1 of 3 labels is missing"),
        ([0, [1], 1], TWO, {}, "cannot be labels"),
        (0, TWO, {}, "the labels have shape ()"),
        ([0, 1, 1], [["x", "y"]] * 3, {}, "expected numbers"),
        ([0, 1, 1], [[0.5, 0.5], [1.0]], {}, "rows of different lengths"),
        ([0, 1, 1], None, {}, "no probabilities were given"),
        ([0, 1, 1], object(), {}, "hold values other than numbers"),
        ([0, 1, 1], [[7, 2]] * 3, {}, "outside [0, 1]"),
        ([0, 1, 1], TWO, {"kind": "odds"}, "'kind' must be one of"),
    ],
)  # fmt: skip
def test_a_wrong_argument_gets_one_sentence(y, scores, given, message):
    with pytest.raises(CalvizError) as caught:
        P.from_arrays(y, scores, **given)
    text = str(caught.value)
    assert message in text
    assert text.endswith(".")
    assert "\n" not in text


def test_estimators_and_pipelines():
    X, y = load_iris(return_X_y=True)
    names = np.array(["c", "a", "b"])[y]
    clf = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, names)
    p = P.from_estimator(clf, X, names)
    assert (p.name, p.class_names) == ("LogisticRegression", ("a", "b", "c"))
    np.testing.assert_array_equal(p.probs, clf.predict_proba(X))
    assert (np.array(p.class_names)[p.labels] == names).all()
    # A fold without a class still knows it.
    assert P.from_estimator(clf, X[:50], names[:50]).n_classes == 3
    two = y < 2
    svc = LinearSVC().fit(X[two], y[two])
    with pytest.raises(
        InputError, match=r'LinearSVC has no predict_proba; .*response_method="decision_function"'
    ):
        P.from_estimator(svc, X, y)
    logits = P.from_estimator(svc, X[two], y[two], response_method="decision_function")
    assert logits.kind == "logits"
    np.testing.assert_allclose(
        np.diff(logits.logits)[:, 0], svc.decision_function(X[two]), rtol=1e-12
    )


def test_an_estimator_that_cannot_be_asked_is_said():
    X, y = load_iris(return_X_y=True)
    clf = LogisticRegression(max_iter=1_000)
    for estimator, given, labels, text in (
        (clf, X, y, "is not fitted"),
        (LogisticRegression, X, y, "got the class LogisticRegression"),
        (StandardScaler().fit(X), X, y, "StandardScaler has no predict_proba"),
        (clone_fitted(clf, X, y), X[:, :2], y, "X has 2 features"),
        (clone_fitted(clf, X, y), X, y + 1, "row 101: label 3 is none of the classes"),
    ):
        with pytest.raises(InputError) as caught:
            P.from_estimator(estimator, given, labels)
        assert text in str(caught.value)


def clone_fitted(clf, X, y):
    return LogisticRegression(**clf.get_params()).fit(X, y)


FRAME = {"y": ["cat", "dog", "dog"], "p_cat": [0.9, 0.2, 0.4], "p_dog": [0.1, 0.8, 0.6], "site": ["a", "b", "a"]}  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, lambda f: pd.DataFrame(f).astype({"y": "category"})],
    ids=["pandas", "polars", "lazy", "pyarrow", "categories"],
)  # fmt: skip
def test_frames_of_any_library(make):
    for p in (
        P.from_frame(make(FRAME)),
        P.from_frame(make(FRAME), label="y", scores=["p_cat", "p_dog"]),
    ):
        assert p.class_names == ("cat", "dog")
        assert p.labels.tolist() == [0, 1, 1]
        assert p.probs[:, 1].tolist() == [0.1, 0.8, 0.6]
        assert p.groups["site"].values().tolist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("frame", "given", "error", "message"),
    [
        (pd.DataFrame(FRAME), {"label": "z"}, OptionError, "the label 'z' is not in"),
        (pd.DataFrame(FRAME), {"scores": ["p_bird"]}, OptionError, "the score column 'p_bird' is not in"),
        (pd.DataFrame(FRAME), {"lable": "y"}, OptionError, "there is no reading option 'lable'"),
        (pd.DataFrame(FRAME).head(0), {}, InputError, "the frame has no rows"),
        (pd.DataFrame([[0.1, 0.9, 1]], columns=["a", "a", "label"]), {}, InputError, "two columns called 'a'"),
        (pd.DataFrame({"label": ["a", 3], "p_a": [0.1, 0.9], "p_b": [0.9, 0.1]}), {}, InputError, "cannot be read"),
        ([1, 2], {}, InputError, "got list, expected a data frame"),
    ],
)  # fmt: skip
def test_a_wrong_frame_gets_one_sentence(frame, given, error, message):
    with pytest.raises(error) as caught:
        P.from_frame(frame, **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_prediction_is_told_so():
    for wrong in (
        lambda: calviz.evaluate(np.eye(3)),
        lambda: calviz.verdict(np.eye(3)),
        lambda: calviz.compare(np.eye(3)),
        lambda: calviz.recalibrate(np.eye(3), "platt"),
        lambda: calviz.compare_models([np.eye(3), np.eye(3)]),
        lambda: calviz.figures.Reliability.compute(np.eye(3)),
    ):
        with pytest.raises(
            InputError, match=r"expected Predictions, got ndarray; .*audit\(y_true, y_prob\)"
        ):
            wrong()


def test_rows_may_count_more_and_belong_together():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = rng.random(60) < p
    w, sites = rng.integers(1, 4, 60), np.arange(60) // 5
    data = calviz.Predictions.from_arrays(y, p, sample_weight=w, clusters=sites)
    np.testing.assert_array_equal(data.weights, w)
    brier = calviz.evaluate(data, ["brier"])["brier"]
    assert brier.details["one_column"] == pytest.approx(np.average((p - y) ** 2, weights=w))
    with pytest.raises(InputError, match="weights"):
        calviz.Predictions.from_arrays(y, p, sample_weight=w[:-1])

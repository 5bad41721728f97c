"""Predictions made of tables, arrays and parts."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calviz
from calviz import Predictions
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.core.features import as_values
from calviz.data import ReadingOptions, first_rows, read
from calviz.data.format import Table
from calviz.data.loaded import ReadingForMap
from calviz.data.rows_in_memory import WideRows, arrow_rows, vector
from tests.inputs.command_line import run
from tests.inputs.table_files import CLASSES, EXPECTED, EXPORTS, LABELS, PROBS, block, opened, texts

# ---- Predictions of arrays with labels of any kind, of estimators and of frames


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


def test_rows_that_pandas_names_in_another_order_are_asked_about():
    y, p = pd.Series([0, 1, 1, 0]), pd.Series([*ONE, 0.1])
    for other in (p[::-1], pd.DataFrame({"no": 1 - p, "yes": p})[::-1]):
        with pytest.raises(InputError, match=r"same index in another order; give y_prob\.loc"):
            P.from_arrays(y, other)
    # Names of other rows, as of a column beside what predict_proba returned, say nothing.
    assert P.from_arrays(y.set_axis([7, 3, 9, 4]), p).n == 4
    assert P.from_arrays(y, p[::-1].to_numpy()).probs[0, 1] == 0.1


def test_columns_beside_arrays_are_told_apart():
    times = pd.date_range("2026-01-01", periods=3)
    made = P.from_arrays([0, 1, 1], ONE, times=times, groups={"site": ["a", "b", "a"]})
    np.testing.assert_array_equal(made.times, times)
    for groups in (np.array(["a", "b", "a"]), pd.DataFrame({"site": ["a", "b", "a"]})):
        with pytest.raises(InputError, match="expected a mapping of names to columns"):
            P.from_arrays([0, 1, 1], ONE, groups=groups)


def test_sparse_and_masked_arrays_are_read_as_they_mean():
    sparse = scipy.sparse.csr_array(THREE)
    np.testing.assert_array_equal(P.from_arrays([0, 1, 2], sparse).probs, THREE)
    with pytest.raises(InputError, match="row 2: 'probs' is missing"):
        P.from_arrays([0, 1, 0], np.ma.array(ONE, mask=[False, True, False]))


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


# ---- Predictions and labels in two files


PREDICTIONS = "id,cat,dog\n7,0.9,0.1\n3,0.2,0.8\n5,0.4,0.6\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "preds.csv").write_text(PREDICTIONS)
    return tmp_path


def load(folder, truth, **given):
    (folder / "truth.csv").write_text(truth)
    return calviz.load(folder / "preds.csv", labels=folder / "truth.csv", **given)


def test_rows_are_matched_by_their_identifiers(folder):
    p = load(folder, "id,label,site\n3,dog,x\n5,cat,y\n7,cat,x\n9,dog,y\n", on="id")
    assert p.labels.tolist() == [0, 1, 0]
    assert p.class_names == ("cat", "dog")
    assert p.ids.tolist() == ["7", "3", "5"]
    assert p.groups["site"].values().tolist() == ["x", "x", "y"]
    # Identifiers with a fraction are the same; without a name, one that both files have is taken.
    again = load(folder, "id,truth\n3.0,1\n5.0,0\n7.0,0\n")
    np.testing.assert_array_equal(again.labels, p.labels)


@pytest.mark.parametrize(
    ("truth", "given", "message"),
    [
        ("id,label\n3,dog\n5,cat\n3,cat\n7,cat\n", {}, "1 identifier occurs more than once, first '3' (rows 1 and 3)"),
        ("id,label\nx3,dog\nx5,cat\n", {}, "no value of 'id' occurs in both files (preds.csv: '7', truth.csv: 'x3')"),
        ("id,label\n3,dog\n5,cat\n", {}, "1 of 3 rows have no label"),
        ("key,label\n3,dog\n", {}, "no column that identifies the rows is in both"),
        ("id,label\n3,dog\n", {"on": "key"}, "preds.csv: there is no column 'key' to join on"),
        ("id,a,b\n3,1,2\n", {}, "there is no column called 'label'"),
        ("id,cat\n3,dog\n", {"label": "cat"}, "preds.csv has a column 'cat' too"),
        ("id,label\n3,dog\n5,cat\n7,wolf\n", {}, "'wolf' is none of the classes"),
    ],
)  # fmt: skip
def test_a_join_that_is_not_clear_is_refused_in_one_sentence(folder, truth, given, message):
    with pytest.raises(CalvizError) as caught:
        load(folder, truth, **given)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("truth", "given", "place"),
    [
        ("id,label\n3,dog\n5,cat\n9,dog\n7,wolf\n", {}, "truth.csv, row 4, column 'label': 'wolf' is none of the classes"),
        ("id,label\n3,dog\n5,\n7,cat\n", {}, "truth.csv, row 2, column 'label': 1 of 3 rows have no label;"),
        ("id,label\n3,dog\n7,cat\n", {}, "preds.csv, row 3, line 4: 1 of 3 rows have no label in truth.csv;"),
        ("id,label\n3,dog\n", {"label": "x"}, "truth.csv: there is no column 'x' for the label; there are id, label."),
        ("nr,label\n3,dog\n", {"on": "id"}, "truth.csv: there is no column 'id' to join on; there are nr, label."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_labels_is_said_of_their_file(folder, truth, given, place):
    with pytest.raises(CalvizError) as caught:
        load(folder, truth, **given)
    assert str(caught.value).startswith(place)
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    out = run("audit", folder / "preds.csv", "--labels", folder / "truth.csv", *options)
    assert (out.exit_code, out.stderr[: len(place) + 7]) == (
        2,
        f"calviz: {place}"[: len(place) + 7],
    )


def test_rows_without_a_label_are_left_out_on_request(folder):
    p = load(folder, "id,label\n3,dog\n5,cat\n", repair=["drop-missing"])
    assert p.n == 2


def test_the_command_line_joins(folder):
    (folder / "truth.csv").write_text("id,label\n3,dog\n5,cat\n7,cat\n9,dog\n")
    args = ["audit", str(folder / "preds.csv"), "--labels", str(folder / "truth.csv"), "--on", "id"]
    out = run(*args, "--json", "-")
    # The top choices are cat, dog, dog, and cat, dog, cat is true.
    assert json.loads(out.stdout)["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3)
    text = run(*args).stdout
    assert "with labels of truth.csv by 'id'" in text
    assert "1 of 4 rows of truth.csv have no predictions" in text
    wrong = run(*args[:2], "--on", "id")
    assert wrong.exit_code == 2
    assert "give the other one by --labels" in wrong.stderr


def test_a_row_without_an_identifier_has_no_label(folder):
    (folder / "preds.csv").write_text(PREDICTIONS.replace("\n3,", "\n,"))
    truth = "id,label\n5,cat\n,dog\n7,cat\n"
    with pytest.raises(CalvizError, match=r"row 2, .*1 of 3 rows have no label"):
        load(folder, truth)
    p = load(folder, truth, repair=["drop-missing"])
    assert (p.ids.tolist(), p.labels.tolist()) == (["7", "5"], [0, 0])


# ---- Cells and rows that hold less or more than one value: vectors and percentages as text, tables with a row per class


# ---- Cells


@pytest.mark.parametrize(
    "text",
    [
        "[0.1,0.9]", "[0.1 0.9]", "[ 0.1  0.9 ]", "[0.1,\n 0.9]", "[[0.1 0.9]]", "(0.1, 0.9)", "{0.1,0.9}", "[.1;9e-1]",
        "array([0.1, 0.9], dtype=float32)", "tensor([0.1, 0.9], device='cuda:0')", "DenseVector([0.1, 0.9])",
        "[np.float64(0.1), np.float64(0.9)]", "(2,[0,1],[0.1,0.9])", "SparseVector(2, {0: 0.1, 1: 0.9})",
    ],
)  # fmt: skip
def test_vectors_as_tools_write_them(text):
    assert vector(text) == [0.1, 0.9]


def test_a_sparse_vector_is_zero_where_nothing_is_written():
    assert vector("(3,[1],[1.0])") == [0, 1, 0]
    assert vector("(2,[],[])") == [0, 0]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "0.5", "cat", "[a,b]", "(0.1, 0.9]", "[0.1 ... 0.9]", "(2,[5],[0.5])", "(2,[0,1],[0.5])", "(900000000,[0],[1.0])", '{"a":0.1}'],
)  # fmt: skip
def test_other_text_is_no_vector(text):
    assert vector(text) is None


def test_vectors_of_spark_in_a_csv_file():
    table = opened("spark_vectors.csv")
    assert [(c.name, c.type, c.width) for c in table.columns] == [
        ("label", "number", None), ("probability", "number", 3), ("prediction", "number", None),
    ]  # fmt: skip
    np.testing.assert_array_equal(block(table, "probability"), PROBS)
    assert any(
        "[0.331,0.191,0.478]" in n.message or "(3,[0,1,2]" in n.message for n in table.notices
    )


def test_a_file_of_vectors_is_read_from_end_to_end():
    loaded = read(EXPORTS / "spark_vectors.csv")
    np.testing.assert_array_equal(loaded.first.probs, PROBS)
    assert loaded.first.labels.tolist() == EXPECTED["labels"]


def test_percentages_become_numbers():
    table = opened("percent.csv")
    assert [(c.name, c.type, c.width) for c in table.columns] == [
        ("outcome", "integer", None), ("risk", "number", None),
    ]  # fmt: skip
    np.testing.assert_allclose(block(table, "risk")[:, 0], EXPECTED["scores"], atol=1e-12)
    np.testing.assert_allclose(table["risk"].head, EXPECTED["scores"], atol=1e-12)
    assert [n.message for n in table.notices] == [
        "'risk' is written in percent ('41.5%'): its numbers are divided by 100"
    ]


def test_a_decimal_comma_and_missing_cells_among_percentages():
    table = opened(b"y;p\n1;12,5 %\n0;NA\n1;100%\n")
    np.testing.assert_allclose(block(table, "p")[:, 0], [0.125, np.nan, 1])
    # To the digits of the text: a division makes 8.2 less than a cutoff of 0.082.
    for rate in range(1, 1_000):
        (cell,) = block(opened(f"y;p\n1;{rate / 10:.1f} %\n".replace(".", ",").encode()), "p")[0]
        assert cell == float(f"{rate}e-3")
    assert table.missing_as(1, "p") == "empty"
    assert table.missing_as(1, "y") == "NaN"


def test_columns_with_and_without_percent_signs_form_one_block():
    table = opened(b"y,p_a,p_b\na,25%,0.75\nb,100%,0.0\n")
    np.testing.assert_array_equal(block(table, "p_a", "p_b"), [[0.25, 0.75], [1, 0]])
    fetched = table.fetch([("p_b",), ("p_a",)], ["p_a", "y"])
    np.testing.assert_array_equal(fetched.scores[0][:, 0], [0.75, 0])
    np.testing.assert_array_equal(fetched.scores[1][:, 0], [0.25, 1])
    np.testing.assert_array_equal(fetched.columns["p_a"], [0.25, 1])


def test_a_cell_of_another_kind_is_named():
    rows = "".join(f"{j % 2},{j % 90}%\n" for j in range(1_200))
    with pytest.raises(InputError) as caught:
        read(f"y,p\n{rows}1,0.5\n".encode())
    assert (caught.value.row, caught.value.line, caught.value.column) == (1_201, 1_202, "p")
    assert "cells that cannot be read: row 1,201 (line 1,202) 'p' is '0.5'" in str(caught.value)


@pytest.mark.parametrize("name", ["score", "wert"])
@pytest.mark.parametrize("sign", [".", ","])
def test_a_few_words_among_percentages_leave_the_column_a_score(name, sign):
    cells = [f"{j % 90}{sign}5%" for j in range(60)]
    cells[0], cells[9], cells[20], cells[30] = "err", "n/a?", f"120{sign}0%", f"-3{sign}0%"
    text = f"befund;{name}\n" + "".join(f"{j % 2};{cell}\n" for j, cell in enumerate(cells))
    shown = first_rows(text.encode())
    assert shown.roles[name] == "score"
    assert "score" in shown.choices[name]
    assert shown.cells[name][:2] == ("err", "0.015")
    with pytest.raises(InputError) as words:
        read(text.encode())
    assert f"row 1 (line 2) '{name}' is 'err', row 10 (line 11) '{name}' is 'n/a?'" in str(words.value)  # fmt: skip
    assert [repair.key for repair in words.value.repairs][:1] == ["drop-missing"]
    with pytest.raises(InputError, match="2 of 58 are not in 0 to 1") as outside:
        read(text.encode(), options=ReadingOptions(repair=("drop-missing",)))
    assert [repair.key for repair in outside.value.repairs] == ["drop-outside"]
    repaired = read(text.encode(), options=ReadingOptions(repair=("drop-missing", "drop-outside")))
    kept = [j for j in range(60) if j not in (0, 9, 20, 30)]
    np.testing.assert_allclose(repaired.first.probs[:, 1], [(j % 90 + 0.5) / 100 for j in kept])
    assert repaired.first.labels.tolist() == [j % 2 for j in kept]


def test_a_name_for_scores_makes_a_majority_of_percentages_scores_but_no_repair_of_many_rows():
    cells = ["err" if j % 6 == 0 else f"{j}%" for j in range(60)]
    text = "\n".join(["score,y", *(f"{cell},{j % 2}" for j, cell in enumerate(cells))]).encode()
    with pytest.raises(InputError, match="'score' is 'err'") as asked:
        read(text)
    assert "10 of 60 rows" in str(asked.value)
    assert not asked.value.repairs
    assert first_rows(text).roles["score"] == "score"
    # Of another name, they may be anything.
    assert opened(text.replace(b"score", b"rest")).columns[0].type == "text"


def test_percentages_of_several_classes_are_no_logits():
    rows = [f"{'ab'[j % 2]},{j}%,{100 - j}%" for j in range(40)]
    rows[7] = "a,-20%,120%"
    with pytest.raises(InputError, match="; ask to leave out such rows") as asked:
        read("\n".join(["y,p_a,p_b", *rows]).encode())
    assert [repair.key for repair in asked.value.repairs] == ["drop-outside"]


def test_rows_with_words_among_numbers_can_be_left_out():
    text = "y,p\n" + "".join(f"{j % 2},{'err' if j == 7 else j / 40}\n" for j in range(40))
    with pytest.raises(InputError, match="'p' = 'err' is not a number") as asked:
        read(text.encode())
    assert [repair.key for repair in asked.value.repairs] == ["drop-missing"]
    repaired = read(text.encode(), options=ReadingOptions(repair=("drop-missing",)))
    assert repaired.first.n == 39
    assert any("'p' = 'err'" in made for made in repaired.repairs_made)
    many = text.replace(",0.2", ",err")
    with pytest.raises(InputError, match="are not numbers") as refused:
        read(many.encode(), options=ReadingOptions(repair=("drop-missing",)))
    assert not refused.value.repairs


def test_text_that_is_only_sometimes_a_vector_stays_text():
    table = opened(b"y,bin\n1,(0.1 0.5)\n0,[0.1]\n1,high\n")
    assert table["bin"].type == "text"
    assert type(table).__name__ == "CsvTable"


# ---- Rows


def long_frame() -> pd.DataFrame:
    wide = pd.DataFrame(PROBS, columns=CLASSES).assign(id=range(len(LABELS)), truth=LABELS)
    return wide.melt(id_vars=["id", "truth"])


def check_wide(table: Table, score: str) -> None:
    assert isinstance(table, WideRows)
    order = [table[score].fields.index(name) for name in CLASSES]
    np.testing.assert_array_equal(block(table, score)[:, order], PROBS)
    assert texts(table, "label") == LABELS
    assert texts(table, "id") == [str(j) for j in range(len(LABELS))]


def test_a_long_table_has_a_row_per_question():
    table = opened("long.csv")
    assert [(c.name, c.type, c.width, c.fields) for c in table.columns] == [
        ("id", "integer", None, ()), ("label", "text", None, ()), ("prob", "number", 3, tuple(CLASSES)),
    ]  # fmt: skip
    check_wide(table, "prob")
    assert table.line(2) == 8
    assert "'is_true' says which class is true" in table.notices[-1].message


@pytest.mark.parametrize("by", [["id", "variable"], ["variable", "id"]])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_melted_frame_in_both_orders(by, form):
    frame = long_frame().sort_values(by)
    content = frame.to_csv(index=False) if form == "csv" else frame.to_json(orient="records")
    check_wide(opened(content.encode()), "value")


def test_other_columns_of_a_long_table():
    frame = long_frame().sort_values(["id", "variable"])
    frame["is_true"] = (frame["variable"] == frame["truth"]).astype(int)
    frame["is_predicted"] = (
        frame["value"] == frame.groupby("id")["value"].transform("max")
    ).astype(int)
    frame["rank"] = frame.groupby("id")["value"].rank(ascending=False).astype(int)
    frame["site"] = frame["id"] % 3
    frame["weight"] = 0.5 + frame["id"]
    table = opened(frame.drop(columns="truth").to_csv(index=False).encode())
    check_wide(table, "value")
    assert table.names == ("id", "label", "value", "site", "weight")
    np.testing.assert_array_equal(block(table, "weight")[:, 0], 0.5 + np.arange(len(LABELS)))
    assert texts(table, "site")[:4] == ["0", "1", "2", "0"]
    assert table.notices[-1].message.startswith("'is_predicted', 'rank' are left out")


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame[frame.index != 4],  # a question without one class
        lambda frame: frame.assign(value=frame["value"] * 0.9),  # no sum of 1
        lambda frame: frame.assign(truth="unknown"),  # a truth that is no class
        lambda frame: frame.drop(columns="truth"),
        lambda frame: frame.rename(columns={"truth": "prediction"}),
        lambda frame: frame.sample(frac=1, random_state=3),  # in no order
        lambda frame: frame.assign(variable=frame["variable"].where(frame.index != 3, "emu")),
    ],
)
def test_a_table_whose_structure_is_not_certain_stays_as_it_is(change):
    frame = change(long_frame().sort_values(["id", "variable"]).reset_index(drop=True))
    assert not isinstance(opened(frame.to_csv(index=False).encode()), WideRows)


def test_visits_of_patients_are_no_classes():
    rng = np.random.default_rng(1)
    rows = [(p, v, rng.integers(2), f"{rng.uniform():.3f}") for p in range(50) for v in "abc"]
    text = "patient,visit,label,p\n" + "".join(f"{p},{v},{y},{s}\n" for p, v, y, s in rows)
    assert not isinstance(opened(text.encode()), WideRows)


def test_percentages_in_a_long_table():
    frame = long_frame().sort_values(["id", "variable"])
    frame["value"] = [f"{100 * value:.1f}%" for value in frame["value"]]
    table = opened(frame.to_csv(index=False).encode())
    np.testing.assert_allclose(block(table, "value"), PROBS, atol=1e-12)


def test_a_long_frame_with_vectors_beside_it():
    data = Predictions.from_frame(long_frame().sort_values(["id", "variable"]))
    np.testing.assert_array_equal(data.probs, PROBS)
    frame = pd.DataFrame({"label": EXPECTED["labels"], "probability": [str(row) for row in PROBS]})
    np.testing.assert_array_equal(Predictions.from_frame(frame).probs, PROBS)
    with pytest.raises(OptionError, match="is not in the frame"):
        Predictions.from_frame(frame, label="truth")


# ---- Columns of clusters, weights and times


N = 60


def table(**columns):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=N).round(4)
    columns = {"label": (rng.random(N) < p).astype(int), "p": p, **columns}
    rows = [",".join(str(column[i]) for column in columns.values()) for i in range(N)]
    return "\n".join([",".join(columns), *rows]).encode()


def opened_of_clusters_and_weights(columns, **options):
    return read(table(**columns), name="x.csv", options=ReadingOptions(**options))


IDS = {"patient_id": np.arange(N) // 5}
COUNTS = {"weight": 1 + np.arange(N) % 3}


def test_clusters_and_weights_are_asked_for_and_never_assumed():
    for name in ("weight", "w"):
        columns = IDS | {name: COUNTS["weight"]}
        if name == "weight":
            with pytest.raises(InputError, match=r"does 'weight' say how much each row counts\?"):
                opened_of_clusters_and_weights(columns)
        loaded = opened_of_clusters_and_weights(
            columns, **({"weight_column": ""} if name == "weight" else {})
        )
        assert loaded.first.alike
        hints = [n.message for n in loaded.notices if n.code == "DATA012"]
        assert ["--weight" in hint for hint in hints] == [True, False][name == "weight" :]
        assert "--cluster" in hints[-1]


@pytest.mark.parametrize("name", ["Patient", "Patienten-ID"])
def test_values_that_repeat_all_over_the_file_are_asked_for(name):
    """Of the first 1,000 rows in a random order, fewer than one in ten repeats a patient; the second name is read as the identifier."""
    rng = np.random.default_rng(0)
    patient = rng.permutation(np.repeat(np.arange(80_000), 2)[:120_000])
    p = rng.random(patient.size).round(3)
    columns = {"y": (rng.random(p.size) < p).astype(int), "p": p, name: patient}
    text = pd.DataFrame(columns).to_csv(index=False).encode()
    loaded = read(text, name="x.csv", options=ReadingOptions())
    assert (loaded.first.ids is not None) == name.endswith("ID")
    (asked,) = (n.message for n in loaded.notices if n.code == "DATA012")
    assert asked.startswith(f"the values of '{name}' repeat")


@pytest.mark.parametrize(("values", "asked"), [(3, 0), (6, 0), (9, 0), (10, 1), (54, 1), (55, 0)])
def test_a_column_of_a_few_values_is_no_column_of_clusters(values, asked):
    loaded = opened_of_clusters_and_weights({"site": np.arange(N) % values})
    assert len([n for n in loaded.notices if n.code == "DATA012"]) == asked


@pytest.mark.parametrize(
    ("name", "models"), [("record_id", True), ("patient_id", True), ("site", False), ("hospital_id", False),
     ("N° patient", False), ("Kunden-Nr.", False), ("Kundennummer", False)]
)  # fmt: skip
def test_only_a_column_that_identifies_rows_is_asked_whether_these_are_of_several_models(
    name, models
):
    loaded = opened_of_clusters_and_weights({name: np.arange(N) // 5})
    (asked,) = (n.message for n in loaded.notices if n.code == "DATA012")
    assert "--cluster" in asked
    assert ("--model-column" in asked) == models


@pytest.mark.parametrize(
    ("name", "taken"), [("risk", True), ("risk %", False), ("risk_pct", False)]
)
def test_what_a_column_headed_in_percent_holds_is_asked_of_each_file_of_a_map(name, taken):
    options = ReadingForMap(map_scores={"kind": "probabilities", "columns": (name,)})
    rows = pa.table({name: np.linspace(0, 1, N)})
    used = options.of_table(arrow_rows(rows, "the table has", format="table"))
    assert used.scores == ((name,) if taken else None)


def test_named_columns_are_read():
    loaded = opened_of_clusters_and_weights(
        IDS | COUNTS, cluster_column="patient_id", weight_column="weight"
    )
    assert len(loaded.first.clusters.levels) == 12
    np.testing.assert_array_equal(loaded.first.weights, COUNTS["weight"])
    assert "clusters 'patient_id', weights 'weight'" in loaded.recognition.sentence()
    assert not [n for n in loaded.notices if n.code == "DATA012"]


def test_counts_are_written_out():
    loaded = opened_of_clusters_and_weights(
        IDS | COUNTS, weight_column="weight", weight_kind="frequency"
    )
    assert loaded.first.n == COUNTS["weight"].sum()
    assert loaded.first.weights is None


@pytest.mark.parametrize(
    "dates",
    [
        [f"2020-03-{1 + i % 28:02d}" for i in range(N)],
        [f"{1 + i % 28:02d}.03.2020" for i in range(N)],
        [f"2020-03-{1 + i % 28:02d}T00:00:00Z" for i in range(N)],
        [f"03/{1 + i % 28:02d}/2020" for i in range(N)],
        [f"{1 + i % 28:02d}.03.2020 {i % 24:02d}:30" for i in range(N)],
        [f"{1 + i % 28:02d}.03.2020 {i % 24:02d}:30:59" for i in range(N)],
    ],
)
def test_dates_are_recognised(dates):
    loaded = opened_of_clusters_and_weights({"date": dates})
    assert loaded.recognition.time_column == "date"
    expected = np.datetime64("2020-03-01") + np.arange(N) % 28
    np.testing.assert_array_equal(loaded.first.times.astype("datetime64[D]"), expected)


@pytest.mark.parametrize(
    "name", ["Stichtag", "fecha", "Fecha de alta", "horodatage", "jour", "data", "data_evento", "tijdstip", "maand"]
)  # fmt: skip
def test_dates_are_recognised_under_names_of_other_languages(name):
    loaded = opened_of_clusters_and_weights({name: [f"{1 + i % 28:02d}.03.2020" for i in range(N)]})
    assert loaded.recognition.time_column == name


def test_days_as_whole_numbers_are_the_time_and_ages_are_years():
    # As DICOM writes them; births are no times, and numbers under other names are none.
    days = [20200301 + i % 28 for i in range(N)]
    ages = [f"{20 + i % 60:03d}Y" for i in range(N)]
    born = [19600101 + i % 28 for i in range(N)]
    columns = {"StudyDate": days, "PatientAge": ages, "PatientBirthDate": born}
    loaded = opened_of_clusters_and_weights(columns)
    assert loaded.recognition.time_column == "StudyDate"
    assert loaded.first.times[3] == np.datetime64("2020-03-04")
    for name in ("visit", "PatientBirthDate", "code_date"):
        odd = {name: [d + 60 * (name == "code_date") for d in days]}
        assert opened_of_clusters_and_weights(odd).recognition.time_column is None
    values, are_dates = as_values(("068Y", "006M", "", "14"))
    np.testing.assert_array_equal(values, [68, 0.5, np.nan, 14])
    assert not are_dates


@pytest.mark.parametrize("name", ["date de naissance", "fecha_nacimiento", "data di nascita"])
def test_a_date_of_birth_is_no_time_in_other_languages(name):
    loaded = opened_of_clusters_and_weights({name: [f"19{60 + i % 30}-01-01" for i in range(N)]})
    assert loaded.recognition.time_column is None


@pytest.mark.parametrize("name", ["Gewicht", "poids", "ponderacion", "peso", "wegingsfactor"])
def test_numbers_without_a_role_are_said_and_weights_of_other_languages_are_offered(name):
    columns = {name: 0.5 + np.arange(N) / N, "income": np.arange(N) / 7}
    with pytest.raises(InputError) as caught:
        opened_of_clusters_and_weights(columns)
    weighted, without = (
        opened_of_clusters_and_weights(columns, **way.options) for way in caught.value.readings
    )
    assert weighted.recognition.weight_column == name
    assert without.recognition.sentence().endswith(f"numbers {name}, income")


@pytest.mark.parametrize("name", ["valid_time", "Valid Time", "Zeit UTC"])
def test_a_time_of_another_name_is_the_time_unless_a_date_or_another_one_is(name):
    times = [f"{1 + i % 28:02d}.03.2020 {i % 24:02d}:00" for i in range(N)]
    days = [f"2020-04-{1 + i % 28:02d}" for i in range(N)]
    loaded = opened_of_clusters_and_weights({name: times})
    assert loaded.recognition.time_column == name
    assert loaded.first.times[25] == np.datetime64("2020-03-26T01:00")
    for others, time in (
        ({"issue_date": days}, "issue_date"),
        ({"update_time": days}, None),
        ({"time_of_birth": days, "time_to_event": [f"{i} min" for i in range(N)]}, name),
    ):
        both = opened_of_clusters_and_weights({name: times, **others})
        assert both.recognition.time_column == time
    # The day or the month may come first.
    slashes = [f"0{1 + i % 9}/03/2020 10:00" for i in range(N)]
    assert opened_of_clusters_and_weights({name: slashes}).first.times is None


def test_a_date_of_another_name_is_the_time_if_it_is_the_only_one():
    dates = [f"2020-03-{1 + i % 28:02d}" for i in range(N)]
    born = [f"19{60 + i % 30}-01-01" for i in range(N)]
    assert (
        opened_of_clusters_and_weights({"Origination date": dates}).recognition.time_column
        == "Origination date"
    )
    assert (
        opened_of_clusters_and_weights(
            {"issue_date": dates, "birth_date": born}
        ).recognition.time_column
        == "issue_date"
    )
    assert opened_of_clusters_and_weights({"ts": dates}).recognition.time_column == "ts"
    german = opened_of_clusters_and_weights({"Aufnahmedatum": dates, "Geburtsdatum": born})
    assert german.recognition.time_column == "Aufnahmedatum"
    both = opened_of_clusters_and_weights({"admission_date": dates, "discharge_date": dates})
    assert both.recognition.time_column is None


@pytest.mark.parametrize("name", ["Eingang (UTC)", "received", "Bestellt am"])
def test_the_only_dates_are_the_times_whatever_their_name(name):
    days = [f"{1 + i % 28:02d}.03.2025" for i in range(N)]
    loaded = opened_of_clusters_and_weights({name: days, "site": np.arange(N) % 3})
    assert loaded.recognition.time_column == name
    assert any(f"'{name}' holds dates" in n.message for n in loaded.notices)

    expected = np.datetime64("2025-03-01") + np.arange(N) % 28
    np.testing.assert_array_equal(loaded.first.times.astype("datetime64[D]"), expected)
    assert opened_of_clusters_and_weights({name: days}, time_column="").first.times is None
    assert opened_of_clusters_and_weights({name: days}, groups=(name,)).first.times is None


@pytest.mark.parametrize("gap", ["", "n/a"])
def test_dates_that_some_rows_lack_are_said_not_to_be_used(gap):
    days = [f"{1 + i % 28:02d}.03.2025" for i in range(N)]
    columns = {"created_at": [gap, *days[1:]]}
    loaded = opened_of_clusters_and_weights(columns)
    assert loaded.recognition.time_column is None
    said = f"'created_at' is not used as times: the date is missing in 1 of {N} rows"
    assert said in [n.message for n in loaded.notices]
    (way,) = loaded.ways
    assert way.label.endswith("leaving 1 row without a date out of all results")
    assert way.in_shell() == "--time created_at --repair drop-missing"
    again = opened_of_clusters_and_weights(columns, **way.options)
    assert (again.recognition.time_column, again.first.n) == ("created_at", N - 1)


def test_dates_in_all_rows_are_the_times_beside_others_with_gaps():
    days = [f"2020-03-{1 + i % 28:02d}" for i in range(N)]
    columns = {"return_date": ["", *days[1:]], "order_date": days}
    assert opened_of_clusters_and_weights(columns).recognition.time_column == "order_date"


def test_times_of_twelve_hours_are_read():
    days = [f"03/{1 + i % 28:02d}/2025 {1 + i % 12}:05 {'AP'[i % 2]}M" for i in range(N)]
    loaded = opened_of_clusters_and_weights({"created_at": days})
    assert loaded.recognition.time_column == "created_at"
    assert loaded.first.times[13] == np.datetime64("2025-03-14T14:05")


@pytest.mark.parametrize(
    "columns",
    [
        {"received": [1, 28], "answered": [2, 27]},  # which of them?
        {"Geb. am": [1, 28]},
        {"né le": [1, 28]},
        {"released": [1, 6]},  # few days
        {"since": [1, 28, 1950]},
        {"received": [1, 28, "missing"]},
    ],
)
def test_dates_that_may_not_be_the_times_are_groups_as_before(columns):
    dates = {}
    for name, (first, last, *more) in columns.items():
        days = [f"{first + i % (last - first + 1):02d}.03.2025" for i in range(N)]
        if more:
            days[5] = "" if more == ["missing"] else f"01.03.{more[0]}"
        dates[name] = days
    loaded = opened_of_clusters_and_weights(dates)
    assert loaded.recognition.time_column is None
    assert {*dates} <= {*loaded.recognition.groups}


def test_the_days_of_a_file_sorted_by_them_need_not_all_be_in_its_first_rows():
    n = 4_000
    p = np.random.default_rng(1).random(n)
    day = 1 + np.arange(n) // 600
    for days, time in ((day, "received"), (1 + np.arange(n) % 2, None)):
        frame = pd.DataFrame({"p": p, "y": (p > 0.4).astype(int)})
        frame["received"] = [f"{d:02d}.03.2025" for d in days]
        content = frame.to_csv(index=False).encode()
        assert read(content, name="x.csv").recognition.time_column == time


@pytest.mark.parametrize("role", ["time_column", "weight_column", "cluster_column"])
def test_a_role_need_not_fit_rows_that_are_left_out(role):
    p = np.random.default_rng(2).random(N)
    cells = [f"{1 + i % 28:02d}.03.2025" for i in range(N)]
    if role != "time_column":
        cells = [str(1 + i % 9) for i in range(N)]
    lines = [f"{v:.3f},{int(v > 0.4)},{c}" for v, c in zip(p, cells, strict=True)]
    cut = [*lines[:20], f"0.5,,{cells[20]}", "0.5,,", ",1,", *lines[23:]]
    content = "\n".join(["p,y,extra", *cut]).encode()
    options = ReadingOptions(repair=("drop-missing",), **{role: "extra"})
    loaded = read(content, name="x.csv", options=options)
    kept = np.delete(np.arange(N), [20, 21, 22])
    assert loaded.first.file_rows.tolist() == kept.tolist()
    (waiting,) = loaded.waiting.values()
    assert waiting.file_rows.tolist() == [20]
    held = getattr(loaded.first, role.replace("_column", "s"))
    if role == "time_column":
        assert held.astype("datetime64[D]").tolist() == [
            np.datetime64(f"2025-03-{1 + i % 28:02d}").item() for i in kept
        ]
        assert waiting.times.astype("datetime64[D]") == np.datetime64("2025-03-21")
    elif role == "weight_column":
        assert (held / held.max() * 9).round().tolist() == [1 + i % 9 for i in kept]
    else:
        assert held.values().tolist() == [str(1 + i % 9) for i in kept]


def test_a_row_without_a_date_can_be_left_out():
    dates = [f"{1 + i % 28:02d}.03.2025" for i in range(N)]
    dates[30] = ""
    with pytest.raises(InputError, match="row 31, column 'd': there is no date") as asked:
        opened_of_clusters_and_weights({"d": dates}, time_column="d")
    assert [repair.key for repair in asked.value.repairs] == ["drop-missing"]
    options = ReadingOptions(time_column="d").answered(asked.value.answers[0])
    left = read(table(d=dates), name="x.csv", options=options).first
    assert left.file_rows.tolist() == [i for i in range(N) if i != 30]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["2020-01-01"] * (N - 1) + ["soon"],
            "row 60, column 'd': 'soon' cannot be read as a date",
        ),
        (["2020-01-01"] * (N - 1) + ["13.02.2020"], "two formats"),
        ([f"{1 + i % 9:02d}/{1 + i % 7:02d}/2020" for i in range(N)], "day or the month first"),
        (["2020-01-01"] * (N - 1) + [""], "there is no date"),
    ],
)
def test_dates_that_cannot_be_read_are_named(values, message):
    with pytest.raises(InputError, match=message):
        opened_of_clusters_and_weights({"d": values}, time_column="d")


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ({"c": ["a"] * N}, {"cluster_column": "c"}, "column 'c': the cluster column has one value"),
        ({"w": [-1.5] * N}, {"weight_column": "w"}, "row 1, column 'w': the weight is -1.5"),
        ({"w": ["a"] * N}, {"weight_column": "w"}, "'a' is not a number"),
        ({"w": [1.5] * N}, {"weight_column": "w", "weight_kind": "frequency"}, "whole number"),
    ],
)
def test_columns_that_cannot_be_used_are_named(column, options, message):
    with pytest.raises(InputError, match=message):
        opened_of_clusters_and_weights(column, **options)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"c": ["a", ""] + ["b"] * (N - 2)},
            {"cluster_column": "c"},
            "row 2, column 'c': the cluster is missing",
        ),
        ({"w": ["1", "much"] * (N // 2)}, {"weight_column": "w"}, "row 2, column 'w': 'much' is"),
        (
            COUNTS,
            {"cluster_column": "weight", "weight_column": "weight"},
            "'weight' is named as the cluster column and as the weight column",
        ),
        (
            {},
            {"cluster_column": "label"},
            "'label' looks like the label; give the label column, or choose another cluster column.",
        ),
        (
            {},
            {"weight_column": "p"},
            "'p' looks like the score; give the score column, or choose another weight column.",
        ),
    ],
)
def test_columns_that_mean_nothing_or_two_things_are_refused(columns, options, message):
    with pytest.raises((InputError, OptionError), match=message):
        opened_of_clusters_and_weights(columns, **options)


def test_rows_of_weight_zero_are_kept_and_counted_in_a_notice():
    loaded = opened_of_clusters_and_weights({"weight": np.arange(N) % 3}, weight_column="weight")
    assert loaded.first.n == N
    (text,) = [n.message for n in loaded.notices if n.code == "DATA014"]
    assert text.startswith("20 of 60 rows have the weight 0")
    assert not [
        n
        for n in opened_of_clusters_and_weights(COUNTS, weight_column="weight").notices
        if n.code == "DATA014"
    ]


def test_cells_with_a_percent_sign_are_divided_once(tmp_path):
    path = tmp_path / "p.csv"
    rows = [f"{i % 2},{30 + i % 40}.5%,{20 + i % 60}.0" for i in range(200)]
    path.write_text("\n".join(["label,p_signed,p_plain", *rows, ""]))
    options = ReadingOptions(models=("p_signed", "p_plain"), repair=("percent",))
    models = read(path, options=options).models.values()
    for model, first in zip(models, (30.5, 20.0), strict=True):
        assert model.probs[0, 1] == pytest.approx(first / 100)


def test_of_two_models_only_that_in_percent_is_divided():
    rows = [(0.1, 20, 0), (0.7, 60, 1), (0.4, 0.5, 0), (0.9, 85, 1)]

    def probs(second, **options):
        text = f"label,old,{second}\n" + "".join(f"{y},{a},{b}\n" for a, b, y in rows)
        models = options.pop("models", ("old", second))
        file = read(text.encode(), options=ReadingOptions(models=models, repair=("percent",)))
        return [m.probs[:, 1].tolist() for m in file.models.values()], file

    both, file = probs("new")
    assert both == [[0.1, 0.7, 0.4, 0.9], [0.2, 0.6, 0.005, 0.85]]
    (note,) = (f.message for f in file.notices if f.code == "DATA010")
    assert note.endswith("percent: the scores of 'new' were divided by 100")
    # One model alone, in 0 to 1: percentages of a rare event.
    assert probs("new", models=("old",))[0] == [[0.001, 0.007, 0.004, 0.009]]


@pytest.mark.parametrize(
    ("name", "values", "asked"),
    [("patid", "P{}", 1), ("pid", "{}", 1), ("patnr", "{}", 1), ("nhs_number", "{}", 1), ("ward", "W-{}", 1),
     ("age", "{}", 0), ("price", "{}", 0), ("paid", "{}", 0), ("name", "ab cd", 0)],
)  # fmt: skip
def test_patients_that_repeat_are_asked_for_whatever_their_column_is_called(name, values, asked):
    loaded = opened_of_clusters_and_weights({name: [values.format(i // 3) for i in range(N)]})
    assert len([n for n in loaded.notices if n.code == "DATA012"]) == asked


@pytest.mark.parametrize("form", ["%d%b%Y", "%d-%b-%Y", "%d%b%Y:%H:%M:%S"])
def test_dates_as_sas_writes_them_are_read(form):
    days = [pd.Timestamp("2024-03-22") + pd.Timedelta(days=i) for i in range(N)]
    loaded = opened_of_clusters_and_weights({"d": [d.strftime(form).upper() for d in days]})
    assert loaded.first.times.tolist() == days


def test_a_flag_of_events_is_asked_about_and_blanks_are_read_as_no_event():
    y = np.arange(N) % 10 == 0
    columns = {"p": np.linspace(0.01, 0.2, N), "sex": np.where(np.arange(N) % 2, "M", "F")}
    columns["DTHFL"] = np.where(y, "Y", "")
    text = pd.DataFrame(columns).to_csv(index=False).encode()
    with pytest.raises(InputError, match=r"is 'DTHFL' the true class\?") as asked:
        read(text, name="x.csv", options=ReadingOptions())
    assert asked.value.readings[0].options["label"] == "DTHFL"
    with pytest.raises(InputError, match="54 of 60 rows have no label, all others have") as asked:
        read(text, name="x.csv", options=ReadingOptions(label="DTHFL"))
    assert [repair.key for repair in asked.value.repairs] == ["blank-no"]
    options = ReadingOptions(label="DTHFL", repair=("blank-no",))
    assert read(text, name="x.csv", options=options).first.labels.tolist() == y.tolist()


def test_points_are_no_percentages():
    points = {"p": np.arange(N) % 12, "y": np.arange(N) % 2}
    text = pd.DataFrame(points).to_csv(index=False).encode()
    with pytest.raises(InputError, match="fit a probability to points first") as asked:
        read(text, name="x.csv", options=ReadingOptions(scores=("p",), label="y"))
    assert not asked.value.repairs

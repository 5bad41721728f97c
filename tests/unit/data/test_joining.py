"""Predictions and labels in two files."""

import json

import numpy as np
import pytest

import calviz
from calviz.core.errors import CalvizError
from tests.inputs.command_line import run

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
        ("id,label\n3,dog\n5,cat\n7,wolf\n", {}, "label 'wolf' has no probability column"),
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
        ("id,label\n3,dog\n5,cat\n9,dog\n7,wolf\n", {}, "truth.csv, row 4, column 'label': label 'wolf' has"),
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

"""Classes called NA, None, null: names where the score columns carry them, missing labels elsewhere."""

import io
import json

import numpy as np
import polars as pl
import pytest

from calviz.core.errors import InputError
from calviz.data import read

WORDS = ["NA", "NaN", "nan", "null", "None", "none", "N/A", "<NA>"]


def as_csv(columns, rows, separator=",", quote=""):
    lines = [columns, *rows]
    return "\n".join(separator.join(f"{quote}{c}{quote}" for c in line) for line in lines).encode()


def as_jsonl(columns, rows):
    return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()


def as_binary(columns, rows, write):
    frame = pl.DataFrame({c: [row[j] for row in rows] for j, c in enumerate(columns)}, strict=False)
    out = io.BytesIO()
    getattr(frame, write)(out)
    return out.getvalue()


FORMS = {
    "a.csv": as_csv,
    "a.tsv": lambda c, r: as_csv(c, r, "\t"),
    "quoted.csv": lambda c, r: as_csv(c, r, ";", '"'),
    "a.jsonl": as_jsonl,
    "a.parquet": lambda c, r: as_binary(c, r, "write_parquet"),
    "a.arrow": lambda c, r: as_binary(c, r, "write_ipc"),
}


@pytest.fixture(params=FORMS)
def load(request):
    return lambda columns, rows: read(FORMS[request.param](columns, rows), name=request.param).first


@pytest.mark.parametrize("word", WORDS)
def test_a_word_for_missing_is_a_class_where_a_score_column_carries_it(load, word):
    rows = [(word, 0.7, 0.3), ("EU", 0.2, 0.8), (word, 0.6, 0.4)] * 4
    data = load(["label", f"p_{word}", "p_EU"], rows)
    assert data.class_names == (word, "EU")
    assert data.labels.tolist() == [0, 1, 0] * 4


@pytest.mark.parametrize(
    ("columns", "labels", "names", "indices"),
    [
        # Only such labels, or thousands of them before another one.
        (["label", "p_NA", "p_EU"], ["NA"] * 20, ("NA", "EU"), [0] * 20),
        (["label", "p_NA", "p_EU"], ["NA"] * 3_000 + ["EU"], ("NA", "EU"), [0] * 3_000 + [1]),
        # Among classes that are numbers, early and late.
        (["y", "p_NA", "p_1", "p_2"], ["NA", "1", "2"] * 5, ("NA", "1", "2"), [0, 1, 2] * 5),
        (
            ["y", "p_NA", "p_1", "p_2"],
            ["1", "2"] * 1_500 + ["NA"],
            ("NA", "1", "2"),
            [1, 2] * 1_500 + [0],
        ),
        # Two of them, without a prefix, of models, of one score column, in another case.
        (["y", "p_none", "p_null", "p_x"], ["none", "null", "x"], ("none", "null", "x"), [0, 1, 2]),
        (["label", "NA", "EU"], ["NA", "EU"] * 5, ("NA", "EU"), [0, 1] * 5),
        (["label", "m:NA", "m:EU", "t:NA", "t:EU"], ["NA", "EU"] * 5, ("NA", "EU"), [0, 1] * 5),
        (["label", "p_NA"], ["NA", "EU"] * 5, ("EU", "NA"), [1, 0] * 5),
        (["label", "p_None", "p_some"], ["none", "some"] * 5, ("None", "some"), [0, 1] * 5),
    ],
)
def test_wherever_they_stand(load, columns, labels, names, indices):
    k = len(columns) - 1
    scores = {1: (0.7,), 2: (0.7, 0.3), 3: (0.5, 0.3, 0.2), 4: (0.7, 0.3, 0.6, 0.4)}[k]
    data = load(columns, [(label, *scores) for label in labels])
    assert data.class_names == names
    assert data.labels.tolist() == indices


@pytest.mark.parametrize(
    ("word", "classes"),
    [(word, ("US", "EU")) for word in (*WORDS, "")]
    + [("NA", classes) for classes in (("NAN_", "EU"), ("X", "is_NA"))]
    + [("nan", ("NAN_", "EU"))],
)
def test_without_such_a_class_they_are_missing(load, word, classes):
    rows = [(classes[0], 0.7, 0.3), (classes[1], 0.2, 0.8), (word, 0.5, 0.5)]
    with pytest.raises(InputError, match="1 of 3 rows have no label"):
        load(["label", *(f"p_{c}" for c in classes)], rows)


def test_an_empty_label_is_missing_beside_such_a_class(load):
    with pytest.raises(InputError, match=r"row 2.*1 of 3 rows have no label"):
        load(["label", "p_NA", "p_EU"], [("NA", 0.7, 0.3), ("", 0.2, 0.8), ("EU", 0.2, 0.8)])


def test_another_word_is_missing_beside_such_a_class(load):
    with pytest.raises(InputError, match="1 of 3 rows have no label"):
        load(["label", "p_NA", "p_EU"], [("NA", 0.7, 0.3), ("null", 0.2, 0.8), ("EU", 0.2, 0.8)])


def test_nan_in_a_column_of_numbers_is_missing_whatever_the_classes_are_called():
    frame = pl.DataFrame({"label": [1.0, float("nan")], "p_nan": [0.2, 0.3], "p_1": [0.8, 0.7]})
    out = io.BytesIO()
    frame.write_parquet(out)
    with pytest.raises(InputError, match="1 of 2 rows have no label"):
        read(out.getvalue(), name="a.parquet")


def test_missing_scores_are_missing_beside_such_a_class():
    rows = [("NA", 0.7, 0.3), ("EU", "NA", 0.8), ("EU", 0.2, 0.8)]
    with pytest.raises(InputError, match=r"row 2 \(line 3\) .p_NA. is empty"):
        read(as_csv(["label", "p_NA", "p_EU"], rows), name="a.csv")


def test_groups_and_numbers_beside_such_a_class_are_read():
    rows = [("NA", 0.7, 0.3, 31.5, "NA"), ("EU", 0.2, 0.8, "NA", "b")] * 4
    data = read(as_csv(["label", "p_NA", "p_EU", "age", "site"], rows), name="a.csv").first
    assert data.labels.tolist() == [0, 1] * 4
    assert data.groups["site"].levels == ("NA", "b")


def test_arrays_with_class_names():
    out = io.BytesIO()
    probs = np.array([[0.7, 0.3], [0.2, 0.8]])
    np.savez(out, probs=probs, labels=np.array(["NA", "EU"]), class_names=np.array(["NA", "EU"]))
    assert read(out.getvalue(), name="a.npz").first.labels.tolist() == [0, 1]

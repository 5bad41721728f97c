"""The first rows of a file, the role of each column, and what another role reads."""

from __future__ import annotations

import numpy as np
import pytest

from calviz.core.errors import InputError
from calviz.data import ReadingOptions, first_rows, read
from calviz.data.first_rows import ROLES, ROWS

READ = b"id,split,label,p_cat,p_dog\n" + b"".join(
    b"r%d,%s,%s,0.%d,0.%d\n" % (i, (b"cal", b"test")[i % 2], (b"cat", b"dog")[i % 2], i, 10 - i)
    for i in range(1, 10)
)
#: Nothing says which of two columns is the label.
TWO_LABELS = b"first,second,p_a,p_b\n" + b"1,0,0.7,0.3\n0,1,0.4,0.6\n" * 12
MODELS = b"y,m_one,m_two\n" + b"1,0.9,0.8\n0,0.3,0.1\n1,0.6,0.7\n0,0.2,0.35\n" * 8
LOGITS = b"1.5,-0.5,0.25,0\n-2.25,3.5,0.5,1\n0.1,0.2,2.5,2\n"


def test_the_roles_of_a_file_that_is_read_are_those_that_were_recognised():
    shown = first_rows(READ)
    assert shown.roles == {
        "id": "id",
        "split": "split",
        "label": "label",
        "p_cat": "score",
        "p_dog": "score",
    }
    assert shown.classes == {"p_cat": "cat", "p_dog": "dog"}
    assert shown.recognised
    assert shown.missing == ()
    assert shown.cells["p_cat"][:2] == ("0.1", "0.2")
    assert {len(cells) for cells in shown.cells.values()} == {ROWS}


def test_the_number_of_rows_is_bounded():
    assert len(first_rows(READ, rows=3).cells["id"]) == 3


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n rest", b"PK\x03\x04 an archive", b"", b"\x80\x04 a pickle"]
)
def test_a_file_that_is_no_table_has_no_rows(content):
    with pytest.raises(InputError, match=r"x\.bin"):
        first_rows(content, name="x.bin")


def test_a_question_marks_the_columns_that_it_is_about():
    with pytest.raises(InputError) as caught:
        read(MODELS, name="x.csv")
    assert caught.value.readings
    shown = first_rows(MODELS)
    assert shown.roles == {"y": "label", "m_one": "model", "m_two": "model"}
    assert shown.asked == {"m_one", "m_two"}
    # A column that is no model leaves the other one.
    one = read(MODELS, name="x.csv", options=shown.with_role("m_two", "ignored"))
    np.testing.assert_array_equal(one.first.probs[:2, 1], [0.9, 0.3])


def test_another_role_reads_the_file_with_it():
    shown = first_rows(TWO_LABELS)
    options = shown.with_role("second", "label")
    assert read(TWO_LABELS, name="x.csv", options=options).recognition.label == "second"
    # The label is one column, which was another one before.
    assert "label" not in first_rows(TWO_LABELS, options=options).roles["first"]


def test_a_role_changes_only_what_it_is_about():
    shown = first_rows(READ)
    assert shown.with_role("split", "group") == ReadingOptions(split_column="", groups=("split",))
    assert shown.with_role("id", "cluster") == ReadingOptions(id_column="", cluster_column="id")


def test_columns_that_nothing_names_are_guessed_and_read_as_they_are_shown():
    with pytest.raises(InputError):
        read(LOGITS, name="x.csv")
    shown = first_rows(LOGITS)
    assert not shown.recognised
    assert [*shown.roles.values()] == ["score", "score", "score", "label"]
    options = shown.as_shown()
    assert options.label == "column 4"
    assert options.scores == ("column 1", "column 2", "column 3")


def test_what_is_missing_is_said():
    shown = first_rows(b"ward,floor,risk of fall\n" + b"a,1,0.3\nb,2,0.7\nc,3,0.1\n" * 20)
    assert shown.missing == ("the label",)


def test_a_confidence_is_read_with_the_column_that_says_what_was_right():
    rows = b"surety,ok,why\n" + b"0.9,1,a\n0.8,1,b\n0.7,0,c\n0.6,0,d\n" * 10
    options = first_rows(rows).with_role("ok", "correct")
    assert options.kind == "confidence"
    data = read(rows, name="x.csv", options=options).first
    assert data.kind == "confidence"
    np.testing.assert_array_equal(data.correct[:4], [1, 1, 0, 0])


def test_a_confidence_is_read_with_the_column_of_predictions():
    rows = b"truth,said,sure\n" + b"a,b,0.9\nb,b,0.8\nc,c,0.7\n" * 10
    options = ReadingOptions(
        kind="confidence", scores=("sure",), prediction_column="said", label="truth"
    )
    data = read(rows, name="x.csv", options=options).first
    np.testing.assert_array_equal(data.correct[:3], [0, 1, 1])


def test_the_values_of_a_column_limit_its_roles():
    shown = first_rows(READ)
    assert "score" not in shown.choices["split"]
    assert shown.choices["p_cat"] == ROLES


@pytest.mark.parametrize("role", ROLES)
def test_every_role_of_every_column_gives_valid_options(role):
    for content in (READ, TWO_LABELS, MODELS, LOGITS):
        shown = first_rows(content)
        for name in shown.roles:
            assert first_rows(content, options=shown.with_role(name, role)).roles.keys() == {
                *shown.roles
            }


def test_the_row_that_an_error_names_is_among_them():
    rows = b"label,p\n" + b"1,0.5\n" * 48 + b",0.25\n" + b"0,0.5\n" * 9
    with pytest.raises(InputError) as caught:
        read(rows, name="x.csv")
    assert caught.value.row == 49
    shown = first_rows(rows, also=49)
    assert shown.numbers == (1, 2, 3, 4, 5, 6, 7, 49)
    assert (shown.cells["label"][-1], shown.cells["p"][-1]) == ("", "0.25")
    # One that is not looked at is not there, and one of the first ones is already.
    assert first_rows(rows, also=9_999).numbers == first_rows(rows, also=3).numbers

"""Errors: one sentence with place, rule and remedy."""

import pytest

from calviz.core.errors import CalvizError, InputError, Repair, reason_of


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("there are no rows"), "there are no rows."),
        (InputError("what is this?"), "what is this?"),
        (InputError("it is empty", file="a.csv"), "a.csv: it is empty."),
        (
            InputError(
                "NaN", file="a.csv", row=1_234, line=1_240, column="p_dog", remedy="drop it"
            ),
            "a.csv, row 1,234, line 1,240, column 'p_dog': NaN; drop it.",
        ),
        (InputError("NaN", column="p"), "column 'p': NaN."),
    ],
)
def test_the_sentence(error, sentence):
    assert str(error) == sentence
    assert isinstance(error, CalvizError)
    assert isinstance(error, ValueError)


def test_a_file_is_added_where_there_is_none():
    repair = Repair("renormalise", "divide every row by its sum")
    error = InputError("sums to 1.2", row=3, remedy="normalise", repairs=[repair])
    placed = error.in_file("a.csv")
    assert str(placed) == "a.csv, row 3: sums to 1.2; normalise."
    assert placed.repairs == (repair,)
    assert str(placed.in_file("b.csv")) == str(placed)


def test_a_copy_keeps_every_argument():
    repair = Repair("renormalise", "divide every row by its sum")
    given = {
        "file": "a.csv",
        "row": 3,
        "line": 4,
        "column": "p",
        "remedy": "normalise",
        "repairs": (repair,),
        "placed": True,
        "columns": ("p", "q"),
        "readings": (),
    }
    error = InputError("sums to 1.2", **given)
    assert vars(error.but(row=5)) == {"what": "sums to 1.2"} | given | {"row": 5}
    assert vars(error.in_file("b.csv")) == vars(error.in_column("q")) == vars(error)
    assert error.in_code().remedy == 'normalise (repair="renormalise")'


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InputError("NaN", row=3), "row 3: NaN."),
        (MemoryError(), "there is not enough memory for it."),
        (ZeroDivisionError("division by zero"), "it failed: division by zero."),
        (RuntimeError(), "it failed: RuntimeError."),
    ],
)
def test_the_reason_for_no_result(error, reason):
    assert reason_of(error) == reason

"""Errors: one sentence with place, rule and remedy."""

import pytest

from calviz.core.errors import CalvizError, InputError, Repair


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

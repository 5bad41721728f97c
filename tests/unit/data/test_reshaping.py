"""Cells and rows that hold less or more than one value: vectors and percentages as text, tables with a row per class."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calviz import Predictions
from calviz.core.errors import InputError, OptionError
from calviz.core.row_columns import Factor
from calviz.data import read
from calviz.data.format import Source, Table, format_of
from calviz.data.rows_in_memory import WideRows, vector

FILES = Path(__file__).parents[2] / "inputs/exports"
EXPECTED = json.loads((FILES / "expected.json").read_text())
CLASSES, PROBS = EXPECTED["classes"], np.array(EXPECTED["probs"])
LABELS = [CLASSES[label] for label in EXPECTED["labels"]]


def opened(content: str | bytes) -> Table:
    source = Source(FILES / content if isinstance(content, str) else content)
    return format_of(source).open(source)


def block(table: Table, *names: str) -> np.ndarray:
    return table.fetch([names], []).scores[0]


def texts(table: Table, name: str) -> list[str]:
    return Factor.of(table.fetch([], [name]).columns[name]).values().tolist()


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
    loaded = read(FILES / "spark_vectors.csv")
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
    assert table.is_empty(1, "p")
    assert not table.is_empty(1, "y")


def test_columns_with_and_without_percent_signs_form_one_block():
    table = opened(b"y,p_a,p_b\na,25%,0.75\nb,100%,0.0\n")
    np.testing.assert_array_equal(block(table, "p_a", "p_b"), [[0.25, 0.75], [1, 0]])
    fetched = table.fetch([("p_b",), ("p_a",)], ["p_a", "y"])
    np.testing.assert_array_equal(fetched.scores[0][:, 0], [0.75, 0])
    np.testing.assert_array_equal(fetched.scores[1][:, 0], [0.25, 1])
    np.testing.assert_array_equal(fetched.columns["p_a"], [0.25, 1])


def test_a_cell_of_another_kind_is_named():
    rows = "".join(f"{j % 2},{j % 90}%\n" for j in range(1_200))
    table = opened(f"y,p\n{rows}1,0.5\n".encode())
    with pytest.raises(InputError) as caught:
        block(table, "p")
    assert (caught.value.row, caught.value.line, caught.value.column) == (1_201, 1_202, "p")
    assert "is '0.5', but other rows hold a percentage such as '0%'" in str(caught.value)


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

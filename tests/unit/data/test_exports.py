"""Exports of other tools."""

import gzip
import io
import json
import struct
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.data import LabelFile, ReadingOptions, first_rows, read
from calviz.data.format import Source, Table
from calviz.data.formats.numpy_formats import zipped
from calviz.data.formats.r_and_weka import open_arff
from calviz.data.writing import write_predictions
from tests.inputs.command_line import outcome, run
from tests.inputs.table_files import (
    CLASSES,
    EXPECTED,
    LABELS,
    PROBS,
    block,
    opened,
    sheet,
    texts,
    workbook,
)

# ---- Files in the layout that other tools write: the columns that each becomes, and one sentence for what is broken


PREDICTED = [CLASSES[label] for label in PROBS.argmax(axis=1)]
SCORES = np.array(EXPECTED["scores"])


def described(table: Table) -> list[tuple[str, str, int | None]]:
    return [(c.name, c.type, c.width) for c in table.columns]


def refused(content: bytes, name: str = "file") -> str:
    with pytest.raises(InputError) as caught:
        read(content, name=name)
    return str(caught.value)


# ---- Weka and OpenML


def test_arff_of_an_openml_run():
    table = opened("openml_predictions.arff")
    integers = [(name, "integer", None) for name in ("repeat", "fold", "row_id")]
    scores = [(f"confidence.{name}", "number", None) for name in CLASSES]
    nominal = [("prediction", "text", None), ("correct", "text", None)]
    assert described(table) == [*integers, *nominal, *scores]
    np.testing.assert_array_equal(block(table, *(name for name, _, _ in scores)), PROBS)
    assert texts(table, "correct") == LABELS
    assert texts(table, "prediction") == PREDICTED
    assert table.line(0) == 11


def test_an_openml_run_as_csv_has_the_same_scores():
    names = [f"confidence.{name}" for name in CLASSES]
    np.testing.assert_array_equal(block(opened("openml_run.csv"), *names), PROBS)


ARFF = b"""% made by hand
@RELATION "a relation"
@ATTRIBUTE 'p of cat' REAL
@attribute "it's" {'a b', 'it\\'s', c}
@attribute note string
@attribute day date "yyyy-MM-dd"
@DATA
0.5, 'a b', 'x, y', 2020-01-01
?, 'it\\'s', ?, ?

% a comment between rows
1e-3,c,z,"2020-01-02"
"""


def test_quotes_comments_and_missing_values_of_arff():
    table = opened(ARFF)
    assert described(table) == [
        ("p of cat", "number", None), ("it's", "text", None), ("note", "text", None), ("day", "text", None),
    ]  # fmt: skip
    np.testing.assert_array_equal(block(table, "p of cat")[:, 0], [0.5, np.nan, 0.001])
    assert texts(table, "it's") == ["a b", "it's", "c"]
    assert texts(table, "note") == ["x, y", "", "z"]
    assert [table.line(row) for row in range(3)] == [8, 9, 12]


def test_arff_with_windows_lines_counts_them_right():
    table = open_arff(Source(ARFF.replace(b"\n", b"\r\n")))
    assert [table.line(row) for row in range(3)] == [8, 9, 12]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (ARFF.replace(b"1e-3", b"half"), ["line 12", "'half' is not a number"]),
        (ARFF.replace(b",c,", b","), ["line 12", "3 values", "4 attributes"]),
        (ARFF.replace(b"1e-3,c,z", b"{0 1}"), ["line 12", "SparseToNonSparse"]),
        (ARFF.replace(b"@DATA", b"% data"), ["no line '@data'"]),
        (ARFF[: ARFF.index(b"0.5")], ["no rows"]),
        (b"@relation x\n@data\n1\n", ["no attributes"]),
        (b"@relation x\n@attribute a\n@data\n", ["line 2", "no name and type"]),
        (b"@relation x\n@attribute a real\n@attribute a real\n@data\n1,2\n", ["two attributes"]),
        (b"@relation x\n@attribute a relational\n@data\n1\n", ["line 2", "hold tables"]),
    ],
)
def test_a_broken_arff_file_is_one_sentence(content, words):
    message = refused(content, "x.arff")
    assert all(word in message for word in words), message


def test_wekas_predictions_as_csv():
    table = opened("weka_prediction.csv")
    assert described(table) == [
        ("inst#", "integer", None), ("actual", "text", None), ("predicted", "text", None), ("confidence", "number", None),
    ]  # fmt: skip
    np.testing.assert_allclose(block(table, "confidence")[:, 0], np.maximum(SCORES, 1 - SCORES))
    assert texts(table, "actual") == [["neg", "pos"][event] for event in EXPECTED["events"]]
    assert texts(table, "predicted") == [["neg", "pos"][int(s > 0.5)] for s in SCORES]


def test_wekas_distribution_as_plain_text():
    table = opened("weka_distribution.txt")
    assert described(table)[-1] == ("distribution", "number", 3)
    assert table["distribution"].fields == tuple(CLASSES)
    np.testing.assert_array_equal(block(table, "distribution"), PROBS)
    assert texts(table, "actual") == LABELS


def test_attributes_in_brackets_behind_the_distribution_are_left_out():
    text = b"    inst#     actual  predicted error distribution (age,height)\n        1        1:a        2:b   +   0.2,*0.8 (33,1.8)\n"
    table = opened(text)
    assert described(table)[-1] == ("distribution", "number", 2)
    np.testing.assert_array_equal(block(table, "distribution"), [[0.2, 0.8]])


def test_attributes_behind_the_distribution_and_classes_that_never_occur():
    text = b"inst#,actual,predicted,error,distribution,,age,town\n1,1:a,3:c,+,0.2,0.1,*0.7,33,Ulm\n2,3:c,3:c,,0.2,0,*0.8,41,?\n"
    table = opened(text)
    assert described(table)[3:] == [
        ("distribution", "number", 3), ("age", "integer", None), ("town", "text", None),
    ]  # fmt: skip
    assert table["distribution"].fields == ("1", "2", "3")
    np.testing.assert_array_equal(block(table, "distribution"), [[0.2, 0.1, 0.7], [0.2, 0, 0.8]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inst#,actual,predicted,error,prediction\n1,2.5,2.4,,0.1\n", ["line 2", "evaluate a classifier"]),
        ("inst#,actual,predicted,error,prediction\n1,1:a\n", ["line 2", "Weka"]),
        ("inst#,actual,predicted,error\n1,1:a,1:a,,1\n", ["line 1", "'prediction'"]),
        ("inst#,actual,predicted,error,prediction\n", ["no rows"]),
        ("inst#,actual,predicted,error,prediction\n1,1:a,1:a,,high\n", ["line 2", "'high' is not a number"]),
    ],
)  # fmt: skip
def test_a_broken_list_of_weka_is_one_sentence(text, words):
    message = refused(text.encode())
    assert all(word in message for word in words), message


# ---- JSON


FRAME = pd.DataFrame({f"p_{name}": PROBS[:, j] for j, name in enumerate(CLASSES)}).assign(
    label=LABELS
)


@pytest.mark.parametrize("orient", ["split", "records", "index", "columns", "table"])
@pytest.mark.parametrize("indent", [0, 2])
@pytest.mark.parametrize("index", ["numbers", "names"])
def test_a_frame_of_pandas_in_every_orient(orient, indent, index):
    keys = [f"row {j}" for j in range(len(FRAME))]
    frame = FRAME if index == "numbers" else FRAME.set_axis(keys)
    table = opened(frame.to_json(orient=orient, indent=indent).encode())
    has_index = index == "names" and orient != "records"
    assert table.names == (("index",) if has_index else ()) + tuple(FRAME.columns)
    if has_index:
        assert texts(table, "index") == keys
    np.testing.assert_allclose(block(table, *FRAME.columns[:3]), PROBS, atol=1e-9)
    assert texts(table, "label") == LABELS


def test_values_alone_have_no_names():
    table = opened(FRAME.to_json(orient="values").encode())
    assert (table.names, table.named) == (("column 1", "column 2", "column 3", "column 4"), False)
    np.testing.assert_allclose(block(table, *table.names[:3]), PROBS, atol=1e-9)


@pytest.mark.parametrize("orient", ["index", "columns"])
def test_numbered_columns_and_rows_are_told_apart_by_their_number(orient):
    frame = pd.DataFrame(np.column_stack([PROBS, EXPECTED["labels"]]))
    table = opened(frame.to_json(orient=orient).encode())
    assert table.names == ("0", "1", "2", "3")
    np.testing.assert_allclose(block(table, "0", "1", "2"), PROBS, atol=1e-9)


def test_a_table_of_weights_and_biases():
    table = opened("wandb_table.json")
    assert described(table) == [
        ("id", "integer", None), ("truth", "text", None), ("guess", "text", None),
        *((f"score_{name}", "number", None) for name in CLASSES),
    ]  # fmt: skip
    np.testing.assert_array_equal(block(table, *table.names[3:]), PROBS)


def test_nested_probabilities_of_bigquery():
    table = opened("bigquery.jsonl")
    assert described(table) == [
        ("predicted_label", "text", None), ("predicted_label_probs", "number", 3), ("label", "text", None),
    ]  # fmt: skip
    fields = table["predicted_label_probs"].fields
    assert sorted(fields) == CLASSES
    order = [CLASSES.index(name) for name in fields]
    np.testing.assert_array_equal(block(table, "predicted_label_probs"), PROBS[:, order])


def test_nested_probabilities_in_parquet():
    rows = [[{"label": n, "prob": p} for n, p in zip(CLASSES, row, strict=True)] for row in PROBS]
    stream = io.BytesIO()
    pq.write_table(pa.table({"label": LABELS, "predicted_label_probs": rows}), stream)
    table = opened(stream.getvalue())
    assert table.format == "Parquet"
    assert table["predicted_label_probs"].fields == tuple(CLASSES)
    np.testing.assert_array_equal(block(table, "predicted_label_probs"), PROBS)


def test_vectors_of_spark_in_parquet():
    dense = [{"type": 1, "size": None, "indices": None, "values": row.tolist()} for row in PROBS]
    dense[1] = {"type": 0, "size": 3, "indices": [2], "values": [1.0]}
    kind = pa.struct(
        [("type", pa.int8()), ("size", pa.int32()), ("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]
    )  # fmt: skip
    stream = io.BytesIO()
    pq.write_table(pa.table({"label": LABELS, "probability": pa.array(dense, kind)}), stream)
    table = opened(stream.getvalue())
    expected = PROBS.copy()
    expected[1] = [0, 0, 1]
    np.testing.assert_array_equal(block(table, "probability"), expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"columns":["a","b"],"data":[[1,2],[3]]}', ["row 2", "1 values", "2 values"]),
        ('{"columns":["a","a"],"data":[[1,2]]}', ["two columns called 'a'"]),
        ('{"columns":["a"],"data":[1]}', ["row 1", "expected a list"]),
        ('{"columns":[],"data":[]}', ["no rows"]),
        ('{"schema":{"fields":[]},"data":[]}', ["no rows"]),
        ("[[1,2],3]", ["values other than objects"]),
        ("[]", ["no rows"]),
        ('{"a":[1,2],"b":[1]}', ["differ in length"]),
    ],
)
def test_a_broken_table_in_json_is_one_sentence(text, words):
    message = refused(text.encode())
    assert all(word in message for word in words), message


# ---- Excel


def test_the_sheet_of_a_workbook_that_holds_a_table():
    table = opened("predictions.xlsx")
    assert described(table) == [
        ("id", "integer", None), ("label", "text", None), *((f"p_{n}", "number", None) for n in CLASSES), ("day", "text", None),
    ]  # fmt: skip
    np.testing.assert_allclose(block(table, "p_cat", "p_dog", "p_fox"), PROBS)
    assert texts(table, "label") == LABELS
    assert texts(table, "day")[0] == "2026-01-01"
    assert table.format == "Excel, sheet 'test'"
    (notice,) = table.notices
    assert "'notes'" in notice.message


def two_sheets(second: list[list[object]]) -> bytes:
    """A workbook whose first sheet has seven rows of a label and a score."""
    first = [["label", "score"], *([row % 2, float(f"0.{row}5")] for row in range(1, 8))]
    return workbook(sheet(first), "one", second=sheet(second))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [["made by", "somebody"], ["on", 3]],
        [["a note"], ["of two rows"]],
        [["model"], [1], [2]],
    ],
)
def test_the_only_sheet_with_a_table_is_read(rows):
    loaded = read(two_sheets(rows), name="x.xlsx")
    assert (loaded.first.n, loaded.recognition.format) == (7, "Excel, sheet 'one'")


def test_of_several_sheets_with_tables_one_is_chosen(tmp_path):
    other = [["label", "score"], *([row % 2, 0.5] for row in range(9))]
    path = tmp_path / "x.xlsx"
    path.write_bytes(two_sheets(other))
    with pytest.raises(InputError, match="2 sheets hold tables") as caught:
        read(path)
    rows = [read(path, options=ReadingOptions(**r.options)).first.n for r in caught.value.readings]
    assert rows == [7, 9]
    assert calviz.load(path, sheet="two").n == 9
    assert "9 rows" in run("audit", path, "--sheet", "two").output
    asked = run("audit", path).output
    assert all(f"--sheet {name}" in asked for name in ("one", "two")), asked
    assert first_rows(path, options=ReadingOptions(sheet="two")).cells["score"][0] == "0.5"
    with pytest.raises(OptionError, match="there is no sheet 'three'; known: 'one', 'two'"):
        read(path, options=ReadingOptions(sheet="three"))
    with pytest.raises(OptionError, match="has no sheets"):
        read(b"label,p\n0,0.5\n1,0.6\n", name="x.csv", options=ReadingOptions(sheet="two"))
    path.with_name("p.csv").write_text("id,p\n1,0.5\n")
    with pytest.raises(InputError, match="save the labels as a file of their own"):
        read(path.with_name("p.csv"), labels=LabelFile(path, "id"))


@pytest.mark.slow
def test_a_sheet_that_is_a_huge_grid_of_few_cells_is_refused_before_it_is_read():
    cells = '<row r="1"><c r="XFD1"><v>1</v></c></row>' + "<row><c><v>1</v></c></row>" * 200_000
    assert "24.4 GiB" in refused(workbook(cells))


def test_a_sheet_with_two_cells_far_apart_is_refused_before_it_is_read():
    cells = '<row r="1"><c><v>1</v></c></row><row r="1048576"><c r="XFD{}"><v>1</v></c></row>'
    assert "128.0 GiB" in refused(workbook(cells.format(1_048_576)))
    assert "damaged" in refused(workbook(cells.format(1_048_577)))


def test_a_sheet_without_a_row_of_names():
    rows = sheet([row % 2, float(f"0.{row}5")] for row in range(1, 8))
    table = opened(workbook(rows))
    assert (table.named, table.names) == (False, ("column 1", "column 2"))
    np.testing.assert_allclose(
        block(table, "column 2")[:, 0], [float(f"0.{r}5") for r in range(1, 8)]
    )


def test_titles_and_sheets_of_notes_are_no_part_of_a_table():
    notes = sheet([["Review queue, first quarter"]])
    rows = [["outcome", "score", "notes"], *([row % 2, f"{row}5.0 %", ""] for row in range(1, 8))]
    titled = sheet([["Queue of January", "", ""], *rows])
    table = opened(workbook(notes, second=titled))
    assert (table.named, table.names) == (True, ("outcome", "score", "notes"))
    assert table.format == "Excel, sheet 'two'"
    assert any("'Queue of January' above" in notice.message for notice in table.notices)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (workbook('<row r="1"><c r="A1"><v>1</v></c></row>'), ["no sheet has rows"]),
        (workbook("")[:900], ["damaged"]),
        (workbook("", **{"xl/workbook.xml": "<no"}), ["damaged"]),
        (workbook('<row><c r="ZZZZ1"><v>1</v></c></row>'), ["damaged"]),
        (workbook('<row><c t="s"><v>7</v></c></row>'), ["damaged"]),
    ],
)
def test_a_broken_workbook_is_one_sentence(content, words):
    message = refused(content, "x.xlsx")
    assert all(word in message for word in words), message


def test_a_workbook_that_is_damaged_inside_is_one_sentence():
    content = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(workbook(""))) as whole,
        zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as packed,
    ):
        for name in whole.namelist():
            packed.writestr(name, whole.read(name))
        sheet = next(one for one in packed.infolist() if one.filename.endswith("sheet1.xml"))
    damaged = bytearray(content.getvalue())
    # Behind the header of the member and that of LZMA.
    start = sheet.header_offset + 30 + len(sheet.filename) + 9
    damaged[start : start + sheet.compress_size - 9] = b"\xff" * (sheet.compress_size - 9)
    assert "damaged" in refused(bytes(damaged), "x.xlsx")


# ---- R


def test_a_data_frame_of_r():
    table = opened("predictions.rds")
    assert described(table) == [
        ("obs", "text", None), *((f"p_{n}", "number", None) for n in CLASSES), ("fold", "integer", None), ("ok", "boolean", None),
    ]  # fmt: skip
    np.testing.assert_array_equal(block(table, "p_cat", "p_dog", "p_fox"), PROBS)
    assert texts(table, "obs") == LABELS


def item(kind: int, content: bytes, attributes: bytes = b"") -> bytes:
    return struct.pack(">i", kind | (0x200 if attributes else 0)) + content + attributes


def characters(*values: str | None) -> bytes:
    """A vector of texts."""
    inner = [
        item(9, struct.pack(">i", -1))
        if v is None
        else item(9 | 8 << 12, struct.pack(">i", len(v)) + v.encode())
        for v in values
    ]
    return item(16, struct.pack(">i", len(values)) + b"".join(inner))


def doubles(*values: float, attributes: bytes = b"") -> bytes:
    return item(14, struct.pack(f">i{len(values)}d", len(values), *values), attributes)


def integers(*values: int, attributes: bytes = b"") -> bytes:
    return item(13, struct.pack(f">i{len(values)}i", len(values), *values), attributes)


def pairs(**values: bytes) -> bytes:
    """A pairlist of attributes."""
    parts = [
        struct.pack(">i", 2 | 0x400)
        + item(1, item(9, struct.pack(">i", len(tag)) + tag.encode()))
        + value
        for tag, value in values.items()
    ]
    return b"".join(parts) + struct.pack(">i", 254)


def frame(**columns: bytes) -> bytes:
    attributes = pairs(names=characters(*columns))
    return b"X\n" + struct.pack(">3i", 2, 0x40000, 0x20300) + item(
        19, struct.pack(">i", len(columns)) + b"".join(columns.values()), attributes
    )  # fmt: skip


def matrix(attributes: dict[str, bytes]) -> bytes:
    return doubles(0.1, 0.2, 0.9, 0.8, attributes=pairs(dim=integers(2, 2), **attributes))


def test_missing_values_dates_and_a_matrix_in_a_column():
    names = item(19, struct.pack(">i", 2) + struct.pack(">i", 254) + characters("no", "yes"))
    table = opened(
        frame(
            y=characters("no", None),
            n=integers(7, -(1 << 31)),
            day=doubles(19_723.0, float("nan"), attributes=pairs(**{"class": characters("Date")})),
            prob=matrix({"dimnames": names}),
        )
    )
    assert described(table) == [
        ("y", "text", None), ("n", "integer", None), ("day", "text", None), ("prob", "number", 2),
    ]  # fmt: skip
    assert texts(table, "y") == ["no", ""]
    assert texts(table, "n") == ["7", ""]
    assert texts(table, "day") == ["2024-01-01", ""]
    assert table["prob"].fields == ("no", "yes")
    np.testing.assert_array_equal(block(table, "prob"), [[0.1, 0.9], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (frame(a=doubles(0.5, 0.5))[:-30], ["damaged"]),
        (frame(a=doubles(0.5), b=doubles(0.5, 0.5)), ["one length"]),
        (frame(a=item(25, b"")), ["no data (type 25)", "saveRDS"]),
        (b"X\n" + struct.pack(">3i", 2, 0, 0) + doubles(1.0), ["neither a data frame nor a matrix"]),
        (b"X\n" + struct.pack(">3i", 2, 0, 0) + item(14, struct.pack(">i", 1 << 30)), ["damaged"]),
        (b"X\n" + struct.pack(">3i", 2, 0, 0) + struct.pack(">i", 2 | 0x200) * 500, ["damaged"]),
        (frame(f=integers(3, attributes=pairs(levels=characters("a"), **{"class": characters("factor")}))), ["damaged"]),
        (gzip.compress(b"RDX3\nX\n\0\0\0\3", mtime=0), ["workspaces", "saveRDS"]),
        (b"A\n3\n263171\n", ["in this form", "saveRDS"]),
    ],
)  # fmt: skip
def test_a_broken_object_of_r_is_one_sentence(content, words):
    message = refused(content, "x.rds")
    assert all(word in message for word in words), message


# ---- Text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("label,p\n1,0.5\n0,0.25\nMean,0.375\n", "label"),
        ("id,label,p\n7,1,0.5\n8,0,0.25\nTotal,,0.75\n", "id"),
        ("truth,p\nstay,51%\nchurn,9%\nAverage:,30%\n", "truth"),
        ("id;p;y\n1;41,5 %;1\n2;3 %;0\nSumme;50 %;120\n", "id"),
        ("id\ty\tp\r\na\t1\t.5\r\nb\t0\t.25\r\nGesamt\t\t\r\n\r\n", "id"),
    ],
)
def test_a_line_of_totals_is_named_and_left_out_on_request(text, found):
    message = refused(text.encode(), "x.csv")
    assert f"column '{found}'" in message
    assert "line of totals" in message
    assert "delete it, or ask to leave it out" in message
    loaded = read(text.encode(), options=ReadingOptions(repair=("drop-totals",)))
    without = "\n".join(text.split("\n")[:3]).encode()
    np.testing.assert_array_equal(loaded.first.probs, read(without).first.probs)
    np.testing.assert_array_equal(loaded.first.labels, read(without).first.labels)
    last = text.split("\n")[3].strip("\r")
    assert any(last.replace("\t", " ").strip() in made for made in loaded.repairs_made)
    # The columns are those without that line, so that their roles can be chosen meanwhile.
    assert first_rows(text.encode()).roles == first_rows(without).roles


def table_below(
    titles: list[str], cut: str, comma: bool = False, last: str = "", more: str = ""
) -> bytes:
    """Twelve rows with one probability, in which titles above and lines below have other cells."""
    rows = [
        cut.join((f"a{j}", f"{j / 20 + 0.2:.3f}".replace(".", "," if comma else "."), "01"[j % 2]))
        for j in range(12)
    ]
    return "\n".join([*titles, cut.join(("id", "p", "label")), more, *rows, last]).encode()


@pytest.mark.parametrize("comma", [False, True])
@pytest.mark.parametrize("cut", ["\t", ";", "|"])
@pytest.mark.parametrize(
    "titles",
    [
        ["Export du 03/04/2025 - Hôpital Saint-Luc, service de radiologie", ""],
        ["Model 3, version 2.1", "made on 2025-04-03, by A. B.", "not to be passed on"],
        ['"Report, quoted; of two', 'lines"', "# a comment"],
        ["Date{}2025-04-03", "Clinic{}North"],
        ["Report{}{}", "{}{}"],
    ],
)
def test_titles_above_a_table_are_no_part_of_it(titles, cut, comma):
    titles = [title.replace("{}", cut) for title in titles]
    content = table_below(titles, cut, comma)
    plain, loaded = read(table_below([], cut, comma)), read(content)
    np.testing.assert_array_equal(loaded.first.probs, plain.first.probs)
    np.testing.assert_array_equal(loaded.first.labels, plain.first.labels)
    (said,) = [n.message for n in loaded.notices if n.code == "DATA001"]
    first = titles[0].strip(f'{cut}"').replace("\t", " ")[:20]
    assert said.startswith(f"the table begins in line {len(titles) + 1}; '{first}")
    # Lines are counted from the top of the file, and what stands at its end is asked about as ever.
    with pytest.raises(
        InputError, match=rf"line {len(titles) + 15} has 1 cell, expected 3.*leave them out"
    ):
        read(table_below(titles, cut, comma, last="Source: registry"))
    with pytest.raises(InputError, match="line of totals"):
        read(table_below(titles, cut, comma, last=cut.join(("Total", "", "12"))))
    with pytest.raises(InputError, match=rf"line {len(titles) + 2} holds units \('\[%\]'"):
        read(table_below(titles, cut, comma, more=cut.join(("", "[%]", "[0/1]"))))


@pytest.mark.parametrize(
    "lines",
    [
        # Rows of another table, a row of R's, groups of columns, and rows without a header.
        ["id,p,label,a", "1,0.5,0,2", "2,0.25,1,3", "id,p,label"],
        ["p,label", "a,n.a.,1"],
        [",Model,Truth", "id,p,label"],
        ["Title", "a,0.5,1"],
    ],
)
def test_lines_that_may_be_rows_are_not_taken_for_titles(lines):
    rows = [f"b{j},{j / 20 + 0.2:.3f},{j % 2}" for j in range(12)]
    with suppress(InputError):
        loaded = read("\n".join([*lines, *rows]).encode())
        assert "DATA001" not in {notice.code for notice in loaded.notices}


@pytest.mark.parametrize("cut", ["\t", ";", " ", ","])
def test_row_names_of_r_beside_any_separator(cut):
    rows = [cut.join((f'"{j}"', f"{j / 200 + 0.1}", "01"[j % 2])) for j in range(120)]
    data = read("\n".join([cut.join(('"p"', '"label"')), *rows]).encode()).first
    np.testing.assert_allclose(data.probs[:, 1], np.arange(120) / 200 + 0.1)


def test_titles_above_a_table_that_is_profiled(tmp_path):
    path = tmp_path / "titled.csv"
    path.write_bytes(table_below(["Report 3, of April", ""], ";"))
    assert calviz.profile(path, engine="polars").n == 12


def test_a_profile_names_no_repair_as_a_remedy(tmp_path):
    path = tmp_path / "x.csv"
    for by, ways in ((100, []), (1, ["--kind probabilities --scores prob_pct"])):
        rows = "".join(f"{j % 2},{by * (j + 1) / 40}\n" for j in range(30))
        path.write_text(f"label,prob_pct\n{rows}")
        code, _, said = outcome("profile", path, "--out", tmp_path / "p.parquet")
        assert code == 2
        assert "to divide the values by 100, do so beforehand" in said
        assert "--repair" not in said
        assert [line.rpartition(": ")[2] for line in said.strip().split("\n")[1:]] == ways


def test_a_line_of_totals_far_below_the_beginning_is_named(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("label,p\n" + "1,0.5\n0,0.25\n" * 120_000 + "Total,1\n")
    with pytest.raises(InputError, match="line of totals"):
        read(path)
    assert read(path, options=ReadingOptions(repair=("drop-totals",))).first.n == 240_000
    with pytest.raises(InputError, match=r"^long.csv.*line of totals.*; delete it\.$"):
        calviz.profile(path)


def test_a_last_row_that_could_be_one_of_totals_among_many_texts_is_a_prediction():
    rows = "".join(f"word{j},{j % 2},{j / 40}\n" for j in range(40))
    assert read(f"text,label,p\n{rows}total,1,0.75\n".encode()).first.n == 41
    with pytest.raises(InputError, match="line of totals"):
        read(f"text,label,p\n{rows}total,20,0.75\n".encode())


def test_a_class_that_is_called_total_is_no_line_of_totals():
    table = opened(b"label,p_mean,p_total\nmean,0.5,0.5\ntotal,0.5,0.5\ntotal,0.25,0.75\n")
    assert texts(table, "label") == ["mean", "total", "total"]


def test_row_names_that_r_gives_no_name():
    table = opened(b'"label" "p_no" "p_yes"\n"1" "no" 0.75 0.25\n"2" "yes" 0.5 0.5\n')
    assert table.names == ("Unnamed: 0", "label", "p_no", "p_yes")
    np.testing.assert_array_equal(block(table, "p_no", "p_yes"), [[0.75, 0.25], [0.5, 0.5]])
    assert texts(table, "label") == ["no", "yes"]
    assert table.line(1) == 3


# ---- Predictions that tools wrote (`benchmarks/record_predictions.py`), against what the tools themselves say of them


FILES_OF_TOOLS = Path(__file__).parents[2] / "inputs/predictions"
RECORDED = json.loads((FILES_OF_TOOLS / "recorded.json").read_text())


@pytest.mark.parametrize(
    ("file", "tool", "measured"),
    [
        ("autogluon.csv", "autogluon", ("accuracy", "nll")),
        ("autogluon.parquet", "autogluon", ("accuracy", "nll")),
        ("hugging_face_all.jsonl", "hugging_face", ("accuracy", "nll")),
        ("hugging_face_trainer.npz", "hugging_face", ("accuracy", "nll")),
        ("hugging_face_top.jsonl", "hugging_face", ("accuracy",)),
    ],
)
def test_files_of_tools_are_read_without_an_option(file, tool, measured):
    data = read(FILES_OF_TOOLS / file).first
    evaluation = calviz.evaluate(data, measured)
    for key in measured:
        # The pipeline computes in float32.
        assert evaluation[key].value == pytest.approx(RECORDED[tool][key], rel=1e-5)


def test_a_frame_of_class_columns_beside_the_labels():
    frame = pd.read_parquet(FILES_OF_TOOLS / "autogluon.parquet")
    scores = frame.drop(columns="species")
    for data in (
        calviz.Predictions.from_arrays(frame["species"], scores),
        calviz.Predictions.from_frame(frame, label="species"),
    ):
        value = calviz.evaluate(data, ["nll"])["nll"].value
        assert value == pytest.approx(RECORDED["autogluon"]["nll"], rel=1e-5)


def test_the_top_choice_of_a_pipeline_is_said_to_be_one():
    loaded = read(FILES_OF_TOOLS / "hugging_face_top.jsonl")
    assert loaded.recognition.kind == "confidence"
    assert any("'target' as the true class" in n.message for n in loaded.notices)
    trained = read(FILES_OF_TOOLS / "hugging_face_trainer.npz")
    assert trained.recognition.kind == "logits"


# ---- No silent swap in fields, numbers beside words, and what no header says


def _rows_of(k: int, order: list[int]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Probabilities of k classes, their labels, and another order of the columns."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.5), 300)
    return p, (p.cumsum(axis=1) > rng.random(300)[:, None]).argmax(axis=1), order


@pytest.mark.parametrize(
    "names",
    [
        ("LABEL_0", "LABEL_1"),
        ("kept", "left"),
        ("class 0", "class 1", "class 2"),
        ("ant", "bee", "cow"),
    ],
)
@pytest.mark.parametrize("pairs", [False, True])
def test_numbers_are_matched_with_fields_in_any_order(names: tuple[str, ...], pairs: bool) -> None:
    p, y, order = _rows_of(len(names), [2, 0, 1][-len(names) :] if len(names) == 3 else [1, 0])
    records = []
    for i, row in enumerate(p):
        scores = {names[j]: row[j] for j in order}
        listed = [{"label": name, "score": score} for name, score in scores.items()]
        records.append({"gold_label": int(y[i]), "scores": listed if pairs else scores})
    read_as = read("\n".join(map(json.dumps, records)).encode(), name="x.jsonl").first
    hit = read_as.probs.argmax(axis=1) == read_as.labels
    np.testing.assert_array_equal(hit, p.argmax(axis=1) == y)


def test_few_rows_do_not_say_which_number_is_which_field() -> None:
    rows = [
        {"y": 0, "probs": {"left": 0.2, "kept": 0.8}},
        {"y": 1, "probs": {"left": 0.9, "kept": 0.1}},
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    with pytest.raises(InputError, match="nothing says for sure which class") as caught:
        read(content, name="x.jsonl")
    for way in caught.value.readings:
        probs = read(content, name="x.jsonl", options=ReadingOptions(**way.options)).first
        first = way.label.startswith("0 is 'left'")
        assert ((probs.probs.argmax(axis=1) == probs.labels).mean() == 0) == first


def test_numbered_columns_whose_order_words_contradict_are_asked_about() -> None:
    p, y, _ = _rows_of(2, [])
    lines = [f"{('churn', 'stay')[k]},{a},{b}" for k, (a, b) in zip(y, p, strict=True)]
    content = "\n".join(["resp,p1,p2", *lines]).encode()
    with pytest.raises(InputError, match="nothing says for sure which class") as caught:
        read(content)
    assert [way.label for way in caught.value.readings] == [
        "stay is '2', churn is '1'",
        "stay is '1', churn is '2'",
    ]
    right = read(content, options=ReadingOptions(**caught.value.readings[0].options)).first
    np.testing.assert_allclose(right.probs[:, 1], p[:, 0])


def test_an_empty_column_is_not_used_and_a_header_without_a_name_stays_so(tmp_path: Path) -> None:
    rows = [f"{i},{i % 2},0.{i % 9 + 1},,{'ab'[i % 3 > 0]}" for i in range(90)]
    content = "\n".join([",label,prob,Notes,site", *rows]).encode()
    for loaded in (None, read(content)):
        assert first_rows(content, read=loaded).roles["Notes"] == "ignored"
    loaded = read(content)
    (said,) = [n.message for n in loaded.notices if "Notes" in n.message]
    assert said.endswith("Notes (empty)")
    write_predictions(loaded.first, out := tmp_path / "out.csv", before=loaded.first, file=loaded)
    assert out.read_text().startswith(",label,prob,Notes,site,uncalibrated\n0,0,0.1,,a,0.1")


def test_the_line_of_the_header_of_a_sheet_is_told() -> None:
    cells = [["Report"], [], ["label", "prob", "site"], *([i % 2, 0.1, "a"] for i in range(30))]

    def cell(value: object) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    rows = (f"<row r='{i}'>{''.join(map(cell, row))}</row>" for i, row in enumerate(cells, 1))
    book = workbook("".join(rows))
    assert read(book, options=ReadingOptions(header_line=3)).first.n == 30
    assert opened(book).names == ("label", "prob", "site")
    with pytest.raises(InputError, match="Report"):
        read(book, options=ReadingOptions(header_line=1))
    with pytest.raises(OptionError, match="has no header lines; leave out the header line"):
        read(b'{"y":1,"p":0.3}\n' * 20, name="x.jsonl", options=ReadingOptions(header_line=1))


def test_arrays_of_another_length_are_left_out_and_those_of_class_names_used(
    tmp_path: Path,
) -> None:
    p, y, order = _rows_of(3, [2, 0, 1])
    names = np.array(["ant", "bee", "cow"])
    arrays = {"y_prob": p[:, order], "y_true": names[y], "classes_": names[order]}
    np.savez(path := tmp_path / "x.npz", **arrays, sites=np.array([*"abc"]))
    loaded = read(path)
    (said,) = [n.message for n in loaded.notices if "sites" in n.message]
    assert said == "'sites' is left out: it has 3 values for 300 rows"
    assert (loaded.first.probs.argmax(axis=1) == loaded.first.labels).mean() == np.mean(
        p.argmax(axis=1) == y
    )


@pytest.mark.parametrize("of_one_each", [False, True])
def test_models_in_files_that_are_read_block_by_block_are_refused(
    tmp_path: Path, of_one_each: bool
) -> None:
    for k, name in enumerate("ab"):
        models = [name] * 80 if of_one_each else [*"xy"] * 40
        rows = [f"{i // 2},{m},{i % 2},0.{i % 9 + 1}" for i, m in enumerate(models)]
        (tmp_path / f"{k}.csv").write_text("\n".join(["case,model,label,prob", *rows]))
    for make in (calviz.sample_rows, calviz.profile):
        with pytest.raises(InputError, match="'model' has 2 values that may name models"):
            make(str(tmp_path))
        make(str(tmp_path), model_column="")


# ---- Classes beside their scores, ranks, raw scores, names of SPSS


def _lines(rows: list[dict[str, object]]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def _same(content: bytes, name: str, p: np.ndarray, y: np.ndarray, classes: list[str]) -> None:
    """Check that each class has its own scores and labels."""
    data = read(content, name=name).first
    order = [data.class_names.index(c) for c in classes]
    np.testing.assert_allclose(data.probs[:, order], p, atol=1e-9)
    assert [data.class_names[k] for k in data.labels] == [classes[k] for k in y]


@pytest.mark.parametrize("classes", [["no", "yes"], ["1", "0"], ["ant", "bee", "cow"]])
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("form", ["vertex", "vertex_images", "sagemaker", "text", "zero_shot"])
def test_scores_beside_a_list_of_their_classes(classes: list[str], by_row: bool, form: str) -> None:
    p, y, _ = _rows_of(len(classes), [])
    rows: list[dict[str, object]] = []
    for row, k in zip(p, y, strict=True):
        order = [*np.argsort(-row)] if by_row else [*range(len(classes))][::-1]
        names, scores = [classes[j] for j in order], [float(row[j]) for j in order]
        rows.append(
            {
                "vertex": {
                    "instance": {"age": "41", "label": classes[k]},
                    "prediction": {"classes": names, "scores": scores},
                },
                "vertex_images": {
                    "instance": {"label": classes[k]},
                    "prediction": {
                        "ids": [f"9{classes.index(n)}" for n in names],
                        "displayNames": names,
                        "confidences": scores,
                    },
                },
                "sagemaker": {"label": classes[k], "probabilities": scores, "labels": names},
                "text": {"label": classes[k], "probabilities": str(scores), "labels": str(names)},
                "zero_shot": {
                    "sequence": "x",
                    "labels": names,
                    "scores": scores,
                    "gold": classes[k],
                },
            }[form]
        )
    if form == "text":
        text = pd.DataFrame(rows).to_csv(index=False).encode()
        _same(text, "x.csv", p, y, classes)
        return
    _same(_lines(rows), "x.jsonl", p, y, classes)


def test_lists_that_differ_in_length_are_one_sentence() -> None:
    p, y, _ = _rows_of(3, [])
    names = ["ant", "bee", "cow"]
    rows = [
        {"instance": {"y": names[k]}, "prediction": {"classes": names, "scores": [*row[: 3 - (i == 4)]]}}
        for i, (row, k) in enumerate(zip(p, y, strict=True))
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"row 5.*3 classes in 'prediction.classes', but 2 scores"):
        read(_lines(rows), name="x.jsonl")


def test_words_beside_numbers_that_are_no_classes_stay_as_they_are() -> None:
    p, y, _ = _rows_of(2, [])
    rows = [
        {"label": int(k), "probs": [*row], "tokens": [f"w{i}", f"v{i % 7}"]}
        for i, (row, k) in enumerate(zip(p, y, strict=True))
    ]
    np.testing.assert_allclose(read(_lines(rows), name="x.jsonl").first.probs, p)


def test_the_first_classes_of_each_row_are_asked_about() -> None:
    p, y, _ = _rows_of(5, [])
    order = np.argsort(-p, axis=1)[:, :2]
    frame = pd.DataFrame({"true_label": [f"c{j}" for j in y]})
    for rank in range(2):
        frame[f"top{rank + 1}_label"] = [f"c{j}" for j in order[:, rank]]
        frame[f"top{rank + 1}_score"] = np.take_along_axis(p, order, 1)[:, rank]
    content = frame.to_csv(index=False).encode()
    with pytest.raises(InputError, match="top 2 classes") as caught:
        read(content)
    data = read(content, options=ReadingOptions(**caught.value.readings[0].options)).first
    np.testing.assert_allclose(data.confidence, p.max(axis=1))
    np.testing.assert_array_equal(data.correct, p.argmax(axis=1) == y)


def test_a_pipeline_that_names_only_the_first_classes_is_one_sentence() -> None:
    p, y, _ = _rows_of(5, [])
    rows = [
        {"label": f"c{k}", "scores": [{"label": f"c{j}", "score": row[j]} for j in np.argsort(-row)[:2]]}
        for row, k in zip(p, y, strict=True)
    ]  # fmt: skip
    with pytest.raises(InputError, match=r"more than 2 of 5 classes.*top_k=None"):
        read(_lines(rows), name="x.jsonl")


@pytest.mark.parametrize("name", ["RawFormulaVal", "raw_score", "margin"])
def test_raw_scores_are_asked_about(name: str) -> None:
    p, y, _ = _rows_of(2, [])
    p = p.clip(1e-6, 1 - 1e-6)
    raw = np.log(p[:, 1] / (1 - p[:, 1]))
    content = pd.DataFrame({name: raw, "Label": y}).to_csv(index=False).encode()
    with pytest.raises(InputError, match="log-odds of the event") as caught:
        read(content)
    data = read(content, options=ReadingOptions(**caught.value.readings[0].options)).first
    np.testing.assert_allclose(data.probs[:, 1], p[:, 1], atol=1e-6)


@pytest.mark.parametrize("classes", [["no", "yes"], ["0", "1"], ["ant", "bee", "cow"]])
@pytest.mark.parametrize("names", [("$L-risk", "$LP-risk"), ("$R-risk", "$RC-risk")])
def test_the_confidence_of_spss_is_not_the_probability_of_the_event(
    classes: list[str], names: tuple[str, str]
) -> None:
    p, y, _ = _rows_of(len(classes), [])
    guessed = [classes[j] for j in p.argmax(axis=1)]
    columns = {"risk": [classes[k] for k in y], names[0]: guessed, names[1]: p.max(axis=1)}
    data = read(pd.DataFrame(columns).to_csv(index=False).encode()).first
    np.testing.assert_allclose(data.confidence, p.max(axis=1))
    np.testing.assert_array_equal(data.correct, p.argmax(axis=1) == y)


def test_files_are_called_what_they_are() -> None:
    p, y, _ = _rows_of(2, [])
    pair = []
    for name, array in (("probs.npy", p), ("labels.npy", y)):
        np.save(stream := io.BytesIO(), array)
        pair.append((name, stream.getvalue()))
    [(name, content)] = zipped(pair)
    assert read(content, name=name).recognition.format == "NPY files of scores and labels"
    text = pd.DataFrame({"label": y, "p": p[:, 1]}).to_csv().encode()
    assert read(text).recognition.sentence().endswith("row names")


def test_a_second_identifier_is_no_group() -> None:
    p, y, _ = _rows_of(2, [])
    columns = {"id": range(300), "det_id": range(900, 1200), "class": np.where(y, "red", "blue")}
    content = pd.DataFrame(columns | {"score": p[:, 1]}).to_csv(index=False).encode()
    assert first_rows(content).roles["det_id"] == "ignored"

"""Text tables: separators, headers, encodings, quoting, and what is wrong with cells."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.data import ReadingOptions, read
from calviz.data import csv_dialect as text_blocks
from calviz.data import csv_table as csv_format

ROWS = [(0, 0.5, 0.5), (1, 0.25, 0.75), (0, 0.625, 0.375)]
PROBS = np.array([row[1:] for row in ROWS])
LABELS = [row[0] for row in ROWS]


def written(separator: str = ",", header: str | None = "label,p_a,p_b", decimal: str = ".") -> str:
    lines = [separator.join(str(v).replace(".", decimal) for v in row) for row in ROWS]
    head = [header.replace(",", separator)] if header else []
    return "\n".join([*head, *lines]) + "\n"


def predictions(data: str | bytes, name: str = "x.csv", **options: object) -> Predictions:
    raw = data.encode() if isinstance(data, str) else data
    loaded = read(raw, name=name, options=ReadingOptions(**options)).first  # type: ignore[arg-type]
    assert isinstance(loaded, Predictions)
    return loaded


def refused(data: str | bytes, name: str = "x.csv", **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        predictions(data, name, **options)
    assert "\n" not in str(caught.value)
    return caught.value


SAME = {
    "comma": written(),
    "semicolon": written(";"),
    "tab": written("\t"),
    "pipe": written("|"),
    "caret": written("^"),
    "spaces": written(" "),
    "aligned": "label   p_a    p_b\n" + "\n".join(f"{y}  {a:8.3f}  {b:8.3f}" for y, a, b in ROWS) + "\n",
    "decimal comma": written(";", decimal=","),
    "decimal comma and tabs": written("\t", decimal=","),
    "no header": written(header=None),
    "no header, decimal comma": written(";", None, ","),
    "no newline at the end": written().rstrip("\n"),
    "windows": written().replace("\n", "\r\n"),
    "old mac": written().replace("\n", "\r"),
    "byte-order mark": "\ufeff" + written(),
    "utf-16": written().encode("utf-16"),
    "quoted": written(header='"label","p_a","p_b"').replace("0.5,", '"0.5",'),
    "trailing separator": written().replace("\n", ",\n"),
    "blank lines": written().replace("\n", "\n\n"),
    "lines of spaces": written().replace("\n", "\n   \n"),
    "padded": written().replace(",", " , "),
    "comments": "# one\n\n# two, with comma\n" + written(),
    "commented header": "#" + written(),
    "savetxt header": "# label p_a p_b\n" + written(" ", None),
    "excel": "sep=;\n" + written(";"),
    "gzip": gzip.compress(written().encode()),
    "two gzip members": gzip.compress(b"label,p_a,p_b\n") + gzip.compress(written(header=None).encode()),
    "exponents": written().replace("0.5", "5.0E-01"),
    "bare points": written().replace("0.5", ".5"),
    "floats as labels": "label,p_a,p_b\n" + "\n".join(f"{y:.18e},{a!r},{b!r}" for y, a, b in ROWS),
}  # fmt: skip


@pytest.mark.parametrize("key", SAME)
def test_every_way_of_writing_gives_the_same(key: str) -> None:
    data = predictions(SAME[key])
    assert np.array_equal(data.probs, PROBS)
    assert data.labels.tolist() == LABELS


def test_a_file_an_open_stream_and_bytes_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text(written())
    sources = [read(path), read(str(path)), read(path.read_bytes(), name="some.csv")]
    with path.open("rb") as stream:
        sources.append(read(stream))
    sources.append(read(io.BytesIO(path.read_bytes()), name="some.csv"))
    assert len({s.digest for s in sources}) == 1
    assert len({s.first.fingerprint() for s in sources}) == 1
    assert {(s.file, s.size) for s in sources} == {("some.csv", path.stat().st_size)}


def test_a_file_that_changed_has_no_digest(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text(written())
    loaded = read(path)
    path.write_text(written() + "0,1,0\n")
    with pytest.raises(InputError, match="changed"):
        _ = loaded.digest


@pytest.mark.parametrize(
    ("blocks", "tail"), [(7, 99), (40, 99), (40, 11), (400, 39), (1 << 20, 99)]
)
def test_blocks_do_not_matter(blocks: int, tail: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", blocks)
    monkeypatch.setattr(text_blocks, "_TAIL", tail)
    rng = np.random.default_rng(0)
    p = rng.random(200)
    notes = ["plain", "é€", 'a ""quoted"" word', "two\nlines", "a, comma"]
    lines = [f'{int(v > 0.5)},{v!r},{1 - v!r},"{notes[j % 5]}"' for j, v in enumerate(p.tolist())]
    data = predictions("label,p_a,p_b,note\n" + "\n".join(lines) + "\n")
    assert np.array_equal(data.probs[:, 0], p)
    expected = [notes[j % 5].replace('""', '"') for j in range(200)]
    assert data.groups["note"].values().tolist() == expected


@pytest.mark.parametrize("words", [("x", "\0"), ("\0", "x")])
def test_of_several_errors_in_blocks_read_ahead_the_first_is_reported(
    words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 1 << 12)
    beginning = "label,p_a,p_b\n" + 120_000 * "0,.25,.75\n"  # recognition reads 1 MiB
    first, second = (f"0,.5,{word}\n" + 500 * "0,.5,.5\n" for word in words)
    error = refused(beginning + first + second)
    assert error.line == 120_002
    assert ("NUL" in str(error)) == (words[0] == "\0")


@pytest.mark.parametrize("blocks", [30, 1 << 20])
def test_lines_are_counted_through_quoted_newlines_and_blanks(
    blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", blocks)
    text = 'label,p_a,p_b,note\n0,.5,.5,"a\nb"\n\n1,.4,.6,c\n0,.5,x,d\n'
    error = refused(text)
    assert (error.row, error.line, error.column) == (3, 6, "p_b")
    error = refused('label,p_a,p_b,note\n0,.5,.5,"a\nb"\n\n1,.4,.6,c\n0,nan,.5,d\n')
    assert (error.row, error.line, error.column) == (3, 6, "p_a")


def test_missing_numbers_are_told_from_written_nan() -> None:
    error = refused("label,p_a,p_b\n0,,.5\n1,NA,.6\n0,nan,.5\n")
    for part in (
        "row 1 (line 2) 'p_a' is empty",
        "row 2",
        "row 3 (line 4) 'p_a' is NaN",
        "3 rows of 3",
    ):
        assert part in str(error)
    assert [r.key for r in error.repairs] == ["drop-missing"]


def test_late_latin_1_is_found_and_said() -> None:
    text = "label,p_a,p_b,site\n" + "0,.5,.5,x\n" * 150_000
    loaded = read(text.encode() + "1,.4,.6,é\n".encode("latin-1"), name="x.csv")
    assert [n.code for n in loaded.notices] == ["DATA002"]
    assert loaded.first.groups["site"].levels == ("x", "é")
    assert loaded.first.n == 150_001


def test_large_tables_are_kept_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    assert predictions(written()).probs.dtype == np.float64
    monkeypatch.setenv("CALVIZ_MAX_DOUBLE_CELLS", "2")
    loaded = read(written().encode(), name="x.csv")
    assert loaded.first.probs.dtype == np.float32  # type: ignore[union-attr]
    assert any("single precision" in n.message for n in loaded.notices)


BAD = {
    "": "empty",
    "\n\n": "nothing but blank",
    "label,p_a,p_b\n": "no rows",
    "label,p_a,p_a\n0,.5,.5\n": "two columns called 'p_a'",
    "label,p_a,p_b\n0,.5,.5\n1,.4\n": "line 3 has 2 cells, expected 3",
    "label,p_a,p_b\n0,.5,.5\n1,.4,.6,.7\n": "line 3 has 4 cells, expected 3",
    "label,p_a,p_b\n0,.5,.5\n1,.4,\0\n": "line 3: there are NUL bytes",
    "label,p_a,p_b\n0,.5,Infinity\n": "row 1 (line 2) 'p_b' is infinite",
    "<html><body>\n</body></html>": "web page",
    "%PDF-1.7 ": "document",
}


@pytest.mark.parametrize("text", BAD)
def test_refused(text: str) -> None:
    assert BAD[text] in str(refused(text))


@pytest.mark.slow
def test_truncated_and_exploding_gzip(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gzip.compress(np.random.default_rng(0).bytes(5_000).hex().encode())
    assert "damaged or incomplete" in str(refused(whole[:-20], "x.csv.gz"))
    bomb = gzip.compress(b"label,prob\n" + b"0,1\n" * (20 << 20))
    assert "CALVIZ_MAX_EXPANSION" in str(refused(bomb, "x.csv.gz"))


def test_limits_are_named_and_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALVIZ_MAX_CLASSES", "1")
    assert "CALVIZ_MAX_CLASSES" in str(refused(written()))
    monkeypatch.setenv("CALVIZ_MAX_CLASSES", "2")
    assert predictions(written()).n == 3
    monkeypatch.setenv("CALVIZ_MAX_FILE_BYTES", "10")
    assert "CALVIZ_MAX_FILE_BYTES" in str(refused(written()))


def test_folders_and_absent_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.csv", str(tmp_path / "a\0b")):
        with pytest.raises(InputError):
            read(path)


@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("label,text,p_a,p_b", ["0,{},0.5,0.5"]),
        ("label,p_a,p_b,text", ["0,0.5,0.5,{}"]),  # the rest of the file is one cell
        ("label,p_a,p_b,text", ["0,0.5,0.5,{}", '0,0.5,0.5,"b"']),  # closed by the next row
    ],
)
def test_a_quotation_mark_that_is_not_closed_is_named(
    before: str, after: list[str], ends: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", block)
    rows = ["1" + after[0][1:].format('"x\ny"')] * 3 + [after[0].format('"a')]
    text = ends.join([before, *rows, *(row.format("b") for row in after[1:] or after)]) + "\n"
    line = text[: text.index('"a')].count("\n") + 1
    error = refused(text)
    assert f"the quotation mark that opens a cell in line {line} is not closed" in str(error)


def test_quotation_marks_within_a_cell_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 64)
    rows = ['0,0.5,0.5,5" pipe', '1,0.5,0.5,"a ""b"" c"', '0,0.5,0.5,"f"g']
    assert predictions("\n".join(["label,p_a,p_b,text", *rows])).n == 3

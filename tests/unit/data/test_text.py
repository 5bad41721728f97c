"""CSV and other text."""

from __future__ import annotations

import gzip
import io
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.core.blocks import Factor
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import ReadingOptions, read
from calviz.data import csv_dialect as text_blocks
from calviz.data.arrow_tables import unpacked_size
from calviz.data.format import Source
from calviz.data.formats import csv_table as csv_format
from calviz.data.parquet_tables import declared_values
from tests.inputs.bombs import npy_header, zipped
from tests.inputs.relatives import CLASSES, JSONL, NAMES, N, feather, npz, text
from tests.inputs.relatives import LABELS as LABELS_OF_FINDS
from tests.inputs.relatives import PROBS as PROBS_OF_FINDS
from tests.inputs.relatives import SAME as SAME_OF_FINDS

# ---- Text tables: separators, headers, encodings, quoting, and what is wrong with cells


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
    "decimal comma in quotes": re.sub(r"[\d,]+,\d+", r'"\g<0>"', written(";", decimal=",")).replace(";", ","),
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
    "an empty last cell": "label;my site;p_a;p_b;note\n" + "\n".join(f"{y};Bad Ems;{a!r};{b!r};" for y, a, b in ROWS) + "\n",
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


@pytest.mark.slow
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
        "3 of 3 rows",
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
    "label,p_a,p_b\n0,.5,.5\n1,.4,\0\n": "line 3: there are NUL bytes: this is not a text file; write it again as text in UTF-8",
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


#: Lines that are no rows: before the row of this number.
STRAY = {3: "0,.5,.5,extra", 40: "garbage line", 41: "1,.5", 90: "0,.5,.5,"}


def with_stray_lines(last: str = "0.5") -> tuple[str, str]:
    """A table with stray lines, and without those that have another number of cells; `last` is a cell of the last row."""
    rows = [f"{i % 2},{i / 100},{last if i == 99 else 1 - i / 100}" for i in range(100)]
    stray = [line for i, row in enumerate(rows) for line in (STRAY.get(i), row) if line]
    fine = [line for line in stray if line not in [*STRAY.values()][:3]]
    return tuple("\n".join(["label,p_a,p_b", *lines]) for lines in (stray, fine))


@pytest.mark.parametrize("block", [700, 1 << 20])
def test_a_few_lines_with_other_cells_are_left_out_on_request(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", block)
    text, fine = with_stray_lines(last="0.01")
    if block == 1 << 20:
        error = refused(text)
        assert "line 5 has 4 cells, line 43 has 1 cell, line 45 has 2 cells, expected 3" in str(
            error
        )
        assert [repair.key for repair in error.repairs] == ["drop-ragged"]
    done = read(text.encode(), name="x.csv", options=ReadingOptions(repair=("drop-ragged",)))
    np.testing.assert_array_equal(done.first.probs, predictions(fine).probs)
    np.testing.assert_array_equal(done.first.labels, predictions(fine).labels)
    where = "line 5 has 4 cells, line 43 has 1 cell, line 45 has 2 cells"
    assert done.repairs_made == (f"drop-ragged: {where}, expected 3: left out",)
    # The lines after them are counted as in the file.
    wrong = refused(with_stray_lines(last="oops")[0], repair="drop-ragged")
    assert wrong.line == 105


@pytest.mark.parametrize(
    "content",
    [
        "label,p_a\n" + "0,.5,.5,.5\n1,.25,.75,.5\n" * 20,
        "label,p_a,p_b\n" + "0,.5,.5\n" * 8 + "1,.25\n",
        "label,p_a,p_b,p_c\n" + "0,.5,.5\n" * 60,
    ],
)
def test_lines_with_other_cells_that_are_not_few_are_refused(content: str) -> None:
    assert refused(content).repairs == ()
    assert "expected" in str(refused(content, repair="drop-ragged"))


def test_quotation_marks_within_a_cell_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_format, "BLOCK_BYTES", 64)
    rows = ['0,0.5,0.5,5" pipe', '1,0.5,0.5,"a ""b"" c"', '0,0.5,0.5,"f"g']
    assert predictions("\n".join(["label,p_a,p_b,text", *rows])).n == 3


# ---- What the fuzzer and the search for bombs found, each once more


def refused_of_finds(data: bytes, name: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(data, name=name, options=ReadingOptions(**options))
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_sentences_spell_out_what_a_terminal_would_obey() -> None:
    assert str(InputError("a\x1b[31m\nb\u202e\ud800c")) == "a\\x1b[31m b\\u202e\\ud800c."


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, ",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 3)}",
        b"{'descr': '|S0', 'fortran_order': False, 'shape': (3,)}",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': 'abc'}",
        b"{'descr': [('a', '<f8', (-1,))], 'fortran_order': False, 'shape': (3,)}",
        b"-" * 60_000 + b"1",
        b"(" * 3_000,
        b"[]",
        b"",
    ],
)
def test_npy_headers_that_no_parser_takes(header: bytes) -> None:
    data = b"\x93NUMPY\2\0" + len(header).to_bytes(4, "little") + header + bytes(200)
    assert "header cannot be read" in refused_of_finds(data, "x.npy")
    assert "header cannot be read" in refused_of_finds(zipped({"probs.npy": data}), "x.npz")


@pytest.mark.slow
def test_npy_headers_are_not_read_before_their_length_is_known() -> None:
    # NumPy's own reader unpacks all of it and then says that it is too long.
    size = 64 << 20
    packed = zipped(
        {"probs.npy": b"\x93NUMPY\2\0" + size.to_bytes(4, "little") + b" " * size},
        zipfile.ZIP_DEFLATED,
    )
    tracemalloc.start()
    try:
        assert "longer than 1 MiB" in refused_of_finds(packed, "x.npz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20


def test_npy_headers_of_python_2_are_read() -> None:
    both = np.column_stack([PROBS_OF_FINDS, LABELS_OF_FINDS])
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({N}L, 4L), }}".ljust(117) + "\n"
    data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + both.tobytes()
    assert np.array_equal(read(data, name="x.npy").first.probs, PROBS_OF_FINDS)  # type: ignore[union-attr]


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800])
def test_text_that_is_none_in_arrays(code: int) -> None:
    labels = np.array(NAMES).view("<u4").copy()
    labels[0] = code
    broken = npz(probs=PROBS_OF_FINDS, labels=labels.view("<U3"), class_names=np.array(CLASSES))
    assert "its text holds invalid characters" in refused_of_finds(broken, "x.npz")


def _patched(data: bytes, marker: bytes, offset: int, raw: bytes) -> bytes:
    at = data.rindex(marker) + offset
    return data[:at] + raw + data[at + len(raw) :]


@pytest.mark.parametrize(
    ("marker", "offset", "raw"),
    [
        (b"PK\1\2", 42, b"\xf0\xff\xff\xff"),  # where the member begins
        (b"PK\1\2", 20, b"\xff\xff\xff\x7f"),  # its size
        (b"PK\5\6", 12, b"\xff\xff\xff\x00"),  # the size of the directory
        (b"PK\5\6", 16, b"\xff\xff\xff\x7f"),  # its place
        (b"PK\1\2", 10, b"\x63\x00"),  # the method of compression
        (b"PK\5\6", 0, b"XX"),
    ],
)
def test_zip_directories_that_lie(marker: bytes, offset: int, raw: bytes) -> None:
    sentence = refused_of_finds(_patched(SAME_OF_FINDS["plain.npz"], marker, offset, raw), "x.npz")
    assert "damaged" in sentence or "not supported" in sentence or "ARRAYS" in sentence


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_of_compression_that_numpy_never_writes(method: int) -> None:
    # The dictionary of LZMA may ask for four gigabytes.
    stream = io.BytesIO()
    np.save(stream, PROBS_OF_FINDS)
    assert "numpy.savez" in refused_of_finds(
        zipped({"probs.npy": stream.getvalue()}, method), "x.npz"
    )


def test_members_that_share_their_bytes_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calviz.core.errors.EXPANSION_FLOOR", 1 << 20)
    array = npy_header((300, 300)) + np.random.default_rng(0).bytes(8 * 90_000)
    data = zipped({"aa.npy": array, "bb.npy": array})
    assert "MAX_EXPANSION" not in refused_of_finds(data, "x.npz")
    monkeypatch.setenv("CALVIZ_MAX_EXPANSION", "1")
    half = _patched(data, b"PK\1\2", 42, bytes(4))  # both entries point at the first member
    for name in (b"bb.npy", b"aa.npy"):
        half = half.replace(name, b"cc.npy") if name == b"aa.npy" else half
    assert "damaged" in refused_of_finds(half, "x.npz") or "same name" in refused_of_finds(
        half, "x.npz"
    )


@pytest.mark.parametrize("begin", ["x\x01", "x^"])
def test_text_that_begins_like_a_compressed_stream_is_text(begin: str) -> None:
    content = f"label,p_{begin},p_b\n{begin},0.75,0.25\nb,0.5,0.5\n"
    assert read(content.encode(), name="x.csv").recognition.class_names == (begin, "b")


@pytest.mark.parametrize("cut", [1, 3])
def test_utf_16_that_breaks_off(cut: int) -> None:
    assert "UTF-16" in refused_of_finds(text().encode("utf-16")[: -2 * cut + 1], "x.csv")


def test_long_numbers_end_in_a_sentence() -> None:
    for digits in (5_000, 400_000):
        long = "9" * digits
        assert refused_of_finds(f"label,p_a,p_b\n{long},0.5,0.5\n".encode(), "x.csv")
        assert refused_of_finds(f"label,p_a,p_b\n0,{long}x,0.5\n".encode(), "x.csv")
        assert read(f"confidence,label,pred\n0.5,{long},1\n".encode(), name="x.csv").first.n == 1
        assert "too long" in refused_of_finds(f'{{"label": {long}}}\n'.encode(), "x.jsonl")


@pytest.mark.parametrize("digit", ["²", "٣", "５", "--5"])
def test_what_only_looks_like_a_number(digit: str) -> None:
    data = read(f"confidence,label,pred\n.5,{digit},1\n.6,1,1\n".encode(), name="x.csv").first
    assert isinstance(data, ConfidencePredictions)
    assert data.correct.tolist() == [False, True]


def test_a_class_is_one_class_whether_read_as_whole_number_or_as_fraction() -> None:
    data = read(b"confidence,label,pred\n.5,1.0,1\n.6,0.0,1\n.7,,0\n", name="x.csv", options=ReadingOptions(repair=("drop-missing",))).first  # fmt: skip
    assert isinstance(data, ConfidencePredictions)
    assert data.class_names == ("0", "1")
    assert data.correct.tolist() == [True, False]


def test_a_label_base_does_not_hide_names() -> None:
    data = read(text().encode(), name="x.csv", options=ReadingOptions(label_base=1)).first
    assert np.array_equal(data.labels, LABELS_OF_FINDS)  # type: ignore[arg-type]


def test_names_of_splits_stay_on_one_line() -> None:
    splits = np.array(["test", "tes\n", *(f"s{j}" for j in range(N - 2))])
    recognition = read(
        npz(probs=PROBS_OF_FINDS, labels=LABELS_OF_FINDS, split=splits), name="x.npz"
    ).recognition
    assert "split 'split' (test 1, tes 1, s0 1" in recognition.sentence()
    assert "\n" not in recognition.sentence()
    assert "s9" not in recognition.sentence()


def test_logits_declared_as_probabilities() -> None:
    loaded = read(npz(logits=PROBS_OF_FINDS, labels=LABELS_OF_FINDS), name="x.npz", options=ReadingOptions(kind="probabilities"))  # fmt: skip
    assert np.array_equal(loaded.first.probs, PROBS_OF_FINDS)  # type: ignore[union-attr]


def test_offsets_in_arrow_files_are_checked() -> None:
    # Unchecked, Arrow reads where the offset points to, and the process ends.
    table = pa.table({"label": ["aaaa", "bbbb"], "p_aaaa": [0.5, 0.5], "p_bbbb": [0.5, 0.5]})
    data = feather(table)
    offsets = np.array([0, 4, 8], dtype="<i4").tobytes()
    broken = data.replace(offsets, np.array([0, 4, 1 << 30], dtype="<i4").tobytes())
    assert broken != data
    assert "damaged" in refused_of_finds(broken, "x.arrow")


def test_places_beyond_all_numbers() -> None:
    data = feather(pa.table({"a": np.arange(5.0)}), "zstd")
    words = np.frombuffer(data[: len(data) // 8 * 8], dtype="<i8")
    # Buffers are pairs of place and length; the first one that is not empty lies at 0.
    places = np.flatnonzero((words[:-1] == 0) & (words[1:] >= 8) & (words[1:] < 100)) * 8
    assert places.size
    for at in places.tolist():
        broken = data[:at] + b"\xff" * 7 + b"\x7f" + data[at + 8 :]
        assert "damaged" in refused_of_finds(broken, "x.arrow")


def test_codes_beyond_their_dictionary() -> None:
    codes = pa.array([0, 1, 7], pa.int8())
    label = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    table = pa.table({"label": label, "p_a": [0.5] * 3, "p_b": [0.5] * 3})
    assert "damaged" in refused_of_finds(feather(table), "x.arrow")


def test_times_of_a_zone_that_nobody_knows_harm_nobody(tmp_path: Path) -> None:
    times = pa.array([0, 1, 2], pa.timestamp("s", "Mars/0,5"))
    table = pa.table({"label": ["a", "b", "a"], "p_a": [0.5] * 3, "p_b": [0.5] * 3, "when": times})
    data = read(feather(table), name="x.arrow").first
    assert (data.n, data.times) == (3, None)
    for role in ("time_column", "cluster_column", "id_column", "label"):
        text = refused_of_finds(feather(table), "x.arrow", **{role: "when"})
        assert "its time zone 'Mars/0,5' is not known" in text
    # polars, which sums files, panics.
    (path := tmp_path / "x.arrow").write_bytes(feather(table))
    with pytest.raises(
        InputError, match=r"x\.arrow: the file cannot be read \(unable to parse time zone"
    ):
        calviz.profile(str(path))


def test_columns_that_are_no_text_harm_nobody() -> None:
    table = pa.table(
        {
            "label": NAMES,
            **{f"p_{c}": PROBS_OF_FINDS[:, k] for k, c in enumerate(CLASSES)},
            "raw": pa.array([b"\xff\xfe", b"a"] * (N // 2)),
            "day": pa.array([0, None] * (N // 2), pa.date32()),
            "site": pa.DictionaryArray.from_arrays(pa.array([2, 0, None] * (N // 3), pa.int8()), pa.array(["x", "y", "x"])),
        }
    )  # fmt: skip
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=5)
    for data in (feather(table), stream.getvalue()):
        groups = read(data, name="x").first.groups
        assert groups["raw"].levels == ("��", "a")
        assert groups["day"].levels == ("1970-01-01", "")
        assert groups["site"].levels == ("x", "")
        assert groups["site"].codes.tolist() == [0, 0, 1] * (N // 3)


def test_half_characters_in_json() -> None:
    data = JSONL.replace(b'"cat"', b'"\\ud800"')
    assert read(data, name="x.jsonl").recognition.class_names == ("?", "dog", "fox")
    data = JSONL.replace(b'"cat"', b'"c\\u0000t"')
    assert read(data, name="x.jsonl").recognition.class_names == ("c\0t", "dog", "fox")
    data = JSONL.replace(b'"cat"', b'"\\ud83d\\ude00"')
    assert read(data, name="x.jsonl").recognition.class_names == ("😀", "dog", "fox")


def test_factors_of_long_texts_take_the_memory_of_their_levels() -> None:
    column = np.array(["x" * 100_000, "y"] * 5_000, dtype=object)  # 4 GB as an array of text
    factor = Factor.of(column)
    assert factor.codes.tolist() == [0, 1] * 5_000
    assert factor.levels == (column[0], "y")


def test_sizes_are_read_without_arrow() -> None:
    table = pa.table(
        {"label": LABELS_OF_FINDS, "p": PROBS_OF_FINDS[:, 0], "probs": PROBS_OF_FINDS.tolist()}
    )
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=5)
    assert declared_values(Source(stream.getvalue())) == N * (1 + 1 + 3)
    plain = pa.table({"a": np.arange(1_000.0), "b": np.arange(1_000, dtype="i4")})
    assert unpacked_size(Source(feather(plain))) == 0
    for packed in (feather(plain, "zstd"), feather(plain, "lz4")):
        # Buffers that do not get smaller stay as they are, of the same size.
        assert abs(unpacked_size(Source(packed)) - 12_000) <= 64 * 400
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, plain.schema, options=options) as writer:
        writer.write_table(plain)
    assert abs(unpacked_size(Source(sink.getvalue())) - 12_000) <= 64


@pytest.mark.parametrize(("a", "b"), [(10, 20), (1, 20), (20, 1)])
def test_arrays_of_different_lengths_are_not_taken_together_as_scores(a: int, b: int) -> None:
    file = io.BytesIO()
    np.savez(file, a=np.full(a, 0.25), b=np.full(b, 0.75), label=np.arange(20) % 2)
    assert "no probability arrays were recognised" in refused_of_finds(file.getvalue(), "x.npz")


def test_an_integer_beyond_what_floats_hold_beside_a_missing_value():
    lines = [f'{{"label": {i % 2}, "p": {2**60 + 1 if i == 3 else 1}}}' for i in range(9)]
    content = "\n".join([*lines, '{"label": 0, "p": null}']).encode()
    with pytest.raises(InputError, match="1 of 10 rows has no score: row 10"):
        read(content, name="large.jsonl")


# ---- What reading cannot guess is told; a line of units is asked about


def test_header_line_separator_and_decimal_sign_are_told():
    text = b"a,b\nid;p,x;label\n1;0,25;0\n2;0,75;1\n"
    told = {"separator": ";", "decimal": ",", "header_line": 2}
    found = read(text, name="x.csv", options=ReadingOptions(**told))
    assert found.recognition.columns == ("id", "p,x", "label")
    np.testing.assert_allclose(found.first.probs[:, 1], [0.25, 0.75])
    bare = read(b"0.25 0\n0.75 1\n", name="x.txt", options=ReadingOptions(header_line=0))
    assert bare.recognition.columns == ("column 1", "column 2")
    assert ReadingOptions(separator="tab").separator == "\t"


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"separator": "ab"}, "the separator must be"),
        ({"decimal": "x"}, r"'decimal' must be one of \., ,; got 'x'"),
        ({"header_line": -1}, "'header_line' must be a whole number, 0 or more"),
    ],
)
def test_a_wrong_separator_or_line_is_refused(told: dict[str, Any], says: str):
    with pytest.raises(OptionError, match=says):
        ReadingOptions(**told)


def test_a_header_line_beyond_the_end_is_refused():
    with pytest.raises(InputError, match="there is no text from line 9 on"):
        read(b"p,label\n0.2,0\n0.8,1\n", name="x.csv", options=ReadingOptions(header_line=9))


@pytest.mark.parametrize(("below", "sign"), [("[%];;", "."), (";(0-1);", ","), ("-;[1];", ".")])
def test_a_line_of_units_is_asked_about(below: str, sign: str):
    body = "".join(f"{i};{i / 40};{int(i > 20)}\n".replace(".", sign) for i in range(1, 40))
    text = f"n;p;label\n{below}\n{body}".encode()
    with pytest.raises(InputError, match=r"line 2 holds units .* and no prediction") as asked:
        read(text, name="x.csv")
    assert [repair.key for repair in asked.value.repairs] == ["drop-units"]
    found = read(text, name="x.csv", options=ReadingOptions(repair=("drop-units",)))
    np.testing.assert_allclose(found.first.probs[:, 1], np.arange(1, 40) / 40)


def test_a_unit_in_percent_above_fractions_is_asked_about():
    text = b"p,label\n[%],\n0.2,0\n0.9,1\n0.5,0\n"
    with pytest.raises(InputError, match="headed in percent, but lies in 0 to 1"):
        read(text, name="x.csv", options=ReadingOptions(repair=("drop-units",)))


# ------------------------------------------------------------------ lists of logits, and names for them


def lists_of_logits(*, order=(0, 1, 2), cut=0):
    """Rows with a list of logits, a name and the number of the name, which is its place in the list after `order`; the first `cut` lists have two numbers."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (120, 3))
    classes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    names = np.array(["cat", "dog", "emu"])[classes]
    ids = np.array(order)[classes]
    lists = [
        str([round(float(v), 3) for v in row[: 2 if i < cut else 3]])
        for i, row in enumerate(logits)
    ]
    lines = [
        f'"{each}",{name},{number}' for each, name, number in zip(lists, names, ids, strict=True)
    ]
    # The first rows tell how the column is written.
    return "\n".join(["logits,label,label_id", *lines[cut:], *lines[:cut]]).encode()


def test_numbers_beside_the_names_of_the_classes_tell_the_order_of_a_list():
    found = read(lists_of_logits(), name="x.csv")
    assert found.recognition.class_names == ("cat", "dog", "emu")
    assert "the scores are in the order of 'label_id': cat, dog, emu" in str(found.notices)
    columns = (
        lists_of_logits()
        .replace(b'"[', b"")
        .replace(b']"', b"")
        .replace(b"logits", b"LABEL_0,LABEL_1,LABEL_2")
    )
    found = read(columns, name="x.csv", options=ReadingOptions(repair=("softmax",)))
    assert found.recognition.class_names == ("cat", "dog", "emu")
    # Numbers in an order that the scores deny tell nothing.
    with pytest.raises(InputError, match="nothing says which class each of them is"):
        read(lists_of_logits(order=(1, 2, 0)), name="x.csv")


def test_rows_whose_list_is_cut_off_can_be_left_out():
    content = lists_of_logits(cut=2)
    with pytest.raises(
        InputError,
        match=r"2 of 120 rows have .* row 119 \(line 120\) 'logits' is 2 numbers instead of 3",
    ) as error:
        read(content, name="x.csv")
    assert [repair.key for repair in error.value.repairs] == ["drop-missing"]
    found = read(content, options=ReadingOptions(repair=("drop-missing",)), name="x.csv")
    assert found.first.n == 118
    assert "'logits' has 2 numbers instead of 3 in row 119" in str(found.notices)

"""Awkward files, all made from one small table, of kinds that `examples` lacks: those that give its numbers, and those that must not."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES = ("cat", "dog", "fox")
N = 12
_rng = np.random.default_rng(61)
PROBS = _rng.integers(4, 40, size=(N, 3)).astype(float)
PROBS = np.round(PROBS / PROBS.sum(axis=1, keepdims=True), 4)
PROBS[:, 2] = np.round(1 - PROBS[:, 0] - PROBS[:, 1], 4)
LABELS = np.arange(N) * 7 % 3
NAMES = [CLASSES[y] for y in LABELS]
HEADER = ["label", "p_cat", "p_dog", "p_fox"]


def text(
    header: Iterable[str] | None = HEADER,
    labels: Iterable[object] = NAMES,
    probs: Iterable[Iterable[object]] = PROBS.tolist(),
    *,
    separator: str = ",",
    newline: str = "\n",
    cell: Callable[[object], str] = str,
    last: bool = False,
) -> str:
    """The table as text, the label first or last."""
    rows = [list(header)] if header else []
    rows += [[y, *p] if not last else [*p, y] for y, p in zip(labels, probs, strict=True)]
    return newline.join(separator.join(cell(c) for c in row) for row in rows) + newline


def _comma(cell: object) -> str:
    return str(cell).replace(".", ",")


def _quoted(cell: object) -> str:
    return f'"{cell}"'


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def parquet(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


def feather(table: pa.Table, compression: str | None = None) -> bytes:
    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=5)
    return stream.getvalue()


def archive(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return stream.getvalue()


COLUMNS = {"label": NAMES} | {f"p_{c}": PROBS[:, k] for k, c in enumerate(CLASSES)}
TABLE = pa.table(COLUMNS)
LISTS = pa.table({"label": LABELS, "probs": PROBS.tolist()})
OBJECTS = [
    {"label": y, "probs": dict(zip(CLASSES, p, strict=True))}
    for y, p in zip(NAMES, PROBS.tolist(), strict=True)
]
JSONL = "\n".join(map(json.dumps, OBJECTS)).encode()
ONE_HOT = np.eye(3, dtype=int)[LABELS]
BOTH = np.column_stack([PROBS, LABELS])
RECORDS = np.array(
    [(y, *p) for y, p in zip(LABELS, PROBS.tolist(), strict=True)],
    dtype=[("label", "i4"), *((f"p_{c}", "f8") for c in CLASSES)],
)

#: Read to the numbers of the table.
SAME: dict[str, bytes] = {
    "utf8_bom.csv": text().encode("utf-8-sig"),
    "utf16.csv": text().encode("utf-16"),
    "utf16_be.csv": b"\xfe\xff" + text().encode("utf-16-be"),
    "cp1252.csv": text([*HEADER[:2], "p_été", "p_fox"], [n.replace("dog", "été") for n in NAMES]).encode("cp1252"),
    "greek.csv": text(["ετικέτα", *HEADER[1:]]).encode(),
    "decimal_comma.csv": text(separator=";", cell=_comma).encode(),
    "decimal_comma_tabs.tsv": text(separator="\t", cell=_comma).encode(),
    "pipe.txt": text(separator="|").encode(),
    "spaces.txt": text(separator="  ").encode(),
    "sep_line.csv": b"sep=|\n" + text(separator="|").encode(),
    "quoted_crlf.csv": text(cell=_quoted, newline="\r\n").encode(),
    "old_mac.csv": text(newline="\r").encode(),
    "no_newline.csv": text().rstrip().encode(),
    "bare_label_first.csv": text(None, LABELS).encode(),
    "bare_label_last.csv": text(None, LABELS, last=True).encode(),
    "positions.csv": text(["0", "1", "2", "label"], LABELS, last=True).encode(),
    "comment_blank.csv": ("# scores\n\n" + text()).replace("\n", "\n\n").encode(),
    "index_column.csv": text(["", *HEADER], [f"{j},{n}" for j, n in enumerate(NAMES)]).encode(),
    "ids_twice.csv": text(["id", *HEADER], [f"a,{n}" for n in NAMES]).encode(),
    "trailing.csv": text().replace("\n", ",\n").encode(),
    "floats_as_labels.csv": text(labels=[f"{y}.0" for y in LABELS]).encode(),
    "upper_case.csv": text(labels=[n.upper() for n in NAMES]).encode(),
    "full_column_names.csv": text(labels=[f"p_{n}" for n in NAMES]).encode(),
    "one_hot.csv": text(["y_cat,y_dog,y_fox", *HEADER[1:]], [",".join(map(str, row)) for row in ONE_HOT]).encode(),
    "logits.csv": text(["label", *(f"logit_{c}" for c in CLASSES)], probs=(np.log(PROBS) + 2).tolist()).encode(),
    "packed.csv.gz": gzip.compress(text().encode()),
    "members.csv.gz": gzip.compress(text().encode()[:99]) + gzip.compress(text().encode()[99:]),
    "objects.jsonl": JSONL,
    "packed.jsonl.gz": gzip.compress(JSONL),
    "array.json": json.dumps(OBJECTS, indent=1).encode(),
    "columns.json": json.dumps({"y": LABELS.tolist(), "probs": PROBS.tolist()}).encode(),
    "plain.npz": npz(probs=PROBS, labels=LABELS),
    "packed.npz": npz(True, y_prob=PROBS, y_true=LABELS[:, None].astype("u1")),
    "fortran.npz": npz(predictions=np.asfortranarray(PROBS), targets=LABELS.astype(">i8")),
    "one_hot.npz": npz(softmax=PROBS, y=ONE_HOT),
    "names.npz": npz(probs=PROBS, labels=np.array(NAMES), class_names=np.array(CLASSES)),
    "splits.npz": npz(val_probs=PROBS[:5], val_labels=LABELS[:5], test_probs=PROBS[5:], test_labels=LABELS[5:]),
    "logits.npz": npz(logits=np.log(PROBS) - 1_000, labels=LABELS),
    "label_last.npy": npy(BOTH),
    "records.npy": npy(RECORDS),
    "plain.parquet": parquet(TABLE),
    "groups.parquet": parquet(TABLE, row_group_size=5, compression="gzip", data_page_version="2.0"),
    "lists.parquet": parquet(LISTS),
    "category.parquet": parquet(TABLE.set_column(0, "label", TABLE["label"].dictionary_encode())),
    "plain.feather": feather(TABLE),
    "packed.feather": feather(TABLE, "zstd"),
    "lists.arrow": feather(LISTS, "lz4"),
    "called.csv": parquet(TABLE),  # the content decides, not the name
    "called.txt": npz(probs=PROBS, labels=LABELS),
    "called.npz": feather(TABLE),
}  # fmt: skip


def changed(row: int, column: int, value: object) -> bytes:
    """The table with one cell changed (1-based row; column 0 is the label)."""
    rows: list[list[object]] = [[y, *p] for y, p in zip(NAMES, PROBS.tolist(), strict=True)]
    rows[row - 1][column] = value
    return text(labels=[r[0] for r in rows], probs=[r[1:] for r in rows]).encode()


class Bad:
    """What pickle would run, were it asked to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("calviz_pickle_was_executed", "w")


_OBJECT = np.empty(2, dtype=object)
_OBJECT[:] = [Bad(), 1]

#: Refused, with these words.
REFUSED: dict[str, tuple[bytes, list[str]]] = {
    "blank.csv": (b"\n\n  \n", ["blank"]),
    "quotes.csv": (b'""', ["blank"]),
    "missing.csv": (changed(4, 2, ""), ["row 4 (line 5)", "'p_dog' is empty", "1 of 12 rows"]),
    "no_label.csv": (changed(4, 0, ""), ["row 4", "no label"]),
    "negative.csv": (changed(2, 1, -0.25), ["row 2 (line 3)", "'p_cat' is -0.25", "leave out"]),
    "word.csv": (changed(9, 3, "O.5"), ["row 9 (line 10)", "'p_fox' = 'O.5'", "not a number"]),
    "minus.csv": (text(labels=[*LABELS[:-1], -1]).encode(), ["row 12", "label -1"]),
    "sum.csv": (text(probs=(1.2 * PROBS).round(4).tolist()).encode(), ["12 of 12 rows sum to 1.2", "not probabilities"]),
    "percent.csv": (text(probs=(100 * PROBS).round(2).tolist()).encode(), ["percentages", "sum to 100"]),
    "short.csv": (text().replace("\n", "\ncat,0.5\n", 3).encode(), ["line 2 has 2", "expected 4"]),
    "long.csv": (text().encode() + b"cat,0.5,0.25,0.25,7\n", ["line 14 has 5", "expected 4"]),
    "doubled.csv": (text(["label", "p_cat", "p_dog", "p_dog"]).encode(), ["two columns called 'p_dog'"]),
    "half_utf16.csv": (text().encode("utf-16")[:-1], ["UTF-16", "damaged"]),
    "no_bom_utf16.csv": (text().encode("utf-16-le"), ["NUL bytes"]),
    "odd_sep.csv": (b'sep="\n' + text().encode(), ["separator", "not supported"]),
    "words.csv": (b"hello\nworld\n", ["no probability column"]),
    "half.csv.gz": (gzip.compress(text().encode())[:-9], ["damaged or incomplete"]),
    "packed.npz.gz": (gzip.compress(npz(probs=PROBS, labels=LABELS)), ["inside gzip", "unpack it first"]),
    "not.parquet": (text().encode(), ["damaged or incomplete", "Parquet"]),
    "objects.npz": (npz(probs=PROBS, labels=_OBJECT), ["labels", "Python objects", "refused"]),
    "objects.npy": (npy(_OBJECT), ["Python objects", "refused"]),
    "fields.npy": (npy(np.zeros(2, dtype=[("a", "O"), ("b", "f8")])), ["Python objects"]),
    "pickle.npz": (archive(probs_dot_npy=pickle.dumps(Bad())), ["damaged"]),
    "old.pkl": (pickle.dumps(Bad(), protocol=0), ["pickle"]),
    "new.csv": (pickle.dumps(Bad()), ["pickle"]),
    "packed.csv.gz": (gzip.compress(pickle.dumps(Bad())), ["pickle"]),
    "model.pt": (archive(archive__data_dot_pkl=pickle.dumps(Bad())), ["zip archives are not supported"]),
    "complex.npz": (npz(probs=PROBS.astype(complex), labels=LABELS), ["complex128"]),
    "dates.npz": (npz(probs=PROBS, labels=LABELS.astype("M8[s]")), ["label"]),
    "two_ones.csv": (text(["y_cat,y_dog,y_fox", *HEADER[1:]], ["1,1,0"] * N).encode(), ["2 of the one-hot", "exactly one"]),
    "nested.json": (b"[" * 9_000, ["not valid JSON"]),
    "numbers.json": (b"[1, 2, 3]", ["values other than objects"]),
    "long_number.jsonl": (b'{"label": ' + b"9" * 5_000 + b"}\n", ["line 1", "number is too long"]),
    "table.sas7bdat": (
        bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011") + bytes(400),
        ["SAS, SPSS and Stata are not read", "as CSV"],
    ),
    "table.xpt": (b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!" + b"0" * 30 + b"  ", ["SAS", "as CSV"]),
    "table.sav": (b"$FL2@(#) SPSS DATA FILE" + bytes(400), ["SPSS", "as CSV"]),
    "table.dta": (b"<stata_dta><header><release>118</release>" + bytes(400), ["Stata", "as CSV"]),
    "old.dta": (b"\x72\x02\x01\x00" + bytes(400), ["Stata", "as CSV"]),
    "page.csv": (b"<!doctype html><p>0.5,0.5</p>", ["web page"]),
}  # fmt: skip

#: Refused or read with a warning; with the repair, the numbers of the table.
REPAIRED: dict[str, tuple[bytes, str, list[str]]] = {
    "sum.csv": (REFUSED["sum.csv"][0], "renormalise", ["12 of 12 rows"]),
    "percent.csv": (REFUSED["percent.csv"][0], "percent", ["divided by 100"]),
    "missing.csv": (
        text(labels=[*NAMES, "dog", ""], probs=[*PROBS.tolist(), ["", 1, 0], [0, 1, 0]]).encode(),
        "drop-missing", ["2 of 14 rows"],
    ),
    "joined.csv": (text().encode() * 2, "drop-headers", ["1 line repeats the header"]),
    "stray.csv": (
        text().encode() + b"the end\n", "drop-ragged", ["has 1 cell, expected"],
    ),
    "scores.csv": (text(probs=(np.log(PROBS) + 1.5).tolist()).encode(), "softmax", ["read as logits"]),
}  # fmt: skip

#: Class names that somebody might want to come alive somewhere.
HOSTILE_NAMES = (
    "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "<img src=//evil.test/x onerror=alert(1)>", "**bold** [x](http://evil.test)",
    "![x](http://evil.test/a.png)", "$\\frac{a}{b}$", ":material/bug_report: :red[x]", "\u202egnp.exe", "a\u200bb", "{{7*7}} %s {0}",
    "../../etc/passwd", "x" * 5_000, "日本語 العربية", "'; DROP TABLE x; --", "\x1b[31mred",
)  # fmt: skip


def hostile(names: Iterable[str] = HOSTILE_NAMES) -> bytes:
    """A valid file whose classes bear such names."""
    names = list(names)
    k = len(names)
    probs = np.round(np.full((2 * k, k), 0.5 / (k - 1)), 6)
    probs[np.arange(2 * k), np.arange(2 * k) % k] = 1 - np.round(0.5 / (k - 1), 6) * (k - 1)
    quote = '"{}"'.format
    rows = [[quote("label"), *(quote(f"p_{n}".replace('"', '""')) for n in names)]]
    for j, p in enumerate(probs.tolist()):
        rows.append([quote(names[j % k].replace('"', '""')), *map(str, p)])
    return "\n".join(",".join(row) for row in rows).encode()

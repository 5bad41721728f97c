"""NPZ, NPY, Parquet, Arrow, JSON Lines: layouts, element types, damage."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calviz.core.errors import InputError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import LabelFile, Loaded, ReadingOptions, read, zipped
from tests.inputs.relatives import npy, npz, parquet

P = np.array([[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]])
Y = np.array([0, 1, 1])


def arrow(table: pa.Table, **options: Any) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=2)
    return stream.getvalue()


def arrow_stream(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return stream.getvalue()


def parquet_groups(table: pa.Table) -> bytes:
    return parquet(table, row_group_size=2)


def check(loaded: Loaded, probs: np.ndarray = P) -> Predictions:
    data = loaded.first
    assert isinstance(data, Predictions)
    assert np.allclose(data.probs, probs, atol=1e-3 if loaded.notices else 0)
    assert data.labels.tolist() == Y.tolist()
    return data


def refused(data: bytes, name: str) -> str:
    with pytest.raises(InputError) as caught:
        read(data, name=name)
    text = str(caught.value)
    assert text.startswith(name)
    assert "\n" not in text
    return text


ARRAYS = {
    "float64": {"probs": P, "labels": Y},
    "float32": {"probs": P.astype(np.float32), "labels": Y},
    "float16": {"probs": P.astype(np.float16), "labels": Y.astype(np.uint8)},
    "big-endian": {"probs": P.astype(">f4"), "labels": Y.astype(">i4")},
    "long double": {"probs": P.astype(np.longdouble), "labels": Y},
    "Fortran order": {"probs": np.asfortranarray(P), "labels": Y},
    "P(class 1)": {"probs": P[:, 1], "labels": Y},
    "column vectors": {"y_prob": P[:, 1:], "y_true": Y[:, None]},
    "one-hot": {"predictions": P, "targets": np.eye(2)[Y]},
    "float labels": {"probabilities": P, "y": Y.astype(float)},
    "boolean labels": {"probs": P, "labels": Y.astype(bool)},
    "text labels": {
        "probs": P, "labels": np.array(["a", "b", "b"]), "class_names": np.array(["a", "b"]),
    },
    "byte labels": {
        "probs": P, "labels": np.array([b"a", b"b", b"b"]), "class_names": np.array([b"a", b"b"]),
    },
    "a scalar besides": {"probs": P, "labels": Y, "temperature": np.float64(1.5)},
}  # fmt: skip


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("key", ARRAYS)
def test_npz(key: str, compressed: bool, tmp_path: Path) -> None:
    data = npz(compressed=compressed, **ARRAYS[key])
    predictions = check(read(data, name="x.npz"))
    expected = {"float32": "f4", "float16": "f4", "big-endian": "f4"}.get(key, "f8")
    assert predictions.probs.dtype == np.dtype(expected)
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    assert read(path).first.fingerprint() == predictions.fingerprint()


def test_npz_further_arrays() -> None:
    loaded = read(
        npz(logits=np.log(P), labels=Y, split=["cal", "cal", "test"], ids=[7, 8, 9], group_site=["x", "y", "x"]),
        name="x.npz",
    )  # fmt: skip
    data = check(loaded) if loaded.recognition.kind == "probabilities" else loaded.first
    assert loaded.recognition.kind == "logits"
    assert np.allclose(data.probs, P, atol=1e-15)  # type: ignore[union-attr]
    assert data.groups["site"].values().tolist() == ["x", "y", "x"]
    assert data.ids is not None
    assert data.ids.tolist() == [7, 8, 9]
    assert loaded.recognition.split_counts == {"cal": 2, "test": 1}


def test_npz_logits_beside_probabilities() -> None:
    both = check(read(npz(probs=P, logits=np.log(P) + 3, labels=Y), name="x.npz"))
    assert both.logits is not None
    assert np.array_equal(both.logits, np.log(P) + 3)
    other = read(npz(probs=P, logits=-np.log(P), labels=Y), name="x.npz")
    assert check(other).logits is None
    assert any("'probs' holds the scores; not used: logits" in n.message for n in other.notices)
    longer = read(npz(probs=P, logits=np.zeros((5, 2)), labels=Y), name="x.npz")
    assert any("which have 5 rows, not 3" in n.message for n in longer.notices)


@pytest.mark.parametrize("form", ["{split}_{role}", "{role}_{split}"])
def test_npz_pairs_are_splits(form: str) -> None:
    parts = {"val": slice(0, 2), "test": slice(2, 3)}
    arrays = {}
    for split, rows in parts.items():
        arrays[form.format(split=split, role="probs")] = P[rows]
        arrays[form.format(split=split, role="labels")] = Y[rows]
    loaded = read(npz(**arrays), name="x.npz")
    assert check(loaded).split_names == ("val", "test")
    assert loaded.recognition.split_counts == {"val": 2, "test": 1}


def test_npz_confidence() -> None:
    data = read(npz(confidence=P[:, 1], correct=Y), name="x.npz").first
    assert isinstance(data, ConfidencePredictions)
    assert data.correct.tolist() == [False, True, True]


NPZ_REFUSED = {
    "objects": ({"probs": np.array([{}], dtype=object), "labels": Y}, "Python objects"),
    "3-D": ({"probs": P.reshape(3, 2, 1)[:, :, [0, 0]], "labels": Y}, "(3, 2, 2)"),
    "complex": ({"probs": P.astype(complex), "labels": Y}, "complex128"),
    "length": ({"probs": P, "labels": Y[:2]}, "3 rows of probabilities ('probs') but 2 labels"),
    "range": ({"probs": P, "labels": Y + 1}, "row 2, column 'labels': label 2"),
    "nan": ({"probs": np.where(P == 0.125, np.nan, P), "labels": Y}, "row 3 'probs[0]' is NaN"),
    "empty": ({"probs": P[:0], "labels": Y[:0]}, "no rows"),
    "no label": ({"probs": P}, "no label column"),
}


@pytest.mark.parametrize("key", NPZ_REFUSED)
def test_npz_refused(key: str) -> None:
    arrays, part = NPZ_REFUSED[key]
    assert part in refused(npz(**arrays), "x.npz")


def test_npz_damage_is_found() -> None:
    data = npz(probs=np.tile(P, (100, 1)), labels=np.tile(Y, 100))
    assert "damaged" in refused(data[: len(data) // 2], "x.npz")
    flipped = bytearray(data)
    flipped[400] ^= 1  # inside the numbers: only the checksum can tell
    assert "damaged" in refused(bytes(flipped), "x.npz")


def test_declared_sizes_are_checked_before_anything_is_allocated() -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("probs.npy", header.getvalue() + bytes(80))
    assert "21.8 TiB" in refused(stream.getvalue(), "x.npz")
    assert "21.8 TiB" in refused(header.getvalue() + bytes(80), "x.npy")


def test_zip_bomb() -> None:
    assert "CALVIZ_MAX_EXPANSION" in refused(
        npz(compressed=True, probs=np.zeros((5_000_000, 2)), labels=Y), "x.npz"
    )


NPY = {
    "label last": np.column_stack([P, Y]),
    "label first": np.column_stack([Y, P]),
    "Fortran order": np.asfortranarray(np.column_stack([P, Y])),
    "structured": np.array(
        [(y, a, b) for y, (a, b) in zip(Y, P, strict=True)],
        dtype=[("label", "i4"), ("p_a", "f8"), ("p_b", "f8")],
    ),
}


@pytest.mark.parametrize("key", NPY)
def test_npy(key: str, tmp_path: Path) -> None:
    loaded = read(npy(NPY[key]), name="x.npy")
    data = loaded.first
    assert isinstance(data, Predictions)
    assert np.array_equal(data.probs, P)
    assert data.labels.tolist() == Y.tolist()
    if "label" in key:
        place = "last" if key == "label last" else "first"
        assert any(f"the {place} column is taken as the label" in n.message for n in loaded.notices)


TABLES = {
    "float64": {"label": Y, "p_a": P[:, 0], "p_b": P[:, 1]},
    "float32": {"label": Y, "p_a": P[:, 0].astype("f4"), "p_b": P[:, 1].astype("f4")},
    "float16": {"label": Y, "p_a": P[:, 0].astype("f2"), "p_b": P[:, 1].astype("f2")},
    "mixed": {"label": Y, "p_a": P[:, 0].astype("f4"), "p_b": P[:, 1]},
    "names": {"p_a": P[:, 0], "p_b": P[:, 1], "label": ["a", "b", "b"]},
    "dictionary": {"label": pa.array(["a", "b", "b"]).dictionary_encode(), "p_a": P[:, 0], "p_b": P[:, 1]},
    "string view": {"label": pa.array(["a", "b", "b"], pa.string_view()), "p_a": P[:, 0], "p_b": P[:, 1]},
    "boolean": {"label": Y.astype(bool), "prob": P[:, 1]},
    "decimal": {"label": Y, "prob": pa.array(P[:, 1]).cast(pa.decimal128(6, 4))},
    "lists": {"label": Y, "probs": P.tolist()},
    "fixed lists": {"label": Y, "probs": pa.array(P.tolist(), pa.list_(pa.float32(), 2))},
    "structs": {"label": ["a", "b", "b"], "probs": [{"a": a, "b": b} for a, b in P.tolist()]},
    "one-hot lists": {"label": np.eye(2, dtype=int)[Y].tolist(), "probs": P.tolist()},
    "dots in names": {"label": ["a", "a.b", "a.b"], "p_a": P[:, 0], "p_a.b": P[:, 1]},
}  # fmt: skip
WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    "parquet": parquet,
    "parquet in groups": parquet_groups,
    "arrow": arrow,
    "arrow zstd": lambda t: arrow(t, options=pa.ipc.IpcWriteOptions(compression="zstd")),
    "arrow stream": arrow_stream,
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("key", TABLES)
def test_tables(key: str, writer: str, tmp_path: Path) -> None:
    data = WRITERS[writer](pa.table(TABLES[key]))
    predictions = check(read(data, name="x.bin"))
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    assert read(path).first.fingerprint() == predictions.fingerprint()
    single = key in ("float32", "float16", "fixed lists")
    assert predictions.probs.dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize("writer", ["parquet in groups", "arrow", "arrow stream"])
def test_many_columns_come_in_order(writer: str) -> None:
    k = 150  # more than one batch of columns
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), size=5).astype(np.float32)
    table = pa.table({"label": np.arange(5)} | {f"p_{j}": probs[:, j] for j in range(k)})
    data = read(WRITERS[writer](table), name="x").first
    assert isinstance(data, Predictions)
    assert np.array_equal(data.probs, probs)
    assert data.probs.flags.c_contiguous


TABLES_REFUSED = {
    "nulls": ({"label": Y, "p_a": [0.5, None, 0.1], "p_b": P[:, 1]}, "row 2 'p_a' is NaN"),
    "no label": ({"label": [0, 1, None], "prob": P[:, 1]}, "row 3, column 'label'"),
    "ragged": ({"label": Y, "probs": [[0.5, 0.5], [1.0], [0.5, 0.5]]}, "row 2 holds 1"),
    "null list": ({"label": Y, "probs": [[0.5, 0.5], None, [0.5, 0.5]]}, "row 2 'probs'"),
    "text": ({"label": Y, "p_a": [".5"] * 3, "p_b": [".5"] * 3}, "holds text"),
    "no rows": ({"label": Y[:0], "prob": P[:0, 1]}, "no rows"),
}


@pytest.mark.parametrize("writer", ["parquet", "arrow"])
@pytest.mark.parametrize("key", TABLES_REFUSED)
def test_tables_refused(key: str, writer: str) -> None:
    columns, part = TABLES_REFUSED[key]
    assert part in refused(WRITERS[writer](pa.table(columns)), "x.bin")


@pytest.mark.parametrize("writer", ["parquet", "arrow"])
def test_a_late_longer_list_is_reported_by_its_own_column(writer: str) -> None:
    n = 5_000  # more rows than recognition looks at
    site = [[1.0]] * (n - 1) + [[1.0, 2.0]]
    table = pa.table({"label": [0, 1] * (n // 2), "site": site, "prob": [0.5] * n})
    with pytest.raises(InputError) as error:
        read(WRITERS[writer](table), name="x.bin", options=ReadingOptions(groups=("site",)))
    assert error.value.column == "site"
    assert f"row {n:,}" in str(error.value)


@pytest.mark.parametrize("writer", WRITERS)
def test_truncated_tables(writer: str) -> None:
    data = WRITERS[writer](pa.table(TABLES["float64"]))
    assert "damaged or incomplete" in refused(data[: len(data) // 2], "x.bin")


def test_doubled_columns() -> None:
    table = pa.Table.from_arrays([pa.array(Y)] * 3, names=["label", "p_a", "p_a"])
    for writer in (parquet, arrow):
        assert "two columns called 'p_a'" in refused(writer(table), "x.bin")


JSON = {
    "lists": '{"label": 0, "probs": [0.5, 0.5]}\n\n{"label": 1, "probs": [0.25, 0.75]}\n{"label": 1, "probs": [0.125, 0.875]}',
    "objects": '{"label":"a","probs":{"a":0.5,"b":0.5}}\n{"label":"b","probs":{"b":0.75,"a":0.25}}\n{"label":"b","probs":{"a":0.125,"b":0.875}}\n',
    "flat": '{"y":0,"p_a":0.5,"p_b":0.5}\n{"y":1,"p_a":0.25,"p_b":0.75}\n{"y":1,"p_a":0.125,"p_b":0.875}\n',
    "one column": '{"y":false,"prob":0.5}\n{"y":true,"prob":0.75}\n{"y":true,"prob":0.875}\n',
    "mixed labels": '{"y":0,"prob":0.5}\n{"y":"1","prob":0.75}\n{"y":1.0,"prob":0.875}\n',
    "an array": '[{"y":0,"prob":0.5},{"y":1,"prob":0.75},\n{"y":1,"prob":0.875}]',
    "by column": '{"labels": [0, 1, 1],\n "probs": [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]}',
}


@pytest.mark.parametrize("key", JSON)
@pytest.mark.parametrize("packed", [False, True])
def test_json(key: str, packed: bool) -> None:
    data = JSON[key].encode()
    check(read(gzip.compress(data) if packed else data, name="x.jsonl"))


JSON_REFUSED = {
    '{"label":0,"probs":[0.5,NaN]}\n': "row 1 (line 1) 'probs[1]' is NaN",
    '{"label":0,"probs":{"a":0.5,"b":0.5}}\n\n{"label":1,"probs":{"a":1}}': "row 2 (line 3) 'probs[b]' is empty",
    '{"label":0,"probs":[1,0]}\n{"label":1,': "line 2: this is not a JSON object",
    '{"label":0,"probs":[1,0]}\n{"label":1,"probs":[1]}': "row 2 holds 1",
    '{"label":0,"probs":[0.5,"x"]}\n': "lists of",
    "[1, 2]": "values other than objects",
    '{"labels":[0,1],"probs":[[0.5,0.5]]}': "differ in length",
    "[" * 50_000: "not valid JSON",
}


@pytest.mark.parametrize("text", JSON_REFUSED)
def test_json_refused(text: str) -> None:
    assert JSON_REFUSED[text] in refused(text.encode(), "x.json")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    marker = tmp_path / "was executed"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return open, (str(marker), "w")

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(Payload(), protocol=protocol)
        for name in ("x.pkl", "x.joblib", "x.csv", "x.npz", "x.npy"):
            refused(data, name)
        assert "pickle" in refused(data, "x.pkl")
    objects = np.array([Payload()], dtype=object)
    refused(npy(objects), "x.npy")
    stream = io.BytesIO()
    np.savez(stream, probs=objects, labels=Y)
    refused(stream.getvalue(), "x.npz")
    assert not marker.exists()


def test_archives_and_damaged_workbooks_are_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("../../evil.csv", "label,p_a\n")
    assert "zip archives" in refused(stream.getvalue(), "x.zip")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("xl/workbook.xml", "<x/>")
    assert "Excel" in refused(stream.getvalue(), "x.xlsx")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "npy"])
def test_text_under_a_wrong_name(suffix: str) -> None:
    assert "does not begin like" in refused(b"label,p_a,p_b\n0,.5,.5\n", f"x.{suffix}")


def test_the_content_decides_not_the_name() -> None:
    check(read(parquet(pa.table(TABLES["float64"])), name="x.csv"))
    check(read(npz(probs=P, labels=Y), name="x.txt"))


def test_random_bytes_are_refused_in_one_sentence() -> None:
    rng = np.random.default_rng(0)
    starts = [
        b"",
        b"PAR1",
        b"ARROW1\0\0",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00",
        b"\x1f\x8b\x08",
        b"{",
    ]
    for start in starts:
        for _ in range(10):
            refused(start + rng.bytes(300), "x.bin")


def test_options_reach_arrays() -> None:
    options = ReadingOptions(scores=("mine",), label="truth", class_names=("no", "yes"))
    data = read(npz(mine=P, probs=1 - P, truth=Y, labels=1 - Y), name="x.npz", options=options)
    assert check(data).class_names == ("no", "yes")


@pytest.mark.slow
def test_tables_are_read_without_pandas(tmp_path: Path) -> None:
    # pyarrow imports it for its to_numpy, which takes longer than reading most files.
    table = pa.table({"label": ["a", "b", "b"], "site": Y, "p_a": P[:, 0], "p_b": P[:, 1]})
    (tmp_path / "x.parquet").write_bytes(parquet(table))
    (tmp_path / "x.arrow").write_bytes(arrow(table))
    code = (
        "import sys; from calviz.data import read; read('x.parquet'); read('x.arrow')\n"
        "assert 'pandas' not in sys.modules"
    )
    root = Path(__file__).resolve().parents[3]
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def test_arrays_of_splits_without_labels_are_named(tmp_path: Path) -> None:
    probs, labels = np.full((4, 2), 0.5), np.arange(4) % 2
    path = tmp_path / "x.npz"
    np.savez(path, val_probs=probs, val_labels=labels, test_probs=probs, epoch=np.arange(2))
    loaded = read(path)
    assert loaded.first.n == 4
    assert [f.message for f in loaded.notices if f.code == "DATA015"] == [
        "'test_probs' is left out: a split needs scores and labels",
        "'epoch' is left out: not every split has such an array",
    ]


# ---------------------------------------------------------------- scores, labels and class names in files of their own


def test_npy_files_of_scores_and_labels_are_read_together(tmp_path):
    logits, labels = np.eye(3)[[0, 1, 2, 1]] * 2.0, np.array([0, 1, 2, 2])
    files = [("m_logits.npy", npy(logits)), ("m_labels.npy", npy(labels)), ("c.txt", b"a\nb\nc\n")]
    ((name, content),) = zipped(files)
    found = read(content, name=name)
    assert (found.first.kind, found.first.class_names) == ("logits", ("a", "b", "c"))
    assert zipped(files) == [(name, content)]
    assert zipped(files[::2]) == files[::2]
    for file, array in files[:2]:
        (tmp_path / file).write_bytes(array)
    of = LabelFile(tmp_path / "m_labels.npy")
    assert read(tmp_path / "m_logits.npy", labels=of).first.labels.tolist() == [0, 1, 2, 2]


def test_objects_of_an_npz_file_that_are_not_needed_are_left_out():
    stream, objects = io.BytesIO(), np.array(["x", 1, None, 2], dtype=object)
    np.savez(stream, probs=np.full((4, 2), 0.5), labels=[0, 1, 0, 1], date=objects)
    found = read(stream.getvalue())
    assert any("'date'" in n.message and "pickle" in n.message for n in found.notices)

"""Valid files of every supported format, made from one small table: the inputs that the fuzzer starts from."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.inputs import evaluation_logs

ROWS, CLASSES = 24, ("cat", "dog", "fox")
_RNG = np.random.default_rng(6)
PROBS = np.round(_RNG.dirichlet(np.ones(3), ROWS), 4)
PROBS[:, 2] = np.round(1 - PROBS[:, 0] - PROBS[:, 1], 4)
LABELS = _RNG.integers(3, size=ROWS)
SPLITS = np.where(np.arange(ROWS) < 12, "val", "test")


def seeds() -> dict[str, bytes]:
    """Contents of the files by file name."""
    return _texts() | _json() | _numpy() | _tables() | _logs() | _exports()


def _csv(separator: str = ",", decimal: str = ".", header: bool = True) -> str:
    lines = [separator.join(["label", *(f"p_{c}" for c in CLASSES), "site"])] if header else []
    for y, p in zip(LABELS, PROBS, strict=True):
        cells = [CLASSES[y] if header else str(y), *(f"{v:.4f}" for v in p)]
        cells = [c.replace(".", decimal) for c in cells]
        lines.append(separator.join([*cells, f"s{y}"] if header else cells))
    return "\n".join(lines) + "\n"


def _texts() -> dict[str, bytes]:
    plain = _csv()
    quoted = plain.replace("p_cat", '"p_cat, ""tabby"""').replace("\ncat,", '\n"cat, ""tabby""",')
    return {
        "plain.csv": plain.encode(),
        "semicolon.csv": _csv(";", ",").encode(),
        "tabs.tsv": _csv("\t").replace("\n", "\r\n").encode(),
        "bare.txt": _csv(" ", header=False).encode(),
        "quoted.csv": quoted.encode("utf-8-sig"),
        "latin.csv": plain.replace("cat", "été").encode("cp1252"),
        "utf16.csv": plain.encode("utf-16"),
        "comments.csv": ("# made by hand\n\n" + plain).encode(),
        "packed.csv.gz": gzip.compress(plain.encode(), mtime=0),
        "confidence.csv": b"confidence,correct\n0.9,1\n0.7,0\n0.8,1\n0.65,1\n",
        "top.csv": b"confidence,true_label,pred_label\n0.9,a,a\n0.7,b,a\n0.8,b,b\n0.65,2,a\n",
        "binary.csv": b"y,prob\n" + b"".join(b"%d,0.%d\n" % (j % 2, 10 + j) for j in range(24)),
        "models.csv": b"label,a:x,a:y,b:x,b:y\nx,0.5,0.5,0.1,0.9\ny,0.2,0.8,0.7,0.3\n" * 1,
        "one_hot.csv": b"p_a,p_b,y_a,y_b,id\n0.5,0.5,1,0,7\n0.2,0.8,0,1,8\n0.9,0.1,1,0,9\n",
        "logits.csv": b"label,logit_a,logit_b\na,1.5,-3\nb,0.25,2.5\nb,-1e3,12\n",
    }


def _json() -> dict[str, bytes]:
    objects: list[dict[str, Any]] = [
        {"label": CLASSES[y], "probs": dict(zip(CLASSES, p.tolist(), strict=True)), "site": f"s{y}"}
        for y, p in zip(LABELS, PROBS, strict=True)
    ]
    lists = [{"label": int(y), "probs": p.tolist()} for y, p in zip(LABELS, PROBS, strict=True)]
    lines = "\n".join(map(json.dumps, objects)).encode()
    return {
        "objects.jsonl": lines,
        "lists.jsonl": "\n".join(map(json.dumps, lists)).encode(),
        "array.json": json.dumps(lists, indent=1).encode(),
        "columns.json": json.dumps({"labels": LABELS.tolist(), "probs": PROBS.tolist()}).encode(),
        "packed.jsonl.gz": gzip.compress(lines, mtime=0),
    }


def _logs() -> dict[str, bytes]:
    """Logs of language models, rows with varying numbers of choices, and predictions with labels in another file."""
    uneven: list[dict[str, Any]] = [
        {"probs": {"a": 0.25, "b": 0.75}, "label": "b", "task": "two"},
        {"probs": {"a": 0.5, "b": 0.25, "c": 0.25}, "label": "c", "task": "three"},
    ]
    (two,) = _LOGS.glob("samples_two_*.jsonl")
    return {
        "samples_two_2026-01-01T00-00-00.jsonl": b"\n".join(two.read_bytes().splitlines()[:8]),
        "inspect_letters.json": (_LOGS / "inspect_letters.json").read_bytes(),
        "inspect_stated.json": (_LOGS / "inspect_stated.json").read_bytes(),
        "inspect_said.eval": (_LOGS / "inspect_said_zstd.eval").read_bytes(),
        **evaluation_logs.files(),
        "hugging_face_all.jsonl": (_TOOLS / "hugging_face_all.jsonl").read_bytes(),
        "hugging_face_top.jsonl": (_TOOLS / "hugging_face_top.jsonl").read_bytes(),
        "hugging_face_trainer.npz": (_TOOLS / "hugging_face_trainer.npz").read_bytes(),
        "uneven.jsonl": "\n".join(map(json.dumps, uneven * 4)).encode(),
        PREDICTIONS: b"id,cat,dog\n1,0.5,0.5\n2,0.25,0.75\n3,0.9,0.1\n",
        "stated.csv": b"confidence,correct\n90,1\n75,0\n100,1\n55,1\n",
    }


def _exports() -> dict[str, bytes]:
    """What other tools write; R's objects also unpacked, so that a change is seen by more than the check of gzip."""
    files = {
        file.name: file.read_bytes()
        for file in sorted(_EXPORTS.iterdir())
        if file.stem != "expected"
    }
    return files | {"unpacked.rds": gzip.decompress(files["predictions.rds"])}


#: The file that is read with the labels of another file.
PREDICTIONS = "predictions.csv"
TRUTH = b"id,label,site\n3,cat,a\n1,dog,b\n2,dog,a\n4,cat,b\n"
_LOGS = Path(__file__).parents[1] / "tests" / "inputs" / "logs"
_TOOLS = Path(__file__).parents[1] / "tests" / "inputs" / "predictions"
_EXPORTS = Path(__file__).parents[1] / "tests" / "inputs" / "exports"


def _npz(compressed: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def npy(array: Any) -> bytes:
    """One array in the format of NumPy."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _numpy() -> dict[str, bytes]:
    halves = {
        f"{s}_{role}": values[s == SPLITS]
        for s in ("val", "test")
        for role, values in (("probs", PROBS.astype("f4")), ("labels", LABELS))
    }
    both = np.column_stack([PROBS, LABELS])
    records = np.array(
        [(y, *p) for y, p in zip(LABELS, PROBS.tolist(), strict=True)],
        dtype=[("label", "<i4"), ("p_a", "<f8"), ("p_b", "<f8"), ("p_c", "<f8")],
    )
    names = np.array(CLASSES)
    return {
        "plain.npz": _npz(probs=PROBS, labels=LABELS, class_names=names),
        "packed.npz": _npz(True, probs=PROBS.astype("f4"), labels=LABELS[:, None], ids=np.arange(ROWS)),
        "logits.npz": _npz(logits=np.log(PROBS + 0.01).astype("f2"), y=LABELS.astype("u1"), split=SPLITS),
        "splits.npz": _npz(**halves),
        "fortran.npz": _npz(y_prob=np.asfortranarray(PROBS), y_true=names[LABELS], class_names=names),
        "plain.npy": npy(both),
        "fortran.npy": npy(np.asfortranarray(both.astype("f4"))),
        "records.npy": npy(records),
    }  # fmt: skip


def table() -> pa.Table:
    """The base table as an Arrow table."""
    columns: dict[str, Any] = {"label": [CLASSES[y] for y in LABELS]}
    columns |= {f"p_{c}": PROBS[:, k] for k, c in enumerate(CLASSES)}
    return pa.table(columns | {"id": np.arange(ROWS), "split": SPLITS.tolist()})


def nested() -> pa.Table:
    """The base table with lists, a dictionary, a date and a missing value."""
    return pa.table(
        {
            "label": pa.array([str(y) for y in LABELS]).dictionary_encode(),
            "probs": pa.array(PROBS.tolist(), pa.list_(pa.float32())),
            "day": pa.array(np.arange(ROWS, dtype=np.int32), pa.date32()),
            "site": pa.array([None, *(f"s{y}" for y in LABELS[1:])]),
        }
    )


def struct() -> pa.Table:
    """The base table with one column of objects and decimal numbers."""
    probs = [dict(zip(CLASSES, p.tolist(), strict=True)) for p in PROBS]
    return pa.table({"y": [CLASSES[y] for y in LABELS], "probs": probs})


def odd(nested: bool = True) -> pa.Table:
    """The base table with additional columns of rarer types."""
    n = np.arange(ROWS)
    columns: dict[str, Any] = {"label": LABELS.astype("u1")}
    columns |= {f"p_{c}": PROBS[:, k].astype("f2") for k, c in enumerate(CLASSES)}
    columns |= {
        "when": pa.array(n * 1_000, pa.timestamp("ms", "UTC")),
        "time": pa.array(n, pa.time64("us")),
        "bytes": pa.array([b"\xff\x00%d" % j for j in n], pa.binary()),
        "big": pa.array([2**64 - 1 - int(j) for j in n], pa.uint64()),
        "money": pa.array(n).cast(pa.decimal128(21, 1)),
        "nothing": pa.nulls(ROWS),
        "gaps": pa.array([None if j % 5 else int(j) for j in n]),
        "flag": pa.array(n % 2 == 0),
        "view": pa.array([f"v{j % 3}" for j in n], pa.string_view()),
        "large": pa.array([f"v{j % 3}" for j in n], pa.large_string()),
    }
    if nested:
        columns |= {
            "words": pa.array([["a"] * int(j % 3) for j in n]),
            "map": pa.array([[("a", int(j))] for j in n], pa.map_(pa.string(), pa.int64())),
            "codes": pa.array([["x", None][j % 2] for j in n]).dictionary_encode(),
            "fixed": pa.array([[int(j)] * 2 for j in n], pa.list_(pa.int8(), 2)),
        }
    return pa.table(columns)


def _tables() -> dict[str, bytes]:
    def parquet(content: pa.Table, **options: Any) -> bytes:
        stream = io.BytesIO()
        pq.write_table(content, stream, **options)
        return stream.getvalue()

    def arrow(content: pa.Table, compression: str | None = None) -> bytes:
        stream = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(stream, content.schema, options=options) as writer:
            writer.write_table(content, max_chunksize=10)
        return stream.getvalue()

    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table().schema) as writer:
        writer.write_table(table(), max_chunksize=10)
    return {
        "plain.parquet": parquet(table(), compression="none", use_dictionary=False),
        "packed.parquet": parquet(table(), compression="zstd", row_group_size=10),
        "pages.parquet": parquet(table(), compression="gzip", data_page_version="2.0"),
        "nested.parquet": parquet(nested()),
        "struct.parquet": parquet(struct(), compression="none"),
        "odd.parquet": parquet(odd()),
        "odd.arrow": arrow(odd()),
        "odd.feather": arrow(odd(), "zstd"),
        "plain.arrow": arrow(table()),
        "packed.feather": arrow(table(), "lz4"),
        "nested.arrow": arrow(nested(), "zstd"),
        "struct.arrow": arrow(struct()),
        "stream.arrows": stream.getvalue(),
    }


def members(content: bytes) -> dict[str, bytes]:
    """The members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {e.filename: archive.read(e) for e in archive.infolist()}

"""Whatever the table, it is read as it was written; whatever the bytes, they are read or refused in one sentence."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.data import read
from tests.property.example_counts import FACTOR, examples

ROOT = Path(__file__).resolve().parents[2]

#: Names that are not stripped, folded or taken for numbers, and that every encoding can write.
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=12)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Class names, probabilities with up to 17 digits, labels."""
    k = draw(st.integers(2, 5))
    names = [
        f"c{name}" for name in draw(st.lists(NAMES, min_size=k, max_size=k, unique_by=str.casefold))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 30))
    probs = rng.dirichlet(np.full(k, draw(st.sampled_from([0.05, 1.0]))), size=n)
    if draw(st.booleans()):
        probs = np.round(probs, 3)
    return names, probs, rng.integers(k, size=n)  # fmt: skip


def same(content: bytes, name: str, table: tuple[list[str], np.ndarray, np.ndarray]) -> None:
    names, probs, labels = table
    data = read(content, name=name).first
    assert isinstance(data, Predictions)
    assert data.class_names == tuple(names)
    assert data.labels.tolist() == labels.tolist()
    assert np.array_equal(data.probs, probs)


@examples(25)
@given(
    table=tables(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    newline=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    last=st.booleans(),
)
def test_text(
    table: tuple[list[str], np.ndarray, np.ndarray],
    separator: str, quoting: int, newline: str, encoding: str, last: bool,
) -> None:  # fmt: skip
    names, probs, labels = table
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=newline)  # type: ignore[arg-type]
    rows: list[tuple[list[object], str]] = [([f"p_{c}" for c in names], "label")]
    rows += [(list(p), names[y]) for p, y in zip(probs.tolist(), labels, strict=True)]
    writer.writerows([*p, y] if last else [y, *p] for p, y in rows)
    same(stream.getvalue().encode(encoding), "x.csv", table)


@examples(20)
@given(table=tables(), lists=st.booleans())
def test_objects_and_columns(table: tuple[list[str], np.ndarray, np.ndarray], lists: bool) -> None:
    names, probs, labels = table
    rows = [
        {"label": names[y], "probs": dict(zip(names, p, strict=True))}
        for y, p in zip(labels, probs.tolist(), strict=True)
    ]
    same("\n".join(json.dumps(r, ensure_ascii=lists) for r in rows).encode(), "x.jsonl", table)
    columns = {"label": [names[y] for y in labels]} | {f"p_{c}": probs[:, k] for k, c in enumerate(names)}  # fmt: skip
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, row_group_size=7)
    same(stream.getvalue(), "x.parquet", table)
    stream = io.BytesIO()
    np.savez(stream, probs=probs, labels=np.array([names[y] for y in labels]), class_names=np.array(names))  # fmt: skip
    same(stream.getvalue(), "x.npz", table)


BEGINNINGS = [b"", b"label,p_a,p_b\n", b"PK\3\4", b"\x93NUMPY\1\0", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"\x1f\x8b", b"\xff\xfe", b"{", b"["]  # fmt: skip


@examples(150)
@given(
    begin=st.sampled_from(BEGINNINGS),
    rest=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))),
    name=st.sampled_from(["x", "x.csv", "x.npz", "x.parquet", "x.jsonl", "x.npy", "x.arrow"]),
)  # fmt: skip
def test_any_bytes(begin: bytes, rest: bytes, name: str) -> None:
    try:
        assert read(begin + rest, name=name).first.n > 0
    except InputError as error:
        sentence = str(error)
    else:
        sentence = ""
    assert sentence.isprintable()
    assert len(sentence) < 1_500


@pytest.mark.slow
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    """A short run; ``benchmarks/fuzz_readers.py`` is the long one."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from fuzz_readers import Run
    finally:
        sys.path.pop(0)
    run = Run(0, tmp_path)
    run.drive(0, 150 * FACTOR)
    assert run.finds == []
    assert run.kinds["read"] > 0
    assert run.kinds.total() == 150 * FACTOR

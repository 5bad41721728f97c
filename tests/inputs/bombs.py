"""Small files that ask for much: what they declare, or unpack to, is far more than what they are."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tests.inputs.relatives import npz, parquet


def npy_header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def arrow(table: pa.Table, compression: str = "zstd") -> bytes:
    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    return stream.getvalue()


def repeated(text: bytes, times: int) -> bytes:
    """Gzip of a text many times over, without ever holding it: members may follow each other."""
    block = 1 << 12
    return gzip.compress(text * block) * (times // block)


def lying_zip(size: int) -> bytes:
    """An array whose sizes in the directory are larger than the file."""
    data = bytearray(zipped({"probs.npy": npy_header((size // 16, 2)) + bytes(160)}))
    at = data.rindex(b"PK\1\2")
    struct.pack_into("<II", data, at + 20, size, size)
    return bytes(data)


def overlapping_zip(count: int) -> bytes:
    """Directory entries that all point at one compressible array."""
    array = npy_header((1_000_000, 2)) + bytes(16_000_000)
    data = zipped({"a0000.npy": array}, zipfile.ZIP_DEFLATED)
    at, end = data.rindex(b"PK\1\2"), data.rindex(b"PK\5\6")
    entry = data[at:end]
    entries = b"".join(entry.replace(b"a0000", b"a%04d" % j) for j in range(count))
    tail = bytearray(data[end:])
    struct.pack_into("<HHII", tail, 8, count, count, len(entries), at)
    return data[:at] + entries + bytes(tail)


def crowded_zip(count: int) -> bytes:
    """A directory of very many arrays."""
    return zipped({f"a{j}.npy": npy_header((0,)) for j in range(count)})


ROWS = 6_000_000
ZEROS = 20_000_000


def _zeros(n: int) -> pa.Array:
    return pa.array(np.zeros(n, dtype=np.float32))


def _constant(n: int) -> pa.Table:
    codes = pa.array(np.zeros(n, dtype=np.int8))
    half = pa.DictionaryArray.from_arrays(codes, pa.array([0.5], pa.float32()))
    label = pa.DictionaryArray.from_arrays(codes, pa.array(["a"]))
    return pa.table({"label": label, "p_a": half, "p_b": half})


def _long_text(rows: int, length: int) -> pa.Table:
    codes = pa.array(np.zeros(rows, dtype=np.int32))
    name, half = "a" * length, np.full(rows, 0.5)
    label = pa.DictionaryArray.from_arrays(codes, pa.array([name]))
    return pa.table({"label": label, f"p_{name}": half, "p_b": half})


def _one_long_list(n: int) -> pa.Table:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, n], pa.int32()), _zeros(n))
    return pa.table({"label": [0, 1], "probs": lists})


def sparse_objects(n: int) -> bytes:
    """JSON Lines in which no two objects share a key."""
    return b"".join(b'{"k%d":1}\n' % j for j in range(n))


#: How each is made, by file name.
BOMBS: dict[str, Callable[[], bytes]] = {
    "declared.npy": lambda: npy_header((10**12, 3)) + bytes(80),
    "declared.npz": lambda: zipped({"probs.npy": npy_header((10**12, 3)) + bytes(80)}),
    "no_size.npy": lambda: npy_header((10**8,), "|S0") + bytes(80),
    "lying.npz": lambda: lying_zip(3 << 30),
    "lzma.npz": lambda: zipped({"probs.npy": npy_header((2, 2)) + bytes(32)}, zipfile.ZIP_LZMA),
    "overlapping.npz": lambda: overlapping_zip(2_000),
    "crowded.npz": lambda: crowded_zip(10_100),
    "zeros.npz": lambda: npz(True, probs=np.zeros((ZEROS, 2), dtype="f4"), labels=np.zeros(4)),
    "text.csv.gz": lambda: b"".join([gzip.compress(b"label,p_a,p_b\n"), repeated(b"0,1,0\n", 12_000_000)]),
    "line.csv.gz": lambda: repeated(b"0,", 30_000_000),
    "constant.parquet": lambda: parquet(_constant(ROWS)),
    "zeros.parquet": lambda: parquet(
        pa.table({"label": _zeros(ZEROS), "p_a": _zeros(ZEROS)}), compression="zstd", use_dictionary=False
    ),
    "long_list.parquet": lambda: parquet(_one_long_list(ZEROS)),
    "zeros.arrow": lambda: arrow(pa.table({"label": _zeros(ZEROS), "p_a": _zeros(ZEROS)})),
    "long_list.arrow": lambda: arrow(_one_long_list(ZEROS)),
    "sparse.jsonl": lambda: sparse_objects(30_000),
    "sparse.json": lambda: json.dumps([{f"k{j}": 1} for j in range(30_000)]).encode(),
}  # fmt: skip

#: Read, and as small in memory as they are: a text of 100,000 characters in each of 20,000 rows.
HARMLESS: dict[str, Callable[[], bytes]] = {
    "long_text.parquet": lambda: parquet(_long_text(20_000, 100_000), store_schema=False),
    "long_text.arrow": lambda: arrow(_long_text(20_000, 100_000)),
}

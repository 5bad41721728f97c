"""Test how libraries react to damaged files: the reason why some headers are read by our own code.

    nice -n 15 python benchmarks/fuzz_libraries.py polars --inputs 20000
    nice -n 15 python benchmarks/fuzz_libraries.py pyarrow-metadata --inputs 20000

`polars` reads whole Parquet and Arrow files and streams. `pyarrow-metadata` reads the number of values of each column from Parquet
files with damage mostly in the footer. A worker with limited memory (RLIMIT_AS) reads one after the other; the script counts
the outcomes, and prints the inputs that ended the process.
"""

from __future__ import annotations

import argparse
import functools
import io
import random
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from _fuzz_mutations import mutate
from _fuzz_seeds import seeds

SPACE = 8 << 30
_TABLES = (".parquet", ".arrow", ".feather", ".arrows")


def _polars(name: str, data: bytes) -> None:
    import polars as pl

    readers: dict[str, Callable[[Any], Any]] = {
        "parquet": pl.read_parquet,
        "arrows": pl.read_ipc_stream,
    }
    frame = readers.get(name.rpartition(".")[2], pl.read_ipc)(io.BytesIO(data))
    for column in frame.iter_columns():
        column.to_list()


def _pyarrow_metadata(name: str, data: bytes) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for j in range(group.num_columns):
            _ = group.column(j).num_values


files_of = functools.cache(seeds)
READERS = {"polars": (_polars, _TABLES), "pyarrow-metadata": (_pyarrow_metadata, (".parquet",))}


def make_input(reader: str, number: int) -> tuple[str, bytes]:
    """Make input `number`, which is always the same."""
    rng = random.Random(f"{reader}/{number}")
    files = {name: data for name, data in files_of().items() if name.endswith(READERS[reader][1])}
    name = rng.choice(list(files))
    data = files[name]
    if reader == "polars" or rng.random() < 0.2:
        return name, mutate(data, list(files.values()), rng)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = mutate(data[start:-8], [data[start:-8]], rng)
    return name, data[:start] + footer + len(footer).to_bytes(4, "little") + data[-4:]


def work(reader: str, first: int, last: int) -> None:
    """Read inputs first..last-1; prints each number before, and its outcome after."""
    for name, data in files_of().items():
        if name.endswith(READERS[reader][1]):
            print("undamaged", name, _outcome(reader, name, data), flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    for number in range(first, last):
        name, data = make_input(reader, number)
        print("begun", number, name, flush=True)
        print("ended", _outcome(reader, name, data), flush=True)


def _outcome(reader: str, name: str, data: bytes) -> str:
    try:
        READERS[reader][0](name, data)
    except BaseException as error:  # a panic of a native library is not an Exception
        return type(error).__name__
    return "read"


def main() -> None:
    """Run all inputs, with a new worker whenever one ends."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--worker", type=int, nargs=2, metavar=("FIRST", "LAST"))
    options = parser.parse_args()
    if options.worker:
        work(options.reader, *options.worker)
        return
    kinds: Counter[str] = Counter()
    first, undamaged = 0, set()
    while first < options.inputs:
        last = min(options.inputs, first + 5_000)
        command = [sys.executable, __file__, options.reader, "--worker", str(first), str(last)]
        worker = subprocess.run(command, capture_output=True, text=True)
        lines = [line.split() for line in worker.stdout.splitlines()]
        kinds.update(line[1] for line in lines if line[0] == "ended")
        undamaged |= {tuple(w[1:]) for w in lines if w[0] == "undamaged" and w[2] != "read"}
        begun = [line for line in lines if line[0] == "begun"]
        if worker.returncode and not begun:
            sys.exit(f"the worker did not begin: {worker.stderr[-300:]}")
        if worker.returncode:
            why = re.search(r"memory allocation of .*|what\(\): .*", worker.stderr)
            print(*begun[-1][1:], f"ended the process ({worker.returncode}):", why and why[0])
            kinds["ended the process"] += 1
            last = int(begun[-1][1]) + 1
        first = last
    print("undamaged, not read:", sorted(undamaged))
    print(f"{sum(kinds.values()):,} inputs:", dict(kinds.most_common()))


if __name__ == "__main__":
    main()

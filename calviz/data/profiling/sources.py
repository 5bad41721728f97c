"""Find the files of a path, a pattern, a folder or a hive-partitioned table, and scan them with an engine."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from calviz.core.errors import InputError, shortened
from calviz.core.extra_packages import needs
from calviz.core.options import check_choice

#: The engines that can sum files.
Engine = Literal["auto", "polars", "duckdb"]
#: The engine behind "auto" (ARCHITECTURE.md has the measurement).
DEFAULT = "polars"

#: Files are processed in parts of about this many bytes; parts that are finished when the work is stopped are not repeated.
PART_BYTES = 256 << 20
#: Approximate memory needed to evaluate a file, as a multiple of its size.
_EXPANDS = 12
_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".jsonl": "ndjson",
    ".ndjson": "ndjson",
}


@dataclass(frozen=True)
class TableFiles:
    """Files of one kind that form one table.

    Attributes
    ----------
    paths : tuple of Path
    kind : {"parquet", "csv", "ipc", "ndjson"}
    hive : bool
        Whether folders in the paths are named ``column=value``.
    """

    paths: tuple[Path, ...]
    kind: str
    hive: bool = False

    @property
    def name(self) -> str:
        """Name of the table: that of the only file, or of the folder."""
        first = self.paths[0]
        return first.stem if len(self.paths) == 1 else first.parent.name or first.stem

    def parts(self) -> Iterator[TableFiles]:
        """Yield groups of files of about `PART_BYTES` each."""
        part: list[Path] = []
        size = 0
        for path in self.paths:
            part.append(path)
            size += path.stat().st_size
            if size >= PART_BYTES:
                yield TableFiles(tuple(part), self.kind, self.hive)
                part, size = [], 0
        if part:
            yield TableFiles(tuple(part), self.kind, self.hive)


def find(sources: Sequence[str | os.PathLike[str]]) -> TableFiles:
    """Return the files of all sources, sorted by name within each source.

    Raises
    ------
    InputError
        If there are none, or they are of several kinds.
    """
    paths: list[Path] = []
    for source in sources:
        paths += _paths_of(os.fspath(source))
    paths = list(dict.fromkeys(paths))
    kinds = {_KINDS[path.suffix.lower()] for path in paths}
    if len(kinds) > 1:
        raise InputError(
            f"files of several kinds ({', '.join(sorted(kinds))}) are not one table",
            remedy="name those of one kind, such as 'data/*.parquet'",
        )
    hive = any("=" in parent.name for path in paths for parent in path.parents)
    return TableFiles(tuple(paths), kinds.pop(), hive)


def _paths_of(source: str) -> list[Path]:
    path = Path(source)
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.suffix.lower() in _KINDS and p.is_file())
        if not paths:
            raise InputError("there are no files of predictions in the folder", file=path.name)
        return paths
    if path.is_file():
        if path.suffix.lower() not in _KINDS:
            raise InputError(
                f"files that end in '{shortened(path.suffix)}' are not profiled",
                file=path.name,
                remedy=f"known: {', '.join(_KINDS)}",
            )
        return [path]
    paths = sorted(Path(p) for p in glob.glob(source, recursive=True))  # noqa: PTH207  # absolute patterns too
    paths = [p for p in paths if p.is_file() and p.suffix.lower() in _KINDS]
    if not paths:
        raise InputError("there is no such file", file=shortened(source))
    return paths


def why_out_of_core(source: str) -> str:
    """Return the reason why a path should not be read into memory; empty if it can be."""
    path = Path(source)
    if path.is_dir():
        table = any(
            p.suffix.lower() in (".parquet", ".pq", ".csv", ".arrow") for p in path.rglob("*")
        )
        return "it is a folder of files" if table else ""
    if not path.exists():
        return "it is a pattern" if glob.has_magic(source) else ""
    if path.suffix.lower() not in _KINDS:
        return ""
    needed, room = _EXPANDS * path.stat().st_size, _machine_memory() / 2
    return "it may not fit into memory" if needed > room else ""


def _machine_memory() -> float:
    """Bytes of the machine's memory; infinite if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return math.inf


@contextmanager
def no_panic() -> Iterator[None]:
    """Turn a panic of polars, which is not an `Exception`, into a RuntimeError, so that the error can name the file."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        text = str(error)
        match = re.search(r'ErrString\("(.+?)(?:\.|\n|")', text)
        raise RuntimeError(match[1] if match else text) from None


def scan(files: TableFiles, engine: str, memory: str | None = None) -> Any:
    """Return a lazy polars frame or a DuckDB relation of the files.

    Raises
    ------
    MissingPackage
        If the engine is not installed.
    """
    check_choice("engine", engine, get_args(Engine))
    paths = [str(path) for path in files.paths]
    if (DEFAULT if engine == "auto" else engine) == "duckdb":
        needs("duckdb")
        return _duckdb(paths, files, memory)
    import polars as pl

    hive: Any = {"hive_partitioning": files.hive}
    if files.kind == "parquet":
        return pl.scan_parquet(paths, glob=False, **hive)
    if files.kind == "csv":
        separator = "\t" if files.paths[0].suffix.lower() == ".tsv" else ","
        return pl.scan_csv(paths, glob=False, separator=separator)
    if files.kind == "ipc":
        return pl.scan_ipc(paths, glob=False, **hive)
    return pl.scan_ndjson(paths)


def _duckdb(paths: Any, files: TableFiles, memory: str | None) -> Any:
    import duckdb

    connection = duckdb.connect()
    # Extensions would be downloaded.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET enable_progress_bar = false")
    if memory is not None:
        connection.execute("SET memory_limit = ?", [memory])
    if files.kind == "parquet":
        return connection.read_parquet(paths, hive_partitioning=files.hive)
    if files.kind == "csv":
        return connection.read_csv(paths, hive_partitioning=files.hive)
    if files.kind == "ndjson":
        return connection.read_json(paths, format="newline_delimited")
    raise InputError("DuckDB does not read Arrow files", remedy="use the engine polars")

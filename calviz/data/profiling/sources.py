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
from typing import TYPE_CHECKING, Any, Literal, get_args

from calviz.core.errors import InputError, OptionError, shortened
from calviz.core.extra_packages import needs
from calviz.core.options import check_choice
from calviz.data.file_bytes import Source
from calviz.data.formats.csv.table import CsvTable, open_csv
from calviz.data.profiling.unusable_rows import check_columns
from calviz.data.recognition.column_names import is_score_name

if TYPE_CHECKING:  # polars is imported on first use
    import polars as pl

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
        return _known([path])
    paths = sorted(Path(p) for p in glob.iglob(source, recursive=True))  # noqa: PTH207  # absolute patterns too
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise InputError("there is no such file", file=shortened(source))
    return _known(paths)


def _known(paths: list[Path]) -> list[Path]:
    known = [path for path in paths if path.suffix.lower() in _KINDS]
    if not known:
        raise InputError(
            f"files that end in '{shortened(paths[0].suffix)}' cannot be read block by block",
            file=paths[0].name,
            remedy=f"known: {', '.join(_KINDS)}",
        )
    return known


def why_out_of_core(source: str) -> str:
    """Return the reason why a path should not be read into memory; empty if it can be."""
    path = Path(source)
    if path.is_dir():
        table = any(
            p.suffix.lower() in (".parquet", ".pq", ".csv", ".arrow") for p in path.rglob("*")
        )
        return "it is a folder of files" if table else ""
    if not path.exists():
        matched = glob.has_magic(source) and any(glob.iglob(source, recursive=True))  # noqa: PTH207
        return "it is a pattern" if matched else ""
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


def scan(
    files: TableFiles,
    engine: str,
    memory: str | None = None,
    *,
    floats: Sequence[str] = (),
    careful: bool = False,
) -> Any:
    """Return a lazy polars frame or a DuckDB relation of the files.

    Parameters
    ----------
    files : TableFiles
    engine : {"auto", "polars", "duckdb"}
    memory : str, optional
        Memory limit of DuckDB.
    floats : sequence of str
        Columns of text files that hold floats, even if the first rows have whole numbers only; those named like scores do anyway.
    careful : bool
        Whether polars determines the types of a text file from all rows instead of the first ones, and leaves out blank lines;
        this takes about twice the time.

    Raises
    ------
    InputError
        If a text file is not UTF-8.
    MissingPackage
        If the engine is not installed.
    """
    check_choice("engine", engine, get_args(Engine))
    paths = [str(path) for path in files.paths]
    if (DEFAULT if engine == "auto" else engine) == "duckdb":
        needs("duckdb")
        return _duckdb(paths, files, memory, floats)
    import polars as pl

    hive: Any = {"hive_partitioning": files.hive}
    if files.kind == "parquet":
        return pl.scan_parquet(paths, glob=False, **hive)
    if files.kind == "csv":
        return _csv(files.paths, floats, careful)
    if files.kind == "ipc":
        return pl.scan_ipc(paths, glob=False, **hive)
    return pl.scan_ndjson(paths, infer_schema_length=None if careful else 100)


def _text_table(path: Path) -> CsvTable:
    """Open a text file as files that are read whole; raise InputError, naming the file, if engines cannot read its encoding."""
    try:
        with Source(path) as opened:
            table = open_csv(opened)
    except InputError as error:
        raise error.in_file(path.name) from None
    if table.dialect.encoding != "utf-8":
        raise InputError(
            "the text is not UTF-8, and files are read block by block only as UTF-8",
            file=path.name,
            remedy="save it as UTF-8",
        )
    return table


def _csv(paths: Sequence[Path], floats: Sequence[str], careful: bool) -> Any:
    import polars as pl

    first = _text_table(paths[0])
    names = first.dialect.names
    alike = [path for path in paths if _begins_like(path, paths[0], first.dialect.skip)]
    frame = _csv_frame(alike, first, floats, careful)
    # Files with columns in another order or with another separator are read one by one.
    others = [path for path in paths if path not in set(alike)]
    frames = [_csv_frame([path], _text_table(path), floats, careful) for path in others]
    for path, other in zip(others, frames, strict=True):
        check_columns(other.collect_schema().names(), names, path.name)
    if not frames:
        return frame
    return pl.concat([frame, *(other.select(names) for other in frames)], how="vertical_relaxed")


def _begins_like(path: Path, first: Path, lines: int) -> bool:
    """Whether two text files have the same first lines."""
    if path == first:
        return True
    with path.open("rb") as one, first.open("rb") as other:
        return all(one.readline() == other.readline() for _ in range(lines))


def _csv_frame(
    paths: Sequence[Path], text: CsvTable, floats: Sequence[str], careful: bool
) -> pl.LazyFrame:
    import polars as pl

    dialect = text.dialect

    def scanned(types: dict[str, Any]) -> pl.LazyFrame:
        return pl.scan_csv(
            list(paths),
            glob=False,
            separator=dialect.separator,
            decimal_comma=dialect.decimal_comma,
            # The header is skipped, because its names may have spaces around them or comments above.
            has_header=False,
            skip_lines=dialect.skip,
            new_columns=list(dialect.names),
            schema_overrides=types,
            infer_schema_length=None if careful else 100,
        )

    types: dict[str, Any] = dict.fromkeys(_floats(text, floats), pl.Float64)
    frame = scanned(types)
    # Arrow has no type for whole numbers of more than 64 bits, which are identifiers.
    long = [name for name, kind in frame.collect_schema().items() if kind == pl.Int128]
    if long:
        frame = scanned(types | dict.fromkeys(long, pl.String))
    if careful and len(dialect.names) > 1:
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return frame


def _floats(text: CsvTable, floats: Sequence[str]) -> list[str]:
    """The columns of floats, and those named like scores whose first values are mostly numbers."""
    named = [c.name for c in text.columns if c.numeric and is_score_name(c.name)]
    return [name for name in dict.fromkeys([*floats, *named]) if name in text]


def _duckdb(paths: Any, files: TableFiles, memory: str | None, floats: Sequence[str]) -> Any:
    import duckdb

    connection = duckdb.connect()
    # Extensions would be downloaded.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET enable_progress_bar = false")
    if memory is not None:
        try:
            connection.execute("SET memory_limit = ?", [memory])
        except duckdb.Error:
            raise OptionError(
                f"the memory limit must be a size such as 1GB, got '{shortened(memory)}'."
            ) from None
    if files.kind == "parquet":
        return connection.read_parquet(paths, hive_partitioning=files.hive)
    if files.kind == "csv":
        types = dict.fromkeys(_floats(_text_table(files.paths[0]), floats), "DOUBLE")
        return connection.read_csv(paths, hive_partitioning=files.hive, dtype=types)
    if files.kind == "ndjson":
        return connection.read_json(paths, format="newline_delimited")
    raise InputError("DuckDB does not read Arrow files", remedy="use the engine polars")

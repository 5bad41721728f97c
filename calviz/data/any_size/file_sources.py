"""Files of any size: found, scanned by an engine, their columns recognised."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calviz.core import errors
from calviz.core.blocks import Factor
from calviz.core.errors import CalvizError, InputError, OptionError, lines_of, needs, shortened
from calviz.core.profile import ProfileColumns, TimeUnit
from calviz.data.column_names import class_key, is_score_name, whole
from calviz.data.format import REPAIRS, SAMPLE_ROWS, ReadingOptions, Source, known_columns
from calviz.data.formats.csv_table import CsvTable, open_csv
from calviz.data.labels import decode, names_of_one
from calviz.data.loaded import ReadingForMap
from calviz.data.reading import read
from calviz.data.recognition import recognise
from calviz.data.roles import ColumnRoles, Confidence, Problem, ScoreColumns
from calviz.data.rows_in_memory import ArrowRows, arrow_rows

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl


# ---- Files


#: The engines that can sum files.
Engine = Literal["auto", "polars", "duckdb"]
#: The engine behind "auto" (ARCHITECTURE.md has the measurement).
DEFAULT = "polars"

#: Files are processed in parts of about this many bytes; parts that are finished when the work is stopped are not repeated.
PART_BYTES = 256 << 20
#: Approximate memory needed to evaluate a file, as a multiple of its size.
_EXPANDS = 12
_KINDS = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".arrow": "ipc", ".feather": "ipc",
    ".jsonl": "ndjson", ".ndjson": "ndjson",
}  # fmt: skip


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
    needed, room = _EXPANDS * path.stat().st_size, errors.machine_memory() / 2
    return "it may not fit into memory" if needed > room else ""


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


def frame_of(source: Any) -> Any:
    """A data frame in the form that all of them share; raise InputError for something else."""
    import narwhals as nw

    try:
        return nw.from_native(source)
    except TypeError:
        what = f"got {type(source).__name__}, expected a path, a list of paths or a data frame"
        raise InputError(what) from None


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
    errors.check_choice("engine", engine, get_args(Engine))
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
    with errors.in_file(path.name):
        with Source(path) as opened:
            table = open_csv(opened)
        for _, error in table.unwanted:
            raise error.but(repairs=(), remedy="delete it")
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
    wanted = {*floats, *(c.name for c in text.columns if c.numeric and is_score_name(c.name))}
    return [name for name in text.names if name in wanted]


def _told_to_duckdb(files: TableFiles, text: CsvTable) -> dict[str, Any]:
    """What DuckDB does not find out by itself: what is above the header, and a decimal comma; {} if there is neither."""
    dialect = text.dialect
    if dialect.skip <= 1 and not dialect.decimal_comma:
        return {}
    first, *others = files.paths
    other = next((p for p in others if not _begins_like(p, first, dialect.skip)), None)
    if other is not None:
        raise InputError(
            f"its first lines are not those of {first.name}, which DuckDB reads alike if they hold a title or decimal commas",
            file=other.name,
            remedy="use the engine polars",
        )
    told = {"header": False, "skiprows": dialect.skip, "names": list(dialect.names)}
    return told | {"sep": dialect.separator, "decimal": "," if dialect.decimal_comma else "."}


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
        first = _text_table(files.paths[0])
        types = dict.fromkeys(_floats(first, floats), "DOUBLE")
        told = _told_to_duckdb(files, first)
        return connection.read_csv(paths, hive_partitioning=files.hive, dtype=types, **told)
    if files.kind == "ndjson":
        return connection.read_json(paths, format="newline_delimited")
    raise InputError("DuckDB does not read Arrow files", remedy="use the engine polars")


# ---- Columns


#: Reading options that are not supported where rows are read block by block.
_OF_WHOLE_FILES = (
    "repair", "cluster_column", "separator", "decimal", "header_line", "choices",
    "confidence_pattern", "answers",
)  # fmt: skip


def profile_layout(
    frame: nw.LazyFrame[Any],
    options: ReadingOptions,
    *,
    by: Sequence[str] = (),
    time: str | None = None,
    every: TimeUnit = "day",
    true_class: bool = False,
    each_class: bool = False,
    model: str | None = None,
    summed: bool = False,
    whole: nw.LazyFrame[Any] | None = None,
) -> ProfileColumns:
    """Return the columns from which a profile or a row sample is made.

    With `summed`, importance weights are refused. `whole` has the rows of all files, if `frame` is the first one.

    Raises
    ------
    InputError, OptionError
        If the columns cannot be recognised, or their form is not supported.
    """
    head = frame.head(SAMPLE_ROWS).collect("pyarrow").to_native()
    names = frame.collect_schema().names()
    for name in (*by, *([time] if time else [])):
        if name not in names:
            raise OptionError(f"there is no column '{shortened(name)}'; {known_columns(names)}.")
    if time:
        _check_dates(head.column(time).to_pylist(), time)
    table = arrow_rows(head, "the table has", format="table")
    if isinstance(options, ReadingForMap):
        options = options.of_table(table)
    if given := [key for key in _OF_WHOLE_FILES if getattr(options, key) not in (None, "", ())]:
        raise OptionError(
            f"'{given[0]}' is not supported where rows are read block by block, as for profiles and row samples: leave it out, or read "
            "the whole file."
        )
    try:
        with np.errstate(all="ignore"):
            roles = recognise(table, options)
    except InputError as error:
        raise _unrepaired(error) from None
    if roles.long and (named := roles.long[-1]) not in by:
        count, rows = 1, frame if whole is None else whole
        with suppress(Exception):  # files that cannot be read are named later
            count = len(rows.select(named).unique().collect("pyarrow"))
        if count > 1:
            remedy = "read those of each by themselves, or say that all are of one model (--model-column '', model_column='')"
            what = f"'{shortened(named)}' has {count:,} values that may name models, whose rows would be read as those of one"
            raise InputError(what, remedy=remedy)
    common: dict[str, Any] = {
        "split": roles.split,
        "groups": tuple(by),
        "time": time,
        "every": every,
    }
    if roles.weight is not None:
        common |= _weight(table, roles.weight, options, summed)
    if roles.confidence is not None:
        if true_class:
            raise InputError(
                "confidences do not name the true classes",
                remedy="leave out the true classes (--true-class, true_class=)",
            )
        if each_class:
            raise InputError(
                "confidences do not hold the probabilities of all classes",
                remedy="leave out the cells of each class (--each-class, each_class=)",
            )
        return _of_confidence(table, roles.confidence, options, common)
    layout = _of_scores(table, roles, options, model, common)
    # With two classes, the hit is the true class.
    several_classes = not layout.two_classes
    return replace(
        layout, true_class=true_class and several_classes, each_class=each_class and several_classes
    )


def _unrepaired(error: InputError) -> InputError:
    """Return an error whose answers take no repair: it says what is to be done to the data before."""
    asked = [key for answer in error.answers for key in answer.options.get("repair", ())]
    if not asked:
        return error
    does = " or ".join(REPAIRS[key].label for key in dict.fromkeys(asked))
    remedy = f"to {does}, do so beforehand: what is read block by block is not repaired"
    readings = [way for way in error.readings if "repair" not in way.options]
    return error.but(readings=readings, repairs=(), remedy=remedy)


def _check_dates(values: Sequence[Any], column: str) -> None:
    """Raise InputError if the first values of a column are no dates, or texts that do not begin with YYYY-MM-DD."""
    for row, value in enumerate(values, start=1):
        if isinstance(value, str):
            try:
                date.fromisoformat(value[:10] or "2000-01-01")
            except ValueError:
                raise InputError(
                    f"'{shortened(value)}' cannot be read as a date",
                    row=row,
                    column=column,
                    remedy="write all as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS",
                ) from None
        elif value is not None and not isinstance(value, date):  # also a datetime
            raise InputError("it holds no dates", column=column, remedy="name a column of dates")


def _weight(table: ArrowRows, name: str, options: ReadingOptions, summed: bool) -> dict[str, str]:
    are_counts = options.weight_kind == "frequency"
    if summed and not are_counts:
        raise InputError(
            "a profile has no importance weights, because their intervals need single rows",
            column=name,
            remedy="say so if they are counts (--weight-kind frequency, weight_kind='frequency'), or judge a sample of the rows, which keeps them (calviz.sample_rows)",
        )
    if not table[name].numeric:
        what = "counts" if are_counts else "weights"
        raise InputError(
            f"the column of {what} holds no numbers", column=name, remedy="name another one"
        )
    return {"count" if are_counts else "weight": name}


def _of_confidence(
    table: ArrowRows, columns: Confidence, options: ReadingOptions, common: dict[str, Any]
) -> ProfileColumns:
    if options.for_map and not columns.log:
        return ProfileColumns(
            label="", scores=(columns.score,), classes=(0, 1), confidence=True, **common
        )
    if columns.correct is None or columns.log:
        raise InputError(
            "a profile of confidences needs a column that says whether each prediction was right",
            remedy="add one with 0 and 1",
        )
    classes = (False, True) if table[columns.correct].type == "boolean" else (0, 1)
    return ProfileColumns(
        label=columns.correct, scores=(columns.score,), classes=classes, confidence=True, **common
    )


def _of_scores(
    table: ArrowRows,
    roles: ColumnRoles,
    options: ReadingOptions,
    model: str | None,
    common: dict[str, Any],
) -> ProfileColumns:
    scores = _model(roles.scores, model)
    if roles.multilabel:
        raise InputError(
            "rows have none or several of the labels, and a profile needs one label per row",
            remedy="name one of them and its scores (label=, scores=)",
        )
    if roles.correct is not None and None in table[roles.correct].keys:
        raise InputError(
            "rows without it have no known label, and a profile cannot leave them out",
            column=roles.correct,
            remedy="leave them out of the file",
        )
    if scores.width > 1 and len(scores.columns) == 1:
        raise InputError(
            "a profile is made of one column per class, and this is a column of lists",
            column=scores.columns[0],
        )
    k = max(2, scores.width)
    label = roles.label or ""
    if isinstance(options, ReadingForMap):
        classes, names = _classes_if_any(table, label, scores, k, options)
    elif not label:
        raise InputError("a profile needs one column with the true class")
    else:
        classes, names = _classes(table, label, scores, k, options)
    columns = scores.columns
    if scores.kind == "logits":
        Problem(table, scores, table.fetch([columns], []).scores[0]).check_logits()
        common = common | {"logits": columns}
        # Names of the probabilities computed from them, which do not clash with columns of a file.
        columns = tuple(f"calviz:logits p {j}" for j in range(k))
    return ProfileColumns(label=label, scores=columns, classes=classes, class_names=names, **common)


def _model(scores: Sequence[ScoreColumns], model: str | None) -> ScoreColumns:
    by_model = {s.model: s for s in scores}
    if model is None and len(scores) == 1:
        return scores[0]
    if model in by_model:
        return by_model[model]
    if list(by_model) == [""]:
        raise OptionError(
            f"there is no model '{shortened(str(model))}': there is one, without a name; leave out the model (--model, model=)."
        )
    wrong = f"there is no model '{shortened(model)}'" if model else "there are several models"
    raise OptionError(f"{wrong}; choose one of: {', '.join(by_model)}.")


def _classes_if_any(
    table: ArrowRows, label: str, scores: ScoreColumns, k: int, options: ReadingForMap
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the same as `_classes`, also if there are no labels or they cannot be read."""
    named = options.class_names or scores.class_names
    if label:
        with suppress(InputError):
            classes, names = _classes(table, label, scores, k, options)
            if not options.labels_rename(named, names):
                return classes, names
    return tuple(range(k)), options.names_of_classes(named, k)


def _classes(
    table: ArrowRows, label: str, scores: ScoreColumns, k: int, options: ReadingOptions
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the value in the label column for each class, and the class names."""
    classes, names = _labelled_classes(table, label, scores, k, options)
    if scores.holds_first_of(names):
        return classes[::-1], names[::-1]
    return classes, names


def _labelled_classes(
    table: ArrowRows, label: str, scores: ScoreColumns, k: int, options: ReadingOptions
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the same in the order of the labels."""
    column = table[label]
    names = options.class_names or scores.class_names
    base = options.label_base
    if scores.labels and column.type == "boolean":
        return tuple(class_key(text) in ("true", "1") for text in scores.labels), names
    if scores.labels and column.numeric:
        return tuple(whole(text) for text in scores.labels), names
    if column.type == "boolean" and k == 2:
        first = len(names) == k and class_key(names[0]) == "true"
        return (first, not first), names if len(names) == k else ("0", "1")
    values = table.fetch((), [label]).columns[label]
    if len(names) != k:
        # A single score column does not name both classes.
        names = names_of_one(names[0], values) if len(names) == 1 else ()
        base = None if names else base
    decoded = decode(
        values,
        k,
        class_names=tuple(names),
        columns=scores.columns,
        base=base,
        name=label,
        line=lambda _: None,
        class_labels=scores.labels,
    )
    if decoded.form == "-1 and +1":
        return (-1, 1), decoded.class_names
    if column.numeric and decoded.form.startswith("class index"):
        base = options.label_base or 0
        return tuple(range(base, base + k)), decoded.class_names
    # Each class as written in the label column, or its name if it does not occur in the first rows.
    levels = Factor.of(values).levels
    codes = decoded.indices[np.unique(Factor.of(values).codes, return_index=True)[1]]
    written = {int(c): level for c, level in zip(codes, levels, strict=True) if c >= 0}
    texts = [written.get(j, decoded.class_names[j]) for j in range(k)]
    return (tuple(float(t) for t in texts) if column.numeric else tuple(texts)), decoded.class_names


_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")


def error_of_path(error: Exception, path: Path, reading: ReadingOptions) -> Exception:
    """Turn an exception about a file into an error that names the file and, if it is text that fits into memory, the lines."""
    of_whole = None if isinstance(error, CalvizError) else error_of_whole(error, path, reading)
    return of_whole or error_of_file(error, path.name)


def error_of_whole(error: Exception, path: Path, reading: ReadingOptions) -> InputError | None:
    """Read a text file that could not be read block by block as a whole, and return what is wrong; None if it may not fit into memory."""
    if path.suffix.lower() not in _TEXT or why_out_of_core(str(path)):
        return None
    try:
        read(path, options=reading)
    except InputError as of_whole:
        return of_whole
    return InputError(
        f"it can be read as a whole, but not block by block ({shortened(lines_of(error)[0])})",
        file=path.name,
        remedy="save it as Parquet",
    )


def error_of_file(error: Exception, name: str) -> Exception:
    """Turn an exception about a file (or a frame, without a name) into an error that names the file."""
    if isinstance(error, CalvizError):
        return error.in_file(name) if name and isinstance(error, InputError) else error
    return unreadable(error, name)


def unreadable(error: Exception, name: str) -> InputError:
    """Return the error about a file (or a frame, without a name) that an engine cannot read."""
    return InputError(
        f"it cannot be read ({shortened(lines_of(error)[0])})",
        file=name or None,
        remedy="make it again, or leave it out",
    )


def check_columns(names: Iterable[str], needed: Iterable[str], file: str | None) -> None:
    """Raise InputError if a further file lacks a column of the first one."""
    if missing := set(needed) - set(names):
        raise InputError(
            f"there is no column '{shortened(min(missing))}', which the first file has",
            file=file,
            remedy="name files with the same columns",
        )

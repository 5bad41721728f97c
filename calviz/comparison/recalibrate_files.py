"""Recalibration of files of any size: fitted on a sample of the rows, applied to all, block by block."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calviz.comparison import fitting
from calviz.core import blocks, entry_specs, errors, words
from calviz.core.errors import DEFAULT_SAMPLE_ROWS, InputError, NotAvailable, OptionError, real_path
from calviz.core.predictions import Dataset, Predictions
from calviz.core.profile import ProfileColumns
from calviz.data.any_size import file_sources, sampling
from calviz.data.any_size.file_sources import TableFiles
from calviz.data.any_size.sampling import FIT, JUDGED, RowSample, SampledBlock
from calviz.data.format import ReadingOptions, options_of
from calviz.recalibrators.base import load_map


@dataclass(frozen=True, eq=False)
class RecalibratedFiles:
    """Calibrated files, with the map and the rows that it was fitted on.

    Attributes
    ----------
    files : tuple of Path
    recalibrator : transformer
        The fitted map.
    sample : RowSample
        The rows that it was fitted on.
    judge_column, judge_split : str or None
        Column of the files that marks the rows that were not used to fit the map, and its value for these.
    """

    files: tuple[Path, ...]
    recalibrator: Any
    sample: RowSample
    judge_column: str | None
    judge_split: str | None

    @property
    def map(self) -> dict[str, Any]:
        """The map for JSON, with a record of the sample that it was fitted on."""
        record = self.recalibrator.to_apply(self.sample.data, self.sample.columns)
        return {**record, "sample": self.sample.record()}


def recalibrate_files(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    method: str,
    folder: str | os.PathLike[str],
    *,
    rows: int = DEFAULT_SAMPLE_ROWS,
    fit_split: str | None = None,
    seed: int = 0,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> RecalibratedFiles:
    """Fit a recalibrator on a stratified sample of the rows of files, and write all files with calibrated scores.

    If the files have no splits, they get a column ``split``: "calibration" for the fitting rows and "evaluation" for
    all others, which the map should be judged on. An aggregated row of which only some copies were drawn is written twice, with
    both counts. Logits are replaced by probabilities, ``p_CLASS``.

    Parameters
    ----------
    sources : str, PathLike, or sequence of these
        Files, folders or patterns.
    method : str
        Key of a recalibrator, or ``first+second``.
    folder : str or PathLike
        Output folder; the files are written as Parquet and keep their names.
    rows : int
        Number of rows to fit on (see `calviz.sample_rows`).
    fit_split : str, optional
        The split that they are drawn from; if left out, a split with a usual name for it.
    seed : int
        Seed of the sample.
    model : str, optional
        Which model, if there are several.
    parameters : mapping, optional
        Parameters of the recalibrator.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``scores=["p0", "p1", "p2"]``).

    Returns
    -------
    RecalibratedFiles

    Raises
    ------
    InputError, OptionError
        If a row cannot be used or files cannot be written there; the sentence names the file.
    """
    spec = entry_specs.RECALIBRATORS[method]
    if spec.takes_columns:
        raise NotAvailable(
            f"'{spec.key}' needs the columns of its rows, and rows that are drawn have scores and labels only: fit it on a file that is "
            "read whole, save the map, and apply that to these files."
        )
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    target_names(paths, folder)
    if rows < fitting.LEAST_ROWS:
        raise OptionError(f"a recalibrator needs at least {fitting.LEAST_ROWS} rows, got {rows!r}.")
    sample = sampling.sample_rows(
        paths, rows, fit_split=fit_split, seed=seed, model=model, **options
    )
    if not sample.counts[1].any() and sample.splits == (None, None):
        raise InputError(
            f"there are {sample.data.n:,} rows, and {rows:,} are to be drawn: none are left to judge on",
            remedy="draw fewer, or read the source whole",
        )
    if sample.data.n < fitting.LEAST_ROWS:
        raise InputError(
            f"there {'is' if sample.data.n == 1 else 'are'} {words.counted(sample.data.n, 'calibration row')}, a recalibrator needs at least {fitting.LEAST_ROWS}",
            remedy="fit on another split, or label more rows",
        )
    recalibrator = fitting.make(spec, sample.data, parameters or {})
    weights = {} if sample.data.weights is None else {"sample_weight": sample.data.weights}
    scores, labels = fitting.scores_of(sample.data)
    fitting.check_fitting_rows(recalibrator, sample.data, labels)
    recalibrator.fit(scores, labels, **weights)
    marks = _Marks(sample) if sample.splits == (None, None) else None
    result = RecalibratedFiles((), recalibrator, sample, None, None)
    files = apply_to_files(
        paths, result.map, folder, model=model, options=options_of(options), marks=marks
    )
    column = None if marks is None else marks.column
    split = None if marks is None else JUDGED
    return replace(result, files=files, judge_column=column, judge_split=split)


class _Marks:
    """Marks the fitting rows, block by block."""

    def __init__(self, sample: RowSample) -> None:
        self._taken, self._left_out = sample.drawn.taken(), sample.left_out
        self.column = "split"

    def __call__(self, table: Any, layout: ProfileColumns) -> tuple[Any, dict[str, Any]]:
        """Return the rows of a block to write, and the columns that mark them."""
        if "split" in table.columns:
            self.column = "calviz_split"
        # The split may be in the name of a folder.
        split = layout.split if layout.split in table.columns else None
        block = SampledBlock.of(table, replace(layout, split=split))
        copies = block.copies
        fits, _ = self._taken(sampling.rehashed(block.hashes, 0), copies)
        divided = (fits > 0) & (fits < copies)
        rows = np.repeat(np.arange(copies.size), 1 + divided)
        second = np.diff(rows, prepend=-1) == 0
        is_fit = (fits > 0)[rows] & ~second
        marks = np.where(is_fit, FIT, JUDGED)
        if block.splits is not None:
            own = block.splits[rows]
            marks = np.where(np.isin(own.astype(str), self._left_out), own, marks)
        columns = {self.column: marks}
        if layout.count is not None:
            columns[layout.count] = np.where(is_fit, fits[rows], (copies - fits)[rows])
        return rows, columns


# ---- Applying a map to files


#: Size of a block in entries (rows x score columns).
BLOCK = 4_000_000
#: Rows whose Arrow types are restored at a time: texts of these fit into 2 GB, as types with short offsets need.
_TYPED_ROWS = 100_000
#: Function from a block and its layout to the rows to write, and to additional columns of these.
RowMarks = Callable[[Any, ProfileColumns], tuple[Any, dict[str, Any]]]


def apply_to_files(
    sources: Sequence[str | os.PathLike[str]],
    record: Any,
    folder: str | os.PathLike[str],
    *,
    model: str | None = None,
    options: ReadingOptions | None = None,
    marks: RowMarks | None = None,
    tally: Counter[str] | None = None,
) -> tuple[Path, ...]:
    """Write each file as Parquet with calibrated scores; all other columns stay unchanged, and labels are not needed.

    Logits are replaced by probabilities, ``p_CLASS``.

    Parameters
    ----------
    sources : sequence of str or PathLike
        Files, folders or patterns.
    record : mapping
        A map from `to_dict`; columns that it needs are read from the files.
    folder : str or PathLike
        Output folder; files keep their names, and each is written whole or not at all.
    model : str, optional
        Which model, if there are several.
    options : ReadingOptions, optional
    marks : callable, optional
        Selects the rows of each block to write, and computes additional columns; the files need labels.
    tally : Counter, optional
        Adds up the rows of all files, as in `calviz.comparison.fitting.apply_map`.

    Returns
    -------
    tuple of Path

    Raises
    ------
    InputError, OptionError
        If the map does not fit the data or a row cannot be used; the sentence names the file.
    """
    errors.needs("pyarrow")
    import narwhals as nw

    files, target = file_sources.find(sources), Path(folder)
    names = target_names(sources, folder)
    options = options or ReadingOptions()
    if marks is None:
        options = fitting.reading_for_map(record, options, model)
    if options.repair:
        raise OptionError(
            "files that are written to a folder are read block by block and not repaired: name one file, and a file to write "
            "(--out calibrated.parquet)."
        )
    first = TableFiles(files.paths[:1], files.kind, files.hive)
    try:
        with file_sources.no_panic():
            layout = file_sources.profile_layout(
                nw.from_native(file_sources.scan(first, "polars")), options, model=model
            )
    except Exception as error:
        raise file_sources.error_of_path(error, first.paths[0], options) from None
    with errors.folder_for(target):
        for number, (path, name) in enumerate(zip(files.paths, names, strict=True), start=1):
            blocks.checkpoint(f"file {number:,} of {len(names):,}: {path.name}")
            of_file = _apply_to_file(
                TableFiles((path,), files.kind), layout, record, target / name, marks
            )
            if tally is not None:
                tally.update(of_file)
    return tuple(target / name for name in names)


def _apply_to_file(
    file: TableFiles, layout: ProfileColumns, record: Any, out: Path, marks: RowMarks | None
) -> Counter[str]:
    """Write one file, and return the tally of its rows; raises InputError, which names it and where possible the rows, if it cannot be used."""
    (path,) = file.paths
    try:
        try:
            return _apply(file, layout, record, out, marks)
        except _BlockRefused:
            if file.kind not in ("csv", "ndjson"):
                raise
            return _apply(file, layout, record, out, marks, careful=True)
    except _BlockRefused as refused:
        raise sampling.why_refused(file, layout, refused.reason).in_file(path.name) from None
    except InputError as error:
        raise error.in_file(path.name) from None


def target_names(
    sources: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str]
) -> list[str]:
    """Return the names of the output files; raises OptionError if two are equal, or if the folder is that of the sources."""
    paths = file_sources.find(sources).paths
    names = [f"{path.stem}.parquet" for path in paths]
    if len(set(names)) < len(names):
        raise OptionError(
            "two of the files have the same name and would overwrite each other in the folder."
        )
    sources_of = {*map(real_path, paths)}
    targets = {real_path(Path(folder) / name) for name in names}
    inside = any(p.parent == real_path(folder) for p in (*sources_of, *map(_place, paths)))
    if inside or sources_of & targets:
        raise OptionError("the folder holds the files themselves; give another one.")
    return names


def _place(path: Path) -> Path:
    """The path without links in its folder; the file itself may be one."""
    return real_path(path.parent) / path.name


class _BlockRefused(Exception):
    """Raised if a block cannot be read or its scores cannot be used; `reason` is the exception."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _apply(
    file: TableFiles,
    layout: ProfileColumns,
    record: Any,
    out: Path,
    marks: RowMarks | None,
    *,
    careful: bool = False,
) -> Counter[str]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, needed, tally = None, load_map(record).needed_columns, Counter[str]()
    with errors.replacing(out) as temporary_path:
        try:
            for block, predictions in _blocks(file, layout, record, careful):
                blocks.checkpoint()
                rows = _with_columns(predictions, block, needed)
                rows_out = _with_scores(block, fitting.apply_map(rows, record, tally), layout)
                if marks is not None:
                    chosen, columns = marks(block, layout)
                    types = block.schema
                    rows_out = rows_out[chosen].with_columns(
                        pl.Series(name, values).cast(types[name])
                        if name in types
                        else pl.Series(name, values)
                        for name, values in columns.items()
                    )
                slices = list(rows_out.iter_slices(_TYPED_ROWS)) or [rows_out]
                parts = [part.to_arrow() for part in slices]
                if writer is None:
                    writer = pq.ParquetWriter(temporary_path, _schema(parts[0], file, layout))
                writer.write_table(pa.concat_tables([part.cast(writer.schema) for part in parts]))
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            of = " of " + " = ".join(own) if (own := record.get("model")) else ""
            raise InputError(f"there are no rows{of}", remedy="give files with at least one")
    return tally


def _schema(table: Any, file: TableFiles, layout: ProfileColumns) -> Any:
    """The schema of a table from polars, with the types of the file for columns that are kept, which polars has fewer of.

    Dictionaries stay as they are: those of polars may have more entries than the indices of the file can count.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    schema = table.schema
    if file.kind not in ("parquet", "ipc"):
        return schema
    own = ds.dataset(str(file.paths[0]), format=file.kind).schema
    empty = table.slice(0, 0)
    for place, column in enumerate(schema):
        column_index = own.get_field_index(column.name)
        if column_index < 0 or column.name in layout.scores or pa.types.is_dictionary(column.type):
            continue
        kind = own.field(column_index).type
        try:
            empty.column(place).cast(kind)
        except pa.ArrowNotImplementedError:
            continue
        schema = schema.set(place, column.with_type(kind))
    return schema


def _blocks(
    file: TableFiles, layout: ProfileColumns, record: Any, careful: bool
) -> Iterator[tuple[Any, Dataset]]:
    """Yield the blocks of a file, of the model of a map if a column names it, and their scores as predictions, with dummy labels, which a map does not use."""
    rows = max(1_000, BLOCK // len(layout.scores))
    import polars as pl

    try:
        with file_sources.no_panic():
            frame = file_sources.scan(file, "polars", floats=layout.columns, careful=careful)
            names = frame.collect_schema().names()
            file_sources.check_columns(names, layout.columns, file.paths[0].name)
            if (own := record.get("model", ())) and own[0] in names:
                frame = frame.filter(pl.col(own[0]).cast(pl.String) == own[1])
            for block in frame.collect_batches(chunk_size=rows, maintain_order=True):
                scores = block.select(layout.columns).to_numpy()
                labels = np.zeros(len(scores), dtype=np.int32)
                yield block, sampling.predictions_of(scores, labels, layout)
    except (InputError, pl.exceptions.PolarsError, RuntimeError) as error:
        raise _BlockRefused(error) from None


def _with_columns(predictions: Dataset, block: Any, names: tuple[str, ...]) -> Dataset:
    """Add those columns of the block that a map needs."""
    import polars as pl

    present = [block[name] for name in names if name in block.columns]
    groups, numbers = {}, {}
    for column in present:
        if column.dtype.is_numeric():
            numbers[column.name] = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        else:
            groups[column.name] = blocks.Factor.of_series(column)
    return replace(predictions, groups=groups, numbers=numbers) if present else predictions


def _with_scores(block: Any, calibrated: Dataset, layout: ProfileColumns) -> Any:
    """Return the block with calibrated scores in place of its own."""
    import polars as pl

    scores, names = _scores(calibrated, layout), layout.scores
    if layout.logits:
        # The same names as in `calviz.data.writing`.
        names = tuple(f"p_{name}" for name in layout.class_names)
        block = block.drop(layout.logits)
        for name in names:
            if name in block.columns:
                raise InputError(
                    f"the column '{errors.shortened(name)}' exists already, and the probabilities of the logits need its name",
                    remedy="rename it",
                )
    return block.with_columns(pl.Series(name, scores[:, k]) for k, name in enumerate(names))


def _scores(data: Dataset, layout: ProfileColumns) -> np.ndarray[Any, Any]:
    if not isinstance(data, Predictions):
        return np.asarray(data.confidence)[:, None]
    return np.asarray(data.probs[:, -1:] if len(layout.scores) == 1 else data.probs)

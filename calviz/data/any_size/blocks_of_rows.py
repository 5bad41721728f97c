"""A source of any size read in blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import FloatArray, IntArray, checkpoint
from calviz.core.errors import InputError, needs
from calviz.core.limits import record_batches
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.probabilities import ROW_SUM_TOLERANCE, SCORE_SLACK
from calviz.core.profile import ProfileColumns
from calviz.data.any_size.file_sources import (
    Engine,
    TableFiles,
    error_of_path,
    find,
    no_panic,
    profile_layout,
    scan,
    why_out_of_core,
)
from calviz.data.any_size.sums import (
    FAULTS,
    LARGEST_COUNT,
    faults_of,
    first_fault,
    with_probabilities,
)
from calviz.data.building import two_logits
from calviz.data.format import Source, format_of
from calviz.data.loaded import ReadingOptions
from calviz.data.refusals import Problem, check_columns, error_of_file, unreadable, unusable
from calviz.data.roles import ScoreColumns

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl


# ---- Hashes


#: Unsigned 64-bit integers, whose arithmetic wraps around.
Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def content_hashes(labels: IntArray, scores: Sequence[FloatArray]) -> Hashes:
    """Hash the class and the scores of each row, shape (n,); equal rows have equal hashes.

    Scores in single precision have the same hash as the same values in double precision.
    """
    hashes: Hashes = (labels.astype(np.uint64) + np.uint64(1)) * _ODD
    for column in scores:
        # Adding 0.0 turns -0.0 into 0.0.
        hashes ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return mixed(hashes)


def mixed(numbers: Hashes) -> Hashes:
    """Mix the bits so that each depends on all others, same shape (the finaliser of SplitMix64; Steele, Lea & Flood 2014)."""
    x: Any = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def rehashed(hashes: Hashes, number: IntArray | int) -> Hashes:
    """Derive a further hash of each row, shape (n,), for a given `number`: an integer, or one per row of shape (n,)."""
    # Python integers have any size.
    offset = number % (1 << 62) if isinstance(number, int) else number
    with np.errstate(over="ignore"):
        return mixed(hashes + (np.asarray(offset).astype(np.uint64) + np.uint64(1)) * _ODD)


def uniform(hashes: Hashes) -> FloatArray:
    """Map hashes to numbers in (0, 1] with 53 bits, shape (n,)."""
    return np.asarray(((hashes >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)


# ---- Blocks


#: Size of a block in entries (rows x score columns).
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class SampledBlock:
    """A block of rows.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Class indices; -1 for a label that is none of the classes.
    scores : tuple of ndarray, shape (n,) each
        The score columns of the source: probabilities, confidences or logits.
    splits : ndarray of str, shape (n,), or None
    counts : ndarray, shape (n,), or None
        Frequency weight of each row.
    weights : ndarray of float64, shape (n,), or None
        Importance weight of each row.
    logits : bool
        Whether the scores are logits.
    """

    labels: IntArray
    scores: tuple[FloatArray, ...]
    splits: np.ndarray[Any, Any] | None
    counts: FloatArray | None = None
    weights: FloatArray | None = None
    logits: bool = False

    @classmethod
    def of(cls, table: pl.DataFrame, layout: ProfileColumns) -> SampledBlock:
        """Make a block from a polars frame with the columns of the layout."""
        import polars as pl

        splits = None
        if layout.split is not None:
            splits = table[layout.split].cast(pl.String).fill_null("").to_numpy()
        return cls(
            _class_numbers(table[layout.label], layout.classes),
            tuple(_floats(table[name]) for name in layout.columns),
            splits,
            None if layout.count is None else _wide(table[layout.count]),
            None if layout.weight is None else _wide(table[layout.weight]),
            bool(layout.logits),
        )

    @property
    def copies(self) -> IntArray:
        """Frequency weights as integers, shape (n,); ones if there are none."""
        if self.counts is None:
            return np.ones(self.labels.size, dtype=np.intp)
        return self.counts.astype(np.intp)

    @property
    def hashes(self) -> Hashes:
        """Hash of the content of each row (class, scores and importance weight), shape (n,)."""
        weights = () if self.weights is None else (self.weights,)
        return content_hashes(self.labels, (*self.scores, *weights))

    @property
    def usable(self) -> bool:
        """Whether all rows are usable."""
        if (self.labels < 0).any():
            return False
        if self.counts is not None:
            c = self.counts
            if not ((c >= 0) & (c <= LARGEST_COUNT) & (c == np.floor(c))).all():
                return False
        if self.weights is not None and not (
            np.isfinite(self.weights).all() and (self.weights >= 0).all()
        ):
            return False
        if self.logits:
            return all(np.isfinite(column).all() for column in self.scores)
        # Written such that NaN fails the comparison.
        if not all(
            c.min() >= -SCORE_SLACK and c.max() <= 1 + SCORE_SLACK for c in self.scores if c.size
        ):
            return False
        if len(self.scores) == 1:
            return True
        total = np.zeros(self.labels.size)
        for column in self.scores:
            total += column
        return bool((np.abs(total - 1) <= ROW_SUM_TOLERANCE).all())


def _wide(column: pl.Series) -> FloatArray:
    import polars as pl

    return np.asarray(column.cast(pl.Float64).to_numpy())


def _floats(column: pl.Series) -> FloatArray:
    import polars as pl

    floats = column if column.dtype == pl.Float32 else column.cast(pl.Float64)
    return np.asarray(floats.to_numpy())


def _class_numbers(column: pl.Series, classes: Sequence[Any]) -> IntArray:
    import polars as pl

    if isinstance(classes[0], str):
        numbers = column.cast(pl.String).replace_strict(
            list(classes), list(range(len(classes))), default=-1, return_dtype=pl.Int64
        )
        return np.asarray(numbers.fill_null(-1).to_numpy()).astype(np.intp)
    values = column.cast(pl.Float64).to_numpy()
    values_of_classes = np.array(classes, dtype=np.float64)
    order = np.argsort(values_of_classes)
    nearest = order[
        np.minimum(np.searchsorted(values_of_classes[order], values), values_of_classes.size - 1)
    ]
    return np.where(values_of_classes[nearest] == values, nearest, -1)


@dataclass(frozen=True)
class RowSource:
    """Rows that can be iterated over repeatedly.

    Attributes
    ----------
    name : str
    layout : ProfileColumns
        The roles of the columns.
    frames : tuple of (str, callable)
        Name of each file ("" for a frame), and a function that opens it.
    """

    name: str
    layout: ProfileColumns
    frames: tuple[tuple[str, Callable[[], Any]], ...]

    @classmethod
    def of(
        cls,
        source: Any,
        reading: ReadingOptions,
        *,
        engine: Engine = "auto",
        memory: str | None = None,
        model: str | None = None,
        name: str | None = None,
    ) -> RowSource:
        """Open a path, a pattern, a folder, a list of these, or a frame.

        Raises
        ------
        InputError, OptionError
            If the source does not exist, or its columns cannot be recognised.
        """
        import narwhals as nw

        if isinstance(source, str | os.PathLike):
            source = [source]
        if isinstance(source, list | tuple):
            needs("pyarrow")
            files = find(source)

            def opened(path: Path, floats: Sequence[str] = ()) -> Any:
                return scan(
                    TableFiles((path,), files.kind, files.hive), engine, memory, floats=floats
                )

            first = files.paths[0]
            try:
                with no_panic():
                    layout = profile_layout(
                        nw.from_native(opened(first)).lazy(), reading, model=model
                    )
            except Exception as error:
                raise error_of_path(error, first, reading) from None
            numbers = layout.numbers
            frames = tuple((path.name, partial(opened, path, numbers)) for path in files.paths)
            return cls(name or files.name, layout, frames)
        try:
            frame = nw.from_native(source)
        except TypeError:
            raise InputError(
                f"got {type(source).__name__}, expected a path, a list of paths or a data frame"
            ) from None
        if frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect():
            raise InputError(
                "rows cannot be drawn from a Spark frame: all of them would pass through the driver",
                remedy="write it as Parquet and name the folder",
            )
        return cls(
            name or "sample",
            profile_layout(frame.lazy(), reading, model=model),
            (("", lambda: source),),
        )

    def blocks(self, doing: str, *, check: bool = False) -> Iterator[SampledBlock]:
        """Yield all rows, block by block.

        Parameters
        ----------
        doing : str
            Description of the work for progress messages.
        check : bool
            Whether to raise an error for unusable rows.

        Raises
        ------
        InputError
            If there are unusable rows (names the file, their number and the first of them), or a file cannot be read.
        """
        done = 0
        for name, opened in self.frames:
            try:
                frame = opened()
                for table in _tables(frame, self._columns, self._block_rows):
                    checkpoint(f"{doing}, {done:,} rows so far")
                    block = SampledBlock.of(table, self.layout)
                    if check and not block.usable:
                        raise self._refused(opened(), name)
                    done += table.height
                    yield block
            except Exception as error:
                raise error_of_file(error, name) from None

    @property
    def _columns(self) -> list[str]:
        layout = self.layout
        others = [name for name in (layout.split, layout.count, layout.weight) if name is not None]
        return list(dict.fromkeys([layout.label, *layout.columns, *others]))

    @property
    def _block_rows(self) -> int:
        return max(1_000, BLOCK // max(2, len(self.layout.scores)))

    def _refused(self, native: Any, name: str) -> InputError:
        import narwhals as nw

        frame = with_probabilities(nw.from_native(native).lazy(), self.layout)
        total = int(frame.select(rows=nw.len()).collect("polars")["rows"][0])
        place = ""
        if name and frame.implementation.is_polars():
            row, code = first_fault(frame, self.layout)
            place = f"; the first is row {row + 1:,}, with {FAULTS[code]}"
        return unusable(faults_of(frame, self.layout), total, place)


def predictions_of(
    scores: FloatArray, labels: IntArray, layout: ProfileColumns, **more: Any
) -> Dataset:
    """Make predictions from rows of a source.

    Parameters
    ----------
    scores : ndarray, shape (n, columns)
        Scores in the order of `ProfileColumns.columns`.
    labels : ndarray of int, shape (n,)
        Class indices; for confidences, 1 if the prediction was right.
    layout : ProfileColumns
    **more
        Splits, weights and name.
    """
    if layout.confidence:
        return ConfidencePredictions(confidence=scores[:, 0], correct=labels == 1, **more)
    more |= {"labels": labels, "class_names": layout.class_names}
    one_column = scores.shape[1] == 1
    if layout.logits:
        return Predictions(logits=two_logits(scores) if one_column else scores, **more)
    return Predictions(probs=scores[:, 0] if one_column else scores, **more)


def _tables(native: Any, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
    """Yield blocks of the columns as polars frames."""
    import narwhals as nw
    import polars as pl

    frame: nw.LazyFrame[Any] | nw.DataFrame[Any] = nw.from_native(native)
    check_columns(frame.collect_schema().names(), columns, None)
    selected: Any = frame.select(*columns)
    if isinstance(frame, nw.DataFrame):
        yield from selected.to_polars().iter_slices(rows)
        return
    table = selected.to_native()
    if frame.implementation.is_polars():
        with no_panic():
            yield from table.collect_batches(chunk_size=rows, maintain_order=True)
        return
    for batch in record_batches(table, rows, frame.implementation):
        block = pl.from_arrow(batch)
        assert isinstance(block, pl.DataFrame)
        yield block


# ---- Refusals


def why_refused(file: TableFiles, layout: ProfileColumns, error: Exception) -> InputError:
    """Return the error about the scores of a single file, with rows counted from its beginning.

    A file that fits into memory is read again as a whole, a larger one is summed; either names what `calviz audit` names.

    Parameters
    ----------
    file : TableFiles
    layout : ProfileColumns
    error : Exception
        Why a block was refused or could not be read; returned as a sentence if the file as a whole shows no reason.
    """
    (path,) = file.paths
    known = error if isinstance(error, InputError) else unreadable(error, path.name)
    try:
        with no_panic():
            if why_out_of_core(str(path)):
                return _summed(file, layout) or known
            return _read_whole(path, layout, known)
    except InputError as reason:
        return reason
    except Exception:
        return known


def _read_whole(path: Path, layout: ProfileColumns, error: InputError) -> InputError:
    columns = layout.columns
    scores = ScoreColumns(
        columns,
        layout.class_names,
        "logits" if layout.logits else "probabilities",
        len(columns),
    )
    with Source(path) as opened, np.errstate(all="ignore"):
        table = format_of(opened).open(opened)
        (array,) = table.fetch([columns], []).scores
        try:
            predictions_of(array, np.zeros(len(array), dtype=np.int32), layout)
        except InputError as of_whole:
            error = of_whole
        return Problem(table, scores, array, lambda row: row).explain(error)


def _summed(file: TableFiles, layout: ProfileColumns) -> InputError | None:
    import narwhals as nw

    # Labels and weights are not used, so only scores can be wrong.
    layout = replace(layout, label=layout.label or "label", count=None, weight=None)
    frame = nw.from_native(scan(file, "polars", floats=layout.columns)).lazy()
    frame = frame.with_columns(nw.lit(layout.classes[0]).alias(layout.label))
    frame = with_probabilities(frame, layout)
    faults = faults_of(frame, layout)
    if not faults:
        return None
    total = int(frame.select(rows=nw.len()).collect("polars")["rows"][0])
    row, code = first_fault(frame, layout)
    return unusable(faults, total, f"; the first is row {row + 1:,}, with {FAULTS[code]}")

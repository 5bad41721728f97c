"""Applying a fitted map to a data frame of any library; lazy frames stay lazy and are processed in batches, never collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError, OptionError, shortened
from calviz.core.record_batches import record_batches

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows per batch, where the engine lets the caller choose.
BATCH_ROWS = 1 << 17


class Map(Protocol):
    """A fitted recalibrator."""

    classes_: Any
    n_features_in_: int

    def transform(self, X: Any) -> FloatArray:
        """Return calibrated probabilities, shape (n, K) like X."""
        ...


def transform_frame(
    fitted: Map, frame: Any, scores: Sequence[str], names: Sequence[str] | None = None
) -> Any:
    """Return the frame with added columns of calibrated probabilities; see `BaseRecalibrator.transform_frame`.

    Raises
    ------
    InputError
        If it is not a data frame, or lacks some of the columns.
    OptionError
        If there is not one column per class, or not one distinct name per column.
    """
    import narwhals as nw

    columns = [scores] if isinstance(scores, str) else list(scores)
    new = [f"{name}_calibrated" for name in columns] if names is None else list(names)
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise InputError(f"got {type(frame).__name__}, expected a data frame") from None
    _check(fitted, columns, new, wrapped.collect_schema().names())
    if wrapped.implementation.is_polars() and isinstance(wrapped, nw.LazyFrame):
        return _mapped_polars(fitted, frame, columns, new)
    if wrapped.implementation.is_pyspark() or wrapped.implementation.is_pyspark_connect():
        return _mapped_spark(fitted, frame, columns, new)
    if isinstance(wrapped, nw.DataFrame):
        calibrated = _calibrated_columns(fitted, [wrapped[name].to_numpy() for name in columns])
        added = [
            nw.new_series(name, column, backend=wrapped.implementation)
            for name, column in zip(new, calibrated, strict=True)
        ]
        return wrapped.with_columns(*added).to_native()
    reader = record_batches(frame, BATCH_ROWS, wrapped.implementation)
    return _mapped_reader(fitted, reader, columns, new)


def _check(fitted: Map, columns: list[str], new: list[str], existing: list[str]) -> None:
    missing = [name for name in columns if name not in existing]
    if missing:
        raise InputError(f"there is no column '{shortened(missing[0])}'")
    classes = int(fitted.n_features_in_)
    if len(columns) != classes and not (classes == 2 and len(columns) == 1):
        alternative = ", or that of the second class alone" if classes == 2 else ""
        raise OptionError(
            f"the map has {classes} classes, got {len(columns)} columns; give one for each class{alternative}."
        )
    if len(new) != len(columns) or len(set(new)) != len(new):
        raise OptionError("'names' must be one name for each column of scores, all different.")


def _calibrated_columns(fitted: Map, columns: list[Any]) -> list[FloatArray]:
    """Return the calibrated columns of columns of scores, shape (n,) each."""
    if len(columns) == 1:
        (p,) = columns
        calibrated = fitted.transform(np.stack([1 - p, p], axis=1)) if len(p) else np.zeros((0, 2))
        return [calibrated[:, 1]]
    table = np.stack(columns, axis=1)
    return list((fitted.transform(table) if len(table) else table).T)


def _mapped_polars(fitted: Map, frame: Any, columns: list[str], new: list[str]) -> Any:
    import polars as pl

    def add_columns(batch: pl.DataFrame) -> pl.DataFrame:
        calibrated = _calibrated_columns(fitted, [batch[name].to_numpy() for name in columns])
        return batch.with_columns(
            *(pl.Series(n, c, dtype=pl.Float64) for n, c in zip(new, calibrated, strict=True))
        )

    schema = dict(frame.collect_schema()) | {name: pl.Float64() for name in new}
    # Every row is mapped independently of the others, so any block of rows may be mapped alone.
    return frame.map_batches(
        add_columns,
        schema=schema,
        streamable=True,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _mapped_spark(fitted: Map, frame: Any, columns: list[str], new: list[str]) -> Any:
    fields = [field for field in frame.schema.fields if field.name not in new]
    schema = type(frame.schema)(fields)
    for name in new:
        schema = schema.add(name, "double")

    def add_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _mapped_batch(fitted, batch, columns, new)

    return frame.mapInArrow(add_columns, schema)


def _mapped_reader(fitted: Map, reader: Any, columns: list[str], new: list[str]) -> Any:
    import pyarrow as pa

    other_fields = [field for field in reader.schema if field.name not in new]
    schema = pa.schema([*other_fields, *(pa.field(name, pa.float64()) for name in new)])
    batches = (_mapped_batch(fitted, batch, columns, new) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _mapped_batch(fitted: Map, batch: Any, columns: list[str], new: list[str]) -> Any:
    import pyarrow as pa

    calibrated = _calibrated_columns(
        fitted, [batch.column(name).to_numpy(zero_copy_only=False) for name in columns]
    )
    other_names = [name for name in batch.schema.names if name not in new]
    arrays = [batch.column(name) for name in other_names]
    added = [pa.array(column.astype(np.float64)) for column in calibrated]
    return pa.RecordBatch.from_arrays([*arrays, *added], names=[*other_names, *new])

"""Predictions and labels of two files joined by an identifier; unique names for the models of several files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import AnyArray, Factor
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import NO_IDENTIFIER, Dataset, identifier_texts
from calviz.data import format as file_format
from calviz.data.column_names import IDS, LABELS
from calviz.data.format import MISSING, Column, Notice, ReadingOptions, Table, known_columns, short
from calviz.data.roles import TableView


@dataclass(frozen=True)
class LabelFile:
    """The file that holds the labels for another file.

    Attributes
    ----------
    source : str, PathLike, bytes or binary file object
    on : str, optional
        The column that identifies the rows in both files; if left out, a column with a usual name that both have.
    """

    source: str | os.PathLike[str] | bytes | BinaryIO
    on: str | None = None


@dataclass(eq=False, kw_only=True)
class JoinedTable(Table):
    """A table with additional columns whose values are already in memory."""

    base: Table
    joined: dict[str, AnyArray | Factor]
    #: The label file's name, and the row of it for each row of the predictions, -1 where there is none.
    label_file: str
    label_rows: npt.NDArray[np.int64]

    def fetch(
        self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]
    ) -> file_format.Fetched:
        """Read the columns of the predictions and add the joined ones; see `Table.fetch`."""
        base = self.base.fetch(scores, [c for c in columns if c not in self.joined])
        joined = {c: self.joined[c] for c in columns if c in self.joined}
        return replace(base, columns=dict(base.columns) | joined)

    def line(self, row: int) -> int | None:
        """Line number of a row in the file of predictions."""
        return self.base.line(row)

    def missing_as(self, row: int, name: str) -> str:
        """What stands in a cell without a number; see `Table.missing_as`."""
        return "NaN" if name in self.joined else self.base.missing_as(row, name)

    @property
    def cells(self) -> Callable[[], Any] | None:
        """Reads the cells of the base."""
        return self.base.cells


def join(
    table: Table, file: str, other: LabelFile, options: ReadingOptions
) -> tuple[Table, ReadingOptions]:
    """Add the labels, and all other columns of the label file, to a table; also return the options to read it with.

    Parameters
    ----------
    table : Table
        The predictions.
    file : str
        Name of the file of predictions.
    other : LabelFile
    options : ReadingOptions

    Raises
    ------
    InputError
        If identifiers occur more than once (says how many, and the first), or none occurs in both files.
    OptionError
        If the identifier column or the requested label column does not exist.
    """
    with file_format.Source(other.source) as source:
        try:
            truth = file_format.format_of(source).open(source)
            on = _identifier(table, truth, other.on, file, source.name)
            label = options.label or _label(truth, on)
            if label not in truth:
                raise OptionError(
                    f"there is no column '{short(label)}' for the label; {known_columns(truth.names)}.",
                    file=source.name,
                )
            if label in table:
                raise InputError(
                    f"{file} has a column '{short(label)}' too",
                    remedy="rename one of them, so that it is clear which one is the label",
                )
            usable = [c for c in truth.columns if c.type != "other" and c.width is None]
            extra = [c.name for c in usable if c.name not in (on, label) and c.name not in table]
            fetched = truth.fetch([], [on, label, *extra])
            keys = identifier_texts(fetched.columns[on])
            places = _places(keys, source.name, truth)
        except InputError as error:
            # The reading options are for the other file.
            alone = "save the labels as a file of their own" if error.readings else error.remedy
            raise error.but(readings=(), remedy=alone).in_file(source.name) from None
    identifiers = identifier_texts(table.fetch([], [on]).columns[on])
    _places(identifiers, file, table)
    rows = np.array([places.get(key, -1) for key in identifiers])
    matched = int((rows >= 0).sum())
    if not matched:
        raise InputError(
            f"no value of '{short(on)}' occurs in both files ({file}: '{short(identifiers[0])}', {source.name}: '{short(keys[0])}')",
            remedy="name the column that identifies the rows in both",
        )
    joined = {name: _aligned(fetched.columns[name], rows) for name in (label, *extra)}
    notices = list(table.notices)
    if len(keys) > matched:
        text = f"{len(keys) - matched:,} of {len(keys):,} rows of {source.name} have no predictions, and are left out"
        notices.append(Notice.UNUSED_VALUES.finding("info", text))
    columns = tuple(_column(truth[name], values) for name, values in joined.items())
    joined_table = JoinedTable(
        format=f"{table.format} with labels of {source.name} by '{short(on)}'",
        columns=(*table.columns, *columns),
        named=True,
        arrays=table.arrays,
        class_names=table.class_names or truth.class_names,
        notices=notices,
        base=table,
        joined=joined,
        label_file=source.name,
        label_rows=rows,
    )
    identifier = on if options.id_column is None else options.id_column
    return joined_table, replace(options, label=label, id_column=identifier)


def in_label_file(table: Table, error: InputError) -> InputError:
    """Return an error about a joined column as one about the label file, with the row there; any other error as it is."""
    if not isinstance(table, JoinedTable) or error.column not in table.joined or error.placed:
        return error
    if error.row is None:
        return error.but(file=table.label_file)
    row = int(table.label_rows[error.row - 1])
    if row < 0:  # the row of the predictions is the place
        return error.but(what=f"{error.what} in {table.label_file}", column=None)
    return error.but(file=table.label_file, row=row + 1, line=None)


def _identifier(table: Table, truth: Table, on: str | None, file: str, other: str) -> str:
    if on is not None:
        for searched, name in ((table, file), (truth, other)):
            if on not in searched:
                raise OptionError(
                    f"there is no column '{short(on)}' to join on; {known_columns(searched.names)}.",
                    file=name,
                )
        return on
    plain = ReadingOptions()
    views = TableView(table, plain), TableView(truth, plain)
    for usual in IDS:
        first, second = (view.plain.get(usual) for view in views)
        if first is not None and first == second:
            return first
    raise OptionError(
        f"no column that identifies the rows is in both {file} and {other}; name it (--on, on=)."
    )


def _label(truth: Table, on: str) -> str:
    named = TableView(truth, ReadingOptions()).named(LABELS, {on})
    if named is not None:
        return named
    others = [c.name for c in truth.columns if c.name != on and c.type != "other"]
    if len(others) == 1:
        return others[0]
    what = f"there is no column called 'label'; {known_columns(truth.names)}"
    raise InputError(what, remedy="say which one is the label")


def _places(keys: list[str], file: str, table: Table) -> dict[str, int]:
    """Map each identifier to its row; raise InputError if some occur more than once."""
    places: dict[str, int] = {}
    repeated: dict[str, int] = {}
    for row, key in enumerate(keys):
        if key != NO_IDENTIFIER and places.setdefault(key, row) != row:
            repeated.setdefault(key, row)
    if repeated:
        key, row = next(iter(repeated.items()))
        how_many = f"{len(repeated):,} identifier{'s' if len(repeated) > 1 else ''}"
        raise InputError(
            f"{how_many} occur{'' if len(repeated) > 1 else 's'} more than once, first '{short(key)}' (rows "
            f"{places[key] + 1:,} and {row + 1:,}), so it is not clear which rows belong together",
            file=file,
            remedy="give each row an identifier of its own",
        )
    return places


def _aligned(values: AnyArray | Factor, rows: npt.NDArray[np.int64]) -> AnyArray | Factor:
    """Align the values with the rows of the predictions; the value is missing where `rows` is negative."""
    missing = rows < 0
    if isinstance(values, Factor):
        levels, codes = values.levels, values.codes[np.where(missing, 0, rows)].copy()
        if missing.any():
            levels = levels if MISSING in levels else (*levels, MISSING)
            codes[missing] = levels.index(MISSING)
        return Factor(codes, levels)
    if not missing.any():
        return np.asarray(values[rows])
    if values.dtype.kind == "f":
        return np.where(missing, np.nan, values[np.where(missing, 0, rows)])
    # Whole numbers become text, which can be missing, rather than floats.
    return _aligned(Factor.of(values), rows)


def _column(column: Column, values: AnyArray | Factor) -> Column:
    if isinstance(values, Factor):
        first = Factor(values.codes[: file_format.SAMPLE_ROWS], values.levels)
        return Column(column.name, "text", first.values())
    return Column(column.name, column.type, values[: file_format.SAMPLE_ROWS].astype(np.float64))


def named_models(files: Sequence[tuple[str, Mapping[str, Dataset]]]) -> dict[str, Dataset]:
    """Return all models of all files, each under a unique name.

    Parameters
    ----------
    files : sequence of (str, mapping of str to Predictions)
        The name of each file and its models.

    Returns
    -------
    dict
        For one file, the names of its models. For several, the file name without its suffix, followed by the
        model's name if the file has several models; numbered if that is not unique.
    """
    named: dict[str, Dataset] = {}
    for file, models in files:
        stem = PurePath(file).stem or file
        for model, data in models.items():
            name = model if len(files) == 1 else stem if len(models) == 1 else f"{stem}: {model}"
            count, base = 1, name
            while name in named:
                count += 1
                name = f"{base} ({count})"
            named[name] = data.renamed(name)
    return named

"""Read profiles from files, with the same checks as any other file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from calviz.core.errors import InputError
from calviz.core.extra_packages import needs
from calviz.core.factor import Factor
from calviz.core.predictions import Dataset
from calviz.data.file_bytes import Source
from calviz.data.loaded import Loaded, Recognition
from calviz.data.table import Table
from calviz.profiles.aggregate import SUMS
from calviz.profiles.file import KEY, columns_of, group_names, profile_from_columns, read_facts
from calviz.profiles.profile import Profile, merge


def facts_in(table: Table) -> bytes | None:
    """The facts of a profile, from the metadata of a Parquet file; None if the table is not a profile."""
    schema = getattr(table, "schema", None)
    metadata = getattr(schema, "metadata", None) or {}
    facts: bytes | None = metadata.get(KEY)
    return facts


def of_table(table: Table, text: bytes) -> Profile:
    """Return the profile stored in a table.

    Raises
    ------
    InputError
        If it has another version or is damaged.
    """
    facts, rows = read_facts(text)
    names = columns_of(facts)
    if set(names) != set(table.names):
        raise InputError(
            "the profile is damaged: it does not have the columns that its facts declare",
            remedy="make it again",
        )
    timed = facts.every is not None
    plain = [name for name in names if name != "time"]
    fetched = dict(table.fetch((), plain).columns)
    columns: dict[str, Any] = {}
    for name in names:
        if name == "time" and timed:
            columns[name] = _times(table)
        elif name == "split" or name in group_names(facts):
            columns[name] = _texts(fetched[name])
        else:
            columns[name] = _numbers(fetched[name], name)
    return profile_from_columns(facts, rows, columns)


def _texts(column: Any) -> Any:
    factor = Factor.of(column)
    return np.array(factor.levels, dtype=object)[factor.codes].tolist()


def _numbers(column: Any, name: str) -> Any:
    if name == "hit":
        return (
            np.asarray([v in ("True", "true", "1") for v in _texts(column)])
            if isinstance(column, Factor)
            else np.asarray(column).astype(bool)
        )
    if isinstance(column, Factor):
        raise InputError("the profile is damaged: a column of numbers holds text", column=name)
    values = np.asarray(column, dtype=np.float64)
    may_be_missing = name in SUMS[3:]
    if not (np.isfinite(values) | (np.isnan(values) & may_be_missing)).all():
        raise InputError("the profile is damaged: a number is missing", column=name)
    if name in ("n", "clipped", "cell", "true", "class"):
        return values.astype(np.int64 if name in ("n", "clipped") else np.int32)
    return values


def _times(table: Any) -> Any:
    column = table._table(["time"]).column(0)
    return column.to_numpy(zero_copy_only=False).astype("datetime64[us]")


def read_profile(source: str | os.PathLike[str], *, name: str | None = None) -> Profile:
    """Read a profile from its file.

    Raises
    ------
    InputError
        If the file is not a profile, has another version, or is damaged.
    """
    needs("pyarrow")
    from calviz.data.format import format_of

    with Source(source, name) as opened:
        try:
            table = format_of(opened).open(opened)
            text = facts_in(table)
            if text is None:
                raise InputError(
                    "this is not a profile",
                    remedy="make one from it: calviz profile FILE --out NAME.parquet",
                )
            return of_table(table, text)
        except InputError as error:
            raise error.in_file(opened.name) from None


def merge_files(paths: Iterable[str | os.PathLike[str]]) -> Profile:
    """Merge the profiles of several files.

    Raises
    ------
    InputError
        If one is not a profile, or two cannot be merged.
    """
    return merge([read_profile(path) for path in paths])


def loaded(profile: Profile, name: str) -> Loaded:
    """Return a profile in the form of a file that was read."""
    data: Dataset = profile.predictions().renamed(profile.facts.name or name)
    weights = data.weights
    counts: dict[str, int] = {}
    if data.splits is not None and weights is not None:
        rows = np.bincount(data.splits.codes, weights, minlength=len(data.splits.levels))
        counts = dict(zip(data.splits.levels, rows.astype(int).tolist(), strict=True))
    facts = profile.facts
    return Loaded(
        file=name,
        size=0,
        models={data.name: data},
        recognition=Recognition(
            format=f"calviz profile ({profile.cells.height:,} cells)",
            kind=data.kind,
            label=None,
            label_form="",
            scores=(),
            split_column="split" if facts.split else None,
            groups=facts.groups,
            id_column=None,
            class_names=data.class_names,
            models=(data.name,),
            columns=tuple(profile.cells.columns),
            rows=profile.n,
            time_column="time" if facts.every else None,
            split_counts=counts,
        ),
        hash=lambda: "",
    )

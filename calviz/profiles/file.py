"""The Parquet file of a profile: a row per cell, and the facts as JSON in the metadata."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import BoolArray
from calviz.core.atomic_files import check_place, replacing
from calviz.core.cells import FINE_CELLS
from calviz.core.errors import InputError, OptionError, shortened
from calviz.core.extra_packages import needs
from calviz.profiles.aggregate import GROUP, SUMS
from calviz.profiles.class_cells import CLASS_SUMS, intervals_of
from calviz.profiles.profile import VERSION, Profile, ProfileFacts, class_keys_of, keys_of

if TYPE_CHECKING:
    import polars as pl

#: Metadata key that marks the file as a profile and holds its facts.
KEY = b"calviz.profile"
_DAMAGED = "make the profile again"
#: Value of the class column for cells of the top label.
TOP_LABEL = -1


def write_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile as a Parquet file, atomically.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    needs("pyarrow")
    import polars as pl
    import pyarrow.parquet as pq

    facts = {
        "version": VERSION,
        "cells": FINE_CELLS,
        "rows": profile.n,
        **asdict(profile.facts),
    }
    cells = profile.cells
    if profile.class_cells is not None:
        top_label = cells.with_columns(pl.lit(TOP_LABEL, dtype=pl.Int32).alias("class"))
        cells = pl.concat([top_label, profile.class_cells], how="diagonal")
        # Columns that cells of each class do not have.
        missing = ["square_sum", "clipped", *["true"] * profile.facts.true_class]
        cells = cells.with_columns(
            pl.col(missing).fill_null(0), pl.col(SUMS[3], SUMS[5]).fill_null(float("nan"))
        )
    table = cells.to_arrow()
    table = table.replace_schema_metadata({KEY: json.dumps(facts).encode()})
    with replacing(path) as temporary_path:
        pq.write_table(table, temporary_path, compression="zstd")


def check_target(path: str | os.PathLike[str]) -> Path:
    """Check, before the work is done, that a profile can be written to the path; raise OptionError otherwise."""
    target = Path(path)
    if target.suffix.lower() != ".parquet":
        raise OptionError(f"a profile is a .parquet file, not '{shortened(target.name)}'.")
    return check_place(target, f"'{shortened(str(target))}'")


def columns_of(facts: ProfileFacts) -> tuple[str, ...]:
    """The columns of the file of a profile with these facts."""
    return (*["class"] * facts.each_class, *keys_of(facts), *SUMS, "low", "high")


def read_facts(text: bytes) -> tuple[ProfileFacts, int]:
    """Parse facts and number of rows from the metadata of a file.

    Raises
    ------
    InputError
        If they have another version, or are damaged.
    """
    try:
        content = json.loads(text)
        version, cells = content.pop("version"), content.pop("cells")
        rows = content.pop("rows")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            "the profile is damaged: its facts cannot be read", remedy=_DAMAGED
        ) from None
    if version != VERSION or cells != FINE_CELLS:
        raise InputError(
            f"this is a profile of version {shortened(str(version))} with {shortened(str(cells))} cells, "
            f"expected version {VERSION} with {FINE_CELLS:,}",
            remedy="make it again with this version of calviz",
        )
    try:
        return _facts(content), int(rows)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "the profile is damaged: its facts are incomplete", remedy=_DAMAGED
        ) from None


def _facts(content: dict[str, Any]) -> ProfileFacts:
    content = {"true_class": False, "each_class": False, **content}
    if set(content) != {f.name for f in fields(ProfileFacts)}:
        raise KeyError
    for name in ("class_names", "groups", "skipped"):
        content[name] = tuple(content[name])
        if not all(isinstance(v, str) for v in content[name]):
            raise TypeError
    texts = (content["name"], content["reduction"], content["kind"])
    if not all(isinstance(v, str) for v in texts) or content["reduction"] not in _REDUCTIONS:
        raise TypeError
    if not all(isinstance(content[name], bool) for name in _FLAGS):
        raise TypeError
    if content["reduction"] == "positive" and len(content["class_names"]) != 2:
        raise ValueError
    return ProfileFacts(**content)


_FLAGS = ("single", "split", "true_class", "each_class")
_REDUCTIONS = ("positive", "top-label")


def profile_from_columns(facts: ProfileFacts, rows: int, columns: dict[str, Any]) -> Profile:
    """Make a profile from the columns of a file, after checking that they are consistent.

    Raises
    ------
    InputError
        If the columns contradict each other.
    """
    import polars as pl

    cells = pl.DataFrame(columns).select(columns_of(facts))
    class_cells = None
    if facts.each_class:
        class_cells = cells.filter(pl.col("class") != TOP_LABEL)
        class_cells = class_cells.select(*class_keys_of(facts), *CLASS_SUMS, "low", "high")
        cells = cells.filter(pl.col("class") == TOP_LABEL).drop("class")
    n = cells["n"].to_numpy()
    valid = _sums_agree(cells) & _in_range(cells["cell"], 2 * FINE_CELLS)
    clipped = cells["clipped"].to_numpy()
    valid &= (clipped >= 0) & (clipped <= n)
    if facts.true_class:
        valid &= _in_range(cells["true"], len(facts.class_names) - 1)
    keys = keys_of(facts)
    # A cell may have several rows only if every row of the file is a single score.
    repeated = cells.select(*keys, "low").is_duplicated().any()
    if (cells["low"] != cells["high"]).any():
        repeated = repeated or cells.select(keys).is_duplicated().any()
    if class_cells is not None:
        repeated = repeated or class_cells.select(class_keys_of(facts)).is_duplicated().any()
    classes_agree = class_cells is None or _classes_agree(class_cells, rows, len(facts.class_names))
    if not (valid.all() and classes_agree) or repeated or int(n.sum()) != rows:
        raise InputError("the profile is damaged: its sums contradict each other", remedy=_DAMAGED)
    return Profile(facts, cells, class_cells)


def _sums_agree(cells: pl.DataFrame) -> BoolArray:
    """Whether the mean score of each cell lies between its smallest and largest score, shape (cells,)."""
    n, total, low, high = (cells[name].to_numpy() for name in ("n", "score_sum", "low", "high"))
    with np.errstate(invalid="ignore"):
        rounding = 1e-6 * np.maximum(n, 1)
        valid = (n >= 1) & (low >= -1e-6) & (low <= high) & (high <= 1 + 1e-6)
        return np.asarray(
            valid & (total >= n * low - rounding) & (total <= n * high + rounding), np.bool_
        )


def _in_range(column: pl.Series, last: int) -> BoolArray:
    values = column.to_numpy()
    return np.asarray((values >= 0) & (values <= last))


def _classes_agree(cells: pl.DataFrame, rows: int, n_classes: int) -> bool:
    """Whether the cells of each class sum to all rows, and each row is a hit of exactly one class."""
    classes, n = cells["class"].to_numpy(), cells["n"].to_numpy()
    valid = _sums_agree(cells) & _in_range(cells["class"], n_classes - 1)
    valid &= _in_range(cells["cell"], 2 * intervals_of(n_classes) + 1)
    if not valid.all():
        return False
    rows_of_class = np.bincount(classes, n, minlength=n_classes)
    return bool((rows_of_class == rows).all()) and int(n[cells["hit"].to_numpy()].sum()) == rows


def group_names(facts: ProfileFacts) -> tuple[str, ...]:
    """The group columns of a file."""
    return tuple(f"{GROUP}{name}" for name in facts.groups)

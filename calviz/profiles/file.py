"""What a profile's Parquet file holds: cells as columns, and facts as JSON in its metadata."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from calviz.core.cells import FINE_CELLS
from calviz.core.errors import InputError, OptionError, shortened
from calviz.core.extra_packages import needs
from calviz.core.whole_files import replacing
from calviz.profiles.aggregate import GROUP, SUMS
from calviz.profiles.profile import VERSION, Facts, Profile, keys_of

#: The entry of the file's metadata that says that it is a profile, and holds its facts.
KEY = b"calviz.profile"
_DAMAGED = "make the profile again"


def write_profile(profile: Profile, path: str | os.PathLike[str]) -> None:
    """Write a profile as a Parquet file, whole or not at all.

    Raises
    ------
    OutputError
        Where the file cannot be written.
    """
    needs("pyarrow")
    import pyarrow.parquet as pq

    facts = {
        "version": VERSION,
        "cells": FINE_CELLS,
        "rows": profile.n,
        **asdict(profile.facts),
    }
    table = profile.cells.to_arrow()
    table = table.replace_schema_metadata({KEY: json.dumps(facts).encode()})
    with replacing(path) as beside:
        pq.write_table(table, beside, compression="zstd")


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path of a profile to write; raises OptionError where it cannot be one, before the work is done."""
    target = Path(path)
    if target.suffix.lower() != ".parquet":
        raise OptionError(f"a profile is a .parquet file, not '{shortened(target.name)}'.")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"'{shortened(str(target))}': there is no such directory.")
    return target


def columns_of(facts: Facts) -> tuple[str, ...]:
    """The columns of a file, by what they are of."""
    return (*keys_of(facts), *SUMS, "low", "high")


def read_facts(text: bytes) -> tuple[Facts, int]:
    """Facts and number of rows, from the metadata of a file.

    Raises
    ------
    InputError
        Where they are of another version, or damaged.
    """
    try:
        found = json.loads(text)
        version, cells = found.pop("version"), found.pop("cells")
        rows = found.pop("rows")
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
        return _facts(found), int(rows)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "the profile is damaged: its facts are incomplete", remedy=_DAMAGED
        ) from None


def _facts(found: dict[str, Any]) -> Facts:
    found.setdefault("true_class", False)
    if set(found) != {f.name for f in fields(Facts)}:
        raise KeyError
    for name in ("class_names", "groups", "skipped"):
        found[name] = tuple(found[name])
        if not all(isinstance(v, str) for v in found[name]):
            raise TypeError
    texts = (found["name"], found["reduction"], found["kind"])
    if not all(isinstance(v, str) for v in texts) or found["reduction"] not in _REDUCTIONS:
        raise TypeError
    if not all(isinstance(found[name], bool) for name in ("single", "split", "true_class")):
        raise TypeError
    if found["reduction"] == "positive" and len(found["class_names"]) != 2:
        raise ValueError
    return Facts(**found)


_REDUCTIONS = ("positive", "top-label")


def of_columns(facts: Facts, rows: int, columns: dict[str, Any]) -> Profile:
    """A profile of the columns of a file, which are looked at before they are believed.

    Raises
    ------
    InputError
        Where they contradict themselves.
    """
    import polars as pl

    cells = pl.DataFrame(columns).select(columns_of(facts))
    number = {name: cells[name].to_numpy() for name in (*SUMS, "low", "high")}
    n, total, low, high = (number[name] for name in ("n", "score_sum", "low", "high"))
    with np.errstate(invalid="ignore"):
        rounding = 1e-6 * np.maximum(n, 1)
        sound = (n >= 1) & (number["clipped"] >= 0) & (number["clipped"] <= n)
        sound &= (low >= -1e-6) & (low <= high) & (high <= 1 + 1e-6)
        sound &= (total >= n * low - rounding) & (total <= n * high + rounding)
    cell = cells["cell"].to_numpy()
    if facts.true_class:
        true = cells["true"].to_numpy()
        sound &= (true >= 0) & (true < len(facts.class_names))
    sound &= (cell >= 0) & (cell <= 2 * FINE_CELLS)
    keys = keys_of(facts)
    # Several scores of one cell stand apart only where all do.
    doubled = cells.select(*keys, "low").is_duplicated().any()
    if (low != high).any():
        doubled = doubled or cells.select(keys).is_duplicated().any()
    if not sound.all() or doubled or int(n.sum()) != rows:
        raise InputError("the profile is damaged: its sums contradict each other", remedy=_DAMAGED)
    return Profile(facts, cells)


def group_names(facts: Facts) -> tuple[str, ...]:
    """The columns of a file that hold groups."""
    return tuple(f"{GROUP}{name}" for name in facts.groups)

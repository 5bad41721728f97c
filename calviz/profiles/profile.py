"""`Profile`: cells of rows, what they are of, and how two of them are added."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.cells import FEW_SCORES, Cells
from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.profiles.aggregate import GROUP, SUMS
from calviz.profiles.layout import Every

if TYPE_CHECKING:
    import polars as pl

#: The version of what a profile holds; another one is refused.
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a profile is of; profiles that are added agree on all but `name` and `skipped`.

    Attributes
    ----------
    name : str
    reduction : {"positive", "top-label"}
        Whose score and hit the cells hold.
    class_names : tuple of str
    kind : {"probabilities", "confidence"}
    single : bool
        Whether the scores came in single precision.
    groups : tuple of str
        The columns that it can be sliced by.
    split : bool
        Whether it knows the splits.
    every : str or None
        The buckets that times are counted in; None without times.
    skipped : tuple of str
        Files that were left out because they could not be read.
    """

    name: str
    reduction: str
    class_names: tuple[str, ...]
    kind: str
    single: bool
    groups: tuple[str, ...] = ()
    split: bool = False
    every: Every | None = None
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Profile:
    """A mergeable summary of rows: how many there are in each cell of the score, with and without a hit.

    Wherever calviz takes predictions it takes a profile.

    Attributes
    ----------
    facts : Facts
    cells : polars.DataFrame
        A row per split, group, time, cell and hit that occurs, and per score where these are few (`FEW_SCORES`). Keys: ``split``, ``group:NAME``, ``time`` where there are any,
        ``cell``, ``hit``. Numbers: ``n`` rows, sums of scores, of their squares, of -log of the true class's probability, of
        those that were 0 (``clipped``) and of squared errors; the smallest and the largest score (``low``, ``high``).
    """

    facts: Facts
    cells: pl.DataFrame = field(repr=False)

    @property
    def n(self) -> int:
        """Rows that were counted."""
        return int(self.cells["n"].sum())

    @property
    def is_exact(self) -> bool:
        """Whether every cell holds one score, so that every metric of score and hit is exact."""
        return bool((self.cells["low"] == self.cells["high"]).all())

    def __add__(self, other: Profile) -> Profile:
        return merge([self, other])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a Parquet file, which `calviz.profile`, the command line and the app open.

        Raises
        ------
        OutputError
            Where the file cannot be written.
        """
        from calviz.profiles.file import write_profile

        write_profile(self, path)

    def sentence(self) -> str:
        """What it is, in one line."""
        f = self.facts
        parts = [f"profile of {self.n:,} rows in {self.cells.height:,} cells"]
        parts.append("exact" if self.is_exact else "exact for bins, bounded for the rest")
        if f.class_names:
            parts.append(f"{len(f.class_names):,} classes")
        parts += [f"by {', '.join(shortened(g) for g in f.groups)}"] * bool(f.groups)
        parts += [f"by {f.every}"] * (f.every is not None)
        return ", ".join(parts)

    def predictions(self) -> Dataset:
        """The cells as predictions of which each counts many rows (`calviz.core.cells`).

        Returns
        -------
        Predictions or ConfidencePredictions
            The first of two classes, the second of a top label.
        """
        f, table = self.facts, self.cells
        column = {name: table[name].to_numpy() for name in (*SUMS, "low", "high")}
        n = column["n"].astype(np.float64)
        low, high = column["low"], column["high"]
        # A mean may be rounded out of its cell.
        score = np.clip(column["score_sum"] / n, low, high)
        cells = Cells(
            low,
            high,
            column["log_loss"] / n,
            column["clipped"],
            column["squared_error"] / n,
            f.single,
        )
        common: dict[str, Any] = {
            "weights": n,
            "cells": cells,
            "name": f.name,
            "class_names": f.class_names,
            "splits": _factor(table["split"]) if f.split else None,
            "groups": {name: _factor(table[f"{GROUP}{name}"]) for name in f.groups},
            "times": table["time"].to_numpy() if f.every is not None else None,
        }
        hit = table["hit"].to_numpy()
        if f.reduction == "positive":
            other = 1 - score
            if f.single:
                # As the rows would have it, so that what is tied there is tied here.
                alone = low == high
                other[alone] = other[alone].astype(np.float32)
            probs = np.stack([other, score], axis=1)
            return Predictions(probs=probs, labels=hit.astype(np.int32), **common)
        return ConfidencePredictions(confidence=score, correct=hit, **common)


def _factor(column: pl.Series) -> Factor:
    import polars as pl

    text = column.cast(pl.String).fill_null("")
    levels = text.unique(maintain_order=True)
    codes = text.replace_strict(
        levels, np.arange(len(levels), dtype=np.int32), return_dtype=pl.Int32
    )
    return Factor(codes.to_numpy(), tuple(levels.to_list()))


def keys_of(facts: Facts) -> list[str]:
    """The columns of `Profile.cells` that say which cell it is."""
    names = ["split"] * facts.split + [f"{GROUP}{name}" for name in facts.groups]
    return [*names, *(["time"] * (facts.every is not None)), "cell", "hit"]


def merge(profiles: Iterable[Profile]) -> Profile:
    """Add profiles of different rows: a day to a month, one site to another.

    The order does not matter, nor which are added first.

    Raises
    ------
    InputError
        Where there is none, or they are not of the same classes, groups and buckets of time.
    """
    found = list(profiles)
    if not found:
        raise InputError("there are no profiles to merge")
    first = found[0]
    for other in found[1:]:
        _check_alike(first.facts, other.facts)
    skipped = tuple(name for p in found for name in p.facts.skipped)
    facts = replace(first.facts, skipped=skipped)
    return Profile(facts, summed([p.cells for p in found], facts))


def summed(tables: Sequence[pl.DataFrame], facts: Facts) -> pl.DataFrame:
    """The cells of several tables, each once, in the order of their keys."""
    import polars as pl

    keys = keys_of(facts)
    columns = (*keys, *SUMS, "low", "high")
    table = pl.concat(tables)
    totals = [pl.col(name).sum() for name in SUMS]
    # What holds one score each stays apart, as long as all tables have it so and it is not much.
    if (table["low"] == table["high"]).all() and table["low"].n_unique() <= FEW_SCORES:
        apart = table.group_by([*keys, "low"]).agg(*totals, pl.col("high").first())
        return apart.sort([*keys, "low"]).select(columns)
    found = table.group_by(keys).agg(*totals, pl.col("low").min(), pl.col("high").max())
    return found.sort(keys).select(columns)


_WORDS = {
    "reduction": "views",
    "class_names": "classes",
    "kind": "kinds of scores",
    "single": "precisions of the scores",
    "groups": "group columns",
    "split": "splits (one has them, one has not)",
    "every": "buckets of time",
}


def _check_alike(one: Facts, other: Facts) -> None:
    for name, words in _WORDS.items():
        a, b = getattr(one, name), getattr(other, name)
        if a != b:
            raise InputError(
                f"profiles of different {words} cannot be merged: '{shortened(one.name)}' has {_shown(a)}, "
                f"'{shortened(other.name)}' has {_shown(b)}",
                remedy="profile both with the same options",
            )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return shortened(", ".join(value)) or "none"
    return (
        {True: "single", False: "double"}.get(value, str(value))
        if isinstance(value, bool)
        else str(value)
    )

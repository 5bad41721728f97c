"""`Profile`: cells of rows, facts about them, and merging."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import IntArray
from calviz.core.cells import FEW_SCORES, Cells
from calviz.core.class_cells import ClassCells
from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions, check_dataset
from calviz.profiles.aggregate import GROUP, SUMS
from calviz.profiles.class_cells import CLASS_SUMS
from calviz.profiles.layout import TimeUnit

if TYPE_CHECKING:
    import polars as pl

#: Version of the contents of a profile; files of other versions are refused.
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ProfileFacts:
    """Facts about a profile; profiles can be merged if they agree on all but `name` and `skipped`.

    Attributes
    ----------
    name : str
    reduction : {"positive", "top-label"}
        The reduction whose score and hit the cells hold.
    class_names : tuple of str
    kind : {"probabilities", "confidence"}
    single : bool
        Whether the scores were in single precision.
    groups : tuple of str
        The columns to slice by.
    split : bool
        Whether the cells are separate for each split.
    every : str or None
        Length of the buckets of time; None without times.
    true_class : bool
        Whether cells are separate for each true class, for more than two classes.
    each_class : bool
        Whether there are also cells of the probability of each class (`Profile.class_cells`).
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
    every: TimeUnit | None = None
    true_class: bool = False
    each_class: bool = False
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Profile:
    """A mergeable summary of rows: how many there are in each cell of the score, with and without a hit.

    calviz accepts a profile wherever it accepts predictions.

    Attributes
    ----------
    facts : ProfileFacts
    cells : polars.DataFrame
        A row per occurring split, group, time, cell and hit, and per score if there are few (`FEW_SCORES`). Keys: ``split``,
        ``group:NAME``, ``time``, ``true`` (a class), if present, ``cell``, ``hit``. Values: the number of rows ``n``; sums of scores,
        of their squares, of -log of the probability of the true class and of squared errors; the number of those probabilities that
        were 0 (``clipped``); the smallest and the largest score (``low``, ``high``).
    class_cells : polars.DataFrame or None
        The same for the probability of each class, one-vs-rest, if requested for more than two classes: ``class`` is among the keys,
        a hit is a row whose label is the class, and there are fewer cells (`calviz.profiles.class_cells.intervals_of`).
    """

    facts: ProfileFacts
    cells: pl.DataFrame = field(repr=False)
    class_cells: pl.DataFrame | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.cells["n"].sum())

    @property
    def is_exact(self) -> bool:
        """Whether every cell holds a single score, so that every metric of score and hit is exact."""
        return bool((self.cells["low"] == self.cells["high"]).all())

    def __add__(self, other: Profile) -> Profile:
        return merge([self, other])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile as a Parquet file, which calviz, its command line and the app can open.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        from calviz.profiles.file import write_profile

        write_profile(self, path)

    def sentence(self) -> str:
        """Describe the profile in one line."""
        facts = self.facts
        parts = [f"profile of {self.n:,} rows in {self.cells.height:,} cells"]
        parts.append("exact" if self.is_exact else "exact for bins, bounded for the rest")
        if facts.class_names:
            parts.append(f"{len(facts.class_names):,} classes")
        parts += [f"by {', '.join(shortened(g) for g in facts.groups)}"] * bool(facts.groups)
        parts += ["by true class"] * facts.true_class
        parts += ["with cells of each class"] * facts.each_class
        parts += [f"by {facts.every}"] * (facts.every is not None)
        return ", ".join(parts)

    def predictions(self) -> Dataset:
        """Return the cells as predictions with weights, each standing for many rows (`calviz.core.cells`).

        Returns
        -------
        Predictions or ConfidencePredictions
            Predictions for two classes, ConfidencePredictions for a top label.
        """
        facts, table = self.facts, self.cells
        column = {name: table[name].to_numpy() for name in (*SUMS, "low", "high")}
        n = column["n"].astype(np.float64)
        low, high = column["low"], column["high"]
        # Rounding may move a mean outside its cell.
        score = np.clip(column["score_sum"] / n, low, high)
        cells = Cells(
            low,
            high,
            column["log_loss"] / n,
            column["clipped"],
            column["squared_error"] / n,
            facts.single,
        )
        common: dict[str, Any] = {
            "weights": n,
            "cells": cells,
            "name": facts.name,
            "class_names": facts.class_names,
            "splits": Factor.of_series(table["split"]) if facts.split else None,
            "groups": {name: Factor.of_series(table[f"{GROUP}{name}"]) for name in facts.groups},
            "times": table["time"].to_numpy() if facts.every is not None else None,
        }
        hit = table["hit"].to_numpy()
        if facts.reduction == "positive":
            other = 1 - score
            if facts.single:
                # Rounded as in the rows, so that ties are the same.
                single_score = low == high
                other[single_score] = other[single_score].astype(np.float32)
            probs = np.stack([other, score], axis=1)
            return Predictions(probs=probs, labels=hit.astype(np.int32), **common)
        labels = table["true"].to_numpy() if facts.true_class else None
        return ConfidencePredictions(
            confidence=score,
            correct=hit,
            labels=labels,
            class_cells=self._as_class_cells(),
            **common,
        )

    def _as_class_cells(self) -> ClassCells | None:
        if self.class_cells is None:
            return None
        facts, table = self.facts, self.class_cells.sort("class")
        block_of_row, block = _blocks([self.cells, table], block_keys(facts))
        column = {name: table[name].to_numpy() for name in (*CLASS_SUMS, "low", "high")}
        n = column["n"].astype(np.float64)
        return ClassCells(
            class_index=table["class"].to_numpy(),
            cell=table["cell"].to_numpy(),
            hit=table["hit"].to_numpy(),
            count=n,
            score=column["score_sum"] / n,
            low=column["low"],
            high=column["high"],
            block=block,
            block_of_row=block_of_row,
            n_classes=len(facts.class_names),
            single=facts.single,
        )


def _blocks(tables: Sequence[pl.DataFrame], keys: list[str]) -> list[IntArray]:
    """Number the blocks (combinations of keys) across tables: the block of each row, shape (rows,) per table."""
    import polars as pl

    if not keys:
        return [np.zeros(table.height, dtype=np.intp) for table in tables]
    keys_of_all = pl.concat([table.select(keys) for table in tables])
    number = keys_of_all.select(pl.struct(keys).rank("dense")).to_series().to_numpy() - 1
    ends = np.cumsum([table.height for table in tables])[:-1]
    return [part.astype(np.intp) for part in np.split(number, ends)]


def block_keys(facts: ProfileFacts) -> list[str]:
    """The columns that divide the rows into blocks: split, groups and time."""
    names = ["split"] * facts.split + [f"{GROUP}{name}" for name in facts.groups]
    return names + ["time"] * (facts.every is not None)


def keys_of(facts: ProfileFacts) -> list[str]:
    """The key columns of `Profile.cells`."""
    return [*block_keys(facts), *["true"] * facts.true_class, "cell", "hit"]


def class_keys_of(facts: ProfileFacts) -> list[str]:
    """The key columns of `Profile.class_cells`."""
    return [*block_keys(facts), "class", "cell", "hit"]


def merge(profiles: Iterable[Profile]) -> Profile:
    """Merge profiles of different rows, such as the days of a month or several sites.

    The result does not depend on order or grouping.

    Raises
    ------
    InputError
        If there are no profiles, or their classes, groups or buckets of time differ.
    """
    parts = list(profiles)
    if not parts:
        raise InputError("there are no profiles to merge")
    first = parts[0]
    for other in parts[1:]:
        _check_alike(first.facts, other.facts)
    skipped = tuple(name for p in parts for name in p.facts.skipped)
    facts = replace(first.facts, skipped=skipped)
    class_cells = [p.class_cells for p in parts if p.class_cells is not None]
    return Profile(
        facts,
        summed([p.cells for p in parts], facts),
        summed_classes(class_cells, facts) if class_cells else None,
    )


def summed_classes(tables: Sequence[pl.DataFrame], facts: ProfileFacts) -> pl.DataFrame:
    """Sum tables of cells of each class; each key occurs once, in sorted order."""
    import polars as pl

    keys = class_keys_of(facts)
    sums = [pl.col(name).sum() for name in CLASS_SUMS]
    table = pl.concat(tables).group_by(keys).agg(*sums, pl.col("low").min(), pl.col("high").max())
    return table.sort(keys).select(*keys, *CLASS_SUMS, "low", "high")


def summed(tables: Sequence[pl.DataFrame], facts: ProfileFacts) -> pl.DataFrame:
    """Sum tables of cells; each key occurs once, in sorted order, or once per score if there are few scores."""
    import polars as pl

    keys = keys_of(facts)
    columns = (*keys, *SUMS, "low", "high")
    table = pl.concat(tables)
    totals = [pl.col(name).sum() for name in SUMS]
    # Single scores stay separate as long as all tables have them so and there are few.
    if (table["low"] == table["high"]).all() and table["low"].n_unique() <= FEW_SCORES:
        by_score = table.group_by([*keys, "low"]).agg(*totals, pl.col("high").first())
        return by_score.sort([*keys, "low"]).select(columns)
    by_cell = table.group_by(keys).agg(*totals, pl.col("low").min(), pl.col("high").max())
    return by_cell.sort(keys).select(columns)


_WORDS = {
    "reduction": "reductions",
    "class_names": "classes",
    "kind": "kinds of scores",
    "single": "precisions of the scores",
    "groups": "group columns",
    "split": "splits (one has them, one has not)",
    "every": "buckets of time",
    "true_class": "cells (one has them by true class, one has not)",
    "each_class": "cells (one has them of each class, one has not)",
}


def _check_alike(one: ProfileFacts, other: ProfileFacts) -> None:
    for name, words in _WORDS.items():
        a, b = getattr(one, name), getattr(other, name)
        if a != b:
            raise InputError(
                f"profiles of different {words} cannot be merged: '{shortened(one.name)}' has {_shown(name, a)}, "
                f"'{shortened(other.name)}' has {_shown(name, b)}",
                remedy="profile both with the same options",
            )


def _shown(name: str, value: Any) -> str:
    if isinstance(value, tuple):
        return shortened(", ".join(value)) or "none"
    if name == "single":
        return "single" if value else "double"
    if isinstance(value, bool):
        return "some" if value else "none"
    return str(value)


def dataset_of(data: Dataset | Profile) -> Dataset:
    """Return predictions as they are, and a profile as its cells (`Profile.predictions`); raises InputError for anything else."""
    if isinstance(data, Profile):
        return data.predictions()
    check_dataset(data)
    return data

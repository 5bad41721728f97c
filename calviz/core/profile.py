"""Profile: cells and facts of any number of rows, merging, its Parquet file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from calviz.core import errors
from calviz.core.blocks import BoolArray, Factor, IntArray
from calviz.core.errors import InputError, OptionError, check_place, needs, replacing, shortened
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.row_columns import FEW_SCORES, FINE_CELLS, Cells, ClassCells

if TYPE_CHECKING:
    import polars as pl

SUMS = ("n", "score_sum", "square_sum", "log_loss", "clipped", "squared_error")

GROUP = "group:"

CLASS_SUMS = ("n", "score_sum")


def intervals_of(n_classes: int) -> int:
    """Return the number of equal-width intervals for the probability of each class.

    A divisor of `calviz.core.row_columns.FINE_CELLS` and a multiple of 960, so that the usual numbers of bins divide it. The number
    decreases with the number of classes, so that the total number of cells stays about the same.

    >>> [intervals_of(k) for k in (3, 10, 100, 1000)]
    [61440, 15360, 1920, 960]
    """
    return 15 << max(6, min(12, 14 - (n_classes - 1).bit_length()))


# ---- Columns

#: Length of a bucket of time.
TimeUnit = Literal["hour", "day", "week", "month", "quarter", "year"]
#: The same in the notation of narwhals.
UNITS: dict[TimeUnit, str] = {
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "1q",
    "year": "1y",
}


@dataclass(frozen=True, kw_only=True)
class ProfileColumns:
    """The columns from which a profile is made.

    Attributes
    ----------
    label : str
        The column with the true class; for confidences, the column that says whether the prediction was right.
    scores : tuple of str
        One column with P(class 1), one column per class in order, or one column with the confidence.
    classes : tuple
        The value in the label column for each class, in order.
    class_names : tuple of str
        Names of the classes; empty for confidences whose classes are not known.
    confidence : bool
        Whether the score is the confidence of the predicted class, and the label says whether the prediction was right.
    split, time : str or None
    groups : tuple of str
        Columns to slice by.
    logits : tuple of str
        The columns from which `scores` are computed (`calviz.data.any_size.sums`); empty if `scores` are columns of the source.
    count : str or None
        The column with frequency weights: how many rows each row stands for.
    weight : str or None
        The column with importance weights.
    true_class : bool
        Whether to keep separate cells for each true class; with two classes this is always so.
    each_class : bool
        Whether to also keep cells of the probability of each class, one-vs-rest; with two classes this is always so.
    every : {"hour", "day", "week", "month", "quarter", "year"}
        Length of the buckets of time.
    """

    label: str
    scores: tuple[str, ...]
    classes: tuple[Any, ...]
    class_names: tuple[str, ...] = ()
    confidence: bool = False
    split: str | None = None
    groups: tuple[str, ...] = ()
    time: str | None = None
    logits: tuple[str, ...] = ()
    count: str | None = None
    weight: str | None = None
    every: TimeUnit = "day"
    true_class: bool = False
    each_class: bool = False

    def __post_init__(self) -> None:
        errors.check_choice("every", self.every, get_args(TimeUnit))
        if not self.confidence and len(self.classes) < 2:
            raise OptionError("a profile needs at least two classes.")

    @property
    def reduction(self) -> str:
        """Name of the reduction whose score the cells hold."""
        return "positive" if self.two_classes else "top-label"

    @property
    def columns(self) -> tuple[str, ...]:
        """The score columns of the source: logits, or `scores`."""
        return self.logits or self.scores

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the source that hold numbers: scores and weights."""
        return (*self.columns, *(name for name in (self.count, self.weight) if name is not None))

    @property
    def logs(self) -> tuple[str, ...]:
        """Columns with the logarithms of `scores`, if these are computed from logits."""
        return tuple(f"{name} log" for name in self.scores) if self.logits else ()

    @property
    def two_classes(self) -> bool:
        """Whether there are two classes, so that the score is that of the positive class."""
        return not self.confidence and len(self.classes) == 2


# ---- Cells and facts

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
        were below the limit of log losses (``clipped``); the smallest and the largest score (``low``, ``high``).
    class_cells : polars.DataFrame or None
        The same for the probability of each class, one-vs-rest, if requested for more than two classes: ``class`` is among the keys,
        a hit is a row whose label is the class, and there are fewer cells (`calviz.core.profile.intervals_of`).
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
        write_profile(self, path)

    def __repr__(self) -> str:
        return f"<Profile: {self.sentence().removeprefix('profile of ')}>"

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
        """Return the cells as predictions with weights, each standing for many rows (`calviz.core.row_columns`).

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
        common: dict[str, Any] = {
            "weights": n,
            "cells": Cells(
                low,
                high,
                column["log_loss"] / n,
                column["clipped"],
                column["squared_error"] / n,
                facts.single,
            ),
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
        return ConfidencePredictions(
            confidence=score,
            correct=hit,
            labels=table["true"].to_numpy() if facts.true_class else None,
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
    facts = replace(first.facts, skipped=tuple(name for p in parts for name in p.facts.skipped))
    class_cells = [p.class_cells for p in parts if p.class_cells is not None]
    return Profile(
        facts,
        summed([p.cells for p in parts], facts),
        summed_classes(class_cells, facts) if class_cells else None,
    )


def summed_classes(tables: Sequence[pl.DataFrame], facts: ProfileFacts) -> pl.DataFrame:
    """Sum tables of cells of each class; each key occurs once, in sorted order."""
    import polars as pl

    return _totals(pl.concat(tables), class_keys_of(facts), CLASS_SUMS)


def summed(tables: Sequence[pl.DataFrame], facts: ProfileFacts) -> pl.DataFrame:
    """Sum tables of cells; each key occurs once, in sorted order, or once per score if there are few scores."""
    import polars as pl

    keys, table = keys_of(facts), pl.concat(tables)
    # Single scores stay separate as long as all tables have them so and there are few.
    if (table["low"] == table["high"]).all() and table["low"].n_unique() <= FEW_SCORES:
        score = pl.col("low").alias("score")
        return _totals(table.with_columns(score), [*keys, "score"], SUMS).drop("score")
    return _totals(table, keys, SUMS)


def _totals(table: pl.DataFrame, keys: list[str], sums: Sequence[str]) -> pl.DataFrame:
    """Sum the cells with the same keys, in the order of these."""
    import polars as pl

    totals = [pl.col(name).sum() for name in sums]
    return table.group_by(keys).agg(*totals, pl.col("low").min(), pl.col("high").max()).sort(keys)


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


# ---- Parquet

#: Metadata key that marks the file as a profile and holds its facts.
KEY = b"calviz.profile"


def _damaged(what: str) -> InputError:
    return InputError(f"the profile is damaged: {what}", remedy="make the profile again")


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

    facts = {"version": VERSION, "cells": FINE_CELLS, "rows": profile.n, **asdict(profile.facts)}
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
        raise _damaged("its facts cannot be read") from None
    if version != VERSION or cells != FINE_CELLS:
        raise InputError(
            f"this is a profile of version {shortened(str(version))} with {shortened(str(cells))} cells, "
            f"expected version {VERSION} with {FINE_CELLS:,}",
            remedy="make it again with this version of calviz",
        )
    try:
        return _facts(content), int(rows)
    except (KeyError, TypeError, ValueError):
        raise _damaged("its facts are incomplete") from None


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
        raise _damaged("its sums contradict each other")
    return Profile(facts, cells, class_cells)


def _sums_agree(cells: pl.DataFrame) -> BoolArray:
    """Whether the mean score of each cell lies between its smallest and largest score, shape (cells,)."""
    n, total, low, high = (cells[name].to_numpy() for name in ("n", "score_sum", "low", "high"))
    with np.errstate(invalid="ignore"):
        rounding = 1e-6 * np.maximum(n, 1)
        valid = (n >= 1) & (low >= -1e-6) & (low <= high) & (high <= 1 + 1e-6)
        return valid & (total >= n * low - rounding) & (total <= n * high + rounding)


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

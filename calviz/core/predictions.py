"""The one type that holds what a classifier said, and what was true."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only
from calviz.core.cells import Cells
from calviz.core.class_cells import ClassCells
from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor
from calviz.core.labels import checked_labels
from calviz.core.notebook import html_block
from calviz.core.probabilities import (
    RowSums,
    as_float,
    check_finite,
    check_unit_interval,
    checked_row_sums,
    softmax,
)
from calviz.core.rows_not_alike import checked_clusters, checked_times, checked_weights
from calviz.core.ways_in import WaysIn

Kind = Literal["probabilities", "logits", "confidence"]

#: How the columns of `Predictions.numbers` begin in files.
INTERVAL = "interval_"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Rows:
    """What full predictions and confidence-only data have in common: the columns other than scores."""

    splits: Factor | None = None
    groups: Mapping[str, Factor] = field(default_factory=dict)
    ids: npt.NDArray[Any] | None = None
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    texts: Mapping[str, Factor] = field(default_factory=dict)
    clusters: Factor | None = None
    weights: FloatArray | None = None
    times: npt.NDArray[np.datetime64] | None = None
    cells: Cells | None = None
    class_names: tuple[str, ...] = ()
    name: str = "predictions"

    def _check_columns(self, n: int) -> None:
        if n == 0:
            raise InputError("there are no rows", remedy="give at least one")
        if self.splits is not None:
            object.__setattr__(self, "splits", Factor.of(self.splits))
        if not isinstance(self.groups, Mapping):
            raise InputError(
                f"the groups are {type(self.groups).__name__}, expected a mapping of names to columns",
                remedy='give them as {"site": sites}',
            )
        groups = {str(key): Factor.of(column) for key, column in self.groups.items()}
        object.__setattr__(self, "groups", MappingProxyType(groups))
        if self.ids is not None:
            object.__setattr__(self, "ids", read_only(np.asarray(self.ids)))
        numbers = {str(key): read_only(as_float(v, key)) for key, v in self.numbers.items()}
        object.__setattr__(self, "numbers", MappingProxyType(numbers))
        texts = {str(key): Factor.of(column) for key, column in self.texts.items()}
        object.__setattr__(self, "texts", MappingProxyType(texts))
        columns: dict[str, int] = {key: len(c) for key, c in (*groups.items(), *texts.items())}
        columns |= {key: len(column) for key, column in numbers.items()}
        if self.clusters is not None:
            clusters = Factor.of(self.clusters)
            columns["clusters"] = len(clusters)
            if len(clusters) == n:
                object.__setattr__(self, "clusters", checked_clusters(clusters))
        if self.cells is not None:
            columns["cells"] = len(self.cells.low)
        if self.weights is not None:
            weights = checked_weights(self.weights)
            columns["weights"] = len(weights)
            # Rows that all count the same are rows without weights, to the last digit.
            same = self.cells is None and bool((weights == weights[:1]).all())
            object.__setattr__(self, "weights", None if same else read_only(weights))
        elif self.cells is not None:
            raise InputError(
                "there are cells without the number of rows of each", remedy="give them as weights"
            )
        if self.times is not None:
            object.__setattr__(self, "times", read_only(checked_times(self.times)))
            columns["times"] = len(self.times)
        if self.splits is not None:
            columns["splits"] = len(self.splits)
        if self.ids is not None:
            columns["ids"] = len(self.ids)
        for key, length in columns.items():
            if length != n:
                raise InputError(
                    f"'{shortened(key)}' has {length:,} rows but there are {n:,} predictions"
                )

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        facts = [f"{self.rows:,} row{'s' if self.rows != 1 else ''}", *self._facts().values()]
        return f"<{type(self).__name__} '{shortened(self.name)}': {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        rows = [("rows", f"{self.rows:,}"), *self._facts().items()]
        return html_block(shortened(self.name), rows=rows)

    def _facts(self) -> dict[str, str]:
        """What is known beside the number of rows, by what it is."""
        facts: dict[str, str] = {"kind": self.kind}
        if self.cells is not None:
            facts["cells"] = f"profile of {self.n:,} cells"
        if self.class_names:
            facts["classes"] = f"{len(self.class_names):,} classes ({_few(self.class_names)})"
        if self.split_names:
            facts["splits"] = f"splits {_few(self.split_names)}"
        if self.groups:
            facts["groups"] = f"groups {_few(tuple(self.groups))}"
        return facts

    @property
    def n(self) -> int:
        """Number of rows."""
        raise NotImplementedError

    @property
    def kind(self) -> Kind:
        """What the scores are."""
        raise NotImplementedError

    def _columns_at(self, rows: npt.NDArray[Any]) -> dict[str, Any]:
        return {
            "splits": None if self.splits is None else self.splits.take(rows),
            "groups": {key: column.take(rows) for key, column in self.groups.items()},
            "ids": None if self.ids is None else self.ids[rows],
            "numbers": {key: read_only(column[rows]) for key, column in self.numbers.items()},
            "texts": {key: column.take(rows) for key, column in self.texts.items()},
            "clusters": None if self.clusters is None else self.clusters.take(rows),
            "weights": None if self.weights is None else read_only(self.weights[rows]),
            "times": None if self.times is None else read_only(self.times[rows]),
            "cells": None if self.cells is None else self.cells.take(rows),
        }

    @property
    def alike(self) -> bool:
        """Whether the rows are independent and count the same, as far as the data say: no clusters, no weights.

        The rows behind cells are; the weights of cells count them.
        """
        return self.clusters is None and (self.weights is None or self.cells is not None)

    @property
    def rows(self) -> int:
        """How many rows were observed: those behind the cells of a profile, else `n`."""
        if self.cells is None or self.weights is None:
            return self.n
        return int(self.weights.sum())

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits, in the order of their first row; empty without splits."""
        return () if self.splits is None else self.splits.levels

    def _hash_columns(self, digest: Any) -> None:
        digest.update(repr(self.class_names).encode())
        factors = dict(self.groups) | {f"\0text {key}": t for key, t in self.texts.items()}
        if self.splits is not None:
            factors["\0split"] = self.splits
        for key in sorted(factors):
            digest.update(repr((key, factors[key].levels)).encode())
            digest.update(np.ascontiguousarray(factors[key].codes).data)
        if self.ids is not None:
            digest.update(repr(self.ids.tolist()).encode())
        if self.clusters is not None:
            digest.update(repr(("\0clusters", self.clusters.levels)).encode())
            digest.update(np.ascontiguousarray(self.clusters.codes).data)
        further: dict[str, Any] = {"\0weights": self.weights, "\0times": self.times}
        if self.cells is not None:
            further |= {"\0low": self.cells.low, "\0high": self.cells.high}
        for name, column in further.items():
            if column is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(column).view(np.uint8).data)
        for key in sorted(self.numbers):
            digest.update(repr((key, self.numbers[key].dtype.str)).encode())
            digest.update(np.ascontiguousarray(self.numbers[key]).data)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictions(WaysIn, _Rows):
    """Class probabilities of a classifier and the true labels, validated once, read-only.

    Parameters
    ----------
    probs : array_like, shape (n, K) or (n,)
        Probabilities; rows sum to 1. One dimension means P(class 1) of a binary problem.
        May be left out where `logits` is given: it is then their softmax.
        Stored as float32 or float64, whatever came.
    labels : array_like of int, shape (n,)
        True classes, 0..K-1.
    logits : array_like, shape (n, K), optional
        Unnormalised log-probabilities, where the source has them. They are declared, never guessed.
    splits : array_like, shape (n,), optional
        The split of each row ("calibration", "test", ...).
    groups : mapping of str to array_like, optional
        Further categorical columns, to slice by.
    ids : array_like, shape (n,), optional
        Identifiers of the rows.
    numbers : mapping of str to array_like of float, optional
        Further numbers of each row, shape (n,), that are shown and written with it, such as the two probabilities between which a
        calibrated one lies.
    texts : mapping of str to array_like, optional
        Further texts of each row, too many different ones to slice by, that are shown with it: what was classified, or the name of
        its picture.
    clusters : array_like, shape (n,), optional
        Which rows belong together (patients, sites): rows of one cluster may depend on each other, and intervals and
        p-values resample clusters.
    weights : array_like, shape (n,), optional
        How much each row counts (importance weights, of any scale); None where all count the same. Counts of aggregated
        rows are no weights of this kind: `repeated` makes the rows of them.
    times : array_like of datetime64, shape (n,), optional
        When each row was.
    cells : Cells, optional
        Given where each row stands for many (`calviz.profiles`); `weights` then count them.
    class_names : tuple of str, optional
        One name per class; "0".."K-1" if left out.
    name : str
        What to call these predictions on screen.

    Raises
    ------
    InputError
        In one sentence that names the row, where the data break a rule.
    """

    probs: FloatArray = None  # type: ignore[assignment]  # filled from the logits when left out
    labels: IntArray = None  # type: ignore[assignment]  # keyword-only with a message of our own
    logits: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.probs is None and self.logits is None:
            raise InputError("neither probabilities nor logits were given")
        if self.labels is None:
            raise InputError("no labels were given, so there is nothing to compare with")
        if self.logits is not None:
            logits = as_float(self.logits, "logits")
            if logits.ndim != 2:
                raise InputError(f"'logits' has shape {logits.shape}, expected 2-D (rows, classes)")
            check_finite(logits, "logits")
            object.__setattr__(self, "logits", read_only(logits))
        if self.probs is None:
            assert self.logits is not None
            probs = softmax(self.logits)
            object.__setattr__(self, "_kind", "logits")
        else:
            probs = as_float(self.probs, "probs")
            if probs.ndim == 1:
                probs = np.stack([1 - probs, probs], axis=1)
        if probs.ndim != 2 or probs.shape[1] < 2:
            raise InputError(
                f"'probs' has shape {probs.shape}, expected 2-D (rows, at least two classes)"
            )
        n, k = probs.shape
        if self.logits is not None and self.logits.shape != probs.shape:
            raise InputError(f"logits have shape {self.logits.shape} but probs {probs.shape}")
        self._check_columns(n)
        object.__setattr__(self, "_row_sums", checked_row_sums(probs))
        object.__setattr__(self, "probs", read_only(probs))
        object.__setattr__(self, "labels", read_only(checked_labels(self.labels, n, k)))
        names = tuple(str(c) for c in self.class_names) or tuple(str(j) for j in range(k))
        if len(names) != k:
            raise InputError(f"there are {len(names)} class names for {k} classes")
        if len(set(names)) != k:
            double = Counter(names).most_common(1)[0][0]
            raise InputError(f"the class name '{shortened(double)}' stands for more than one class")
        object.__setattr__(self, "class_names", names)

    @property
    def row_sums(self) -> RowSums:
        """How far the rows are from a sum of 1 (of a selection: as of the whole)."""
        sums: RowSums = self.__dict__["_row_sums"]
        return sums

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.probs.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.probs.shape[1])

    @property
    def kind(self) -> Kind:
        """What the probabilities come from: "logits" (their softmax) or "probabilities"."""
        kind: Kind = self.__dict__.get("_kind", "probabilities")
        return kind

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """The predictions of the chosen rows (a boolean mask or indices); nothing is re-checked."""
        new = object.__new__(type(self))
        columns = self._columns_at(rows)
        for key in ("groups", "numbers", "texts"):
            columns[key] = MappingProxyType(columns[key])
        for key, value in columns.items():
            object.__setattr__(new, key, value)
        object.__setattr__(new, "class_names", self.class_names)
        object.__setattr__(new, "name", name or self.name)
        object.__setattr__(new, "_row_sums", self.row_sums)
        object.__setattr__(new, "_kind", self.kind)
        object.__setattr__(new, "probs", read_only(self.probs[rows]))
        object.__setattr__(new, "labels", read_only(self.labels[rows]))
        object.__setattr__(
            new, "logits", None if self.logits is None else read_only(self.logits[rows])
        )
        if new.n == 0:
            raise InputError(
                "there are no rows left after the selection", remedy="select at least one"
            )
        return new

    def split(self, split: str) -> Self:
        """The rows of one split; raises InputError if there is no such split."""
        return self.take(_split_mask(self, split))

    def renamed(self, name: str) -> Self:
        """The same predictions under another name, sharing their arrays."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        object.__setattr__(new, "name", name)
        return new

    def with_columns(
        self,
        *,
        splits: Factor | None,
        groups: Mapping[str, Factor],
        ids: npt.NDArray[Any] | None,
    ) -> Self:
        """The same predictions with other columns (splits, groups, ids), sharing their arrays."""
        new = self.renamed(self.name)
        new.__dict__.pop("_fingerprint", None)
        new.__dict__.update(splits=splits, groups=groups, ids=ids)
        new._check_columns(new.n)
        return new

    def fingerprint(self) -> str:
        """BLAKE2b-256 over the full content (not the name), in hexadecimal."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(b"predictions/1", digest_size=32)
        for array in (self.probs, self.labels, self.logits):
            if array is not None:
                digest.update(repr((array.dtype.str, array.shape)).encode())
                digest.update(np.ascontiguousarray(array).data)
        self._hash_columns(digest)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ConfidencePredictions(_Rows):
    """Confidence-only data: the top probability and whether the prediction was right.

    Metrics of the top-label reduction are defined on it; all others are not available.

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Probability of the predicted class, in [0, 1].
    correct : array_like of bool, shape (n,)
        Whether the predicted class is the true one.
    labels, predicted : array_like of int, shape (n,), optional
        True and predicted classes, as indices into `class_names`.
    class_cells : ClassCells, optional
        Of a profile, cells of every class's own probability.
    splits, groups, ids, numbers, texts, clusters, weights, times, cells, class_names, name
        As in `Predictions`.
    """

    confidence: FloatArray
    correct: BoolArray
    labels: IntArray | None = None
    predicted: IntArray | None = None
    class_cells: ClassCells | None = None

    def __post_init__(self) -> None:
        confidence = as_float(self.confidence, "confidence")
        correct = np.asarray(self.correct).astype(np.bool_)
        if confidence.ndim != 1 or confidence.shape != correct.shape:
            raise InputError(
                "confidence and correct must be 1-D and of one length, "
                f"got shapes {confidence.shape} and {correct.shape}"
            )
        self._check_columns(confidence.shape[0])
        check_unit_interval(confidence[:, None], "confidence")
        object.__setattr__(self, "confidence", read_only(confidence))
        object.__setattr__(self, "correct", read_only(correct))
        for key in ("labels", "predicted"):
            column = getattr(self, key)
            if column is not None:
                k = len(self.class_names) or int(np.max(column)) + 1
                checked = checked_labels(column, self.n, k)
                object.__setattr__(self, key, read_only(checked))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.confidence.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes that the file names; 0 if it names none."""
        return len(self.class_names)

    @property
    def kind(self) -> Kind:
        """Always "confidence"."""
        return "confidence"

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """The data of the chosen rows (a boolean mask or indices)."""
        return replace(
            self,
            confidence=self.confidence[rows],
            correct=self.correct[rows],
            labels=None if self.labels is None else self.labels[rows],
            predicted=None if self.predicted is None else self.predicted[rows],
            class_cells=None if self.class_cells is None else self.class_cells.take(rows),
            name=name or self.name,
            **self._columns_at(rows),
        )

    def split(self, split: str) -> Self:
        """The rows of one split; raises InputError if there is no such split."""
        return self.take(_split_mask(self, split))

    def renamed(self, name: str) -> Self:
        """The same data under another name."""
        return replace(self, name=name)

    def with_columns(
        self,
        *,
        splits: Factor | None,
        groups: Mapping[str, Factor],
        ids: npt.NDArray[Any] | None,
    ) -> Self:
        """The same data with other columns (splits, groups, ids)."""
        return replace(self, splits=splits, groups=groups, ids=ids)

    def fingerprint(self) -> str:
        """BLAKE2b-256 over the full content (not the name), in hexadecimal."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(b"confidence/1", digest_size=32)
        own = () if self.class_cells is None else self.class_cells.content
        for array in (self.confidence, self.correct, self.labels, self.predicted, *own):
            if array is not None:
                digest.update(repr((array.dtype.str, array.shape)).encode())
                digest.update(np.ascontiguousarray(array).data)
        self._hash_columns(digest)
        return digest.hexdigest()


Dataset: TypeAlias = Predictions | ConfidencePredictions


def check_dataset(data: Any) -> None:
    """Raise InputError unless these are predictions, with the way to make them of what was given."""
    if not isinstance(data, Predictions | ConfidencePredictions):
        raise InputError(
            f"expected Predictions, got {type(data).__name__}",
            remedy="calviz.load reads a file, calviz.Predictions.from_arrays(y_true, y_prob) takes arrays, and "
            "calviz.audit(y_true, y_prob) judges them at once",
        )


def _few(names: tuple[str, ...]) -> str:
    shown = [shortened(name) for name in names]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "…", shown[-1]])


def _split_mask(data: Dataset, split: str) -> BoolArray:
    if data.splits is None:
        raise InputError(
            f"there is no split '{shortened(split)}': these data have no splits",
            remedy="leave the split out, or name the column that holds it",
        )
    if split not in data.splits.levels:
        known = ", ".join(shortened(level) for level in data.splits.levels[:10])
        raise InputError(f"there is no split '{shortened(split)}'", remedy=f"known: {known}")
    return data.splits.mask(split)

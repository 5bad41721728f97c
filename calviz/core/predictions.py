"""The types that hold predicted probabilities and true labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import InitVar, dataclass
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only
from calviz.core.class_cells import ClassCells
from calviz.core.constructors import Constructors
from calviz.core.errors import InputError, shortened
from calviz.core.labels import checked_labels
from calviz.core.probabilities import (
    RowsInRange,
    RowSumDeviation,
    as_float,
    check_finite,
    check_unit_interval,
    checked_row_sums,
    softmax,
)
from calviz.core.row_columns import Kind, RowColumns, hash_arrays

#: Prefix in files of the columns of `Predictions.numbers` that hold an interval.
INTERVAL = "interval_"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictions(Constructors, RowColumns):
    """Class probabilities of a classifier and the true labels, validated once, read-only.

    Parameters
    ----------
    probs : array_like, shape (n, K) or (n,)
        Probabilities; rows sum to 1. One dimension means P(class 1) of a binary problem.
        Optional if `logits` is given: it is then their softmax.
        Stored as float32 or float64.
    labels : array_like of int, shape (n,)
        True classes, 0..K-1.
    logits : array_like, shape (n, K), optional
        Unnormalised log-probabilities, if the source has them. They must be declared and are never guessed.
    splits : array_like, shape (n,), optional
        The split of each row ("calibration", "test", ...).
    groups : mapping of str to array_like, optional
        Further categorical columns, for slicing.
    ids : array_like, shape (n,), optional
        Identifiers of the rows.
    numbers : mapping of str to array_like of float, optional
        Further numbers of each row, shape (n,), that are shown and written with it, such as the ends of the interval of a
        calibrated probability.
    texts : mapping of str to array_like, optional
        Further texts of each row that are shown and written with it and have too many distinct values for slicing: the classified text, or the
        name of a picture.
    clusters : array_like, shape (n,), optional
        The cluster of each row (patient, site): rows of one cluster may depend on each other, so intervals and
        p-values resample whole clusters.
    weights : array_like, shape (n,), optional
        Importance weight of each row (of any scale); None if all are equal. Counts of aggregated rows are not importance
        weights: use `calviz.core.clusters_and_weights.repeated` to expand them into rows.
    times : array_like of datetime64, shape (n,), optional
        Time of each row.
    cells : Cells, optional
        Given if each row stands for many observed rows (`calviz.profiles`); `weights` are then their counts.
    column_names : mapping of str to str, optional
        Names in files of the columns "clusters", "weights" and "times". They are not part of the content that is hashed.
    class_names : tuple of str, optional
        One name per class; "0".."K-1" if left out.
    name : str
        Name of these predictions on screen.
    filled : RowsInRange, optional
        Given by a reader that looked at `probs` while it filled the array, so that it is not read again.

    Raises
    ------
    InputError
        If the data break a rule; the sentence names the row.
    """

    probs: FloatArray = None  # type: ignore[assignment]  # filled from the logits when left out
    labels: IntArray = None  # type: ignore[assignment]  # keyword-only with a message of our own
    logits: FloatArray | None = None
    filled: InitVar[RowsInRange | None] = None

    def __post_init__(self, filled: RowsInRange | None) -> None:
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
                # Column by column in memory, so that P(class 1) is read without a copy.
                columns = np.empty((2, probs.size), dtype=probs.dtype)
                np.subtract(1, probs, out=columns[0])
                columns[1] = probs
                probs = columns.T
        if probs.ndim != 2 or probs.shape[1] < 2:
            raise InputError(
                f"'probs' has shape {probs.shape}, expected 2-D (rows, at least two classes)"
            )
        n, k = probs.shape
        if self.logits is not None and self.logits.shape != probs.shape:
            raise InputError(f"logits have shape {self.logits.shape} but probs {probs.shape}")
        self._check_columns(n)
        object.__setattr__(self, "_row_sums", checked_row_sums(probs, filled))
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
    def row_sums(self) -> RowSumDeviation:
        """How far the row sums are from 1 (for a selection of rows, those of the whole data)."""
        sums: RowSumDeviation = self.__dict__["_row_sums"]
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
        """Source of the probabilities: "logits" (their softmax) or "probabilities"."""
        kind: Kind = self.__dict__.get("_kind", "probabilities")
        return kind

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """Return the predictions of the selected rows (a boolean mask or indices), without validating again."""
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

    def _hash_scores(self, digest: Any) -> None:
        digest.update(b"predictions/1")
        hash_arrays(digest, (self.probs, self.labels, self.logits))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ConfidencePredictions(RowColumns):
    """Confidence-only data: the top probability and whether the prediction was right.

    Only metrics of the top-label reduction are available.

    Parameters
    ----------
    confidence : array_like, shape (n,)
        Probability of the predicted class, in [0, 1].
    correct : array_like of bool, shape (n,)
        Whether the predicted class is the true one.
    labels, predicted : array_like of int, shape (n,), optional
        True and predicted classes, as indices into `class_names`.
    class_cells : ClassCells, optional
        For a profile, the cells of each class's own probability.
    splits, groups, ids, numbers, texts, clusters, weights, times, cells, column_names, class_names, name
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
        """Number of class names; 0 without any."""
        return len(self.class_names)

    @property
    def kind(self) -> Kind:
        """Always "confidence"."""
        return "confidence"

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """Return the data of the selected rows (a boolean mask or indices), without validating again."""
        new = self._unchecked()
        columns = self._columns_at(rows)
        for key in ("groups", "numbers", "texts"):
            columns[key] = MappingProxyType(columns[key])
        for key in ("confidence", "correct", "labels", "predicted"):
            column = getattr(self, key)
            columns[key] = None if column is None else read_only(column[rows])
        columns["class_cells"] = None if self.class_cells is None else self.class_cells.take(rows)
        new.__dict__.update(columns, name=name or self.name)
        return new

    def _hash_scores(self, digest: Any) -> None:
        digest.update(b"confidence/1")
        cells = () if self.class_cells is None else self.class_cells.content
        hash_arrays(digest, (self.confidence, self.correct, self.labels, self.predicted, *cells))


Dataset: TypeAlias = Predictions | ConfidencePredictions


def check_dataset(data: Any) -> None:
    """Raise InputError unless `data` are predictions; the sentence says how to make some."""
    if not isinstance(data, Predictions | ConfidencePredictions):
        raise InputError(
            f"expected Predictions, got {type(data).__name__}",
            remedy="calviz.load reads a file, calviz.Predictions.from_arrays(y_true, y_prob) takes arrays, and "
            "calviz.audit(y_true, y_prob) evaluates them in one step",
        )

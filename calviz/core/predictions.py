"""Predictions and ConfidencePredictions: predicted probabilities with the true labels, validated once, read-only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from calviz.core import blocks, probabilities, registry
from calviz.core.errors import PREDICTED, SCORE, InputError, NotAvailable, OptionError, shortened
from calviz.core.features import MISSING, Cut, as_values, cut_at, cut_of_levels
from calviz.core.features import held as held
from calviz.core.probabilities import RowsInRange, RowSumDeviation, as_float, check_finite
from calviz.core.row_columns import ClassCells, Kind, RowColumns, checked_weights, hash_arrays

#: Prefix in files of the columns of `Predictions.numbers` that hold an interval.
INTERVAL = "interval_"
#: Name in files of the one that holds the scores before a map.
BEFORE = "uncalibrated"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictions(registry.Constructors, RowColumns):
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
        weights: use `calviz.core.predictions.repeated` to expand them into rows.
    times : array_like of datetime64, shape (n,), optional
        Time of each row.
    cells : Cells, optional
        Given if each row stands for many observed rows (`calviz.core`); `weights` are then their counts.
    column_names : mapping of str to str, optional
        Names in files of the columns "ids", "clusters", "weights" and "times". They are not part of the content that is hashed.
    class_names : tuple of str, optional
        One name per class; "0".."K-1" if left out.
    prevalence : tuple of float, optional
        Shares of the classes for which `at_prevalence` weighted the rows; words name them.
    name : str
        Name of these predictions on screen.
    filled : RowsInRange, optional
        Given by a reader that looked at `probs` while it filled the array, so that it is not read again.

    Raises
    ------
    InputError
        If the data break a rule; the sentence names the row.
    """

    probs: blocks.FloatArray = None  # type: ignore[assignment]  # filled from the logits when left out
    labels: blocks.IntArray = None  # type: ignore[assignment]  # keyword-only with a message of our own
    logits: blocks.FloatArray | None = None
    filled: InitVar[RowsInRange | None] = None

    def __post_init__(self, filled: RowsInRange | None) -> None:
        if self.probs is None and self.logits is None:
            raise InputError("neither probabilities nor logits were given")
        if self.labels is None:
            raise InputError("no labels were given, so there is nothing to compare with")
        logits = None if self.logits is None else as_float(self.logits, "logits")
        if logits is not None:
            if logits.ndim != 2:
                raise InputError(f"'logits' has shape {logits.shape}, expected 2-D (rows, classes)")
            check_finite(logits, "logits")
        if self.probs is None:
            assert logits is not None
            probs = probabilities.softmax_probabilities(logits)
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
        if logits is not None and logits.shape != probs.shape:
            raise InputError(f"logits have shape {logits.shape} but probs {probs.shape}")
        self._check_columns(n)
        vars(self).update(
            _kind="logits" if self.probs is None else "probabilities",
            _row_sums=probabilities.checked_row_sums(probs, filled),
            probs=blocks.read_only(probs),
            logits=None if logits is None else blocks.read_only(logits),
            labels=blocks.read_only(checked_labels(self.labels, n, k)),
            class_names=tuple(str(c) for c in self.class_names) or tuple(str(j) for j in range(k)),
        )
        if len(self.class_names) != k:
            raise InputError(f"there are {len(self.class_names)} class names for {k} classes")
        if len(set(self.class_names)) != k:
            double = Counter(self.class_names).most_common(1)[0][0]
            raise InputError(f"the class name '{shortened(double)}' stands for more than one class")

    @property
    def row_sums(self) -> RowSumDeviation:
        """How far the row sums are from 1 (for a selection of rows, those of the whole data)."""
        return self.__dict__["_row_sums"]

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
        return self.__dict__["_kind"]

    @property
    def predicted(self) -> blocks.IntArray:
        """The predicted class of each row, shape (n,): of the largest probability, the lowest index on ties."""
        return self._predicted

    @cached_property
    def _predicted(self) -> blocks.IntArray:
        parts = [self.probs[rows].argmax(axis=1) for rows in blocks.row_blocks(self.probs)]
        return blocks.read_only(np.concatenate(parts).astype(np.int32))

    @cached_property
    def columns_of_predicted(self) -> tuple[str, ...]:
        """Group columns that name the predicted class in most rows: what this or another model predicts."""
        at = {name: k for k, name in enumerate(self.class_names)}
        named = {n: g for n, g in self.groups.items() if len(g.levels) > 1 and {*g.levels} <= {*at}}
        classes = {n: np.array([at[v] for v in g.levels])[g.codes] for n, g in named.items()}
        return tuple(n for n, k in classes.items() if (k == self.predicted).mean() > 0.5)

    def sliced(self, column: str, own: Cut | None = None) -> blocks.Factor:
        """Return a column as it is sliced; the score of two classes where half of the expected events lie above, if no edges are chosen."""
        if column != SCORE or not has_score(self):
            return super().sliced(column, own)
        score = self.probs[:, 1]
        cut = own or self.cuts.get(SCORE)
        if cut is None:
            events = (score if self.weights is None else score * self.weights) + 1e-30
            half = np.quantile(score, 0.5, weights=events, method="inverted_cdf")
            cut = Cut((float(f"{half:.2g}"),))
        return blocks.Factor(cut.of_numbers(score), cut.labels[:-1])

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """Return the predictions of the selected rows (a boolean mask or indices), without validating again."""
        new = super().take(rows, name=name)
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
    splits, groups, ids, numbers, texts, clusters, weights, times, cells, column_names, cuts, class_names, name
        As in `Predictions`.
    """

    confidence: blocks.FloatArray
    correct: blocks.BoolArray
    labels: blocks.IntArray | None = None
    predicted: blocks.IntArray | None = None
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
        probabilities.check_unit_interval(confidence[:, None], "confidence")
        vars(self).update(
            confidence=blocks.read_only(confidence), correct=blocks.read_only(correct)
        )
        for key in ("labels", "predicted"):
            column = getattr(self, key)
            if column is not None:
                k = len(self.class_names) or int(np.max(column)) + 1
                vars(self)[key] = blocks.read_only(checked_labels(column, self.n, k))

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


def checked_labels(labels: npt.ArrayLike, n: int, k: int) -> blocks.IntArray:
    """Check that true classes are indices from 0 to k - 1 and return them, shape (n,); raises InputError that names the first bad row."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"'labels' has shape {array.shape}, expected 1-D")
    if array.shape[0] != n:
        raise InputError(f"there are {n:,} rows of probabilities but {array.shape[0]:,} labels")
    if array.dtype.kind == "f":
        whole = array.astype(np.int64)
        if not np.array_equal(whole, array):
            row = int(np.flatnonzero(whole != array)[0])
            raise InputError(f"label {array[row]!r} is not a whole number", row=row + 1)
        array = whole
    if array.dtype.kind not in "biu":
        raise InputError(
            f"'labels' holds {blocks.element_type(array)}, expected class indices 0..{k - 1}",
            remedy="for labels of any kind, use calviz.Predictions.from_arrays(y_true, y_prob)",
        )
    bad = (array < 0) | (array >= k) if array.dtype.kind != "b" else np.zeros(n, dtype=bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"label {array[row]} but there are {k} classes (0..{k - 1})", row=row + 1, column=None
        )
    return array.astype(np.int32, copy=False)


# ---- Other clusters, weights and times; repeated rows

D = TypeVar("D", bound="Dataset")


def with_rows(
    data: D,
    *,
    clusters: str | blocks.Factor | npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    names: Mapping[str, str] | None = None,
) -> D:
    """Return the same data with other clusters, weights or times; those that are None stay unchanged.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    clusters : str, Factor or array_like, shape (n,)
        Name of a group column, "id" for the identifiers, "" for none, or one value per row.
    weights, times : array_like, shape (n,)
    names : mapping of str to str, optional
        Names in files of the new columns (`Predictions.column_names`).

    Raises
    ------
    InputError
        If a column does not exist or cannot be used.
    """
    given = {"clusters": clusters, "weights": weights, "times": times}
    kept = {key: name for key, name in data.column_names.items() if given.get(key) is None}
    named = {"clusters": clusters} if isinstance(clusters, str) and clusters else {}
    columns: dict[str, Any] = {"column_names": {**kept, **named, **(names or {})}}
    if clusters is not None:
        columns["clusters_known"] = True
        columns["clusters"] = (
            _column(data, clusters) if isinstance(clusters, str) else blocks.Factor.of(clusters)
        )
    if weights is not None:
        columns["weights"] = np.asarray(weights)
    if times is not None:
        columns["times"] = np.asarray(times)
    return data._with(columns)  # type: ignore[return-value]


def checked_rates(rates: Any, classes: int | None, name: str) -> blocks.FloatArray:
    """Return the shares of the classes, shape (K,); a single number is that of class 1 of two.

    `classes` is K, if it is known.

    Raises
    ------
    OptionError
        Unless they lie between 0 and 1, add up to 1, and there is one for each class.
    """
    rule = f"'{name}' must lie between 0 and 1, both excluded, for every class; got"
    try:
        given = np.atleast_1d(np.asarray(rates, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.empty((0, 0))
    if given.ndim != 1:
        raise OptionError(f"{rule} {rates!r}.")
    for rate in given[~((given > 0) & (given < 1))]:
        raise OptionError(
            f"{rule} {rate:g}" + (f" ({rate:g} % is {rate / 100:g})." if 1 < rate < 100 else ".")
        )
    shares = np.append(1 - given, given) if given.size == 1 else given
    if classes not in (None, shares.size):
        raise OptionError(
            f"'{name}' must have a share for each of the {classes:,} classes, got {given.size:,} of them."
        )
    if abs(shares.sum() - 1) > 1e-6:
        raise OptionError(f"the shares of '{name}' must add up to 1, got {shares.sum():g}.")
    return np.asarray(shares / shares.sum())


def at_prevalence(data: D, rate: float | Sequence[float]) -> D:
    """Weight the rows so that the classes have other shares: metrics, figures and thresholds are then those at this prevalence.

    It is right for rows of another prevalence if the rows of each class are the same. The scores stay as they are: the recalibrator
    ``prior`` changes them.

    Parameters
    ----------
    data : Predictions
    rate : float or sequence of float
        Share of class 1 of two, or of every class; it holds within each split.

    Raises
    ------
    OptionError
        If shares do not lie between 0 and 1, do not add up to 1, or are not one per class.
    InputError
        If a split has no rows of a class.
    NotAvailable
        For confidence-only data and profiles.
    """
    if not isinstance(data, Predictions) or data.cells is not None:
        raise NotAvailable("a prevalence needs rows with their classes.")
    k = data.n_classes
    shares = checked_rates(rate, k, "prevalence")
    split = np.zeros(data.n, np.intp) if data.splits is None else data.splits.codes.astype(np.intp)
    own = np.ones(data.n) if data.weights is None else data.weights.astype(np.float64)
    cell = split * k + data.labels
    mass = np.bincount(cell, own, minlength=k * (int(split.max()) + 1)).reshape(-1, k)
    for number, row in enumerate(mass):
        if not row.all():
            where = (
                ""
                if data.splits is None
                else f" of split '{shortened(data.splits.levels[number])}'"
            )
            name = shortened(data.class_names[int(np.flatnonzero(row == 0)[0])])
            raise InputError(
                f"no row{where} has the class '{name}': it cannot be given another share"
            )
    factor = shares * mass.sum(axis=1, keepdims=True) / mass
    weighted = with_rows(data, weights=own * factor.ravel()[cell])
    return weighted._with({"prevalence": tuple(shares.tolist())})


def repeated(data: D, counts: npt.ArrayLike) -> D:
    """Expand aggregated data: row i is repeated ``counts[i]`` times (frequency weights).

    Raises
    ------
    InputError
        If a count is not a non-negative whole number, all are 0, or there would be more than `MOST_REPEATED` rows.
    """
    weights = checked_weights(counts)
    if weights.shape != (data.n,):
        raise InputError(
            f"there are {weights.size:,} counts for {data.n:,} rows", remedy="give one per row"
        )
    whole = weights == np.floor(weights)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InputError(
            f"the count is {weights[row]:g}, expected a whole number",
            row=row + 1,
            remedy="read the column as importance weights",
        )
    if weights.sum() > MOST_REPEATED:
        raise InputError(
            f"the counts add up to {weights.sum():,.0f} rows, more than {MOST_REPEATED:,}",
            remedy="read the column as importance weights",
        )
    rows: Any = data.take(np.repeat(np.arange(data.n), weights.astype(np.intp)))
    # Repeated rows have no identifiers of their own.
    return rows.with_columns(splits=rows.splits, groups=rows.groups, ids=None)


#: Largest number of rows that aggregated data are expanded to.
MOST_REPEATED = 20_000_000


def _column(data: Dataset, name: str) -> blocks.Factor | None:
    if not name or name in data.groups:
        return data.groups.get(name)
    if name == "id" and data.ids is not None:
        return blocks.Factor.of(data.ids)
    names = [*data.groups, *(["id"] if data.ids is not None else [])]
    raise InputError(
        f"there is no column '{shortened(name)}' to cluster by",
        remedy=f"known: {', '.join(shortened(k) for k in names[:10])}"
        if names
        else "name the column when the file is read",
    )


# ---- Identifiers as text

#: What a missing identifier is as text; it matches nothing.
NO_IDENTIFIER = ""

_FRACTION = re.compile(r"([+-]?\d+)\.0+")


def identifier_texts(values: npt.NDArray[Any] | blocks.Factor) -> list[str]:
    """Identifiers as text; "1.0" becomes "1", because whole numbers with gaps are often stored as floats."""
    if isinstance(values, blocks.Factor):
        factor = values
    elif values.dtype.kind in "iu":
        return [str(value) for value in values.tolist()]
    else:
        factor = blocks.Factor.of(np.where(_missing(values), NO_IDENTIFIER, _plain(values)))
    levels = [_whole(level.strip()) for level in factor.levels]
    return [levels[code] for code in factor.codes.tolist()]


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as texts; objects as they are, because one long text would make all as long."""
    if values.dtype.kind == "S":
        return np.asarray(np.char.decode(values, "utf-8", "replace"))
    return values if values.dtype == object else values.astype(str)


def _missing(values: npt.NDArray[Any]) -> blocks.BoolArray:
    """Whether each value, shape (n,), is a missing number, date or object."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype.kind in "biuSU":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=np.bool_)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA
        return True


def _whole(text: str) -> str:
    match = _FRACTION.fullmatch(text)
    return match[1] if match else text


# ---- Columns to slice by


def sliceable_columns(data: Dataset) -> tuple[str, ...]:
    """Columns that can be sliced by: groups, numbers, texts of many values, the time and, beside one of these, the predicted of several classes.

    Of two classes, the predicted one is a range of the score, by which they are sliced instead.
    """
    numbers = [n for n in data.numbers if n != BEFORE and not n.startswith(INTERVAL)]
    texts = [name for name, text in data.texts.items() if len(text.levels) > 1]
    time = [] if data.times is None else [data.time_name, *cycles(data)]
    known = dict.fromkeys([*data.groups, *numbers, *texts, *time])
    named = isinstance(data, Predictions) or data.predicted is not None
    own = {PREDICTED: data.n_classes > 2 and data.cells is None and named, SCORE: has_score(data)}
    return (*known, *(name for name in own if own[name] and known and name not in known))


def cycles(data: Dataset) -> tuple[str, ...]:
    """What of the times comes round again: "hour of time", "weekday of time", "month of time"."""
    return tuple(name for name, cut in data.cuts.items() if cut.cycle)


def has_score(data: Dataset) -> bool:
    """Whether rows of two classes have a score that no column of the file is named after."""
    two = isinstance(data, Predictions) and data.n_classes == 2 and data.cells is None
    return two and SCORE not in data.to_slice()


def usual_columns(data: Dataset) -> tuple[str, ...]:
    """Columns of the file that are sliced by default: all but the time, which the watch tests, and its cycles, clusters, identifiers of many values that repeat, free texts (over 100 values, most of three words or more), and what repeats the predicted class or another column (`twins`)."""
    time = None if data.times is None else data.time_name
    own = {PREDICTED, SCORE} if has_score(data) else {PREDICTED}
    others = {time, *cycles(data), data.column_names.get("clusters"), *own} - {*data.groups}
    others |= {n for n in data.cuts if n in data.related or _is_free_text(data, n)} | {*twins(data)}
    if isinstance(data, Predictions) and data.n_classes > 2 and data.cells is None:
        others |= {*data.columns_of_predicted}
    return tuple(name for name in sliceable_columns(data) if name not in others)


def _is_free_text(data: Dataset, name: str) -> bool:
    """Whether a column holds sentences rather than names: over 100 distinct values, the median of three words or more."""
    texts = data.groups.get(name, data.texts.get(name)) if data.cuts[name].kept else None
    words = [] if texts is None else [len(text.split()) for text in texts.levels[:1_000]]
    return len(words) > 100 and float(np.median(words)) >= 3


def twins(data: Dataset) -> dict[str, str]:
    """Columns of groups or texts each of whose values goes with one of another column, with longer names: {"station id": "station"}."""
    known = {
        name: f for name, f in {**data.groups, **data.texts}.items() if 1 < len(f.levels) < data.n
    }
    longest = sorted(known, key=lambda name: -sum(map(len, known[name].levels)))
    found: dict[str, str] = {}
    for i, name in enumerate(longest):
        codes = known[name].codes  # in the order of first appearance
        alike = (n for n in longest[:i] if np.array_equal(known[n].codes[:99], codes[:99]))
        if same := next((n for n in alike if np.array_equal(known[n].codes, codes)), ""):
            found[name] = same
    return found


def chosen_columns(data: Dataset, columns: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to slice by, the usual ones for None; raises NotAvailable without any, OptionError for an unknown one."""
    known = sliceable_columns(data)
    if not known:
        raise NotAvailable("there is no group column to slice by.")
    chosen = usual_columns(data) if columns is None else tuple(dict.fromkeys(columns))
    for name in chosen:
        if name not in known:
            raise no_group_column(data, name)
    return chosen


def sliced_columns(
    data: Dataset, columns: tuple[str, ...], min_rows: int
) -> tuple[dict[str, blocks.Factor], tuple[str, ...]]:
    """Columns as they are sliced, by name, and the reasons why others are left out."""
    factors = {name: data.sliced(name) for name in columns}
    why = {name: _why_left_out(data, name, factor, min_rows) for name, factor in factors.items()}
    usable = {name: factor for name, factor in factors.items() if not why[name]}
    same = (
        f"{n} says the same as {of}"
        for n, of in twins(data).items()
        if of in factors and n not in factors
    )
    return usable, (*filter(None, why.values()), *same)


def _why_left_out(data: Dataset, name: str, factor: blocks.Factor, min_rows: int) -> str:
    """Say why a column has no slices; "" if it has."""
    cut = data.cuts.get(name)
    if factor.levels in ((MISSING,), ("",)):
        return f"{name} has no values"
    if cut is None:
        return ""
    if _differs_in_each_row(data, name):
        return f"{name} has a different value in each row"
    if cut.kept is None and len(factor.levels) < 2:
        return f"{name} has one value"
    kept = [rows for value, rows in factor.counts().items() if value in (cut.kept or ())]
    if cut.kept is not None and max(kept, default=0) < min_rows:
        return f"{name} has no value with {min_rows:,} rows or more"
    return ""


def columns_with_slices(data: Dataset) -> tuple[str, ...]:
    """Columns that can be sliced by, without those that have a different value in each row."""
    return tuple(name for name in sliceable_columns(data) if not _differs_in_each_row(data, name))


def _differs_in_each_row(data: Dataset, name: str) -> bool:
    """Whether a column holds a text or whole number of its own in each row, such as an identifier, so that it has no slices."""
    cut, texts = data.cuts.get(name), data.groups.get(name, data.texts.get(name))
    if cut is None or cut.dates or data.cells is not None:
        return False
    if texts is None:
        values = data.numbers.get(name, np.zeros(0))
        values = values[~np.isnan(values)]
        distinct = values.size > 1 and np.unique(values).size == values.size
    else:
        read = None if cut.kept is not None else as_values(texts.levels)
        values, distinct = np.zeros(0) if read is None else read[0], len(texts.levels) == data.rows
    return distinct and bool((values == np.round(values)).all())


def edges_of(texts: Iterable[str]) -> dict[str, list[str]]:
    """Read chosen edges, each "age=30,50,65"; raises OptionError."""
    edges: dict[str, list[str]] = {}
    for text in texts:
        name, equals, given = text.rpartition("=")
        if not (name and equals):
            raise OptionError(f"edges must be COL=EDGES, such as age=30,50,65; got '{text}'.")
        edges[name] = given.split(",")
    return edges


def cut_columns(data: D, edges: Mapping[str, Iterable[object]]) -> D:
    """Return the same data with columns of numbers or dates cut at chosen edges, which every slice of them then has.

    Raises
    ------
    OptionError
        If there is no such column, it holds texts, or the edges are not ascending numbers or dates.
    """
    cuts = dict(data.cuts)
    for name, given in edges.items():
        if name not in sliceable_columns(data):
            raise no_group_column(data, name)
        factor = data.groups.get(name, data.texts.get(name))
        own = cuts.get(name, Cut() if name == SCORE else None)
        if factor is not None:
            own = cut_of_levels(factor.levels, np.ones(len(factor.levels)))
        cut = cut_at(given, name)
        kind = "texts"
        if own is not None and own.kept is None:
            kind = "dates" if own.dates else "numbers"
        if kind != ("dates" if cut.dates else "numbers"):
            raise OptionError(
                f"'{shortened(name)}' holds {kind} and cannot be cut at {cut.labels[0]}."
            )
        cuts[name] = cut
    return data._with({"cuts": cuts})  # type: ignore[return-value]


def cut_at_score(data: D, where: Iterable[tuple[str, str]]) -> D:
    """Return the same data with the score cut as the conditions on it say, if there are any."""
    value = dict(where).get(SCORE)
    if value is None or not has_score(data):
        return data
    return cut_columns(data, {SCORE: value.strip("≤> (]").split(", ")})


def with_group(data: D, name: str, values: blocks.Factor) -> D:
    """Return the same data with another group column, each value of which is a slice."""
    cuts = dict(data.cuts) | {name: Cut(kept=values.levels)}
    return data._with({"groups": dict(data.groups) | {name: values}, "cuts": cuts})  # type: ignore[return-value]


def no_group_column(data: Dataset, column: str) -> OptionError:
    """Return the error about a column that is not among the groups, with those that are."""
    names = ", ".join(shortened(name) for name in sliceable_columns(data)[:10])
    known = f"known: {names}" if names else "these rows have none"
    return OptionError(f"there is no group column '{shortened(column)}'; {known}.")

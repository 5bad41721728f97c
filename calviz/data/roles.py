"""The role of every column of a file, a table as recognition sees it, what the first rows say for or against a reading, and why scores are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import AnyArray, BoolArray, FloatArray, IntArray, row_blocks
from calviz.core.errors import Finding, InputError, Reading, Repair, Severity
from calviz.core.probabilities import softmax_probabilities as softmax
from calviz.data import column_names
from calviz.data.column_names import FEW, class_key, is_of_first_class
from calviz.data.format import (
    NAMED,
    REPAIRS,
    Column,
    Notice,
    ReadingOptions,
    Table,
    places,
    short,
    span,
)

ScoreKind = Literal["probabilities", "logits"]
#: What a column may be; "score" is of a class or the event, "model" the score of a model of its own, "named model" that of the row.
ColumnRole = Literal[
    "label", "score", "model", "confidence", "prediction", "correct", "split", "group", "time", "weight", "cluster", "id", "named model", "ignored",
]  # fmt: skip
ROLES: tuple[ColumnRole, ...] = get_args(ColumnRole)


class OneColumn(NamedTuple):
    """A role that one column has.

    Attributes
    ----------
    option : str
        The reading option that names the column.
    called : str
        What messages call the column.
    none : str or None
        The value of the option that says that there is none.
    """

    option: str
    called: str
    none: str | None = None


#: The roles that one column has; a column that has several is shown with the last one.
ONE_COLUMN: Mapping[ColumnRole, OneColumn] = {
    "split": OneColumn("split_column", "split column", ""),
    "id": OneColumn("id_column", "identifier column", ""),
    "named model": OneColumn("model_column", "model column", ""),
    "cluster": OneColumn("cluster_column", "cluster column"),
    "weight": OneColumn("weight_column", "weight column"),
    "time": OneColumn("time_column", "time column", ""),
    "prediction": OneColumn("prediction_column", "column of predictions"),
    "correct": OneColumn("correct_column", "column that says what was right"),
    "label": OneColumn("label", "label"),
}
#: Those of columns that say something of each row.
OF_ROWS = (ONE_COLUMN["cluster"], ONE_COLUMN["weight"], ONE_COLUMN["time"])


@dataclass(frozen=True)
class ScoreColumns:
    """The score columns of one model.

    Attributes
    ----------
    columns : tuple of str
        One column per class, one 2-D array, or one column with P(class 1).
    class_names : tuple of str
        Class names given by the columns; empty if there are none.
    kind : {"probabilities", "logits"}
    model : str
        The model's name; empty if there is only one.
    width : int
        The number of scores per row.
    logits : tuple of str
        Columns that should hold the logits of these probabilities, in the same order of classes,
        or one 2-D array.
    labels : tuple of str
        How the label column spells the class of each column, where names and positions do not say it.
    reversed : bool
        Whether the classes of an array are in the other order than in the file.
    """

    columns: tuple[str, ...]
    class_names: tuple[str, ...]
    kind: ScoreKind
    width: int
    model: str = ""
    logits: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reversed: bool = False

    @property
    def is_block(self) -> bool:
        """Whether there is a column for each of several classes."""
        return 2 <= len(self.columns) == self.width

    @property
    def keys(self) -> list[str]:
        """The class of each column as `class_key` spells it."""
        return [class_key(name) for name in self.labels or self.class_names]

    def holds_first_of(self, classes: tuple[str, ...]) -> bool:
        """Whether the only column is that of the first of two classes, not of the second as usual."""
        names = self.class_names
        return self.width == len(names) == 1 and is_of_first_class(names[0], classes)


@dataclass(frozen=True)
class Confidence:
    """Columns of confidence-only data: the score (its logarithm, if `log`), and `correct` or the predicted label."""

    score: str
    correct: str | None = None
    predicted: str | None = None
    log: bool = False


@dataclass(frozen=True)
class ColumnRoles:
    """The role of every column.

    Attributes
    ----------
    scores : tuple of ScoreColumns
        The scores of all models.
    confidence : Confidence or None
    label : str or None
    one_hot : tuple of str
        The 0/1 columns of the classes, in the order of the scores.
    multilabel : bool
        Whether each class has a label of its own.
    correct : str or None
        A column that is missing where the label is not known.
    long : tuple of str, or None
        The columns that together identify the rows within each model, none if they are to be found, and the one that may name the model.
    numbers : tuple of str
        Columns that are carried along with the scores.
    features : tuple of str
        Columns of numbers that are cut into intervals to slice by.
    kept : tuple of str
        Columns without another role, which a map leaves as they are.
    related : tuple of str
        Columns without a role that may say which rows belong together.
    may_weigh : tuple of str
        Columns that are called like weights, which nothing says to be weights or none.
    """

    scores: tuple[ScoreColumns, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    multilabel: bool = False
    correct: str | None = None
    split: str | None = None
    id: str | None = None
    long: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    cluster: str | None = None
    weight: str | None = None
    time: str | None = None
    features: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    may_weigh: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()
    ways: tuple[Reading, ...] = ()

    @property
    def single(self) -> dict[ColumnRole, str]:
        """The columns of the roles that one column has, and of a confidence."""
        confidence = self.confidence or Confidence("")
        *key, model = self.long or (self.id, None)
        identifier = key[0] if len(key) == 1 else None
        names: dict[ColumnRole, str | None] = {r: getattr(self, r, None) for r in ONE_COLUMN}
        names |= {"id": identifier, "named model": model, "prediction": confidence.predicted}
        names |= {"correct": self.correct or confidence.correct, "confidence": confidence.score}
        return {role: name for role, name in names.items() if name}

    @property
    def used(self) -> set[str]:
        """The columns of scores and labels."""
        roles = [self.label, self.correct, *self.one_hot]
        if (confidence := self.confidence) is not None:
            roles += [confidence.score, confidence.correct, confidence.predicted]
        return {c for c in roles if c} | {c for s in self.scores for c in (*s.columns, *s.logits)}

    def fractions_beside_percentages(self, table: Table, beside: Iterable[str]) -> set[str]:
        """Columns of models whose scores lie in 0 to 1 beside models whose scores do not, unless headed in percent; those `beside` are not read."""
        models = [*(s.columns for s in self.scores), *((name,) for name in beside)]
        # A stray value makes no percentages.
        small = [names for names in models if all(map(mostly_in_unit, (table[n] for n in names)))]
        if len(small) == len(models):
            return set()
        headed = {c.name for c in table.columns if c.is_headed_in_percent}
        return {n for names in small if headed.isdisjoint(names) for n in names}


#: So few values above 1 make no percentages of the others.
_STRAYS = 0.01


def mostly_in_unit(column: Column) -> bool:
    """Whether all numbers but a few strays lie in [0, 1]."""
    if column.in_unit or column.head.dtype.kind != "f":
        return column.in_unit
    known = column.head[~np.isnan(column.head)]
    return known.size > 0 and bool(np.mean(abs(known - 0.5) > 0.5) < _STRAYS)


@dataclass(frozen=True, eq=False)
class Right:
    """Whether each prediction was right, shape (n,), how the file says so, and the classes if it names them."""

    correct: BoolArray
    missing: BoolArray
    form: str
    truth: IntArray | None = None
    predicted: IntArray | None = None
    class_names: tuple[str, ...] = ()


class TableView:
    """A table, the options, the notices of its recognition, and other ways to read it.

    Parameters
    ----------
    table : Table
    options : ReadingOptions
    """

    def __init__(self, table: Table, options: ReadingOptions) -> None:
        self.table, self.options = table, options
        self.notices: list[Finding] = []
        self.ways: list[Reading] = []
        self.plain: dict[str, str] = {}
        for column in table.columns:
            self.plain.setdefault(column_names.plain(column.name), column.name)
            if match := column_names.MODELER.fullmatch(column.name):
                names = (match[2], f"${match[1]}-{match[2]}", column.name)
                usual = zip(("label", "prediction", "confidence"), names, strict=True)
                if {*names} <= {*table.names}:
                    self.plain |= {role: name for role, name in usual if role not in self.plain}

    def named(self, names: tuple[str, ...], taken: set[str]) -> str | None:
        """The first column with one of the names (in order of preference) that is not taken."""
        candidates = (self.plain.get(name) for name in names)
        return next((c for c in candidates if c is not None and c not in taken), None)

    def predicted(self, taken: set[str]) -> str | None:
        """The column with the predicted class: the chosen one, by its name, or the only one with a word for predictions."""
        if self.options.prediction_column is not None:
            return self.options.prediction_column
        named = self.named(column_names.PREDICTED, taken)
        if named is not None and self.table[named].is_label_like:
            return named
        free = (c for c in self.table.columns if c.name not in taken)
        free = (c for c in free if c.words & column_names.PREDICTED_WORDS)
        worded = [c.name for c in free if c.is_label_like]
        return worded[0] if len(worded) == 1 else None

    def columns(self, scores: ScoreColumns) -> list[Column]:
        """The columns of scores."""
        return [self.table[name] for name in scores.columns]

    def best(self, scores: ScoreColumns) -> AnyArray:
        """The class of the largest score in each row, as `class_key` spells it, shape (n,)."""
        values = np.nan_to_num(_stacked(self.columns(scores)), nan=-np.inf)
        return np.array(scores.keys, dtype=object)[values.argmax(axis=1)]

    def numeric(self, taken: set[str]) -> list[Column]:
        """Numeric columns with one value per row that are not taken."""
        return [c for c in self._free(taken) if c.width is None]

    def arrays(self, taken: set[str]) -> list[Column]:
        """Numeric columns with a list in each row that are not taken."""
        return [c for c in self._free(taken) if c.width is not None]

    def _free(self, taken: set[str]) -> list[Column]:
        return [c for c in self.table.columns if c.numeric and c.name not in taken]

    def text_scores(self) -> list[str]:
        """Columns that are named like scores but hold text."""
        texts = [c.name for c in self.table.columns if c.type == "text"]
        return [n for n in texts if column_names.by_prefix(n)[1] in ("probabilities", "logits")]

    def note(self, kind: Notice, severity: Severity, message: str) -> None:
        """Add a notice."""
        self.notices.append(kind.finding(severity, message))


# ---- What the first rows say: ranges, sums, and whether columns agree

#: Rounded rows whose sum is this far from 1 are still recognised as probabilities.
SUM_SLACK = 0.02
#: Number of columns examined together.
_BLOCK = 1_024
#: With fewer rows than this, two columns agree or differ by accident.
FEWEST_ROWS = 20
#: A label follows a score, or its reverse, from this many standard errors on.
CLEAR = 4.0
#: A share of rows in which two columns agree, but for rounding and ties.
NEARLY_ALL = 0.98
#: A confidence is none if more than this share of the rows lies below 1/K.
BELOW_CHANCE = 0.1


def is_one(sums: npt.NDArray[np.float64]) -> bool:
    """Whether nearly all sums, shape (n,), are 1 up to rounding."""
    return bool(are_one(sums[:, None])[0])


def are_one(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether nearly all sums in each column of an array of shape (n, m) are 1, shape (m,); NaN is ignored."""
    fits = np.count_nonzero(np.abs(sums - 1) <= SUM_SLACK, axis=0)
    rows = np.count_nonzero(~np.isnan(sums), axis=0)
    return (rows > 0) & (fits > 0.9 * rows)


def sum_to_one(columns: Sequence[Column]) -> bool:
    """Whether columns in [0, 1] sum to 1 in nearly all rows."""
    if len({c.head.shape for c in columns}) != 1 or not all(c.in_unit for c in columns):
        return False
    total = np.zeros(columns[0].head.shape)
    for column in columns:
        total += column.head
    return is_one(total.reshape(len(total), -1).sum(axis=1))


def summing(numeric: Sequence[Column]) -> tuple[str, ...] | None:
    """Find the columns whose rows sum to 1: all columns in [0, 1], all but one, or consecutive ones."""
    unit = [c for c in numeric if c.in_unit and c.head.size]
    if len(unit) < 2 or len({c.head.size for c in unit}) > 1:  # arrays may differ in length
        return None
    # The usual case needs no copy of all first rows.
    if sum_to_one(unit) and not all(c.is_zero_one for c in unit):
        return tuple(c.name for c in unit)
    heads = np.stack([c.head.astype(np.float64, copy=False) for c in unit], axis=1)
    if len(unit) > 2 and (j := _superfluous(heads)) is not None:
        return tuple(c.name for i, c in enumerate(unit) if i != j)
    sums = np.concatenate([np.zeros((heads.shape[0], 1)), np.cumsum(heads, axis=1)], axis=1)
    runs = [
        (stop - start, start, stop)
        for start in range(min(len(unit), 64))
        for stop in {*range(start + 2, min(start + 64, len(unit)) + 1), len(unit)}
        if stop - start >= 2 and is_one(sums[:, stop] - sums[:, start])
    ]
    if not runs:
        return None
    _, start, stop = max(runs)
    return tuple(c.name for c in unit[start:stop])


#: Where a name may end in a header: at signs, before numbers and before capital letters.
_CUTS = re.compile(r"[\W_]+|(?<=[^\W\d_])(?=\d)|(?<=[a-z])(?=[A-Z])")


def sets_that_sum(columns: Sequence[Column]) -> list[dict[str, dict[str, Column]]]:
    """Ways to take columns as those of several models: what stands before or after the name of each is the same in all, as classes are, and each set sums to 1."""
    sets: dict[str, dict[str, Column]] = {}
    for column in columns:
        for cut in _CUTS.finditer(name := column.name):
            sets.setdefault(name[: cut.end()], {})[name[cut.end() :]] = column
            sets.setdefault(name[cut.start() :], {})[name[: cut.start()]] = column
    alike: dict[frozenset[str], dict[str, dict[str, Column]]] = {}
    for model, own in sets.items():
        summed = {*(summing([*own.values()]) or ())}
        own = {inner: c for inner, c in own.items() if c.name in summed}
        if own and not all(c.is_zero_one for c in own.values()):
            alike.setdefault(frozenset(own), {})[model] = own
    ways = {
        frozenset(frozenset(c.name for c in own.values()) for own in models.values()): models
        for models in reversed(alike.values())  # the first of several cuts counts
        if len(models) > 1
    }
    fullest = [key for key in ways if not any(key < other for other in ways)]
    return [ways[key] for key in reversed(fullest)]


def _superfluous(heads: npt.NDArray[np.float64]) -> int | None:
    """Index of the first column without which the rows of an (n, m) array sum to 1; None if there is none."""
    total = heads.sum(axis=1, keepdims=True)
    for start in range(0, heads.shape[1], _BLOCK):
        fits = are_one(total - heads[:, start : start + _BLOCK])
        if fits.any():
            return start + int(fits.argmax())
    return None


def follows(score: FloatArray, hit: BoolArray) -> float:
    """How clearly hits have larger scores than misses: the rank-sum statistic in standard errors, 0 with too few rows.

    Mann & Whitney 1947, with midranks for ties.
    """
    fine = ~np.isnan(score)
    score, hit = score[fine], hit[fine]
    hits, misses = int(hit.sum()), int((~hit).sum())
    if hits + misses < FEWEST_ROWS or not hits or not misses:
        return 0.0
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    n = hits + misses
    ties = float((count**3 - count).sum()) / (n * (n - 1))
    variance = hits * misses / 12 * (n + 1 - ties)
    return (
        float((ranks[hit].sum() - hits * (n + 1) / 2) / np.sqrt(variance)) if variance > 0 else 0.0
    )


def share_equal(one: AnyArray, two: AnyArray) -> float:
    """Share of the rows with the same value, of those with both; 0 with too few rows."""
    one, two = _where_both(one, two)
    return float(np.mean(one == two)) if len(one) >= FEWEST_ROWS else 0.0


def agree(one: AnyArray, two: AnyArray) -> bool:
    """Whether two columns of classes have the same value in clearly more rows than independent ones would (Cohen 1960), if there are enough rows."""
    one, two = _where_both(one, two)
    if len(one) < FEWEST_ROWS:
        return False
    chance = sum(np.mean(one == value) * np.mean(two == value) for value in {*two})
    return bool(np.mean(one == two) > chance + CLEAR * np.sqrt(0.25 / len(one)))


def _where_both(one: AnyArray, two: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The rows in which both columns have a value; none if they are of different lengths, as arrays of a file may be."""
    if len(one) != len(two):
        return one[:0], two[:0]
    both = np.array([a is not None and b is not None for a, b in zip(one, two, strict=True)], bool)
    return one[both], two[both]


def _stacked(columns: Sequence[Column]) -> FloatArray:
    return np.stack([c.head.astype(np.float64, copy=False) for c in columns], axis=1)


def of_true(columns: Sequence[Column], labels: AnyArray, classes: Sequence[str]) -> FloatArray:
    """The score of the true class in each row, shape (n,), if the columns are of these classes; NaN where the label is none of them."""
    place = {class_key(name): j for j, name in enumerate(classes)}
    at = np.array([-1 if value is None else place.get(value, -1) for value in labels])
    return np.where(at >= 0, _stacked(columns)[np.arange(len(at)), at], np.nan)


def clearer(
    columns: Sequence[Column], labels: AnyArray, one: Sequence[str], two: Sequence[str]
) -> float:
    """How much better the labels follow the scores if the columns are of the classes `one` rather than `two`, in standard errors."""
    difference = of_true(columns, labels, one) - of_true(columns, labels, two)
    difference = difference[~np.isnan(difference)]
    if difference.size < FEWEST_ROWS:
        return 0.0
    error = difference.std(ddof=1) / np.sqrt(difference.size)
    return float(difference.mean() / error) if error > 0 else 0.0


# ---- Check whether the logits and the probabilities in a file belong together.


#: Probabilities and the softmax of the logits may differ by this much, as numbers written with four digits do.
TOLERANCE = 1e-4


def disagreement(probs: FloatArray, logits: FloatArray) -> str:
    """Return the reason why logits do not belong to the probabilities; empty if they do.

    Parameters
    ----------
    probs, logits : ndarray, shape (n, K)

    Returns
    -------
    str
        The end of a sentence about the logits.
    """
    if logits.shape != probs.shape:
        return f"which have {logits.shape[0]:,} rows, not {probs.shape[0]:,}"
    largest = 0.0
    for rows in row_blocks(logits):
        block = logits[rows]
        if not np.isfinite(block).all():
            return "which are not all finite"
        largest = max(largest, float(np.abs(softmax(block) - probs[rows]).max()))
    return "" if largest <= TOLERANCE else f"whose softmax differs from them by up to {largest:.2g}"


# ---- Recognise confidences that people and language models state as whole numbers from 0 to 100.


#: Upper end of the usual rating scales (1 to 5, 1 to 10), which are not percentages.
_LARGEST_SCALE = 10
#: Whole numbers up to it, in a column that is not headed in percent, are points of a clinical score, or the like.
MOST_POINTS = 20
PERCENT_WORDS = "the confidences are whole numbers from 0 to 100: they were read as per cent"


def ask_which_confidence(columns: list[Column], correct: str) -> None:
    """Ask which of several columns is the confidence: one that is chosen by its values would hide what the others say."""
    names = [c.name for c in columns]
    percent = ("percent",) * any(np.any(c.head > 1) for c in columns)
    which = [f"'{short(name)}' is the confidence" for name in names[:3]]
    readings = [Reading(w, {"scores": (n,)}) for w, n in zip(which, names, strict=False)]
    both = Reading("each is a model", {"models": (*names,), "label": correct, "repair": percent})
    raise InputError(
        f"{len(names):,} columns say how sure the prediction was: {span((*names,))}; say which one to judge",
        readings=[*readings, both],
    )


def never_below_chance(view: TableView, taken: set[str], predicted: str | None) -> str | None:
    """The only column of fractions, if it is at least 1/K in all rows, as the confidence of a prediction among K classes is."""
    scores = [c for c in view.numeric(taken) if c.type == "number" and c.in_unit]
    if predicted is None or len(scores) != 1 or scores[0].head.size < FEWEST_ROWS:
        return None
    least = 1 / max(2, len(view.table[predicted].classes))
    return None if np.any(scores[0].head < least - 1e-6) else scores[0].name


def are_percentages(confidences: FloatArray) -> bool:
    """Whether the values can only be percentages: whole numbers from 0 to 100, at least one above 10; NaN is ignored.

    Parameters
    ----------
    confidences : ndarray of float, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> are_percentages(np.array([70.0, 100.0, 5.0])), are_percentages(np.array([1.0, 5.0])), are_percentages(np.array([70.5]))
    (True, False, False)
    """
    values = confidences[~np.isnan(confidences)]
    if not values.size or values.min() < 0 or not _LARGEST_SCALE < values.max() <= 100:
        return False
    return bool((values == np.round(values)).all())


def two_logits(array: FloatArray) -> FloatArray:
    """Turn the logit z of class 1, shape (n, 1), into the logits (0, z), shape (n, 2)."""
    return np.concatenate([np.zeros_like(array), array], axis=1)


# ---- Why scores are refused, in sentences


#: Positive logits seldom exceed it; percentages with a few values below 0 do.
_LARGE = 10


def outside(array: FloatArray, most: float) -> BoolArray:
    """Mask of the rows, shape (n,), with a value that is not in 0 to `most`, but for rounding; missing ones are."""
    return np.asarray(((array < -1e-6) | (array > most * (1 + 1e-6))).any(axis=1))


def off_sum(array: FloatArray, total: float) -> BoolArray:
    """Mask of the rows, shape (n,), of several values that do not sum to `total`, but for rounding; missing ones do."""
    sums = array.sum(axis=1, dtype=np.float64)
    return np.asarray((np.abs(sums - total) > 0.02 * total) & (array.shape[1] > 1))


def normalised(array: FloatArray) -> tuple[FloatArray, str]:
    """Divide rows by their sum, and say so; "" if none is divided."""
    sums = array.sum(axis=1, dtype=np.float64, keepdims=True)
    if not (np.isfinite(sums).all() and sums.min() > 0 and array.min() >= 0):
        # Negative or missing values cannot be normalised; a later check reports them.
        return array, ""
    off = np.abs(sums[:, 0] - 1)
    moved, asked = off > 1e-6, off_sum(array, 1)
    if not moved.any():
        return array, ""
    first = asked if asked.any() else moved  # those of the question
    rest = off[moved & ~first]
    more = f", and {rest.size:,} (at most {rest.max():.2g})" if rest.size else ""
    return np.divide(array, sums.astype(array.dtype), out=array), (
        f"renormalise: {int(first.sum()):,} of {array.shape[0]:,} rows were divided by their sum "
        f"(at most {off.max():.3g} away from 1){more}"
    )


def are_few(rows: BoolArray) -> bool:
    """Whether the rows of a mask, shape (n,), are at most a tenth."""
    return bool(rows.mean() <= FEW)


@dataclass(eq=False)
class Problem:
    """Checks and error messages for scores, with their location in the file.

    Parameters
    ----------
    table : Table
    scores : ScoreColumns
    array : ndarray, shape (n, K)
    rows : ndarray of int, shape (n,), optional
        The data rows of the file that `array` holds; all of them if left out.
    percent : bool
        Whether the file holds a hundred times the values of `array`; messages name its own.
    models : mapping of str to ndarray
        The scores of all models of the file, by their columns.
    """

    table: Table
    scores: ScoreColumns
    array: FloatArray
    rows: IntArray | None = None
    percent: bool = False
    models: Mapping[str, FloatArray] = field(default_factory=dict)

    def original(self, row: int) -> int:
        """The data row of the file."""
        return row if self.rows is None else int(self.rows[row])

    def _places(self, *rows: int) -> str:
        return places([*map(self.original, rows)], self.table.line)

    def check_logits(self) -> None:
        """Raise InputError if scores declared as logits are probabilities."""
        if self.scores.width == 1 or not self.array.size:
            return
        low, high = float(self.array.min()), float(self.array.max())
        if low < 0 or high > 1 + 1e-6 or np.isnan(low):
            return
        if np.abs(self.array.sum(axis=1, dtype=np.float64) - 1).max() < 1e-3:
            raise InputError(
                "the scores are declared as logits, but all lie in [0, 1] and every row sums to 1: "
                "they are probabilities",
                remedy="declare the kind as probabilities",
            )

    def explain(self, error: InputError) -> InputError:
        """Return the most detailed message about why `array` was refused; `error` itself if nothing fits."""
        return self._not_finite() or self._not_probabilities() or error

    def _name(self, column: int) -> str:
        if len(self.scores.columns) == self.array.shape[1]:
            return self.scores.columns[column]
        names = self.scores.class_names
        inner = names[column] if len(names) == self.array.shape[1] else str(column)
        return f"{self.scores.columns[0]}[{inner}]"

    def _not_finite(self) -> InputError | None:
        bad = ~np.isfinite(self.array)
        bad_rows = np.flatnonzero(bad.any(axis=1))
        if not bad_rows.size:
            return None
        rows, nan_rows = bad_rows.size, int(np.isnan(self.array[bad_rows]).any(axis=1).sum())
        first = bad_rows[:NAMED]
        at_cells = [(int(first[r]), int(c)) for r, c in np.argwhere(bad[first])[:NAMED]]
        lists = len(self.scores.columns) < self.array.shape[1]
        if lists:
            at_cells = [(int(r), int(bad[r].argmax())) for r in first]
        shown = []
        for row, column in at_cells:
            at, name, value = self.original(row), self._name(column), self.array[row, column]
            name = self.scores.columns[0] if lists and bad[row].all() else name
            state = "infinite" if np.isinf(value) else self.table.missing_as(at, name)
            shown.append(f"{self._places(row)} '{short(name)}' is {state}")
        row, column = at_cells[0]
        texts = any(state.endswith("'") or " instead of " in state for state in shown)
        empty = self.array.shape[1] == 1 and all(state.endswith(" empty") for state in shown)
        what = "cells that cannot be read" if texts else "no score" if empty else "missing values"
        drops = nan_rows == rows and not (texts and rows > FEW * len(self.array))
        # The rows of all models are left out together.
        held = slice(None) if self.rows is None else self.rows
        gaps = {name: np.isnan(array[held]).any(axis=1) for name, array in self.models.items()}
        gaps = {name: mask for name, mask in gaps.items() if mask.any()} if nan_rows == rows else {}
        each = ", ".join(f"'{name}' {int(mask.sum()):,}" for name, mask in gaps.items())
        all_rows = int(np.logical_or.reduce([*gaps.values()]).sum()) if len(gaps) > 1 else rows
        counted = f"{all_rows:,} of {len(self.array):,} rows {'has' if all_rows == 1 else 'have'}"
        listing = ", ".join(shown) + ", …" * (all_rows > len({r for r, _ in at_cells}))
        fix = f"{'correct them' if texts else 'fill them in'}, or ask to leave out the rows"
        return InputError(
            f"{counted} {what if nan_rows == rows else 'values that are not finite'}"
            + f" ({each})" * (len(gaps) > 1),
            where=listing,
            row=self.original(row) + 1,
            line=self.table.line(self.original(row)),
            column=self._name(column),
            placed=True,
            remedy=fix if drops else "correct the values",
            repairs=(Repair("drop-missing", "leave out the rows without score"),) * drops,
        )

    def _not_probabilities(self) -> InputError | None:
        if self.scores.kind == "logits" or not self.array.size:
            return None
        low, high = float(self.array.min()), float(self.array.max())
        (n, k), whole = self.array.shape, 100 if self._in_percent() else 1
        if k == 1:
            return self._one_column(low, high)
        lies = f"{low * whole:.4g}", f"{high * whole:.4g}"
        sums = self.array.sum(axis=1, dtype=np.float64)
        off = off_sum(self.array, 1)
        count, few_off = int(off.sum()), are_few(off)  # rows of logits hardly ever sum to 1
        if (hundred := np.abs(sums - 100) <= 2).mean() > 0.9:
            return self._refused(
                f"values look like percentages: {int(hundred.sum()):,} rows sum to 100, not 1",
                "ask to divide them by 100",
                "percent",
            )
        if low < -1e-6:
            row, column = (int(v) for v in np.unravel_index(self.array.argmin(), self.array.shape))
            few = are_few(outside(self.array, 1))
            may_be = not (few_off or self._in_percent())
            ways = ["ask to leave out such rows"] * few + ["declare them as logits"] * may_be
            return self._refused(
                f"values from {' to '.join(lies)} are not probabilities "
                f"({self._places(row)} '{short(self._name(column))}' is {lies[0]})",
                ", or ".join(ways) or "correct them",
                *(["drop-outside"] * few + ["softmax"] * may_be),
            ).but(row=self.original(row) + 1)
        if not count:
            return None
        least, largest = sums[off].min() * whole, sums[off].max() * whole
        totals = f"do not sum to {whole} (from {least:.4g} to {largest:.4g})"
        if largest - least < 5e-3 * whole:
            totals = f"sum{'s' * (count == 1)} to {np.median(sums[off]) * whole:.4g}, not {whole}"
        may_be, (first, *more) = high > 1 and not few_off, np.flatnonzero(off).tolist()
        return self._refused(
            f"{count:,} of {n:,} rows {totals}: not probabilities ({self._places(first, *more)}; values lie in [{', '.join(lies)}])",
            f"ask to {'leave out these rows, or to ' * few_off}divide every row by its sum{', or declare the values as logits' * may_be}",
            *(["drop-outside"] * few_off + ["renormalise"] + ["softmax"] * may_be),
        ).but(row=self.original(first) + 1)

    def _in_percent(self) -> bool:
        """Whether the scores are written in percent, as logits are not."""
        notes = (self.table[name].note for name in self.scores.columns if name in self.table)
        return self.percent or any(notes)

    def _one_column(self, low: float, high: float) -> InputError | None:
        name, column = short(self.scores.columns[0]), self.array[:, 0]
        most = next((m for m in (1, 100) if are_few(outside(self.array, m))), 1)
        odd = outside(self.array, most)
        if not outside(self.array, 1).any():
            return None  # the error is one of another column
        count, row = int(odd.sum()), int((odd if odd.any() else outside(self.array, 1)).argmax())
        first = f"(first: {self._places(row)})"
        whole = 100 if (in_percent := self._in_percent()) else 1
        lies = f"'{name}' lies in [{low * whole:.4g}, {high * whole:.4g}], outside [0, {whole}]"
        percent = low >= 0 and 1.5 < high <= 100 and not in_percent
        largest = float(column[~odd].max(initial=0))
        if count and are_few(odd) and (most == 1 or largest > (_LARGE if low < 0 else 1.5)):
            few = f"{count:,} of {len(odd):,} {'is' if count == 1 else 'are'} not in 0 to {most * whole} {first}"
            look, remedy, repairs = "probabilities", "leave out such rows", ["drop-outside"]
            readings = []
            if most == 100:
                look, remedy, repairs = "percentages", f"divide by 100 and {remedy}", []
                readings = [Reading(remedy, {"repair": ("percent", "drop-outside")})]
            elif percent and odd.mean() > _STRAYS:
                remedy = f"{remedy}, or divide all by 100"
                repairs.append("percent")
            return self._refused(
                f"{lies}: {few}, the others look like {look}",
                f"correct {'it' if count == 1 else 'them'}, or ask to {remedy}",
                *repairs,
                *(["sigmoid"] * (not in_percent and (low < 0 or len(odd) < FEWEST_ROWS))),
            ).but(row=self.original(row) + 1, readings=readings)
        what = f"{lies} {first}"
        headed = in_percent or self.table[self.scores.columns[0]].is_headed_in_percent
        points = low >= 0 and not headed and not np.mod(column, 1).any()
        if points and not (percent and (high > MOST_POINTS or len(column) == 1)):
            look, remedy = "points", "fit a probability to points first, on other rows"
            if high <= MOST_POINTS:
                look = "points or a judge's grades"
                remedy += "; of a judge's grades, call the columns of grades and labels 'judge' and 'human'"
            return self._refused(f"{what}: whole numbers look like {look}", remedy)
        if percent and len(column) == 1:
            remedy = "ask to divide it by 100 if it is in percent, else correct it"
            what = f"{self._places(row)} '{name}' is {high:.4g}, outside [0, 1]"
            return self._refused(what, remedy, "percent")
        if percent:
            remedy = "ask to divide them by 100"
            return self._refused(f"{what}: values look like percentages", remedy, "percent")
        return self._refused(what, "declare it as a logit if it is one", "sigmoid")

    def _refused(self, what: str, remedy: str, *keys: str) -> InputError:
        return InputError(what, remedy=remedy, repairs=[REPAIRS[k] for k in keys], placed=True)

"""Which columns hold the scores, by name or by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calviz.core.errors import Finding, InputError, OptionError, Severity
from calviz.core.probabilities import SCORE_SLACK, from_0_to_1
from calviz.data import loaded
from calviz.data.format import Column, Table
from calviz.data.loaded import (
    Notice,
    ReadingForMap,
    ReadingOptions,
    is_of_first_class,
    known_columns,
    span,
)

# ---- The role of every column of a file: the result of recognition.


ScoreKind = Literal["probabilities", "logits"]


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
    """

    columns: tuple[str, ...]
    class_names: tuple[str, ...]
    kind: ScoreKind
    width: int
    model: str = ""
    logits: tuple[str, ...] = ()

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
    """The role of every column; `numbers` are carried along with the scores, `unused` ones hold too many distinct fractions to slice by.

    `kept` columns, which a map leaves as they are, have no other role.
    """

    scores: tuple[ScoreColumns, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    split: str | None = None
    id: str | None = None
    groups: tuple[str, ...] = ()
    groups_chosen: bool = False
    numbers: tuple[str, ...] = ()
    cluster: str | None = None
    weight: str | None = None
    time: str | None = None
    unused: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = field(default=())


# ---- A table as recognition sees it: the names of its columns, and the user's options.


class TableView:
    """A table, the options, and the notices of its recognition.

    Parameters
    ----------
    table : Table
    options : ReadingOptions
    """

    def __init__(self, table: Table, options: ReadingOptions) -> None:
        self.table, self.options = table, options
        self.notices: list[Finding] = []
        self.plain: dict[str, str] = {}
        for column in table.columns:
            self.plain.setdefault(loaded.plain(column.name), column.name)

    def named(self, names: tuple[str, ...], taken: set[str]) -> str | None:
        """The first column with one of the names (in order of preference) that is not taken."""
        candidates = (self.plain.get(name) for name in names)
        return next((c for c in candidates if c is not None and c not in taken), None)

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
        return [
            c.name
            for c in self.table.columns
            if c.type == "text" and loaded.by_prefix(c.name)[1] in ("probabilities", "logits")
        ]

    def note(self, kind: Notice, severity: Severity, message: str) -> None:
        """Add a notice."""
        self.notices.append(kind.finding(severity, message))


# ---- Properties of a column, judged by its first rows.


#: Rounded rows whose sum is this far from 1 are still recognised as probabilities.
_SUM_SLACK = 0.02


def levels(column: Column) -> set[str]:
    """The distinct non-empty values, as text."""
    return {str(v) for v in column.head.tolist()} - {""}


def in_unit(head: npt.NDArray[Any]) -> bool:
    """Whether all numbers lie in [0, 1], ignoring NaN."""
    if not head.size:
        return False
    if head.dtype.char in "fd" and from_0_to_1(head):
        return True
    low = head.min()
    if low >= -SCORE_SLACK:
        return bool(head.max() <= 1 + SCORE_SLACK)
    return bool(np.isnan(low)) and in_unit(head[~np.isnan(head)])


def is_one(sums: npt.NDArray[np.float64]) -> bool:
    """Whether nearly all sums, shape (n,), are 1 up to rounding."""
    return bool(are_one(sums[:, None])[0])


def are_one(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether nearly all sums in each column of an array of shape (n, m) are 1, shape (m,); NaN is ignored."""
    fits = np.count_nonzero(np.abs(sums - 1) <= _SUM_SLACK, axis=0)
    rows = np.count_nonzero(~np.isnan(sums), axis=0)
    nearly_all: npt.NDArray[np.bool_] = (rows > 0) & (fits > 0.9 * rows)
    return nearly_all


def is_zero_one(column: Column) -> bool:
    """Whether a column holds only 0 and 1."""
    if column.type == "boolean":
        return True
    return column.numeric and bool(np.isin(column.head, (0, 1)).all())


def is_label_like(column: Column) -> bool:
    """Whether a column holds whole numbers or text, one value per row."""
    if column.width is not None:
        return False
    if column.type in ("integer", "boolean", "text"):
        return True
    if column.type != "number":
        return False
    values = column.head[~np.isnan(column.head)]
    return values.size > 0 and bool((values == np.floor(values)).all())


# ---- Find the score columns by their names.


#: Beginnings of names that mark a score even if the column holds whole numbers (0 and 1, percentages).
_STRONG = ("p", "y_prob", "y_score", "score", "risk", "logit", "log")


def by_name(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Return the chosen score columns, else those of several models, else those with known names."""
    if not view.table.named:
        return _chosen(view)
    return _chosen(view) or _models(view, taken) or _named_block(view, taken)


def _chosen(view: TableView) -> tuple[ScoreColumns, ...]:
    if view.options.scores is None:
        return ()
    chosen: list[str] = []
    prefix = ""
    for entry in view.options.scores:
        if entry.endswith("*"):
            prefix = entry[:-1]
            fitting = [
                c.name
                for c in view.table.columns
                if c.name.startswith(prefix) and (c.numeric or c.width is not None)
            ]
            if not fitting:
                raise OptionError(
                    f"no column of numbers begins with '{prefix}'; {known_columns(view.table.names)}."
                )
            chosen.extend(c for c in fitting if c not in chosen and c != view.options.label)
        else:
            chosen.append(entry)
    for name in chosen:
        column = view.table[name]
        if not column.numeric:
            raise InputError(
                f"cannot hold scores: {column.note or f'it holds {column.type}'}", column=name
            )
    if len(chosen) == 1 and view.table[chosen[0]].width is not None:
        return (block(view, view.table[chosen[0]]),)
    parsed = [loaded.by_prefix(name) for name in chosen]
    kinds = {k for _, k in parsed if k}
    stripped = tuple(
        (name.removeprefix(prefix) or name) if prefix else (class_name or name)
        for name, (class_name, _) in zip(chosen, parsed, strict=True)
    )
    kind: ScoreKind = "logits" if kinds == {"logits"} else "probabilities"
    return (columns_as_scores(view, tuple(chosen), stripped, kind),)


def _models(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """``<model>:<class>`` columns, if all models have the same classes."""
    models: dict[str, dict[str, str]] = {}
    for column in view.table.columns:
        model, colon, name = column.name.partition(":")
        if colon and model.strip() and name.strip() and column.numeric and column.name not in taken:
            models.setdefault(model.strip(), {})[name.strip()] = column.name
    class_sets = {frozenset(classes) for classes in models.values()}
    if len(class_sets) != 1 or len(models) * len(next(iter(class_sets))) < 2:
        return ()
    classes_in_order = next(iter(models.values()))
    if len(models) < 2 and len(classes_in_order) < 2:
        return ()
    return tuple(
        columns_as_scores(
            view,
            tuple(classes[name] for name in classes_in_order),
            class_names(tuple(classes_in_order)),
            "logits" if "logit" in model.lower() else "probabilities",
            model,
        )
        for model, classes in models.items()
    )


def _named_block(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Arrays and list columns with a known name, or columns that share a known prefix."""
    arrays = _named_arrays(view, taken)
    for column in view.table.columns if not arrays else ():
        scores = loaded.plain(column.name) in (
            *loaded.PROBABILITIES,
            *loaded.LOGITS,
        )
        if column.type == "other" and scores and column.name not in taken:
            raise InputError(f"cannot hold the scores: {column.note}", column=column.name)
    return arrays or _prefixed(view, taken)


def _named_arrays(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    arrays = view.arrays(taken)
    usual = {"probabilities": loaded.PROBABILITIES, "logits": loaded.LOGITS}
    candidates = {
        kind: [c for c in arrays if loaded.plain(c.name) in usual[kind]] for kind in _kinds(view)
    }
    used = next((candidates[kind][0] for kind in candidates if candidates[kind]), None)
    if used is None:
        return ()
    scores, logits = block(view, used), candidates["logits"]
    others = [c.name for kind in candidates for c in candidates[kind] if c is not used]
    further = [c for c in logits if c is not used]
    if scores.kind == "probabilities" and len(further) == 1 and further[0].width == scores.width:
        scores = replace(scores, logits=(further[0].name,))
        others.remove(further[0].name)
    _mention_unused(view, scores, others)
    return (scores,)


def _prefixed(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    numeric = view.numeric(taken)
    best: dict[str, ScoreColumns] = {}
    for pattern, kind in loaded.PREFIXES:
        columns, classes = [], []
        for column in numeric:
            match = pattern.fullmatch(column.name)
            if match and not _is_outcome(view, column):
                columns.append(column.name)
                classes.append(match["name"].strip())
        if len(columns) >= 2 and (kind not in best or len(columns) > best[kind].width):
            declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
            best[kind] = columns_as_scores(view, tuple(columns), tuple(classes), declared)
    used_kind = next((kind for kind in (*_kinds(view), "") if kind in best), None)
    if used_kind is None:
        return ()
    scores = best[used_kind]
    other = {"probabilities": "logits", "logits": "probabilities"}.get(used_kind, "")
    if used_kind and other in best:
        place = dict(zip(best[other].class_names, best[other].columns, strict=True))
        if scores.kind == "probabilities" and set(place) == set(scores.class_names):
            scores = replace(scores, logits=tuple(place[name] for name in scores.class_names))
        else:
            _mention_unused(view, scores, best[other].columns)
    return (scores,)


def _is_outcome(view: TableView, column: Column) -> bool:
    """Whether a column is named after another one (prob1 and prob1_outcome), or ends like an outcome and holds whole numbers.

    The probability of a class "true" ends like an outcome too, but holds fractions and is named after no other column.
    """
    name = loaded.plain(column.name)
    stems = [name.removesuffix(end) for end in loaded.OUTCOME_ENDINGS if name.endswith(end)]
    return bool(stems) and (stems[0] in view.plain or is_label_like(column))


def _kinds(view: TableView) -> tuple[ScoreKind, ...]:
    """The kinds of scores in order of preference: that of the options first, or else probabilities."""
    if view.options.kind == "logits":
        return ("logits", "probabilities")
    return ("probabilities", "logits")


def _mention_unused(view: TableView, used: ScoreColumns, others: Sequence[str]) -> None:
    if others:
        text = f"'{span(used.columns)}' holds the scores; not used: {span(tuple(others))}"
        view.note(Notice.SCORE_COLUMNS, "info", text)


def one_column(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Find a single score column, P(class 1), by its name."""
    if not view.table.named:
        return ()
    candidates = view.numeric(taken)
    label = view.named(loaded.LABELS, taken)
    for names, kind in (
        (loaded.PROBABILITIES, "probabilities"),
        (loaded.LOGITS, "logits"),
    ):
        for column in candidates:
            key = loaded.plain(column.name)
            weak = key in loaded.PREDICTED or not key.startswith(_STRONG)
            if key in names and column.name != label and not (weak and is_label_like(column)):
                declared: ScoreKind = "logits" if kind == "logits" else "probabilities"
                # As for a chosen column, the name of a class says which of two labels is the event.
                class_name = loaded.by_prefix(column.name)[0]
                named = (class_name,) if class_name in loaded.EVENT else ()
                scores = columns_as_scores(view, (column.name,), named, declared)
                logits = [c.name for c in candidates if loaded.plain(c.name) in loaded.LOGITS]
                _mention_unused(view, scores, [name for name in logits if name != column.name])
                return (scores,)
    if view.text_scores():
        return ()
    for pattern, kind in loaded.PREFIXES:
        for column in candidates:
            match = pattern.fullmatch(column.name)
            if match is None or column.type != "number":
                continue
            is_logit = kind == "logits" and "logit" in column.name.lower()
            if not (is_logit or in_unit(column.head)):
                continue
            if not _is_outcome(view, column):
                declared = "logits" if kind == "logits" else "probabilities"
                return (
                    ScoreColumns(
                        (column.name,), (match["name"],), view.options.kind or declared, 1
                    ),
                )
    return ()


def confidence(view: TableView, taken: set[str]) -> Confidence | None:
    """Find the confidence of the predicted class, and the column that says whether the prediction was right."""
    score = view.named(loaded.CONFIDENCES, taken)
    correct = view.named(loaded.CORRECTS, taken)
    predicted = view.named(loaded.PREDICTED, taken)
    if score is None and (correct is not None):
        score = view.named(loaded.PROBABILITIES, {*taken, predicted or "", correct})
    log = (
        score is None
        and (score := view.named(loaded.LOG_CONFIDENCES, {*taken, predicted or "", correct or ""}))
        is not None
    )
    if score is None and correct is None:
        return _top_of_pipeline(view, taken)
    if score is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if correct is not None and correct != score:
        return Confidence(score, correct=correct, predicted=predicted, log=log)
    label = view.options.label or view.named(loaded.LABELS, taken)
    if predicted is not None and label is not None and predicted != score:
        return Confidence(score, predicted=predicted, log=log)
    return Confidence(score, log=log) if isinstance(view.options, ReadingForMap) else None


def _top_of_pipeline(view: TableView, taken: set[str]) -> Confidence | None:
    """Find ``label`` and ``score`` of a Hugging Face pipeline, the predicted class and its probability, beside the true class."""
    label, score = (view.plain.get(name) for name in ("label", "score"))
    if label is None or score is None or {label, score} & taken or view.options.label == label:
        return None
    truth = view.options.label or view.named(loaded.LABELS, {*taken, label, score})
    if truth is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if view.table[label].type != "text" or view.table[truth].type != "text":
        return None
    text = f"'{label}' and '{score}' are read as the predicted class and its confidence, '{truth}' as the true class"
    view.note(Notice.SCORE_COLUMNS, "info", text)
    return Confidence(score, predicted=label)


def columns_as_scores(
    view: TableView,
    columns: tuple[str, ...],
    class_names: tuple[str, ...],
    kind: ScoreKind,
    model: str = "",
) -> ScoreColumns:
    """Make the scores of one model from columns; the kind given in the options takes precedence."""
    if len(set(class_names)) != len(class_names):
        class_names = columns
    return ScoreColumns(columns, class_names, view.options.kind or kind, len(columns), model)


def block(view: TableView, column: Column) -> ScoreColumns:
    """Make scores from a 2-D array or a column of lists."""
    logits = loaded.plain(column.name) in loaded.LOGITS or "logit" in column.name.lower()
    if loaded.plain(column.name) == "predictions" and "label_ids" in view.plain:
        # Result of Trainer.predict of Hugging Face: the raw outputs of the model.
        logits = not in_unit(column.head)
    kind: ScoreKind = "logits" if logits else "probabilities"
    width = column.width or 1
    return ScoreColumns((column.name,), column.fields, view.options.kind or kind, width)


def class_names(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Class names from column names, without known prefixes; the column names themselves if that fails."""
    stripped = tuple(loaded.by_prefix(c)[0] for c in columns)
    return stripped if all(stripped) and len(set(stripped)) == len(stripped) else columns


# ---- Find the score columns by their values, if none is recognised by its name.


#: Number of columns examined together.
_BLOCK = 1_024


def fitting_block(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Find the only array of scores, columns named like the classes, columns whose rows sum to 1, or the only column in [0, 1]."""
    label = view.named(loaded.LABELS, taken)
    not_scores = taken | {label or ""}
    numeric, arrays = view.numeric(not_scores), view.arrays(not_scores)
    if len(arrays) == 1:
        return (block(view, arrays[0]),)
    if label is not None and view.table[label].type == "text":
        values = {str(v) for v in view.table[label].head.tolist()} - {""}
        class_columns = [c.name for c in numeric if c.name in values]
        if len(class_columns) >= 2:
            # Classes may be absent from the first rows: their columns are needed for sums of 1.
            summing = _summing(numeric)
            if summing is not None and set(class_columns) <= set(summing):
                return (columns_as_scores(view, summing, summing, "probabilities"),)
            return (
                columns_as_scores(
                    view, tuple(class_columns), tuple(class_columns), "probabilities"
                ),
            )
    summing = _summing(numeric)
    if summing is not None:
        named = view.table.named
        return (
            columns_as_scores(
                view, summing, class_names(summing) if named else _indices(summing), "probabilities"
            ),
        )
    # A confidence without a predicted class is not P(class 1).
    numeric = [c for c in numeric if loaded.plain(c.name) not in loaded.CONFIDENCES]
    if view.text_scores():
        return ()
    scores = [c for c in numeric if c.type == "number" and in_unit(c.head)]
    if len(scores) == 2:
        # In an array of floats, the label is one of them.
        scores = [c for c in scores if not is_label_like(c)] or scores
    rest = [c for c in view.table.columns if c not in scores and c.name not in taken]
    if len(scores) == 1 and (label is not None or any(is_label_like(c) for c in rest)):
        return (columns_as_scores(view, (scores[0].name,), (), "probabilities"),)
    if len(scores) == 0:
        # Scores that are all 0 or 1 in the sample look like labels; they are told apart by the name of the label.
        two = [c for c in numeric if in_unit(c.head)]
        if label is not None and len(two) == 1:
            return (columns_as_scores(view, (two[0].name,), (), "probabilities"),)
    return ()


def _summing(numeric: list[Column]) -> tuple[str, ...] | None:
    """Find the columns whose rows sum to 1: all columns in [0, 1], all but one, or consecutive ones."""
    unit = [c for c in numeric if in_unit(c.head) and c.head.size]
    if len(unit) < 2 or len({c.head.size for c in unit}) > 1:  # arrays may differ in length
        return None
    # The usual case needs no copy of all first rows.
    total = np.zeros(unit[0].head.size)
    for column in unit:
        total += column.head
    if is_one(total) and not all(map(is_zero_one, unit)):
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


def _superfluous(heads: npt.NDArray[np.float64]) -> int | None:
    """Index of the first column without which the rows of an (n, m) array sum to 1; None if there is none."""
    total = heads.sum(axis=1, keepdims=True)
    for start in range(0, heads.shape[1], _BLOCK):
        fits = are_one(total - heads[:, start : start + _BLOCK])
        if fits.any():
            return start + int(fits.argmax())
    return None


def _indices(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(j) for j in range(len(columns)))

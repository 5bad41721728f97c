"""What was read: the data, what was recognised in the file, the usual names of splits; options for rows to which a map is applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from calviz.core.blocks import BoolArray, IntArray
from calviz.core.errors import Finding, InputError, Reading, Repair
from calviz.core.predictions import BEFORE, Dataset
from calviz.core.row_columns import Kind, in_split
from calviz.core.words import PLAIN_CSV, CsvStyle, listed
from calviz.data import column_names
from calviz.data.column_names import MODELS, SURE, alike, plain, without_common_words, words
from calviz.data.format import Notice, ReadingOptions, Table, short, span
from calviz.data.roles import ColumnRoles


@dataclass(frozen=True)
class ReadingForMap(ReadingOptions):
    """Settings for reading rows to which a map is applied: labels are not needed, and all columns are kept.

    Parameters
    ----------
    map_classes : tuple of str
        The class names of the map, for a file that does not name its classes; () if the map has none.
    map_scores : mapping of str to object
        What the score columns were that it was fitted on: ``kind``, and ``columns``, one per class, or that of class 1; {} if not known.
    model : str, optional
        The model that the map is for, if there are several: the scores of others are copied as they are, and may be missing.
    beside : tuple of str
        The score columns of the others, if they are named: those that are there tell which models are in percent.
    """

    for_map = True

    map_classes: tuple[str, ...] = ()
    map_scores: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    beside: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, options: ReadingOptions, record: Mapping[str, Any], model: str | None = None
    ) -> ReadingForMap:
        """Return the same settings for rows to which a saved map is applied, or one that has these ``class_names``."""
        named = options.models or ()
        names = without_common_words(named, of_models=True) if named else ()
        columns = dict(zip(names, named, strict=True))
        scores = {} if model or named or options.scores or options.kind else record.get("scores")
        own = columns.pop(model or "", None)
        if own is not None:
            options = replace(options, models=(own,))
        elif named or "percent" in options.repair:
            model = None
        return cls(
            **vars(replace(options, label=options.label or None)),
            map_classes=tuple(record.get("class_names", ())),
            map_scores=scores or {},
            model=model,
            beside=tuple(columns.values()) if own else (),
        )

    def beside_in(self, table: Table) -> list[str]:
        """The columns of other models that a table has, and that hold numbers."""
        there = [table[name] for name in self.beside if name in table]
        return [c.name for c in there if c.numeric and not np.isnan(c.head).all()]

    def of_table(self, table: Table) -> ReadingForMap:
        """The same settings with the scores and classes of the map, if all of its columns are there, each of numbers.

        Raises InputError if calibrated probabilities stand beside them: from the scores, the map before would be lost.
        """
        names = tuple(self.map_scores.get("columns", ()))
        there = [n for n in names if n in table and table[n].numeric and table[n].width is None]
        # Logarithms of confidences are known by their names, and one column that is headed in percent is asked about in each file.
        if not names or len(there) < len(names) or plain(names[0]) in column_names.LOG_CONFIDENCES:
            return self
        after = tuple(f"p_{name}" for name in self.map_classes)
        if all(n in table for n in (*after, BEFORE)) and not {*after} & {*names}:
            ways = {"what that map made": after, "the scores before, without that map": names}
            raise InputError(
                f"a map was applied before: '{short(after[0])}' stands beside '{short(names[0])}'; say what this map is applied to",
                readings=[Reading(way, {"scores": of}) for way, of in ways.items()],
            )
        asked = len(names) == 1 and "percent" not in self.repair
        if asked and table[names[0]].is_headed_in_percent:
            return self
        classes = self.class_names or self.map_classes or None
        return replace(self, scores=names, kind=self.map_scores["kind"], class_names=classes)

    def check_not_confidence(self, scores: Sequence[str]) -> None:
        """Raise InputError if the only column of probabilities that was found is called a confidence, and the map was fitted on another one."""
        fitted = self.map_scores.get("columns", ())
        if len(scores) != 1 or self.scores or not fitted or scores[0] in fitted:
            return
        if {*words(scores[0])} & SURE and not {*words(fitted[0])} & SURE:
            raise InputError(
                f"the map was fitted on {self.map_scores['kind']} in '{short(fitted[0])}', and '{short(scores[0])}' is called a confidence",
                remedy="say which column holds such scores (--scores, scores=)",
            )

    def labels_rename(self, named: tuple[str, ...], names: tuple[str, ...]) -> bool:
        """Whether class names come from labels, such as yes and no, and not from the score columns, which name `named`, or the map.

        Such labels say nothing about the scores, and are kept as they are.
        """
        return not {*named} & {*names} and not classes_agree(names, self.map_classes)

    def names_of_classes(self, named: tuple[str, ...], k: int) -> tuple[str, ...]:
        """Names of the K classes of a file without labels whose score columns name `named`."""
        if len(named) == k:
            return self.map_classes if alike(named, self.map_classes) else named
        if len(self.map_classes) != k:
            return tuple(str(j) for j in range(k))
        # If the only column is that of class 0, the order is not that of the map, which says so.
        reverse = len(named) == 1 and column_names.is_of_first_class(named[0], self.map_classes)
        return self.map_classes[::-1] if reverse else self.map_classes


def classes_agree(names: tuple[str, ...], of_map: tuple[str, ...]) -> bool:
    """Whether the classes of a file are those of a map, in the same order; numbers in ascending order say nothing but the order.

    A map without class names is for any classes. Names may be spelled as those of columns are.

    >>> classes_agree(("1", "2"), ("cat", "dog")), classes_agree(("-1", "1"), ("0", "1"))
    (True, True)
    >>> classes_agree(("old_cat", "dog"), ("Old cat", "dog")), classes_agree(("1", "2"), ("cat", "dog"))
    (True, True)
    >>> classes_agree(("1", "0"), ("0", "1")), classes_agree(("cat", "dog"), ("0", "1"))
    (False, False)
    """
    if not of_map or alike(names, of_map):
        return True
    ordered = _are_numbers(of_map) or not any(name.isdecimal() for name in of_map)
    return len(names) == len(of_map) and _are_numbers(names) and ordered


def _are_numbers(names: tuple[str, ...]) -> bool:
    return names in (("-1", "1"), *(tuple(map(str, range(b, b + len(names)))) for b in (0, 1)))


#: Common names of splits for fitting and for evaluation, in order of preference.
FIT_SPLITS = ("calibration", "calib", "cal", "kalibrierung", "validation", "valid", "val", "validierung",
              "dev")  # fmt: skip
EVAL_SPLITS = ("test", "testing", "evaluation", "eval", "holdout", "hold-out", "held-out", "oot", "oos")  # fmt: skip
#: Names, without spaces and hyphens, that say that the model was trained on the rows: its scores there are not like those of new rows.
_TRAINED = ("train", "training", "trainset", "trainingset", "traindata", "trainingdata", "insample",
            "fit", "derivation", "dérivation", "development")  # fmt: skip


def usual_split(splits: Iterable[str], usual: tuple[str, ...]) -> str | None:
    """Return the split whose name is among the usual ones, without regard to case and outer spaces; the most preferred of several.

    >>> usual_split(["train", "Val ", "test"], FIT_SPLITS), usual_split(["a", "b"], EVAL_SPLITS)
    ('Val ', None)
    """
    by_name = {name.strip().casefold(): name for name in reversed(list(splits))}
    return next((by_name[name] for name in usual if name in by_name), None)


def is_trained_on(split: str) -> bool:
    """Whether the name of a split says that the model was trained on its rows.

    >>> is_trained_on("In-Sample "), is_trained_on("TRAIN"), is_trained_on("validation")
    (True, True, False)
    """
    return plain(split).replace("_", "") in _TRAINED


def judged_split(splits: Iterable[str]) -> str | None:
    """Return the split to judge: one whose name suggests it, or the only one, of several, that the model was not trained on.

    >>> judged_split(["train", "val", "test"]), judged_split(["derivation", "validation"]), judged_split(["a", "b"])
    ('test', 'validation', None)
    """
    names = list(splits)
    new = [name for name in names if not is_trained_on(name)]
    return usual_split(names, EVAL_SPLITS) or (new[0] if len(new) == 1 < len(names) else None)


def rows_of_split(data: Dataset, name: str) -> IntArray:
    """Return the indices of the rows of a split; raise InputError if there is none of this name."""
    remedy = "fit on a fraction of the rows, or cross-fit"
    return np.flatnonzero(in_split(data.splits, name, remedy=remedy))


def untrained(data: Dataset, named: Collection[str | None]) -> tuple[IntArray | None, str]:
    """Return the rows outside of splits that are not named and that the model was trained on, and words for that.

    None if these are all rows, or only those of the named splits.
    """
    splits = data.splits
    out = [s for s in data.split_names if s not in named and is_trained_on(s)]
    if splits is None or not out or len(data.split_names) == len(out) + len(named):
        return None, ""
    kept = np.array([level not in out for level in splits.levels])[splits.codes]
    words = " and ".join(f"split '{name}'" for name in out)
    return np.flatnonzero(kept), f" outside {words}"


def fit_split_for(data: Dataset, eval_split: str | None) -> str | None:
    """Return the split to fit on while `eval_split` is judged: one whose name suggests it, otherwise the first other split.

    None if there is no other split that the model was not trained on. If all rows are judged (`eval_split` is None), only a split whose
    name suggests it, beside another one.
    """
    names = data.that_count().split_names
    others = [name for name in names if name != eval_split and not is_trained_on(name)]
    usual = usual_split(others, FIT_SPLITS)
    if eval_split is None:
        return usual if len(others) > 1 else None
    return usual or next(iter(others), None)


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What was recognised in a file; every item can be overridden by `ReadingOptions`.

    Attributes
    ----------
    format : str
        "CSV, semicolon-separated", "NPZ", ...
    kind : {"probabilities", "logits", "confidence"}
    label : str or None
        The column or array with the label; for one-hot labels the columns, separated by ", ".
    label_form : str
        "class index", "class name", "one-hot", "-1 and +1", ...; empty for a profile, and for rows without labels, which only a map takes.
    scores : tuple of str
        The score columns or arrays (of the first model if there are several).
    split_column, id_column : str or None
    groups : tuple of str
    class_names : tuple of str
    models : tuple of str
    columns : tuple of str
        All columns or arrays of the file.
    rows : int
    numbers : tuple of str
        The columns of numbers without another role; intervals of them can be sliced by.
    split_counts : mapping of str to int
        Rows per split.
    cluster_column, weight_column, time_column, model_column : str or None
    choices : tuple of int
        The distinct numbers of choices, if the rows were made from questions with choices; empty otherwise.
    fit_split, eval_split : str or None
        The splits whose names mark them as meant for fitting and for evaluation.
    """

    format: str
    kind: Kind
    label: str | None = None
    label_form: str = ""
    scores: tuple[str, ...] = ()
    split_column: str | None = None
    groups: tuple[str, ...] = ()
    id_column: str | None = None
    class_names: tuple[str, ...]
    models: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int
    split_counts: Mapping[str, int] = field(default_factory=dict)
    cluster_column: str | None = None
    weight_column: str | None = None
    time_column: str | None = None
    model_column: str | None = None
    choices: tuple[int, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def fit_split(self) -> str | None:
        """The split to fit recalibrators on, if one has a usual name."""
        return usual_split(self.split_counts, FIT_SPLITS)

    @property
    def eval_split(self) -> str | None:
        """The split to evaluate on, if one has a usual name."""
        return judged_split(self.split_counts)

    @property
    def of_two_models(self) -> str:
        """How a file holds several models, with the column that may name them."""
        named = next((name for name in self.groups if plain(name) in MODELS), None)
        column = _quoted(named) if named else "the column that names the model of each row"
        return f"put both into one file, with columns such as mlp:cat, mlp:dog, forest:cat, forest:dog, or below each other, with the role Model for {column} (--model-column {short(named or 'COL')})"

    def sentence(self) -> str:
        """Describe what was recognised in one line."""
        return ", ".join(self.parts())

    def parts(self, most: int = 5) -> list[str]:
        """Say how many rows, classes and models there are, and then what has each role; lists name at most so many, and two numbers fewer."""
        parts = [f"{self.format}: {self.rows:,} row{'s' if self.rows != 1 else ''}"]
        if self.class_names:
            parts.append(f"{len(self.class_names):,} classes ({_some(self.class_names, most)})")
        if len(self.models) > 1:
            parts.append(f"{len(self.models)} models ({_some(self.models, most)})")
        parts = [", ".join(parts)]
        if self.scores:
            softmax = " (their softmax is taken)" if self.kind == "logits" else ""
            parts.append(f"{self.kind} in {span(self.scores)}{softmax}")
        if self.label is not None:
            label = _quoted(self.label)
            if self.label_form == "one-hot" and ", " in self.label:
                label = span(tuple(self.label.split(", ")))
            parts.append(f"label {label} ({self.label_form})")
        elif self.label_form:
            parts.append(self.label_form)
        if self.split_counts:
            each = [f"{short(name) or '(empty)'} {n:,}" for name, n in self.split_counts.items()]
            counts = ", ".join([*each[:8], *(["…"] if len(each) > 8 else [])])
            name = f"split {_quoted(self.split_column)} " if self.split_column else "splits "
            parts.append(f"{name}({counts})")
        columns = {"identifiers": self.id_column, "clusters": self.cluster_column}
        columns |= {"weights": self.weight_column, "times": self.time_column}
        unnamed = {"identifiers 'Unnamed: 0'": "row names"}  # of a file of R or pandas
        named = (f"{words} {_quoted(column)}" for words, column in columns.items() if column)
        parts += [unnamed.get(text, text) for text in named]
        if self.groups:
            parts.append(f"groups {_some(self.groups, most)}")
        if self.numbers:
            parts.append(f"numbers {_some(self.numbers, most - 2)}")
        return parts


def _quoted(name: str | None) -> str:
    return f"'{short(name or '')}'"


def _some(names: tuple[str, ...], most: int) -> str:
    shown = [short(name) for name in names]
    if [*names] == [*map(str, range(len(names)))]:
        most = min(most, 5)
    if len(names) <= most:
        return ", ".join(shown)
    return ", ".join([*shown[: most - 2], "…", shown[-1]])


@dataclass(frozen=True, eq=False, kw_only=True)
class Loaded:
    """A file that was read.

    Attributes
    ----------
    file : str
        File name, without folders.
    size : int
        Bytes of the file.
    models : mapping of str to Predictions or ConfidencePredictions
        At least one model, by name.
    recognition : Recognition
    notices : tuple of Finding
        Findings about the reading, with codes ``DATA...``.
    repairs_offered : tuple of Repair
        Repairs that would make sense but were not requested.
    repairs_made : tuple of str
        Descriptions of the repairs that were requested and applied, for a report.
    style : CsvStyle
        How the file is written, if it is text, so that a calibrated one can be written alike.
    cells : callable or None
        Reads its columns again (`Table.cells`), so that a calibrated one can keep them.
    roles : ColumnRoles
        The role of every column, as it was read.
    own_scores : mapping of str to tuple of str
        By model, the columns whose values are its probabilities, one per class or P(class 1), or its confidence; a calibrated table
        has the calibrated ones there. Without logits, percentages, logarithms and lists.
    ways : tuple of Reading
        Other ways to read the file, which answer another question.
    left_out : mapping of str to Predictions or ConfidencePredictions
        By model, the rows that were left out, as asked, although they have its scores: they lack a label, or a score of another model.
        Their labels mean nothing.
    unlabelled : ndarray of bool
        Which rows of the file were left out for want of a label only, if some are `left_out`.
    """

    file: str
    size: int = 0
    models: Mapping[str, Dataset]
    recognition: Recognition
    hash: Callable[[], str] = lambda: ""
    notices: tuple[Finding, ...] = ()
    repairs_offered: tuple[Repair, ...] = ()
    repairs_made: tuple[str, ...] = ()
    style: CsvStyle = PLAIN_CSV
    cells: Callable[[], dict[str, Any]] | None = None
    roles: ColumnRoles = field(default_factory=ColumnRoles)
    own_scores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ways: tuple[Reading, ...] = ()
    left_out: Mapping[str, Dataset] = field(default_factory=dict)
    unlabelled: BoolArray = field(default_factory=lambda: np.zeros(0, bool))

    @cached_property
    def waiting(self) -> dict[str, Dataset]:
        """By model, the rows of `left_out` that lack a label only."""
        mask, rows = self.unlabelled, self.left_out.items()
        return {k: d.take(m) for k, d in rows if (m := mask[d.file_rows]).any()}

    @property
    def telling(self) -> list[Finding]:
        """The warnings about columns that are no slices because they tell the label."""
        code = Notice.UNUSED_GROUPS.value
        return [n for n in self.notices if n.code == code and n.severity == "warning"]

    @property
    def offered(self) -> tuple[Reading, ...]:
        """The other ways to read the file, and each repair on offer as one."""
        repairs = (Reading(each.label, {"repair": (each.key,)}) for each in self.repairs_offered)
        return (*self.ways, *repairs)

    @cached_property
    def digest(self) -> str:
        """BLAKE2b hash of the bytes of the file in hexadecimal; waits until it is computed."""
        return self.hash()

    def score_columns(self, model: str) -> tuple[str, ...]:
        """The score columns of a model; () if a column names the models, or each has a confidence."""
        if len(self.models) == 1:
            return self.recognition.scores
        return next((s.columns for s in self.roles.scores if s.model == model), ())

    def rows_of(self, model: str) -> tuple[str, ...]:
        """The column that names the models, and the value of one; () if there is none."""
        column = self.recognition.model_column
        return (column, model.removeprefix(f"{column} ")) if column else ()

    def other_scores(self, record: Mapping[str, Any], model: str) -> str:
        """Say that a saved map is for other score columns than those of a model, or that a map was applied to the file before; "" if neither is known."""
        fitted = record.get("scores", {}).get("columns", ())
        taken = self.score_columns(model)
        if fitted and taken and {*fitted} != {*taken}:
            return f"the map was fitted on {listed(fitted)}, and is applied to {listed(taken)}."
        is_second = BEFORE in self.models[model].numbers
        return f"a map was applied to this file before: it has '{BEFORE}'." if is_second else ""

    def named_as_labels(self, data: Dataset) -> Dataset:
        """Rename classes that are only counted to the labels of the file: -1 and 1, or 1, 2, ..."""
        counted = tuple(str(j) for j in range(data.n_classes + 1))
        own = {"-1 and +1": ("-1", "1"), "class index, counted from 1": counted[1:]}
        new = own.get(self.recognition.label_form)
        return replace(data, class_names=new) if new and data.class_names == counted[:-1] else data

    def cells_of(self, data: Dataset) -> tuple[dict[str, Any], IntArray | None] | None:
        """The columns of the file in whose rows `data`, some rows of a model, are written, and the rows among them of `data`.

        These are all rows of the file if `data` are all that were not left out (the rows are None if none was), otherwise those of `data`.
        None if the file has no such cells.
        """
        if self.cells is None:
            return None
        self.hash()  # raises InputError if the file has changed
        cells, rows = self.cells(), data.file_rows
        size = len(next(iter(cells.values())))
        if rows is None:
            return (cells, None) if data.n == size else None
        if data.n == self.first.n and self.recognition.model_column is None:
            return cells, rows
        return {k: v.take(rows) if hasattr(v, "take") else v[rows] for k, v in cells.items()}, None

    @property
    def first(self) -> Dataset:
        """The first model's data."""
        return next(iter(self.models.values()))

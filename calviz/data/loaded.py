"""Reading options, what was recognised, notices, usual names of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from functools import cached_property
from typing import Any, Literal

from calviz.core.errors import Finding, InputError, OptionError, Repair, Severity
from calviz.core.predictions import Dataset
from calviz.core.probabilities import RENORMALISE
from calviz.core.row_columns import Kind
from calviz.data.column_names import is_of_first_class

# ---- Notices

# A new kind takes the number after the largest; codes are never reused. A notice that belongs to none of the kinds below needs a new one.


@unique
class Notice(Enum):
    """Kinds of notices by what they are about; the value is the stable code.

    Attributes
    ----------
    value : str
        The code ("DATA001").
    title : str
        What its notices are about.
    """

    title: str

    COMMENT_LINES = "DATA001", "Lines skipped at the top of a text file"
    ENCODING = "DATA002", "Text that is not UTF-8"
    SCORE_COLUMNS = "DATA003", "Columns that are taken as the scores, and similar ones that are not"
    COMPLEMENT = "DATA004", "Two columns with complementary forecasts of one event"
    LABEL_COLUMN = "DATA005", "A column that is taken as the label without being named like one"
    ROW_SUMS = "DATA006", "Rows whose probabilities do not sum to 1"
    LABEL_VALUES = "DATA007", "Values of the label that are not simply names or numbers of classes"
    UNUSED_GROUPS = "DATA008", "Columns that are not used as groups"
    HALF_PRECISION = "DATA009", "Scores stored in half precision"
    REPAIRED = "DATA010", "Changes that were asked for"
    CONVERTED = "DATA011", "Scores in percent, logarithms, grades, numbers kept in single precision"
    LOGS_AND_HINTS = (
        "DATA012",
        "How logs of language models are read, and columns that may be clusters or weights",
    )
    UNUSED_VALUES = (
        "DATA013",
        "Labels without predictions, and columns that cannot be used as times",
    )
    WEIGHT_ZERO = "DATA014", "Rows of weight 0, which neither fit nor judge"
    LEFT_OUT = "DATA015", "Columns and arrays that are left out"
    MODELS = "DATA016", "A column that names the model of each row"

    def __new__(cls, code: str, title: str) -> Notice:
        """Make a kind whose value is its code."""
        kind = object.__new__(cls)
        kind._value_ = code
        kind.title = title
        return kind

    def finding(self, severity: Severity, message: str) -> Finding:
        """Return a notice of this kind: one sentence."""
        return Finding(self.value, severity, message)


def stored_in_half_precision(what: str) -> Finding:
    """Return the notice about columns or an array; `what` ends with the verb ("2 columns are")."""
    return Notice.HALF_PRECISION.finding(
        "warning",
        f"{what} stored in half precision (3 digits): calibration errors below 0.001 cannot be distinguished from rounding",
    )


# ---- Errors of several formats


def damaged(how: str = "") -> InputError:
    """Return the error about a file that cannot be read to its end; `how` says what is wrong with it, if that is known."""
    detail = f": {how}" if how else ""
    return InputError(f"the file is damaged or incomplete{detail}", remedy="save or copy it again")


def no_rows(what: str = "there are no rows of data") -> InputError:
    """Return the error about a file without rows; `what` is the beginning of its sentence."""
    return InputError(what, remedy="save the file with at least one row of predictions")


# ---- Rows and lines in messages

#: How many places a message names.
NAMED = 5


def place(row: int, line: Callable[[int], int | None]) -> str:
    """Return "row 4 (line 5)", or "row 4" if there is no line number."""
    at = line(row)
    return f"row {row + 1:,}" + (f" (line {at:,})" if at is not None else "")


def join_places(places: list[str], total: int) -> str:
    """Join the places, and add how many more there are."""
    more = total - len(places)
    return ", ".join(places) + (f" and {more:,} more" if more > 0 else "")


# ---- Options and results of reading


@dataclass(frozen=True)
class ReadingOptions:
    """User settings for reading a file; everything left empty is recognised automatically.

    Parameters
    ----------
    label : str, optional
        The column or array that holds the true class.
    scores : tuple of str, optional
        The score columns; an entry that ends in ``*`` is a prefix. In NPZ files, the key of the array.
    models : tuple of str, optional
        The score columns, or prefixes, of which each is a model of its own: its probability of the event.
    model_column : str, optional
        The column that names the model of each row, where each identifier has a row for each model; "" means none.
    kind : {"probabilities", "logits", "confidence"}, optional
        What the scores are: of the classes or the event, or of the prediction being right.
    split_column : str, optional
        The column that holds the split; "" means none.
    groups : tuple of str, optional
        The columns to slice by; () means none.
    id_column : str, optional
        The column that identifies the rows; "" means none.
    class_names : tuple of str, optional
        One name per class, in the order of the score columns.
    label_base : {0, 1}, optional
        Whether numeric labels count the classes from 0 or from 1.
    cluster_column : str, optional
        The column that groups rows which belong together, such as rows of one patient; never guessed.
    weight_column : str, optional
        The column with the weight of each row; never guessed.
    weight_kind : {"importance", "frequency"}
        Whether weights are importance weights on any scale, or counts of aggregated rows, which are then repeated.
    time_column : str, optional
        The column with the time of each row; "" means none.
    prediction_column, correct_column : str, optional
        Beside a confidence: the column with the predicted class, and the one that says whether it was right.
    repair : tuple of str
        Keys of the repairs to apply ("renormalise", "drop-missing", "percent", ...).
    sheet : str, optional
        The sheet of an Excel workbook; if left out, the only one that holds a table of numbers.
    choices : str, optional
        How questions with choices (logs of language models, rows with different numbers of scores) become rows: "top", the top
        choice of each question; "each", one row per choice; or a number, only the questions with that many choices. If left out:
        the scores of all choices if every question has the same number of choices, the top choice otherwise.
    confidence_pattern : str, optional
        A regular expression whose first group, or the one called ``confidence``, is the confidence that a text states, such as
        ``"Sicherheit: ([0-9]+%)"``. If left out, the usual ways are looked for ("Confidence: 85%", "I am 0.85 sure") in logs of language
        models, and in a text column that is named as the scores.
    answers : str, optional
        The column with the answers, where each question has several: one row per question is made of them, with a model for each
        signal of confidence in the most frequent answer (``calviz.data.answers``). In logs of language models it is ``"answer"``. The
        question is the cluster column, or a column with a usual name.
    answer_pattern : str, optional
        A regular expression whose first group, or the one called ``answer``, is the answer in its text. If left out: what follows the
        last "Answer:", else the text without its statement of a confidence.
    same_answers : {"normalised", "exact"}
        Whether answers are the same without case, outer punctuation, repeated spaces and the form of numbers, or only letter by letter.
    """

    label: str | None = None
    scores: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    model_column: str | None = None
    kind: Literal["probabilities", "logits", "confidence"] | None = None
    split_column: str | None = None
    groups: tuple[str, ...] | None = None
    id_column: str | None = None
    class_names: tuple[str, ...] | None = None
    label_base: Literal[0, 1] | None = None
    cluster_column: str | None = None
    weight_column: str | None = None
    weight_kind: Literal["importance", "frequency"] = "importance"
    time_column: str | None = None
    prediction_column: str | None = None
    correct_column: str | None = None
    repair: tuple[str, ...] = ()
    choices: str | None = None
    sheet: str | None = None
    confidence_pattern: str | None = None
    answers: str | None = None
    answer_pattern: str | None = None
    same_answers: Literal["normalised", "exact"] = "normalised"

    def __post_init__(self) -> None:
        for key in ("scores", "models", "groups", "class_names", "repair"):
            value = getattr(self, key)
            if isinstance(value, str):
                value = (value,)
            if value is not None:
                object.__setattr__(self, key, tuple(str(v) for v in value))
        for key, what, known in (
            ("kind", "kind", (None, "probabilities", "logits", "confidence")),
            ("weight_kind", "kind of weights", ("importance", "frequency")),
            ("label_base", "label base", (None, 0, 1)),
            ("same_answers", "comparison of answers", ("normalised", "exact")),
        ):
            if (value := getattr(self, key)) not in known:
                *others, last = (str(each) for each in known if each is not None)
                allowed = f"{', '.join(others)} or {last}"
                raise OptionError(f"the {what} must be {allowed}, got {value!r}.")
        if self.scores is not None and self.models is not None:
            raise OptionError("give the score columns of one model, or the models, not both.")
        if self.answers is None and (self.answer_pattern or self.same_answers != "normalised"):
            raise OptionError("'answer_pattern' and 'same_answers' go with 'answers'.")
        if self.choices is not None:
            choices = str(self.choices)
            number = re.fullmatch("[1-9][0-9]{0,4}", choices, re.ASCII)
            if choices not in ("top", "each") and not number:
                raise OptionError(
                    f"'choices' must be top, each, or the number of choices, got {self.choices!r:.40}."
                )
            object.__setattr__(self, "choices", choices)
        for key in self.repair:
            if key not in REPAIRS:
                raise OptionError(f"there is no repair '{key}'; known: {', '.join(REPAIRS)}.")

    @property
    def kind_of_scores(self) -> Literal["probabilities", "logits"] | None:
        """What the scores are, if they are not the confidence of the prediction."""
        return None if self.kind == "confidence" else self.kind


@dataclass(frozen=True)
class ReadingForMap(ReadingOptions):
    """Settings for reading rows to which a map is applied: labels are not needed, and all columns are kept.

    Parameters
    ----------
    map_classes : tuple of str
        The class names of the map, for a file that does not name its classes; () if the map has none.
    """

    map_classes: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: ReadingOptions, map_classes: Iterable[str]) -> ReadingForMap:
        """Return the same settings for rows to which a map with these classes is applied."""
        return cls(**vars(options), map_classes=tuple(map_classes))

    def labels_rename(self, named: tuple[str, ...], names: tuple[str, ...]) -> bool:
        """Whether class names come from labels, such as yes and no, and not from the score columns, which name `named`, or the map.

        Such labels say nothing about the scores, and are kept as they are.
        """
        return not {*named} & {*names} and not classes_agree(names, self.map_classes)

    def names_of_classes(self, named: tuple[str, ...], k: int) -> tuple[str, ...]:
        """Names of the K classes of a file without labels whose score columns name `named`."""
        if len(named) == k:
            return named
        if len(self.map_classes) != k:
            return tuple(str(j) for j in range(k))
        # If the only column is that of class 0, the order is not that of the map, which says so.
        reverse = len(named) == 1 and is_of_first_class(named[0], self.map_classes)
        return self.map_classes[::-1] if reverse else self.map_classes


def classes_agree(names: tuple[str, ...], of_map: tuple[str, ...]) -> bool:
    """Whether the classes of a file are those of a map, in the same order; numbers in ascending order say nothing but the order.

    A map without class names is for any classes.

    >>> classes_agree(("1", "2"), ("cat", "dog")), classes_agree(("1", "2"), ("0", "1"))
    (True, True)
    >>> classes_agree(("1", "0"), ("0", "1")), classes_agree(("cat", "dog"), ("0", "1"))
    (False, False)
    """
    if not of_map or names == of_map:
        return True
    return (
        len(names) == len(of_map)
        and _are_numbers(names)
        and (_are_numbers(of_map) or not any(name.isdecimal() for name in of_map))
    )


def _are_numbers(names: tuple[str, ...]) -> bool:
    return any(names == tuple(str(j + base) for j in range(len(names))) for base in (0, 1))


#: How notices of changes begin.
AS_ASKED = "changed as asked: "

DROP_MISSING = Repair("drop-missing", "leave out the rows with missing values")
DROP_HEADERS = Repair("drop-headers", "leave out the lines that repeat the header")
PERCENT = Repair("percent", "divide the values by 100")
SOFTMAX = Repair("softmax", "read the values as logits and take their softmax")
SIGMOID = Repair("sigmoid", "read the value as the logit of class 1 and take its sigmoid")

REPAIRS: Mapping[str, Repair] = {
    r.key: r for r in (RENORMALISE, DROP_MISSING, DROP_HEADERS, PERCENT, SOFTMAX, SIGMOID)
}

#: Common names of splits for fitting and for evaluation, in order of preference.
FIT_SPLITS = ("calibration", "calib", "cal", "kalibrierung", "validation", "valid", "val", "validierung", "dev", "fit",
              "train", "training")  # fmt: skip
EVAL_SPLITS = ("test", "testing", "evaluation", "eval", "holdout", "hold-out", "held-out")


def usual_split(splits: Iterable[str], usual: tuple[str, ...]) -> str | None:
    """Return the split whose name is among the usual ones, without regard to case and outer spaces; the most preferred of several.

    >>> usual_split(["train", "Val ", "test"], FIT_SPLITS), usual_split(["a", "b"], EVAL_SPLITS)
    ('Val ', None)
    """
    by_name = {name.strip().casefold(): name for name in reversed(list(splits))}
    return next((by_name[name] for name in usual if name in by_name), None)


def fit_split_for(data: Dataset, eval_split: str | None) -> str | None:
    """Return the split to fit on while `eval_split` is judged: one whose name suggests it, otherwise the first other split.

    None if there is no other split. If all rows are judged (`eval_split` is None), only a split whose name suggests it.
    """
    others = [name for name in data.that_count().split_names if name != eval_split]
    usual = usual_split(others, FIT_SPLITS)
    if usual is not None or eval_split is None:
        return usual if len(data.split_names) > 1 else None
    return next(iter(others), None)


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What was recognised in a file; every item can be overridden by `ReadingOptions`.

    Attributes
    ----------
    format : str
        "CSV separated by ';'", "NPZ", ...
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
        return usual_split(self.split_counts, EVAL_SPLITS)

    def sentence(self) -> str:
        """Describe what was recognised in one line."""
        parts = [f"{self.rows:,} row{'s' if self.rows != 1 else ''}"]
        if self.class_names:
            shown = _some(self.class_names, 5)
            parts.append(f"{len(self.class_names):,} classes ({shown})")
        if len(self.models) > 1:
            parts.append(f"{len(self.models)} models ({_some(self.models, 5)})")
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
        parts += [f"{words} {_quoted(column)}" for words, column in columns.items() if column]
        if self.groups:
            parts.append(f"groups {_some(self.groups, 5)}")
        if self.numbers:
            parts.append(f"no role for {_some(self.numbers, 3)}")
        return f"{self.format}: {', '.join(parts)}"


def short(text: str, length: int = 40) -> str:
    """Put text on one line and shorten it to `length` characters, for use inside a sentence."""
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def known_columns(columns: Iterable[str]) -> str:
    """List the available columns, for the end of a sentence."""
    names = [short(c) for c in columns]
    more = f" and {len(names) - 12:,} more" if len(names) > 12 else ""
    return f"there are {', '.join(names[:12])}{more}"


def _quoted(name: str | None) -> str:
    return f"'{short(name or '')}'"


def _some(names: tuple[str, ...], most: int) -> str:
    shown = [short(name) for name in names]
    if len(names) <= most:
        return ", ".join(shown)
    return ", ".join([*shown[: most - 2], "…", shown[-1]])


def span(names: tuple[str, ...]) -> str:
    """Names for use in a sentence; the first and the last if there are more than two."""
    if len(names) <= 2:
        return " and ".join(short(name) for name in names)
    return f"{short(names[0])} … {short(names[-1])}"


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
    types : mapping of str to pyarrow.Field
        Types of the columns, if the file declares them, by the names under which `calviz.data.writing` writes them; nullable are those
        with missing values.
    waiting : mapping of str to Predictions or ConfidencePredictions
        By model, the rows that were left out, as asked, for want of a label only; their labels mean nothing.
    """

    file: str
    size: int = 0
    models: Mapping[str, Dataset]
    recognition: Recognition
    hash: Callable[[], str] = lambda: ""
    notices: tuple[Finding, ...] = ()
    repairs_offered: tuple[Repair, ...] = ()
    repairs_made: tuple[str, ...] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    waiting: Mapping[str, Dataset] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """BLAKE2b hash of the bytes of the file in hexadecimal; waits until it is computed."""
        return self.hash()

    def named_as_labels(self, data: Dataset) -> Dataset:
        """Rename classes that are only counted to the labels of the file: -1 and 1, or 1, 2, ..."""
        counted = [str(j) for j in range(data.n_classes)]
        own = {
            "-1 and +1": ["-1", "1"],
            "class index, counted from 1": [*counted[1:], str(len(counted))],
        }
        names = own.get(self.recognition.label_form)
        if names is None or list(data.class_names) != counted:
            return data
        return replace(data, class_names=tuple(names))

    @property
    def first(self) -> Dataset:
        """The first model's data."""
        return next(iter(self.models.values()))

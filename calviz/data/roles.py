"""The role of every column of a file, and a table as recognition sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from calviz.core.errors import Finding, Severity
from calviz.data import column_names
from calviz.data.column_names import is_of_first_class
from calviz.data.evidence import is_label_like
from calviz.data.format import Column, Table
from calviz.data.loaded import Notice, ReadingOptions

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


@dataclass
class Found:
    """The scores of all models or the confidence, and what says which class is true.

    Attributes
    ----------
    scores : tuple of ScoreColumns
    confidence : Confidence or None
    label : str or None
    one_hot : tuple of str
        The 0/1 columns of the classes, in the order of the scores.
    multilabel : bool
        Whether each class has a label of its own.
    correct : str or None
        A column that is missing where the label is not known.
    """

    scores: tuple[ScoreColumns, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    multilabel: bool = False
    correct: str | None = None

    @property
    def used(self) -> set[str]:
        """The columns that have a role."""
        columns = {c for s in self.scores for c in (*s.columns, *s.logits)}
        columns |= {c for c in (self.label, self.correct, *self.one_hot) if c}
        if self.confidence is not None:
            roles = (self.confidence.score, self.confidence.correct, self.confidence.predicted)
            columns |= {c for c in roles if c is not None}
        return columns


@dataclass(frozen=True)
class ColumnRoles:
    """The role of every column; `numbers` are carried along with the scores, `unused` ones hold too many distinct fractions to slice by.

    `kept` columns, which a map leaves as they are, have no other role. With `multilabel`, each class has a label of its own.
    """

    scores: tuple[ScoreColumns, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    multilabel: bool = False
    correct: str | None = None
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
            self.plain.setdefault(column_names.plain(column.name), column.name)

    def named(self, names: tuple[str, ...], taken: set[str]) -> str | None:
        """The first column with one of the names (in order of preference) that is not taken."""
        candidates = (self.plain.get(name) for name in names)
        return next((c for c in candidates if c is not None and c not in taken), None)

    def predicted(self, taken: set[str]) -> str | None:
        """The column with the predicted class: the chosen one, by its name, or the only one with a word for predictions."""
        if self.options.prediction_column is not None:
            return self.options.prediction_column
        named = self.named(column_names.PREDICTED, taken)
        if named is not None and is_label_like(self.table[named]):
            return named
        worded = [
            c.name
            for c in self.table.columns
            if c.name not in taken
            and {*column_names.words(c.name)} & column_names.PREDICTED_WORDS
            and is_label_like(c)
        ]
        return worded[0] if len(worded) == 1 else None

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
            if c.type == "text" and column_names.by_prefix(c.name)[1] in ("probabilities", "logits")
        ]

    def note(self, kind: Notice, severity: Severity, message: str) -> None:
        """Add a notice."""
        self.notices.append(kind.finding(severity, message))

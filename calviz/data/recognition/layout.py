"""The role of every column of a file: the result of recognition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from calviz.core.finding import Finding
from calviz.data.recognition.column_names import is_of_first_class

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

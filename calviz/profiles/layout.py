"""What is profiled: the columns of a frame, and what each of them means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from calviz.core.errors import OptionError
from calviz.core.options import check_choice

#: How long a bucket of time is.
Every = Literal["hour", "day", "week", "month", "quarter", "year"]
#: How narwhals writes it.
UNITS: dict[Every, str] = {
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "1q",
    "year": "1y",
}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The columns that a profile is made of.

    Attributes
    ----------
    label : str
        The column with the true class; of confidences the column that says whether the prediction was right.
    scores : tuple of str
        One column that is P(class 1), one column per class in their order, or one confidence.
    classes : tuple
        What the label column holds for each class, in their order.
    class_names : tuple of str
        Empty for confidences whose classes are not known.
    confidence : bool
        Whether the score is the confidence of the predicted class, and the label whether it was right.
    split, time : str or None
    groups : tuple of str
        Columns to slice by.
    logits : tuple of str
        The columns that `scores` are made of (`calviz.profiles.logits`); empty where they are columns themselves.
    count : str or None
        The column that says how many rows each row stands for (frequency weights).
    weight : str or None
        The column that says how much each row counts (importance weights).
    true_class : bool
        Whether cells of more than two classes are apart for each true class; those of two always are.
    each_class : bool
        Whether every class of more than two has cells of its own probability, against the rest; two classes always have.
    every : {"hour", "day", "week", "month", "quarter", "year"}
        The bucket that times are counted in.
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
    every: Every = "day"
    true_class: bool = False
    each_class: bool = False

    def __post_init__(self) -> None:
        check_choice("every", self.every, get_args(Every))
        if not self.confidence and len(self.classes) < 2:
            raise OptionError("a profile needs at least two classes.")

    @property
    def reduction(self) -> str:
        """The written form of the reduction whose score the cells hold."""
        return "positive" if self.two_classes else "top-label"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of scores that the source has: logits, or `scores`."""
        return self.logits or self.scores

    @property
    def logs(self) -> tuple[str, ...]:
        """Columns with the logarithms of `scores`, where these are made of logits."""
        return tuple(f"{name} log" for name in self.scores) if self.logits else ()

    @property
    def two_classes(self) -> bool:
        """Whether the score is that of the positive class of two."""
        return not self.confidence and len(self.classes) == 2

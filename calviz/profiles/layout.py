"""The columns of a frame to profile, and their roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from calviz.core.errors import OptionError
from calviz.core.options import check_choice

#: Length of a bucket of time.
TimeUnit = Literal["hour", "day", "week", "month", "quarter", "year"]
#: The same in the notation of narwhals.
UNITS: dict[TimeUnit, str] = {
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "1q",
    "year": "1y",
}


@dataclass(frozen=True, kw_only=True)
class ProfileColumns:
    """The columns from which a profile is made.

    Attributes
    ----------
    label : str
        The column with the true class; for confidences, the column that says whether the prediction was right.
    scores : tuple of str
        One column with P(class 1), one column per class in order, or one column with the confidence.
    classes : tuple
        The value in the label column for each class, in order.
    class_names : tuple of str
        Names of the classes; empty for confidences whose classes are not known.
    confidence : bool
        Whether the score is the confidence of the predicted class, and the label says whether the prediction was right.
    split, time : str or None
    groups : tuple of str
        Columns to slice by.
    logits : tuple of str
        The columns from which `scores` are computed (`calviz.profiles.logits`); empty if `scores` are columns of the source.
    count : str or None
        The column with frequency weights: how many rows each row stands for.
    weight : str or None
        The column with importance weights.
    true_class : bool
        Whether to keep separate cells for each true class; with two classes this is always so.
    each_class : bool
        Whether to also keep cells of the probability of each class, one-vs-rest; with two classes this is always so.
    every : {"hour", "day", "week", "month", "quarter", "year"}
        Length of the buckets of time.
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
    every: TimeUnit = "day"
    true_class: bool = False
    each_class: bool = False

    def __post_init__(self) -> None:
        check_choice("every", self.every, get_args(TimeUnit))
        if not self.confidence and len(self.classes) < 2:
            raise OptionError("a profile needs at least two classes.")

    @property
    def reduction(self) -> str:
        """Name of the reduction whose score the cells hold."""
        return "positive" if self.two_classes else "top-label"

    @property
    def columns(self) -> tuple[str, ...]:
        """The score columns of the source: logits, or `scores`."""
        return self.logits or self.scores

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of the source that hold numbers: scores and weights."""
        return (*self.columns, *(name for name in (self.count, self.weight) if name is not None))

    @property
    def logs(self) -> tuple[str, ...]:
        """Columns with the logarithms of `scores`, if these are computed from logits."""
        return tuple(f"{name} log" for name in self.scores) if self.logits else ()

    @property
    def two_classes(self) -> bool:
        """Whether there are two classes, so that the score is that of the positive class."""
        return not self.confidence and len(self.classes) == 2

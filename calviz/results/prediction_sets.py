"""Result types of prediction sets: coverage and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calviz.core.arrays import IntArray
from calviz.results.comparison import RowsUsed
from calviz.results.metric_result import Interval
from calviz.text.words import counted, decimal, level_text, percent, shorten

if TYPE_CHECKING:
    import pandas as pd

#: How sets are formed.
SetMethod = Literal["lac", "aps"]


@dataclass(frozen=True)
class SetsOf:
    """Coverage and size of the sets of some rows.

    Attributes
    ----------
    name : str
        The true class of the rows, or "all rows".
    rows, covered : int
        Number of rows, and of those whose set contains the true class.
    coverage, coverage_interval : float, Interval
        Share of covered rows, with its exact (Clopper-Pearson) interval; weighted for weighted rows, `covered` is not.
    size, size_interval : float, Interval
        Mean number of classes in a set, weighted in the same way, with its interval by the normal approximation.
    """

    name: str
    rows: int
    covered: int
    coverage: float
    coverage_interval: Interval
    size: float
    size_interval: Interval


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Coverage and size of the prediction sets of the judged rows.

    Attributes
    ----------
    name : str
    method : {"lac", "aps"}
    coverage : float
        The requested coverage.
    threshold : float
        A class is in the set if its nonconformity score is at most this; with infinity every set holds all classes.
    level : float
        Level of the intervals.
    fit, evaluation : RowsUsed
        The rows that the threshold was chosen on, and those that were judged.
    overall : SetsOf
    classes : tuple of SetsOf
        By true class, for classes that have rows.
    sizes : ndarray of int, shape (K + 1,)
        Number of rows by number of classes in their set.
    """

    name: str
    method: SetMethod
    coverage: float
    threshold: float
    level: float
    fit: RowsUsed
    evaluation: RowsUsed
    overall: SetsOf
    classes: tuple[SetsOf, ...]
    sizes: IntArray

    def columns(self) -> Mapping[str, list[Any]]:
        """Return columns with one entry for all rows and one per true class."""
        every = (self.overall, *self.classes)
        return {
            "rows of": [s.name for s in every],
            "rows": [s.rows for s in every],
            "coverage": [s.coverage for s in every],
            "coverage_low": [s.coverage_interval.low for s in every],
            "coverage_high": [s.coverage_interval.high for s in every],
            "size": [s.size for s in every],
            "size_low": [s.size_interval.low for s in every],
            "size_high": [s.size_interval.high for s in every],
        }

    def frame(self) -> pd.DataFrame:
        """Return `columns` as a data frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns()))

    def reading(self) -> str:
        """Describe coverage, mean size, and the class with the least coverage, in sentences."""
        s, level = self.overall, level_text(self.level)
        low, high = s.coverage_interval
        text = (
            f"The sets hold the true class of {percent(s.coverage)} of {counted(s.rows, 'row')} ({level} CI {percent(low)} to "
            f"{percent(high)}) where {percent(self.coverage)} were asked for, with {decimal(s.size, 2)} classes on average ({level} CI "
            f"{decimal(s.size_interval.low, 2)} to {decimal(s.size_interval.high, 2)}); {percent(self.sizes[1] / s.rows)} of the sets "
            "have one class."
        )
        below = [c for c in self.classes if c.coverage_interval.high < self.coverage]
        if below:
            worst = min(below, key=lambda c: c.coverage)
            text += (
                f" They are valid on average, not for every class: of '{shorten(worst.name, 40)}' they hold {percent(worst.coverage)} "
                f"({level} CI {percent(worst.coverage_interval.low)} to {percent(worst.coverage_interval.high)})."
            )
        return text

"""Result types of the search for slices that are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calviz.core.arrays import BoolArray
from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.core.predictions import Dataset
from calviz.results.display import Displayed, Summary
from calviz.results.metric_result import Interval
from calviz.text.words import counted, percent, points, shorten

if TYPE_CHECKING:
    import pandas as pd

Against = Literal["calibrated", "rest"]
#: Columns and their values; all conditions hold in the rows of a slice.
Where = tuple[tuple[str, str], ...]


def rows_where(data: Dataset, where: Where) -> BoolArray | None:
    """Mask of the rows of a slice, shape (n,); None, for all rows, without conditions.

    Raises
    ------
    OptionError
        On an unknown column.
    InputError
        On an unknown value.
    """
    mask: BoolArray | None = None
    for column, value in where:
        if column not in data.groups:
            groups = ", ".join(data.groups) or "none"
            raise OptionError(f"there is no group column '{column}'; known: {groups}.")
        rows = data.groups[column].mask(value)
        mask = rows if mask is None else np.logical_and(mask, rows)
    return mask


def where_words(where: Where, limit: int = 40) -> str:
    """Return the condition in words, with each name shortened to `limit` characters.

    >>> where_words((("league", "Serie A"), ("month", "5")))
    'league = Serie A, month = 5'
    """
    return ", ".join(f"{shorten(c, limit)} = {shorten(v, limit)}" for c, v in where)


@dataclass(frozen=True)
class Slice:
    """Rows that share the values of one or two columns.

    Attributes
    ----------
    where : tuple of (str, str)
        One or two pairs of column and value.
    rows : int
    score, hits : float
        Mean score and share of hits.
    gap : float
        Score minus hits: above 0 overconfident, below 0 underconfident.
    interval : Interval
        Interval of the gap by the normal approximation, not adjusted for the number of slices.
    p_value : float
        Two-sided p-value of the gap (see `Slices.against`).
    adjusted : float
        The p-value adjusted by Benjamini and Hochberg; the slice is off if it is at most the false discovery rate.
    ece, ece_noise : float
        ECE, and its mean for a calibrated model on the same number of rows.
    """

    where: Where
    rows: int
    score: float
    hits: float
    gap: float
    interval: Interval
    p_value: float
    adjusted: float
    ece: float
    ece_noise: float

    @property
    def name(self) -> str:
        """The condition in words: "league = Serie A, month = 5"."""
        return ", ".join(f"{column} = {value}" for column, value in self.where)


@dataclass(frozen=True, repr=False)
class Slices(Displayed):
    """All slices with enough rows, the most certainly off first.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    gap : float
        Gap of all rows together.
    reduction : str
    against : {"calibrated", "rest"}
        What a slice is tested against: a calibrated model, or the rows that are not in it.
    min_rows : int
    rate : float
        Controlled false discovery rate.
    bins : int
        Number of bins of the ECE.
    slices : tuple of Slice
    small : int
        Number of slices with too few rows.
    skipped : tuple of str
        Columns or pairs of columns that were left out, each with its reason.
    """

    name: str
    rows: int
    gap: float
    reduction: str
    against: Against
    min_rows: int
    rate: float
    bins: int
    slices: tuple[Slice, ...]
    small: int
    skipped: tuple[str, ...] = ()

    def summary(self) -> Summary:
        """Summarise the result: the slices, the most certainly off first."""
        shown = self.slices[:20]
        more = len(self.slices) - len(shown)
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.slices), 'slice')}, {len(self.off)} off beyond chance",
            header=("slice", "rows", "score", "hits", "gap (points)", "off"),
            rows=tuple(
                (
                    s.name,
                    f"{s.rows:,}",
                    percent(s.score, 2),
                    percent(s.hits, 2),
                    points(s.gap),
                    "yes" if s in self.off else "",
                )
                for s in shown
            ),
            notes=((f"and {more} more",) if more else ()) + self.skipped,
        )

    @property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, adjusted for all slices."""
        return tuple(s for s in self.slices if s.adjusted <= self.rate)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per slice."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "slice": s.name,
                "rows": s.rows,
                "score": s.score,
                "hits": s.hits,
                "gap": s.gap,
                "low": s.interval.low,
                "high": s.interval.high,
                "p_value": s.p_value,
                "adjusted_p_value": s.adjusted,
                "off": s.adjusted <= self.rate,
                "ece": s.ece,
                "ece_noise": s.ece_noise,
            }
            for s in self.slices
        )

"""The result of looking at slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calviz.core.arrays import BoolArray
from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.core.predictions import Dataset
from calviz.results.evaluation import Interval
from calviz.results.shown import Shown, Summary
from calviz.text.words import counted, percent, points, shorten

if TYPE_CHECKING:
    import pandas as pd

Against = Literal["calibrated", "rest"]
#: Columns and the values that they hold, all of them, in the rows of a slice.
Where = tuple[tuple[str, str], ...]


def rows_where(data: Dataset, where: Where) -> BoolArray | None:
    """The rows of a slice as a mask, shape (n,); None, which is all rows, where there is no condition.

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
            known = ", ".join(data.groups) or "none"
            raise OptionError(f"there is no group column '{column}'; known: {known}.")
        one = data.groups[column].mask(value)
        mask = one if mask is None else np.logical_and(mask, one)
    return mask


def where_words(where: Where, limit: int = 40) -> str:
    """The condition in plain words, each name cut at `limit`.

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
        Column and value, one or two of them.
    rows : int
    score, hits : float
        Mean score and share of hits.
    gap : float
        Score minus hits: above 0 overconfident, below 0 underconfident.
    interval : Interval
        Of the gap, by the normal approximation.
    p_value : float
        Of the gap being chance, two-sided (see `Slices.against`).
    adjusted : float
        The p-value after Benjamini and Hochberg: called off where it is at most the false discovery rate.
    ece, ece_noise : float
        ECE, and what a calibrated model would show on average with the same number of rows.
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
class Slices(Shown):
    """All slices that have enough rows, the most surely off first.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows : int
    gap : float
        Of all rows together.
    reduction : str
    against : {"calibrated", "rest"}
        What a slice is tested against: a calibrated model, or the rows that are not in it.
    min_rows : int
    rate : float
        The false discovery rate that is controlled.
    bins : int
        Of the ECE.
    slices : tuple of Slice
    small : int
        How many slices have too few rows.
    skipped : tuple of str
        Columns or pairs that were left out, each with its reason.
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
        """The result in a few words: the slices, those that are most surely off first."""
        shown = self.slices[:20]
        more = len(self.slices) - len(shown)
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.slices), 'slice')}, {len(self.off)} off beyond chance",
            header=("slice", "rows", "score", "hits", "gap (points)", "off"),
            rows=tuple(
                (
                    s.name,
                    f"{s.rows:,}",
                    percent(s.score),
                    percent(s.hits),
                    points(s.gap),
                    "yes" if s in self.off else "",
                )
                for s in shown
            ),
            notes=((f"and {more} more",) if more else ()) + self.skipped,
        )

    @property
    def off(self) -> tuple[Slice, ...]:
        """Slices that are off beyond chance, all of them looked at together."""
        return tuple(s for s in self.slices if s.adjusted <= self.rate)

    def frame(self) -> pd.DataFrame:
        """One row per slice."""
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

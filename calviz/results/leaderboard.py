"""The leaderboards of an arena."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.results.arena import SCORES, ResultTable
from calviz.results.metric_result import Interval

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The results of one method on a leaderboard; all mappings are by score key.

    Attributes
    ----------
    method : str
    experiments : int
        Number of experiments in which it takes part.
    failed : int
        Number of these in which it has no score.
    winrate : mapping of str to float
        Mean share of the other methods with a strictly larger score.
    interval : mapping of str to Interval
        95 % bootstrap interval of the winrate (see `Leaderboard.units`); None if there is nothing to resample.
    elo : mapping of str to float
        Bradley-Terry strength with mean 1,000; 400 points are a factor of ten in the odds.
    elo_interval : mapping of str to Interval
    rank : mapping of str to float
        Mean rank over the blocks of the critical-difference diagram.
    gain : mapping of str to float
        Mean score without calibration minus that of the method; 0.01 of the Brier score is one point.
    median_gain : mapping of str to float
    worse_than_none : mapping of str to float
        Mean share of the experiments with a strictly larger score than without calibration.
    seconds : float
        Median time.
    """

    method: str
    experiments: int
    failed: int = 0
    winrate: Mapping[str, float]
    interval: Mapping[str, Interval | None] = field(default_factory=dict)
    elo: Mapping[str, float] = field(default_factory=dict)
    elo_interval: Mapping[str, Interval | None] = field(default_factory=dict)
    rank: Mapping[str, float] = field(default_factory=dict)
    gain: Mapping[str, float] = field(default_factory=dict)
    median_gain: Mapping[str, float] = field(default_factory=dict)
    worse_than_none: Mapping[str, float] = field(default_factory=dict)
    seconds: float = math.nan


@dataclass(frozen=True)
class CriticalDifference:
    """Friedman's test and Nemenyi's critical difference (Demšar 2006).

    Attributes
    ----------
    ranks : mapping of str to float
        Mean rank by method, the best (smallest) first.
    blocks : int
        Number of data sets or experiments that were ranked.
    unit : str
        What was ranked: "data sets" or "experiments".
    difference : float
        Mean ranks closer than this are not significantly different at 5 %.
    statistic, p_value : float
        Of Friedman's test of the hypothesis that all methods are equal.
    """

    ranks: Mapping[str, float]
    blocks: int
    unit: str
    difference: float
    statistic: float
    p_value: float

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """Return the maximal groups of two or more neighbouring methods that are not significantly different.

        >>> CriticalDifference({"a": 1.0, "b": 1.5, "c": 2.6}, 9, "data sets", 1.2, 1.0, 0.1).cliques()
        (('a', 'b'), ('b', 'c'))
        """
        names, values = list(self.ranks), list(self.ranks.values())
        groups: list[tuple[str, ...]] = []
        reached = 0
        for first, value in enumerate(values):
            last = max(i for i, v in enumerate(values) if v - value < self.difference or i == first)
            if last > first and last + 1 > reached:
                groups.append(tuple(names[first : last + 1]))
                reached = last + 1
        return tuple(groups)


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Methods on the same experiments; iterates over the standings, the best by Brier score first.

    Attributes
    ----------
    key, title : str
        Stable name, and title for display.
    table : ResultTable
    standings : mapping of str to Standing
    units : str
        What was resampled for the intervals, in words.
    critical : mapping of str to CriticalDifference
        By score; empty if methods take part in different experiments, or if there are too few experiments or methods.
    left_out : tuple of str
        Methods that take part in only some of the benchmarks, and are not on the board.
    baseline : str or None
        The method without calibration.
    """

    key: str
    title: str
    table: ResultTable
    standings: Mapping[str, Standing]
    units: str
    critical: Mapping[str, CriticalDifference] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @property
    def baseline(self) -> str | None:
        """The method without calibration; None if there is none."""
        return self.table.baseline

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.standings.values())

    def __len__(self) -> int:
        return len(self.standings)

    def __getitem__(self, method: str) -> Standing:
        try:
            return self.standings[method]
        except KeyError:
            methods = ", ".join(self.standings)
            raise OptionError(f"'{method}' is not on this leaderboard; it has {methods}.") from None

    def ranking(self, score: str = SCORES[0]) -> tuple[Standing, ...]:
        """Return the standings from the best to the worst winrate by one score; ties are ordered by name."""
        return tuple(sorted(self, key=lambda s: (-s.winrate[score], s.method)))

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per method, the best by Brier score first."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame([_row(s) for s in self]).set_index("method")


def _row(s: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"method": s.method}
    for key in SCORES:
        low, high = s.interval.get(key) or (math.nan, math.nan)
        row |= {
            f"winrate_{key}": s.winrate[key],
            f"winrate_{key}_low": low,
            f"winrate_{key}_high": high,
            f"elo_{key}": s.elo.get(key, math.nan),
            f"rank_{key}": s.rank.get(key, math.nan),
            f"gain_{key}": s.gain.get(key, math.nan),
            f"median_gain_{key}": s.median_gain.get(key, math.nan),
            f"worse_than_none_{key}": s.worse_than_none.get(key, math.nan),
        }
    return row | {"seconds": s.seconds, "experiments": s.experiments, "failed": s.failed}


@dataclass(frozen=True, eq=False)
class Arena:
    """All leaderboards of a result table.

    Attributes
    ----------
    overall : Leaderboard
        All experiments; each method is compared with those that take part in the same experiments.
    boards : tuple of Leaderboard
        One per kind of task; tasks share one if some benchmark has both two and more classes.
    whole : ResultTable
        All results, including methods that are on no board.
    strata : mapping of str to tuple of Leaderboard
        For each board, by key: leaderboards by range of calibration rows, then by range of classes; means over experiments.
    notes : tuple of str
        Remarks for readers.
    """

    overall: Leaderboard
    boards: tuple[Leaderboard, ...]
    whole: ResultTable
    strata: Mapping[str, tuple[Leaderboard, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

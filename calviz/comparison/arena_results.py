"""What an arena returns: a table of results, leaderboards, and sentences about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, read_only
from calviz.core.entry_specs import METRICS, RECALIBRATORS, UNCALIBRATED, Interval
from calviz.core.errors import DataFrame, InputError, OptionError, claim, data_frame, picked
from calviz.core.words import counted, listed, percent, shorten

#: Keys of the proper scores that an arena judges by; lower is better.
SCORES = ("brier", "nll")


@dataclass(frozen=True, order=True)
class Experiment:
    """One model on one data set, whose probabilities are calibrated on some rows and judged on others.

    Attributes
    ----------
    benchmark : str
        The collection it belongs to; benchmarks have equal weight, however many experiments they have.
    dataset : str
        Experiments on the same data set are dependent; intervals are over data sets.
    model : str
    rows : int
        Number of calibration rows.
    evaluation_rows : int
        Number of evaluation rows.
    classes : int
    """

    benchmark: str
    dataset: str
    model: str
    rows: int
    evaluation_rows: int
    classes: int

    @property
    def name(self) -> tuple[str, str, str]:
        """Unique name: benchmark, data set and model."""
        return self.benchmark, self.dataset, self.model


@dataclass(frozen=True)
class MethodScore:
    """The result of one method in one experiment.

    Attributes
    ----------
    method : str
    scores : mapping of str to float
        By the keys of `SCORES`; nan if it failed.
    seconds : float
        Time of the fit and of its application.
    reason : str or None
        Why it failed.
    """

    method: str
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float = math.nan
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Scores of methods (columns) in experiments (rows).

    Attributes
    ----------
    experiments : tuple of Experiment, n of them
    methods : tuple of str, K of them
    scores : mapping of str to ndarray, shape (n, K)
        By the keys of `SCORES`; nan where a method has no score.
    seconds : ndarray, shape (n, K)
    entered : ndarray of bool, shape (n, K)
        Whether a method takes part in an experiment; without a score it then beats no other method.
    baseline : str or None
        The method without calibration, if there is one.
    reasons : mapping of (int, str) to str
        Why a method failed, by index of the experiment and method.
    """

    experiments: tuple[Experiment, ...]
    methods: tuple[str, ...]
    scores: Mapping[str, FloatArray]
    seconds: FloatArray
    entered: BoolArray
    baseline: str | None = None
    reasons: Mapping[tuple[int, str], str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        results: Iterable[tuple[Experiment, Iterable[MethodScore]]],
        *,
        baseline: str | None = UNCALIBRATED,
        methods: Sequence[str] | None = None,
    ) -> Self:
        """Combine results into a table; an experiment may come in several parts.

        Parameters
        ----------
        results : iterable of (Experiment, iterable of MethodScore)
        baseline : str, optional
            Name of the method without calibration.
        methods : sequence of str, optional
            Only these methods, in this order; if left out, all, in order of first appearance.

        Raises
        ------
        InputError
            If there are no results, or a result occurs twice with different scores.
        """
        merged, names = _merged(results, methods)
        order = tuple(names) if methods is None else tuple(m for m in methods if m in names)
        if not order:
            raise InputError("there are no results", remedy="give files that hold some")
        shape = (len(merged), len(order))
        scores = {key: np.full(shape, math.nan) for key in SCORES}
        seconds, entered = np.full(shape, math.nan), np.zeros(shape, dtype=np.bool_)
        reasons: dict[tuple[int, str], str] = {}
        for i, (_, by_method) in enumerate(merged):
            for j, method in enumerate(order):
                if (result := by_method.get(method)) is None:
                    continue
                entered[i, j], seconds[i, j] = True, result.seconds
                for key in SCORES:
                    scores[key][i, j] = result.scores.get(key, math.nan)
                if result.reason:
                    reasons[i, method] = result.reason
        return cls(
            tuple(experiment for experiment, _ in merged),
            order,
            {key: read_only(value) for key, value in scores.items()},
            read_only(seconds),
            read_only(entered),
            baseline if baseline in order else None,
            reasons,
        )

    def __len__(self) -> int:
        return len(self.experiments)

    def take(
        self, rows: Sequence[int] | IntArray | BoolArray, methods: Sequence[str] | None = None
    ) -> Self:
        """Return the table of some experiments and, optionally, some methods; methods that take part in none of them are dropped."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        columns = [
            j
            for j, m in enumerate(self.methods)
            if (methods is None or m in methods) and self.entered[chosen, j].any()
        ]
        part = np.ix_(chosen, np.array(columns, dtype=np.intp))
        names = tuple(self.methods[j] for j in columns)
        new = {int(old): number for number, old in enumerate(chosen)}
        return type(self)(
            tuple(self.experiments[i] for i in chosen),
            names,
            {key: read_only(value[part]) for key, value in self.scores.items()},
            read_only(self.seconds[part]),
            read_only(self.entered[part]),
            self.baseline if self.baseline in names else None,
            {(new[i], m): why for (i, m), why in self.reasons.items() if i in new and m in names},
        )

    def results(self) -> Iterable[tuple[Experiment, tuple[MethodScore, ...]]]:
        """Yield the results by experiment; the inverse of `of`."""
        for i, experiment in enumerate(self.experiments):
            yield (
                experiment,
                tuple(
                    MethodScore(
                        method,
                        {key: float(self.scores[key][i, j]) for key in SCORES},
                        float(self.seconds[i, j]),
                        self.reasons.get((i, method)),
                    )
                    for j, method in enumerate(self.methods)
                    if self.entered[i, j]
                ),
            )

    def frame(self) -> DataFrame:
        """Return a table with one row per experiment and method."""
        return data_frame(
            {
                **picked(e, "benchmark dataset model"),
                "cal_size": e.rows,
                "test_size": e.evaluation_rows,
                "n_classes": e.classes,
                "method": score.method,
                **score.scores,
                **picked(score, "seconds reason"),
            }
            for e, scores in self.results()
            for score in scores
        )


def _merged(
    results: Iterable[tuple[Experiment, Iterable[MethodScore]]], methods: Sequence[str] | None
) -> tuple[list[tuple[Experiment, dict[str, MethodScore]]], dict[str, None]]:
    """Bring the parts of each experiment together; also return the methods in order of first appearance."""
    by_name: dict[tuple[str, str, str], tuple[Experiment, dict[str, MethodScore]]] = {}
    names: dict[str, None] = {}
    for experiment, scores_of_methods in results:
        first, by_method = by_name.setdefault(experiment.name, (experiment, {}))
        if first != experiment:
            raise InputError(
                f"{_place(experiment)} has {first.rows:,} calibration rows and {first.classes:,} classes in one place, "
                f"{experiment.rows:,} and {experiment.classes:,} in another",
                remedy="give results of the same experiments",
            )
        for score in scores_of_methods:
            if methods is not None and score.method not in methods:
                continue
            before = by_method.get(score.method)
            if before is not None and not _same(before, score):
                raise InputError(
                    f"'{score.method}' has two different results for {_place(experiment)}",
                    remedy="give each result once",
                )
            by_method[score.method] = score
            names.setdefault(score.method)
    return list(by_name.values()), names


def _place(experiment: Experiment) -> str:
    return f"'{experiment.model}' on '{experiment.dataset}' ({experiment.benchmark})"


def _same(first: MethodScore, second: MethodScore) -> bool:
    # Times are not compared: they differ when a run is repeated.
    pairs = ((first.scores.get(k, math.nan), second.scores.get(k, math.nan)) for k in SCORES)
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)


# ---- Leaderboards


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
        95 % interval of the winrate over data sets (`calviz.comparison.leaderboards.Averages.intervals`); None if there are too few.
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
        Number of data sets that were ranked.
    difference : float
        Mean ranks closer than this are not significantly different at 5 %.
    statistic, p_value : float
        Of Friedman's test of the hypothesis that all methods are equal.
    """

    ranks: Mapping[str, float]
    blocks: int
    difference: float
    statistic: float
    p_value: float

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """Return the maximal groups of two or more neighbouring methods that are not significantly different.

        >>> CriticalDifference({"a": 1.0, "b": 1.5, "c": 2.6}, 9, 1.2, 1.0, 0.1).cliques()
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

    def frame(self) -> DataFrame:
        """Return a table with one row per method, the best by Brier score first."""
        return data_frame([_row(s) for s in self]).set_index("method")


def _row(s: Standing) -> dict[str, Any]:
    row: dict[str, Any] = {"method": s.method}
    for key in SCORES:
        low, high = s.interval.get(key) or (math.nan, math.nan)
        won = f"winrate_{key}"
        row |= {won: s.winrate[key], f"{won}_low": low, f"{won}_high": high}
        for name in ("elo", "rank", "gain", "median_gain", "worse_than_none"):
            row[f"{name}_{key}"] = getattr(s, name).get(key, math.nan)
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


# ---- Sentences


#: Definition of a winrate, for captions.
WINRATE_WORDS = "Winrate: the share of the other methods with a strictly larger score; 0.5 is the middle of the field"


def data_sets(board: Leaderboard) -> int:
    """Number of data sets."""
    return len({(e.benchmark, e.dataset) for e in board.table.experiments})


def headline(board: Leaderboard) -> str:
    """Return the size of the board, and the best method by each score, in words."""
    firsts: dict[str, list[str]] = {}
    for score in SCORES:
        firsts.setdefault(board.ranking(score)[0].method, []).append(score)
    parts = []
    for name, scores in firsts.items():
        worse = [board[name].worse_than_none.get(score, math.nan) for score in scores]
        shares = " and ".join(dict.fromkeys(percent(share, 0) for share in worse))
        has_shares = name != board.baseline and not any(math.isnan(share) for share in worse)
        caution = f" (worse than none in {shares})" if has_shares else ""
        labels = " and ".join(METRICS[score].label for score in scores)
        parts.append(f"by {labels} {listed([name], limit=60)}{caution}")
    return (
        f"{board.title}: {counted(len(board.table), 'experiment')} on {counted(data_sets(board), 'data set')}, "
        f"{counted(len(board), 'method')}. First {', '.join(parts)}."
    )


#: With fewer data sets than this, the ranking is uncertain.
FEW = 10


def few_words(board: Leaderboard) -> str:
    """Caution where the data sets are too few to tell which method is first; "" otherwise."""
    if (sets := data_sets(board)) >= FEW:
        return ""
    return f"{counted(sets, 'data set')}: another one may reverse the order. More files would tell."


def short_headline(board: Leaderboard) -> str:
    """Return the first method by each score, in at most 15 words."""
    firsts = dict.fromkeys(board.ranking(score)[0].method for score in SCORES)
    labels = {spec.key: spec.label for spec in RECALIBRATORS}
    names = " and ".join(shorten(labels.get(name, name), 40) for name in firsts)
    verb = "ranks" if len(firsts) == 1 else "rank"
    return f"{names} {verb} first on {counted(data_sets(board), 'data set')}"


@claim("arena-mean")
def winrate_text(s: Standing, score: str) -> str:
    """Return a winrate with its interval: "0.714 (0.675 to 0.750)"."""
    interval = s.interval.get(score)
    text = f"{s.winrate[score]:.3f}"
    return text if interval is None else f"{text} ({interval.low:.3f} to {interval.high:.3f})"


def interval_words(board: Leaderboard) -> str:
    """Say what the intervals of winrates are over, or why there are none."""
    if any(interval is not None for s in board for interval in s.interval.values()):
        return "intervals: 95 %, over data sets, with Student's t"
    sets = {(e.benchmark, e.dataset) for e in board.table.experiments}
    few = len(sets) < 3 or min(Counter(benchmark for benchmark, _ in sets).values()) < 2
    return "no intervals" + (
        ": they need three data sets, and two in every benchmark" if few else ""
    )


def rated_words(board: Leaderboard) -> str:
    """Explain the columns of a leaderboard."""
    benchmarks = len({e.benchmark for e in board.table.experiments})
    means = "means over experiments"
    if benchmarks > 1:
        means = "means over experiments, then over benchmarks"
    text = f"{WINRATE_WORDS}; {means}; {interval_words(board)}. Elo: 400 points are a factor of ten in the odds"
    if board.baseline is not None:
        text += (
            f". Gain: Brier score of '{board.baseline}' minus that of the method, in points, mean and median; worse than none: "
            "share of the experiments with a strictly larger score than without calibration"
        )
    return f"{text}. Time: median of fit and application."

"""Leaderboards from a table of results: winrates, Elo, gains and critical differences, with intervals over data sets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from calviz.comparison import arena_results
from calviz.comparison.arena_results import SCORES, CriticalDifference, Leaderboard, ResultTable
from calviz.core import errors, p_values
from calviz.core.blocks import BoolArray, FloatArray, IntArray, checkpoint
from calviz.core.entry_specs import LEVEL, Interval
from calviz.core.words import counted, listed

#: Prefix of benchmarks with a board of their own: few methods finish on a thousand classes.
APART = "imagenet"
#: Lower edges of the ranges of calibration rows and of classes.
ROWS = (0, 1_000, 5_000, 20_000)
CLASSES = (2, 3, 4, 10)
RESAMPLES = 1_000
#: Titles of the boards on screen, in their order.
TITLES = {
    "all": "All experiments",
    "binary": "Two classes",
    "multiclass": "More than two classes",
    "apart": "ImageNet",
}


def judge(table: ResultTable, *, resamples: int = RESAMPLES, seed: int = 0) -> arena_results.Arena:
    """Make all leaderboards.

    Parameters
    ----------
    table : ResultTable
    resamples : int
        0 for no intervals; every other number gives the same, as no data set is drawn at random.
    seed : int
        Without effect, for the same reason.

    Raises
    ------
    InputError
        If there is only one method.
    """
    if len(table.methods) < 2:
        raise errors.InputError(
            f"there is only the method '{table.methods[0]}'", remedy="give results of two or more"
        )
    parts = _boards(table)
    boards = []
    for key, rows in parts.items():
        checkpoint(f"the leaderboard: {TITLES.get(key, key)}")
        part = table.take(rows)
        # The methods that take part in every benchmark.
        names = np.array([e.benchmark for e in part.experiments])
        takes_part = np.stack(
            [part.entered[names == name].any(axis=0) for name in np.unique(names)]
        )
        everywhere = tuple(part.methods[j] for j in np.flatnonzero(takes_part.all(axis=0)))
        left_out = tuple(m for m in part.methods if m not in everywhere)
        if len(everywhere) < 2:
            everywhere, left_out = part.methods, ()
        on_board = part.take(np.arange(len(part)), everywhere)
        boards.append(leaderboard(on_board, key, resamples=resamples, left_out=left_out))
    if len(boards) == 1:
        overall = boards[0]
    else:
        checkpoint("all leaderboards together")
        overall = leaderboard(_joined(table, parts, boards), "all", resamples=resamples)
    strata = {board.key: tuple(_strata(board, resamples=resamples)) for board in boards}
    return arena_results.Arena(overall, tuple(boards), table, strata, tuple(_notes(boards)))


def leaderboard(
    table: ResultTable,
    key: str = "all",
    *,
    title: str = "",
    pooled: bool = False,
    rated: bool = True,
    resamples: int = RESAMPLES,
    left_out: tuple[str, ...] = (),
) -> Leaderboard:
    """Make one leaderboard.

    Parameters
    ----------
    table : ResultTable
    key, title : str
    pooled : bool
        Whether means are over all experiments directly, not over benchmarks.
    rated : bool
        Whether to compute Elo and the critical difference as well.
    resamples : int
        0 for no intervals.
    left_out : tuple of str
        Methods that are not on the board.
    """
    averages = Averages.over(table.experiments, pooled=pooled)
    counts = averages.left_out() if resamples and averages.can_vary else None
    by_score = {score: _columns(table, score, averages, counts, rated=rated) for score in SCORES}
    critical: dict[str, CriticalDifference] = {}
    if rated and table.entered.all():
        for score in SCORES:
            ranks = block_ranks(table.scores[score], averages)
            difference = critical_difference(table.methods, ranks)
            if difference is not None:
                critical[score] = difference

    def standing(j: int) -> arena_results.Standing:
        """The row of method number `j`."""
        numbers: dict[str, Any] = {
            name: {score: by_score[score][name][j] for score in SCORES if name in by_score[score]}
            for name in next(iter(by_score.values()))
        }
        scored = table.entered[:, j]
        for values in table.scores.values():
            scored = scored & ~np.isnan(values[:, j])
        method = table.methods[j]
        return arena_results.Standing(
            method=method,
            experiments=int(table.entered[:, j].sum()),
            failed=int(table.entered[:, j].sum() - scored.sum()),
            rank={s: c.ranks[method] for s, c in critical.items()},
            seconds=_median(table.seconds[scored, j]),
            **numbers,
        )

    standings = [standing(j) for j in range(len(table.methods))]
    standings.sort(key=lambda s: (-np.nan_to_num(s.winrate[SCORES[0]], nan=-1.0), s.method))
    by_method = {s.method: s for s in standings}
    return Leaderboard(key, title or TITLES.get(key, key), table, by_method, critical, left_out)


def _columns(
    table: ResultTable, score: str, averages: Averages, counts: FloatArray | None, *, rated: bool
) -> dict[str, Sequence[object]]:
    """Compute winrates, Elo and gains of all methods at once; keys are attributes of `Standing`."""
    values, entered = table.scores[score], table.entered
    won = winrates(values, entered)
    mean = averages.mean(won)
    none = [None] * len(table.methods)
    columns: dict[str, Sequence[object]] = {"winrate": mean.tolist(), "interval": none}
    if counts is not None:
        drawn = averages.mean(won, counts)
        columns["interval"] = averages.intervals(mean, drawn, ~np.isnan(won), share=True)
    if rated:
        flat = count_duels(values, entered).reshape(len(table), -1)
        k = len(table.methods)
        rating = elo((averages.weights() @ flat).reshape(k, k))
        columns["elo"] = rating.tolist()
        columns["elo_interval"] = none
        if counts is not None:
            checkpoint()
            duels_left = (averages.weights(counts) @ flat).reshape(-1, k, k)
            # Without a chain of wins between all methods no strength has a largest likelihood, and so no standard error.
            if _connected(duels_left).all():
                duels_elo = elo(duels_left, start=rating)
                columns["elo_interval"] = averages.intervals(rating, duels_elo, entered)
    if table.baseline is not None:
        before = values[:, [table.methods.index(table.baseline)]]
        with np.errstate(invalid="ignore"):
            gain = np.where(entered, before - values, np.nan)
        compared = entered & ~np.isnan(values) & ~np.isnan(before)
        worse = np.where(compared, values > before, np.nan)
        columns["gain"] = averages.mean(gain).tolist()
        columns["median_gain"] = list(map(_median, gain.T))
        columns["worse_than_none"] = averages.mean(worse).tolist()
    return columns


def _median(values: FloatArray) -> float:
    values = values[~np.isnan(values)]
    return float(np.median(values)) if values.size else math.nan


def kind_of(experiments: Sequence[arena_results.Experiment]) -> str:
    """Return the task: "binary", "multiclass", "all" if there are both, or "apart" for ImageNet."""
    if all(e.benchmark.casefold().startswith(APART) for e in experiments):
        return "apart"
    classes = {e.classes > 2 for e in experiments}
    return "all" if len(classes) > 1 else "multiclass" if classes.pop() else "binary"


def _boards(table: ResultTable) -> Mapping[str, list[int]]:
    """Return the experiments of each board: one board per task, unless some benchmark mixes tasks."""
    benchmarks: dict[str, list[int]] = {}
    for row, experiment in enumerate(table.experiments):
        benchmarks.setdefault(experiment.benchmark, []).append(row)
    kinds = {k: kind_of([table.experiments[i] for i in rows]) for k, rows in benchmarks.items()}
    mixed = "all" in kinds.values()
    boards: dict[str, list[int]] = {}
    for name, rows in benchmarks.items():
        kind = "all" if mixed and kinds[name] != "apart" else kinds[name]
        boards.setdefault(kind, []).extend(rows)
    return {kind: sorted(boards[kind]) for kind in TITLES if kind in boards}


def _joined(
    table: ResultTable, parts: Mapping[str, list[int]], boards: Sequence[Leaderboard]
) -> ResultTable:
    """Join the experiments of all boards except "apart", each with the methods of its board."""
    some = [b for b in boards if b.key != "apart"] or list(boards)
    rows = sorted(i for b in some for i in parts[b.key])
    on_board = np.zeros((len(table), len(table.methods)), dtype=np.bool_)
    for board in some:
        columns = [table.methods.index(m) for m in board.table.methods]
        on_board[np.ix_(parts[board.key], columns)] = True
    return replace(table, entered=table.entered & on_board).take(rows)


def _strata(board: Leaderboard, *, resamples: int) -> Iterator[Leaderboard]:
    experiments = board.table.experiments
    for name, noun, edges, values in (
        ("rows", "calibration rows", ROWS, [e.rows for e in experiments]),
        ("classes", "classes", CLASSES, [e.classes for e in experiments]),
    ):
        parts = [(low, high, in_range(values, low, high)) for low, high in ranges(edges)]
        # Smallest number of experiments for a leaderboard of a range.
        parts = [part for part in parts if part[2].sum() >= 5]
        for low, high, mask in parts if len(parts) > 1 else ():
            checkpoint()
            yield leaderboard(
                board.table.take(mask),
                f"{name}-{low}",
                title=range_words(low, high, noun),
                pooled=True,
                rated=False,
                resamples=resamples,
            )


def in_range(values: Sequence[int], low: int, high: int | None) -> BoolArray:
    """Whether each value is at least `low` and below `high`, shape (n,)."""
    numbers = np.asarray(values)
    return np.asarray((numbers >= low) & (numbers < (np.inf if high is None else high)))


def ranges(edges: Sequence[int]) -> tuple[tuple[int, int | None], ...]:
    """Return the ranges with given lower edges; the last one is open.

    >>> ranges((0, 1_000))
    ((0, 1000), (1000, None))
    """
    return tuple(zip(edges, (*edges[1:], None), strict=True))


def range_words(low: int, high: int | None, noun: str) -> str:
    """Return a range in words.

    >>> range_words(0, 1_000, "rows"), range_words(4, 10, "classes"), range_words(10, None, "classes")
    ('below 1,000 rows', '4 to 9 classes', '10 classes and more')
    """
    if high is None:
        return f"{low:,} {noun} and more"
    if low == 0:
        return f"below {high:,} {noun}"
    return f"{low:,} {noun}" if high == low + 1 else f"{low:,} to {high - 1:,} {noun}"


def _notes(boards: Sequence[Leaderboard]) -> Iterator[str]:
    for board in boards:
        where = f"{board.title}: " if len(boards) > 1 else ""
        if board.left_out:
            yield (
                f"{where}{listed(board.left_out, most=6)} {'is' if len(board.left_out) == 1 else 'are'} not on the board, "
                "because results are missing in at least one benchmark."
            )
        missing = {s.method: s.failed for s in board if s.failed}
        if missing:
            worst = sorted(missing, key=lambda m: (-missing[m], m))
            names = ", ".join(f"{m} ({missing[m]:,})" for m in worst[:8])
            more = f" and {len(worst) - 8:,} more methods" if len(worst) > 8 else ""
            yield (
                f"{where}no score in some of {counted(len(board.table), 'experiment')}: {names}{more}. A method without a score "
                "beats nobody there and gives nobody a win; in Elo and ranks it comes last."
            )
        if board.baseline is None:
            yield f"{where}there are no results without calibration, so no gain is shown."


# ---- Means over experiments


#: With fewer data sets there is no interval.
FEWEST_FOR_INTERVALS = 3


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A benchmark: its experiments and their data sets.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Indices of its experiments.
    units : ndarray of int, shape (m,)
        Data set of each, from 0.
    """

    rows: IntArray
    units: IntArray

    @property
    def size(self) -> int:
        """Number of data sets."""
        return int(self.units.max()) + 1


@dataclass(frozen=True, eq=False)
class Averages:
    """Means over n experiments, and their errors over data sets: experiments on one data set are not independent.

    Attributes
    ----------
    groups : tuple of Benchmark
    size : int
        Number of experiments, n.
    """

    groups: tuple[Benchmark, ...]
    size: int

    @classmethod
    def over(
        cls, experiments: Sequence[arena_results.Experiment], *, pooled: bool = False
    ) -> Averages:
        """Group experiments by benchmark, or put all into one group if `pooled`."""
        named: dict[str, list[int]] = {}
        for row, experiment in enumerate(experiments):
            named.setdefault("" if pooled else experiment.benchmark, []).append(row)
        groups = []
        for rows in named.values():
            sets = [(experiments[i].benchmark, experiments[i].dataset) for i in rows]
            codes = {name: code for code, name in enumerate(dict.fromkeys(sets))}
            groups.append(Benchmark(np.array(rows), np.array([codes[name] for name in sets])))
        return cls(tuple(groups), len(experiments))

    def mean(self, values: FloatArray, counts: FloatArray | None = None) -> FloatArray:
        """Return the mean within each group, then over the groups that have a value.

        Parameters
        ----------
        values : ndarray, shape (n, K)
            Entries that are nan are ignored.
        counts : ndarray, shape (B, n), optional
            Weights of the experiments; if left out, 1.

        Returns
        -------
        ndarray, shape (K,) or (B, K)
        """
        drawn = np.ones((1, self.size)) if counts is None else counts
        has_value = ~np.isnan(values)
        total = np.zeros((drawn.shape[0], values.shape[1]))
        groups = np.zeros_like(total)
        for group in self.groups:
            weight = drawn[:, group.rows]
            size = weight @ has_value[group.rows].astype(np.float64)
            summed = np.where(has_value[group.rows], values[group.rows], 0.0)
            # 0 times infinity: an infinite loss that was not drawn.
            with np.errstate(invalid="ignore"):
                part = weight @ summed
            counted = size > 0
            total += np.where(counted, part / np.where(counted, size, 1.0), 0.0)
            groups += counted
        means = np.where(groups > 0, total / np.maximum(groups, 1), np.nan)
        return means if counts is not None else means[0]

    def weights(self, counts: FloatArray | None = None) -> FloatArray:
        """Return weights of the experiments, equal in sum for every group; they add up to n.

        Parameters
        ----------
        counts : ndarray, shape (B, n), optional

        Returns
        -------
        ndarray, shape (n,) or (B, n)
        """
        drawn = np.ones((1, self.size)) if counts is None else counts
        weights = np.zeros_like(drawn)
        for group in self.groups:
            part = drawn[:, group.rows]
            weights[:, group.rows] = part / part.sum(axis=1, keepdims=True)
        weights *= self.size / len(self.groups)
        return weights if counts is not None else weights[0]

    def left_out(self) -> FloatArray:
        """Return weights of the experiments that leave out one data set after the other, shape (data sets, n), group by group."""
        weights = np.ones((sum(group.size for group in self.groups), self.size))
        first = 0
        for group in self.groups:
            weights[first + group.units, group.rows] = 0.0
            first += group.size
        return weights

    @property
    def can_vary(self) -> bool:
        """Whether there are data sets enough for intervals: three, and two in every group."""
        sizes = [group.size for group in self.groups]
        return sum(sizes) >= FEWEST_FOR_INTERVALS and min(sizes) > 1

    @errors.claim(
        "arena-mean",
        says="winrate 0.714 (0.675 to 0.750)",
        chosen="nothing: each method has its own interval",
        adjusted="jackknife over data sets, Wilson's interval with Student's t; none below three data sets",
    )
    def intervals(
        self, values: FloatArray, left_out: FloatArray, present: BoolArray, *, share: bool = False
    ) -> list[Interval | None]:
        """Return 95 % intervals of means over the population of data sets that these were drawn from.

        Parameters
        ----------
        values : ndarray, shape (K,)
        left_out : ndarray, shape (data sets, K)
            The same without each data set (`left_out`).
        present : ndarray of bool, shape (n, K)
            Which experiments count for which value.
        share : bool
            Whether values lie between 0 and 1.

        Returns
        -------
        list of Interval or None
            None with fewer than `FEWEST_FOR_INTERVALS` data sets, or with a group that has one.

        Notes
        -----
        Stratified jackknife: ``sum_b (G_b - 1) / G_b sum_d (v_(bd) - mean_b)^2`` over G_b data sets of each group, with
        Satterthwaite's degrees of freedom. A share v has Wilson's interval for ``v (1 - v) / se^2`` independent data sets with the
        quantile of Student's t (Franco et al. 2019, the modified Wilson interval); where all data sets agree, for their number.
        """
        k = values.size
        variance, squares, total, lone = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k, bool)
        first = 0
        for group in self.groups:
            has_value = np.zeros((group.size, k), dtype=np.bool_)
            np.logical_or.at(has_value, group.units, present[group.rows])
            sets = has_value.sum(axis=0)
            part = np.where(has_value, left_out[first : first + group.size], 0.0)
            off = np.where(has_value, part - part.sum(axis=0) / np.maximum(sets, 1), 0.0)
            own = (sets - 1) / np.maximum(sets, 1) * np.square(off).sum(axis=0)
            variance += own
            squares += np.square(own) / np.maximum(sets - 1, 1)
            total += sets
            lone |= sets == 1
            first += group.size
        told = np.isfinite(values) & np.isfinite(variance) & ~lone & (total >= FEWEST_FOR_INTERVALS)
        return [
            _interval(*(float(v[j]) for v in (values, variance, squares, total)), share=share)
            if told[j]
            else None
            for j in range(k)
        ]


def _interval(
    value: float, variance: float, squares: float, data_sets: float, *, share: bool
) -> Interval:
    """Return the interval of one value; see `Averages.intervals`."""
    # A standard error up to this is a sum of rounding errors.
    agree = variance <= 1e-9**2
    freedom = data_sets - 1 if agree else variance**2 / squares
    t = float(stdtrit(freedom, (1 + LEVEL) / 2))
    if not share:
        half = t * math.sqrt(variance)
        return Interval(value - half, value + half)
    number = data_sets if agree else value * (1 - value) / variance
    return Interval(*p_values.wilson(value, number, t=t))


# ---- Winrates


def winrates(scores: FloatArray, entered: BoolArray) -> FloatArray:
    """Return the share of the other methods of an experiment with a strictly larger score (CalArena 2026, arXiv 2605.30188).

    ``sum_k [score_k > score_j] / (K - 1)``; K counts the methods that take part, including those without a score.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray, shape (n, K)
        nan where a method does not take part, or is the only one.

    Examples
    --------
    >>> winrates(np.array([[0.1, 0.2, 0.2]]), np.ones((1, 3), dtype=bool))
    array([[1., 0., 0.]])
    """
    others = entered.sum(axis=1, keepdims=True) - 1
    won = beats(scores, entered).sum(axis=2)
    return np.where(entered & (others > 0), won / np.maximum(others, 1), np.nan)


def beats(scores: FloatArray, entered: BoolArray) -> BoolArray:
    """Whether a method beats another, that is, has a strictly smaller score.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
        Lower is better; nan where a method has no score.
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray of bool, shape (n, K, K)
        ``[i, j, k]``: in experiment i, j beats k. A method without a score beats no other and gives no other a win.
    """
    taken = np.where(entered, scores, np.nan)
    return np.asarray(taken[:, None, :] > taken[:, :, None])


# ---- Elo


#: Points per factor of ten in the odds, and mean over all methods.
SCALE, MEAN = 400.0, 1_000.0
#: Newton's method: largest number of steps, largest change of a strength per step, and convergence tolerance.
_STEPS, _LONGEST, _CLOSE = 100, 2.0, 1e-10


def elo(wins: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Return maximum-likelihood strengths of the Bradley-Terry model (1952) as Elo.

    ``P(j beats k) = 1 / (1 + 10^((R_k - R_j) / 400))``, with a mean R of 1,000. The likelihood has a maximum only if
    every method is connected to every other by a chain of wins (Ford 1957); otherwise, a tie between each pair of methods
    is added.

    Parameters
    ----------
    wins : ndarray, shape (..., K, K)
        ``[j, k]``: weighted number of wins of j against k.
    start : ndarray, shape (..., K), optional
        Starting point of Newton's method.

    Returns
    -------
    ndarray, shape (..., K)

    Examples
    --------
    Nine wins to one correspond to a factor of nine in the odds:

    >>> elo(np.array([[0.0, 9.0], [1.0, 0.0]])).round(1)
    array([1190.8,  809.2])
    """
    k = wins.shape[-1]
    flat = wins.reshape(-1, k, k).astype(np.float64)
    if k < 2:
        return np.full(wins.shape[:-1], MEAN)
    flat[~_connected(flat)] += 0.5 * (1 - np.eye(k))
    theta = np.zeros((flat.shape[0], k))
    if start is not None:
        theta += (np.asarray(start).reshape(-1, k) - MEAN) * math.log(10) / SCALE
    games = flat + flat.transpose(0, 2, 1)
    # Makes the Hessian regular, with the mean fixed.
    gauge = games.sum(axis=(1, 2), keepdims=True) / k**3
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        gradient = (flat - games * p).sum(axis=2)
        curvature = -games * p * (1 - p)
        diagonal = np.arange(k)
        curvature[:, diagonal, diagonal] = -curvature.sum(axis=2)
        step = np.linalg.solve(curvature + gauge, gradient[..., None])[..., 0]
        step *= np.minimum(
            1, _LONGEST / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300)
        )
        theta += step
        if np.abs(step).max() < _CLOSE:
            break
    theta -= theta.mean(axis=1, keepdims=True)
    return np.asarray(MEAN + SCALE * theta / math.log(10)).reshape(wins.shape[:-1])


def _connected(wins: FloatArray) -> BoolArray:
    """Whether chains of wins lead from every method to every other, shape (B,)."""
    k = wins.shape[-1]
    reach = ((wins > 0) | np.eye(k, dtype=np.bool_)).astype(np.float32)
    for _ in range(max(1, math.ceil(math.log2(k)))):
        reach = (reach @ reach > 0).astype(np.float32)
    return np.asarray(reach.all(axis=(1, 2)))


def count_duels(scores: FloatArray, entered: BoolArray) -> FloatArray:
    """Return the wins of one method over another by experiment: 1, 0, or 1/2 for a tie.

    A method without a score loses to those that have one.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
        Lower is better.
    entered : ndarray of bool, shape (n, K)

    Returns
    -------
    ndarray, shape (n, K, K)
        ``[i, j, k]``: the win of j against k; 0 in both directions if one does not take part, or if both have no score.
    """
    scored = ~np.isnan(scores) & entered
    # Missing scores become infinity; `only` lets them lose against scores that are infinite.
    order = np.where(scored, scores, np.inf)
    smaller = order[:, :, None] < order[:, None, :]
    equal = (order[:, :, None] == order[:, None, :]) & scored[:, :, None] & scored[:, None, :]
    only = scored[:, :, None] & ~scored[:, None, :]
    both = entered[:, :, None] & entered[:, None, :]
    wins = np.where(only | smaller, 1.0, np.where(equal, 0.5, 0.0)) * both
    k = scores.shape[1]
    wins[:, np.arange(k), np.arange(k)] = 0.0
    return wins


# ---- Critical difference


#: Probability that any two equal methods are called different.
ALPHA = 0.05
#: Smallest numbers of blocks and methods for which the approximations hold.
FEWEST_BLOCKS, FEWEST_METHODS = 5, 3


def critical_difference(methods: Sequence[str], ranks: FloatArray) -> CriticalDifference | None:
    """Test whether all methods are equal, and compute the critical difference of mean ranks (Demšar 2006, JMLR 7, section 3.2.2).

    ``CD = q sqrt(K (K + 1) / (6 N))``, where q is the quantile of the studentised range for K groups and infinite degrees of
    freedom, divided by ``sqrt(2)``.

    Parameters
    ----------
    methods : sequence of str, K of them
    ranks : ndarray, shape (N, K)

    Returns
    -------
    CriticalDifference or None
        None with fewer than `FEWEST_BLOCKS` blocks or `FEWEST_METHODS` methods.
    """
    from scipy.stats import friedmanchisquare

    blocks, k = ranks.shape
    if blocks < FEWEST_BLOCKS or k < FEWEST_METHODS:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # if all ranks are tied, there is no statistic
        test = friedmanchisquare(*ranks.T)
    means = ranks.mean(axis=0)
    order = sorted(range(k), key=lambda j: (means[j], methods[j]))
    return CriticalDifference(
        ranks={methods[j]: float(means[j]) for j in order},
        blocks=blocks,
        difference=nemenyi(k, blocks),
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
    )


def nemenyi(k: int, blocks: int) -> float:
    """Return the difference of mean ranks from which two of k methods differ significantly at 5 %.

    >>> round(nemenyi(4, 14), 2)  # Demšar 2006, section 3.2.4: 1.25
    1.25
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - ALPHA, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * blocks))


def block_ranks(scores: FloatArray, averages: Averages) -> FloatArray:
    """Return the ranks of the methods in each block, 1 for the best; ties share a rank, and methods without a score are last.

    Blocks are data sets: the models of one data set are not independent, so their ranks are averaged and ranked again.

    Parameters
    ----------
    scores : ndarray, shape (n, K)
    averages : Averages

    Returns
    -------
    ndarray, shape (blocks, K)
    """
    from scipy.stats import rankdata

    # An infinite score still ranks before no score.
    last = np.where(np.isinf(scores), np.finfo(np.float64).max, scores)
    ranks = rankdata(np.where(np.isnan(last), np.inf, last), axis=1)
    blocks = []
    for group in averages.groups:
        total = np.zeros((group.size, scores.shape[1]))
        np.add.at(total, group.units, ranks[group.rows])
        means = total / np.bincount(group.units, minlength=group.size)[:, None]
        blocks.append(rankdata(means.round(9), axis=1))
    return np.concatenate(blocks)

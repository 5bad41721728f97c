"""Leaderboards from a result table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from calviz.arena import elo as elo_ratings
from calviz.arena.averages import RESAMPLES, Averages, intervals
from calviz.arena.critical_differences import block_ranks, critical_difference
from calviz.arena.winrates import winrates
from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.errors import InputError
from calviz.core.progress import checkpoint
from calviz.results.arena import SCORES, Experiment, ResultTable
from calviz.results.leaderboard import Arena, CriticalDifference, Leaderboard, Standing
from calviz.text.words import counted, listed

#: Prefix of benchmarks with a board of their own: few methods finish on a thousand classes.
APART = "imagenet"
#: Lower edges of the ranges of calibration rows and of classes.
ROWS = (0, 1_000, 5_000, 20_000)
CLASSES = (2, 3, 4, 10)
#: Smallest number of experiments for a leaderboard of a range.
FEWEST_EXPERIMENTS = 5


def judge(table: ResultTable, *, resamples: int = RESAMPLES, seed: int = 0) -> Arena:
    """Make all leaderboards.

    Parameters
    ----------
    table : ResultTable
    resamples : int
        Number of bootstrap resamples for the intervals; 0 for none.
    seed : int

    Raises
    ------
    InputError
        If there is only one method.
    """
    if len(table.methods) < 2:
        raise InputError(
            f"there is only the method '{table.methods[0]}'", remedy="give results of two or more"
        )
    parts = _boards(table)
    boards = []
    for key, rows in parts.items():
        checkpoint(f"the leaderboard: {TITLES.get(key, key)}")
        part = table.take(rows)
        everywhere = _everywhere(part)
        left_out = tuple(m for m in part.methods if m not in everywhere)
        if len(everywhere) < 2:
            everywhere, left_out = part.methods, ()
        on_board = part.take(np.arange(len(part)), everywhere)
        boards.append(leaderboard(on_board, key, resamples=resamples, seed=seed, left_out=left_out))
    if len(boards) == 1:
        overall = boards[0]
    else:
        checkpoint("all leaderboards together")
        overall = leaderboard(_joined(table, parts, boards), "all", resamples=resamples, seed=seed)
    strata = {board.key: tuple(_strata(board, resamples=resamples, seed=seed)) for board in boards}
    return Arena(overall, tuple(boards), table, strata, tuple(_notes(boards)))


#: Titles of the boards on screen, in their order.
TITLES = {
    "all": "All experiments",
    "binary": "Two classes",
    "multiclass": "More than two classes",
    "apart": "ImageNet",
}


def leaderboard(
    table: ResultTable,
    key: str = "all",
    *,
    title: str = "",
    pooled: bool = False,
    rated: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
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
    resamples, seed : int
    left_out : tuple of str
        Methods that are not on the board.
    """
    averages = Averages.over(table.experiments, pooled=pooled)
    counts = None
    if resamples and averages.can_vary:
        counts = averages.draw(np.random.default_rng(seed), resamples)
    by_score = {score: _columns(table, score, averages, counts, rated=rated) for score in SCORES}
    critical: dict[str, CriticalDifference] = {}
    if rated and table.entered.all():
        for score in SCORES:
            ranks = block_ranks(table.scores[score], averages)
            difference = critical_difference(table.methods, ranks, averages.units)
            if difference is not None:
                critical[score] = difference
    standings = [_standing(table, j, by_score, critical) for j in range(len(table.methods))]
    standings.sort(key=lambda s: (-np.nan_to_num(s.winrate[SCORES[0]], nan=-1.0), s.method))
    return Leaderboard(
        key,
        title or TITLES.get(key, key),
        table,
        {s.method: s for s in standings},
        averages.units,
        critical,
        left_out,
    )


def _standing(
    table: ResultTable,
    j: int,
    by_score: Mapping[str, Mapping[str, Sequence[Any]]],
    critical: Mapping[str, CriticalDifference],
) -> Standing:
    """Return the row of method number `j`; `by_score` holds the columns of each score, one value per method."""
    numbers = {
        name: {score: by_score[score][name][j] for score in SCORES if name in by_score[score]}
        for name in next(iter(by_score.values()))
    }
    scored = table.entered[:, j]
    for values in table.scores.values():
        scored = scored & ~np.isnan(values[:, j])
    seconds = table.seconds[scored, j]
    seconds = seconds[~np.isnan(seconds)]
    method = table.methods[j]
    return Standing(
        method=method,
        experiments=int(table.entered[:, j].sum()),
        failed=int(table.entered[:, j].sum() - scored.sum()),
        rank={s: c.ranks[method] for s, c in critical.items()},
        seconds=float(np.median(seconds)) if seconds.size else float("nan"),
        **numbers,
    )


def _columns(
    table: ResultTable,
    score: str,
    averages: Averages,
    counts: FloatArray | None,
    *,
    rated: bool,
) -> dict[str, Sequence[object]]:
    """Compute winrates, Elo and gains of all methods at once; keys are attributes of `Standing`."""
    values, entered = table.scores[score], table.entered
    won = winrates(values, entered)
    mean = averages.mean(won)
    none = [None] * len(table.methods)
    columns: dict[str, Sequence[object]] = {
        "winrate": mean.tolist(),
        "interval": none if counts is None else intervals(mean, averages.mean(won, counts)),
    }
    if rated:
        duels = elo_ratings.duels(values, entered)
        flat = duels.reshape(len(table), -1)
        k = len(table.methods)
        rating = elo_ratings.elo((averages.weights() @ flat).reshape(k, k))
        columns["elo"] = rating.tolist()
        if counts is None:
            columns["elo_interval"] = none
        else:
            checkpoint()
            drawn = (averages.weights(counts) @ flat).reshape(-1, k, k)
            columns["elo_interval"] = intervals(rating, elo_ratings.elo(drawn, start=rating))
    if table.baseline is not None:
        before = values[:, [table.methods.index(table.baseline)]]
        with np.errstate(invalid="ignore"):
            gain = np.where(entered, before - values, np.nan)
        compared = entered & ~np.isnan(values) & ~np.isnan(before)
        worse = np.where(compared, values > before, np.nan)
        columns["gain"] = averages.mean(gain).tolist()
        columns["median_gain"] = [
            float(np.median(column[~np.isnan(column)]))
            if (~np.isnan(column)).any()
            else float("nan")
            for column in gain.T
        ]
        columns["worse_than_none"] = averages.mean(worse).tolist()
    return columns


def kind_of(experiments: Sequence[Experiment]) -> str:
    """Return the task: "binary", "multiclass", "all" if there are both, or "apart" for ImageNet."""
    if all(e.benchmark.casefold().startswith(APART) for e in experiments):
        return "apart"
    classes = {e.classes > 2 for e in experiments}
    return "all" if len(classes) > 1 else "multiclass" if classes.pop() else "binary"


def _boards(table: ResultTable) -> Mapping[str, list[int]]:
    """Return the experiments of each board: one board per task, unless some benchmark mixes tasks."""
    benchmarks: dict[str, list[int]] = {}
    for at, experiment in enumerate(table.experiments):
        benchmarks.setdefault(experiment.benchmark, []).append(at)
    kinds = {
        name: kind_of([table.experiments[i] for i in rows]) for name, rows in benchmarks.items()
    }
    mixed = "all" in kinds.values()
    boards: dict[str, list[int]] = {}
    for name, rows in benchmarks.items():
        kind = "all" if mixed and kinds[name] != "apart" else kinds[name]
        boards.setdefault(kind, []).extend(rows)
    return {kind: sorted(boards[kind]) for kind in TITLES if kind in boards}


def _everywhere(table: ResultTable) -> tuple[str, ...]:
    """Return the methods that take part in every benchmark."""
    names = np.array([e.benchmark for e in table.experiments])
    takes_part = np.stack([table.entered[names == name].any(axis=0) for name in np.unique(names)])
    everywhere = np.flatnonzero(takes_part.all(axis=0))
    return tuple(table.methods[j] for j in everywhere)


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
    masked = ResultTable(
        table.experiments,
        table.methods,
        table.scores,
        table.seconds,
        table.entered & on_board,
        table.baseline,
        table.reasons,
    )
    return masked.take(rows)


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


def _strata(board: Leaderboard, *, resamples: int, seed: int) -> Iterator[Leaderboard]:
    experiments = board.table.experiments
    for name, noun, edges, values in (
        ("rows", "calibration rows", ROWS, [e.rows for e in experiments]),
        ("classes", "classes", CLASSES, [e.classes for e in experiments]),
    ):
        parts = [(low, high, in_range(values, low, high)) for low, high in ranges(edges)]
        parts = [part for part in parts if part[2].sum() >= FEWEST_EXPERIMENTS]
        for low, high, mask in parts if len(parts) > 1 else ():
            checkpoint()
            yield leaderboard(
                board.table.take(mask),
                f"{name}-{low}",
                title=range_words(low, high, noun),
                pooled=True,
                rated=False,
                resamples=resamples,
                seed=seed,
            )


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

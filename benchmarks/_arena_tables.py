"""Markdown tables of the arena, for benchmarks/results and docs/arena.md."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import numpy as np

from calviz.comparison.arena_results import (
    SCORES,
    Experiment,
    Leaderboard,
    ResultTable,
    winrate_text,
)
from calviz.comparison.leaderboards import Averages, in_range, leaderboard, range_words, winrates
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import METRICS
from calviz.core.words import counted, decimal, percent, seconds_text, signed_points

#: Ranges of calibration rows and of classes.
ROWS = ((0, 1_000), (1_000, 5_000), (5_000, None))
CLASSES = ((2, 3), (3, 10), (10, None))


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a Markdown table."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def standings(board: Leaderboard) -> str:
    """Table of winrates with intervals, worse than none, gain and seconds, ordered by the mean of both winrates."""
    labels = [METRICS[score].label for score in SCORES]
    titles = ["method", *(f"{label}: winrate (95 %)" for label in labels)]
    titles += ["worse than none, " + " / ".join(labels), "mean gain, points", "time"]
    rows = []
    for s in ordered(board):
        none = s.method == board.baseline
        worse = " / ".join(percent(s.worse_than_none[score], 0) for score in SCORES)
        rows.append(
            [
                f"`{s.method}`",
                *(winrate_text(s, score) for score in SCORES),
                "" if none else worse,
                "" if none else signed_points(s.gain[SCORES[0]], 2),
                "" if none or np.isnan(s.seconds) else seconds_text(s.seconds),
            ]
        )
    return table(titles, rows)


def ordered(board: Leaderboard) -> list:
    """Standings sorted by the mean of both winrates."""
    return sorted(board, key=lambda s: (-sum(s.winrate.values()), s.method))


def by_range(results: ResultTable) -> list[Leaderboard]:
    """Leaderboards for each range of rows, then of classes."""
    boards = []
    for name, noun, ranges, size_of in (
        ("rows", "rows", ROWS, lambda e: e.rows),
        ("classes", "classes", CLASSES, lambda e: e.classes),
    ):
        for low, high in ranges:
            mask = in_range([size_of(e) for e in results.experiments], low, high)
            if mask.any() and not mask.all():
                boards.append(
                    leaderboard(
                        results.take(mask),
                        f"{name}-{low}",
                        title=range_words(low, high, noun),
                        pooled=True,
                        rated=False,
                    )
                )
    return boards


def beside_each_other(boards: Sequence[Leaderboard], whole: Leaderboard) -> str:
    """Table of winrates by both scores, with a column per range."""
    titles = [
        f"{b.title} ({len(b.table):,}, {counted(data_sets(b.table.experiments), 'data set')})"
        for b in boards
    ]
    rows = []
    for s in ordered(whole):
        cells = [
            " / ".join(f"{b[s.method].winrate[score]:.3f}" for score in SCORES)
            if s.method in b.standings
            else ""
            for b in boards
        ]
        rows.append([f"`{s.method}`", *cells])
    # The best of each column and score is bold.
    for at, b in enumerate(boards, start=1):
        best = [f"{max(s.winrate[score] for s in b):.3f}" for score in SCORES]
        for row in rows:
            parts = row[at].split(" / ")
            if len(parts) == len(best):
                row[at] = " / ".join(
                    f"**{v}**" if v == first else v for v, first in zip(parts, best, strict=True)
                )
    return table(["method", *titles], rows)


def data_sets(experiments: Iterable[Experiment]) -> int:
    """Number of data sets."""
    return len({(e.benchmark, e.dataset) for e in experiments})


def halves(results: ResultTable) -> Iterator[tuple[str, ResultTable]]:
    """Split the experiments by data set: every other one in alphabetical order, and the rest."""
    names = sorted({e.dataset for e in results.experiments})
    for title, first in (("odd", 0), ("even", 1)):
        chosen = set(names[first::2])
        yield title, results.take(np.array([e.dataset in chosen for e in results.experiments]))


def lead(results: ResultTable, method: str, score: str) -> tuple[str, str]:
    """Find the best other method by a score, and format the lead of `method` in winrate, with its 95 % interval.

    Each data set is left out of both winrates at once.
    """
    won = winrates(results.scores[score], results.entered)
    averages = Averages.over(results.experiments)
    means = dict(zip(results.methods, averages.mean(won), strict=True))
    other = max((m for m in results.methods if m != method), key=lambda m: means[m])
    mine, theirs = (results.methods.index(m) for m in (method, other))
    apart = (won[:, mine] - won[:, theirs])[:, None]
    mean = averages.mean(apart)
    left_out = averages.mean(apart, averages.left_out())
    (interval,) = averages.intervals(mean, left_out, ~np.isnan(apart))
    if interval is None:
        return other, decimal(mean[0], plus=True)
    low, high = (decimal(end, plus=True) for end in interval)
    return other, f"{decimal(mean[0], plus=True)} ({low} to {high})"


def leads(parts: Iterable[tuple[str, ResultTable]], method: str = "auto") -> str:
    """Table of a method and the best other one, on each part of the experiments, by each score."""
    rows = []
    for title, part in parts:
        board = leaderboard(part, rated=False)
        for score in SCORES:
            other, by = lead(part, method, score)
            rows.append(
                [
                    f"{title} ({counted(data_sets(part.experiments), 'data set')}, {len(part)} experiments)",
                    METRICS[score].label,
                    f"{winrate_text(board[method], score)}, {percent(board[method].worse_than_none[score], 0)}",
                    f"`{other}` {winrate_text(board[other], score)}, {percent(board[other].worse_than_none[score], 0)}",
                    by,
                ]
            )
    return table(
        [
            "data sets",
            "score",
            f"`{method}`: winrate, worse than none",
            "best other",
            "difference of winrates (95 %)",
        ],
        rows,
    )


def harm(results: ResultTable, methods: Sequence[str]) -> str:
    """Table of the number of experiments in which a method makes the Brier score worse or better, and by how much."""
    score = SCORES[0]
    assert results.baseline is not None
    before = results.scores[score][:, results.methods.index(results.baseline)]
    rows = []
    for method in methods:
        change = results.scores[score][:, results.methods.index(method)] - before
        lost, won = change[change > 0], -change[change < 0]
        cells = [f"`{method}`"]
        for sizes in (lost, won):
            typical = (
                [f"{100 * v:.2f}" for v in (np.median(sizes), sizes.max())]
                if sizes.size
                else ["", ""]
            )
            cells += [f"{sizes.size}", *typical]
        rows.append(cells)
    titles = ["method", "worse in", "median loss, points", "largest", "better in"]
    return table([*titles, "median gain, points", "largest"], rows)


def pairs(
    results: ResultTable,
    rivals: Sequence[tuple[str, Callable[[Experiment], str]]],
    zeros: Container[tuple[str, str, str]],
) -> str:
    """Table of each peer against our corresponding method: which has the smaller score, and the times.

    Parameters
    ----------
    results : ResultTable
        Results that include the peers.
    rivals : sequence of (str, callable)
        Name of a peer, and a function from an experiment to our method.
    zeros : container of experiments' names
        Experiments with exact zeros among their probabilities.
    """
    has_zeros = np.array([e.name in zeros for e in results.experiments])
    parts = (("no zeros", ~has_zeros), ("zeros", has_zeros))
    rows = []
    for name, ours_in in rivals:
        j = results.methods.index(name)
        entered = np.flatnonzero(results.entered[:, j])
        scored = ~np.isnan(results.scores[SCORES[0]][entered, j])
        at = entered[scored]
        names = [ours_in(results.experiments[i]) for i in at]
        mine = np.array([results.methods.index(n) for n in names])
        cells = [
            _smaller_larger(values[at, mine][part[at]], values[at, j][part[at]])
            for _, part in parts
            for values in (results.scores[score] for score in SCORES)
        ]
        theirs, ours = results.seconds[at, j], results.seconds[at, mine]
        failed = f" ({entered.size - at.size} failed)" if at.size < entered.size else ""
        rows.append(
            [
                name,
                ", ".join(f"`{n}`" for n in sorted(set(names))),
                f"{at.size}{failed}",
                *cells,
                f"{seconds_text(float(np.median(theirs)))} / {seconds_text(float(np.median(ours)))}",
            ]
        )
    titles = [f"{METRICS[s].label}, {title} ({int(p.sum())})" for title, p in parts for s in SCORES]
    return table(["peer", "ours", "experiments", *titles, "median time, peer / ours"], rows)


def _smaller_larger(ours: FloatArray, theirs: FloatArray) -> str:
    """Shares of experiments in which our score is smaller, and larger; equal infinities are ties."""
    with np.errstate(invalid="ignore"):
        apart = ~((ours == theirs) | (np.abs(ours - theirs) <= SAME))
    shares = [(apart & side).mean() for side in (ours < theirs, ours > theirs)] if ours.size else []
    return " / ".join(percent(float(share), 0) for share in shares)


#: Smaller differences are treated as ties: the same map, up to the tolerance of two minimisers.
SAME = 1e-4

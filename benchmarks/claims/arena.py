"""Intervals of winrates and of Elo over data sets, where the mean over all data sets is known."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.claims import simulation
from calviz.comparison.arena_results import Experiment, Leaderboard, MethodScore, ResultTable
from calviz.comparison.leaderboards import leaderboard, winrates

#: Data sets from which true winrates are computed.
TRUTH = 60_000
SCORE = "brier"


class Population(NamedTuple):
    """Data sets: methods at equal distances, of which each data set favours some; up to so many models on each."""

    methods: int = 6
    distance: float = 0.2
    own: float = 0.5
    models: int = 3
    skewed: bool = False

    def draw(self, data_sets, rng):
        """Scores of methods, shape (n, K), and the data set of each experiment, shape (n,)."""
        many = rng.integers(1, self.models + 1, data_sets)
        of = np.repeat(np.arange(data_sets), many)
        size = (data_sets, self.methods)
        own = rng.exponential(1, size) if self.skewed else rng.normal(size=size)
        middle = self.distance * np.arange(self.methods)
        return middle + self.own * own[of] + rng.normal(0, 0.3, (of.size, self.methods)), of


POPULATIONS = {
    "6 methods": Population(),
    "20 methods, up to 7 models": Population(20, 0.05, 0.5, 7),
    "one far ahead": Population(5, 0.6, 0.5, 3),
    "4 methods, skewed": Population(4, 0.3, 0.8, 3, True),
}


@cache
def true_winrates(population: Population) -> np.ndarray:
    """Mean winrates over the population, by method."""
    scores, _ = population.draw(TRUTH, np.random.default_rng(99))
    return np.concatenate(
        [winrates(part, np.ones(part.shape, bool)) for part in np.array_split(scores, 60)]
    ).mean(axis=0)


def board_of(population: Population, data_sets: int, rng, benchmarks: int = 1) -> Leaderboard:
    """Leaderboard of so many data sets of each benchmark."""
    results = []
    for benchmark in range(benchmarks):
        scores, of = population.draw(data_sets, rng)
        results += [
            (
                Experiment(f"b{benchmark}", f"d{of[i]}", f"m{i}", 500, 500, 2),
                [MethodScore(f"{j:02}", {SCORE: float(v), "nll": 0.0}) for j, v in enumerate(row)],
            )
            for i, row in enumerate(scores)
        ]
    return leaderboard(ResultTable.of(results))


def covered(board: Leaderboard, truth) -> list[bool]:
    """Whether the interval of each method covers its true winrate; methods without one are left out."""
    pairs = [(board[f"{j:02}"].interval[SCORE], value) for j, value in enumerate(truth)]
    return [i.low <= value <= i.high for i, value in pairs if i is not None]


def over_sizes(case, population, sizes=(5, 8, 12, 26), benchmarks=1):
    for size in sizes:
        words = f"{size} data sets" + (
            f" in each of {benchmarks} benchmarks" if benchmarks > 1 else ""
        )

        def draw(rng, size=size):
            board = board_of(population, size, rng, benchmarks)
            return float(np.mean(covered(board, true_winrates(population))))

        simulation(
            "arena-mean", "true winrates covered", f"{case}, {words}", at_least=0.93, at_most=0.98
        )(draw)


for _case, _population in POPULATIONS.items():
    over_sizes(_case, _population)
over_sizes("6 methods", POPULATIONS["6 methods"], (3, 5), benchmarks=2)


def two_data_sets(rng) -> bool:
    return bool(
        covered(board_of(POPULATIONS["6 methods"], 2, rng), true_winrates(POPULATIONS["6 methods"]))
    )


simulation("arena-mean", "interval shown", "2 data sets", at_most=0.0)(two_data_sets)

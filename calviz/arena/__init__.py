"""The arena: every method on many data sets, and the leaderboard.

Code belongs here if it is about many experiments at once: finding them in files, folders, HDF5 or published results, running
them, saving finished ones, and turning their result table into winrates, Elo, ranks and intervals. A single experiment is fitted
and judged by `calviz.comparison` and `calviz.analysis`; result types are in `calviz.results`, and figures in `calviz.figures`.
"""

from calviz.arena.leaderboards import judge
from calviz.arena.run_experiments import Rules, play_all
from calviz.arena.saved_arenas import ArenaState
from calviz.arena.sources import ArenaInput, LoadedSource, find, results_in

__all__ = [
    "ArenaInput",
    "ArenaState",
    "LoadedSource",
    "Rules",
    "find",
    "judge",
    "play_all",
    "results_in",
]

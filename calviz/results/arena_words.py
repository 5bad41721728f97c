"""Sentences about a leaderboard, the same in the terminal, the app and the report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from calviz.results.arena import SCORES
from calviz.specs.metric import METRICS
from calviz.text.words import counted, listed, percent

if TYPE_CHECKING:
    from calviz.results.leaderboard import CriticalDifference, Leaderboard, Standing

#: Definition of a winrate, for captions.
WINRATE_WORDS = "Winrate: the share of the other methods with a strictly larger score; 0.5 is the middle of the field"


def data_sets(board: Leaderboard) -> int:
    """Number of data sets."""
    return len({(e.benchmark, e.dataset) for e in board.table.experiments})


def headline(board: Leaderboard) -> str:
    """Return the size of the board, and the best method by each score, in words."""
    where = (
        f"{board.title}: {counted(len(board.table), 'experiment')} on {counted(data_sets(board), 'data set')}, "
        f"{counted(len(board), 'method')}"
    )
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
    return f"{where}. First {', '.join(parts)}."


def blocks_words(c: CriticalDifference) -> str:
    """Return what was ranked, in words: "26 data sets"."""
    singular = c.unit.removesuffix("s")
    return counted(c.blocks, singular) if "," not in c.unit else f"{c.blocks:,} {c.unit}"


def winrate_text(s: Standing, score: str) -> str:
    """Return a winrate with its interval: "0.714 (0.675 to 0.750)"."""
    interval = s.interval.get(score)
    text = f"{s.winrate[score]:.3f}"
    return text if interval is None else f"{text} ({interval.low:.3f} to {interval.high:.3f})"


def rated_words(board: Leaderboard) -> str:
    """Explain the columns of a leaderboard."""
    benchmarks = len({e.benchmark for e in board.table.experiments})
    means = (
        "means over experiments, then over benchmarks"
        if benchmarks > 1
        else "means over experiments"
    )
    text = f"{WINRATE_WORDS}; {means}; intervals: bootstrap over {board.units}. Elo: 400 points are a factor of ten in the odds"
    if board.baseline is not None:
        text += (
            f". Gain: Brier score of '{board.baseline}' minus that of the method, in points, mean and median; worse than none: "
            "share of the experiments with a strictly larger score than without calibration"
        )
    return f"{text}. Time: median of fit and application."

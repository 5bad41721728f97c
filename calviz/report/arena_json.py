"""The JSON of an arena; keys are a stable contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calviz.arena.saved_arenas import record
from calviz.core.version import __version__
from calviz.report.json import JsonRecord, interval_record
from calviz.results.arena import SCORES
from calviz.results.leaderboard import Arena, CriticalDifference, Leaderboard, Standing
from calviz.results.metric_result import Interval


def arena_record(arena: Arena, *, problems: Iterable[str] = (), **extra: Any) -> JsonRecord:
    """Convert an arena to plain values for `calviz.report.json.to_json`; the result can be loaded again.

    Parameters
    ----------
    arena : Arena
    problems : iterable of str
        Files that could not be used.
    **extra
        Further entries of the record.
    """
    several = len(arena.boards) > 1
    return {
        "calviz": __version__,
        "format": "arena",
        **_board(arena.overall),
        "boards": {b.key: {"title": b.title, **_board(b)} for b in arena.boards if several},
        "ranges": {
            board: {part.key: {"title": part.title, **_board(part)} for part in parts}
            for board, parts in arena.strata.items()
        },
        "notes": list(arena.notes),
        "problems": list(problems),
        **extra,
        "arena": record(arena.whole),
    }


def _board(board: Leaderboard) -> JsonRecord:
    return {
        "experiments": len(board.table),
        "methods": {s.method: _standing(s) for s in board},
        "baseline": board.baseline,
        "interval_over": board.units,
        "critical_difference": {key: _critical(c) for key, c in board.critical.items()},
        "left_out": list(board.left_out),
    }


def _standing(s: Standing) -> JsonRecord:
    worse = s.worse_than_none
    return {
        "winrate": dict(s.winrate),
        "interval": _intervals(s.interval),
        "worse_than_none": worse.get(SCORES[0]),
        "worse_than_none_by": dict(worse),
        "seconds": s.seconds,
        "elo": dict(s.elo),
        "elo_interval": _intervals(s.elo_interval),
        "rank": dict(s.rank),
        "gain": dict(s.gain),
        "median_gain": dict(s.median_gain),
        "experiments": s.experiments,
        "failed": s.failed,
    }


def _intervals(intervals: Mapping[str, Interval | None]) -> JsonRecord:
    return {key: interval_record(interval) for key, interval in intervals.items()}


def _critical(c: CriticalDifference) -> JsonRecord:
    return {
        "ranks": dict(c.ranks),
        "blocks": c.blocks,
        "unit": c.unit,
        "difference": c.difference,
        "statistic": c.statistic,
        "p_value": c.p_value,
    }

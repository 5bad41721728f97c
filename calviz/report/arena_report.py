"""The report on an arena (leaderboards, their charts, the first methods by rows and classes), and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from calviz.comparison import arena_results, arena_sources, comparison_results
from calviz.comparison.arena_results import SCORES, Arena, Leaderboard, headline, rated_words
from calviz.core.entry_specs import METRICS
from calviz.core.words import decimal, percent, points, seconds_text, shorten
from calviz.figures.arena_ranks import CriticalRanks, Winrates
from calviz.report.content import Block, CellFormat, Chart, Note, Section, TableBlock, Text, chart
from calviz.report.document import Part, Report, WrittenSection, bind
from calviz.report.json_results import picked, stamped

#: Number of methods named for each range of rows or classes.
FIRST = 5
_MARKS: tuple[comparison_results.Mark, ...] = ("best", "second")


def arena_report(arena: Arena, *, problems: Iterable[str] = ()) -> Report:
    """Make the report on an arena, with one part per leaderboard.

    Parameters
    ----------
    arena : Arena
    problems : iterable of str
        Files that could not be used.
    """
    notes = [*arena.notes, *problems]
    parts = [
        Part(
            board.title,
            headline(board),
            tuple(_sections(board, arena.strata.get(board.key, ()), notes if number == 0 else ())),
        )
        for number, board in enumerate(arena.boards)
    ]
    return bind(parts, title="Arena of recalibrators")


def _sections(
    board: Leaderboard, parts: Sequence[Leaderboard], notes: Sequence[str]
) -> Iterator[WrittenSection]:
    blocks: list[Block] = [Text(headline(board))]
    blocks += map(Text, filter(None, [arena_results.few_words(board)]))
    blocks += [board_table(board), Note(rated_words(board))]
    blocks += [Note(shorten(note, 2_000)) for note in notes]
    yield _section("leaderboard", "Leaderboard", blocks)
    yield _section("winrates", "Winrates", [_winrates(board)])
    ranks = [_ranks(board, score) for score in board.critical]
    if ranks:
        reading = Note(
            "A bar joins methods whose mean ranks differ by less than the critical difference (Nemenyi, 5 %): they are not told "
            "apart. Models of one data set are ranked together, as they are not independent."
        )
        yield _section("ranks", "Critical differences", [*ranks, reading])
    if parts:
        yield _section("ranges", "By rows and by classes", [ranges_table(parts)])


def _section(key: str, title: str, blocks: Sequence[Block]) -> WrittenSection:
    return WrittenSection(Section(key, title, 0, lambda subject: ()), tuple(blocks))


def board_table(board: Leaderboard) -> TableBlock:
    """Table of a leaderboard: texts for people, and numbers with all digits."""
    rows = list(board)
    labels = {score: METRICS[score].label for score in SCORES}
    columns: dict[str, list[str]] = {"method": [shorten(s.method, 60) for s in rows]}
    marks: dict[tuple[int, str], comparison_results.Mark] = {}
    for score, label in labels.items():
        name = f"winrate, {label} (95 %)"
        columns[name] = [arena_results.winrate_text(s, score) for s in rows]
        for s, mark in zip(board.ranking(score), _MARKS, strict=False):
            marks[rows.index(s), name] = mark
    for score, label in labels.items():
        columns[f"Elo, {label}"] = [
            decimal(s.elo[score], 0) if score in s.elo else "–" for s in rows
        ]
    if board.baseline is not None:
        others = [None if s.method == board.baseline else s for s in rows]
        for name, values in (("gain (points)", "gain"), ("median", "median_gain")):
            columns[name] = [
                "" if s is None else points(getattr(s, values)[SCORES[0]], 2, plus=True)
                for s in others
            ]
        for score, label in labels.items():
            columns[f"worse than none, {label}"] = [
                "" if s is None else percent(s.worse_than_none[score], 0) for s in others
            ]
    columns["time"] = [seconds_text(s.seconds) for s in rows]
    return TableBlock(
        "leaderboard",
        "Leaderboard",
        pd.DataFrame(columns),
        board.frame().reset_index(),
        tuple(columns)[1:],
        marks,
    )


def ranges_table(parts: Sequence[Leaderboard]) -> TableBlock:
    """Table of the first methods in each range of calibration rows and of classes."""
    shown: dict[str, list[str]] = {
        "range": [part.title for part in parts],
        "experiments": [f"{len(part.table):,}" for part in parts],
    }
    for score in SCORES:
        shown[f"first by {METRICS[score].label}"] = [
            ", ".join(
                f"{shorten(s.method)} {s.winrate[score]:.2f}" for s in part.ranking(score)[:FIRST]
            )
            for part in parts
        ]
    numbers = pd.concat(
        [part.frame().reset_index().assign(range=part.title) for part in parts], ignore_index=True
    )
    title = "By calibration rows and by classes"
    return TableBlock("ranges", title, pd.DataFrame(shown), numbers, ("experiments",))


def _winrates(board: Leaderboard) -> Chart:
    figure = Winrates.compute(board)
    formats: dict[str, tuple[str, CellFormat]] = {"method": ("method", shorten)}
    for score in SCORES:
        label = METRICS[score].label
        formats |= {
            score: (label, decimal),
            f"{score}_low": (f"{label}, from", decimal),
            f"{score}_high": (f"{label}, to", decimal),
        }
    return chart(figure, key="winrates", title="Winrates", formats=formats)


def _ranks(board: Leaderboard, score: str) -> Chart:
    return chart(
        CriticalRanks.compute(board, score=score),
        key=f"ranks-{score}",
        title=f"Mean ranks by {METRICS[score].label}",
        formats={
            "method": ("method", shorten),
            "mean_rank": ("mean rank", lambda v: decimal(v, 2)),
            "told_apart_from_first": ("told apart from the first", lambda v: "yes" if v else "no"),
        },
    )


# ---- JSON


def arena_record(arena: Arena, *, problems: Iterable[str] = (), **extra: Any) -> dict[str, Any]:
    """Convert an arena to plain values; the result can be loaded again.

    Parameters
    ----------
    arena : Arena
    problems : iterable of str
        Files that could not be used.
    **extra
        Further entries of the record.
    """
    several = len(arena.boards) > 1
    return stamped(
        {
            "format": "arena",
            **_board(arena.overall),
            "boards": {b.key: {"title": b.title, **_board(b)} for b in arena.boards if several},
            "ranges": {
                board: {part.key: {"title": part.title, **_board(part)} for part in parts}
                for board, parts in arena.strata.items()
            },
            "notes": arena.notes,
            "problems": list(problems),
            **extra,
            "arena": arena_sources.record(arena.whole),
        }
    )


def _board(board: Leaderboard) -> dict[str, Any]:
    return {
        "experiments": len(board.table),
        "methods": {
            s.method: {
                **picked(s, "winrate interval"),
                "worse_than_none": s.worse_than_none.get(SCORES[0]),
                "worse_than_none_by": s.worse_than_none,
                **picked(s, "seconds elo elo_interval rank gain median_gain experiments failed"),
            }
            for s in board
        },
        "baseline": board.baseline,
        "interval_over": "data sets",
        "critical_difference": {
            key: picked(c, "ranks blocks")
            | {"unit": "data sets"}
            | picked(c, "difference statistic p_value")
            for key, c in board.critical.items()
        },
        "left_out": board.left_out,
    }

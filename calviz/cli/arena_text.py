"""Text output of an arena for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from calviz.cli.text import cell, console, short_name
from calviz.results.arena import SCORES
from calviz.results.arena_words import blocks_words, headline, rated_words, winrate_text
from calviz.specs.metric import METRICS
from calviz.text.words import p_value, percent, points, seconds_text

if TYPE_CHECKING:
    from calviz.results.leaderboard import Arena, Leaderboard, Standing

#: Number of methods named for each range of rows or classes.
FIRST = 3


def print_arena(arena: Arena) -> None:
    """Print each leaderboard, the leading methods by number of rows and of classes, and the notes."""
    out = console()
    for board in arena.boards:
        out.print()
        out.print(cell(headline(board), style="bold"), soft_wrap=True)
        out.print()
        out.print(_table(board))
        out.print()
        for score, c in board.critical.items():
            first, *_ = c.ranks
            alike = next((clique for clique in c.cliques() if first in clique), (first,))
            text = (
                f"{METRICS[score].label}: mean ranks that differ by less than {c.difference:.2f} are not told apart (Nemenyi, "
                f"{blocks_words(c)}; Friedman {p_value(c.p_value)}); "
                f"not told apart from the first: {', '.join(map(short_name, alike[1:])) or 'none'}."
            )
            out.print(cell(text, style="dim"), soft_wrap=True)
        out.print(cell(rated_words(board), style="dim"), soft_wrap=True)
        if parts := arena.strata.get(board.key, ()):
            out.print()
            out.print(_ranges(parts))
    out.print()
    for note in arena.notes:
        out.print(cell(note, style="yellow"), soft_wrap=True)


def _table(board: Leaderboard) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("method", no_wrap=True)
    labels = [METRICS[score].label for score in SCORES]
    titles = [f"{label}: winrate (95 %)" for label in labels] + [f"Elo {label}" for label in labels]
    if board.baseline is not None:
        titles += ["gain, points", "median", "worse than none", "by NLL"]
    titles.append("time")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    best = {score: board.ranking(score)[0].method for score in SCORES}
    for s in board:
        cells = [
            Text(winrate_text(s, score), style="bold" if s.method == best[score] else "")
            for score in SCORES
        ]
        cells += [cell(f"{s.elo[score]:,.0f}" if score in s.elo else "-") for score in SCORES]
        if board.baseline is not None:
            cells += [cell(text) for text in _against(s, board.baseline)]
        table.add_row(cell(short_name(s.method)), *cells, cell(seconds_text(s.seconds)))
    return table


def _against(s: Standing, baseline: str) -> tuple[str, ...]:
    if s.method == baseline:
        return ("", "", "", "")
    return (
        points(s.gain[SCORES[0]], 2, plus=True),
        points(s.median_gain[SCORES[0]], 2, plus=True),
        *(percent(s.worse_than_none[score], 0) for score in SCORES),
    )


def _ranges(parts: tuple[Leaderboard, ...]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for title in ("range", "experiments", *(f"first by {METRICS[s].label}" for s in SCORES)):
        table.add_column(title, justify="right" if title == "experiments" else "left", no_wrap=True)
    for part in parts:
        firsts = [
            ", ".join(
                f"{short_name(s.method)} {s.winrate[score]:.3f}"
                for s in part.ranking(score)[:FIRST]
            )
            for score in SCORES
        ]
        table.add_row(cell(part.title), cell(f"{len(part.table):,}"), *map(cell, firsts))
    return table

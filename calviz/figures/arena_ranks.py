"""Ranks of an arena: the critical-difference diagram of mean ranks, and winrates with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calviz.comparison.arena_results import SCORES, CriticalDifference, Leaderboard
from calviz.core.entry_specs import METRICS
from calviz.core.errors import NotAvailable, claim
from calviz.core.words import counted, listed, p_value, plotly_text, shorten
from calviz.figures import marks
from calviz.figures.figure import Figure
from calviz.figures.marks import Picture, Sheet, Trace, label, line, markers, name_room


@dataclass(frozen=True, eq=False)
class CriticalRanks(Figure):
    """Mean ranks by one score, ready to draw (Demšar 2006, figure 1, but with one row per method).

    Attributes
    ----------
    title : str
    score : str
    critical : CriticalDifference
    """

    title: str
    score: str
    critical: CriticalDifference

    @classmethod
    def compute(cls, board: Leaderboard, *, score: str = SCORES[0]) -> Self:
        """Take the ranks from a leaderboard.

        Raises
        ------
        NotAvailable
            If there are too few data sets or methods for the test.
        """
        if score not in board.critical:
            raise NotAvailable(
                "the critical-difference diagram needs three methods in the same five data sets."
            )
        return cls(board.title, score, board.critical[score])

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods from the smallest mean rank to the largest."""
        return tuple(self.critical.ranks)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per method; `told_apart_from_first`: rank at least the critical difference above the smallest."""
        ranks = np.array(list(self.critical.ranks.values()))
        return {
            "method": self.methods,
            "mean_rank": ranks,
            "told_apart_from_first": ranks - ranks[0] >= self.critical.difference,
        }

    def caption(self) -> tuple[str, ...]:
        """The score; blocks and the critical difference."""
        c = self.critical
        return (
            f"Mean ranks by {METRICS[self.score].label}, {self.title[:1].lower()}{self.title[1:]}",
            f"{counted(c.blocks, 'data set')} · critical difference {c.difference:.2f} · Friedman {p_value(c.p_value)}",
        )

    @claim(
        "mean-ranks",
        says="By Brier score a has the smallest mean rank; ranks closer than 0.9 are not told apart",
        chosen="the first of all methods, and all pairs",
        adjusted="Nemenyi's critical difference, the studentised range over all pairs",
    )
    def describe(self) -> str:
        """Say in plain words which method is first, and which do not differ significantly from it."""
        first, *others = self.methods
        ranks = self.critical.ranks
        alike = [m for m in others if ranks[m] - ranks[first] < self.critical.difference]
        near = "all others are told apart from it"
        if alike:
            near = f"not told apart from it: {listed(alike, most=6)}"
        return (
            f"By {METRICS[self.score].label} {listed([first])} has the smallest mean rank, {ranks[first]:.2f}, over "
            f"{counted(self.critical.blocks, 'data set')}; ranks closer than {self.critical.difference:.2f} are not told apart; {near}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw one row per method, and bars that join methods without significant difference."""
        p, methods, c = sheet.palette, self.methods, self.critical
        ranks = np.array(list(c.ranks.values()))
        lowest, highest, cliques = float(ranks.min()), float(ranks.max()), c.cliques()
        span = max(float(np.ptp(ranks)), c.difference, 1.0)
        # Bars are placed in lanes to the right of the largest rank.
        bars = highest + 0.045 * span * np.arange(1, len(cliques) + 1)
        air = _AIR * span
        high = max(highest, *bars, 0.0, lowest + c.difference) + air
        above, names = sheet.narrow, [plotly_text(name, _NAME) for name in methods]
        left = name_room(() if above else [shorten(name, _NAME) for name in methods], _BESIDE)
        place: Trace = {"xref": "x", "yref": "paper", "x": lowest, "y": 1, "yshift": 12}
        place |= {"xanchor": "left", "yanchor": "bottom", "font": {"size": 12, "color": p.muted}}
        critical = label(f"critical difference {c.difference:.2f}", p, **place)
        return sheet.picture(
            [*_rank_points(self, sheet, ranks), *_bars(self, sheet, bars)],
            inner=(_TALL if above else _ROW) * len(methods),
            margins=(left, _RIGHT, _TOP, _BOTTOM),
            above=_TOP - 8,
            shapes=list(_ruler(sheet, lowest, lowest + c.difference)),
            annotations=[critical, *(sheet.names_above(names, 6) if above else ())],
            xaxis=sheet.axis("Mean rank (1 is best)", range=[lowest - air, high], nticks=7),
            yaxis=sheet.row_axis(names, ticks="", showticklabels=not above),
        )


_RIGHT, _TOP, _BOTTOM, _ROW, _TALL = 16, 34, 50, 24, 42
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 38, 18
#: Width in pixels of a bar that joins methods, and space left free beside the ranks, as a share of their span.
_BAR, _AIR = 4, 0.04


def _rank_points(figure: CriticalRanks, sheet: Sheet, ranks: Any) -> Iterator[Trace]:
    p = sheet.palette
    differs = ranks - ranks[0] >= figure.critical.difference
    rows = np.arange(len(ranks))
    texts = [f"{plotly_text(m, 60)}: {r:.2f}" for m, r in figure.critical.ranks.items()]
    for mask, colour, symbol in ((~differs, p.blue, "circle"), (differs, p.neutral, "circle-open")):
        if mask.any():
            hover = [texts[i] for i in np.flatnonzero(mask)]
            look: Trace = {"size": 9, "symbol": symbol, "edge": colour, "hover": hover}
            yield markers(ranks[mask], rows[mask], colour, **look)


def _bars(figure: CriticalRanks, sheet: Sheet, places: Any) -> Iterator[Trace]:
    rows = {name: at for at, name in enumerate(figure.methods)}
    for place, clique in zip(places, figure.critical.cliques(), strict=True):
        first, last = clique[0], clique[-1]
        ends = np.array([place, place]), np.array([rows[first] - 0.25, rows[last] + 0.25])
        text = f"{plotly_text(first, 40)} to {plotly_text(last, 40)}: not told apart"
        look: Trace = {"width": _BAR - sheet.narrow, "hoverinfo": "text", "hovertext": text}
        yield line(*ends, sheet.palette.ink, **look)


def _ruler(sheet: Sheet, start: float, end: float) -> Iterator[Trace]:
    """Draw the critical difference as a length above the rows."""
    place: Trace = {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "ysizemode": "pixel",
        "yanchor": 1,
    }
    place["line"] = {"color": sheet.palette.muted, "width": 2}
    for x0, x1, y0, y1 in ((start, end, 8, 8), (start, start, 4, 12), (end, end, 4, 12)):
        yield place | {"x0": x0, "x1": x1, "y0": y0, "y1": y1}


# ---- Winrates


@dataclass(frozen=True, eq=False)
class Winrates(Figure):
    """Winrates by every score, ready to draw.

    Drawn from a result: `calviz.comparison.leaderboards.judge` computes, this class draws.

    Attributes
    ----------
    board : Leaderboard
    """

    board: Leaderboard

    @classmethod
    def compute(cls, board: Leaderboard) -> Self:
        """Take the winrates from a leaderboard."""
        return cls(board)

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods, best by the first score first."""
        return tuple(s.method for s in self.board)

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Winrates by score, shape (K,) each."""
        return {score: np.array([s.winrate[score] for s in self.board]) for score in SCORES}

    def ends(self, score: str) -> Any:
        """Ends of the intervals of the winrates by a score, shape (2, K); nan where there is none."""
        none = (np.nan, np.nan)
        return np.array([s.interval.get(score) or none for s in self.board], dtype=float).T

    def columns(self) -> Mapping[str, Any]:
        """One row per method."""
        rows: dict[str, Any] = {"method": self.methods}
        for score, values in self.values.items():
            low, high = self.ends(score)
            rows |= {score: values, f"{score}_low": low, f"{score}_high": high}
        return rows

    def caption(self) -> tuple[str, ...]:
        """What is drawn; number of experiments: one line each."""
        shown = any(np.isfinite(self.ends(score)).any() for score in SCORES)
        title, rows = self.board.title, counted(len(self.board.table), "experiment")
        head = f"Winrates, {title[:1].lower()}{title[1:]}"
        return head, rows + (" · 95 % intervals" if shown else "")

    def describe(self) -> str:
        """Say in plain words who is first and last."""
        parts = []
        for score, values in self.values.items():
            first, last = int(np.nanargmax(values)), int(np.nanargmin(values))
            parts.append(
                f"by {METRICS[score].label} {listed([self.methods[first]])} is first with {values[first]:.2f}, "
                f"{listed([self.methods[last]])} last with {values[last]:.2f}"
            )
        return (
            f"Winrates of {counted(len(self.methods), 'method')} in {counted(len(self.board.table), 'experiment')}: "
            f"{'; '.join(parts)}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw winrates."""
        names = [plotly_text(name, _NAME) for name in self.methods]
        if self.board.baseline in self.methods:
            at = self.methods.index(self.board.baseline)
            names[at] = f"<i>{names[at]}</i>"
        above, short = sheet.narrow, [shorten(name, _NAME) for name in self.methods]
        half: Trace = {"x": 0.5, "width": 1.5, "dash": "4px,3px", "yref": "paper", "layer": "below"}
        return sheet.picture(
            _winrate_points(self, sheet),
            inner=(_WINRATES_TALL if above else _WINRATES_ROW) * len(names),
            margins=(name_room(() if above else short, _BESIDE), _RIGHT, _WINRATES_TOP, _BOTTOM),
            legend_over="container",
            shapes=[marks.vertical_shape(sheet.palette.neutral, **half)],
            xaxis=sheet.axis("Winrate", range=[-0.02, 1.02], tickformat=".1f", nticks=6),
            yaxis=sheet.row_axis(names, ticks="", showticklabels=not above),
            annotations=sheet.names_above(names, 13) if above else (),
        )


_WINRATES_TOP, _WINRATES_ROW, _WINRATES_TALL = 10, 27, 56


def _winrate_points(figure: Winrates, sheet: Sheet) -> Iterator[Trace]:
    p = sheet.palette
    looks = ((p.blue, "circle"), (p.vermillion, "square"))
    rows = np.arange(len(figure.methods), dtype=np.float64)
    for at, ((score, values), (colour, symbol)) in enumerate(
        zip(figure.values.items(), looks, strict=True)
    ):
        low, high = figure.ends(score)
        texts = [
            f"{plotly_text(name, 60)}<br>{METRICS[score].label}: {value:.3f}"
            + ("" if np.isnan(a) else f" (95 % CI {a:.3f} to {b:.3f})")
            for name, value, a, b in zip(figure.methods, values, low, high, strict=True)
        ]
        ends = np.nan_to_num(high - values), np.nan_to_num(values - low)
        bars = marks.whiskers(*ends, colour, thickness=1.5, width=3)
        look: Trace = {"size": 8, "symbol": symbol, "name": METRICS[score].label, "hover": texts}
        # Offset of the scores of one method from the middle of its row, in rows.
        yield markers(values, rows + (at - 0.5) * 2 * 0.17, colour, error_x=bars, **look)

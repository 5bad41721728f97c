"""Ranks of an arena: the critical-difference diagram of mean ranks, and winrates with their intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.comparison.arena_results import SCORES, CriticalDifference, Leaderboard, blocks_words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import METRICS
from calviz.core.errors import NotAvailable
from calviz.core.words import counted, listed, p_value, plotly_text, shorten
from calviz.figures.figure import Figure
from calviz.figures.marks import (
    Picture,
    Sheet,
    Trace,
    label,
    line,
    markers,
    vertical_shape,
    whiskers,
)
from calviz.figures.style import axis, name_room, row_axis


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
            f"{blocks_words(c)} · critical difference {c.difference:.2f} · Friedman {p_value(c.p_value)}",
        )

    def describe(self) -> str:
        """Say in plain words which method is first, and which do not differ significantly from it."""
        first, *others = self.methods
        ranks = self.critical.ranks
        alike = [m for m in others if ranks[m] - ranks[first] < self.critical.difference]
        near = (
            f"not told apart from it: {listed(alike, most=6)}"
            if alike
            else "all others are told apart from it"
        )
        return (
            f"By {METRICS[self.score].label} {listed([first])} has the smallest mean rank, {ranks[first]:.2f}, over "
            f"{blocks_words(self.critical)}; ranks closer than {self.critical.difference:.2f} are not told apart; {near}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw one row per method, and bars that join methods without significant difference."""
        p, methods = sheet.palette, self.methods
        ranks = np.array(list(self.critical.ranks.values()))
        cliques = self.critical.cliques()
        span = max(float(np.ptp(ranks)), self.critical.difference, 1.0)
        step = 0.045 * span
        # Bars are placed in lanes to the right of the largest rank.
        bars = float(ranks.max()) + step * np.arange(1, len(cliques) + 1)
        low, high = (
            float(ranks.min()) - _AIR * span,
            max(float(ranks.max()), *bars, 0.0) + _AIR * span,
        )
        high = max(high, float(ranks.min()) + self.critical.difference + _AIR * span)
        left = name_room([shorten(name, _NAME) for name in methods], _BESIDE)
        return sheet.picture(
            [*_rank_points(self, sheet, ranks), *_bars(self, sheet, bars)],
            inner=_ROW * len(methods),
            margins=(left, _RIGHT, _TOP, _BOTTOM),
            above=_TOP - 8,
            shapes=list(_ruler(self, sheet, float(ranks.min()))),
            annotations=[
                label(
                    f"critical difference {self.critical.difference:.2f}",
                    p,
                    xref="x",
                    yref="paper",
                    x=float(ranks.min()),
                    y=1,
                    yshift=12,
                    xanchor="left",
                    yanchor="bottom",
                    font={"size": 12, "color": p.muted},
                )
            ],
            xaxis=axis(p, "Mean rank (1 is best)", range=[low, high], nticks=7),
            yaxis=row_axis(p, [plotly_text(name, _NAME) for name in methods], ticks=""),
        )


_RIGHT, _TOP, _BOTTOM, _ROW = 16, 34, 50, 24
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 24, 18
#: Width in pixels of a bar that joins methods, and space left free beside the ranks, as a share of their span.
_BAR, _AIR = 4, 0.04


def _rank_points(figure: CriticalRanks, sheet: Sheet, ranks: Any) -> Iterator[Trace]:
    p = sheet.palette
    differs = ranks - ranks[0] >= figure.critical.difference
    rows = np.arange(len(ranks))
    for mask, colour, symbol in ((~differs, p.blue, "circle"), (differs, p.neutral, "circle-open")):
        if not mask.any():
            continue
        yield markers(
            ranks[mask],
            rows[mask],
            colour,
            size=9,
            symbol=symbol,
            edge=colour,
            hovertext=[
                f"{plotly_text(figure.methods[i], 60)}: {ranks[i]:.2f}"
                for i in np.flatnonzero(mask)
            ],
            hoverinfo="text",
        )


def _bars(figure: CriticalRanks, sheet: Sheet, places: Any) -> Iterator[Trace]:
    rows = {name: at for at, name in enumerate(figure.methods)}
    for place, clique in zip(places, figure.critical.cliques(), strict=True):
        first, last = rows[clique[0]], rows[clique[-1]]
        yield line(
            np.array([place, place]),
            np.array([first - 0.25, last + 0.25]),
            sheet.palette.ink,
            width=_BAR - sheet.narrow,
            hoverinfo="text",
            hovertext=f"{plotly_text(clique[0], 40)} to {plotly_text(clique[-1], 40)}: not told apart",
        )


def _ruler(figure: CriticalRanks, sheet: Sheet, start: float) -> Iterator[dict[str, Any]]:
    """Draw the critical difference as a length above the rows."""
    style = {"color": sheet.palette.muted, "width": 2}
    end = start + figure.critical.difference
    place = {"type": "line", "xref": "x", "yref": "paper", "ysizemode": "pixel", "yanchor": 1}
    yield {**place, "x0": start, "x1": end, "y0": 8, "y1": 8, "line": style}
    for x in (start, end):
        yield {**place, "x0": x, "x1": x, "y0": 4, "y1": 12, "line": style}


# ---- Winrates


@dataclass(frozen=True, eq=False)
class Winrates(Figure):
    """Winrates by every score, ready to draw.

    Drawn from a result: `calviz.comparison.leaderboards.judge` computes, this class draws.

    Attributes
    ----------
    title : str
    experiments : int
    methods : tuple of str, K of them
        Methods, best by the first score first.
    baseline : str or None
        The method that leaves the scores unchanged.
    values, low, high : mapping of str to ndarray, shape (K,)
        Winrates and ends of their intervals by score; the ends are nan where there is no interval.
    """

    title: str
    experiments: int
    methods: tuple[str, ...]
    baseline: str | None
    values: Mapping[str, FloatArray]
    low: Mapping[str, FloatArray]
    high: Mapping[str, FloatArray]

    @classmethod
    def compute(cls, board: Leaderboard) -> Self:
        """Take the winrates from a leaderboard."""
        none = (np.nan, np.nan)
        ends = {
            score: np.array([s.interval.get(score) or none for s in board], dtype=np.float64)
            for score in SCORES
        }
        return cls(
            board.title,
            len(board.table),
            tuple(s.method for s in board),
            board.baseline,
            {score: np.array([s.winrate[score] for s in board]) for score in SCORES},
            {score: pair[:, 0] for score, pair in ends.items()},
            {score: pair[:, 1] for score, pair in ends.items()},
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per method."""
        rows: dict[str, Any] = {"method": self.methods}
        for score in self.values:
            rows |= {
                score: self.values[score],
                f"{score}_low": self.low[score],
                f"{score}_high": self.high[score],
            }
        return rows

    def caption(self) -> tuple[str, ...]:
        """What is drawn; number of experiments: one line each."""
        shown = any(np.isfinite(low).any() for low in self.low.values())
        return (
            f"Winrates, {self.title[:1].lower()}{self.title[1:]}",
            counted(self.experiments, "experiment") + (" · 95 % intervals" if shown else ""),
        )

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
            f"Winrates of {counted(len(self.methods), 'method')} in {counted(self.experiments, 'experiment')}: "
            f"{'; '.join(parts)}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw winrates."""
        p = sheet.palette
        names = [plotly_text(name, _NAME) for name in self.methods]
        if self.baseline in self.methods:
            at = self.methods.index(self.baseline)
            names[at] = f"<i>{names[at]}</i>"
        left = name_room([shorten(name, _NAME) for name in self.methods], _BESIDE)
        traces = list(_winrate_points(self, sheet))
        return sheet.picture(
            traces,
            inner=_WINRATES_ROW * len(names),
            margins=(left, _RIGHT, _WINRATES_TOP, _BOTTOM),
            legend_over="container",
            shapes=[
                vertical_shape(
                    p.neutral, x=0.5, width=1.5, dash="4px,3px", yref="paper", layer="below"
                )
            ],
            xaxis=axis(p, "Winrate", range=[-0.02, 1.02], tickformat=".1f", nticks=6),
            yaxis=row_axis(p, names, ticks=""),
        )


_WINRATES_TOP, _WINRATES_ROW = 10, 27
#: Offset of the scores of one method from the middle of its row, in rows.
_APART = 0.17


def _winrate_points(figure: Winrates, sheet: Sheet) -> Iterator[Trace]:
    p = sheet.palette
    looks = ((p.blue, "circle"), (p.vermillion, "square"))
    rows = np.arange(len(figure.methods), dtype=np.float64)
    for at, ((score, values), (colour, symbol)) in enumerate(
        zip(figure.values.items(), looks, strict=True)
    ):
        low, high = figure.low[score], figure.high[score]
        texts = [
            f"{plotly_text(name, 60)}<br>{METRICS[score].label}: {value:.3f}"
            + ("" if np.isnan(a) else f" (95 % CI {a:.3f} to {b:.3f})")
            for name, value, a, b in zip(figure.methods, values, low, high, strict=True)
        ]
        yield markers(
            values,
            rows + (at - 0.5) * 2 * _APART,
            colour,
            size=8,
            symbol=symbol,
            name=METRICS[score].label,
            error_x=whiskers(
                np.nan_to_num(high - values),
                np.nan_to_num(values - low),
                colour,
                thickness=1.5,
                width=3,
            ),
            hovertext=texts,
            hoverinfo="text",
        )

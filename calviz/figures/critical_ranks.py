"""The critical-difference diagram of an arena: mean ranks, and which methods do not differ significantly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.errors import NotAvailable
from calviz.figures.base import Figure
from calviz.results.arena import SCORES
from calviz.results.arena_words import blocks_words
from calviz.results.leaderboard import CriticalDifference, Leaderboard
from calviz.specs.metric import METRICS
from calviz.text.words import listed, p_value


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
                "the critical-difference diagram needs three methods in the same five data sets or experiments."
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

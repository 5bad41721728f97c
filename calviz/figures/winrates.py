"""Winrates of the methods of an arena, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.base import Figure
from calviz.results.arena import SCORES
from calviz.results.leaderboard import Leaderboard
from calviz.specs.metric import METRICS
from calviz.text.words import counted, listed


@dataclass(frozen=True, eq=False)
class Winrates(Figure):
    """Winrates by every score, ready to draw.

    Drawn from a result: `calviz.arena.judge` computes, this class draws.

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
        return (
            f"Winrates, {self.title[:1].lower()}{self.title[1:]}",
            f"{counted(self.experiments, 'experiment')} · 95 % intervals",
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

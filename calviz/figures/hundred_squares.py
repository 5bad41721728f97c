"""Predicted and observed frequency, drawn as grids of 100 squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from calviz.core.reduction import Reduction
from calviz.figures.base import Figure
from calviz.results.verdict import Verdict
from calviz.text.words import counted, percent, range_ends

#: Squares per panel.
HUNDRED = 100


@dataclass(frozen=True)
class Promise:
    """A promise (mean score) and how often it was kept (share of hits).

    Attributes
    ----------
    title : str
    mean_score, observed : float
        Mean score, and share of hits.
    rows : int
    decimals : int
        Decimals of both in percent.
    """

    title: str
    mean_score: float
    observed: float
    rows: int
    decimals: int = 1

    @property
    def squares(self) -> tuple[int, int]:
        """Number of squares, of a hundred, for the mean score and for the share of hits."""
        return round(HUNDRED * self.mean_score), round(HUNDRED * self.observed)

    @property
    def words(self) -> str:
        """Both numbers in words, rounded as in the verdict."""
        promised, happened = (percent(v, self.decimals) for v in (self.mean_score, self.observed))
        return f"promised {promised}, happened {happened}"


@dataclass(frozen=True, eq=False)
class HundredSquares(Figure):
    """Mean score and share of hits of all rows, and of the rows where they differ most, as grids of 100 squares.

    Attributes
    ----------
    reduction : Reduction
    panels : tuple of Promise
    """

    reduction: Reduction
    panels: tuple[Promise, ...]

    @classmethod
    def compute(cls, verdict: Verdict) -> Self:
        """Take the numbers from a verdict.

        Parameters
        ----------
        verdict : Verdict
        """
        panels = [
            Promise(
                "All rows", verdict.score, verdict.observed, verdict.rows, verdict.share_decimals
            )
        ]
        worst = verdict.worst
        if worst is not None:
            low, high = (
                f"{HUNDRED * float(end):.10g}"
                for end in range_ends(worst.low, worst.high, tolerance=0.06)
            )
            title = f"Where it says {low} to {high}\u00a0%"
            panels.append(
                Promise(title, worst.mean_score, worst.observed, worst.rows, worst.share_decimals)
            )
        return cls(Reduction.of(verdict.reduction), tuple(panels))

    @property
    def decimals(self) -> int:
        """Decimals in percent that suit the numbers of all panels."""
        return max(panel.decimals for panel in self.panels)

    def columns(self) -> Mapping[str, Any]:
        """One row per panel."""
        return {
            "rows_of": [panel.title for panel in self.panels],
            "rows": [panel.rows for panel in self.panels],
            "promised": [panel.mean_score for panel in self.panels],
            "happened": [panel.observed for panel in self.panels],
        }

    def caption(self) -> tuple[str, ...]:
        """Title; mean score and share of hits of all rows: one line each."""
        return "Promised and happened", self.panels[0].words

    def describe(self) -> str:
        """Say what the squares show."""
        return " ".join(
            f"{panel.title} ({counted(panel.rows, 'row')}): {panel.words}." for panel in self.panels
        )

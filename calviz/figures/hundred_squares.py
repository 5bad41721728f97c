"""Predicted and observed frequency, drawn as grids of 100 squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from calviz.core.reduction import Reduction
from calviz.figures.base import Figure
from calviz.results.verdict import Verdict
from calviz.text.words import counted, ends, percent

#: Squares per panel.
HUNDRED = 100


@dataclass(frozen=True)
class Kept:
    """A promise (mean score) and how often it was kept (share of hits).

    Attributes
    ----------
    title : str
    said, happened : float
        Mean score, and share of hits.
    rows : int
    decimals : int
        Decimals of both in percent.
    """

    title: str
    said: float
    happened: float
    rows: int
    decimals: int = 1

    @property
    def squares(self) -> tuple[int, int]:
        """Number of squares, of a hundred, for `said` and for `happened`."""
        return round(HUNDRED * self.said), round(HUNDRED * self.happened)

    @property
    def words(self) -> str:
        """Both numbers in words, rounded as in the verdict."""
        said, happened = (percent(v, self.decimals) for v in (self.said, self.happened))
        return f"promised {said}, happened {happened}"


@dataclass(frozen=True, eq=False)
class OfAHundred(Figure):
    """Mean score and share of hits of all rows, and of the rows where they differ most, as grids of 100 squares.

    Attributes
    ----------
    reduction : Reduction
    panels : tuple of Kept
    """

    reduction: Reduction
    panels: tuple[Kept, ...]

    @classmethod
    def compute(cls, verdict: Verdict) -> Self:
        """Take the numbers from a verdict.

        Parameters
        ----------
        verdict : Verdict
        """
        panels = [
            Kept("All rows", verdict.score, verdict.observed, verdict.rows, verdict.share_decimals)
        ]
        worst = verdict.worst
        if worst is not None:
            low, high = (
                f"{HUNDRED * float(end):.10g}"
                for end in ends(worst.low, worst.high, tolerance=0.06)
            )
            title = f"Where it says {low} to {high} %"
            panels.append(
                Kept(title, worst.mean_score, worst.observed, worst.rows, worst.share_decimals)
            )
        return cls(Reduction.of(verdict.reduction), tuple(panels))

    def columns(self) -> Mapping[str, Any]:
        """One row per panel."""
        return {
            "rows_of": [panel.title for panel in self.panels],
            "rows": [panel.rows for panel in self.panels],
            "promised": [panel.said for panel in self.panels],
            "happened": [panel.happened for panel in self.panels],
        }

    def caption(self) -> tuple[str, ...]:
        """Title; mean score and share of hits of all rows: one line each."""
        return "Promised and happened", self.panels[0].words

    def describe(self) -> str:
        """Say what the squares show."""
        return " ".join(
            f"{panel.title} ({counted(panel.rows, 'row')}): {panel.words}." for panel in self.panels
        )

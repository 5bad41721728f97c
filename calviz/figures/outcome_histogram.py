"""Distribution of the scores of hits and of misses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, facts, named
from calviz.figures.drawing.curves_and_labels import Trace, hatched
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import axis
from calviz.numerics.safe_division import quotient
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, bin_sums
from calviz.specs.figure import figure
from calviz.text.escape import plotly_text
from calviz.text.words import counted, decimal, shorten, with_short_class

#: Number of bins of the histograms.
BINS = 50
#: Margins (left, right, above, below) and height of the panel, in pixels.
_MARGINS, _TALL = (66, 20, 14, 54), 300


@figure(
    key="outcome-histogram",
    label="Scores by outcome",
    summary="Histograms of the scores of hits, upwards, and of misses, downwards, each as a share of its own rows: how far apart the "
    "two are, and where decisions are made.",
    reference="Van Calster et al. 2025",
)
@dataclass(frozen=True, eq=False)
class OutcomeHistogram(Figure):
    """Histograms of the scores by outcome.

    Attributes
    ----------
    name : str
    split : str or None
    reduction : Reduction
        Defines score and hit.
    sums : BinSums
        Rows, scores and hits in bins of equal width.
    """

    name: str
    split: str | None
    reduction: Reduction
    sums: BinSums

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        seed: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Count the rows per bin; parameters as for other figures, but nothing here is random."""
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed)
        sums = sample.view(bin_sums, bins=BINS, scheme="equal-width")
        return cls(sample.data.name, sample.split, sample.reduction, sums)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per bin: its edges, hits and misses; rows with weights are rounded to whole numbers together."""
        edges, outcomes = self.sums.edges.astype(np.float64), self.sums.whole_outcomes
        return {
            "low": edges[:-1],
            "high": edges[1:],
            "hits": outcomes[:, 1],
            "misses": outcomes[:, 0],
        }

    @property
    def _rows(self) -> tuple[int, int]:
        """All hits, and all misses."""
        misses, hits = self.sums.whole_outcomes.sum(axis=0).tolist()
        return hits, misses

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score: one line each."""
        rows = counted(sum(self._rows), "row")
        return shorten(self.name, NAME_LENGTH), facts(
            self.split, rows, with_short_class(self.reduction).label
        )

    def describe(self) -> str:
        """Say how high the scores of hits and of misses are on average."""
        hits, misses = self._rows
        # Rows and sums of scores, of misses and of hits.
        count, score = self.sums.cells.sum(axis=-2)
        parts = [
            f"{counted(n, one, many)} with a mean score of {decimal(float(score[hit] / count[hit]))}"
            for n, hit, one, many in ((hits, 1, "hit", "hits"), (misses, 0, "miss", "misses"))
            if n
        ]
        return f"Scores by outcome, {named(self.name, self.split)}: {' and '.join(parts)}."

    def draw(self, sheet: Sheet) -> Picture:
        """Draw hits upwards and misses downwards."""
        p, rows = sheet.palette, self.columns()
        hits, misses = self._rows
        exact = self.sums.cells[0]
        middle = (rows["low"] + rows["high"]) / 2
        traces: list[Trace] = []
        for name, hit, sign, n, colour, shape in (
            ("hits", 1, 1, hits, p.blue, ""),
            ("misses", 0, -1, misses, p.vermillion, "/"),
        ):
            share = 100 * quotient(exact[:, hit], exact[:, hit].sum(), otherwise=0.0)
            marker: Trace = {"color": colour, "line": {"width": 0}}
            if shape:
                marker["pattern"] = hatched(colour, p, shape=shape, tint=0.3, solidity=0.4)
            traces.append(
                {
                    "type": "bar",
                    "x": middle,
                    "y": sign * share,
                    "width": rows["high"] - rows["low"],
                    "name": f"{name.capitalize()} ({n:,})",
                    "marker": marker,
                    "customdata": np.stack([rows[name], share], axis=1),
                    "hovertemplate": f"%{{customdata[0]:,}} {name}, %{{customdata[1]:.1f}} %, near %{{x:.2f}}<extra></extra>",
                }
            )
        most = max((float(np.abs(t["y"]).max()) for t in traces), default=1.0)
        step = _tick(most)
        ticks = np.arange(-np.ceil(most / step), np.ceil(most / step) + 1) * step
        reduction = with_short_class(self.reduction)
        return sheet.picture(
            traces,
            inner=_TALL,
            margins=_MARGINS,
            barmode="overlay",
            bargap=0,
            xaxis=axis(p, plotly_text(reduction.score_label), range=[0, 1], dtick=0.1),
            yaxis=axis(
                p,
                "Share of the outcome",
                range=[-1.08 * most, 1.08 * most],
                tickvals=ticks.tolist(),
                ticktext=[f"{abs(t):.3g} %" for t in ticks.tolist()],
            ),
        )


def _tick(most: float) -> float:
    """Return a round distance between ticks."""
    power = 10.0 ** np.floor(np.log10(max(most, 1e-9) / 2))
    return float(next(k * power for k in (1, 2, 5, 10) if k * power >= most / 3))

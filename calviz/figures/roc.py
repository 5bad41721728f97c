"""ROC and precision-recall curves with their areas."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.options import check_choice
from calviz.figures.base import named, score_lines
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.figures.score_figure import ScoreFigure
from calviz.results.metric_result import Interval
from calviz.sample.cutoff import CutoffCounts
from calviz.sample.error_bars import interval, resampled
from calviz.sample.few_events import has_both_kinds, interval_of_area
from calviz.sample.ranking import average_precision, chance_of_order, ranked
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.specs.figure import Theme, figure
from calviz.text.words import counted, decimal, level_text, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

RocPanel = Literal["roc", "precision-recall"]
#: Maximum number of points drawn per curve.
POINTS = 400


@figure(
    key="roc",
    label="ROC and precision-recall",
    summary="Sensitivity against the false alarm rate, and precision against sensitivity, for every cutoff, with the areas below "
    "and their intervals.",
    reference="Hanley & McNeil 1982; Davis & Goadrich 2006",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Roc(ScoreFigure):
    """ROC and precision-recall curves, computed; `plot` draws one of them.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    share : float
        Share of hits.
    cutoff : ndarray, shape (P,)
        Rows with at least this score are decided for; descending, starting with infinity, which decides for none.
    sensitivity, false_alarms, precision : ndarray, shape (P,)
        Share of the hits decided for, share of the misses decided for, and share of hits among the decisions for; ``nan``
        where the denominator is 0.
    auroc, auprc : float
        Areas under the curves; ``nan`` where undefined.
    auroc_interval, auprc_interval : Interval or None
        Percentile bootstrap intervals; of the AUROC of independent rows, the score interval (`calviz.sample.few_events`).
    """

    share: float
    cutoff: FloatArray
    sensitivity: FloatArray
    false_alarms: FloatArray
    precision: FloatArray
    auroc: float
    auprc: float
    auroc_interval: Interval | None
    auprc_interval: Interval | None

    @classmethod
    def _from_sample(cls, sample: Sample, *, level: float, **common_fields: Any) -> Self:
        view = sample.view(steps)
        above = ranked(view)
        fp, tp = above.errors, above.rows - above.errors
        hits, misses = float(tp[-1]), float(fp[-1])
        along = (
            (tp / max(hits, 1) + fp / max(misses, 1)) if tp.size > POINTS else np.arange(tp.size)
        )
        some = np.unique(np.searchsorted(along, np.linspace(0, along[-1], POINTS)))
        tp, fp = (np.append(0.0, v[np.minimum(some, v.size - 1)]) for v in (tp, fp))
        areas: list[tuple[float, Interval | None]] = []
        redraws = None
        if view.n > 1:
            redraws = resampled(view, "bootstrap", **sample.redrawing)
        for area in (chance_of_order, lambda v: average_precision(v, of="hits")):
            value, ends = float(area(view)), None
            if redraws is not None and math.isfinite(value):
                values = np.concatenate([area(part) for part in redraws.parts()])
                ends = interval(values, level, view=view, value=value, bounds=(0, 1))
                if area is chance_of_order and sample.data.alike and has_both_kinds(view):
                    ends = Interval(*interval_of_area(view, level))
            areas.append((value, ends))

        def share_of(part: FloatArray, whole: FloatArray | float) -> FloatArray:
            out = np.full(part.shape, math.nan)
            np.divide(
                part, whole, out=out, where=np.broadcast_to(np.asarray(whole) > 0, part.shape)
            )
            return out

        return cls(
            level=level,
            **common_fields,
            share=hits / float(view.n),
            cutoff=np.append(math.inf, view.score[::-1][np.minimum(some, view.size - 1)]),
            sensitivity=share_of(tp, hits),
            false_alarms=share_of(fp, misses),
            precision=share_of(tp, tp + fp),
            auroc=areas[0][0],
            auprc=areas[1][0],
            auroc_interval=areas[0][1],
            auprc_interval=areas[1][1],
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff, descending."""
        return {
            "cutoff": self.cutoff,
            "sensitivity": self.sensitivity,
            "false_alarms": self.false_alarms,
            "precision": self.precision,
        }

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        panel: RocPanel = "roc",
        at: CutoffCounts | None = None,
        beside: Sequence[Overlay[Roc]] = (),
    ) -> go.Figure:
        """Draw one of the curves.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`.
        panel : {"roc", "precision-recall"}
        at : CutoffCounts, optional
            Decisions at a cutoff to mark.
        beside : sequence of Overlay
            The same curve in other states.
        """
        check_choice("panel", panel, get_args(RocPanel))
        return self._plotly_figure(theme, caption, width, panel=panel, at=at, beside=tuple(beside))

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score; the areas: one line each."""
        return *score_lines(self.name, self.split, self.n, self.reduction), self.reading()

    def area_words(self, panel: RocPanel) -> str:
        """Write the area under a curve with its interval."""
        roc = panel == "roc"
        value, ends = (
            (self.auroc, self.auroc_interval) if roc else (self.auprc, self.auprc_interval)
        )
        if math.isnan(value):
            return f"{'AUROC' if roc else 'AUPRC'} undefined"
        text = f"{'AUROC' if roc else 'AUPRC'} {decimal(value, 3)}"
        if ends is not None:
            text += (
                f" ({level_text(self.level)} CI {decimal(ends.low, 3)} to {decimal(ends.high, 3)})"
            )
        return text

    def reading(self) -> str:
        """Write both areas."""
        return f"{self.area_words('roc')}; {self.area_words('precision-recall')}, by chance {decimal(self.share, 3)}."

    def describe(self) -> str:
        """Say in plain words what the curves show."""
        return (
            f"ROC and precision-recall curves of {named(self.name, self.split)}, {counted(self.n, 'row')}, "
            f"{percent(self.share)} of them hits. {self.reading()}"
        )

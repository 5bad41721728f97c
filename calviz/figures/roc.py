"""ROC and precision-recall curves with their areas, and the scores of hits and of misses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from calviz.core.blocks import FloatArray, quotient
from calviz.core.entry_specs import Theme, figure
from calviz.core.errors import check_choice
from calviz.core.events import Reduction
from calviz.core.predictions import Dataset
from calviz.core.words import (
    counted,
    decimal,
    level_text,
    percent,
    plotly_text,
    shorten,
    with_short_class,
)
from calviz.figures.figure import NAME_LENGTH, Figure, ScoreFigure, facts, named, score_lines
from calviz.figures.marks import (
    LINE,
    Overlay,
    Picture,
    Sheet,
    Trace,
    diagonal,
    hatched,
    heading,
    line,
    markers,
    outline,
    square,
)
from calviz.figures.style import Palette, axis
from calviz.sample.binning import BinSums
from calviz.sample.cutoff_and_grades import CutoffCounts
from calviz.sample.error_bars import Interval, interval, resampled
from calviz.sample.sample import Sample, bin_sums
from calviz.sample.step_views import (
    average_precision,
    chance_of_order,
    has_both_kinds,
    interval_of_area,
    ranked,
    steps,
)

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
        Percentile bootstrap intervals; of the AUROC of rows that are not clustered, the score interval (`calviz.sample.step_views`).
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
                closed = sample.data.clusters is None and has_both_kinds(view)
                if area is chance_of_order and closed:
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

    def draw(
        self,
        sheet: Sheet,
        *,
        panel: RocPanel,
        at: CutoffCounts | None,
        beside: tuple[Overlay[Roc], ...],
    ) -> Picture:
        """Draw a curve."""
        roc = panel == "roc"
        x, y = (
            ("False alarms (1 − specificity)", "Sensitivity")
            if roc
            else ("Sensitivity (recall)", "Precision")
        )
        picture = square(
            list(_traces(self, sheet.palette, roc, at, beside)),
            sheet,
            _HEIGHT,
            x,
            y,
        )
        layout = picture["layout"]
        above = _ABOVE + LINE * len(beside)
        layout["margin"]["t"] += above
        layout["height"] += above
        text = "<br>".join(
            [
                self.area_words(panel),
                # The role instead of the name, which may be wider than the square.
                *(f"{o.role.capitalize()}: {o.content.area_words(panel)}" for o in beside),
            ]
        )
        note = heading(
            text,
            sheet.palette,
            ("x domain", "y domain"),
            font={"size": 12, "color": sheet.palette.ink},
        )
        layout["annotations"] = [*layout["annotations"], note]
        return picture


#: Height of the square with its axes, and of the line of text above it, in pixels.
_HEIGHT, _ABOVE = 350, 24


def _traces(
    f: Roc, p: Palette, roc: bool, at: CutoffCounts | None, beside: tuple[Overlay[Roc], ...]
) -> Iterator[Trace]:
    if roc:
        yield diagonal(p)
    else:
        ends = np.array([0.0, 1.0])
        yield line(ends, 0 * ends + f.share, p.ink, width=1, dash="4px,3px", hoverinfo="skip")
    for other in beside:
        _, dash, colour = outline(other.role, p)
        yield _curve(other.content, colour, roc, other.name, width=1.5, dash=dash)
    yield _curve(f, p.blue, roc, width=2.5)
    if at is not None:
        yield from _mark(at, p, roc)


def _curve(f: Roc, colour: str, roc: bool, name: str = "", **attributes: Any) -> Trace:
    x, y = (f.false_alarms, f.sensitivity) if roc else (f.sensitivity, f.precision)
    defined = np.isfinite(x) & np.isfinite(y)
    shown = np.where(np.isfinite(f.cutoff), f.cutoff, 1.0)[defined]
    # Precision must not be interpolated linearly between cutoffs, so it is drawn in steps.
    trace = line(x[defined], y[defined], colour, shape="linear" if roc else "vh", **attributes)
    extra = f"<extra>{plotly_text(name, 44)}</extra>"
    return trace | {
        "customdata": shown,
        "hovertemplate": "cutoff %{customdata:.3f}<br>%{x:.3f}, %{y:.3f}" + extra,
    }


def _mark(at: CutoffCounts, p: Palette, roc: bool) -> Iterator[Trace]:
    def share(part: FloatArray, rest: FloatArray) -> float:
        whole = float(part + rest)
        return float(part) / whole if whole else float("nan")

    sensitivity = share(at.tp, at.fn)
    x, y = (share(at.fp, at.tn), sensitivity) if roc else (sensitivity, share(at.tp, at.fp))
    if np.isfinite([x, y]).all():
        yield markers(
            [x],
            [y],
            p.vermillion,
            size=12,
            edge=p.paper,
            cliponaxis=False,
            hovertemplate=f"cutoff {at.params['cutoff']:.3g}<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>",
        )


# ---- Scores by outcome


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

"""ROC and precision-recall curves with their areas, and the scores of hits and of misses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core import blocks, entry_specs, errors, events, words
from calviz.figures import marks
from calviz.figures.figure import Data, ResampledFigure, SampleFigure, measured_at, named
from calviz.figures.marks import LINE, Drawing, Overlay, Page, Picture, Sheet, Trace, diagonal, line
from calviz.sample import step_views
from calviz.sample.binning import BinSums
from calviz.sample.cutoff_and_grades import CutoffCounts
from calviz.sample.sample import Sample, bin_sums

RocPanel = Literal["roc", "precision-recall"]
#: Maximum number of points drawn per curve.
POINTS = 400


@entry_specs.figure(
    key="roc",
    label="ROC curve",
    summary="Sensitivity against the false positive rate, and precision against sensitivity, for every cutoff, with the areas below "
    "and their intervals.",
    reference="Hanley & McNeil 1982; Davis & Goadrich 2006",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Roc(ResampledFigure):
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
    cutoff: blocks.FloatArray
    sensitivity: blocks.FloatArray
    false_alarms: blocks.FloatArray
    precision: blocks.FloatArray
    auroc: float
    auprc: float
    auroc_interval: entry_specs.Interval | None
    auprc_interval: entry_specs.Interval | None

    @classmethod
    def _from_sample(cls, sample: Sample, level: float, fields: dict[str, Any]) -> Self:
        view = sample.view(step_views.steps)
        above = step_views.ranked(view)
        fp, tp = above.errors, above.rows - above.errors
        hits, misses = tp[-1], fp[-1]
        along = tp / max(hits, 1) + fp / max(misses, 1) if tp.size > POINTS else np.arange(tp.size)
        some = np.unique(np.searchsorted(along, np.linspace(0, along[-1], POINTS)))
        tp, fp = (np.append(0.0, v[np.minimum(some, v.size - 1)]) for v in (tp, fp))
        auroc, auprc = (measured_at(sample, key, level) for key in ("auroc", "auprc"))
        return cls(
            **fields,
            share=float(hits / view.n),
            cutoff=np.append(math.inf, view.score[::-1][np.minimum(some, view.size - 1)]),
            sensitivity=blocks.quotient(tp, hits),
            false_alarms=blocks.quotient(fp, misses),
            precision=blocks.quotient(tp, tp + fp),
            auroc=auroc.value,
            auprc=auprc.value,
            auroc_interval=auroc.interval,
            auprc_interval=auprc.interval,
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff, descending."""
        return errors.picked(self, "cutoff sensitivity false_alarms precision")

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score; the areas: one line each."""
        return *self._head(), self.reading()

    def area_words(self, panel: RocPanel) -> str:
        """Write the area under a curve with its interval."""
        name, value, ends = "AUPRC", self.auprc, self.auprc_interval
        if panel == "roc":
            name, value, ends = "AUROC", self.auroc, self.auroc_interval
        if math.isnan(value):
            return f"{name} undefined"
        text = f"{name} {words.decimal(value, 3)}"
        if ends is not None:
            low, high = (words.decimal(end, 3) for end in ends)
            text += f" ({words.level_text(self.level)} CI {low} to {high})"
        return text

    def reading(self) -> str:
        """Write both areas."""
        return f"{self.area_words('roc')}; {self.area_words('precision-recall')}, by chance {words.decimal(self.share, 3)}."

    def describe(self, panel: RocPanel = "roc") -> str:
        """Say in plain words what the curve that is drawn shows."""
        curve = "ROC" if panel == "roc" else "Precision-recall"
        hits = f"{words.percent(self.share)} of them hits"
        return f"{curve} curve of {self._subject}, {hits}. {self.area_words(panel)}."

    def plot(
        self,
        *,
        panel: RocPanel = "roc",
        at: CutoffCounts | None = None,
        beside: Sequence[Overlay[Roc]] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw one of the curves.

        Parameters
        ----------
        panel : {"roc", "precision-recall"}
        at : CutoffCounts, optional
            Decisions at a cutoff to mark.
        beside : sequence of Overlay
            The same curve in other states.
        **page
            See `Figure.plot`.
        """
        errors.check_choice("panel", panel, get_args(RocPanel))
        sheet, roc = self.sheet(**page), panel == "roc"
        titles = ("Sensitivity (recall)", "Precision")
        if roc:
            titles = ("False positive rate (1 − specificity)", "Sensitivity")
        traces = _traces(self, sheet, roc, at, beside)
        picture = marks.square(traces, sheet, _HEIGHT, marks.ScoreAxes(1.0), *titles)
        layout = picture["layout"]
        layout["xaxis"]["title"]["font"]["size"] = layout["yaxis"]["title"]["font"]["size"] = 14
        above = _ABOVE + LINE * len(beside)
        layout["margin"]["t"] += above
        layout["height"] += above
        # The role instead of the name, which may be wider than the square.
        others = [f"{o.role.capitalize()}: {o.content.area_words(panel)}" for o in beside]
        text = "<br>".join([self.area_words(panel), *others])
        layout["annotations"].append(marks.heading(text, sheet.palette, ("x domain", "y domain")))
        return marks.drawn(picture)


#: Height of the square with its axes, and of the line of text above it, in pixels.
_HEIGHT, _ABOVE = 350, 24


def _traces(
    f: Roc, sheet: Sheet, roc: bool, at: CutoffCounts | None, beside: Sequence[Overlay[Roc]]
) -> Iterator[Trace]:
    p = sheet.palette
    if roc:
        yield diagonal(p)
    else:
        yield line(np.array([0.0, 1.0]), np.full(2, f.share), p.ink, width=1, dash="4px,3px")
    for other in beside:
        _, dash, colour = marks.outline(other.role, p)
        yield _curve(other.content, colour, roc, other.name, width=1.5, dash=dash)
    yield _curve(f, p.blue, roc, width=2.5)
    if at is not None:
        sensitivity, false_alarms, precision = (
            float(blocks.quotient(part, part + rest))
            for part, rest in ((at.tp, at.fn), (at.fp, at.tn), (at.tp, at.fp))
        )
        x, y = (false_alarms, sensitivity) if roc else (sensitivity, precision)
        if np.isfinite([x, y]).all():
            hover = f"cutoff {at.params['cutoff']:.3g}<br>%{{x:.3f}}, %{{y:.3f}}"
            look: Trace = {"size": 12, "edge": p.paper, "cliponaxis": False, "hover": hover}
            yield marks.markers([x], [y], p.vermillion, **look)


def _curve(f: Roc, colour: str, roc: bool, name: str = "", **attributes: Any) -> Trace:
    x, y = (f.false_alarms, f.sensitivity) if roc else (f.sensitivity, f.precision)
    defined = np.isfinite(x) & np.isfinite(y)
    return line(
        x[defined],
        y[defined],
        colour,
        # Precision must not be interpolated linearly between cutoffs, so it is drawn in steps.
        shape="linear" if roc else "vh",
        customdata=np.where(np.isfinite(f.cutoff), f.cutoff, 1.0)[defined],
        hover=f"cutoff %{{customdata:.3f}}<br>%{{x:.3f}}, %{{y:.3f}}<extra>{words.plotly_text(name, 44)}</extra>",
        **attributes,
    )


# ---- Scores by outcome


#: Number of bins of the histograms.
BINS = 50
#: Margins (left, right, above, below) and height of the panel, in pixels.
_MARGINS, _TALL = (66, 20, 14, 54), 300


@entry_specs.figure(
    key="outcome-histogram",
    label="Scores by outcome",
    summary="Histograms of the scores of hits, upwards, and of misses, downwards, each as a share of its own rows: how far apart the "
    "two are, and where decisions are made.",
    reference="Van Calster et al. 2025",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeHistogram(SampleFigure):
    """Histograms of the scores by outcome.

    Attributes
    ----------
    name, split, n
        See `SampleFigure`.
    reduction : Reduction
        Defines score and hit.
    sums : BinSums
        Rows, scores and hits in bins of equal width.
    """

    reduction: events.Reduction
    sums: BinSums

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        reduction: events.Reduction | str | None = None,
        seed: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Count the rows per bin; parameters as for other figures, but nothing here is random."""
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed)
        sums = sample.view(bin_sums, bins=BINS, scheme="equal-width")
        return cls(**cls._fields(sample), reduction=sample.reduction, sums=sums)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per bin: its edges, hits and misses, in rows."""
        edges, outcomes = self.sums.edges.astype(np.float64), self.sums.whole_outcomes
        return {
            "low": edges[:-1],
            "high": edges[1:],
            "hits": outcomes[:, 1],
            "misses": outcomes[:, 0],
        }

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score: one line each."""
        return self._head(words.with_short_class(self.reduction).label)

    def describe(self) -> str:
        """Name the data, and say the `reading`."""
        return f"Scores by outcome, {named(self.name, self.split)}: {self.reading()}"

    def reading(self) -> str:
        """Say how high the scores of hits and of misses are on average."""
        misses, hits = self.sums.whole_outcomes.sum(axis=0).tolist()
        # Rows and sums of scores, of misses and of hits.
        count, score = self.sums.cells.sum(axis=-2)
        parts = [
            f"{words.counted(n, one)} with a mean score of {words.decimal(float(score[hit] / count[hit]))}"
            for n, hit, one in ((hits, 1, "hit"), (misses, 0, "other row"))
            if n
        ]
        return f"{' and '.join(parts)}."

    def draw(self, sheet: Sheet) -> Picture:
        """Draw hits upwards and misses downwards."""
        p, rows = sheet.palette, self.columns()
        exact = self.sums.cells[0]
        middle = (rows["low"] + rows["high"]) / 2
        traces: list[Trace] = []
        for key, hit, colour, shape in (("hits", 1, p.blue, ""), ("misses", 0, p.vermillion, "/")):
            name = "hits" if hit else "other rows"
            share = 100 * blocks.quotient(exact[:, hit], exact[:, hit].sum(), otherwise=0.0)
            marker: Trace = {"color": colour, "line": {"width": 0}}
            if shape:
                marker["pattern"] = marks.hatched(colour, p, shape=shape, tint=0.3, solidity=0.4)
            traces.append(
                {
                    "type": "bar",
                    "x": middle,
                    "y": share if hit else -share,
                    "width": rows["high"] - rows["low"],
                    "name": f"{name.capitalize()} ({rows[key].sum():,})",
                    "marker": marker,
                    "customdata": np.stack([rows[key], share], axis=1),
                    "hovertemplate": f"%{{customdata[0]:,}} {name}, %{{customdata[1]:.1f}} %, near %{{x:.2f}}<extra></extra>",
                }
            )
        most = max((float(np.abs(t["y"]).max()) for t in traces), default=1.0)
        # A round distance between ticks.
        power = 10.0 ** np.floor(np.log10(max(most, 1e-9) / 2))
        step = float(next(k * power for k in (1, 2, 5, 10) if k * power >= most / 3))
        ticks = np.arange(-np.ceil(most / step), np.ceil(most / step) + 1) * step
        reduction = words.with_short_class(self.reduction)
        return sheet.picture(
            traces,
            inner=_TALL,
            margins=_MARGINS,
            barmode="overlay",
            bargap=0,
            xaxis=sheet.axis(words.plotly_text(reduction.score_label), range=[0, 1], dtick=0.1),
            yaxis=sheet.axis(
                "Share of the outcome",
                range=[-1.08 * most, 1.08 * most],
                tickvals=ticks.tolist(),
                ticktext=[f"{abs(t):.3g} %" for t in ticks.tolist()],
            ),
        )

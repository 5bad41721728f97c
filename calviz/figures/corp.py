"""The CORP reliability diagram, and models by their CORP parts: what recalibration can take off a score, and what it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from calviz.comparison.comparison_results import ModelComparison
from calviz.core import entry_specs, errors, words
from calviz.core.blocks import FloatArray
from calviz.core.words import SINGLE_ROW, counted, decimal, level_text, listed, percent, plotly_text
from calviz.figures import marks
from calviz.figures.figure import Figure, ResampledFigure, end_columns, facts
from calviz.figures.marks import BUCKETS, Picture, Sheet, Trace, area, diagonal, label, line
from calviz.figures.reliability import isotonic_at, isotonic_band, isotonic_curve
from calviz.sample import error_bars, losses, metric_results, step_views
from calviz.sample.sample import Sample

#: The three parts of a proper score, as suffixes of metric keys.
PARTS = ("miscalibration", "discrimination", "uncertainty")
#: Scores of (score, hit), which use one column. The metrics called Brier score and NLL use all classes.
LABELS = {"brier": "Brier score (binary)", "nll": "Log loss (binary)"}


@entry_specs.figure(
    key="corp",
    label="CORP reliability diagram",
    summary="The isotonic probability of a hit against the score: no bins, no bandwidth. Where it leaves the range of a calibrated "
    "model, the scores are off; the other band shows how well the curve itself is known.",
    reference="Dimitriadis, Gneiting & Jordan 2021",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class CorpDiagram(ResampledFigure):
    """A CORP reliability diagram, computed; `plot` draws it.

    Arrays have one entry per drawn score: both ends of the constant pieces of the curve, and scores evenly spread over the steps.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    score, probability : ndarray, shape (P,)
        Scores, and the isotonic probability of a hit at each.
    consistency : (ndarray, ndarray), shape (P,) each
        Range of the curve for a calibrated model: labels are redrawn from the scores and the curve is refitted.
    confidence : (ndarray, ndarray), shape (P,) each
        Confidence band of the curve: rows are resampled and the curve is refitted.
    outside : float
        Share of the rows at whose score the curve lies outside `consistency`.
    parts : mapping of str to tuple of float
        Miscalibration, discrimination and uncertainty of "brier" and "nll".
    unlike_nll : str or None
        Why the log loss, whose parts these are, is not the NLL; None if it is.
    """

    score: FloatArray
    probability: FloatArray
    consistency: tuple[FloatArray, FloatArray]
    confidence: tuple[FloatArray, FloatArray]
    outside: float
    parts: Mapping[str, tuple[float, ...]]
    unlike_nll: str | None = None

    @classmethod
    def _from_sample(cls, sample: Sample, level: float, fields: dict[str, Any]) -> Self:
        view = sample.view(step_views.steps)
        base = view.merged()
        first, last, _ = isotonic_curve(view)
        at = np.unique(np.concatenate([_thinned(v) for v in (first, last, base.score)]))
        redrawn = error_bars.resampled(view, "under_calibration", **sample.redrawing)
        consistency = isotonic_band(redrawn, at, level)
        drawn = error_bars.resampled(view, "bootstrap", **sample.redrawing)
        confidence = isotonic_band(drawn, at, level, view)
        curve = isotonic_at(view, at)
        # The margin absorbs rounding errors.
        off = (curve < consistency[0] - 1e-12) | (curve > consistency[1] + 1e-12)
        nearest = np.searchsorted((at[1:] + at[:-1]) / 2, base.score)
        return cls(
            **fields,
            score=at,
            probability=curve,
            consistency=consistency,
            confidence=confidence,
            outside=float(base.count @ off[nearest] / base.n),
            parts={score: parts_of(sample, score) for score in ("brier", "nll")},
            unlike_nll=losses.unlike_nll(sample),
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per drawn score."""
        return {
            "score": self.score,
            "probability": self.probability,
            **end_columns("consistency", self.consistency, self.score),
            **end_columns("confidence", self.confidence, self.score),
        }

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; and the parts of the Brier score: one line each."""
        return *self._head(), self.sum_of("brier")

    def sum_of(self, score: str) -> str:
        """Write a score as the sum of its parts: "... 0.2147 = miscalibration 0.0041 − discrimination 0.0343 + ..."."""
        a, b, c = self.parts[score]
        total, mcb, dsc, unc = (decimal(part, 4) for part in (a - b + c, a, b, c))
        return (
            f"{LABELS[score]} {total} = miscalibration {mcb} − discrimination {dsc} + "
            f"uncertainty {unc}"
        )

    def describe(self) -> str:
        """Say in plain words what the diagram shows."""
        return f"CORP reliability diagram of {self._scored}. {self.reading()}"

    def reading(self) -> str:
        """Return the description without the name of the data."""
        if self.n == 1:
            return SINGLE_ROW
        remark = "" if self.unlike_nll is None else f" {self.unlike_nll}"
        return (
            f"The isotonic curve leaves the {level_text(self.level)} range of a calibrated model (each score for itself) at "
            f"{percent(self.outside)} of the rows. {self.sum_of('brier')}. {self.sum_of('nll')}.{remark}"
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the range of a calibrated model, the confidence band, and the curve over the diagonal."""
        p, level, x = sheet.palette, level_text(self.level), self.score
        curves = [*self.consistency, *self.confidence, self.probability]
        if x.size == 1:
            x, curves = marks.short_line(x), [np.repeat(v, 2) for v in curves]
        low, high, below, above, probability = curves
        name, hover = "Isotonic probability of a hit", "score %{x:.3f}: %{y:.3f}"
        traces = [
            area(x, low, high, p.calibrated, name=f"{level} range if calibrated"),
            area(x, below, above, p.glaze(p.vermillion, 0.22), name=f"{level} confidence band"),
            {**diagonal(p), "showlegend": False},
            line(x, probability, p.vermillion, width=2.5, name=name, hover=hover),
        ]
        unit = marks.ScoreAxes(marks.end_of(x, probability)).unit() | {"size": 13}
        score = plotly_text(words.with_short_class(self.reduction, 18).score_label)
        return sheet.picture(
            traces,
            inner=_INNER,
            margins=_MARGINS,
            xaxis=sheet.axis(score, **unit),
            yaxis=sheet.axis("Probability of a hit", **unit),
        )


def parts_of(sample: Sample, score: str) -> tuple[float, ...]:
    """Return miscalibration, discrimination and uncertainty of a sample, by "brier" or "nll"."""
    return tuple(metric_results.measured(sample, f"{score}_{part}").value for part in PARTS)


def _thinned(ends: FloatArray) -> FloatArray:
    """Thin an array (L,) evenly to at most `BUCKETS` entries."""
    some = np.linspace(0, ends.size - 1, min(ends.size, BUCKETS)).astype(np.intp)
    return np.asarray(ends[some])


#: Height and margins of the square, in pixels.
_INNER = 340
_MARGINS = 58, 14, 12, 52

# ---- Miscalibration plane


PlaneScore = Literal["brier", "nll"]
#: Left, low, right and high end of a name, in pixels from the lower left corner of the panel.
Box = tuple[float, float, float, float]

#: Height and margins of the panel, in pixels.
_PLANE_INNER, _PLANE_MARGINS = 300, (64, 20, 16, 54)
#: Width of a letter and height of a line of a name, in pixels; width if none is known: that of a phone, where names are closest.
_LETTER, _LINE, _USUAL = 6.6, 18, 350
#: Diameter of a point in pixels.
_POINT = 11
#: Number of lines of equal score.
_LINES = 6


@dataclass(frozen=True, eq=False)
class MiscalibrationPlane(Figure):
    """Decomposition of a proper score for several models, ready to draw.

    Drawn from a result, not from predictions: `calviz.compare_models` matches the rows, this class decomposes the scores.

    Attributes
    ----------
    split : str or None
    rows : int
    score : {"brier", "nll"}
        The proper score of (score, hit) that is decomposed.
    models : tuple of str
    miscalibration, discrimination, uncertainty : ndarray, shape (M,)
        Parts of the score, per model. The uncertainty is that of the hits, which differ between models under the top label.

    References
    ----------
    Dimitriadis, Gneiting, Jordan & Vogel 2024, figure 4 (the plane of miscalibration and discrimination with lines of equal score).
    Uncertainty − discrimination, the refinement (DeGroot & Fienberg 1983), replaces the discrimination: under the top label the
    uncertainty differs between models, and only this sum is comparable and keeps the lines.
    """

    split: str | None
    rows: int
    score: PlaneScore
    models: tuple[str, ...]
    miscalibration: FloatArray
    discrimination: FloatArray
    uncertainty: FloatArray

    @classmethod
    def compute(cls, comparison: ModelComparison, *, score: PlaneScore = "nll") -> Self:
        """Decompose the score of every model on their common rows.

        Raises
        ------
        OptionError
            If the score is unknown.
        """
        errors.check_choice("score", score, get_args(PlaneScore))
        measured = [m.name for m in comparison if m.ok]
        models = comparison.alignment.models
        parts = np.array(
            [
                parts_of(Sample.of(models[name], reduction=comparison.reduction), score)
                for name in measured
            ]
        ).reshape(-1, 3)
        return cls(comparison.split, comparison.alignment.rows, score, tuple(measured), *parts.T)

    @property
    def refinement(self) -> FloatArray:
        """What recalibration leaves of the score, shape (M,)."""
        return self.uncertainty - self.discrimination

    @property
    def total(self) -> FloatArray:
        """The score itself, shape (M,)."""
        return self.miscalibration + self.refinement

    @property
    def one_uncertainty(self) -> bool:
        """Whether all models have the same uncertainty, as they have if their hits are the same."""
        return bool(np.ptp(self.uncertainty) <= 1e-12) if self.models else False

    @property
    def label(self) -> str:
        """Label of the score."""
        return LABELS[self.score]

    def columns(self) -> Mapping[str, Any]:
        """One row per model."""
        return {
            "model": self.models,
            "miscalibration": self.miscalibration,
            "discrimination": self.discrimination,
            "uncertainty": self.uncertainty,
            "score": self.total,
        }

    def caption(self) -> tuple[str, ...]:
        """Decomposed score; what is drawn; rows: one line each."""
        details = facts(self.split, counted(self.rows, "row"), counted(len(self.models), "model"))
        return self.label, "miscalibration, and what recalibration leaves", details

    def describe(self) -> str:
        """Say in plain words what it shows."""
        if not self.models:
            return "No model could be measured."
        ranks = self.models[int(np.argmin(self.refinement))]
        says = self.models[int(np.argmin(self.miscalibration))]
        remark = " Each model has its own hits here, so these parts alone do not rank the models."
        remark = "" if self.one_uncertainty else remark
        return (
            f"{self.label} of {counted(len(self.models), 'model')} on the same {counted(self.rows, 'row')}, decomposed: "
            f"recalibration leaves least of {listed([ranks])} ({decimal(float(self.refinement.min()), 4)}), {listed([says])} is "
            f"miscalibrated least ({decimal(float(self.miscalibration.min()), 4)}).{remark}"
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw one point per model over lines of equal score; down and to the left it is lower."""
        p = sheet.palette
        x, y = _room(self.miscalibration, least=0.0), _room(self.refinement)
        points = marks.markers(
            self.miscalibration,
            self.refinement,
            p.blue,
            size=_POINT,
            edge=p.paper,
            edge_width=1,
            hoverinfo=None,
            hovertemplate=[
                f"{plotly_text(name, 60)}<br>score {decimal(float(t), 4)}<extra></extra>"
                for name, t in zip(self.models, self.total, strict=True)
            ],
        )
        return sheet.picture(
            [*self._equal_scores(sheet, x, y), points],
            inner=_PLANE_INNER,
            margins=_PLANE_MARGINS,
            annotations=self._names(sheet, x, y),
            xaxis=sheet.axis("Miscalibration (left is better)", size=13, range=x, nticks=5),
            yaxis=sheet.axis("Left by recalibration", size=13, range=y, nticks=5),
        )

    def _names(self, sheet: Sheet, x: list[float], y: list[float]) -> list[Trace]:
        """Place the names beside their points, on the side where they overlap points and other names least and stay inside the panel."""
        panel = (sheet.width or _USUAL) - _PLANE_MARGINS[0] - _PLANE_MARGINS[1]
        places = [
            ((a - x[0]) * panel / (x[1] - x[0]), (b - y[0]) * _PLANE_INNER / (y[1] - y[0]))
            for a, b in zip(self.miscalibration, self.refinement, strict=True)
        ]
        half = _POINT / 2
        taken: list[Box] = [(a - half, b - half, a + half, b + half) for a, b in places]
        labels, names = [], words.told_apart(self.models, 24)
        for i, ((left, low), text) in enumerate(zip(places, names, strict=True)):
            width = _LETTER * len(text)
            boxes = {
                (h, v): (
                    left + 9 if h == "left" else left - 9 - width,
                    low if v == "bottom" else low - _LINE,
                    left + 9 + width if h == "left" else left - 9,
                    low + _LINE if v == "bottom" else low,
                )
                for h in (["right", "left"] if left > panel / 2 else ["left", "right"])
                for v in ("bottom", "top")
            }
            side = min(boxes, key=lambda s: _crowded(boxes[s], taken, panel))
            taken.append(boxes[side])
            labels.append(
                label(
                    plotly_text(text),
                    sheet.palette,
                    x=float(self.miscalibration[i]),
                    y=float(self.refinement[i]),
                    xanchor=side[0],
                    xshift=9 if side[0] == "left" else -9,
                    yanchor=side[1],
                )
            )
        return labels

    def _equal_scores(self, sheet: Sheet, x: list[float], y: list[float]) -> Iterator[Trace]:
        ends = np.array(x)
        for score in np.linspace(x[0] + y[0], x[1] + y[1], _LINES + 2)[1:-1]:
            up, hover = score - ends, f"score {decimal(float(score), 4)}"
            yield line(ends, up, sheet.palette.neutral, width=1, dash="dot", hover=hover)


def _crowded(box: Box, taken: Sequence[Box], panel: float) -> float:
    """Area, in square pixels, that a name shares with other names or that lies outside the panel."""
    area = _LINE * (max(0.0, -box[0]) + max(0.0, box[2] - panel))
    for other in taken:
        across = min(box[2], other[2]) - max(box[0], other[0])
        area += max(across, 0.0) * max(min(box[3], other[3]) - max(box[1], other[1]), 0.0)
    return area


def _room(values: FloatArray, *, least: float | None = None) -> list[float]:
    """Return an axis range with room around the points, starting near `least` if they come close to it."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    pad = max(0.18 * (high - low), 0.05 * abs(high), 1e-4)
    low = low - pad
    return [low if least is None else max(low, least - 0.2 * pad), high + pad]

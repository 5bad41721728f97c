"""Discrimination against miscalibration of several models: which ranks rows better, and which is better calibrated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.options import check_choice
from calviz.figures.base import Figure, facts
from calviz.figures.corp import LABELS, parts_of
from calviz.figures.drawing.curves_and_labels import Trace, label, line, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis
from calviz.results.model_comparison import ModelComparison
from calviz.sample.sample import Sample
from calviz.text.escape import plotly_text
from calviz.text.words import counted, decimal, listed, shorten

PlaneScore = Literal["brier", "nll"]
#: Left, low, right and high end of a name, in pixels from the lower left corner of the panel.
Box = tuple[float, float, float, float]

#: Height and margins of the panel, in pixels.
_INNER, _MARGINS = 300, (64, 20, 16, 54)
#: Width of a letter and height of a line of a name, in pixels; width assumed if none is known.
_LETTER, _LINE, _USUAL = 6.6, 18, 470
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
        check_choice("score", score, get_args(PlaneScore))
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
    def total(self) -> FloatArray:
        """The score itself, shape (M,)."""
        return self.miscalibration - self.discrimination + self.uncertainty

    @property
    def one_uncertainty(self) -> bool:
        """Whether all models have the same uncertainty, so that lines of equal score can be drawn."""
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
        return f"{self.label} of (score, hit)", "miscalibration against discrimination", details

    def describe(self) -> str:
        """Say in plain words what it shows."""
        if not self.models:
            return "No model could be measured."
        ranks, says = (
            self.models[int(np.argmax(self.discrimination))],
            self.models[int(np.argmin(self.miscalibration))],
        )
        return (
            f"{self.label} of {counted(len(self.models), 'model')} on the same {counted(self.rows, 'row')}, decomposed: "
            f"{listed([ranks])} discriminates best ({decimal(float(self.discrimination.max()), 4)}), {listed([says])} is "
            f"miscalibrated least ({decimal(float(self.miscalibration.min()), 4)}).{self._remark()}"
        )

    def _remark(self) -> str:
        if self.one_uncertainty:
            return ""
        return " Each model has its own hits here, so these parts do not rank the models."

    def draw(self, sheet: Sheet) -> Picture:
        """Draw one point per model over lines of equal score; up and to the left is better."""
        p = sheet.palette
        x, y = _room(self.miscalibration, least=0.0), _room(self.discrimination)
        points = markers(
            self.miscalibration,
            self.discrimination,
            p.blue,
            size=_POINT,
            edge=p.paper,
            edge_width=1,
            hovertemplate=[
                f"{plotly_text(name, 60)}<br>score {decimal(float(t), 4)}<extra></extra>"
                for name, t in zip(self.models, self.total, strict=True)
            ],
        )
        return sheet.picture(
            [*self._equal_scores(p, x, y), points],
            inner=_INNER,
            margins=_MARGINS,
            annotations=self._names(sheet, x, y),
            xaxis=axis(p, "Miscalibration (left is better)", size=13, range=x, nticks=5),
            yaxis=axis(p, "Discrimination (up is better)", size=13, range=y, nticks=5),
        )

    def _names(self, sheet: Sheet, x: list[float], y: list[float]) -> list[Trace]:
        """Place the names beside their points, on the side where they overlap points and other names least and stay inside the panel."""
        panel = (sheet.width or _USUAL) - _MARGINS[0] - _MARGINS[1]
        across = panel / (x[1] - x[0])
        up = _INNER / (y[1] - y[0])
        places = [
            ((float(a) - x[0]) * across, (float(b) - y[0]) * up)
            for a, b in zip(self.miscalibration, self.discrimination, strict=True)
        ]
        half = _POINT / 2
        taken: list[Box] = [(a - half, b - half, a + half, b + half) for a, b in places]
        labels = []
        for name, a, b, (left, low) in zip(
            self.models, self.miscalibration, self.discrimination, places, strict=True
        ):
            text = shorten(name, 24)
            width = _LETTER * len(text)
            sides = [("left", "bottom"), ("left", "top"), ("right", "bottom"), ("right", "top")]
            if left > panel / 2:
                sides = [*sides[2:], *sides[:2]]
            boxes = {
                (h, v): (
                    left + 9 if h == "left" else left - 9 - width,
                    low if v == "bottom" else low - _LINE,
                    left + 9 + width if h == "left" else left - 9,
                    low + _LINE if v == "bottom" else low,
                )
                for h, v in sides
            }
            side = min(sides, key=lambda s: _crowded(boxes[s], taken, panel))
            taken.append(boxes[side])
            labels.append(
                label(
                    plotly_text(text),
                    sheet.palette,
                    x=float(a),
                    y=float(b),
                    xanchor=side[0],
                    xshift=9 if side[0] == "left" else -9,
                    yanchor=side[1],
                )
            )
        return labels

    def _equal_scores(self, p: Palette, x: list[float], y: list[float]) -> Iterator[Trace]:
        if not self.one_uncertainty:
            return
        unc = float(self.uncertainty[0])
        ends = np.array(x)
        for score in np.linspace(unc + x[0] - y[1], unc + x[1] - y[0], _LINES + 2)[1:-1]:
            yield line(
                ends,
                ends + unc - score,
                p.neutral,
                width=1,
                dash="dot",
                hovertemplate=f"score {decimal(float(score), 4)}<extra></extra>",
            )


def _crowded(box: Box, taken: Sequence[Box], panel: float) -> float:
    """Area, in square pixels, that a name shares with other names or that lies outside the panel."""
    outside = max(0.0, -box[0]) + max(0.0, box[2] - panel)
    return outside * _LINE + sum(_overlap(box, other) for other in taken)


def _overlap(a: Box, b: Box) -> float:
    """Area, in square pixels, shared by two boxes."""
    across, up = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(across, 0.0) * max(up, 0.0)


def _room(values: FloatArray, *, least: float | None = None) -> list[float]:
    """Return an axis range with room around the points, starting near `least` if they come close to it."""
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    pad = max(0.18 * (high - low), 0.05 * abs(high), 1e-4)
    low = low - pad
    return [low if least is None else max(low, least - 0.2 * pad), high + pad]

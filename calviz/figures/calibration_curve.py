"""The flexible calibration curve with its band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.options import check_choice, check_level
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, facts, named
from calviz.figures.drawing.curves_and_labels import area, line
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis
from calviz.sample.flexible_curve import Band, FlexibleKind, band
from calviz.sample.flexible_curve import curve as fitted
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.specs.figure import figure
from calviz.text.escape import plotly_text
from calviz.text.words import (
    counted,
    decimal,
    level_text,
    points,
    points_decimals,
    shorten,
    with_short_class,
)

#: Name of each kind of curve.
NAMES: dict[FlexibleKind, str] = {
    "spline": "spline of the log-odds",
    "loess": "loess (span 0.75)",
    "logistic": "logistic line",
}
#: Margins of the panel (left, right, above, below) and its height, in pixels.
_MARGINS, _TALL = (60, 20, 14, 54), 400


@figure(
    key="calibration-curve",
    label="Calibration curve",
    summary="The probability of a hit as a smooth function of the score, without bins, with its pointwise band: a calibrated model "
    "follows the diagonal.",
    reference="Austin & Steyerberg 2019; Van Calster et al. 2025",
)
@dataclass(frozen=True, eq=False)
class CalibrationCurve(Figure):
    """A flexible calibration curve, computed; `plot` draws it.

    Attributes
    ----------
    name : str
    split : str or None
    reduction : Reduction
        Defines score and hit.
    n : int
    level : float
        Level of the band.
    kind : {"spline", "loess", "logistic"}
    band : Band
        The curve from the lowest to the highest score, with its pointwise confidence band.
    inner : (float, float)
        The 1 % and 99 % quantiles of the scores.
    distance : float
        Mean absolute distance of the curve from the diagonal over the rows (ICI).
    """

    name: str
    split: str | None
    reduction: Reduction
    n: int
    level: float
    kind: FlexibleKind
    band: Band
    inner: tuple[float, float]
    distance: float

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        curve: FlexibleKind = "spline",
        level: float = 0.95,
        seed: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Fit the curve.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        reduction : Reduction or str, optional
            The (score, hit) pair to fit.
        curve : {"spline", "loess", "logistic"}
            Kind of curve. The logistic line is empty if its likelihood has no finite maximum.
        level : float
            Level of the band, between 0 and 1.
        seed : int
            Accepted as by other figures, but unused: nothing here is random.
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        check_choice("curve", curve, get_args(FlexibleKind))
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed)
        view = sample.view(steps)
        base = view.merged()
        upto = np.cumsum(base.count) / float(base.n)
        inner = [float(base.score[int(np.searchsorted(upto, q))]) for q in (0.01, 0.99)]
        off = np.abs(fitted(base, curve) - base.score)
        return cls(
            name=sample.data.name,
            split=sample.split,
            reduction=sample.reduction,
            n=int(view.n),
            level=level,
            kind=curve,
            band=band(view, curve, level=level),
            inner=(inner[0], inner[1]),
            distance=float((base.count * off).sum() / base.n),
        )

    def columns(self) -> Mapping[str, FloatArray]:
        """One row per score of the curve."""
        b = self.band
        return {"score": b.score, "probability": b.probability, "low": b.low, "high": b.high}

    def caption(self) -> tuple[str, ...]:
        """Name; rows, score and curve; the mean distance: one line each."""
        reduction = with_short_class(self.reduction).label
        details = facts(self.split, counted(self.n, "row"), reduction, NAMES[self.kind])
        return (
            shorten(self.name, NAME_LENGTH),
            details,
            f"Mean distance from the diagonal (ICI): {self._points()}",
        )

    def _points(self) -> str:
        if not np.isfinite(self.distance) or self.n == 1:
            return "undefined"
        return f"{points(self.distance, points_decimals(self.distance))} points"

    def describe(self) -> str:
        """Say how far the curve is from the diagonal, and where it is furthest."""
        if self.n == 1:
            return (
                f"Calibration curve of {named(self.name, self.split)}: a single row has no curve, and says nothing about "
                "calibration."
            )
        text = (
            f"Calibration curve ({NAMES[self.kind]}) of {named(self.name, self.split)}, "
            f"{counted(self.n, 'row')}: {self._points()} from the diagonal on average over the rows (ICI)."
        )
        b = self.band
        inside = (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        gap = np.where(inside & np.isfinite(b.probability), np.abs(b.probability - b.score), -1.0)
        worst = int(gap.argmax())
        if gap[worst] > 0:
            text += (
                f" Furthest, among all but the outermost rows, at a score of {decimal(float(b.score[worst]))}, where "
                f"{decimal(float(b.probability[worst]))} are hits ({level_text(self.level)} band {decimal(float(b.low[worst]))} "
                f"to {decimal(float(b.high[worst]))})."
            )
        return text

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the curve over its band; thin beyond `inner`, where rows are few."""
        p = sheet.palette
        reduction = with_short_class(self.reduction)
        unit: dict[str, Any] = {
            "range": [0, 1],
            "tickmode": "linear",
            "dtick": 0.2,
            "tickformat": ".1f",
        }
        # On a narrow page the height shrinks with the width, so that the panel stays square.
        room = _TALL if sheet.width is None else max(sheet.width - _MARGINS[0] - _MARGINS[1], 100)
        return sheet.picture(
            self._traces(p),
            inner=min(_TALL, room),
            margins=_MARGINS,
            xaxis=axis(p, plotly_text(reduction.score_label), **unit, constrain="domain"),
            yaxis=axis(
                p,
                plotly_text(reduction.hit_label),
                **unit,
                scaleanchor="x",
                scaleratio=1,
                constrain="domain",
            ),
        )

    def _traces(self, p: Palette) -> list[dict[str, Any]]:
        """Return the band, the diagonal, and the curve: thin from end to end, thick inside `inner`."""
        b = self.band
        ends = np.array([0.0, 1.0])
        finite = np.isfinite(b.probability)
        traces = [
            area(
                b.score[finite],
                b.low[finite],
                b.high[finite],
                p.glaze(p.blue, 0.2),
                name=f"{level_text(self.level)} band",
                legendrank=2,
                visible=self.n > 1,
            ),
            line(
                ends,
                ends,
                p.ink,
                width=1.5,
                dash="dash",
                name="Perfect calibration",
                legendrank=3,
                hoverinfo="skip",
            ),
            line(
                b.score[finite],
                b.probability[finite],
                p.blue,
                width=1,
                showlegend=False,
                hoverinfo="skip",
            ),
        ]
        inside = finite & (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        point = int(inside.sum()) < 2
        traces.append(
            line(
                b.score[inside],
                b.probability[inside],
                p.blue,
                width=3,
                name="The row" if self.n == 1 else "Calibration curve",
                legendrank=1,
                hovertemplate="score %{x:.3f}: %{y:.3f} are hits<extra></extra>",
            )
            | ({"mode": "markers", "marker": {"size": 9, "color": p.blue}} if point else {})
        )
        return traces

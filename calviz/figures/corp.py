"""The CORP reliability diagram: an isotonic curve instead of bins, with a consistency and a confidence band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.base import named, score_lines
from calviz.figures.kernels.isotonic_bands import isotonic_at, isotonic_band
from calviz.figures.kernels.reliability_curves import isotonic_curve
from calviz.figures.kernels.thin_curve import BUCKETS
from calviz.figures.score_figure import ScoreFigure
from calviz.sample.error_bars import resampled
from calviz.sample.log_loss_steps import unlike_nll
from calviz.sample.metric_results import measured
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.specs.figure import figure
from calviz.text.words import (
    SINGLE_ROW,
    counted,
    decimal,
    level_text,
    percent,
    with_short_class,
)

#: The three parts of a proper score, as suffixes of metric keys.
PARTS = ("miscalibration", "discrimination", "uncertainty")
#: Scores of (score, hit), which use one column. The metrics called Brier score and NLL use all classes.
LABELS = {"brier": "Brier score", "nll": "Log loss"}


@figure(
    key="corp",
    label="CORP reliability diagram",
    summary="The isotonic probability of a hit against the score: no bins, no bandwidth. Where it leaves the range of a calibrated "
    "model, the scores are off; the other band shows how well the curve itself is known.",
    reference="Dimitriadis, Gneiting & Jordan 2021",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class CorpDiagram(ScoreFigure):
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
    def _from_sample(cls, sample: Sample, *, level: float, **common_fields: Any) -> Self:
        view = sample.view(steps)
        base = view.merged()
        first, last, _ = isotonic_curve(view)
        spread = np.linspace(0, base.size - 1, min(base.size, BUCKETS)).astype(np.intp)
        at = np.unique(np.concatenate([_thinned(first), _thinned(last), base.score[spread]]))
        redrawn = resampled(view, "under_calibration", **sample.redrawing)
        consistency = isotonic_band(redrawn, at, level)
        drawn = resampled(view, "bootstrap", **sample.redrawing)
        confidence = isotonic_band(drawn, at, level, view)
        curve = isotonic_at(view, at)
        # The margin absorbs rounding errors.
        off = (curve < consistency[0] - 1e-12) | (curve > consistency[1] + 1e-12)
        nearest = np.searchsorted((at[1:] + at[:-1]) / 2, base.score)
        return cls(
            level=level,
            **common_fields,
            score=at,
            probability=curve,
            consistency=consistency,
            confidence=confidence,
            outside=float(base.count @ off[nearest] / base.n),
            parts={score: parts_of(sample, score) for score in ("brier", "nll")},
            unlike_nll=unlike_nll(sample),
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per drawn score."""
        return {
            "score": self.score,
            "probability": self.probability,
            "consistency_low": self.consistency[0],
            "consistency_high": self.consistency[1],
            "confidence_low": self.confidence[0],
            "confidence_high": self.confidence[1],
        }

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; and the parts of the Brier score: one line each."""
        return *score_lines(self.name, self.split, self.n, self.reduction), self.sum_of("brier")

    def sum_of(self, score: str) -> str:
        """Write a score as the sum of its parts: "... 0.2147 = miscalibration 0.0041 − discrimination 0.0343 + ..."."""
        miscalibration, discrimination, uncertainty = self.parts[score]
        total = decimal(miscalibration - discrimination + uncertainty, 4)
        return (
            f"{LABELS[score]} of (score, hit) {total} = miscalibration {decimal(miscalibration, 4)} − discrimination "
            f"{decimal(discrimination, 4)} + uncertainty {decimal(uncertainty, 4)}"
        )

    def describe(self) -> str:
        """Say in plain words what the diagram shows."""
        reduction = with_short_class(self.reduction).label
        return (
            f"CORP reliability diagram of {named(self.name, self.split)}: {reduction}, {counted(self.n, 'row')}. "
            f"{self.reading()}"
        )

    def reading(self) -> str:
        """Return the description without the name of the data."""
        if self.n == 1:
            return SINGLE_ROW
        remark = "" if self.unlike_nll is None else f" {self.unlike_nll}"
        return (
            f"The isotonic curve leaves the {level_text(self.level)} range of a calibrated model (each score for itself) at "
            f"{percent(self.outside)} of the rows. {self.sum_of('brier')}. {self.sum_of('nll')}.{remark}"
        )


def parts_of(sample: Sample, score: str) -> tuple[float, ...]:
    """Return miscalibration, discrimination and uncertainty of a sample, by "brier" or "nll"."""
    return tuple(measured(sample, f"{score}_{part}").value for part in PARTS)


def _thinned(ends: FloatArray) -> FloatArray:
    """Thin an array (L,) evenly to at most `BUCKETS` entries."""
    some = np.linspace(0, ends.size - 1, min(ends.size, BUCKETS)).astype(np.intp)
    return np.asarray(ends[some])

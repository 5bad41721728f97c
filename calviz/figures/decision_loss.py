"""Loss of acting on miscalibrated scores at every cutoff, for users who do not know their costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.progress import checkpoint
from calviz.figures.base import named, score_lines
from calviz.figures.drawing.curves_and_labels import area, line
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import axis
from calviz.figures.score_figure import ScoreFigure
from calviz.numerics.isotonic_fits import isotonic_fits
from calviz.sample.error_bars import resampled
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

#: Cutoffs, in steps of 1 / 200.
CUTOFFS = np.linspace(0, 1, 201)
#: Height and margins of the panel, in pixels.
_INNER, _MARGINS = 300, (64, 14, 12, 54)


@figure(
    key="decision-loss",
    label="Decision loss",
    summary="What acting on the scores costs compared with acting on the probabilities they stand for, at every cutoff, in percent of the "
    "stake: the most that a decision can gain or lose.",
    reference="Hu & Wu 2024 (calibration decision loss)",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionLoss(ScoreFigure):
    """The decision loss as a function of the cutoff, computed; `plot` draws it.

    A user who acts where the probability is above a cutoff mu gains ``(hit - mu) / max(mu, 1 - mu)`` by acting: at most 1
    (the stake) in either direction. If score p and probability q of a row lie on different sides of mu, the decision is wrong
    and costs ``|q - mu| / max(mu, 1 - mu)`` on average. The probability q is the isotonic estimate, so noise also shows
    up as a loss; the range of a calibrated model shows how much.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    cutoff, loss : ndarray, shape (P,)
        Cutoff, and mean loss per row as a share of the stake.
    calibrated : (ndarray, ndarray), shape (P,) each
        Mean and upper quantile of the loss of a calibrated model: labels are redrawn and the probability is refitted.
    largest_calibrated : float
        The same quantile of the largest loss over all cutoffs.
    """

    cutoff: FloatArray
    loss: FloatArray
    calibrated: tuple[FloatArray, FloatArray]
    largest_calibrated: float

    @classmethod
    def _from_sample(cls, sample: Sample, *, level: float, **common_fields: Any) -> Self:
        view = sample.view(steps)
        redraws = resampled(view, "under_calibration", **sample.redrawing)
        calibrated_loss = decision_loss(redraws.score, redraws.count, redraws.hits)
        base = view.merged()
        return cls(
            level=level,
            **common_fields,
            cutoff=CUTOFFS,
            # On the same (merged) steps as the resamples, so that the losses are comparable.
            loss=decision_loss(base.score, base.count, base.hits),
            calibrated=(calibrated_loss.mean(axis=0), np.quantile(calibrated_loss, level, axis=0)),
            largest_calibrated=float(np.quantile(calibrated_loss.max(axis=1), level)),
        )

    @property
    def worst(self) -> tuple[float, float]:
        """Cutoff of the largest loss, and the loss there."""
        at = int(np.argmax(self.loss))
        return float(self.cutoff[at]), float(self.loss[at])

    @property
    def beyond_noise(self) -> bool:
        """Whether the largest loss exceeds `largest_calibrated`."""
        return self.worst[1] > self.largest_calibrated + 1e-12

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff."""
        mean, high = self.calibrated
        return {
            "cutoff": self.cutoff,
            "loss": self.loss,
            "calibrated_mean": mean,
            "calibrated_high": high,
        }

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the largest loss: one line each."""
        most = SINGLE_ROW if self.n == 1 else f"At most {self._largest()}"
        return *score_lines(self.name, self.split, self.n, self.reduction), most

    def _largest(self) -> str:
        cutoff, loss = self.worst
        return f"{percent(loss, 2)} of the stake per row, at the cutoff {decimal(cutoff)}"

    def describe(self) -> str:
        """Say in plain words what it shows."""
        reduction = with_short_class(self.reduction).label
        return (
            f"Decision loss of {named(self.name, self.split)}: {reduction}, {counted(self.n, 'row')}. "
            f"{self.reading()}"
        )

    def reading(self) -> str:
        """Return the description without the name of the data."""
        if self.n == 1:
            return SINGLE_ROW
        noise = "more than" if self.beyond_noise else "within"
        return (
            f"Acting on the scores instead of the probabilities they stand for costs at most {self._largest()}; that is {noise} what "
            f"a calibrated model of this size shows ({percent(self.largest_calibrated, 2)} at most in {level_text(self.level)} of samples)."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the loss over the range of a calibrated model."""
        p = sheet.palette
        mean, high = self.calibrated
        level = level_text(self.level)
        traces = [
            area(
                self.cutoff,
                np.zeros_like(high),
                100 * high,
                p.calibrated,
                name=f"{level} range if calibrated",
            ),
            line(
                self.cutoff,
                100 * mean,
                p.muted,
                width=1.5,
                dash="4px,3px",
                name="Mean if calibrated",
                hoverinfo="skip",
            ),
            line(
                self.cutoff,
                100 * self.loss,
                p.purple,
                width=2.5,
                name="Decision loss",
                hovertemplate="%{y:.2f} % of the stake at the cutoff %{x:.3f}<extra></extra>",
            ),
        ]
        top = 108 * max(float(self.loss.max()), float(high.max()), 1e-6)
        return sheet.picture(
            traces,
            inner=_INNER,
            margins=_MARGINS,
            xaxis=axis(p, "Cutoff: act where the score is above", size=13, range=[0, 1], nticks=6),
            yaxis=axis(p, "Loss per row, % of the stake", size=13, range=[0, top], nticks=6),
        )


def decision_loss(
    score: FloatArray, count: FloatArray, hits: FloatArray, cutoffs: FloatArray = CUTOFFS
) -> FloatArray:
    """``mean |q - mu| 1{mu between p and q} / max(mu, 1 - mu)`` at the cutoffs mu, with isotonic q; shape (..., P).

    Parameters
    ----------
    score : ndarray, shape (G,)
        Ascending scores p.
    count, hits : ndarray, shape (..., G)
        Rows and hits per score, of one sample or of several.
    cutoffs : ndarray, shape (P,)
        Ascending, within [0, 1]. A score equal to the cutoff means not to act.
    """
    rows, right = np.atleast_2d(count), np.atleast_2d(hits)
    loss = np.empty((len(right), cutoffs.size))
    place_of_score = np.searchsorted(cutoffs, score, side="left")
    wide = cutoffs.size + 1
    for fits in isotonic_fits(rows, right):
        checkpoint()
        score_place = np.broadcast_to(place_of_score, fits.used.shape)[fits.used]
        p = np.broadcast_to(score, fits.used.shape)[fits.used]
        q = fits.per_step(fits.level)
        fitted_place = fits.per_step(np.searchsorted(cutoffs, fits.level, side="left"))
        # Rows with p <= mu < q should be acted on but are not; rows with q <= mu < p should not be but are.
        weight = np.sign(q - p) * rows[fits.samples][fits.used]
        first_cell = fits.per_step(fits.sample * wide)
        size = len(fits.used) * wide
        total = np.zeros((2, size))
        for ends, sign in (
            (np.minimum(score_place, fitted_place), 1),
            (np.maximum(score_place, fitted_place), -1),
        ):
            for sums, value in zip(total, (weight * q, weight), strict=True):
                sums += sign * np.bincount(first_cell + ends, value, minlength=size)
        of_q, some = np.cumsum(total.reshape(2, -1, wide), axis=-1)[..., :-1]
        loss[fits.samples] = (of_q - some * cutoffs) / rows[fits.samples].sum(axis=-1)[:, None]
    loss = np.maximum(loss, 0) / np.maximum(cutoffs, 1 - cutoffs)
    return np.asarray(loss.reshape(*np.shape(hits)[:-1], cutoffs.size))

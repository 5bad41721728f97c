"""Gaussian-process calibration: one latent function of the log-probability, shared by all classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.effective_number import effective_number
from calviz.numerics.scores import Scores, softmax
from calviz.numerics.temperature import fit_temperature
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.fitting.gaussian_process import LatentProblem, warp
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.recalibrators.temperature import bound_warning
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="gp",
    label="Gaussian-process calibration",
    family="Non-parametric",
    accuracy_preserving=False,
    needs="log-probabilities",
    reference="Wenger et al. 2020",
    formula=r"\mathrm{softmax}(f(\log p_1), \dots, f(\log p_K)),\ f \sim \mathrm{GP}",
    left_out=reasons_to_leave_out.variant("it takes longest of all."),
)
class GaussianProcess(BaseRecalibrator):
    """A latent function shared by all classes, with a Gaussian-process prior centred on temperature scaling, under a softmax likelihood.

    Inference is sparse and variational: inducing points, no sampling. The map uses the posterior mean of the function. The paper does
    not cover row weights; here the likelihood of a row is raised to the power of its weight, and the weights are scaled to add up to
    Kish's effective sample size.

    Parameters
    ----------
    inducing : int
        Number of inducing points.
    max_pairs : int
        Largest number of (row, class) pairs to fit on; larger data are thinned to evenly spaced rows.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    scale_ : float
        Slope of the prior mean, 1/T.
    grid_, latent_, deviation_ : ndarray, shape (G,)
        Posterior mean and standard deviation of the departure from the prior mean, on a grid of ``-log(1 - log(p) / T)``.
    """

    fitted = fields(
        scale_=Numbers(above=0),
        grid_=Numbers(("M",), ascending=True),
        latent_=Numbers(("M",)),
        deviation_=Numbers(("M",), least=0),
    )
    scale_: float
    grid_: FloatArray
    latent_: FloatArray
    deviation_: FloatArray

    def __init__(
        self,
        *,
        inducing: int = 10,
        max_pairs: int = 500_000,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.inducing = inducing
        self.max_pairs = max_pairs
        self.floor = floor
        self.input = input

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        step = max(1, -(-n * k // self.max_pairs))
        thinned_scores, thinned_labels = scores.every(step), labels[::step]
        if step > 1:
            self._warn(
                f"fitted on one row in {step} ({thinned_labels.size:,} of {n:,}), to limit the time it takes."
            )
        thinned_weights = None if weights is None else weights[::step]
        if thinned_weights is not None:
            thinned_weights = thinned_weights * (
                effective_number(thinned_weights) / thinned_weights.sum()
            )
        warm = fit_temperature(thinned_scores, thinned_labels, weights=thinned_weights)
        warning = bound_warning(warm)
        if warning:
            self._warn(warning)
        self.scale_ = 1 / warm.value
        x = thinned_scores.block(slice(0, thinned_labels.size), np.float32)
        x *= np.float32(self.scale_)
        latent = LatentProblem(x, thinned_labels, self.inducing, thinned_weights).fit(
            max_passes=300
        )
        self.grid_, self.latent_, self.deviation_ = latent.grid, latent.mean, latent.deviation
        if not latent.converged:
            self._warn(f"not converged after {latent.passes} passes.")

    def _latent(self, log_p: FloatArray) -> FloatArray:
        x = log_p * self.scale_
        return x + np.interp(warp(x), self.grid_, self.latent_)

    def curve(self, score: FloatArray) -> FloatArray:
        """Return the latent function at probabilities of any shape."""
        return self._latent(np.log(np.asarray(score, dtype=np.float64)))

    def _apply(self, block: FloatArray) -> FloatArray:
        return softmax(self._latent(block))

    def _described(self) -> dict[str, Any]:
        """Return the temperature, and the largest departure of the function from temperature scaling."""
        return {
            "temperature": 1 / self.scale_,
            "largest_departure": float(np.abs(self.latent_ - self.latent_[-1]).max()),
        }

    def _source(self, name: str) -> str:
        return f"""{name}_grid = {numpy_source.array(self.grid_)}
{name}_latent = {numpy_source.array(self.latent_)}


def {name}_of(log_p):
    x = log_p * {self.scale_!r}
    return softmax(x + np.interp(-np.log1p(-np.minimum(x, 0)), {name}_grid, {name}_latent))
"""

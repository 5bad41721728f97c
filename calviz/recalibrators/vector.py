"""Vector scaling: a factor and an offset for the logit of every class."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores, softmax
from calviz.numerics.temperature import fit_temperature
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.fitting.linear_scaling import fit_linear
from calviz.recalibrators.fitting.vector_loss import VectorProblem
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.specs.recalibrator import ANY_CLASSES, FloorChoice, Input, recalibrator


@recalibrator(
    key="vector",
    label="Vector scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(w \circ z + b)",
    left_out=reasons_to_leave_out.follows_noise,
    mixed_up_to=ANY_CLASSES,
)
class VectorScaling(BaseRecalibrator):
    """A factor and an offset for the logit of every class, fitted by maximum likelihood.

    Parameters
    ----------
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    weights_, intercepts_ : ndarray, shape (K,)
        w and b; the offsets sum to 0.

    Notes
    -----
    Logits and their log-probabilities give different maps: a constant that is added to the logits of a row
    is multiplied by a different factor in each class.
    """

    fitted = fields(weights_=Numbers(("K",)), intercepts_=Numbers(("K",)))
    weights_: FloatArray
    intercepts_: FloatArray

    def __init__(self, *, floor: FloorChoice = "auto", input: Input = "probabilities") -> None:
        self.floor = floor
        self.input = input

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        k = scores.shape[1]
        counts = np.bincount(labels, minlength=k)
        step = max(1, scores.shape[0] // 20_000)
        warm = fit_temperature(scores.every(step), labels[::step])
        # Starting at 1/T makes the search independent of scale: logits times 100 take the same steps.
        present, present_scores, present_labels = present_classes(scores, labels, counts)
        start = np.stack([np.full(present.size, 1 / warm.value), np.zeros(present.size)])
        problem = VectorProblem(present_scores.whole(), present_labels, weights=weights)
        least = separated_below(warm.loss)
        minimum = fit_linear(problem, start, least=least)
        self.weights_, self.intercepts_ = np.full(k, 1 / warm.value), np.zeros(k)
        self.weights_[present] = minimum.x[0]
        self.intercepts_[present] = minimum.x[1] - minimum.x[1].mean()
        self._warn_absent(counts, "they keep the common temperature and no offset")
        if minimum.value < 10 * least:
            self._warn(
                "the calibration rows are separable: larger factors always fit better, "
                "the search was stopped."
            )
        if not minimum.converged:
            self._warn(f"not converged after {minimum.passes} passes.")

    def _apply(self, block: FloatArray) -> FloatArray:
        block *= self.weights_.astype(block.dtype)
        block += self.intercepts_.astype(block.dtype)
        return softmax(block)

    def _source(self, name: str) -> str:
        return (
            f"{name}_w = {numpy_source.array(self.weights_)}\n"
            f"{name}_b = {numpy_source.array(self.intercepts_)}\n\n\n"
            f"def {name}_of(z):\n    return softmax({name}_w * z + {name}_b)\n"
        )


def present_classes(
    scores: Scores, labels: IntArray, counts: IntArray
) -> tuple[IntArray, Scores, IntArray]:
    """Return the classes that have rows, their scores, and the labels renumbered among them.

    A class without rows is left out: lowering its offset would always increase the likelihood.
    """
    present = np.flatnonzero(counts)
    if present.size == counts.size:
        return present, scores, labels
    array = np.ascontiguousarray(scores.whole()[:, present])
    return present, Scores(array, "logits", "logits"), np.searchsorted(present, labels)


def separated_below(loss: float) -> float:
    """Return the mean loss below which calibration rows count as separable, given the loss of a single temperature."""
    return max(1e-3 * loss, 1e-6)

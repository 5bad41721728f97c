"""The uncalibrated model, the baseline of every comparison."""

from __future__ import annotations

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.probabilities import row_sums
from calviz.numerics.scores import Scores
from calviz.recalibrators.base import BaseRecalibrator
from calviz.specs.recalibrator import Input, recalibrator


@recalibrator(
    key="identity",
    label="Uncalibrated",
    family="Uncalibrated",
    accuracy_preserving=True,
    needs="probabilities",
    confidence_only=True,
    reference="none; Guo et al. 2017, table 1, column 'uncalibrated'",
    formula=r"\hat p = p",
)
class Identity(BaseRecalibrator):
    """The probabilities as they are; logits become their softmax.

    Rows that do not sum to 1 (such as those of rounded files) are divided by their sum.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.
    """

    _needs_two_classes = False
    _limits_logits = False

    def __init__(self, *, input: Input = "probabilities") -> None:
        self.input = input

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        pass

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        pass

    def _apply(self, block: FloatArray) -> FloatArray:
        block /= row_sums(block)[:, None]
        return block

    def _source(self, name: str) -> str:
        return f"def {name}_of(p):\n    return p / p.sum(axis=1, keepdims=True)\n"

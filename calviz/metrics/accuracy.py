"""Accuracy and error of the predicted class."""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample.binning import BinSums
from calviz.sample.sample import top_label_sums
from calviz.specs.metric import metric

_accuracy = partial(
    metric,
    family="Accuracy and proper scores",
    bounds=(0.0, 1.0),
    view=top_label_sums,
    tail="two-sided",
)


@_accuracy(
    key="accuracy",
    tables=("fits", "methods", "models", "rivals", "drawn"),
    unit="percent",
    label="Accuracy",
    direction="higher",
    formula=r"\frac{1}{n} \sum_i \mathbf{1}[\hat{y}_i = y_i]",
    reference="Guo et al. 2017, section 2",
)
def accuracy(sums: BinSums) -> FloatArray:
    """Share of rows whose predicted class (largest probability; lowest index on ties) is the true class.

    Sums of shape (..., M) give values of shape (...).

    It does not depend on the reduction. With two classes, equal probabilities predict class 0, so a
    probability of exactly 0.5 counts as "no"; tools that predict the positive class where ``p >= 0.5``
    say "yes" there. Its noise floor is the expected accuracy if the confidences were true.
    """
    return np.asarray(sums.hit_sum.sum(axis=-1) / sums.n)


@_accuracy(
    key="error",
    unit="percent",
    label="Error",
    direction="lower",
    formula=r"\frac{1}{n} \sum_i \mathbf{1}[\hat{y}_i \neq y_i]",
    reference="Guo et al. 2017, section 2",
)
def error(sums: BinSums) -> FloatArray:
    """Share of rows whose predicted class is not the true class: 1 - accuracy.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.asarray(1 - accuracy(sums))

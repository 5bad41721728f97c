"""Proper scores: they reward probabilities that are both calibrated and sharp."""

from __future__ import annotations

import math
from functools import partial

from calviz.core.arrays import FloatArray
from calviz.sample.losses import MeanLoss, clipped_words, negative_log_likelihood, squared_error
from calviz.specs.metric import metric

_proper = partial(
    metric,
    family="Accuracy and proper scores",
    direction="lower",
    tail="two-sided",
    details=lambda view: view.details,
)


@_proper(
    key="nll",
    tables=("fits", "methods", "models", "rivals", "drawn"),
    criterion=2,
    rare_losses="log",
    label="NLL",
    bounds=(0.0, math.inf),
    formula=r"-\frac{1}{n} \sum_i \log p_{i, y_i}",
    reference="Guo et al. 2017, eq. 6, divided by n",
    view=negative_log_likelihood,
    note=clipped_words,
)
def nll(view: MeanLoss) -> FloatArray:
    """Negative log-likelihood (log loss, cross-entropy) of the true classes, in nats; a single confident mistake weighs heavily.

    Values have the shape (...) of the mean.

    A true class with probability 0 has an infinite loss. To keep the mean finite, the probability counts as 2.2e-16, the
    machine epsilon of float64 (a loss of 36), as in scikit-learn; the detail ``clipped_rows`` is the number of such rows. Positive
    probabilities are not clipped, and nothing is clipped where there are logits. scikit-learn also raises positive
    probabilities below 2.2e-16 to it (in float32, below 1.2e-7); torch-uncertainty and model-diagnostics return
    infinity. Rows are not renormalised.
    """
    return view.mean


@_proper(
    key="brier",
    tables=("fits", "methods", "models", "rivals"),
    criterion=1,
    rare_losses="squared",
    label="Brier score",
    bounds=(0.0, 2.0),
    formula=r"\frac{1}{n} \sum_i \sum_k (p_{ik} - \mathbf{1}[y_i = k])^2",
    reference="Brier 1950",
    view=squared_error,
)
def brier(view: MeanLoss) -> FloatArray:
    """Squared distance between the probabilities and the one-hot label, summed over classes (0 to 2); for two classes the one-column form is half of it.

    Values have the shape (...) of the mean.

    scikit-learn returns this sum with ``scale_by_half=False``, and half of it for two classes by default;
    the detail ``one_column`` is that half. pycalib divides by the number of classes.
    """
    return view.mean

"""Make predictions with a fitted scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import CalvizError, InputError, lines_of, shortened
from calviz.core.options import check_choice
from calviz.core.predictions import Predictions
from calviz.data.making.arrays import from_arrays


def from_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    response_method: str = "predict_proba",
    pos_label: Any = None,
    name: str | None = None,
    **columns: Any,
) -> Predictions:
    """Make predictions from the scores of an estimator; see `Predictions.from_estimator`."""
    check_choice("response_method", response_method, ("predict_proba", "decision_function"))
    scores = responses(estimator, X, response_method)
    classes = getattr(estimator, "classes_", None)
    class_names = (
        None if classes is None or isinstance(classes, list) else np.asarray(classes).tolist()
    )
    if scores.ndim == 1 and response_method == "decision_function":
        # The score of the second class, as scikit-learn defines it.
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return from_arrays(
        y,
        scores,
        class_names=class_names,
        pos_label=pos_label,
        kind="logits" if response_method == "decision_function" else "probabilities",
        name=name or name_of(estimator),
        **columns,
    )


def name_of(estimator: Any) -> str:
    """Name of an estimator: its class, or for a pipeline that of the last step."""
    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    if type(last).__name__ == "FrozenEstimator":
        return name_of(last.estimator)
    return shortened(type(last).__name__)


def responses(estimator: Any, X: Any, method: str = "predict_proba") -> FloatArray:
    """Scores of an estimator for X, shape (n, K) or (n,); raise InputError if it does not have the method or fails."""
    what = shortened(type(estimator).__name__)
    if isinstance(estimator, type):
        raise InputError(f"got the class {estimator.__name__}, expected a fitted estimator")
    function = getattr(estimator, method, None)
    if not callable(function):
        other = callable(getattr(estimator, "decision_function", None))
        raise InputError(
            f"{what} has no {method}",
            remedy=(
                'its decision_function can be read as logits, by response_method="decision_function"'
                if other and method == "predict_proba"
                else "give a classifier that has it, or its scores by calviz.Predictions.from_arrays"
            ),
        )
    try:
        scores = function(X)
    except CalvizError:
        raise
    except Exception as error:
        # Third-party estimators may raise anything: not fitted, wrong columns, text instead of numbers.
        raise InputError(f"{what}.{method} failed: {_in_one_line(error)}") from error
    if isinstance(scores, list) and scores and np.ndim(scores[0]) == 2:
        raise InputError(
            f"{what} has {len(scores):,} outputs",
            remedy="give the scores of one by calviz.Predictions.from_arrays",
        )
    return np.asarray(scores)


def _in_one_line(error: Exception) -> str:
    lines = lines_of(error)
    # Between the first and the last line, messages of scikit-learn may print an array.
    ends = lines[:1] + lines[-1:] if len(lines) > 1 else lines
    return " ".join(line.strip()[:300] for line in ends)

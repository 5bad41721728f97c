"""From arrays in one line: `audit`, and scorers for scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from calviz.analysis import evaluate, first_metrics
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.results.comparison_table import badness
from calviz.results.evaluation import Evaluation
from calviz.sample.sample import Sample
from calviz.specs.metric import METRICS

#: Options that make the sample, and their names in `Sample.of`.
_SETTINGS = {
    key: key for key in ("split", "reduction", "bins", "scheme", "seed", "resamples", "clusters")
} | {"sample_weight": "weights"}


def audit(
    y_true: Any,
    y_prob: Any = None,
    *,
    metrics: Iterable[str] | Literal["all"] | None = None,
    pos_label: Any = None,
    class_names: Sequence[Any] | None = None,
    kind: Literal["probabilities", "logits"] = "probabilities",
    groups: Mapping[str, Any] | None = None,
    ci: bool = True,
    name: str = "predictions",
    **options: Any,
) -> Evaluation:
    """Judge probabilities in one line: a verdict, the metrics that are asked for first, and findings.

    Parameters
    ----------
    y_true : array_like, shape (n,); or Predictions, ConfidencePredictions or Sample
        True labels of any kind; or what holds both, and `y_prob` is left out.
    y_prob : array_like, shape (n, K) or (n,)
        Probabilities, as of `calviz.Predictions.from_arrays`.
    metrics : iterable of str or "all", optional
        Keys of metrics; accuracy, ECE, MCS, NLL and Brier score if left out.
    pos_label, class_names, kind, groups, name
        As of `calviz.Predictions.from_arrays`; only with arrays.
    ci : bool
        Whether to compute intervals and noise floors.
    **options
        As of `evaluate`.

    Raises
    ------
    InputError, OptionError
        As `calviz.Predictions.from_arrays` and `evaluate`.

    Examples
    --------
    >>> import calviz
    >>> result = calviz.audit(["no", "yes"] * 50, [0.2, 0.8] * 50, resamples=100)
    >>> round(result["ece"].value, 4)
    0.2
    >>> result.verdict.direction
    'mixed'
    """
    if y_prob is None and isinstance(y_true, Sample | Predictions | ConfidencePredictions):
        given = (pos_label, class_names, groups)
        if any(value is not None for value in given) or kind != "probabilities":
            raise OptionError(
                "pos_label, class_names, groups and kind are for arrays; predictions have their own."
            )
        data: Dataset | Sample = y_true
    else:
        if isinstance(y_true, Sample | Predictions | ConfidencePredictions):
            raise OptionError("audit got predictions and probabilities: leave out y_prob.")
        if y_prob is None:
            raise InputError("audit got one argument", remedy=_remedy(y_true))
        data = Predictions.from_arrays(
            y_true,
            y_prob,
            class_names=class_names,
            pos_label=pos_label,
            kind=kind,
            groups=groups,
            name=name,
        )
    sample = Sample.of(
        data,
        **{_SETTINGS[key]: options.pop(key) for key in tuple(options) if key in _SETTINGS},
    )
    wanted = first_metrics(sample) if metrics is None else None if metrics == "all" else metrics
    return replace(evaluate(sample, wanted, ci=ci, **({"findings": True} | options)), sample=sample)


def _remedy(given: Any) -> str:
    """What to do with something that holds no predictions by itself."""
    if isinstance(given, str | os.PathLike):
        return "of a file: audit(calviz.load(path))"
    if hasattr(given, "columns"):
        return "of a frame: audit(calviz.Predictions.from_frame(df))"
    return "give true labels and probabilities: audit(y_true, y_prob)"


class Scorer:
    """A scorer for scikit-learn: ``scorer(estimator, X, y)`` is a number of which more is better (see `scorer`)."""

    def __init__(self, metric: str, options: Mapping[str, Any], pos_label: Any) -> None:
        worse = badness(METRICS[metric].direction)
        if worse is None:
            raise OptionError(
                f"'{metric}' only describes the data: neither more nor less of it is better, so it is no score."
            )
        self.metric, self.options, self.pos_label = metric, dict(options), pos_label
        self._worse = worse
        #: What is asked of scikit-learn's metadata routing; made when it first matters.
        self._request: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Minus the error of what the estimator says of X, or the metric itself where more is better."""
        data = Predictions.from_estimator(
            estimator, X, y, pos_label=self.pos_label, sample_weight=sample_weight
        )
        result = evaluate(data, [self.metric], **self.options)[self.metric]
        if result.reason is not None:
            raise NotAvailable(f"'{self.metric}' has no value on these rows: {result.reason}")
        return -self._worse(result.value)

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Ask scikit-learn's metadata routing for weights of the rows that are scored.

        Parameters
        ----------
        sample_weight : bool or str or None
            Whether weights that are handed to `cross_val_score` and its like get here, or under which name they are; None refuses them.

        Raises
        ------
        OptionError
            Where routing is off (``sklearn.set_config(enable_metadata_routing=True)``).
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise OptionError(
                "scikit-learn's metadata routing is off: switch it on by sklearn.set_config(enable_metadata_routing=True)."
            )
        self._request = self._request_of(sample_weight)
        return self

    def get_metadata_routing(self) -> Any:
        """What is asked of metadata routing, for scikit-learn."""
        return self._request_of(None) if self._request is None else self._request

    def _request_of(self, sample_weight: bool | str | None) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=sample_weight)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"calviz.scorer({self.metric!r}{options})"


def scorer(metric: str = "ece", *, pos_label: Any = None, **options: Any) -> Scorer:
    """Make a scorer for `cross_val_score`, `GridSearchCV` and whatever takes ``scoring=``.

    As with scikit-learn's own, greater is better: errors are negative, and of those that are best at 0 or at 1 it is minus the
    distance. It asks the estimator for `predict_proba` and for its ``classes_``, so a fold may lack a class. Weights of the rows are
    its ``sample_weight``, which metadata routing hands over after ``scorer(...).set_score_request(sample_weight=True)``.

    Parameters
    ----------
    metric : str
        Key of a metric (``calviz metrics`` lists them).
    pos_label : optional
        Of two classes, the positive one; the second of ``classes_`` if left out.
    **options
        As of `evaluate`: ``reduction="top-label"``, ``bins=10``.

    Raises
    ------
    OptionError
        On an unknown metric, and one of which neither more nor less is better.

    Examples
    --------
    >>> import calviz
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=calviz.scorer("ece"))
    >>> len(scores), bool(scores.max() < 0)
    (5, True)
    """
    return Scorer(metric, options, pos_label)

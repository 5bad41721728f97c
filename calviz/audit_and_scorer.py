"""One-line entry points for arrays: `audit`, and scorers for scikit-learn."""

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

#: Options of the sample, with their names in `Sample.of`.
_SAMPLE_OPTIONS = {
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
    """Evaluate probabilities in one call: verdict, main metrics, and findings.

    Parameters
    ----------
    y_true : array_like, shape (n,); or Predictions, ConfidencePredictions or Sample
        True labels of any kind; or predictions, which hold labels and probabilities (leave out `y_prob`).
    y_prob : array_like, shape (n, K) or (n,)
        Probabilities, as in `calviz.Predictions.from_arrays`.
    metrics : iterable of str or "all", optional
        Keys of metrics; accuracy, ECE, MCS, NLL and Brier score if left out.
    pos_label, class_names, kind, groups, name
        As in `calviz.Predictions.from_arrays`; only with arrays.
    ci : bool
        Whether to compute intervals and noise floors.
    **options
        As in `evaluate`.

    Raises
    ------
    InputError, OptionError
        As in `calviz.Predictions.from_arrays` and `evaluate`.

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
        for_arrays = (pos_label, class_names, groups)
        if any(value is not None for value in for_arrays) or kind != "probabilities":
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
        **{
            _SAMPLE_OPTIONS[key]: options.pop(key)
            for key in tuple(options)
            if key in _SAMPLE_OPTIONS
        },
    )
    keys = first_metrics(sample) if metrics is None else None if metrics == "all" else metrics
    return replace(evaluate(sample, keys, ci=ci, **({"findings": True} | options)), sample=sample)


def _remedy(argument: Any) -> str:
    """Suggest the right call for a single argument that is not predictions."""
    if isinstance(argument, str | os.PathLike):
        return "for a file: audit(calviz.load(path))"
    if hasattr(argument, "columns"):
        return "for a frame: audit(calviz.Predictions.from_frame(df))"
    return "give true labels and probabilities: audit(y_true, y_prob)"


class Scorer:
    """A scorer for scikit-learn: ``scorer(estimator, X, y)`` returns a number, greater is better (see `scorer`)."""

    def __init__(self, metric: str, options: Mapping[str, Any], pos_label: Any) -> None:
        worse = badness(METRICS[metric].direction)
        if worse is None:
            raise OptionError(
                f"'{metric}' only describes the data: neither more nor less of it is better, so it is not a score."
            )
        self.metric, self.options, self.pos_label = metric, dict(options), pos_label
        self._worse = worse
        #: Request for scikit-learn's metadata routing; None until `set_score_request` is called.
        self._request: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return minus the error of the predictions for X, or the metric itself if greater is better."""
        data = Predictions.from_estimator(
            estimator, X, y, pos_label=self.pos_label, sample_weight=sample_weight
        )
        result = evaluate(data, [self.metric], **self.options)[self.metric]
        if result.reason is not None:
            raise NotAvailable(f"'{self.metric}' has no value on these rows: {result.reason}")
        return -self._worse(result.value)

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Request the weights of the scored rows from scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool or str or None
            Whether weights passed to `cross_val_score` and the like are used, or their name; None raises an error if any are passed.

        Raises
        ------
        OptionError
            If routing is off (``sklearn.set_config(enable_metadata_routing=True)``).
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise OptionError(
                "scikit-learn's metadata routing is off: switch it on by sklearn.set_config(enable_metadata_routing=True)."
            )
        self._request = self._request_of(sample_weight)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata request, for scikit-learn."""
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
    """Make a scorer for `cross_val_score`, `GridSearchCV` and anything else that takes ``scoring=``.

    As with scikit-learn's own scorers, greater is better: errors are negated, and metrics that are best at 0 or 1 are scored by
    minus the distance from it. It uses `predict_proba` and ``classes_`` of the estimator, so a fold may lack a class. Row weights
    are its ``sample_weight``, which metadata routing passes on after ``scorer(...).set_score_request(sample_weight=True)``.

    Parameters
    ----------
    metric : str
        Key of a metric (``calviz metrics`` lists them).
    pos_label : optional
        With two classes, the positive one; the second of ``classes_`` if left out.
    **options
        As in `evaluate`: ``reduction="top-label"``, ``bins=10``.

    Raises
    ------
    OptionError
        On an unknown metric, or one that only describes the data.

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

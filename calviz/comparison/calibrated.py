"""`Calibrated`: a classifier followed by a recalibrator, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils import _safe_indexing, assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter, indexable

from calviz.core.blocks import AnyArray, FloatArray, IntArray
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError, OptionError, check_choice, check_whole, shortened
from calviz.data.from_objects import name_of, responses


class Calibrated(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are recalibrated.

    Wrap a classifier that is already fitted in a ``FrozenEstimator``: `fit` then fits only the recalibrator, on rows that the
    classifier has not seen. Otherwise `fit` fits both, the recalibrator on cross-validated predictions for the same rows.

    Parameters
    ----------
    estimator : estimator
        A classifier with ``predict_proba``, or with ``decision_function`` if `response_method` asks for it.
    method : str
        Key of a recalibrator ("auto", "temperature", ...; ``calviz methods`` lists them), or ``first+second``.
    response_method : {"predict_proba", "decision_function"}
        Method of the classifier to call; the output of "decision_function" is used as logits.
    cv : int
        Number of stratified folds for an estimator that is not frozen.
    columns : list of str or int, optional
        Columns of X for a method that takes some (``segments``): names, or positions in an array.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
    estimator_ : estimator
        The fitted classifier.
    recalibrator_ : transformer
        The fitted map; see its `describe`, `to_dict` and `snippet`.
    n_features_in_ : int
        If the classifier has it.

    Examples
    --------
    >>> import calviz
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = GaussianNB().fit(X[:200], y[:200])
    >>> model = calviz.Calibrated(FrozenEstimator(clf), method="temperature").fit(X[200:400], y[200:400])
    >>> before, after = (calviz.scorer("nll")(m, X[400:], y[400:]) for m in (clf, model))
    >>> after > before
    True
    """

    estimator_: Any
    recalibrator_: Any
    classes_: AnyArray

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "auto",
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        cv: int = 5,
        columns: Sequence[str | int] | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.response_method = response_method
        self.cv = cv
        self.columns = columns

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the recalibrator and, unless it is frozen, the classifier.

        Parameters
        ----------
        X : array_like or data frame
            Input of the classifier.
        y : array_like, shape (n,)
        sample_weight : array_like of float, shape (n,), optional
            Row weights, for the recalibrator, and for the classifier if its `fit` takes them.

        Raises
        ------
        InputError, OptionError
            If the classifier gives no scores or does not know a label, a class has too few rows, or a parameter is not allowed.
        NotAvailable
            If the weights differ and the recalibrator does not support them.
        """
        check_choice(
            "response_method", self.response_method, ("predict_proba", "decision_function")
        )
        check_whole("cv", self.cv, least=2)
        spec = RECALIBRATORS[self.method]
        if y is None:
            raise InputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None"
            )
        X, y, sample_weight = indexable(X, y, sample_weight)
        if sample_weight is not None:
            sample_weight = column_or_1d(sample_weight, input_name="sample_weight")
            used = np.flatnonzero(sample_weight)
            if not used.size:
                raise InputError("the weight of every row is zero", remedy="give weights above 0")
            X, y, sample_weight = (_safe_indexing(v, used) for v in (X, y, sample_weight))
        y = column_or_1d(y, warn=True)
        try:
            if y.dtype.kind == "f":
                assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        except ValueError as error:
            raise InputError(str(error).strip().splitlines()[0]) from None
        if not hasattr(self.estimator, "get_params") or isinstance(self.estimator, type):
            given = self.estimator if isinstance(self.estimator, type) else type(self.estimator)
            raise InputError(
                f"got {given.__name__}, expected a scikit-learn classifier",
                remedy="one that is fitted already goes into sklearn.frozen.FrozenEstimator",
            )
        frozen = isinstance(self.estimator, FrozenEstimator)
        self.estimator_ = self.estimator if frozen else clone(self.estimator)
        scores = self._scores(X) if frozen else self._held_out(X, y, sample_weight)
        self.classes_ = np.asarray(self.estimator_.classes_)
        kind = "probabilities" if self.response_method == "predict_proba" else "logits"
        if spec.takes_columns != (self.columns is not None):
            raise OptionError(
                f"'columns' must name the columns of X that '{spec.key}' segments by."
                if spec.takes_columns
                else f"'{spec.key}' takes no columns: leave 'columns' out."
            )
        more = self._columns(X, self.columns or ()) if spec.takes_columns else {}
        self.recalibrator_ = spec.make(input=kind).fit(
            scores, self._indices(y), sample_weight=sample_weight, **more
        )
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities, shape (n, K), in the order of `classes_`."""
        check_is_fitted(self, "recalibrator_")
        needed = getattr(self.recalibrator_, "needed_columns", ())
        # By the names in the map, which are texts.
        names = [name for name in self.columns or () if str(name) in needed]
        more = self._columns(X, names) if needed else {}
        return self.recalibrator_.transform(self._scores(X), **more)

    def predict(self, X: Any) -> AnyArray:
        """Return the class with the largest calibrated probability for each row, shape (n,)."""
        probs = self.predict_proba(X)  # which says so where it is not fitted
        return np.asarray(self.classes_[probs.argmax(axis=1)])

    @staticmethod
    def _columns(X: Any, names: Sequence[str | int]) -> dict[str, Any]:
        """The argument ``columns`` of a recalibrator that takes columns."""
        columns = {}
        for name in names:
            try:
                columns[str(name)] = np.asarray(_safe_indexing(X, name, axis=1))
            except (KeyError, ValueError, IndexError, TypeError):
                raise InputError(
                    f"X has no column {name!r:.60}, which the map segments by",
                    remedy="give a data frame with this column, or an array and the positions of its columns",
                ) from None
        return {"columns": columns}

    def _scores(self, X: Any) -> FloatArray:
        return _one_column_per_class(
            responses(self.estimator_, X, self.response_method), self.response_method
        )

    def _held_out(self, X: Any, y: AnyArray, weights: npt.ArrayLike | None) -> FloatArray:
        """Return cross-validated scores of the classifier, which is then fitted on all rows."""
        if not y.size:
            raise InputError("there are no rows", remedy="give rows of at least two classes")
        classes, counts = np.unique(y, return_counts=True)
        if classes.size < 2:
            raise InputError(
                f"all {y.size:,} rows have one class, {classes.tolist()[0]!r}: there is nothing to fit",
                remedy="give rows of at least two classes",
            )
        rarest = int(counts.argmin())
        if counts[rarest] < 2:
            raise InputError(
                f"the class {classes.tolist()[rarest]!r} has one row, so no fold can be held out",
                remedy="leave it out, or give more rows of it",
            )
        if not callable(getattr(self.estimator_, self.response_method, None)):
            responses(self.estimator_, X, self.response_method)  # raises and names the alternatives
        folds = StratifiedKFold(min(self.cv, int(counts[rarest])))
        takes = weights is not None and has_fit_parameter(self.estimator_, "sample_weight")
        given = {"sample_weight": weights} if takes else {}
        scores = cross_val_predict(
            self.estimator_, X, y, cv=folds, method=self.response_method, params=given
        )
        self.estimator_.fit(X, y, **given)
        return _one_column_per_class(np.asarray(scores), self.response_method)

    def _indices(self, y: AnyArray) -> IntArray:
        order = np.argsort(self.classes_)
        indices = order[np.minimum(np.searchsorted(self.classes_[order], y), order.size - 1)]
        wrong = self.classes_[indices] != y
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"label {y[row : row + 1].tolist()[0]!r:.60} is none of the classes that {name_of(self.estimator_)} knows "
                f"({shortened(', '.join(map(repr, self.classes_.tolist()[:5])))})",
                row=row + 1,
                remedy="leave these rows out, or fit the classifier on them",
            )
        return np.asarray(indices)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _one_column_per_class(scores: FloatArray, method: str) -> FloatArray:
    """Return one column per class; if the classifier gives only the logit of the second of two classes, the first has logit 0."""
    if scores.ndim == 1 and method == "decision_function":
        return np.stack([np.zeros_like(scores), scores], axis=1)
    if scores.ndim != 2:
        raise InputError(
            f"{method} gave an array of shape {scores.shape}, expected (rows, classes)"
        )
    return scores

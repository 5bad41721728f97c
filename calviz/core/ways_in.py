"""How predictions are made of labels of any kind, of estimators and of frames: asked for here, done in a room above.

`Predictions` is at the bottom and does not know who reads frames; `calviz/__init__.py`, above all rooms, says where each way is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    import numpy.typing as npt

    from calviz.core.predictions import Dataset

_HOMES: dict[str, str] = {}


def ways_in(**homes: str) -> None:
    """Say where each way is: ``ways_in(arrays="package.module.function")``."""
    _HOMES.update(homes)


def way_in(way: str) -> Callable[..., Any]:
    """The function behind a way, imported when it is first needed."""
    module, _, name = _HOMES[way].rpartition(".")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


class WaysIn:
    """How `Predictions` are made of what people have at hand."""

    @classmethod
    def from_arrays(
        cls,
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        class_names: Sequence[Any] | None = None,
        pos_label: Any = None,
        kind: Literal["probabilities", "logits"] = "probabilities",
        splits: npt.ArrayLike | None = None,
        groups: Mapping[str, npt.ArrayLike] | None = None,
        ids: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
        name: str = "predictions",
    ) -> Self:
        """Make predictions of true labels of any kind and an array of probabilities.

        Parameters
        ----------
        y_true : array_like, shape (n,)
            The true classes: text, booleans, numbers or pandas categories.
        y_prob : array_like or data frame, shape (n, K) or (n,)
            Probabilities, as `predict_proba` gives them; one column is that of the positive class. The columns of a frame
            name the classes.
        class_names : sequence, optional
            The classes in the order of the columns. If left out: whole numbers 0..K-1 are column numbers; other labels are in
            sorted order, as scikit-learn's ``classes_`` are, and there have to be as many of them as columns.
        pos_label : optional
            Of two classes, the positive one, as in scikit-learn: 1 or True if left out. Text needs it where `y_prob` has one column,
            unless it is a pair such as "no" and "yes".
        kind : {"probabilities", "logits"}
            What `y_prob` holds; of one column of logits the other class has 0.
        sample_weight, clusters : array_like, shape (n,), optional
            How much each row counts, and which rows belong together.
        splits, groups, ids, name
            As in `Predictions`.

        Raises
        ------
        InputError
            In one sentence, where lengths differ, labels are missing, or nothing says which column a label is.

        Examples
        --------
        >>> import calviz
        >>> calviz.Predictions.from_arrays(["cat", "dog", "cat"], [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]])
        <Predictions 'predictions': 3 rows, probabilities, 2 classes (cat, dog)>
        """
        made: Self = way_in("arrays")(
            y_true,
            y_prob,
            class_names=class_names,
            pos_label=pos_label,
            kind=kind,
            splits=splits,
            groups=groups,
            ids=ids,
            sample_weight=sample_weight,
            clusters=clusters,
            name=name,
        )
        return made

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        pos_label: Any = None,
        splits: npt.ArrayLike | None = None,
        groups: Mapping[str, npt.ArrayLike] | None = None,
        ids: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        clusters: npt.ArrayLike | None = None,
        name: str | None = None,
    ) -> Self:
        """Ask a fitted scikit-learn classifier or pipeline for its probabilities.

        Parameters
        ----------
        estimator : object
            With ``classes_`` and ``predict_proba``.
        X : array_like or data frame
            What it takes; rows that it was not fitted on.
        y : array_like, shape (n,)
            Their true classes.
        response_method : {"predict_proba", "decision_function"}
            With "decision_function" what that gives is read as logits.
        pos_label : optional
            Of two classes, the positive one; the second of ``classes_`` if left out.
        sample_weight, clusters : array_like, shape (n,), optional
            How much each row counts, and which rows belong together.
        splits, groups, ids, name
            As in `Predictions`; the name is that of the estimator's class if left out.

        Raises
        ------
        InputError
            Where the estimator has no such method, is not fitted or refuses X, or where y holds a class that it does not know.

        Examples
        --------
        >>> import calviz
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
        >>> calviz.Predictions.from_estimator(clf, X[1::2], y[1::2])
        <Predictions 'LogisticRegression': 75 rows, probabilities, 3 classes (0, 1, 2)>
        """
        made: Self = way_in("estimator")(
            estimator,
            X,
            y,
            response_method=response_method,
            pos_label=pos_label,
            splits=splits,
            groups=groups,
            ids=ids,
            sample_weight=sample_weight,
            clusters=clusters,
            name=name,
        )
        return made

    @classmethod
    def from_frame(
        cls, frame: Any, *, model: str | None = None, name: str = "frame", **options: Any
    ) -> Dataset:
        """Read a data frame as a file of the same columns would be read.

        Parameters
        ----------
        frame : data frame
            Of pandas, polars, pyarrow, DuckDB, PySpark or whatever else narwhals knows; what is lazy is collected.
        model : str, optional
            Which model, where the frame holds several.
        name : str
            What to call the predictions.
        **options
            As of `calviz.load`: ``label="y"``, ``scores=["p_cat", "p_dog"]``, ``groups=["site"]``; what is left out is recognised.

        Raises
        ------
        InputError, OptionError
            As `calviz.load`.

        Examples
        --------
        >>> import calviz, polars
        >>> df = polars.DataFrame({"y": ["cat", "dog"], "p_cat": [0.9, 0.2], "p_dog": [0.1, 0.8], "site": ["a", "b"]})
        >>> calviz.Predictions.from_frame(df, label="y", scores=["p_cat", "p_dog"])
        <Predictions 'frame': 2 rows, probabilities, 2 classes (cat, dog), groups site>
        """
        made: Dataset = way_in("frame")(frame, model=model, name=name, **options)
        return made

"""What all recalibrators share: checks, blocks of rows, and the way home as JSON or as source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.rows_not_alike import checked_weights
from calviz.numerics.automatic_zero_floor import automatic_floor, true_zeros
from calviz.numerics.blocks import for_row_blocks
from calviz.numerics.scores import Scores
from calviz.numerics.threads import one_blas_thread
from calviz.numerics.zero_floor import NO_FLOOR, Floor, check_floor, smallest_normal
from calviz.recalibrators import numpy_source
from calviz.recalibrators.frames import transform_frame
from calviz.recalibrators.saved_maps import (
    MAP_VERSION,
    check_map,
    plain,
    restored,
    saved_parameters,
)
from calviz.recalibrators.score_checks import check_logits, check_probabilities
from calviz.specs.metric import parameters_of
from calviz.specs.recalibrator import FloorChoice, Input, Needs


class BaseRecalibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map from scores, shape (n, K), to probabilities, shape (n, K), in the scikit-learn way.

    A method sets `needs` and `fitted`, and implements `_fit`, `_apply` and `_source`.

    Attributes
    ----------
    needs : {"probabilities", "logits", "log-probabilities"}
        The form of the scores that `_fit` and `_apply` receive.
    fitted : tuple of str
        The attributes that `_fit` sets and that, with the parameters, are the whole map.
    accuracy_preserving : bool
        Whether the map keeps the predicted class; it is then enforced, rounding included.
    """

    key: ClassVar[str]
    needs: ClassVar[Needs] = "logits"
    fitted: ClassVar[tuple[str, ...]] = ()
    accuracy_preserving: bool = False
    #: Why it takes no weights, where it takes none.
    no_weights: ClassVar[str] = ""
    #: Whether a single class among the labels leaves nothing to fit.
    _needs_two_classes: ClassVar[bool] = True

    input: Input
    floor: FloorChoice
    #: What an exact probability of 0 counts as before its logarithm; 0 where none is taken of probabilities.
    floor_: float
    #: Whether smaller positive probabilities count as it too, so that their order is kept (see `Floor`).
    floor_clips_: bool
    warnings_: tuple[str, ...]

    # ---------------------------------------------------------------- scikit-learn

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
            Probabilities or logits, as the parameter `input` says.
        y : array_like of int, shape (n,)
            The true classes: column numbers of X, 0..K-1.
        sample_weight : array_like of float, shape (n,), optional
            How much each row counts; only methods that take weights (`takes_weights`) are fitted with some that differ.

        Raises
        ------
        InputError, OptionError
            Where there is nothing to fit, or a parameter has a value that is not allowed.
        """
        self._check_parameters()
        array = self._check_scores(X, y, reset=True)
        labels = self._check_labels(y, array)
        self.classes_ = np.arange(array.shape[1])
        self._notes: list[str] = []
        floor = self._find_floor(array, labels)
        self.floor_, self.floor_clips_ = floor.value, floor.clips
        self._warn_of_zeros(array, labels)
        weights = self._check_weights(sample_weight, array)
        if weights is not None and not weights.all():
            # A row without weight is a row that is not there.
            kept = np.flatnonzero(weights)
            array, weights = array[kept], weights[kept] / weights[kept].mean()
            labels = self._check_labels(labels[kept], array)
        with one_blas_thread():
            if weights is None:
                self._fit(self._scores(array), labels)
            else:
                self._fit_weighted(self._scores(array), labels, weights)
        self.warnings_ = tuple(self._notes)
        return self

    def _check_weights(self, weights: npt.ArrayLike | None, array: FloatArray) -> FloatArray | None:
        """Weights with a mean of 1; None where all rows count the same."""
        if weights is None:
            return None
        checked = checked_weights(np.asarray(weights))
        if checked.shape[0] != array.shape[0]:
            raise InputError(
                f"there are {checked.shape[0]:,} weights for {array.shape[0]:,} rows of scores"
            )
        if (checked == checked[0]).all():
            return None
        if not self.takes_weights:
            raise NotAvailable(
                f"not available for weighted rows: '{self.key}' does not take weights"
                f"{': ' + self.no_weights if self.no_weights else '.'}"
            )
        return np.asarray(checked / checked.mean())

    @property
    def takes_weights(self) -> bool:
        """Whether `fit` takes weights that differ."""
        return type(self)._fit_weighted is not BaseRecalibrator._fit_weighted

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: Any) -> None:
        """Fit with weights of the rows, shape (n,), above 0 and with a mean of 1."""
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Calibrated probabilities of the same type as X, shape (n, K); rows sum to 1."""
        check_is_fitted(self, "classes_")
        array = self._check_scores(X, reset=False)
        out = np.empty(array.shape, dtype=array.dtype)
        with one_blas_thread():
            self._transform(self._scores(array), out)
            if self.accuracy_preserving:
                keep_predicted_classes(array, out)
        return out

    def transform_frame(
        self, frame: Any, scores: str | Sequence[str], *, names: Sequence[str] | None = None
    ) -> Any:
        """`transform` of the columns of a data frame, added to it; a lazy frame stays lazy and is gone through in batches.

        Parameters
        ----------
        frame : data frame
            Of pandas, polars, pyarrow, PySpark (``mapInArrow``, so that executors need calviz), or a DuckDB relation or an Ibis table.
        scores : str or sequence of str
            One column for each class, in their order; of two classes that of the second alone will do.
        names : sequence of str, optional
            What to call the new columns; ``NAME_calibrated`` if left out.

        Returns
        -------
        data frame
            Of the same library; of DuckDB and Ibis a ``pyarrow.RecordBatchReader``, which both read.

        Raises
        ------
        InputError, OptionError
            Where columns are missing, are not one for each class, or a row is no distribution.
        """
        check_is_fitted(self, "classes_")
        return transform_frame(self, frame, scores, names)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """The same as `transform`, shape (n, K): a map at the end of a pipeline stands for a model."""
        return self.transform(X)

    def intervals(self, X: npt.ArrayLike) -> FloatArray:
        """What the method says beside the probability of a class: a lower and an upper one, before the classes are normalised.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
            As for `transform`.

        Returns
        -------
        ndarray, shape (n, C, 2)
            C is K, or 1 for two classes: of class 1.

        Raises
        ------
        NotAvailable
            Where the method has none.
        """
        check_is_fitted(self, "classes_")
        return self._intervals(self._scores(self._check_scores(X, reset=False)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.positive_only = self.input == "probabilities"
        return tags

    # ---------------------------------------------------------------- for the methods

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def _apply(self, block: FloatArray) -> FloatArray:
        """Map a block of rows in the form `needs`; the block may be overwritten."""
        raise NotImplementedError

    def _intervals(self, scores: Scores) -> FloatArray:
        """See `intervals`."""
        raise NotAvailable(f"'{self.key}' has no intervals: it gives one probability per class.")

    def _source(self, name: str) -> str:
        """Source of a function `name` from scores in the form `needs` to probabilities."""
        raise NotImplementedError

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        # A map that jumps must not see the rounding of a float32 softmax.
        dtype = np.float64 if self.needs == "probabilities" and not scores.as_given else None

        def work(rows: slice) -> None:
            out[rows] = self._apply(scores.block(rows, dtype))

        for_row_blocks(scores.array, work)

    def _warn(self, sentence: str) -> None:
        self._notes.append(sentence)

    def _warn_absent(self, counts: IntArray, what: str) -> None:
        absent = np.flatnonzero(counts == 0)
        if absent.size:
            named = ", ".join(str(k) for k in absent[:10]) + (", ..." if absent.size > 10 else "")
            self._warn(
                f"{absent.size} of {counts.size} classes have no calibration rows "
                f"(column {named}): {what}."
            )

    def describe(self) -> dict[str, Any]:
        """The fitted parameters, by name, in a form that a person can read.

        Where logarithms of probabilities are taken, `floor` is what an exact probability of 0 counts as.
        """
        check_is_fitted(self, "classes_")
        return self._described() | ({"floor": self.floor_} if self.floor_ else {})

    def _described(self) -> dict[str, Any]:
        """What `describe` says about this method's own parameters."""
        return {name.rstrip("_"): plain(getattr(self, name)) for name in self.fitted}

    # ---------------------------------------------------------------- checks

    def _check_parameters(self) -> None:
        for parameter in parameters_of(type(self).__init__):
            value = getattr(self, parameter.name)
            if parameter.choices and value not in parameter.choices:
                allowed = ", ".join(str(choice) for choice in parameter.choices)
                raise OptionError(f"'{parameter.name}' must be one of {allowed}; got {value!r}.")
            if parameter.annotation is bool and not isinstance(value, bool | np.bool_):
                raise OptionError(f"'{parameter.name}' must be true or false, got {value!r}.")
            if parameter.annotation is int and not is_whole(value, 1):
                raise OptionError(
                    f"'{parameter.name}' must be a whole number above 0, got {value!r}."
                )

    def _check_scores(self, X: Any, y: Any = None, *, reset: bool) -> FloatArray:
        options = {"ensure_min_samples": 2, "ensure_min_features": 2} if reset else {}
        if reset and y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, "
                "but the target y is None."
            )
        try:
            with np.errstate(invalid="ignore"):  # sums of numbers near the largest there are
                array: FloatArray = validate_data(
                    self, X, dtype=[np.float64, np.float32], reset=reset, **options
                )
        except ValueError as error:
            # Of several lines the first one says what is wrong.
            said = str(error).strip().splitlines()[0].removesuffix(":").removesuffix(" instead")
            flat = "Reshape your data to one column per class, such as np.stack([1 - p, p], axis=1)"
            raise InputError(said, remedy=flat if "got 1D array" in said else None) from None
        if self.input == "probabilities":
            check_probabilities(array)
        else:
            check_logits(array)
        return array

    def _check_labels(self, y: Any, array: FloatArray) -> IntArray:
        column = column_or_1d(y, warn=True)
        n, k = array.shape
        if column.shape[0] != n:
            raise InputError(f"there are {n:,} rows of scores but {column.shape[0]:,} labels")
        if column.dtype.kind not in "biuf":
            raise InputError(
                f"Unknown label type {column.dtype}: labels are column numbers 0..{k - 1}"
            )
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise InputError("the labels hold NaN or infinity")
        labels: IntArray = column.astype(np.intp, copy=False)
        if column.dtype.kind == "f" and not np.array_equal(labels, column):
            row = int(np.flatnonzero(labels != column)[0])
            raise InputError(f"label {column[row]!r} is not a whole number", row=row + 1)
        bad = (labels < 0) | (labels >= k)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"label {labels[row]}, but X has {k} columns (0..{k - 1})", row=row + 1
            )
        if self._needs_two_classes and labels.min() == labels.max():
            raise InputError(
                f"all {n:,} calibration rows have 1 class, {labels[0]}: there is nothing to fit",
                remedy="calibrate on rows of at least two classes",
            )
        return labels

    def _find_floor(self, array: FloatArray, labels: IntArray) -> Floor:
        given = getattr(self, "floor", None)
        check_floor(given)
        if self.input == "logits" or not self._takes_logarithms():
            return NO_FLOOR
        if given == "auto":
            found = automatic_floor(array, labels)
            return replace(found, value=found.least(array.dtype))
        return Floor(smallest_normal(array.dtype) if given is None else float(given))

    def _warn_of_zeros(self, array: FloatArray, labels: IntArray) -> None:
        effect = self._effect_of_zeros()
        # The automatic floor is no reason to warn; most files have no zero at all, and one look is a fraction of counting.
        if not self.floor_ or not effect or self.floor == "auto" or array.min() > 0:
            return
        zeros = true_zeros(array, labels)
        automatic = automatic_floor(array, labels).value if zeros else 0.0
        if zeros and 2 * self.floor_ < automatic:
            self._warn(
                f"{zeros:,} of {labels.size:,} calibration rows give their true class a probability of 0, read as "
                f"{self.floor_:.3g}: {effect}. For less, leave 'floor' at \"auto\", which is {automatic:.3g} here."
            )

    def _effect_of_zeros(self) -> str:
        """A warning about true classes of probability 0; empty if their effect is small."""
        # One such row weighs as much in the likelihood as hundreds of others.
        return "they weigh heavily in the fit"

    def _takes_logarithms(self) -> bool:
        return self.needs != "probabilities"

    def _scores(self, array: FloatArray) -> Scores:
        wanted = self.needs
        return Scores(array, self.input, wanted, self._floor)

    @property
    def _floor(self) -> Floor:
        return Floor(self.floor_, self.floor_clips_)

    # ---------------------------------------------------------------- taking it home

    def to_dict(self) -> dict[str, Any]:
        """The fitted map as plain values, ready for JSON; `from_dict` reads it back."""
        check_is_fitted(self, "classes_")
        return {
            "calviz_map": MAP_VERSION,
            "method": self.key,
            "classes": int(self.classes_.size),
            "parameters": {k: plain(v) for k, v in self.get_params(deep=False).items()},
            "floor": self.floor_,
            "floor_clips": self.floor_clips_,
            "fitted": self._saved(),
            "warnings": list(self.warnings_),
        }

    def _saved(self) -> dict[str, Any]:
        """What was fitted, as plain values; maps that consist of others save these."""
        return {name: plain(getattr(self, name)) for name in self.fitted}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """A fitted recalibrator from what `to_dict` wrote.

        Raises
        ------
        InputError
            Where the record is not a map of this method and version.
        """
        check_map(record)
        if record["method"] != cls.key:
            raise InputError(f"this is a map of '{record['method']}', not of '{cls.key}'")
        return cls._restore(record)

    @classmethod
    def _restore(cls, record: Mapping[str, Any]) -> Self:
        known = {p.name for p in parameters_of(cls.__init__)}
        parameters = saved_parameters(cls, record)
        if not set(parameters) <= known or set(record["fitted"]) != set(cls.fitted):
            raise InputError(
                f"this map of '{cls.key}' has entries that are not known, or lacks some"
            )
        self = cls(**parameters)
        self._check_parameters()
        k = int(record["classes"])
        self.classes_ = np.arange(k)
        self.n_features_in_ = k
        # Maps of earlier versions always did.
        self.floor_, self.floor_clips_ = (
            float(record["floor"]),
            bool(record.get("floor_clips", True)),
        )
        for name in cls.fitted:
            setattr(self, name, restored(record["fitted"][name]))
        self.warnings_ = tuple(str(w) for w in record.get("warnings", ()))
        self._restored()
        return self

    def _restored(self) -> None:
        """Check what was read, and rebuild what follows from it."""

    def snippet(self) -> str:
        """Python source that reproduces `transform` with nothing but NumPy (to 1e-6).

        It defines ``recalibrate(scores)``; the scores are what the map was fitted on, probabilities
        or logits.
        """
        check_is_fitted(self, "classes_")
        return numpy_source.program(self.key, self.input, self._program("mapped"))

    def _program(self, name: str) -> numpy_source.Maps:
        """What `snippet` writes; names of functions begin with `name`."""
        piece = numpy_source.Pieces(
            name, self.needs, self.input, self._floor, self._source(name), self.accuracy_preserving
        )
        return numpy_source.Maps.one(piece)


def keep_predicted_classes(before: FloatArray, after: FloatArray) -> None:
    """Restore the predicted class of each row where rounding has changed it (in place).

    A map that is strictly increasing in exact arithmetic may make two scores equal in
    floating point; the class that won before then gets the next larger number.
    """

    def work(rows: slice) -> None:
        won = before[rows].argmax(axis=1)
        block = after[rows]
        changed = np.flatnonzero(block.argmax(axis=1) != won)
        if changed.size:
            top = block[changed].max(axis=1)
            block[changed, won[changed]] = np.nextafter(top, np.asarray(2, dtype=top.dtype))

    for_row_blocks(after, work)


def is_whole(value: Any, least: int) -> bool:
    """Whether this is a whole number (and not a truth value) of at least `least`."""
    return (
        isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least
    )

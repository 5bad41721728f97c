"""The base class of all recalibrators, the uncalibrated model, and `load_map`.

Also reasons why methods are not suggested for some data: each is, or returns, a `RecalibratorSpec.left_out`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from calviz.core import blocks, entry_specs, errors, probabilities, row_columns
from calviz.core.blocks import FloatArray, IntArray, for_row_blocks, one_blas_thread, with_mean_one
from calviz.core.entry_specs import FloorChoice, Input, Needs, recalibrator
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError, shortened
from calviz.core.probabilities import Scores, ZeroFloor
from calviz.recalibrators import maps
from calviz.recalibrators.maps import Field, Program, Sizes, check_map, damaged, learned, plain


@dataclass_transform(kw_only_default=True, field_specifiers=(learned,))
class BaseRecalibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of scikit-learn transformers from scores, shape (n, K), to calibrated probabilities, shape (n, K).

    A subclass is a dataclass: it declares its parameters, with their defaults, and by `learned` what `fit` sets. It implements
    `_fit_weighted`, `_apply` and `_source`; the decorator that registers it sets `key`, `needs` and `accuracy_preserving`.

    Attributes
    ----------
    key : str
        The registry key; for a class with several, that of the decorator nearest to it.
    needs : {"probabilities", "logits", "log-probabilities"}
        The form of the scores that `_fit` and `_apply` receive.
    fitted : mapping of str to Field, or tuple of str
        Names of the attributes that are saved, and what each may hold, as declared by `learned`; together with the parameters
        they define the map.
    added_later : mapping of str to object
        Parameters that maps of earlier versions lack, with the value that such a map is read with: what was done before the parameter
        existed, which need not be its default.
    accuracy_preserving : bool
        Whether the map keeps the predicted class of every row; `transform` then enforces this despite rounding.
    """

    key: ClassVar[str]
    needs: ClassVar[Needs] = "logits"
    fitted: ClassVar[Mapping[str, Field] | tuple[str, ...]] = {}
    added_later: ClassVar[Mapping[str, Any]] = {}
    accuracy_preserving: bool = False
    #: Whether fitting needs labels of at least two classes.
    _needs_two_classes: ClassVar[bool] = True
    #: Whether logits may be too large to fit on.
    _limits_logits: ClassVar[bool] = True
    #: Whether `fit` takes columns of the rows besides scores (`RecalibratorSpec.takes_columns`).
    takes_columns: ClassVar[bool] = False
    #: Number of observed rows that a row stands for on average, where weights are counts; only smoothed labels depend on it.
    rows_each: float = 1.0

    input: Input
    floor: FloorChoice
    #: Value that an exact probability of 0 counts as in logarithms; 0 where no logarithms of probabilities are taken.
    floor_: float
    #: Whether smaller positive probabilities are raised to `floor_` too, so that order is kept (see `ZeroFloor`).
    floor_clips_: bool
    warnings_: tuple[str, ...]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__annotations__" not in vars(cls):  # nothing is declared
            return
        for name in cls.__annotations__:
            # By scikit-learn's convention, `fit` sets it.
            if name.endswith("_") and name not in vars(cls):
                setattr(cls, name, learned())
        # A constructor that the class defines itself is kept.
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        declared = dataclass_fields(cls)
        saved = {f.name: f.metadata["saved"] for f in declared if "saved" in f.metadata}
        if saved and "fitted" not in vars(cls):
            cls.fitted = saved
        for parameter in declared:
            # A default is that of the constructor, not an attribute of the class.
            if parameter.name in vars(cls):
                delattr(cls, parameter.name)

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
            Probabilities or logits, as declared by the parameter `input`.
        y : array_like of int, shape (n,)
            The true classes: column numbers of X, 0..K-1.
        sample_weight : array_like of float, shape (n,), optional
            Row weights; unequal weights need a method that supports them (`takes_weights`).

        Raises
        ------
        InputError, OptionError
            If there is nothing to fit, or a parameter has an invalid value.
        NotAvailable
            If the weights differ and the method does not support them, or if the fit would take too long.
        """
        self._check_parameters()
        array = self._check_scores(X, y, reset=True)
        labels = self._check_labels(y, array)
        weights = self._check_weights(sample_weight, array)
        if weights is not None and not weights.all():
            # Rows of weight 0 are dropped.
            rows = np.flatnonzero(weights)
            array, labels, weights = array[rows], labels[rows], with_mean_one(weights[rows])
        return self._fit_checked(array, labels, weights)

    def _fit_checked(
        self,
        array: FloatArray,
        labels: IntArray,
        weights: FloatArray | None,
        automatic: ZeroFloor | None = None,
    ) -> Self:
        """Fit the map to what `fit` has checked, or to rows of that.

        Weights have a mean of 1, and None stands for equal ones; `automatic` is the automatic floor of these rows if it is known.
        """
        check_two_classes(self, labels)
        self.classes_ = np.arange(array.shape[1])
        self._notes: list[str] = []
        floor = self._find_floor(array, labels, automatic)
        self.floor_, self.floor_clips_ = floor.value, floor.clips
        self._warn_of_zeros(array, labels)
        with one_blas_thread():
            if weights is None:
                self._fit(self._scores(array), labels)
            else:
                self._fit_weighted(self._scores(array), labels, weights)
        self.warnings_ = tuple(self._notes)
        return self

    def _check_weights(self, weights: npt.ArrayLike | None, array: FloatArray) -> FloatArray | None:
        """Return the weights scaled to a mean of 1, or None if all are equal."""
        if weights is None:
            return None
        checked = row_columns.checked_weights(np.asarray(weights))
        if checked.shape[0] != array.shape[0]:
            raise InputError(
                f"there are {checked.shape[0]:,} weights for {array.shape[0]:,} rows of scores"
            )
        if (checked == checked[0]).all():
            return None
        if not self.takes_weights:
            raise NotAvailable(
                f"not available for weighted rows: '{self.key}' does not take weights."
            )
        return with_mean_one(checked)

    @property
    def takes_weights(self) -> bool:
        """Whether `fit` supports unequal row weights."""
        return type(self)._fit_weighted is not BaseRecalibrator._fit_weighted

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: Any) -> None:
        """Fit with row weights, shape (n,), above 0 and with a mean of 1."""
        raise NotImplementedError

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Return calibrated probabilities in the dtype of X, shape (n, K); rows sum to 1."""
        check_is_fitted(self, "classes_")
        return self._transform_checked(self._check_scores(X, reset=False))

    def _transform_checked(self, array: FloatArray) -> FloatArray:
        """Apply the map to what `transform` has checked, or to rows of what `fit` has."""
        out = np.empty(array.shape, dtype=array.dtype)
        with one_blas_thread():
            self._transform(self._scores(array), out)
            if self.accuracy_preserving:
                keep_predicted_classes(array, out)
        return out

    def transform_frame(
        self, frame: Any, scores: str | Sequence[str], *, names: Sequence[str] | None = None
    ) -> Any:
        """Apply `transform` to columns of a data frame, and add the results; a lazy frame stays lazy and is processed in batches.

        Parameters
        ----------
        frame : data frame
            A frame of pandas, polars, pyarrow or PySpark (by ``mapInArrow``, so executors need calviz), a DuckDB relation or an Ibis
            table.
        scores : str or sequence of str
            One column per class, in class order; with two classes, the column of the second class is enough. Columns of groups that
            the map needs are taken by their names.
        names : sequence of str, optional
            Names of the new columns; ``NAME_calibrated`` by default.

        Returns
        -------
        data frame
            A frame of the same library; for DuckDB and Ibis a ``pyarrow.RecordBatchReader``, which both can read.

        Raises
        ------
        InputError, OptionError
            If columns are missing, if there is not one per class, or if a row is not a distribution.
        """
        check_is_fitted(self, "classes_")
        return maps.transform_frame(self, frame, scores, names)

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows that `transform` of the fitted map needs besides scores."""
        return ()

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Same as `transform`, shape (n, K); lets a map at the end of a pipeline act as a model."""
        return self.transform(X)

    def intervals(self, X: npt.ArrayLike) -> FloatArray:
        """Return a lower and an upper probability of each class, before normalisation over the classes.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
            As for `transform`.

        Returns
        -------
        ndarray, shape (n, C, 2)
            C is K, or 1 for two classes: class 1 alone.

        Raises
        ------
        NotAvailable
            If the method has no intervals.
        """
        check_is_fitted(self, "classes_")
        return self._intervals(self._scores(self._check_scores(X, reset=False)))

    def inverse(self, p: npt.ArrayLike) -> FloatArray:
        """Return the raw scores that the map takes to calibrated probabilities of class 1, for two classes.

        Parameters
        ----------
        p : array_like of float
            Calibrated probabilities of class 1, of any shape.

        Returns
        -------
        ndarray of float64
            The smallest raw score whose calibrated probability is at least p, to the last digits of a float64: a probability of class
            1, or, for a map of logits, the logit of class 1 minus that of class 0; nan where no score reaches p.

        Raises
        ------
        InputError
            If p is not between 0 and 1.
        NotAvailable
            For more than two classes, and for maps that fall anywhere.
        """
        check_is_fitted(self, "classes_")
        target = np.asarray(p, dtype=np.float64)
        if not ((target >= 0) & (target <= 1)).all():
            raise InputError("calibrated probabilities lie between 0 and 1")
        if why := self._why_no_inverse():
            raise NotAvailable(why)
        grid, mapped = self._along()
        at = np.searchsorted(np.maximum.accumulate(mapped), target.ravel(), side="left")
        beyond = at == grid.size
        at = np.minimum(at, grid.size - 1)
        low, high = grid[np.maximum(at - 1, 0)], grid[at]
        for _ in range(64):
            middle = low + (high - low) / 2
            reaches = self._of_class_1(middle) >= target.ravel()
            low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
        return np.where(beyond, np.nan, high).reshape(target.shape)

    @property
    def is_its_base(self) -> bool:
        """Whether the fitted map is another method's alone, which then needs no second name."""
        return False

    def _why_no_inverse(self) -> str:
        """Why the map has no inverse; empty if it has one."""
        if self.classes_.size != 2:
            return f"a map of {self.classes_.size} classes has no inverse of a single probability."
        grid, mapped = self._along()
        falls = np.flatnonzero(np.diff(mapped) < -1e-9)
        if not falls.size:
            return ""
        return f"the map falls after a score of {grid[falls[0]]:.4g}: it has no inverse."

    def _along(self) -> tuple[FloatArray, FloatArray]:
        """Raw scores of class 1 from end to end, and their calibrated probabilities."""
        grid = maps.inverse_grid(self.input)
        return grid, self._of_class_1(grid)

    def _of_class_1(self, score: FloatArray) -> FloatArray:
        rest = np.zeros_like(score) if self.input == "logits" else 1 - score
        return np.asarray(self.transform(np.stack([rest, score], axis=1))[:, 1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.positive_only = self.input == "probabilities"
        return tags

    # ---------------------------------------------------------------- hooks for the methods

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        """Set the fitted attributes; by default by `_fit_weighted`, with None as the weights."""
        self._fit_weighted(scores, labels, None)

    def _apply(self, block: FloatArray) -> FloatArray:
        """Map a block of rows that has the form `needs`; the block may be overwritten."""
        raise NotImplementedError

    def _intervals(self, scores: Scores) -> FloatArray:
        """See `intervals`."""
        raise NotAvailable(f"'{self.key}' has no intervals: it gives one probability per class.")

    def _source(self, name: str) -> str:
        """Return source that defines ``<name>_of``, a function from scores in the form `needs` to probabilities."""
        raise NotImplementedError

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        # In double precision: a step function would amplify the rounding of a float32 softmax.
        dtype = np.float64 if self.needs == "probabilities" and not scores.as_given else None

        def work(rows: slice) -> None:
            out[rows] = self._apply(scores.block(rows, dtype))

        for_row_blocks(scores.array, work)

    def _warn(self, sentence: str) -> None:
        self._notes.append(sentence)

    def _warn_of_parts(self, *parts: BaseRecalibrator) -> None:
        """Repeat the warnings of the fitted parts of this map, each once."""
        for sentence in dict.fromkeys(s for part in parts for s in part.warnings_):
            if sentence not in self._notes:
                self._warn(sentence)

    def _warn_absent(self, counts: IntArray, consequence: str) -> None:
        absent = np.flatnonzero(counts == 0)
        if absent.size:
            named = ", ".join(str(k) for k in absent[:10]) + (", ..." if absent.size > 10 else "")
            self._warn(
                f"{absent.size} of {counts.size} classes have no calibration rows "
                f"(column {named}): {consequence}."
            )

    def describe(self) -> dict[str, Any]:
        """Return the fitted parameters by name, in readable form.

        Where logarithms of probabilities are taken, ``floor`` is the value that an exact probability of 0 counts as.
        """
        check_is_fitted(self, "classes_")
        return self._described() | ({"floor": self.floor_} if self.floor_ else {})

    def _described(self) -> dict[str, Any]:
        """Return the fitted parameters of this method, for `describe`."""
        return {name.rstrip("_"): plain(getattr(self, name)) for name in self.fitted}

    # ---------------------------------------------------------------- checks

    def _check_parameters(self) -> None:
        kinds: dict[Any, tuple[Callable[[Any], bool], str]] = {
            bool: (lambda v: isinstance(v, bool | np.bool_), "true or false"),
            int: (lambda v: is_whole(v, 1), "a whole number above 0"),
            float: (is_number, "a finite number"),
            float | None: (lambda v: v is None or is_number(v), "a finite number"),
            str: (lambda v: isinstance(v, str), "text"),
        }
        own: Callable[..., Any] = type(self)
        for parameter in entry_specs.parameters_of(own):
            value = getattr(self, parameter.name)
            if parameter.choices:
                errors.check_choice(parameter.name, value, parameter.choices)
            fits, kind = kinds.get(parameter.annotation, (lambda v: True, ""))
            if not fits(value):
                raise OptionError(f"'{parameter.name}' must be {kind}, got {value!r}.")
        probabilities.check_floor(getattr(self, "floor", None))

    def _check_scores(self, X: Any, y: Any = None, *, reset: bool) -> FloatArray:
        options = {"ensure_min_samples": 2, "ensure_min_features": 2} if reset else {}
        if reset and y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, "
                "but the target y is None."
            )
        try:
            with np.errstate(invalid="ignore"):  # sums of numbers near the dtype's maximum
                array: FloatArray = validate_data(
                    self, X, dtype=[np.float64, np.float32], reset=reset, **options
                )
        except ValueError as error:
            # The first line says what is wrong.
            message = str(error).strip().splitlines()[0].removesuffix(":").removesuffix(" instead")
            reshape = (
                "Reshape your data to one column per class, such as np.stack([1 - p, p], axis=1)"
            )
            remedy = reshape if "got 1D array" in message else None
            raise InputError(message, remedy=remedy) from None
        if self.input == "probabilities":
            check_probabilities(array)
        elif self._limits_logits:
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
            at = int(np.flatnonzero(bad)[0])
            raise InputError(f"label {labels[at]}, but X has {k} columns (0..{k - 1})", row=at + 1)
        return labels

    def _find_floor(
        self, array: FloatArray, labels: IntArray, automatic: ZeroFloor | None
    ) -> ZeroFloor:
        choice = getattr(self, "floor", None)
        if self.input == "logits" or not self._takes_logarithms():
            return ZeroFloor()
        if choice == "auto":
            floor = automatic or probabilities.automatic_floor(array, labels)
            return replace(floor, value=floor.least(array.dtype))
        least = probabilities.smallest_normal(array.dtype)
        return ZeroFloor(least if choice is None else float(choice))

    def _warn_of_zeros(self, array: FloatArray, labels: IntArray) -> None:
        effect = self._effect_of_zeros()
        # No warning for the automatic floor. Most files have no zeros, and the minimum is much cheaper than counting them.
        if not self.floor_ or not effect or self.floor == "auto" or array.min() > 0:
            return
        zeros = probabilities.true_zeros(array, labels)
        automatic = probabilities.automatic_floor(array, labels).value if zeros else 0.0
        if zeros and 2 * self.floor_ < automatic:
            self._warn(
                f"{zeros:,} of {labels.size:,} calibration rows give their true class a probability of 0, read as "
                f"{self.floor_:.3g}: {effect}. To reduce this effect, leave 'floor' at \"auto\", which is {automatic:.3g} here."
            )

    def _effect_of_zeros(self) -> str:
        """Effect of rows whose true class has probability 0, for a warning; empty if it is small."""
        # One such row counts as much in the likelihood as hundreds of others.
        return "they weigh heavily in the fit"

    def _takes_logarithms(self) -> bool:
        return self.needs != "probabilities"

    def _scores(self, array: FloatArray) -> Scores:
        return Scores(array, self.input, self.needs, self._floor)

    @property
    def _floor(self) -> ZeroFloor:
        return ZeroFloor(self.floor_, self.floor_clips_)

    # ---------------------------------------------------------------- saving and export

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted map as plain values, ready for JSON; `from_dict` reads it back."""
        check_is_fitted(self, "classes_")
        return {
            "calviz_map": maps.MAP_VERSION,
            "method": self.key,
            "classes": int(self.classes_.size),
            "parameters": {k: plain(v) for k, v in self.get_params(deep=False).items()},
            "floor": self.floor_,
            "floor_clips": self.floor_clips_,
            "fitted": self._saved(),
            "warnings": list(self.warnings_),
        }

    def to_apply(
        self, data: Any, columns: Sequence[str] = (), where: str = "", model: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return `to_dict` with the classes and the score columns, if known, of the predictions that it was fitted on, which rows of them (a condition in words; "" for all), and the column and value that name their model."""
        record = self.to_dict() | {"class_names": list(data.class_names)}
        # Logits beside probabilities have columns of their own.
        if columns and data.kind in (self.input, "confidence"):
            record["scores"] = {"kind": data.kind, "columns": list(columns)}
        if where:
            record["fitted_where"] = where
        if model:
            record["model"] = list(model)
        return record

    def _saved(self) -> dict[str, Any]:
        """Return the fitted attributes as plain values; maps made of other maps save those instead."""
        return {name: plain(getattr(self, name)) for name in self.fitted}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Rebuild a fitted recalibrator from the output of `to_dict`.

        Raises
        ------
        InputError
            If the record is not a map of this method and version.
        """
        check_map(record)
        # The key of a composition is that of its parameters.
        if isinstance(cls.key, str) and record["method"] != cls.key:
            raise InputError(f"this is a map of '{record['method']}', not of '{cls.key}'")
        self = cls._restore(record)
        if self.key != record["method"]:
            raise damaged(self.key, f"its method is '{record['method']}'")
        return self

    @classmethod
    def _restore(cls, record: Mapping[str, Any]) -> Self:
        self = cls(**maps.saved_parameters(cls, record))
        self._check_parameters()
        self.n_features_in_ = int(record["classes"])
        self.classes_ = np.arange(self.n_features_in_)
        # Maps saved by earlier versions lack "floor_clips": their floors always clipped.
        self.floor_, self.floor_clips_ = float(record["floor"]), record.get("floor_clips", True)
        self.warnings_ = tuple(record.get("warnings", ()))
        self._read(record["fitted"])
        return self

    def _read(self, saved: Any) -> None:
        """Set the fitted attributes, from the output of `_saved`, check how they fit together, and rebuild what is derived from them."""
        for name, value in maps.read_fields(self.fitted, saved, self.key, self._sizes()).items():
            setattr(self, name, value)

    def _sizes(self) -> Sizes:
        """Return the lengths of the axes that `fitted` names by letters."""
        k = int(self.classes_.size)
        return {"K": k, "C": 1 if k == 2 else k}

    def snippet(self, class_names: Sequence[str] = ()) -> str:
        """Return Python source that reproduces `transform` (to 1e-6) and needs only NumPy.

        It defines ``recalibrate(scores)``, where the scores are of the kind that the map was fitted on, probabilities
        or logits; and ``inverse(p)``, if the map has one (see `inverse`). A comment says the order of named classes.
        """
        check_is_fitted(self, "classes_")
        order = (
            f"# The columns of the scores are these classes, in this order: {[*class_names]!r}\n"
        )
        text = order * bool(class_names) + self._program("mapped").text(self.key, self.input)
        return text if self._why_no_inverse() else text + maps.inverse_source(self.input)

    def _program(self, name: str) -> Program:
        """Return the functions that `snippet` writes; their names begin with `name`."""
        return Program.one(name, self.needs, self.input, self._floor, self._source(name))


def keep_predicted_classes(before: FloatArray, after: FloatArray) -> None:
    """Restore the predicted class of each row where rounding has changed it, in place.

    A map that is strictly increasing in exact arithmetic may make two scores equal in
    floating point; the class predicted before then gets the next larger number.
    """

    def work(rows: slice) -> None:
        predicted = before[rows].argmax(axis=1)
        block = after[rows]
        changed = np.flatnonzero(block.argmax(axis=1) != predicted)
        if changed.size:
            top = block[changed].max(axis=1)
            block[changed, predicted[changed]] = np.nextafter(top, np.asarray(2, dtype=top.dtype))

    for_row_blocks(after, work)


# ---- Checks


#: Largest deviation of a row's sum from 1; data that went through `Predictions` are within it.
SUM_TOLERANCE = 0.05
#: Largest absolute logit: maps are fitted by sums of squares in the dtype of the logits, which must not overflow.
LARGEST_LOGIT = 1e15


def check_logits(array: FloatArray) -> None:
    """Raise InputError if logits are so large that sums of their squares overflow."""
    for extreme, at in ((array.max(), array.argmax), (array.min(), array.argmin)):
        if abs(extreme) > LARGEST_LOGIT:
            row, column = divmod(int(at()), array.shape[1])
            raise InputError(
                f"the logit of class {column} is {extreme:.3g}, beyond ±{LARGEST_LOGIT:.0e}: too large to fit a map on",
                row=row + 1,
                remedy="where -3.4e38 marks a class that is left out, write -1e4: its probability is 0 as well",
            )


def check_probabilities(array: FloatArray) -> None:
    """Raise InputError if a row holds a number below -1e-6, or its sum is off 1 by more than `SUM_TOLERANCE`."""
    for rows in blocks.row_blocks(array):
        block = array[rows]
        off = np.abs(probabilities.row_sums(block) - 1)
        worst = int(off.argmax())
        if block.min() < -1e-6:
            row = int(np.argwhere(block < -1e-6)[0, 0])
            raise InputError(
                f"Negative values in data: {block[row].min():.6g} is not a probability",
                row=rows.start + row + 1,
                remedy='declare logits by input="logits"',
            )
        if off[worst] > SUM_TOLERANCE:
            raise InputError(
                f"the probabilities sum to {block[worst].sum():.6g}, not to 1",
                row=rows.start + worst + 1,
                remedy='normalise the rows, or declare logits by input="logits"',
            )


def numbers_in(value: Any) -> int:
    """Count the numbers in plain values, in lists those that are not 0: the complexity of a saved map."""
    if isinstance(value, Mapping):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], float):  # long lists are of one kind
            return int(np.count_nonzero(value))
        return sum(map(numbers_in, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def check_two_classes(recalibrator: Any, labels: IntArray, names: Sequence[str] = ()) -> None:
    """Raise InputError, with the name of the class if `names` has it, if all rows are of one class and the map needs two."""
    if not recalibrator._needs_two_classes or not labels.size or labels.min() != labels.max():
        return
    name = f"'{shortened(names[labels[0]])}'" if names else str(labels[0])
    raise InputError(
        f"all {labels.size:,} calibration rows have 1 class, {name}: there is nothing to fit",
        remedy="calibrate on rows of at least two classes",
    )


def is_whole(value: Any, least: int) -> bool:
    """Whether `value` is an integer (and not a bool) of at least `least`."""
    return (
        isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least
    )


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number, and not a bool: others cannot be saved in a map."""
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond 1e308
        return False


# ---- Saved maps


def load_map(source: Any) -> BaseRecalibrator:
    """Load a fitted recalibrator that was saved as JSON.

    Parameters
    ----------
    source : str, PathLike or mapping
        A file written by ``calviz recalibrate --save-map``, or with the JSON of a recalibrator's `to_dict`; or such a record itself.

    Returns
    -------
    transformer
        Its `transform` takes scores, shape (n, K), with the classes in the order of the rows that it was fitted on, which
        ``class_names`` of a file written by the command line names. Its parameter `input` says whether these are probabilities or logits.

    Raises
    ------
    InputError, OptionError
        If there is no such file, or the file or record is not a map, is of another version, or is damaged.

    Examples
    --------
    >>> import calviz
    >>> scaling = calviz.recalibrators.TemperatureScaling()
    >>> record = scaling.fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]).to_dict()
    >>> loaded = calviz.load_map(record)
    >>> loaded.key, loaded.transform([[0.5, 0.5]]).tolist()
    ('temperature', [[0.5, 0.5]])
    """
    if isinstance(source, str | os.PathLike):
        with errors.in_file(Path(source).name):
            return rebuilt(read_record(source))
    return rebuilt(source)


def rebuilt(record: Any) -> BaseRecalibrator:
    """Return the map of a saved record; raises InputError if it is none, or damaged."""
    check_map(record)
    method = str(record["method"])
    try:
        cls = type(entry_specs.RECALIBRATORS[method].make())
        loaded: BaseRecalibrator = cls.from_dict(record)
    except OptionError as error:
        raise InputError(f"the map cannot be read: {error}".rstrip(".")) from None
    except CalvizError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise damaged(method, str(error)) from None
    return loaded


def read_record(path: str | os.PathLike[str]) -> Any:
    """Read the JSON of a saved map from a file; raises InputError if there is none, or if it is not JSON."""
    name = Path(path).name or str(path)
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", file=os.fspath(path)) from None
    except IsADirectoryError:
        raise InputError("cannot be opened: it is a folder", file=os.fspath(path)) from None
    except OSError as error:
        raise InputError(f"cannot be opened ({error.strerror or str(error)})", file=name) from None
    return record_in(content, name)


def record_in(content: bytes, name: str) -> Any:
    """Return the JSON of a saved map from the content of its file; raises InputError if it is not JSON."""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        remedy = "give a map from --save-map"
        raise InputError(_why_no_json(error), file=name, remedy=remedy) from None


def _why_no_json(error: Exception) -> str:
    """Why a file is not JSON, in words that need no knowledge of Python's reader."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be a map"
    if isinstance(error, UnicodeDecodeError):
        return f"this is not JSON: byte {error.start + 1:,} is not text in UTF-8"
    if not isinstance(error, json.JSONDecodeError):
        return "it holds a number of too many digits"
    if not error.doc.strip():
        return "the file is empty"
    read = error.doc[: error.pos].strip()
    if read and (error.msg.startswith("Unterminated") or not error.doc[error.pos :].strip()):
        return f"it breaks off after {len(error.doc):,} characters"
    place = f"at line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        return f"more follows {place}, where the map has ended"
    return f"this is not JSON {place}"


def check_part(whole: BaseRecalibrator, part: BaseRecalibrator, given: Input) -> None:
    """Raise InputError unless a part of a map has the classes of the whole, and takes scores of this kind."""
    if part.classes_.size != whole.classes_.size:
        raise damaged(
            whole.key,
            f"it is for {whole.classes_.size} classes, its part '{part.key}' for {part.classes_.size}",
        )
    if part.input != given:
        raise damaged(whole.key, f"its part '{part.key}' is for {part.input}, not for {given}")


# ---- The uncalibrated model


class FlooredRecalibrator(BaseRecalibrator):
    """Base of the methods that take logarithms of probabilities, or whose parts do."""

    floor: FloorChoice = "auto"
    input: Input = "probabilities"


@recalibrator(
    key="identity",
    label="Uncalibrated",
    family="Uncalibrated",
    accuracy_preserving=True,
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

    input: Input = "probabilities"

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        pass

    def _apply(self, block: FloatArray) -> FloatArray:
        block /= probabilities.row_sums(block)[:, None]
        return block

    def _source(self, name: str) -> str:
        return f"def {name}_of(p):\n    return p / p.sum(axis=1, keepdims=True)\n"

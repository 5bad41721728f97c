"""Checks of columns with clusters, weights and times of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, element_type
from calviz.core.errors import InputError
from calviz.core.factor import Factor

#: Texts of missing values.
_MISSING = ("", "nan", "NaN", "None", "NaT")


def checked_clusters(clusters: Factor | npt.ArrayLike) -> Factor:
    """Return a column of clusters; raises InputError if a value is missing, or if clusters do not group the rows."""
    column = Factor.of(clusters)
    levels, n = len(column.levels), len(column)
    missing = [at for at, level in enumerate(column.levels) if level.strip() in _MISSING]
    if missing:
        raise InputError(
            "the cluster is missing",
            row=int(np.isin(column.codes, missing).argmax()) + 1,
            remedy="fill it in, give the row a cluster of its own, or leave the row out",
        )
    if n > 1 and levels == 1:
        raise InputError(
            "the cluster column has one value for all rows, so there is nothing to resample",
            remedy="name a column with several values, such as the patient or the site",
        )
    if n > 1 and levels == n:
        raise InputError(
            f"the cluster column has a different value in each of the {n:,} rows: no rows belong together",
            remedy="leave it out, or name the column that repeats",
        )
    return column


def checked_weights(weights: npt.ArrayLike) -> FloatArray:
    """Return importance weights, shape (n,); raises InputError if one is missing, infinite or negative, or if all are 0."""
    numbers = _numbers(weights)
    if numbers.ndim != 1:
        raise InputError(f"weights must be 1-D, got shape {numbers.shape}")
    _check_each_weight(numbers)
    return numbers


def _check_each_weight(weights: FloatArray) -> None:
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(np.argmin(good))
        value = weights[row]
        text = "missing" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:g}"
        raise InputError(
            f"the weight is {text}, expected a number from 0 up",
            row=row + 1,
            remedy="correct it, or leave the row out",
        )
    if weights.size and not weights.any():
        raise InputError(
            "all weights are zero, so no row counts",
            remedy="give at least one row a weight above zero",
        )


def checked_times(times: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
    """Return times in microseconds, shape (n,); raises InputError if one is missing."""
    dates = np.asarray(times)
    if dates.dtype.kind != "M":
        raise InputError("the times are not dates", remedy="give them as datetime64")
    dates = dates.astype("datetime64[us]")
    if np.isnat(dates).any():
        raise InputError(
            "the time is missing",
            row=int(np.isnat(dates).argmax()) + 1,
            remedy="fill it in, or leave the row out",
        )
    return dates


def _numbers(values: npt.ArrayLike) -> FloatArray:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"the weights hold {element_type(array)}, expected numbers")
    return array.astype(np.float64)

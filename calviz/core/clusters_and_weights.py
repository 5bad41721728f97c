"""Clusters, weights and times of rows: validation, and adding them to predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray, element_type
from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor

if TYPE_CHECKING:
    from calviz.core.predictions import Dataset

D = TypeVar("D", bound="Dataset")


def with_rows(
    data: D,
    *,
    clusters: str | Factor | npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    names: Mapping[str, str] | None = None,
) -> D:
    """Return the same data with other clusters, weights or times; those that are None stay unchanged.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    clusters : str, Factor or array_like, shape (n,)
        Name of a group column, "id" for the identifiers, or one value per row.
    weights, times : array_like, shape (n,)
    names : mapping of str to str, optional
        Names in files of the new columns (`Predictions.column_names`).

    Raises
    ------
    InputError
        If a column does not exist or cannot be used.
    """
    given = {"clusters": clusters, "weights": weights, "times": times}
    kept = {key: name for key, name in data.column_names.items() if given[key] is None}
    named = {"clusters": clusters} if isinstance(clusters, str) else {}
    columns: dict[str, Any] = {"column_names": {**kept, **named, **(names or {})}}
    if clusters is not None:
        columns["clusters"] = (
            _column(data, clusters) if isinstance(clusters, str) else Factor.of(clusters)
        )
    if weights is not None:
        columns["weights"] = np.asarray(weights)
    if times is not None:
        columns["times"] = np.asarray(times)
    result: D = data._with(columns)  # type: ignore[assignment]
    return result


def repeated(data: D, counts: npt.ArrayLike) -> D:
    """Expand aggregated data: row i is repeated ``counts[i]`` times (frequency weights).

    Raises
    ------
    InputError
        If a count is not a non-negative whole number, all are 0, or there would be more than `MOST_REPEATED` rows.
    """
    weights = _numbers(counts)
    if weights.shape != (data.n,):
        raise InputError(
            f"there are {weights.size:,} counts for {data.n:,} rows", remedy="give one per row"
        )
    _check_each_weight(weights)
    whole = weights == np.floor(weights)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InputError(
            f"the count is {weights[row]:g}, expected a whole number",
            row=row + 1,
            remedy="read the column as importance weights",
        )
    if weights.sum() > MOST_REPEATED:
        raise InputError(
            f"the counts add up to {weights.sum():,.0f} rows, more than {MOST_REPEATED:,}",
            remedy="read the column as importance weights",
        )
    rows: Any = data.take(np.repeat(np.arange(data.n), weights.astype(np.intp)))
    # Repeated rows have no identifiers of their own.
    result: D = rows.with_columns(splits=rows.splits, groups=rows.groups, ids=None)
    return result


#: Largest number of rows that aggregated data are expanded to.
MOST_REPEATED = 20_000_000


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


def _column(data: Dataset, name: str) -> Factor:
    if name in data.groups:
        return data.groups[name]
    if name == "id" and data.ids is not None:
        return Factor.of(data.ids)
    names = [*data.groups, *(["id"] if data.ids is not None else [])]
    raise InputError(
        f"there is no column '{shortened(name)}' to cluster by",
        remedy=f"known: {', '.join(shortened(k) for k in names[:10])}"
        if names
        else "name the column when the file is read",
    )


def _numbers(values: npt.ArrayLike) -> FloatArray:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError(f"the weights hold {element_type(array)}, expected numbers")
    return array.astype(np.float64)

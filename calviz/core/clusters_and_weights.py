"""Adding clusters, weights and times to predictions, and repeating rows that have counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from calviz.core.checked_columns import checked_weights
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
    weights = checked_weights(counts)
    if weights.shape != (data.n,):
        raise InputError(
            f"there are {weights.size:,} counts for {data.n:,} rows", remedy="give one per row"
        )
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

"""Identifiers of rows as text, by which the rows of several files are matched."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray
from calviz.core.factor import Factor

#: What a missing identifier is as text; it matches nothing.
NO_IDENTIFIER = ""

_FRACTION = re.compile(r"([+-]?\d+)\.0+")


def identifier_texts(values: npt.NDArray[Any] | Factor) -> list[str]:
    """Identifiers as text; "1.0" becomes "1", because whole numbers with gaps are often stored as floats."""
    if isinstance(values, Factor):
        factor = values
    else:
        factor = Factor.of(np.where(_missing(values), NO_IDENTIFIER, _plain(values)))
    levels = [_whole(level.strip()) for level in factor.levels]
    return [levels[code] for code in factor.codes.tolist()]


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values as texts; objects as they are, because one long text would make all as long."""
    if values.dtype.kind == "S":
        return np.asarray(np.char.decode(values, "utf-8", "replace"))
    return values if values.dtype == object else values.astype(str)


def _missing(values: npt.NDArray[Any]) -> BoolArray:
    """Whether each value, shape (n,), is a missing number, date or object."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype.kind in "biuSU":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=np.bool_)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA
        return True


def _whole(text: str) -> str:
    match = _FRACTION.fullmatch(text)
    return match[1] if match else text

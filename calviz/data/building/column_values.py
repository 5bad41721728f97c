"""Convert the values of single columns: to one dimension, to numbers, and two columns of classes to indices into shared names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import IntArray
from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.data.building import labels
from calviz.data.loaded import short


def one_dimensional(values: npt.NDArray[Any] | Factor) -> npt.NDArray[Any] | Factor:
    """Return the values of a column of shape (n,) or (n, 1) as shape (n,)."""
    if isinstance(values, Factor) or values.ndim == 1:
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    raise InputError(f"a column of shape {values.shape} cannot be used here, expected 1-D")


def as_numbers(values: npt.NDArray[Any] | Factor, name: str) -> npt.NDArray[Any]:
    """Convert text to numbers (empty to NaN, true and false to 1 and 0); raise InputError, naming the row, if a value is not a number."""
    if not isinstance(values, Factor):
        return values
    words = {"true": "1", "false": "0", "": "nan"}
    try:
        levels = np.array([float(words.get(v.strip().lower(), v)) for v in values.levels])
    except ValueError:
        row, value = _first_text(values, words)
        raise InputError(
            f"'{short(value)}' is not a number",
            row=row,
            column=name,
        ) from None
    numbers: npt.NDArray[Any] = levels[values.codes]
    return numbers


def _first_text(values: Factor, words: Mapping[str, str]) -> tuple[int, str]:
    """Return the 1-based row of the first value that is not a number, and that value."""

    def is_text(value: str) -> bool:
        try:
            float(words.get(value.strip().lower(), value))
        except ValueError:
            return True
        return False

    bad = [at for at, level in enumerate(values.levels) if is_text(level)]
    row = int(np.isin(values.codes, bad).argmax())
    return row + 1, values.levels[values.codes[row]]


def joint_classes(
    truth: npt.NDArray[Any] | Factor, predicted: npt.NDArray[Any] | Factor, names: tuple[str, ...]
) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """True and predicted labels as indices, shape (n,) each, into `names` or else the classes that occur in either."""
    one, two = Factor.of(one_dimensional(truth)), Factor.of(one_dimensional(predicted))
    index: dict[str, int] = {}
    if not names:
        levels = {level for level in (*one.levels, *two.levels) if level}
        numbers = {level: labels.whole(level) for level in levels}
        if None not in numbers.values():
            # "1.0" and "1" are one class: whole numbers with gaps are often stored as floats.
            order = sorted({number for number in numbers.values() if number is not None})
            names = tuple(str(number) for number in order)
            place_of = {number: j for j, number in enumerate(order)}
            index = {level: place_of[number or 0] for level, number in numbers.items()}
        else:
            names = tuple(sorted(levels))
    index = index or {c: j for j, c in enumerate(names)}
    index[""] = -1
    for level in (*one.levels, *two.levels):
        place = index.get(level, labels.whole(level))
        if place is None or not -1 <= place < len(names) or (place < 0 and level):
            raise InputError(f"label '{short(level)}' is none of the class names")
        index[level] = place
    codes = [np.array([index[v] for v in f.levels], dtype=np.int32)[f.codes] for f in (one, two)]
    return codes[0], codes[1], names

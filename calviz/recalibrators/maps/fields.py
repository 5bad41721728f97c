"""What the fields of a saved map may hold: each method declares its own in `fitted`, and all are checked and read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.recalibrators.fitting.piecewise import Piecewise

#: Lengths of axes by letter: K classes, C maps (K, or 1 for two classes), and others that a method declares. A letter without a
#: length takes that of the first array that has it.
Sizes = dict[str, int]


class DamagedField(ValueError):
    """What is wrong with a field, without its name: "must ..., got ..."."""


class Field(Protocol):
    """What one field of a saved map may hold."""

    def read(self, value: Any, sizes: Sizes) -> Any:
        """Return the value of the attribute; raises DamagedField if it is not what was declared."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A finite number, or an array of them.

    Attributes
    ----------
    shape : tuple of int or str
        Axes, with lengths as numbers or as letters of `Sizes`; () is a single number.
    above, least, most : float
        Bounds: all numbers are greater than `above`, and within [`least`, `most`].
    whole : bool
        Whether they are whole numbers.
    ascending : bool
        Whether each is at least as large as the one before it along the first axis.
    total : float, optional
        What they sum to.
    """

    shape: tuple[int | str, ...] = ()
    above: float = -np.inf
    least: float = -np.inf
    most: float = np.inf
    whole: bool = False
    ascending: bool = False
    total: float | None = None

    def read(self, value: Any, sizes: Sizes) -> Any:
        """Return an array, or the number if `shape` is ()."""
        array = _numbers(value)
        if array.size == 0 and array.ndim == 1 and len(self.shape) > 1:
            array = array.reshape(0, *(_length(axis, sizes) or 0 for axis in self.shape[1:]))
        fits = array.ndim == len(self.shape) and all(
            _length(axis, sizes) in (None, length)
            for axis, length in zip(self.shape, array.shape, strict=True)
        )
        if not fits:
            raise DamagedField(
                f"must be {_shape_words(self.shape, sizes)}, got {_shape_words(array.shape, sizes)}"
            )
        self._check(array)
        for axis, length in zip(self.shape, array.shape, strict=True):
            if isinstance(axis, str):
                sizes.setdefault(axis, length)
        if self.shape:
            return array
        return int(array) if self.whole else float(array)

    def _check(self, array: FloatArray) -> None:
        rules = (
            (~np.isfinite(array), "finite"),
            (~(array > self.above), f"above {self.above:g}"),
            (~(array >= self.least), f"{self.least:g} or more"),
            (~(array <= self.most), f"at most {self.most:g}"),
            (array != np.floor(array) if self.whole else np.zeros(array.shape, np.bool_), "whole"),
        )
        for broken, rule in rules:
            if broken.any():
                raise DamagedField(f"must be {rule}, got {float(array[broken][0])!r}")
        if self.ascending and array.shape[0] and (np.diff(array, axis=0) < 0).any():
            raise DamagedField("must be in ascending order, and is not")
        if self.total is not None and abs(array.sum() - self.total) > 1e-6:
            raise DamagedField(f"must sum to {self.total:g}, got {float(array.sum())!r}")


@dataclass(frozen=True)
class ProbabilityMap:
    """A `Piecewise` map of a probability to a probability.

    Attributes
    ----------
    rising : bool
        Whether no value is below the one before it.
    """

    rising: bool = False

    def read(self, value: Any, sizes: Sizes) -> Piecewise:
        """Return the map."""
        if not isinstance(value, Mapping) or set(value) != {"x", "y"}:
            raise DamagedField("must hold the points x and y of a map")
        x = Numbers(("M",), ascending=True).read(value["x"], {})
        y = Numbers(("N",), least=0, most=1, ascending=self.rising).read(value["y"], {})
        try:
            return Piecewise.from_dict({"x": x, "y": y})
        except ValueError:
            raise DamagedField(
                f"must hold points that fit together, got {x.size} x and {y.size} y"
            ) from None


@dataclass(frozen=True)
class OnePerMap:
    """A list of C items, for methods with one map per class."""

    item: Field

    def read(self, value: Any, sizes: Sizes) -> list[Any]:
        """Return the items as a list."""
        if not isinstance(value, list) or len(value) != sizes["C"]:
            got = f"{len(value)}" if isinstance(value, list) else type(value).__name__
            raise DamagedField(f"must be a list of {sizes['C']}, one per map, got {got}")
        # Other letters may differ between items.
        return [self.item.read(item, dict(sizes)) for item in value]


def fields(**declared: Field) -> Mapping[str, Field]:
    """Return what the fields of a saved map may hold, by name."""
    return declared


def read_fields(
    declared: Mapping[str, Field] | tuple[str, ...], record: Any, key: str, sizes: Sizes
) -> dict[str, Any]:
    """Return the fitted attributes of a saved map of the method `key`.

    Parameters
    ----------
    declared : mapping of str to Field, or tuple of str
        The fields; names alone declare finite numbers, or lists of them, of any shape.
    record : mapping
        The saved fields.
    key : str
        For messages.
    sizes : dict
        The lengths of K, C and others.

    Raises
    ------
    InputError
        If fields are missing or unknown, or hold something else.
    """
    if not isinstance(record, Mapping) or set(record) != set(declared):
        raise damaged(key, f"its fields must be {', '.join(declared) or 'none'}")
    attributes = {}
    for name in declared:
        field = declared[name] if isinstance(declared, Mapping) else _AnyNumbers()
        try:
            attributes[name] = field.read(record[name], sizes)
        except DamagedField as error:
            raise damaged(key, f"'{name}' {error}") from None
    return attributes


def damaged(key: str, what: str) -> InputError:
    """Return the error for a saved map that was changed or cut off."""
    return InputError(f"the map of '{key}' is damaged: {what}", remedy="fit it again, and save it")


@dataclass(frozen=True)
class _AnyNumbers:
    """Finite numbers of any shape; ragged lists become lists of arrays."""

    def read(self, value: Any, sizes: Sizes) -> Any:
        try:
            array = _numbers(value)
        except DamagedField:
            if isinstance(value, list) and any(isinstance(v, list) for v in value):
                return [self.read(v, sizes) for v in value]
            raise
        Numbers()._check(array)
        return array if array.ndim else value


def _numbers(value: Any) -> FloatArray:
    try:
        cells = np.asarray(value, dtype=object)
        kinds = set(map(type, cells.ravel().tolist()))
        array = cells.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise DamagedField("must hold numbers only, in rows of one length") from None
    # A text such as "0.5" could be converted too.
    if not kinds <= {int, float}:
        raise DamagedField("must hold numbers only, in rows of one length")
    return array


def _length(axis: int | str, sizes: Sizes) -> int | None:
    return axis if isinstance(axis, int) else sizes.get(axis)


def _shape_words(shape: tuple[int | str, ...], sizes: Sizes) -> str:
    lengths = [_length(axis, sizes) for axis in shape]
    if not lengths:
        return "a number"
    words = " x ".join(
        str(axis if length is None else length) for axis, length in zip(shape, lengths, strict=True)
    )
    return f"{words} numbers"

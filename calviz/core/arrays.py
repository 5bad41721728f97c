"""Array types and the few helpers that everything above shares."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def held_by(array: npt.NDArray[Any]) -> str:
    """What the elements of an array are, in a word or two: "text", "objects", "float64"."""
    return {"U": "text", "S": "text", "O": "objects", "M": "dates"}.get(
        array.dtype.kind, str(array.dtype)
    )


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view of `array` that cannot be written through; nothing is copied."""
    view = array.view()
    view.flags.writeable = False
    return view

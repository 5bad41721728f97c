"""Array types, and two helpers that all packages share."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def element_type(array: npt.NDArray[Any]) -> str:
    """Describe the element type of an array for a message: "text", "objects", "float64"."""
    return {"U": "text", "S": "text", "O": "objects", "M": "dates"}.get(
        array.dtype.kind, str(array.dtype)
    )


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view of `array`, without copying."""
    view = array.view()
    view.flags.writeable = False
    return view

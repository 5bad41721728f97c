"""Fitted maps as plain values, ready for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calviz.core.errors import InputError
from calviz.specs.metric import parameters_of

#: Version of the JSON of a fitted map.
MAP_VERSION = 1


def check_map(record: Any) -> None:
    """Raise InputError unless this is a map that this version can read."""
    required = {"calviz_map", "method", "classes", "parameters", "floor", "fitted"}
    if not isinstance(record, Mapping) or not required <= set(record):
        raise InputError("this is not the map of a recalibrator that calviz wrote")
    if record["calviz_map"] != MAP_VERSION:
        raise InputError(
            f"the map has version {record['calviz_map']!r}, this calviz reads {MAP_VERSION}"
        )


def saved_parameters(cls: type[BaseEstimator], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a saved map; maps saved before the parameter `cap` existed have ``cap=False``."""
    names = {p.name for p in parameters_of(cls.__init__)}
    return ({"cap": False} if "cap" in names else {}) | dict(record["parameters"])


def plain(value: Any) -> Any:
    """Convert arrays and NumPy numbers to lists and Python numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def restored(value: Any) -> Any:
    """Convert lists of numbers back to arrays; ragged lists become lists of arrays."""
    if not isinstance(value, list):
        return value
    if any(isinstance(v, dict | str) for v in value):
        return value
    if any(isinstance(v, list) for v in value) and len({len(v) for v in value}) > 1:
        return [restored(v) for v in value]
    return np.asarray(value, dtype=np.float64)

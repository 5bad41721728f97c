"""Fitted maps as plain values, ready for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calviz.core.errors import InputError, shortened
from calviz.recalibrators.maps.fields import Numbers, damaged, read_fields
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
    key = shortened(str(record["method"]))
    read_fields(
        {
            "classes": Numbers(least=2, whole=True),
            "floor": Numbers(least=0, most=np.nextafter(1, 0)),
        },
        {name: record[name] for name in ("classes", "floor")},
        key,
        {},
    )
    names = record.get("class_names", [])
    for name, texts in (("class_names", names), ("warnings", record.get("warnings", []))):
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise damaged(key, f"'{name}' must be a list of texts")
    if len(set(names)) < len(names):
        raise damaged(key, "'class_names' must be different from each other")
    # Maps of confidence-only data have two classes, and any number of names.
    if len(names) not in (0, record["classes"]) and record["classes"] > 2:
        raise damaged(key, f"it has {record['classes']} classes and {len(names)} 'class_names'")
    if not isinstance(record.get("floor_clips", True), bool):
        raise damaged(key, "'floor_clips' must be true or false")


def earlier_values(**values: Any) -> Mapping[str, Any]:
    """Return what maps saved before some parameters existed are read with, by parameter."""
    return values


def saved_parameters(cls: type[BaseEstimator], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a saved map; those in `cls.added_later` may be missing, and have the values given there.

    Raises
    ------
    InputError
        If others are missing, or some are unknown.
    """
    names = {p.name for p in parameters_of(cls.__init__)}
    added = {name: v for name, v in getattr(cls, "added_later", {}).items() if name in names}
    parameters = record["parameters"]
    if not isinstance(parameters, Mapping) or not names - set(added) <= set(parameters) <= names:
        raise damaged(str(record["method"]), f"its parameters must be {', '.join(sorted(names))}")
    return {**added, **parameters}


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

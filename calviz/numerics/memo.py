"""Work that several metrics need from one view is done once and kept with the view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

V = TypeVar("V")
R = TypeVar("R")


def once_per_view(function: Callable[[V], R]) -> Callable[[V], R]:
    """Keep the result of ``function(view)`` on the (immutable) view itself."""
    key = f"_once_{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(view: V) -> R:
        kept: dict[str, Any] = view.__dict__
        if key not in kept:
            kept[key] = function(view)
        result: R = kept[key]
        return result

    return call

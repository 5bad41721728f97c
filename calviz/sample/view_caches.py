"""Caches on views: results and draws that several metrics need from one view are computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from calviz.core.predictions import ConfidencePredictions, Predictions

V = TypeVar("V")
R = TypeVar("R")


#: If the cached results of a view exceed this many bytes together, the oldest large ones are dropped: metrics that share a
#: result are computed one after the other.
KEPT_RESULT_BYTES = 1 << 24
_MISSING: Any = object()


def once_per_view(function: Callable[[V], R]) -> Callable[[V], R]:
    """Cache the result of ``function(view)`` on the (immutable) view itself; large results may be dropped again."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(view: V) -> R:
        # Several threads may use the same view; at worst each computes the result.
        kept: dict[str, Any] = view.__dict__.setdefault("_once_per_view", {})
        result: R = kept.get(key, _MISSING)
        if result is _MISSING:
            result = kept[key] = function(view)
            sizes = {name: _size(value) for name, value in list(kept.items())}
            for name in list(sizes)[:-1]:
                if sum(sizes.values()) <= KEPT_RESULT_BYTES:
                    break
                if sizes[name] > KEPT_RESULT_BYTES // 16:
                    kept.pop(name, None)
                    del sizes[name]
        return result

    return call


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(_size(part) for part in value)
    return int(getattr(value, "nbytes", 0))


def held_bytes(value: Any, *, beside: Any = None) -> int:
    """Bytes of all arrays that an object holds, except those of predictions and those that `beside` also holds."""
    counted_ids: set[int] = set()

    def bytes_of(part: Any) -> int:
        if id(part) in counted_ids or isinstance(part, Predictions | ConfidencePredictions):
            return 0
        counted_ids.add(id(part))
        if isinstance(part, np.ndarray):
            return part.nbytes
        if isinstance(part, tuple | list):
            return sum(map(bytes_of, part))
        parts = part if isinstance(part, Mapping) else getattr(part, "__dict__", {})
        return sum(map(bytes_of, list(parts.values())))

    bytes_of(beside)
    return bytes_of(value)


def kept_draw(owner: Any, name: str, rng: np.random.Generator, draw: Callable[[], R]) -> R:
    """``draw()``, or its earlier result from the same state of `rng`, cached with `owner`.

    Views that consist of the same summary (the steps, the steps with a kernel, ...) start from the
    same seed and so share their resamples. `rng` is left in the state in which ``draw()`` leaves it.
    """
    key = f"_draw_{name}"
    before = repr(rng.bit_generator.state)
    kept = owner.__dict__.get(key)
    if kept is None or kept[0] != before:
        result = draw()
        owner.__dict__[key] = kept = (before, result, rng.bit_generator.state)
    rng.bit_generator.state = kept[2]
    shared: R = kept[1]
    return shared

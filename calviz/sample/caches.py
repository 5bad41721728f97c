"""Results cached on the immutable values that they are computed from, such as views."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from calviz.core.predictions import ConfidencePredictions, Predictions

Kept = TypeVar("Kept")
R = TypeVar("R")
P = ParamSpec("P")
#: Attribute that says how a view of weighted or clustered rows is drawn (`calviz.sample.error_bars.drawn_by`).
DRAWN_BY = "_drawn_by"
#: If the cached results of a view exceed this many bytes together, the oldest large ones are dropped: metrics that share a
#: result are computed one after the other.
KEPT_RESULT_BYTES = 1 << 24
_MISSING: Any = object()


def once_per_view(function: Callable[Concatenate[Kept, P], R]) -> Callable[Concatenate[Kept, P], R]:
    """Cache the results of ``function(view, ...)`` on the (immutable) view itself, one per further arguments, which are hashable.

    Large results may be dropped again.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def call(view: Kept, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # Several threads may use the same view; at worst each computes the result.
        kept: dict[Hashable, Any] = view.__dict__.setdefault("_once_per_view", {})
        key = (name, *args, *kwargs.items())
        result: R = kept.get(key, _MISSING)
        if result is _MISSING:
            result = function(view, *args, **kwargs)
            # A view that held itself would not be freed at once.
            is_view = result is view
            if is_view:
                return result
            kept[key] = result
            sizes = {other: _size(value) for other, value in list(kept.items())}
            for other in list(sizes)[:-1]:
                if sum(sizes.values()) <= KEPT_RESULT_BYTES:
                    break
                if sizes[other] > KEPT_RESULT_BYTES // 16:
                    kept.pop(other, None)
                    del sizes[other]
        return result

    return call


def _size(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(_size(part) for part in value)
    return int(getattr(value, "nbytes", 0))


def latest(
    owner: Any, name: str, key: Hashable, make: Callable[[], R], *, most_bytes: float = math.inf
) -> R:
    """``make()``, or its last result if that was made for the same key; only the latest one of each name is cached with `owner`.

    A result of which more than `most_bytes` are not held by `owner` anyway is not cached.
    """
    kept: dict[str, tuple[Hashable, Any]] = owner.__dict__.setdefault("_latest", {})
    before = kept.get(name)
    if before is not None and before[0] == key:
        result: R = before[1]
        return result
    result = make()
    if most_bytes == math.inf or held_bytes(result, beside=owner) <= most_bytes:
        kept[name] = key, result
    return result


def kept_draw(owner: Any, name: str, rng: np.random.Generator, draw: Callable[[], R]) -> R:
    """``draw()``, or its earlier result from the same state of `rng`, cached with `owner`.

    Views that consist of the same summary (the steps, the steps with a kernel, ...) start from the
    same seed and so share their resamples. `rng` is left in the state in which ``draw()`` leaves it.
    """

    def draw_and_state() -> tuple[R, Any]:
        return draw(), rng.bit_generator.state

    drawn, rng.bit_generator.state = latest(
        owner, name, repr(rng.bit_generator.state), draw_and_state
    )
    return drawn


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
        # The drawing of a view leads to its sample, which holds all other views.
        return sum(bytes_of(value) for name, value in list(parts.items()) if name != DRAWN_BY)

    bytes_of(beside)
    return bytes_of(value)

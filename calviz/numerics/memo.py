"""Work that several metrics need from one view is done once and kept with the view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

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


def kept_draw(owner: Any, what: str, rng: np.random.Generator, draw: Callable[[], R]) -> R:
    """``draw()``, or what it gave before from the same state of `rng`, kept with `owner`.

    Views that are made of the same summary (the steps, the steps with a kernel, ...) start from the
    same seed and so share their resamples. The state of `rng` is left as ``draw()`` leaves it.
    """
    key = f"_draw_{what}"
    before = repr(rng.bit_generator.state)
    kept = owner.__dict__.get(key)
    if kept is None or kept[0] != before:
        result = draw()
        owner.__dict__[key] = kept = (before, result, rng.bit_generator.state)
    rng.bit_generator.state = kept[2]
    shared: R = kept[1]
    return shared

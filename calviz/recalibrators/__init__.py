"""Recalibrators: base classes, a file per family of methods, their fits, and fitted maps as JSON, NumPy source and on frames.

Not here: which rows are fitted, who wins.
"""

from __future__ import annotations

from typing import Any

from calviz.core.errors import known_names


def _classes() -> dict[str, type[Any]]:
    """Return the class of each registered method, keyed by class name."""
    from functools import partial

    from calviz.core.entry_specs import RECALIBRATORS

    makers = (s.make.func if isinstance(s.make, partial) else s.make for s in RECALIBRATORS)
    return {maker.__name__: maker for maker in makers if isinstance(maker, type)}


def __getattr__(name: str) -> Any:
    # Importing one of the modules imports this package first, so classes are looked up only on access.
    if name.startswith("_") or not name[:1].isupper():
        raise AttributeError(f"module 'calviz.recalibrators' has no attribute '{name}'")
    classes = _classes()
    if name not in classes:
        known = known_names(name, sorted(classes))
        raise AttributeError(f"there is no recalibrator '{name}'; {known}")
    return classes[name]


def __dir__() -> list[str]:
    return sorted(_classes())

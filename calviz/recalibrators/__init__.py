"""Recalibrators, one file per method or pair of methods; each registers itself in `calviz.specs.recalibrator.RECALIBRATORS`.

A method is a scikit-learn transformer that derives from `calviz.recalibrators.base.BaseRecalibrator`. Base classes that several methods
share are in ``bases``, saving and exporting of fitted maps is in ``maps``; losses, searches and minimisers are in
``fitting``. Methods neither choose the rows that they are fitted on nor judge themselves: `calviz.comparison` does both.
"""

from __future__ import annotations

from typing import Any


def _classes() -> dict[str, type[Any]]:
    """Return the class of each registered method, keyed by class name."""
    from functools import partial

    from calviz.specs.recalibrator import RECALIBRATORS

    makers = (s.make.func if isinstance(s.make, partial) else s.make for s in RECALIBRATORS)
    return {maker.__name__: maker for maker in makers if isinstance(maker, type)}


def __getattr__(name: str) -> Any:
    # Importing a module of this folder imports this package first, so classes are looked up only on access.
    if name.startswith("_") or not name[:1].isupper():
        raise AttributeError(f"module 'calviz.recalibrators' has no attribute '{name}'")
    classes = _classes()
    if name not in classes:
        raise AttributeError(
            f"there is no recalibrator '{name}'; known: {', '.join(sorted(classes))}"
        )
    return classes[name]


def __dir__() -> list[str]:
    return sorted(_classes())

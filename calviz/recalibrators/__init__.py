"""Recalibrators, one file per method or pair of methods; each registers itself in `calviz.specs.recalibrator.RECALIBRATORS`.

A method is a scikit-learn transformer that derives from `calviz.recalibrators.base.BaseRecalibrator`. What several methods share (shapes of maps, strengths
of penalties) stands beside them and registers nothing; losses and minimisers are in ``fitting``. Methods do not choose the rows that they are fitted on and do not judge themselves: that is `calviz.comparison`.
"""

from __future__ import annotations

from typing import Any


def _classes() -> dict[str, type[Any]]:
    """The class behind each registered method, by its name."""
    from functools import partial

    from calviz.specs.recalibrator import RECALIBRATORS

    makers = (s.make.func if isinstance(s.make, partial) else s.make for s in RECALIBRATORS)
    return {made.__name__: made for made in makers if isinstance(made, type)}


def __getattr__(name: str) -> Any:
    # The modules of this folder register themselves by importing it, so it cannot import them first.
    if name.startswith("_") or not name[:1].isupper():
        raise AttributeError(f"module 'calviz.recalibrators' has no attribute '{name}'")
    found = _classes()
    if name not in found:
        raise AttributeError(
            f"there is no recalibrator '{name}'; known: {', '.join(sorted(found))}"
        )
    return found[name]


def __dir__() -> list[str]:
    return sorted(_classes())

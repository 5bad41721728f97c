"""Figures: computed, described and drawn; `marks` and `style` are shared.

The only room that draws with plotly. Not here: a computation that a metric needs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from calviz.core.errors import known_names


@cache
def _classes() -> dict[str, type[Any]]:
    """Return the class of each figure, keyed by name."""
    import pkgutil
    from importlib import import_module
    from inspect import isabstract

    from calviz.figures.figure import Figure

    modules = [m.name for m in pkgutil.iter_modules(__path__, f"{__name__}.") if not m.ispkg]
    kinds = (kind for module in modules for kind in vars(import_module(module)).values())
    figures = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Figure))
    return {kind.__name__: kind for kind in figures if not isabstract(kind)}


def __getattr__(name: str) -> Any:
    # Importing a module of this folder imports this package first, so classes are looked up only on access.
    if name == "plot_config":
        from calviz.figures.style import plot_config

        return plot_config
    if name == "__all__":  # asked for by `from calviz.figures import *`
        return __dir__()
    if name.startswith("_") or not name[:1].isupper():
        raise AttributeError(f"module 'calviz.figures' has no attribute '{name}'")
    if name not in _classes():
        raise AttributeError(
            f"there is no figure '{name}'; {known_names(name, sorted(_classes()))}"
        )
    return _classes()[name]


def __dir__() -> list[str]:
    return [*sorted(_classes()), "plot_config"]

"""The rows that are judged, and the summaries (views) that metrics are functions of; draws, error bars, bounds for profiles; what a metric returns.

Not here: a metric, a sentence, a file. Knows nothing of `data` (same floor). Called, ``calviz.sample("digits")`` returns a sample set.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from calviz.core.registry import constructor

if TYPE_CHECKING:
    from calviz.core.predictions import Dataset


class _Callable(ModuleType):
    def __call__(self, key: str = "digits", model: str | None = None) -> Dataset:
        return constructor("sample")(key, model)


sys.modules[__name__].__class__ = _Callable

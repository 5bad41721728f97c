"""MLflow, Weights & Biases, pytest: public paths and entry points, so each keeps its file."""

from __future__ import annotations

import importlib
from types import ModuleType

_TOOLS = ("mlflow", "pytest_plugin", "wandb")


def __getattr__(name: str) -> ModuleType:
    if name in _TOOLS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

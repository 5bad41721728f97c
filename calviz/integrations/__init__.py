"""Where results go: experiment trackers and test runners, one file each.

A file here hands what `calviz.analysis` and `calviz.report` have computed to another tool, in that tool's own words: numbers,
figures, the report. Nothing is measured or drawn here. The tools are no dependencies: they are imported on first use, and without them
one sentence says what to install. Tools that start calviz find these files by the entry points of `pyproject.toml`; nothing in calviz
imports them. Build servers are served by files that the command line writes (``--json``, ``--markdown``, ``--junit``).
"""

from __future__ import annotations

import importlib
from types import ModuleType

_TOOLS = ("mlflow", "pytest_plugin", "wandb")


def __getattr__(name: str) -> ModuleType:
    if name in _TOOLS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

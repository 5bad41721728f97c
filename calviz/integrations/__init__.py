"""Where results go: experiment trackers and test runners, one file each.

A file here passes results of `calviz.analysis` and `calviz.report` (numbers, figures, the report) to another tool, in that tool's
terms. Nothing is measured or drawn here. The tools are optional: each is imported on first use, and if it is missing, one sentence
says what to install. Tools that call calviz find these files by the entry points in `pyproject.toml`; nothing in calviz imports them.
Build servers read files that the command line writes (``--json``, ``--markdown``, ``--junit``).
"""

from __future__ import annotations

import importlib
from types import ModuleType

_TOOLS = ("mlflow", "pytest_plugin", "wandb")


def __getattr__(name: str) -> ModuleType:
    if name in _TOOLS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

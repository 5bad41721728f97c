"""The command line: ``calviz`` and ``python -m calviz``.

A command is one file in ``calviz/cli/commands`` that holds a click command named ``command``.
"""

from calviz.cli.group import main

__all__ = ["main"]

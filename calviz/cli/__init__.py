"""Options, the commands (a table name -> module and function in `command_group`), and results as text for a terminal."""

from __future__ import annotations

from calviz.cli.command_group import main

__all__ = ["main"]

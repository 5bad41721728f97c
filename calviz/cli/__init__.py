"""The command line: ``calviz`` and ``python -m calviz``.

Each command is one file in ``calviz/cli/commands``. The files beside that folder hold the options that several commands share and
the text that commands print. Nothing is computed here. Only ``calviz app`` needs streamlit; only the app and reports need plotly.
"""

from calviz.cli.command_group import main

__all__ = ["main"]

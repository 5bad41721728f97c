"""The command line: ``calviz`` and ``python -m calviz``.

Each command is one file in ``calviz/cli/commands``. The files beside that folder hold the options that several commands share and
the text that commands print. Nothing is computed here. No command needs streamlit, and only reports need plotly.
"""

from calviz.cli.group import main

__all__ = ["main"]

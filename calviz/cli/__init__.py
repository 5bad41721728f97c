"""The command line: ``calviz`` and ``python -m calviz``.

A command is one file in ``calviz/cli/commands``. Options that several commands share, and the text that they print, are
the files beside that folder. Nothing is computed here, and no command needs streamlit or, unless it writes a report, plotly.
"""

from calviz.cli.group import main

__all__ = ["main"]

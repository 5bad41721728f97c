"""The options that write a report: ``--html`` and ``--markdown``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.core.errors import OptionError
from calviz.core.whole_files import write_output

if TYPE_CHECKING:
    from calviz.report.document import Report

_OPTIONS = (
    click.option(
        "--html",
        "html_path",
        metavar="PATH",
        help="Write a report as one HTML file that opens anywhere, offline.",
    ),
    click.option("--markdown", "markdown_path", metavar="PATH", help="Write it as a model card."),
)


@dataclass(frozen=True)
class Documents:
    """Where reports go; nothing is touched before they are written."""

    html: str | None
    markdown: str | None

    def __bool__(self) -> bool:
        return self.html is not None or self.markdown is not None

    def check(self) -> None:
        """Find out before the work is done whether they can be written; raises OptionError."""
        for name, path in (("--html", self.html), ("--markdown", self.markdown)):
            if path is None:
                continue
            if path in ("", "-") or Path(path).is_dir():
                raise OptionError(f"{name} '{path}' is not a file; give the name of a file.")
            if not Path(path).absolute().parent.is_dir():
                raise OptionError(f"{name} {path}: there is no such directory.")

    def write(self, report: Report) -> None:
        """Write what was asked for, the same bytes on every system."""
        if self.html is not None:
            write_output(self.html, report.html())
        if self.markdown is not None:
            write_output(self.markdown, report.markdown())


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--html`` and ``--markdown``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command

"""Options that write a report: ``--html``, ``--pdf`` and ``--markdown``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.output_options import OutputOption, check_output, write_text
from calviz.core.atomic_files import write_output
from calviz.core.errors import OptionError
from calviz.core.extra_packages import REPORT, needs

if TYPE_CHECKING:
    from calviz.report.document import Report

_OPTIONS = (
    click.option(
        "--html",
        "html_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write a report as one HTML file that opens anywhere, offline.",
    ),
    click.option(
        "--pdf",
        "pdf_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write the report as PDF; needs Chromium, Chrome or Edge on this machine.",
    ),
    click.option(
        "--markdown",
        "markdown_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write the report as a model card; with - it goes to standard output, and nothing else does.",
    ),
)


@dataclass(frozen=True)
class Documents:
    """Paths of the reports to write; no file is touched before its report is written."""

    html: str | None
    markdown: str | None
    pdf: str | None = None

    @property
    def quiet(self) -> bool:
        """Whether the report goes to standard output, and nothing else does."""
        return self.markdown == "-"

    def __bool__(self) -> bool:
        return any(path is not None for path in (self.html, self.markdown, self.pdf))

    def check(self) -> None:
        """Check before the work starts that the reports can be written; raises OptionError."""
        if self:
            needs(*REPORT)
        paths = {"--html": self.html, "--markdown": self.markdown, "--pdf": self.pdf}
        for name, path in paths.items():
            if path is None or (path == "-" and name == "--markdown"):
                continue
            if path in ("", "-"):
                raise OptionError(f"{name} '{path}' is not a file; give the name of a file.")
            check_output(name, path)
        if self.pdf is not None:
            from calviz.report.pdf import why_not

            if reason := why_not():
                raise OptionError(f"--pdf: {reason}")

    def write(self, report: Report) -> None:
        """Write the requested files, with the same bytes on every system."""
        if self.html is not None:
            write_output(self.html, report.html())
        if self.pdf is not None:
            from calviz.report.pdf import to_pdf

            write_output(self.pdf, to_pdf(report.html()))
        if self.markdown is not None:
            write_text(report.markdown(), self.markdown)


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--html``, ``--pdf`` and ``--markdown``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def only_one_output(json_path: str | None, documents: Documents) -> bool:
    """Whether JSON or a report is written to standard output; raises OptionError if both are."""
    if json_path == "-" and documents.quiet:
        raise OptionError(
            "--json - and --markdown - cannot share standard output; give one a file."
        )
    return json_path == "-" or documents.quiet

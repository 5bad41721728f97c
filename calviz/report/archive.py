"""The tables of a report in a ZIP file: CSV for programs, Markdown and LaTeX for papers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from calviz.report.document import Report
from calviz.text.export import csv_bytes, latex_table, markdown_table

#: The earliest time a ZIP file can store, used for all entries: the same tables give the same bytes on any day.
NO_TIME = (1980, 1, 1, 0, 0, 0)


def to_zip(report: Report) -> bytes:
    """Write all tables of a report, and its model card, into a ZIP file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in _files(report):
            entry = zipfile.ZipInfo(name, NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _files(report: Report) -> Iterator[tuple[str, str | bytes]]:
    yield "report.md", report.markdown()
    for name, table in report.tables():
        shown = table.shown
        yield f"{name}.csv", csv_bytes(shown if table.numbers is None else table.numbers)
        yield f"{name}.md", markdown_table(shown, caption=table.title, right=table.right)
        yield f"{name}.tex", latex_table(shown, caption=table.title, right=table.right)

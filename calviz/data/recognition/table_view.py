"""A table as recognition sees it: the names of its columns, and the user's options."""

from __future__ import annotations

from calviz.core.finding import Finding, Severity
from calviz.data.loaded import ReadingOptions
from calviz.data.notices import Notice
from calviz.data.recognition import column_names
from calviz.data.table import Column, Table


class TableView:
    """A table, the options, and the notices of its recognition.

    Parameters
    ----------
    table : Table
    options : ReadingOptions
    """

    def __init__(self, table: Table, options: ReadingOptions) -> None:
        self.table, self.options = table, options
        self.notices: list[Finding] = []
        self.plain: dict[str, str] = {}
        for column in table.columns:
            self.plain.setdefault(column_names.plain(column.name), column.name)

    def named(self, names: tuple[str, ...], taken: set[str]) -> str | None:
        """The first column with one of the names (in order of preference) that is not taken."""
        candidates = (self.plain.get(name) for name in names)
        return next((c for c in candidates if c is not None and c not in taken), None)

    def numeric(self, taken: set[str]) -> list[Column]:
        """Numeric columns with one value per row that are not taken."""
        return [c for c in self._free(taken) if c.width is None]

    def arrays(self, taken: set[str]) -> list[Column]:
        """Numeric columns with a list in each row that are not taken."""
        return [c for c in self._free(taken) if c.width is not None]

    def _free(self, taken: set[str]) -> list[Column]:
        return [c for c in self.table.columns if c.numeric and c.name not in taken]

    def text_scores(self) -> list[str]:
        """Columns that are named like scores but hold text."""
        return [
            c.name
            for c in self.table.columns
            if c.type == "text" and column_names.by_prefix(c.name)[1] in ("probabilities", "logits")
        ]

    def note(self, kind: Notice, severity: Severity, message: str) -> None:
        """Add a notice."""
        self.notices.append(kind.finding(severity, message))

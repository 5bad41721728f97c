"""The blocks that sections consist of: texts, numbers, tables and charts, independent of the format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd

from calviz.core.finding import Finding
from calviz.figures.base import Figure
from calviz.figures.drawing.bullet import Bullet
from calviz.report.json import plain
from calviz.results.comparison_table import Mark
from calviz.results.metric_result import MetricResult
from calviz.results.verdict import Verdict

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Largest number of table rows shown on a page; the table's file holds all of them.
MOST_ROWS = 1_000


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text."""

    text: str
    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Note(Text):
    """A paragraph in small print: how to read the block before it."""

    kind: ClassVar[str] = "note"


@dataclass(frozen=True)
class Heading(Text):
    """A heading inside a section."""

    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Lead(Text):
    """The main sentence, for readers in a hurry.

    Attributes
    ----------
    tone : {"good", "bad", "open"}
        Whether it is good news, bad news, or not decided.
    below : str
        A line of text below it.
    """

    tone: Literal["good", "bad", "open"] = "open"
    below: str = ""
    kind: ClassVar[str] = "lead"


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair per line."""

    items: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Cards:
    """A few metrics in large type, their number of rows, and the verdict on these rows."""

    results: tuple[MetricResult, ...]
    rows: int
    verdict: Verdict | None = None
    kind: ClassVar[str] = "cards"


@dataclass(frozen=True)
class Findings:
    """Findings, worst first."""

    findings: tuple[Finding, ...]
    kind: ClassVar[str] = "findings"


@dataclass(frozen=True)
class Term:
    """A name, what it means, and where it comes from."""

    name: str
    meaning: str
    formula: str
    source: str
    facts: str = ""


@dataclass(frozen=True)
class Terms:
    """A glossary."""

    terms: tuple[Term, ...]
    kind: ClassVar[str] = "terms"


@dataclass(frozen=True, eq=False)
class TableBlock:
    """A table.

    Attributes
    ----------
    key : str
        Names its file.
    title : str
    shown : DataFrame of str
        The cells as text.
    numbers : DataFrame or None
        The same for programs, with all digits; None stands for the texts.
    right : sequence of str
        Columns of `shown` that are right-aligned.
    marks : mapping of (row, column name) to {"best", "second"}
        Highlighted cells.
    groups : mapping of int to str
        Headings inside the table, by the index of the row below them.
    folded : bool
        Whether only its title is shown until a reader opens it.
    bullets : sequence of Bullet or None
        A small drawing of each row's number, beside its name, which the texts of the row repeat; empty for no drawings.
    pictured : str
        Heading of these drawings, which names the number they show if the row has several.
    one_scale : bool
        Whether these drawings share one scale, or each has its own.
    """

    key: str
    title: str
    shown: pd.DataFrame
    numbers: pd.DataFrame | None = None
    right: Sequence[str] = ()
    marks: Mapping[tuple[int, str], Mark] = field(default_factory=dict)
    groups: Mapping[int, str] = field(default_factory=dict)
    folded: bool = False
    bullets: Sequence[Bullet | None] = ()
    pictured: str = ""
    one_scale: bool = True
    kind: ClassVar[str] = "table"

    @property
    def cut(self) -> str:
        """Sentence about the rows left out on a page; empty if all are shown."""
        left = len(self.shown) - MOST_ROWS
        return f"{left:,} more rows are in {self.key}.csv." if left > 0 else ""


@dataclass(frozen=True, eq=False)
class Chart:
    """A drawn chart with its description and the table of its data.

    Attributes
    ----------
    key : str
        Names its image files.
    title : str
    alt : str
        Description in words.
    drawing : str
        The plotly figure as JSON.
    caption : tuple of str
        Lines on the origin of the data that a saved image may include.
    table : TableBlock
    """

    key: str
    title: str
    alt: str
    drawing: str
    caption: tuple[str, ...]
    table: TableBlock
    kind: ClassVar[str] = "chart"


Block = Text | Facts | Cards | Findings | Terms | TableBlock | Chart

#: Function that formats a value of a column as text.
CellFormat = Callable[[Any], str]


def chart(
    figure: Figure,
    *,
    key: str,
    title: str,
    caption: Sequence[str],
    formats: Mapping[str, tuple[str, CellFormat]],
    rows: Sequence[int] | None = None,
    **drawing: Any,
) -> Chart:
    """Draw a computed figure for a report.

    Parameters
    ----------
    figure : Figure
    key, title, caption
        As in `Chart`.
    formats : mapping of str to (str, callable)
        Columns of its frame to show: the heading and the format of each.
    rows : sequence of int, optional
        Positions of the rows to show; all by default. The table's file holds all.
    **drawing
        Options of the figure's `plot`.
    """
    frame = figure.frame()
    selected = frame if rows is None else frame.iloc[list(rows)]
    shown = formatted(selected, formats)
    right = [
        heading
        for name, (heading, _) in formats.items()
        if pd.api.types.is_numeric_dtype(frame[name])
    ]
    some = "" if rows is None else f" ({len(selected):,} of {len(frame):,} points)"
    table = TableBlock(key, f"{title}, as a table{some}", shown, frame, right, folded=True)
    drawn = plain_json(figure.plot(theme="light", **drawing))
    return Chart(key, title, figure.describe(), drawn, tuple(caption), table)


def formatted(frame: pd.DataFrame, formats: Mapping[str, tuple[str, CellFormat]]) -> pd.DataFrame:
    """Write columns of a frame as texts, under the heading and in the format of each."""
    return pd.DataFrame(
        {heading: [write(v) for v in frame[name]] for name, (heading, write) in formats.items()}
    )


def plain_json(plotted: go.Figure) -> str:
    """Convert a plotly figure to compact JSON, with six significant digits."""
    values = plain(plotted.to_plotly_json(), digits=6)
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def spread(size: int, most: int, *also: int) -> list[int]:
    """Choose positions of about `most` rows, evenly spread, including both ends and the positions in `also`."""
    if size <= most:
        return list(range(size))
    even = np.linspace(0, size - 1, most).round().astype(int)
    return sorted({*even.tolist(), *also})

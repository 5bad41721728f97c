"""Tables written in the format that the suffix of a file names, workbooks of Excel, and exports of other tools."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import polars as pl

from calviz.core.blocks import Factor
from calviz.data.format import Source, Table, format_of

#: Files in the layout that other tools write, and what they hold.
EXPORTS = Path(__file__).parent / "exports"
EXPECTED = json.loads((EXPORTS / "expected.json").read_text())
CLASSES, PROBS = EXPECTED["classes"], np.array(EXPECTED["probs"])
LABELS = [CLASSES[label] for label in EXPECTED["labels"]]


def opened(content: str | bytes | Path, name: str | None = None) -> Table:
    """The table of a file, or of an export by its name."""
    source = Source(EXPORTS / content if isinstance(content, str) else content, name)
    return format_of(source).open(source)


def texts(table: Table, name: str) -> list[str]:
    return Factor.of(table.fetch([], [name]).columns[name]).values().tolist()


def block(table: Table, *names: str) -> np.ndarray:
    return table.fetch([names], []).scores[0]


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as CSV (also .gz), TSV, Parquet, Arrow or JSON Lines (.jsonl)."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
        return
    {
        ".csv": frame.write_csv,
        ".tsv": lambda target: frame.write_csv(target, separator="\t"),
        ".parquet": frame.write_parquet,
        ".arrow": frame.write_ipc,
        ".jsonl": frame.write_ndjson,
    }[path.suffix](path)


def sheet(rows: Iterable[Iterable[object]]) -> str:
    """The XML of the rows of a sheet, of at most 26 columns."""
    lines = []
    for r, row in enumerate(rows, start=1):
        cells = [
            f'<c r="{chr(ord("A") + j)}{r}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            if isinstance(cell, str)
            else f'<c r="{chr(ord("A") + j)}{r}"><v>{cell}</v></c>'
            for j, cell in enumerate(row)
        ]
        lines.append(f'<row r="{r}">{"".join(cells)}</row>')
    return "".join(lines)


def workbook(
    rows: str, name: str = "Sheet1", *, second: str | None = None, **members: str
) -> bytes:
    """A workbook with a sheet of these rows, as XML, and a second sheet called "two"; `members` replaces files in it."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def relation(key: str, kind: str, target: str) -> str:
        return f'<Relationship Id="{key}" Type="{office}/{kind}" Target="{target}"/>'

    def relations(*inner: str) -> str:
        return f'<Relationships xmlns="{package}/relationships">{"".join(inner)}</Relationships>'

    named = {name: ("b", "sheet1", rows)} | (
        {} if second is None else {"two": ("c", "sheet2", second)}
    )
    inner = [f'<sheet name="{n}" sheetId="1" r:id="{key}"/>' for n, (key, _, _) in named.items()]
    parts = [
        relation(key, "worksheet", f"worksheets/{part}.xml") for key, part, _ in named.values()
    ]
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": relations(relation("a", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>{"".join(inner)}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations(*parts),
    }
    for _, part, cells in named.values():
        files[f"xl/worksheets/{part}.xml"] = (
            f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>"
        )
    files |= members
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return stream.getvalue()

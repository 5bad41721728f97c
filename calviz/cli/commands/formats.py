"""``calviz formats``: list the supported file formats."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """List the file formats that can be read, and the repairs that can be requested."""
    from rich.table import Table

    from calviz.cli.text import cell, console
    from calviz.data.format import FORMATS
    from calviz.data.loaded import REPAIRS

    out = console()
    formats = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("format", "files", "holds"):
        formats.add_column(title, overflow="fold")
    for f in FORMATS:
        formats.add_row(*(cell(text) for text in (f.label, " ".join(f.suffixes), f.summary)))
    out.print(formats)
    out.print()
    repairs = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("repair (only if asked for)", "does"):
        repairs.add_column(title, overflow="fold")
    for repair in REPAIRS.values():
        repairs.add_row(cell(f"--repair {repair.key}"), cell(repair.label))
    out.print(repairs)

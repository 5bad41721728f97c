"""``calviz metrics``: list the metrics."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """List the metrics, with their parameters and references."""
    from rich.table import Table

    from calviz.cli.text import cell, console
    from calviz.specs.metric import DIRECTION_WORDS, METRICS

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("key", "name", "family", "better", "parameters", "reference"):
        table.add_column(title, overflow="fold")
    for m in METRICS:
        parameters = ", ".join(f"{p.name}={p.default}" for p in m.parameters)
        row = (m.key, m.label, m.family, DIRECTION_WORDS[m.direction], parameters, m.reference)
        table.add_row(*(cell(text) for text in row))
    console().print(table)

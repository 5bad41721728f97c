"""``calviz methods``: list the recalibrators."""

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """List the recalibrators, with their parameters and references."""
    from rich.table import Table

    from calviz.cli.text import cell, console
    from calviz.specs.recalibrator import RECALIBRATORS

    table = Table(box=None, header_style="bold", pad_edge=False)
    titles = ("key", "name", "family", "keeps predictions", "parameters", "reference")
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title == "key")
    for spec in RECALIBRATORS:
        parameters = ", ".join(f"{p.name}={p.default}" for p in spec.parameters)
        keeps = "yes" if spec.accuracy_preserving else "no"
        row = (spec.key, spec.label, spec.family, keeps, parameters, spec.reference)
        table.add_row(*(cell(text) for text in row))
    console().print(table)
    console().print(
        "A parametric and a non-parametric method can be composed: first+second.", style="dim"
    )

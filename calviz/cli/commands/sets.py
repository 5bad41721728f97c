"""``calviz sets``: conformal prediction sets from the probabilities."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import fitting_options, one_model
from calviz.cli.output_options import check_output, json_option, write_json
from calviz.cli.reading import reading_options
from calviz.cli.text import cell, console, naming, short_name
from calviz.core.version import __version__

if TYPE_CHECKING:
    from calviz.comparison.rows import Division
    from calviz.data import ReadingOptions
    from calviz.results.prediction_sets import PredictionSets


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--method",
    type=click.Choice(["lac", "aps"]),
    default="lac",
    show_default=True,
    help="LAC (least ambiguous sets) or APS (adaptive prediction sets).",
)
@click.option(
    "--coverage",
    type=float,
    default=0.9,
    show_default=True,
    help="Share of the rows whose set should hold the true class.",
)
@fitting_options(judging=True)
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def command(
    file: str,
    method: Any,
    coverage: float,
    division: Division,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Choose the threshold of prediction sets on some rows of FILE, and measure how often the sets of the others hold the true class."""
    from calviz.cli.audit_text import print_recognition
    from calviz.comparison import prediction_sets
    from calviz.data import read

    check_output("--json", json_path)
    with naming(file):
        loaded = read(file, options=reading)
        data = one_model(loaded, model)
    with naming(file, options=False):
        sets = prediction_sets(
            data, method=method, coverage=coverage, seed=division.seed, division=division
        )
    if json_path is not None:
        write_json(_record(sets), json_path)
    if json_path == "-":
        return FINE
    print_recognition(file, loaded)
    _print(sets)
    return FINE


def _print(sets: PredictionSets) -> None:
    from rich.table import Table

    out = console()
    choice = f"{sets.method.upper()}, threshold {sets.threshold:.4f}, chosen on {sets.fit.how} ({sets.fit.rows:,} rows)"
    out.print(cell(f"{choice}; judged on {sets.evaluation.how}."), soft_wrap=True)
    out.print(cell(sets.reading()), soft_wrap=True)
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("true class", no_wrap=True)
    for title in ("rows", "coverage", "95 % interval", "mean size", "95 % interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for s in (sets.overall, *sets.classes):
        table.add_row(
            cell(short_name(s.name)),
            f"{s.rows:,}",
            f"{s.coverage:.4f}",
            f"{s.coverage_interval.low:.4f} to {s.coverage_interval.high:.4f}",
            f"{s.size:.3f}",
            f"{s.size_interval.low:.3f} to {s.size_interval.high:.3f}",
        )
    out.print(table)


def _record(sets: PredictionSets) -> dict[str, Any]:
    subsets = [asdict(s) for s in (sets.overall, *sets.classes)]
    return {
        "calviz": __version__,
        "name": sets.name,
        "method": sets.method,
        "coverage": sets.coverage,
        "threshold": sets.threshold,
        "level": sets.level,
        "fit": asdict(sets.fit),
        "evaluation": asdict(sets.evaluation),
        "overall": subsets[0],
        "classes": subsets[1:],
        "sizes": sets.sizes.tolist(),
    }

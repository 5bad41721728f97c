"""``calviz over-time``: a metric per period, its changes, and recalibration on past rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calviz.cli.command_group import FINE
from calviz.cli.fit_row_options import one_model
from calviz.cli.output_options import check_output, json_option, write_json
from calviz.cli.reading import reading_options
from calviz.cli.sample_options import bins_option, reduction_option, seed_option
from calviz.cli.text import naming
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import RECALIBRATORS

if TYPE_CHECKING:
    from calviz.core.reduction import Reduction
    from calviz.data import ReadingOptions

_EVERY = {"equal-counts": "equal counts"}


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--metric",
    default="nll",
    show_default=True,
    metavar="KEY",
    help="The metric to measure; see 'calviz metrics'.",
)
@click.option(
    "--every",
    type=click.Choice(["day", "week", "month", "year", "equal-counts"]),
    help="Length of the periods; by default chosen from the data.",
)
@click.option(
    "--parts",
    default=10,
    show_default=True,
    type=click.IntRange(min=2),
    help="Number of periods, if they have equal counts of rows.",
)
@click.option(
    "--method",
    default="temperature",
    show_default=True,
    metavar="KEY",
    help="The recalibrator fitted on the rows before each period, or none.",
)
@click.option("--split", metavar="NAME", help="Only the rows of this split.")
@reduction_option
@bins_option
@seed_option
@click.option("--model", metavar="NAME", help="The model to use, if the file holds several.")
@json_option
@reading_options
def command(
    file: str,
    metric: str,
    every: str | None,
    parts: int,
    method: str,
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    seed: int,
    model: str | None,
    json_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Measure a metric of FILE over time: each period with interval and noise floor, and which periods differ beyond chance.

    The time column is recognised, or named by --time.
    """
    from calviz.cli.audit_text import print_recognition
    from calviz.cli.over_time_text import print_over_time
    from calviz.comparison import over_time
    from calviz.data import read

    check_output("--json", json_path)
    METRICS[metric]  # an unknown key is refused before the file is read
    if method != "none":
        RECALIBRATORS[method]
    with naming(file):
        loaded = read(file, options=reading)
    quiet = json_path == "-"
    if not quiet:
        print_recognition(file, loaded)
    with naming(file):
        result = over_time(
            one_model(loaded, model),
            metric,
            every=_EVERY.get(every or "", every),  # type: ignore[arg-type]
            parts=parts,
            method=None if method == "none" else method,
            split=split,
            reduction=reduction,
            bins=bins,
            seed=seed,
        )
    if not quiet:
        print_over_time(result)
    if json_path is not None:
        from calviz.report.over_time_json import over_time_record

        write_json(over_time_record(result, file=file, digest=loaded.digest), json_path)
    return FINE

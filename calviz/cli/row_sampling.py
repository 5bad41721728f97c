"""Samples of rows from sources that do not fit into memory: the options, and when rows are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calviz.cli.progress import showing_progress
from calviz.cli.text import naming, say
from calviz.core.errors import OptionError
from calviz.core.options import DEFAULT_SAMPLE_ROWS

if TYPE_CHECKING:
    from calviz.comparison.rows import Division
    from calviz.data import LabelFile, ReadingOptions
    from calviz.data.sampling import RowSample

sample_option = click.option(
    "--sample",
    type=click.IntRange(min=10),
    metavar="ROWS",
    help="Number of rows drawn to fit on, from folders, patterns, and files that may not fit into memory.  "
    f"[default: {DEFAULT_SAMPLE_ROWS}]",
)
judge_option = click.option(
    "--judge-sample",
    type=click.IntRange(min=2),
    metavar="ROWS",
    help="Number of other rows drawn as evaluation rows.  [default: as --sample]",
)


def why_drawn(source: str, rows: int | None, labels: LabelFile | None) -> str:
    """Why a sample of rows is drawn; an empty text if all rows are read."""
    from calviz.data.profiling.sources import why_out_of_core

    if labels is not None:
        if rows is not None:
            raise OptionError("--sample cannot be combined with --labels.")
        return ""
    return "as asked" if rows is not None else why_out_of_core(source)


def draw_options(reading: ReadingOptions, division: Division) -> dict[str, Any]:
    """Arguments of `calviz.sample_rows` for the options of a command; raises OptionError for options that need all rows."""
    from calviz.data.profiling.summarise import options_and_time

    for name in ("fit_fraction", "cross_fit", "in_sample"):
        if name in division.given:
            raise OptionError(
                f"--{name.replace('_', '-')} needs all rows in memory: give --sample ROWS instead."
            )
    options = options_and_time(reading)[0]
    return options | {"seed": division.seed, "fit_split": division.fit_split}


def draw_rows(
    source: str,
    rows: int | None,
    evaluation_rows: int | None,
    model: str | None,
    reading: ReadingOptions,
    division: Division,
) -> RowSample:
    """Draw the rows to fit on and the evaluation rows."""
    from calviz.data.sampling import sample_rows

    rows = rows or DEFAULT_SAMPLE_ROWS
    options = draw_options(reading, division) | {"eval_split": division.eval_split}
    with showing_progress(), naming(source):
        return sample_rows([source], rows, judged=evaluation_rows or rows, model=model, **options)


def say_drawn(source: str, why: str, sample: RowSample) -> None:
    """Write to standard error why rows were drawn, and which."""
    say(f"{source}: {why}, so rows are drawn. {sample.sentence()}")

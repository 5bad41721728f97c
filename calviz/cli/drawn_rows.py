"""Rows drawn from sources that do not fit into memory: the options, and when they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calviz.cli.progress import showing_progress
from calviz.cli.text import say
from calviz.core.errors import OptionError

if TYPE_CHECKING:
    from calviz.comparison.rows import Division
    from calviz.data import LabelFile, ReadingOptions
    from calviz.data.sampling import RowSample

sample_option = click.option(
    "--sample",
    type=click.IntRange(min=10),
    metavar="ROWS",
    help="Of folders, patterns, and files that may not fit into memory: how many rows are drawn to fit on.  [default: 100000]",
)
judge_option = click.option(
    "--judge-sample",
    type=click.IntRange(min=2),
    metavar="ROWS",
    help="How many others are drawn to judge on.  [default: as many]",
)


def why_drawn(source: str, asked: int | None, labels: LabelFile | None) -> str:
    """Why rows are drawn rather than all read, in words; empty where all are read."""
    from calviz.data.profiling.sources import why_out_of_core

    if labels is not None:
        if asked is not None:
            raise OptionError("--sample does not go with --labels.")
        return ""
    return "as asked" if asked is not None else why_out_of_core(source)


def draw_options(reading: ReadingOptions, division: Division) -> dict[str, Any]:
    """The arguments of `calviz.sample_rows` that the options of a command come to; raises OptionError on those that have no meaning."""
    from calviz.data.profiling.run import options_and_time

    given = division.given
    for name in ("fit_fraction", "cross_fit", "in_sample"):
        if name in given:
            raise OptionError(
                f"--{name.replace('_', '-')} needs all rows in memory: give --sample ROWS instead."
            )
    options = options_and_time(reading)[0]
    return options | {"seed": division.seed, "fit_split": division.fit_split}


def drawn(
    source: str,
    rows: int | None,
    judged: int | None,
    model: str | None,
    reading: ReadingOptions,
    division: Division,
) -> RowSample:
    """The rows to fit and to judge on."""
    from calviz.data.sampling.sample import ROWS, sample_rows

    rows = rows or ROWS
    options = draw_options(reading, division) | {"eval_split": division.eval_split}
    with showing_progress():
        return sample_rows([source], rows, judged=judged or rows, model=model, **options)


def say_drawn(source: str, why: str, sample: RowSample) -> None:
    """Say why rows were drawn, and which."""
    say(f"{source}: {why}, so rows are drawn. {sample.sentence()}")

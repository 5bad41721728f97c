"""``calviz profile``: summarise any number of rows as mergeable sums."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calviz.cli.command_group import FINE
from calviz.cli.output_options import OutputOption
from calviz.cli.progress import showing_progress
from calviz.cli.reading import reading_options, split_names
from calviz.core.atomic_files import real_path
from calviz.core.errors import OptionError

if TYPE_CHECKING:
    from calviz.data import ReadingOptions
    from calviz.data.profiling.sources import Engine


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--out",
    cls=OutputOption,
    required=True,
    metavar="FILE",
    help="The profile, a .parquet file.",
)
@click.option("--by", callback=split_names, metavar="COL,COL", help="Columns to slice by.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "polars", "duckdb"]),
    default="auto",
    show_default=True,
    help="The library that sums the rows.",
)
@click.option("--memory", metavar="SIZE", help="Memory limit of DuckDB, such as 1GB.")
@click.option("--model", metavar="NAME", help="The model to use, if the files hold several.")
@click.option("--skip-broken", is_flag=True, help="Leave out and name files that cannot be read.")
@click.option(
    "--true-class",
    is_flag=True,
    help="With more than two classes, also divide the cells by true class.",
)
@click.option(
    "--each-class",
    is_flag=True,
    help="With more than two classes, add cells of each class against the rest, for class-wise errors.",
)
@reading_options
def command(
    sources: tuple[str, ...],
    out: str,
    by: tuple[str, ...] | None,
    engine: Engine,
    memory: str | None,
    model: str | None,
    skip_broken: bool,
    true_class: bool,
    each_class: bool,
    reading: ReadingOptions,
) -> int:
    """Sum the predictions of SOURCE (files, folders, patterns, hive-partitioned tables) out of core into a profile.

    Everything that takes a file of predictions takes a profile. Times are grouped in buckets: --time date:month. A stopped
    run continues when it is started again: finished parts are kept beside --out until it is written.
    """
    from calviz.cli.profile_text import print_profile
    from calviz.data.profiling.summarise import options_and_time, profile
    from calviz.profiles.file import check_target, write_profile

    check_target(out)
    parts = Path(f"{out}.parts")
    _check_apart(sources, Path(out), parts)
    options, time, every = options_and_time(reading)
    with showing_progress():
        summed = profile(
            list(sources),
            by=by or reading.groups or (),
            time=time,
            every=every,
            engine=engine,
            memory=memory,
            model=model,
            skip_broken=skip_broken,
            true_class=true_class,
            each_class=each_class,
            parts=parts,
            **options,
        )
    write_profile(summed, out)
    shutil.rmtree(parts, ignore_errors=True)
    print_profile(summed, out)
    return FINE


def _check_apart(sources: tuple[str, ...], out: Path, parts: Path) -> None:
    """Raise OptionError if the profile, or its finished parts, would be summed too."""
    from calviz.data.profiling.sources import find

    target, folder = real_path(out), real_path(parts)
    inside = any(Path(s).is_dir() and target.is_relative_to(real_path(s)) for s in sources)
    paths = () if inside else map(real_path, find(sources).paths)
    if inside or any(path == target or path.is_relative_to(folder) for path in paths):
        raise OptionError(
            f"--out {out} lies among the files that are summed, where it would be read as data; choose another folder."
        )

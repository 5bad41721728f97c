"""``calviz merge``: add profiles of different rows."""

from __future__ import annotations

import click

from calviz.cli.command_group import FINE
from calviz.cli.output_options import OutputOption, check_output
from calviz.cli.text import named_twice
from calviz.core.errors import OptionError


@click.command()
@click.argument("profiles", nargs=-1, required=True, metavar="PROFILE...")
@click.option(
    "--out",
    cls=OutputOption,
    required=True,
    metavar="FILE",
    help="The merged profile, a .parquet file.",
)
def command(profiles: tuple[str, ...], out: str) -> int:
    """Add profiles of different rows, such as the days of a month or several sites.

    Rows that are in two profiles are counted twice; the same file twice is refused.
    """
    from calviz.cli.profile_text import print_profile
    from calviz.data.profile_files import merge_files
    from calviz.profiles.file import check_target, write_profile

    check_target(out)
    check_output("--out", out)
    if (twice := named_twice(profiles)) is not None:
        raise OptionError(f"{twice} is named twice: its rows would be counted twice.")
    merged = merge_files(profiles)
    write_profile(merged, out)
    print_profile(merged, out)
    return FINE

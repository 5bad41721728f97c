"""Text output about a profile for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calviz.cli.text import cell, console, short_name
from calviz.text.words import counted, listed

if TYPE_CHECKING:
    from calviz.profiles.profile import Profile


def print_profile(profile: Profile, path: str) -> None:
    """Print what a profile holds, and which files were left out."""
    out = console()
    out.print(cell(f"{short_name(path)}: {profile.sentence()}"), soft_wrap=True)
    skipped = profile.facts.skipped
    if skipped:
        names = listed([short_name(name) for name in skipped])
        out.print(
            cell(
                f"  left out {counted(len(skipped), 'file')} that cannot be read: {names}",
                "yellow",
            ),
            soft_wrap=True,
        )

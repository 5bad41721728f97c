"""Progress of long work, on one line of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from calviz.core.progress import watching
from calviz.text.escape import terminal_text


@contextmanager
def showing_progress() -> Iterator[None]:
    """Show the current step on standard error while the context lasts, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return

    def show(doing: str) -> None:
        if doing:
            click.echo(f"\r\x1b[K{terminal_text(doing)}", nl=False, err=True)

    try:
        with watching(show):
            yield
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)

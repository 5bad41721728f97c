"""Text for a terminal; markup and control characters in names from files have no effect."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.output_options import writes_files
from calviz.core.atomic_files import FULL, real_path
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.text.escape import terminal_text
from calviz.text.words import shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

#: Width of tables written to a file or a pipe, in characters.
WIDE = 240
LONGEST_NAME = 60


def short_name(name: str) -> str:
    """Return a name for a table, shortened if it is very long."""
    return shorten(terminal_text(name), LONGEST_NAME)


def sentence(error: CalvizError | OSError) -> str:
    """Describe an error in one sentence, with the option that would help."""
    if isinstance(error, InputError) and error.repairs:
        repairs = " or ".join(f"--repair {repair.key}" for repair in error.repairs)
        return f"{str(error).rstrip('.')} ({repairs})."
    if isinstance(error, CalvizError):
        return str(error)
    unnamed = "the output: " if error.errno in FULL else ""
    place = f"{os.fspath(error.filename)}: " if error.filename else unnamed
    reason = error.strerror or str(error) or type(error).__name__
    return f"{place}{reason[:1].lower()}{reason[1:]}."


def sentence_on(error: CalvizError | OSError, file: str) -> str:
    """Describe an error about a file in one sentence, which names the file."""
    if isinstance(error, InputError):
        return sentence(error.in_file(Path(file).name))
    is_named = isinstance(error, OSError) or getattr(error, "file", None) is not None
    if is_named or str(error).startswith((file, Path(file).name)):
        return sentence(error)
    return f"{file}: {sentence(error)}"


@contextlib.contextmanager
def naming(file: str, *, options: bool = True) -> Iterator[None]:
    """Name the file in errors about what it holds.

    Parameters
    ----------
    file : str
    options : bool
        Whether an `OptionError` is about what the file holds too: an option names something that is not in it. Options that are wrong for
        every file should be refused before it is read.
    """
    try:
        yield
    except InputError as error:
        raise error.in_file(Path(file).name) from error.__cause__
    except (OptionError, NotAvailable) as error:
        if isinstance(error, OptionError) and not options:
            raise
        raise type(error)(sentence_on(error, file)) from error.__cause__


def named_twice(files: Sequence[str]) -> str | None:
    """Return the first file that is the same as one before it."""
    paths = [real_path(file) for file in files]
    return next((file for at, file in enumerate(files) if paths[at] in paths[:at]), None)


def say(text: str) -> None:
    """Write one line to standard error."""
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"calviz: {terminal_text(text)}", err=True)


def cell(value: Any, style: str = "") -> Text:
    """Make a table cell that shows its text literally (no markup, no control characters)."""
    from rich.text import Text

    return Text(terminal_text(str(value)), style=style)


def console() -> Console:
    """Make a console on standard output; tables keep their full width if it is not a terminal."""
    from rich.console import Console

    class Literal(Console):
        def on_broken_pipe(self) -> None:
            # rich would exit with 1, the code of a crossed threshold.
            if not writes_files():
                raise BrokenPipeError
            # The reader of the table has closed the pipe, but the files still have to be written.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    width = None if sys.stdout.isatty() else WIDE
    return Literal(width=width, highlight=False, markup=False, emoji=False)

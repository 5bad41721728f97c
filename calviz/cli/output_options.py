"""Options that write a file: they are checked before the work starts, and ``-`` is standard output."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from calviz.core.atomic_files import check_place, real_path, write_output
from calviz.core.errors import OptionError

#: Options for which ``-`` is standard output.
_TO_STDOUT = ("--json", "--markdown")


class OutputOption(click.Option):
    """An option whose value is the path of a file that the command writes."""


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--json``."""
    return click.option(
        "--json",
        "json_path",
        cls=OutputOption,
        metavar="PATH",
        help="Write JSON; with - it goes to standard output, and nothing else does.",
    )(command)


def check_output(option: str, path: str | None) -> None:
    """Raise OptionError if no file can be written to the path, or it would replace one that is read or another output; nothing is touched.

    None is fine, and ``-`` for the options that write to standard output.
    """
    _refuse_stdout(option, path)
    if path is not None and path != "-":
        check_place(path, f"{option} {path}")
        target = real_path(path)
        if target in _paths_read():
            raise OptionError(f"{option} {path} would replace the file that is read; give another.")
        if target.exists() and not target.is_file():
            return  # a device such as /dev/null takes several outputs
        for other, other_path in _outputs():
            if other != option and real_path(other_path) == target:
                raise OptionError(f"{option} and {other} name the same file, {path}; give two.")


def check_folder(option: str, path: str) -> None:
    """Raise OptionError if the path cannot be a folder of output files, or be made; nothing is touched."""
    _refuse_stdout(option, path)
    absolute = Path(path).absolute()
    there = next(place for place in (absolute, *absolute.parents) if place.exists())
    if not there.is_dir():
        where = "" if there == absolute else f"'{there.name}' "
        raise OptionError(f"{option} {path} must be a folder, and {where}is a file.")
    if not os.access(there, os.W_OK):
        raise OptionError(f"{option} {path} cannot be written to; give another folder.")


def _refuse_stdout(option: str, path: str | None) -> None:
    if path == "-" and option not in _TO_STDOUT:
        raise OptionError(
            f"{option} - is not a file; only {' and '.join(_TO_STDOUT)} write to standard output."
        )


def _outputs() -> list[tuple[str, str]]:
    """Options of the running command that write files, with their paths."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    values = {
        option.opts[0]: context.params.get(option.name or "")
        for option in context.command.params
        if isinstance(option, OutputOption)
    }
    return [(option, path) for option, path in values.items() if path not in (None, "-")]


def _paths_read() -> set[Path]:
    """The files and folders that are arguments of the running command, and the files of ``--labels`` and ``--map``."""
    context = click.get_current_context(silent=True)
    if context is None:
        return set()
    read = (context.params.get(name) for name in ("label_file", "map_path"))
    values: list[str] = [path for path in read if path]
    for argument in context.command.params:
        if isinstance(argument, click.Argument):
            value = context.params.get(argument.name or "") or ()
            values += [value] if isinstance(value, str) else value
    return {real_path(value) for value in values}


def write_json(value: Any, path: str) -> None:
    """Write a record as JSON."""
    from calviz.report.json import to_json

    write_text(to_json(value), path)


def write_text(text: str, path: str) -> None:
    """Write text to a file or, for ``-``, to standard output."""
    if path == "-":
        click.echo(text, nl=False)
    else:
        write_output(path, text)


def writes_files() -> bool:
    """Whether the running command also writes files."""
    return bool(_outputs())

"""Options for the fitting rows of a recalibrator, and for the evaluation rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.sample_options import seed_option
from calviz.core.errors import OptionError

if TYPE_CHECKING:
    from calviz.core.predictions import Dataset
    from calviz.data import Loaded

_FIT = (
    click.option("--fit-split", metavar="NAME", help="The split to fit on."),
    click.option(
        "--fit-fraction",
        type=float,
        metavar="SHARE",
        help="Instead: fit on this share of the rows, stratified, such as 0.5.",
    ),
    click.option(
        "--cross-fit",
        type=int,
        metavar="FOLDS",
        help="Instead: with this number of folds, calibrate every row by a map that never saw it.",
    ),
    seed_option,
)
_JUDGE = (
    click.option("--eval-split", metavar="NAME", help="The split to evaluate on."),
    click.option(
        "--in-sample",
        is_flag=True,
        help="Allow judging on the fitting rows; the result is labelled in-sample.",
    ),
)


def fitting_options(*, judging: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--fit-split``, ``--fit-fraction``, ``--cross-fit`` and ``--seed``; the command gets them as ``division``.

    Parameters
    ----------
    judging : bool
        Whether the command also has evaluation rows: adds ``--eval-split`` and ``--in-sample``.
    """
    options = (*_JUDGE, *_FIT) if judging else _FIT

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_division(**arguments: Any) -> Any:
            from calviz.comparison.rows import Division

            choices = {
                f.name: arguments.pop(f.name) for f in fields(Division) if f.name in arguments
            }
            division = Division(**choices)
            division.check()
            return command(division=division, **arguments)

        for option in reversed(options):
            with_division = option(with_division)
        return with_division

    return add


def one_model(loaded: Loaded, name: str | None) -> Dataset:
    """Return the model to use; raises OptionError if the file holds several and none is named, or has none of that name."""
    names = ", ".join(loaded.models)
    if name is not None and name not in loaded.models:
        raise OptionError(f"there is no model '{name}'; known: {names}.")
    if name is None and len(loaded.models) > 1:
        raise OptionError(f"{loaded.file} holds several models; choose one with --model: {names}.")
    return loaded.models[name] if name is not None else loaded.first

"""The options that say which rows fit a recalibrator and which judge it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

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
        help="Instead: the stratified share of the rows to fit on, such as 0.5.",
    ),
    click.option(
        "--cross-fit",
        type=int,
        metavar="FOLDS",
        help="Instead: every row is calibrated by a map that never saw it.",
    ),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0)),
)


def fitting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--fit-split``, ``--fit-fraction``, ``--cross-fit`` and ``--seed``."""
    for option in reversed(_FIT):
        command = option(command)
    return command


def one_model(loaded: Loaded, name: str | None) -> Dataset:
    """The model that is meant; raises OptionError where a file has several and none is named."""
    known = ", ".join(loaded.models)
    if name is not None and name not in loaded.models:
        raise OptionError(f"there is no model '{name}'; known: {known}.")
    if name is None and len(loaded.models) > 1:
        raise OptionError(f"{loaded.file} holds several models; choose one with --model: {known}.")
    return loaded.models[name] if name is not None else loaded.first

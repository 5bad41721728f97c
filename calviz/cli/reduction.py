"""``--reduction``, the same in every command that measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from calviz.core.reduction import Reduction


def _read(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> Reduction | None:
    return None if text is None else Reduction.of(text)


def reduction_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--reduction``; without it the value is None, the default of the data."""
    return click.option(
        "--reduction",
        metavar="R",
        callback=_read,
        help="Which probability is judged: positive (the second of two classes, the default with two), "
        "top-label (the largest, the default otherwise), top-2 ..., within-top-2 ... or class:NAME.",
    )(command)

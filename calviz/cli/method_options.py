"""The option for parameters of recalibrators: ``--option temperature.floor=0.001``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import click

from calviz.core.errors import OptionError

ParsedOptions = dict[str, dict[str, Any]]


def method_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the repeatable option ``--option METHOD.PARAMETER=VALUE``."""
    return click.option(
        "--option",
        "options",
        multiple=True,
        metavar="METHOD.PARAMETER=VALUE",
        help="A parameter of a method (see 'calviz methods'), such as temperature.floor=0.001 or isotonic.cap=false.",
    )(command)


def parse(texts: Iterable[str]) -> ParsedOptions:
    """Parse the texts of ``--option`` into parameters by method.

    Raises
    ------
    OptionError
        If a text has another form, or names an unknown method or parameter.
    """
    parameters: ParsedOptions = {}
    for text in texts:
        target, is_set, value = text.partition("=")
        method, dot, name = target.rpartition(".")
        if not (is_set and dot and method and name):
            raise OptionError(
                f"--option must be METHOD.PARAMETER=VALUE, such as temperature.floor=0.001; got '{text}'."
            )
        _check(method, name)
        parameters.setdefault(method, {})[name] = _value(value)
    return parameters


def _check(method: str, name: str) -> None:
    from calviz.specs.recalibrator import RECALIBRATORS

    parameters = [p.name for p in RECALIBRATORS[method].parameters]
    if name not in parameters:
        have = f"it has {', '.join(parameters)}" if parameters else "it has none"
        raise OptionError(f"--option: '{method}' has no parameter '{name}'; {have}.")


def _value(text: str) -> Any:
    """Parse a JSON number, true, false (also True, False) or null; anything else is text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text

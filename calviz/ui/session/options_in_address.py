"""How a file is read, as a parameter of the address."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from calviz.core.errors import OptionError
from calviz.data import ReadingOptions


def encode_options(options: ReadingOptions) -> str:
    """Encode reading options in one line for the address; "" if everything is recognised."""
    defaults = ReadingOptions()
    changed = {
        option.name: getattr(options, option.name)
        for option in fields(options)
        if getattr(options, option.name) != getattr(defaults, option.name)
    }
    return json.dumps(changed, ensure_ascii=False, separators=(",", ":")) if changed else ""


def decode_options(text: str) -> ReadingOptions:
    """Decode reading options from an address; invalid ones are ignored."""
    try:
        values = json.loads(text) if text else {}
    except ValueError:
        return ReadingOptions()
    options = ReadingOptions()
    if not isinstance(values, dict):
        return options
    for name, hint in get_type_hints(ReadingOptions).items():
        value: Any = values.get(name)
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            value = tuple(value)
        if value is None or not _fits(value, hint):
            continue
        with suppress(OptionError):
            setting: dict[str, Any] = {name: value}
            options = replace(options, **setting)
    return options


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of the type of an option: a text, a choice, a tuple, or a union of these."""
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if kind is Literal:
        # By type as well, as True equals 1.
        return any(type(value) is type(choice) and value == choice for choice in get_args(hint))
    return isinstance(value, kind)

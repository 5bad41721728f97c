"""Several names in one value of a link, whatever characters they hold."""

from __future__ import annotations

from collections.abc import Sequence

#: The separator, which needs no percent-encoding in a link; then the escapes within a part.
_SEPARATOR = "~"
_ESCAPES = (("!", "!0"), (_SEPARATOR, "!1"))


def join_parts(parts: Sequence[str]) -> str:
    """Join the parts into one text.

    >>> join_parts(["cell", "a~b", "c!"])
    'cell~a!1b~c!0'
    """
    return _SEPARATOR.join(map(_escaped, parts))


def _escaped(text: str) -> str:
    for plain, escape in _ESCAPES:
        text = text.replace(plain, escape)
    return text


def split_parts(text: str) -> list[str]:
    """The reverse of `join_parts`.

    >>> split_parts("cell~a!1b~c!0")
    ['cell', 'a~b', 'c!']
    """
    parts = text.split(_SEPARATOR)
    for plain, escape in reversed(_ESCAPES):
        parts = [part.replace(escape, plain) for part in parts]
    return parts

"""Several names in one value of a link, whatever characters they hold."""

from __future__ import annotations

from collections.abc import Sequence

#: The separator, which needs no percent-encoding in a link; then the escapes within a part.
_BETWEEN = "~"
_ESCAPES = (("!", "!0"), (_BETWEEN, "!1"))


def joined(parts: Sequence[str]) -> str:
    """Join the parts into one text.

    >>> joined(["cell", "a~b", "c!"])
    'cell~a!1b~c!0'
    """
    return _BETWEEN.join(map(_escaped, parts))


def _escaped(text: str) -> str:
    for plain, escape in _ESCAPES:
        text = text.replace(plain, escape)
    return text


def parted(text: str) -> list[str]:
    """The reverse of `joined`.

    >>> parted("cell~a!1b~c!0")
    ['cell', 'a~b', 'c!']
    """
    parts = text.split(_BETWEEN)
    for plain, escape in reversed(_ESCAPES):
        parts = [part.replace(escape, plain) for part in parts]
    return parts

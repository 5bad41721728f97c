"""Words on screen: escaping and shortening; numbers are written by `calviz.core.written`."""

from __future__ import annotations

import re

from calviz.core.written import Written as Written
from calviz.core.written import number as number

_JOINER = (
    "\u2060"  # takes no room and no line break: it only keeps two characters from being read as one
)
_SPECIAL = re.compile(r"[!-/;-@\[-`{-~]")
_INVISIBLE = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+"
)
#: All white space but the one that does not break lines.
_SPACE = re.compile(r"[^\S\u00a0]+")
_AUTOLINK = re.compile(r"\b(www)(?=\.)", re.IGNORECASE)


def plain(text: object, limit: int = 60) -> str:
    """Text on one line without invisible or direction-changing characters, cut at `limit`."""
    line = _SPACE.sub(" ", _INVISIBLE.sub(" ", str(text))).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def md(text: object, limit: int = 400) -> str:
    """Text that markdown shows as it is: no image, link, HTML, formula, icon or colour comes of it."""
    line = _AUTOLINK.sub(rf"\1{_JOINER}", plain(text, limit))
    # Entities, because streamlit's own formula and arrow notations ignore backslashes; and joiners
    # after colons, because its icon and emoji notations are read after entities are resolved.
    line = _SPECIAL.sub(lambda m: f"&#{ord(m[0])};" + (_JOINER if m[0] in "-<>~=" else ""), line)
    return line.replace(":", f":{_JOINER}")


def rows(n: int) -> str:
    """A count of rows."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def size(n: int) -> str:
    """Bytes, in the unit that suits."""
    if n < 1_000:
        return f"{n:,} bytes"
    for unit in ("kB", "MB", "GB"):
        n_unit = n / 1_000
        if n_unit < 999.5 or unit == "GB":
            return f"{n_unit:,.3g} {unit}"
        n = round(n_unit)
    raise AssertionError


def distinct(names: tuple[str, ...], limit: int = 60) -> dict[str, str]:
    """Short forms of names for a list to choose from, no two the same; by name."""
    seen: dict[str, int] = {}
    result: dict[str, str] = {}
    for position, name in enumerate(names):
        short = plain(name, limit) or "(empty)"
        if short in seen:
            short = f"{short} [{position}]"
        seen[short] = position
        result[name] = short
    return result

"""Escaping for streamlit."""

from __future__ import annotations

import re

from calviz.text.words import shorten

_JOINER = (
    "\u2060"  # word joiner: invisible, it only keeps two characters from being parsed together
)
_SPECIAL = re.compile(r"[!-/;-@\[-`{-~]")
_AUTOLINK = re.compile(r"\b(www)(?=\.)", re.IGNORECASE)


def md(text: object, limit: int = 400) -> str:
    """Escape text so that markdown shows it as it is: no image, link, HTML, formula, icon or colour."""
    line = _AUTOLINK.sub(rf"\1{_JOINER}", shorten(text, limit))
    # Entities, because streamlit's own formula and arrow notations ignore backslashes; and joiners
    # after colons, because its icon and emoji notations are read after entities are resolved.
    line = _SPECIAL.sub(lambda m: f"&#{ord(m[0])};" + (_JOINER if m[0] in "-<>~=" else ""), line)
    return line.replace(":", f":{_JOINER}")

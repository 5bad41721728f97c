"""Saved views: a small JSON file with page, settings, selection, pinned state and the digest of the data, never the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calviz.core.errors import InputError
from calviz.text.words import shorten

#: The kind that the file states, and the version that is written and read.
KIND, VERSION = "view", 1
#: Upper limits: bytes of the file, number of settings, characters of a value.
MOST_BYTES, MOST_SETTINGS, MOST_TEXT = 200_000, 200, 4_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_HEADER = re.compile(rb'^\s*\{[^{}\[\]]{0,200}"calviz"\s*:')
_KEYS = ("calviz", "version", "page", "data", "settings")
_DATA = {"key": str, "title": str, "rows": int, "digest": str}


@dataclass(frozen=True)
class SavedView:
    """A page and everything that its link holds.

    Attributes
    ----------
    page : str
        Key of the page.
    key, title, digest : str
        The data's name in links, their title, and the digest of their file.
    rows : int
    settings : mapping of str to tuple of str
        The parameters of the link, without the data.
    """

    page: str
    key: str
    title: str
    digest: str
    rows: int
    settings: Mapping[str, tuple[str, ...]]


def header(*, key: str, title: str, digest: str, rows: int) -> dict[str, Any]:
    """Return the file without page and settings; the browser adds these from its address."""
    data = {"key": key, "title": title, "rows": rows, "digest": digest}
    return {"calviz": KIND, "version": VERSION, "data": data}


def is_view(content: bytes) -> bool:
    """Whether a file states that it is a saved view."""
    return _HEADER.match(content[:1_000]) is not None


def read_view(content: bytes, *, pages: frozenset[str]) -> SavedView:
    """Read a saved view; everything in it is checked.

    Raises
    ------
    InputError
        Says what is wrong, in one sentence.
    """
    if len(content) > MOST_BYTES:
        raise _refused(f"it has {len(content):,} bytes, at most {MOST_BYTES:,} are read")
    try:
        record = json.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise _refused("it is not complete JSON") from None
    if not isinstance(record, dict) or record.get("calviz") != KIND:
        raise _refused("it does not say that it is a view")
    version = record.get("version")
    if type(version) is not int or version != VERSION:
        stated = shorten(version, 20)
        raise _refused(f"it is of version {stated}, and this calviz reads version {VERSION}")
    if sorted(record) != sorted(_KEYS):
        raise _refused(f"it must hold {', '.join(_KEYS)}, and nothing else")
    if not isinstance(record["page"], str) or record["page"] not in pages:
        raise _refused(f"there is no page '{shorten(record['page'], 30)}'")
    data = _data(record["data"])
    return SavedView(page=record["page"], settings=_settings(record["settings"]), **data)


def _data(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict) or sorted(record) != sorted(_DATA):
        raise _refused(f"'data' must hold {', '.join(_DATA)}")
    for name, kind in _DATA.items():
        value = record[name]
        if type(value) is not kind or not 0 < len(str(value)) <= MOST_TEXT:
            raise _refused(f"'{name}' of the data is not valid")
    return dict(record)


def _settings(record: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(record, dict) or len(record) > MOST_SETTINGS:
        raise _refused(f"'settings' must be up to {MOST_SETTINGS} names with their values")
    settings = {}
    for name, value in record.items():
        if not _NAME.fullmatch(name) or name == "data":
            raise _refused(f"'{shorten(name, 30)}' is not a setting")
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(v, str) and len(v) <= MOST_TEXT for v in values):
            raise _refused(f"the setting '{name}' must be a text, or a list of them")
        settings[name] = tuple(values)
    return settings


def _refused(why: str) -> InputError:
    return InputError(
        f"this saved view cannot be opened: {why}", remedy="save the view again and open that file"
    )

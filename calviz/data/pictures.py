"""Read pictures named in rows, only from one folder that the user chose; nothing is ever downloaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from calviz.core.errors import InputError, shortened
from calviz.core.limits import MAX_PICTURE

#: Media type and first bytes of each file extension; SVG is excluded because it can hold scripts.
_FORMATS = {
    "png": ("image/png", rb"\x89PNG\r\n\x1a\n"),
    "jpg": ("image/jpeg", rb"\xff\xd8\xff"),
    "jpeg": ("image/jpeg", rb"\xff\xd8\xff"),
    "gif": ("image/gif", rb"GIF8[79]a"),
    "webp": ("image/webp", rb"RIFF....WEBP"),
}
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://|data:|//", re.IGNORECASE)
#: How many values of a column are inspected.
_LOOKED_AT = 50


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()


def are_pictures(values: Iterable[object]) -> bool:
    """Whether the values name pictures, judging by the first ones.

    >>> are_pictures(["a/1.png", "a/2.PNG"]), are_pictures(["a.png", "hello"]), are_pictures([])
    (True, False, False)
    """
    first = [str(value) for value, _ in zip(values, range(_LOOKED_AT), strict=False)]
    return bool(first) and all(_ending(name) in _FORMATS for name in first)


def checked_folder(text: str) -> Path:
    """Return the folder that the user named; raise InputError if it does not exist."""
    folder = Path(text.strip()).expanduser()
    if not text.strip() or not folder.is_dir():
        raise InputError(
            f"there is no folder '{shortened(text)}'",
            remedy="give the folder that holds the pictures",
        )
    return folder.resolve()


def read_picture(folder: Path, name: str) -> tuple[str, bytes]:
    """Read a picture named by a row, from inside a folder.

    Parameters
    ----------
    folder : Path
        From `checked_folder`.
    name : str
        Path relative to the folder, or an absolute path below it.

    Returns
    -------
    tuple of str and bytes
        Media type and content.

    Raises
    ------
    InputError
        If the name is a web address, the path or a link leads out of the folder, or the file is missing, too large, or
        not a PNG, JPEG, GIF or WebP.
    """
    short = shortened(name)
    if _ADDRESS.match(name):
        raise InputError(f"'{short}' is an address: nothing is fetched")
    kind, start = _FORMATS.get(_ending(name), ("", b""))
    if not kind:
        raise InputError(f"'{short}' is not a PNG, JPEG, GIF or WebP file")
    if "\0" in name:
        raise InputError(f"'{short}' is not a file name")
    try:
        # The path after resolving all links must be inside the folder.
        target = Path(os.path.realpath(folder / name))
        if not target.is_relative_to(folder):
            raise InputError(f"'{short}' is not inside the folder")
        if not target.is_file():
            raise InputError(f"there is no '{short}' in the folder")
        with target.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            MAX_PICTURE.check(size, f"'{short}' has {MAX_PICTURE.written(size)}")
            content = stream.read(MAX_PICTURE.value + 1)
    except OSError as error:
        raise InputError(f"'{short}' cannot be read: {error.strerror or error}") from None
    if not re.match(start, content, re.DOTALL):
        raise InputError(f"'{short}' does not hold what its ending says")
    return kind, content

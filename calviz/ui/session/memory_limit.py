"""The limits on what one session may keep open, so that no visitor uses up a shared server's memory."""

from __future__ import annotations

from calviz.core.limits import MAX_OPEN_BYTES, MAX_OPEN_FILES, Limit
from calviz.core.predictions import Dataset
from calviz.text.words import shorten
from calviz.ui.session.open_file import OpenFile


def make_room(files: dict[str, OpenFile], keep: str) -> str | None:
    """Close the oldest files until the rest is within the limits; return a sentence that says so, or None if none was closed.

    Parameters
    ----------
    files : dict of str to OpenFile
        In the order in which they were opened.
    keep : str
        Key of the file that is never closed.
    """
    closed: list[str] = []
    exceeded = None
    while len(files) > 1:
        limit = _exceeded_limit(files)
        if limit is None:
            break
        exceeded = limit
        oldest = next(key for key in files if key != keep)
        closed.append(files.pop(oldest).title)
    if exceeded is None:
        return None
    names = ", ".join(f"'{shorten(title)}'" for title in closed[:3])
    names += f" and {len(closed) - 3:,} more" if len(closed) > 3 else ""
    was = "was" if len(closed) == 1 else "were"
    return (
        f"{names} {was} closed, as one session may hold {exceeded.written(exceeded.value)} at most; set the "
        f"environment variable {exceeded.variable} of the server to raise it."
    )


def _exceeded_limit(files: dict[str, OpenFile]) -> Limit | None:
    if len(files) > MAX_OPEN_FILES.value:
        return MAX_OPEN_FILES
    return (
        MAX_OPEN_BYTES if sum(map(bytes_of_file, files.values())) > MAX_OPEN_BYTES.value else None
    )


def bytes_of_file(entry: OpenFile) -> int:
    """Bytes of a file and of the arrays that were read from it."""
    source = entry.source
    if isinstance(source, tuple):
        source_bytes = sum(len(content) for _, content in source)
    else:
        source_bytes = len(source) if isinstance(source, bytes) else 0
    return source_bytes + sum(map(_array_bytes, entry.loaded.models.values()))


def _array_bytes(data: Dataset) -> int:
    arrays = ("probs", "logits", "labels", "confidence")
    return sum(int(getattr(getattr(data, name, None), "nbytes", 0)) for name in arrays)

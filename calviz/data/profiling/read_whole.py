"""Say why a file cannot be read block by block, in the words for files that are read whole, which name the lines."""

from __future__ import annotations

from pathlib import Path

from calviz.core.errors import CalvizError, InputError, lines_of, shortened
from calviz.data.loaded import ReadingOptions
from calviz.data.profiling.sources import why_out_of_core
from calviz.data.profiling.unusable_rows import error_of_file
from calviz.data.reading import read

_TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")


def error_of_path(error: Exception, path: Path, reading: ReadingOptions) -> Exception:
    """Turn an exception about a file into an error that names the file and, if it is text that fits into memory, the lines."""
    of_whole = None if isinstance(error, CalvizError) else error_of_whole(error, path, reading)
    return of_whole or error_of_file(error, path.name)


def error_of_whole(error: Exception, path: Path, reading: ReadingOptions) -> InputError | None:
    """Read a text file that could not be read block by block as a whole, and return what is wrong; None if it may not fit into memory."""
    if path.suffix.lower() not in _TEXT or why_out_of_core(str(path)):
        return None
    try:
        read(path, options=reading)
    except InputError as of_whole:
        return of_whole
    return InputError(
        f"it can be read as a whole, but not block by block ({shortened(lines_of(error)[0])})",
        file=path.name,
        remedy="save it as Parquet",
    )

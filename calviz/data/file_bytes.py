"""The bytes of a file, on disk or in memory."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import threading
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import BinaryIO, Self, cast

from calviz.core.errors import InputError
from calviz.core.limits import EXPANSION_FLOOR, MAX_FILE, check_expansion
from calviz.data.file_errors import damaged

HEAD_BYTES = 1 << 20
_HASH_BLOCK = 1 << 20


class Source:
    """A file on disk or bytes in memory; every `open` starts at the beginning.

    Parameters
    ----------
    source : str, PathLike, bytes or binary file object
    name : str, optional
        Name in messages; the file's own name if left out.

    Attributes
    ----------
    while_read : ExitStack
        Resources that a format keeps open while the file is read; closed when the source, a context manager, exits.
    """

    def __init__(
        self, source: str | os.PathLike[str] | bytes | BinaryIO, name: str | None = None
    ) -> None:
        self.path: Path | None = None
        self.data: bytes | None = None
        self.while_read = ExitStack()
        if isinstance(source, bytes | bytearray | memoryview):
            self.data = bytes(source)
            self.name = name or "upload"
        elif isinstance(source, str | os.PathLike):
            self.path = Path(source)
            self.name = name or self.path.name or str(self.path)
            self._check_path(self.path)
        elif not callable(getattr(source, "read", None)):
            raise InputError(
                f"got {type(source).__name__}, expected the path of a file",
                remedy="data frames are taken by calviz.Predictions.from_frame(df), arrays by from_arrays(y_true, y_prob)",
            )
        else:
            # getvalue of a BytesIO does not copy; other streams are read once.
            content = source.getvalue() if isinstance(source, io.BytesIO) else source.read()
            if not isinstance(content, bytes):
                raise InputError("the file object gives text", remedy="open it in binary mode")
            self.data = content
            self.name = name or Path(str(getattr(source, "name", "upload"))).name
        self.size = len(self.data) if self.data is not None else self._stat().st_size
        try:
            MAX_FILE.check(self.size, f"the file is {MAX_FILE.written(self.size)}")
        except InputError as error:
            raise error.in_file(self.name) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.while_read.close()

    def _check_path(self, path: Path) -> None:
        try:
            if path.is_dir():
                raise InputError("this is a folder", file=self.name, remedy="name a file in it")
            if not path.exists():
                raise InputError("there is no such file", file=self.name)
            if not path.is_file():
                raise InputError("this is not a regular file", file=self.name)
            with path.open("rb"):
                pass
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot be opened ({reason})", file=self.name) from None

    def _stat(self) -> os.stat_result:
        assert self.path is not None
        return self.path.stat()

    @cached_property
    def compressed(self) -> bool:
        """Whether the bytes are gzip-compressed."""
        with self.open_raw() as stream:
            return stream.read(2) == b"\x1f\x8b"

    def open(self) -> BinaryIO:
        """Return a new stream over all bytes, decompressed if they are gzip."""
        if self.compressed:
            return cast(BinaryIO, Gunzip(self.open_raw()))
        return self.open_raw()

    def open_raw(self) -> BinaryIO:
        """Return a new, seekable stream over the raw bytes."""
        if self.data is not None:
            return io.BytesIO(self.data)
        assert self.path is not None
        return self.path.open("rb", buffering=0)  # blocks are large: a buffer would copy them

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """Return the first `size` bytes, decompressed if they are gzip."""
        with self.open() as stream:
            return stream.read(size)

    def hasher(self) -> Callable[[], str]:
        """Return a function that computes the BLAKE2b-256 hash of the bytes.

        Bytes in memory are hashed in a thread during reading, so that they need not be kept; a file is
        hashed when the digest is first requested, and must not have changed by then.
        """
        if self.data is not None:
            return _hash_beside(self.data)
        path, name = self.path, self.name
        assert path is not None
        opened = path.stat()

        def digest() -> str:
            current = path.stat()
            if (current.st_mtime_ns, current.st_size) != (opened.st_mtime_ns, opened.st_size):
                raise InputError("the file has changed since it was read", file=name)
            digester = hashlib.blake2b(digest_size=32)
            with path.open("rb", buffering=0) as stream:
                while block := stream.read(_HASH_BLOCK):
                    digester.update(block)
            return digester.hexdigest()

        return digest


def without_bom(text: bytes) -> bytes:
    """Return text without the byte-order mark that some programs write before UTF-8."""
    return text.removeprefix(codecs.BOM_UTF8)


def check_gzip(source: Source) -> None:
    """Decompress the beginning of a gzip file; raise InputError if it expands beyond the limits."""
    left = EXPANSION_FLOOR + 1
    with source.open() as stream:
        while left > 0 and (block := stream.read(min(left, _HASH_BLOCK))):
            left -= len(block)


class Gunzip:
    """A gzip stream that raises InputError once it expands beyond the limits."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw, self._unpacked = raw, 0
        self._file = GzipFile(fileobj=raw, mode="rb")

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer than requested only at the end."""
        step = size if size >= 0 else 1 << 24
        try:
            block = self._file.read(step)
        except (EOFError, BadGzipFile, zlib.error):
            raise damaged("the gzip stream breaks off") from None
        self._unpacked += len(block)
        # Compared with the compressed bytes read so far, so the check works before the end.
        check_expansion("the file", self._unpacked, self._raw.tell())
        return block if size >= 0 or not block else block + self.read()

    def __enter__(self) -> Gunzip:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._raw.close()


def _hash_beside(data: bytes) -> Callable[[], str]:
    result: list[str] = []

    def work(data: bytes) -> None:
        result.append(hashlib.blake2b(data, digest_size=32).hexdigest())

    thread = threading.Thread(target=work, args=(data,), daemon=True)
    thread.start()

    def digest() -> str:
        thread.join()
        return result[0]

    return digest

"""A data set of a session: a file that was opened, or a sample set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from calviz.data import Loaded, ReadingOptions, Together
from calviz.data.samples import SampleSet
from calviz.ui.session.options_in_address import encode_options

#: Digits of a file's digest that are used in links.
DIGEST_LENGTH = 16


#: A source of data: the bytes of a file, its path, or several logs that were opened together.
FileSource = bytes | Path | Together


@dataclass(frozen=True, eq=False)
class OpenFile:
    """A data set of the session.

    Attributes
    ----------
    key : str
        Its name in links: the key of a sample set, or the first digits of the file's digest.
    title : str
    loaded : Loaded
    options : ReadingOptions
        How it was read.
    source : bytes, Path, tuple of (str, bytes) or None
        The file, or the logs that were opened together, to read them again; None for samples.
    sample : SampleSet or None
    """

    key: str
    title: str
    loaded: Loaded
    options: ReadingOptions = field(default_factory=ReadingOptions)
    source: FileSource | None = None
    sample: SampleSet | None = None

    @property
    def short_digest(self) -> str:
        """The first digits of the file's digest, by which links and captions name it."""
        return digest_in_links(self.loaded)

    @property
    def content_key(self) -> str:
        """Identifies the content and how it was read, for caches."""
        return f"{self.key}?{encode_options(self.options)}"


def digest_in_links(loaded: Loaded) -> str:
    """The first digits of the digest of a file, by which links name it."""
    return loaded.digest[:DIGEST_LENGTH]

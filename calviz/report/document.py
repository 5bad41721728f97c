"""A report: sections about one or more models, independent of the format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from calviz.core.errors import NotAvailable, OptionError
from calviz.report.blocks import Block, Chart, Note, TableBlock
from calviz.report.section import SECTIONS, Section, in_order
from calviz.report.subject import Subject
from calviz.text.words import capitalised

#: Called before each section is made, with its title, the number done and the total number.
ReportProgress = Callable[[str, int, int], None]

#: Title of a report on several models if none is given.
DEFAULT_TITLE = "Calibration of several models"


@dataclass(frozen=True, eq=False)
class WrittenSection:
    """A section with its blocks."""

    section: Section
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """The part of a report about one subject.

    Attributes
    ----------
    name : str
    verdict : str
        The verdict's sentence.
    sections : tuple of WrittenSection
    shared : tuple of WrittenSection
        Sections that are the same for all parts.
    """

    name: str
    verdict: str
    sections: tuple[WrittenSection, ...]
    shared: tuple[WrittenSection, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """A report, ready to be written as HTML, as Markdown, or as tables.

    The same data and settings give the same bytes: it has no date unless one is given.

    Attributes
    ----------
    parts : tuple of Part
    title, author, notes, date : str
        Plain text entered by a person, escaped wherever it is written. Empty lines in the notes separate paragraphs.
    """

    parts: tuple[Part, ...]
    title: str
    author: str = ""
    notes: str = ""
    date: str = ""

    @property
    def shared(self) -> tuple[WrittenSection, ...]:
        """Sections that are the same for all parts and are written once."""
        return self.parts[0].shared

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The notes, paragraph by paragraph."""
        return tuple(p.strip() for p in re.split(r"\n\s*\n", self.notes) if p.strip())

    def tables(self) -> Iterator[tuple[str, TableBlock]]:
        """Iterate over all tables, including those of charts, with their file names without suffix."""
        for number, part in enumerate(self.parts, start=1):
            folder = f"{number:02d}-" if len(self.parts) > 1 else ""
            for table in _tables(part.sections):
                yield f"{folder}{table.key}", table
        for table in _tables(self.shared):
            yield table.key, table

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in order."""
        written = [*(w for part in self.parts for w in part.sections), *self.shared]
        return tuple(b for w in written for b in w.blocks if isinstance(b, Chart))

    def html(self) -> str:
        """Write one self-contained page; see `calviz.report.html`."""
        from calviz.report.html import to_html

        return to_html(self)

    def markdown(self) -> str:
        """Write a model card; see `calviz.report.markdown`."""
        from calviz.report.markdown import to_markdown

        return to_markdown(self)

    def archive(self) -> bytes:
        """Write all tables into a ZIP file; see `calviz.report.archive`."""
        from calviz.report.archive import to_zip

        return to_zip(self)


def _tables(written: Iterable[WrittenSection]) -> Iterator[TableBlock]:
    for section in written:
        for block in section.blocks:
            table = block.table if isinstance(block, Chart) else block
            if isinstance(table, TableBlock):
                yield table


def compose(
    subjects: Subject | Iterable[Subject],
    *,
    sections: Iterable[str] | None = None,
    title: str = "",
    author: str = "",
    notes: str = "",
    date: str | None = None,
    progress: ReportProgress | None = None,
) -> Report:
    """Compute a report.

    Parameters
    ----------
    subjects : Subject or iterable of Subject
        Each becomes a part of the report.
    sections : iterable of str, optional
        Keys of sections, whatever their order; by default, all that are not empty.
    title, author, notes, date
        As in `bind`.
    progress : callable, optional
        Called before each section.

    Raises
    ------
    OptionError
        If there is no subject, or no such section.
    """
    about = [subjects] if isinstance(subjects, Subject) else subjects
    chosen = None if sections is None else tuple(sections)
    parts = [make_part(subject, sections=chosen, progress=progress) for subject in about]
    return bind(parts, title=title, author=author, notes=notes, date=date)


def make_part(
    subject: Subject,
    *,
    sections: Iterable[str] | None = None,
    progress: ReportProgress | None = None,
) -> Part:
    """Compute the sections about one subject; the part keeps no arrays of its rows."""
    chosen = chosen_sections(sections)
    written = []
    for done, section in enumerate(chosen):
        if progress:
            progress(section.title, done, len(chosen))
        written.append(write(section, subject))
    filled = [w for w in written if w.blocks]
    return Part(
        name=subject.name,
        verdict=subject.verdict.sentence,
        sections=tuple(w for w in filled if not w.section.shared),
        shared=tuple(w for w in filled if w.section.shared),
    )


def with_section(part: Part, key: str, subject: Subject) -> Part:
    """Return the part with one more section, in its place; unchanged if the section is empty."""
    written = write(SECTIONS[key], subject)
    if not written.blocks:
        return part
    beside = part.shared if written.section.shared else part.sections
    sections = tuple(sorted((*beside, written), key=lambda w: w.section.place))
    return (
        replace(part, shared=sections)
        if written.section.shared
        else replace(part, sections=sections)
    )


def bind(
    parts: Iterable[Part],
    *,
    title: str = "",
    author: str = "",
    notes: str = "",
    date: str | None = None,
) -> Report:
    """Combine parts into a report.

    Parameters
    ----------
    parts : iterable of Part
    title, author, notes : str
        Plain text.
    date : str, optional
        Text of the date; by default, the day of ``SOURCE_DATE_EPOCH`` if that is set, else no date, so that
        the same input gives the same bytes.
    """
    bound = tuple(parts)
    if not bound:
        raise OptionError("a report needs at least one set of predictions.")
    return Report(
        parts=bound,
        title=title or (bound[0].name if len(bound) == 1 else DEFAULT_TITLE),
        author=author,
        notes=notes,
        date=source_date() if date is None else date,
    )


def chosen_sections(keys: Iterable[str] | None) -> tuple[Section, ...]:
    """Return the sections with these keys, in the order of a report; all for None."""
    if keys is None:
        return in_order()
    wanted = {SECTIONS[key].key for key in keys}
    return tuple(section for section in in_order() if section.key in wanted)


def write(section: Section, subject: Subject) -> WrittenSection:
    """Make the blocks of a section; `NotAvailable` becomes a note with the reason."""
    try:
        blocks: Sequence[Block] = tuple(section.make(subject))
    except NotAvailable as reason:
        text = str(reason)
        blocks = (Note(capitalised(text)),)
    return WrittenSection(section, tuple(blocks))


def source_date() -> str:
    """Return the day of ``SOURCE_DATE_EPOCH``, the convention for reproducible output; empty without it.

    Raises
    ------
    OptionError
        If it is not a number of seconds.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        return ""
    try:
        return datetime.fromtimestamp(int(text), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise OptionError(
            f"SOURCE_DATE_EPOCH must be a whole number of seconds, got '{text[:40]}'."
        ) from None

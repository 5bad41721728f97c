"""What a section of a report is, and the registry of sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from calviz.report.blocks import Block
from calviz.report.subject import Subject
from calviz.specs.registry import Registry

#: Fields of `Subject` that hold results of long work.
Work = Literal["comparison", "learning", "models", "slices"]


@dataclass(frozen=True)
class Section:
    """A registered section.

    Attributes
    ----------
    key : str
        The stable name by which it is asked for.
    title : str
        Its heading.
    place : int
        Sections stand in ascending order.
    summary : str
        What it holds, in a few words.
    make : callable
        ``make(subject)`` yields its blocks; a section without any is left out. `NotAvailable` says why there
        is nothing to show.
    shared : bool
        Whether it is the same for all parts of a report, and stands once, at its end.
    brief : bool
        Whether it is in the report of a command that compares as well, if it has something to say there.
    made_of : {"comparison", "learning", "models", "slices"} or None
        What of the `Subject` it is about, where that is the result of work that a person asked for.
    """

    key: str
    title: str
    place: int
    summary: str
    make: Callable[[Subject], Iterable[Block]]
    shared: bool = False
    brief: bool = False
    made_of: Work | None = None


SECTIONS: Registry[Section] = Registry("section")


def brief() -> tuple[str, ...]:
    """Keys of the sections of a report about a comparison."""
    return tuple(section.key for section in SECTIONS if section.brief)


def in_order() -> tuple[Section, ...]:
    """All sections, as they stand in a report."""
    return tuple(sorted(SECTIONS, key=lambda section: section.place))

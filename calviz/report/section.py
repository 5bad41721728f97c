"""The definition of a report section, and the registry of sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from calviz.report.blocks import Block
from calviz.report.subject import Subject
from calviz.specs.registry import Registry

#: Fields of `Subject` that hold results of long computations.
NeededWork = Literal["comparison", "learning", "models", "slices"]


@dataclass(frozen=True)
class Section:
    """A registered section.

    Attributes
    ----------
    key : str
        The stable name by which it is requested.
    title : str
        Its heading.
    place : int
        Position: sections appear in ascending order.
    summary : str
        Its content in a few words.
    make : callable
        ``make(subject)`` yields its blocks; a section without blocks is left out. It raises `NotAvailable` with
        the reason if there is nothing to show.
    shared : bool
        Whether it is the same for all parts of a report, and appears once at its end.
    brief : bool
        Whether it is also in the reports of commands that compare, if it is not empty there.
    shows_result : {"comparison", "learning", "models", "slices"} or None
        The field of `Subject` it shows, if that is the result of a computation the user requested.
    """

    key: str
    title: str
    place: int
    summary: str
    make: Callable[[Subject], Iterable[Block]]
    shared: bool = False
    brief: bool = False
    shows_result: NeededWork | None = None


SECTIONS: Registry[Section] = Registry("section")


def brief() -> tuple[str, ...]:
    """Return the keys of the sections of a report on a comparison."""
    return tuple(section.key for section in SECTIONS if section.brief)


def in_order() -> tuple[Section, ...]:
    """Return all sections in the order of a report."""
    return tuple(sorted(SECTIONS, key=lambda section: section.place))

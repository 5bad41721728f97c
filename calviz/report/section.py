"""What a section of a report is, and the registry of sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from calviz.report.blocks import Block
from calviz.report.subject import Subject
from calviz.specs.registry import Registry


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
    """

    key: str
    title: str
    place: int
    summary: str
    make: Callable[[Subject], Iterable[Block]]
    shared: bool = False


SECTIONS: Registry[Section] = Registry("section")


def in_order() -> tuple[Section, ...]:
    """All sections, as they stand in a report."""
    return tuple(sorted(SECTIONS, key=lambda section: section.place))

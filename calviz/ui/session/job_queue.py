"""The queue of jobs: how many of all sessions run at the same time, and which one is next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calviz.core.limits import MAX_JOBS
from calviz.core.watch import Stopped

#: Seconds between two looks at whether a waiting job is still wanted.
LOOK = 0.25


class Turns:
    """A line in which jobs wait; who has fewer at work comes first, then who came first.

    Parameters
    ----------
    places : callable
        How many may work at a time; asked each time.
    """

    def __init__(self, places: Callable[[], int]) -> None:
        self._places = places
        self._changed = threading.Condition()
        self._waiting: list[tuple[str, object]] = []
        self._working: list[tuple[str, object]] = []

    @contextmanager
    def turn(
        self, owner: str, *, stopping: Callable[[], bool], told: Callable[[int], object]
    ) -> Iterator[None]:
        """Wait for a place; the job may work inside this context.

        Parameters
        ----------
        owner : str
            For whom; one owner with many jobs does not keep the others waiting.
        stopping : callable
            Asked while waiting; raises `Stopped` where it says True.
        told : callable
            ``told(ahead)`` with the number of jobs to wait for whenever that may have changed, 0 at last.
        """
        ticket = (owner, object())
        with self._changed:
            self._waiting.append(ticket)
        try:
            self._wait(ticket, stopping, told)
            yield
        finally:
            with self._changed:
                for line in (self._waiting, self._working):
                    if ticket in line:
                        line.remove(ticket)
                self._changed.notify_all()

    def _wait(
        self,
        ticket: tuple[str, object],
        stopping: Callable[[], bool],
        told: Callable[[int], object],
    ) -> None:
        with self._changed:
            while not stopping():
                order = self._order()
                if len(self._working) < self._places() and order[0] == ticket:
                    self._waiting.remove(ticket)
                    self._working.append(ticket)
                    told(0)
                    return
                told(len(self._working) + order.index(ticket))
                self._changed.wait(LOOK)
        raise Stopped

    def _order(self) -> list[tuple[str, object]]:
        """Those who wait, the next one first."""
        at_work = [owner for owner, _ in self._working]
        return sorted(self._waiting, key=lambda ticket: at_work.count(ticket[0]))


#: The one line of this server.
TURNS = Turns(lambda: MAX_JOBS.value)

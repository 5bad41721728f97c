"""The queue of jobs of all sessions: how many run at the same time, and which one is next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calviz.core.limits import MAX_JOBS
from calviz.core.progress import Stopped

#: Seconds between two checks whether a waiting job is still wanted.
LOOK = 0.25


class Turns:
    """A queue for jobs: the owner with the fewest running jobs is served first, and among equals the job that came first.

    Parameters
    ----------
    places : callable
        Number of jobs that may run at the same time; called whenever a job may start.
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
        """Wait for a free place; the job may run inside this context.

        Parameters
        ----------
        owner : str
            Owner of the job; one owner with many jobs does not keep the others waiting.
        stopping : callable
            Called while waiting; `Stopped` is raised once it returns True.
        told : callable
            Called as ``told(ahead)`` with the number of jobs ahead whenever it may have changed; finally with 0.
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
        """Return the waiting jobs, the next one first."""
        at_work = [owner for owner, _ in self._working]
        return sorted(self._waiting, key=lambda ticket: at_work.count(ticket[0]))


#: The queue of this server.
TURNS = Turns(lambda: MAX_JOBS.value)

"""The queue of jobs of all sessions: how many run at the same time, and which one is next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calviz.core.limits import MAX_JOBS
from calviz.core.progress import Stopped

#: Seconds between two checks whether a waiting job is still wanted.
CHECK_EVERY = 0.25


class JobQueue:
    """A queue for jobs: the owner with the fewest running jobs is served first, and among equals the job that came first.

    Parameters
    ----------
    limit : callable
        Number of jobs that may run at the same time; called whenever a job may start.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._waiting: list[tuple[str, object]] = []
        self._running: list[tuple[str, object]] = []

    @contextmanager
    def place(
        self, owner: str, *, stopping: Callable[[], bool], report_ahead: Callable[[int], object]
    ) -> Iterator[None]:
        """Wait for a free place; the job may run inside this context.

        Parameters
        ----------
        owner : str
            Owner of the job; one owner with many jobs does not keep the others waiting.
        stopping : callable
            Called while waiting; `Stopped` is raised once it returns True.
        report_ahead : callable
            Called as ``report_ahead(ahead)`` with the number of jobs ahead whenever it may have changed; finally with 0.
        """
        ticket = (owner, object())
        with self._changed:
            self._waiting.append(ticket)
        try:
            self._wait(ticket, stopping, report_ahead)
            yield
        finally:
            with self._changed:
                for line in (self._waiting, self._running):
                    if ticket in line:
                        line.remove(ticket)
                self._changed.notify_all()

    def _wait(
        self,
        ticket: tuple[str, object],
        stopping: Callable[[], bool],
        report_ahead: Callable[[int], object],
    ) -> None:
        with self._changed:
            while not stopping():
                order = self._order()
                if len(self._running) < self._limit() and order[0] == ticket:
                    self._waiting.remove(ticket)
                    self._running.append(ticket)
                    report_ahead(0)
                    return
                report_ahead(len(self._running) + order.index(ticket))
                self._changed.wait(CHECK_EVERY)
        raise Stopped

    def _order(self) -> list[tuple[str, object]]:
        """Return the waiting jobs, the next one first."""
        owners = [owner for owner, _ in self._running]
        return sorted(self._waiting, key=lambda ticket: owners.count(ticket[0]))


#: The queue of this server.
JOB_QUEUE = JobQueue(lambda: MAX_JOBS.value)

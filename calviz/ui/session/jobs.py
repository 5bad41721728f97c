"""Jobs: long computations beside the page's script, watched from any page, stopped by a button or when the session ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.core.errors import CalvizError
from calviz.core.progress import Stopped, watching
from calviz.ui.session.job_queue import JOB_QUEUE

JobState = Literal["running", "finished", "stopped", "failed"]
StepState = Literal["waiting", "running", "done", "failed"]
Work = Callable[["Job"], Any]

#: Number of the latest ended jobs of one place whose results are kept.
KEPT_JOBS = 4
#: Seconds after which the page of a disconnected browser is treated as closed.
GRACE = 60.0

_JOBS = "calviz.jobs"
_LOG = logging.getLogger("calviz.ui")


@dataclass(frozen=True)
class Step:
    """A part of the work: its state, and what it is doing or has led to."""

    state: StepState
    words: str = ""


class Job:
    """Work in a thread of its own. The work receives the job, reports its progress to it, and returns the result.

    Everything that the work calls in the job's thread can be stopped at its `checkpoint`s. A job that was
    asked to stop may still return a result: what it has finished.

    Parameters
    ----------
    key : tuple of str
        Identifies the data and the settings.
    title : str
        Title of the progress bar.
    work : callable
        ``work(job)``; must not call streamlit.
    is_abandoned : callable
        Whether nobody waits for the result any more.
    owner : str
        Owner of the job, a session; owners take turns in the queue.
    """

    def __init__(
        self,
        key: tuple[str, ...],
        title: str,
        work: Work,
        is_abandoned: Callable[[], bool] = lambda: False,
        owner: str = "",
    ) -> None:
        self.key, self.title, self._owner = key, title, owner
        self.state: JobState = "running"
        self.result: Any = None
        self.error = ""
        self.done, self.total, self.words = 0, 0, ""
        #: Jobs of this server that have to end before this one can start.
        self.ahead = 0
        self._steps: dict[str, Step] = {}
        self._lock = threading.Lock()
        self._stop_request = threading.Event()
        self._is_abandoned = is_abandoned
        self._started_at = time.monotonic()
        self._run_time: float | None = None
        # A daemon thread: a server that is shut down does not wait for it.
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)

    # ------------------------------------------------------------ for the work

    def progress(self, done: int, total: int, words: str = "") -> None:
        """Report the progress."""
        self.done, self.total, self.words = done, total, words

    def step(self, name: str, state: StepState, words: str = "") -> None:
        """Set the state of a part; parts are shown in the order in which they are first named."""
        with self._lock:
            self._steps[name] = Step(state, words)

    def stopping(self) -> bool:
        """Whether the job should end."""
        return self._stop_request.is_set() or self._is_abandoned()

    # ------------------------------------------------------------ for the page

    @property
    def running(self) -> bool:
        """Whether the job has not ended yet."""
        return self.state == "running"

    @property
    def is_stop_requested(self) -> bool:
        """Whether the job was asked to stop."""
        return self._stop_request.is_set()

    @property
    def seconds(self) -> float:
        """Run time so far, or in total once the job has ended."""
        return time.monotonic() - self._started_at if self._run_time is None else self._run_time

    @property
    def steps(self) -> dict[str, Step]:
        """The parts, by name."""
        with self._lock:
            return dict(self._steps)

    def start(self) -> None:
        """Start the job."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to stop; it does so at its next checkpoint."""
        self._stop_request.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the job has ended."""
        self._thread.join(seconds)

    # ------------------------------------------------------------

    def _run(self, work: Work) -> None:
        state: JobState = "finished"
        try:
            with JOB_QUEUE.place(self._owner, stopping=self.stopping, report_ahead=self._set_ahead):
                self._started_at = time.monotonic()
                with watching(self._check):
                    self.result = work(self)
            state = "stopped" if self._stop_request.is_set() else "finished"
        except Stopped:
            state = "stopped"
        except CalvizError as error:
            state, self.error = "failed", str(error)
        except MemoryError:
            state, self.error = "failed", "There is not enough memory for it."
        except Exception:
            _LOG.exception("a job failed")
            state = "failed"
            self.error = (
                "Something went wrong that calviz did not foresee; your data are still loaded. "
                "Please report it with the lines that the server wrote."
            )
        self._run_time = time.monotonic() - self._started_at
        self.state = state

    def _set_ahead(self, ahead: int) -> None:
        self.ahead = ahead

    def _check(self, doing: str) -> None:
        if self.stopping():
            raise Stopped
        if doing:
            self.words = doing


def start(place: str, key: tuple[str, ...], title: str, work: Work) -> Job:
    """Start a job that belongs to a place (a page), and stop the one that still runs there.

    Parameters
    ----------
    place : str
    key, title, work
        See `Job`.
    """
    jobs = _jobs_of(place)
    for other in jobs.values():
        other.stop()
    jobs.pop(key, None)
    for old in list(jobs)[: max(0, len(jobs) + 1 - KEPT_JOBS)]:
        del jobs[old]
    context = get_script_run_ctx()
    owner = context.session_id if context is not None else ""
    job = jobs[key] = Job(key, title, work, _abandonment_check(), owner)
    job.start()
    return job


def find(place: str, key: tuple[str, ...]) -> Job | None:
    """Return the job that was started with this key, as long as its result is kept."""
    return _jobs_of(place).get(key)


def latest(place: str, about: tuple[str, ...] = ()) -> Job | None:
    """Return the job that was started last; None if its key does not begin with `about`."""
    job = next(reversed(_jobs_of(place).values()), None)
    return job if job is not None and job.key[: len(about)] == about else None


def all_jobs() -> dict[str, dict[tuple[str, ...], Job]]:
    """Return all kept jobs of this session, by place."""
    jobs: dict[str, dict[tuple[str, ...], Job]] = st.session_state.setdefault(_JOBS, {})
    return jobs


def _jobs_of(place: str) -> dict[tuple[str, ...], Job]:
    return all_jobs().setdefault(place, {})


def _abandonment_check() -> Callable[[], bool]:
    """Return a function that says whether the browser has left this session for good.

    It may be called often and from any thread. A short loss of connection must not end the work, so the
    jobs are not tied to a session's caches, which are emptied at once.
    """
    context = get_script_run_ctx()
    if context is None or not runtime.exists():
        return lambda: False
    server, session = runtime.get_instance(), context.session_id
    checked_at = time.monotonic()
    away_since: float | None = None

    def is_abandoned() -> bool:
        nonlocal checked_at, away_since
        now = time.monotonic()
        if now - checked_at > 1:
            checked_at = now
            if server.is_active_session(session):
                away_since = None
            elif away_since is None:
                away_since = now
        away = away_since is not None and now - away_since > GRACE
        return away or server.state.name in ("STOPPING", "STOPPED")

    return is_abandoned

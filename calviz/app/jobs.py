"""Long work beside the page's script: jobs, the queue of the server, their progress on a page, and the end of a session."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import streamlit as st
from streamlit import runtime
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from calviz.app.session import md
from calviz.core.blocks import Stopped, watching
from calviz.core.errors import MAX_JOBS, CalvizError
from calviz.core.words import capitalised

JobState = Literal["running", "finished", "stopped", "failed"]
Work = Callable[["Job"], Any]

#: Number of the latest ended jobs of one place whose results are kept.
KEPT_JOBS = 4
#: Seconds after which the page of a disconnected browser is treated as closed.
GRACE = 60.0

_LOG = logging.getLogger("calviz.app")


@dataclass(eq=False)
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

    Attributes
    ----------
    ahead : int
        Jobs of this server that have to end before this one can start.
    words : str
        What it is doing.
    within : float
        How far it is within a step, 0 to 1: each count that its words say ("596 of 999") goes on through what is left.
    """

    key: tuple[str, ...]
    title: str
    work: Work
    is_abandoned: Callable[[], bool] = lambda: False
    owner: str = ""
    state: JobState = "running"
    result: Any = None
    error: str = ""
    ahead: int = 0

    def __post_init__(self) -> None:
        self.progress(0, 0)
        self.stop_request = threading.Event()
        self._started_at = time.monotonic()
        self._run_time: float | None = None
        # A daemon thread: a server that is shut down does not wait for it.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def progress(self, done: int, total: int, words: str = "") -> None:
        """Report the progress."""
        self.done, self.total, self.words = done, total, words
        self.within = self._counted = 0.0

    def doing(self, words: str) -> None:
        """Say what the job is doing."""
        self.words = words

    def stopping(self) -> bool:
        """Whether the job should end."""
        return self.stop_request.is_set() or self.is_abandoned()

    @property
    def running(self) -> bool:
        """Whether the job has not ended yet."""
        return self.state == "running"

    @property
    def seconds(self) -> float:
        """Run time so far, or in total once the job has ended."""
        return time.monotonic() - self._started_at if self._run_time is None else self._run_time

    def start(self) -> None:
        """Start the job."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to stop; it does so at its next checkpoint."""
        self.stop_request.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the job has ended."""
        self._thread.join(seconds)

    def _run(self) -> None:
        state: JobState = "finished"
        try:
            with JOB_QUEUE.place(self.owner, stopping=self.stopping, report_ahead=self._set_ahead):
                self._started_at = time.monotonic()
                with watching(self._check):
                    self.result = self.work(self)
            state = "stopped" if self.stop_request.is_set() else "finished"
        except Stopped:
            state = "stopped"
        except CalvizError as error:
            state, self.error = "failed", str(error)
        except MemoryError:
            state, self.error = "failed", "There is not enough memory for it."
        except Exception:
            if (
                threading.main_thread().is_alive()
            ):  # a server that ends gives its threads no more work
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
            self.words, before = doing, self._counted
            found = re.search(r"(\d+) of (\d+)", doing.replace(",", ""))
            self._counted = min(1.0, int(found[1]) / max(1, int(found[2]))) if found else 0.0
            self.within += (1 - self.within) * max(0.0, self._counted - before)


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
    return st.session_state.setdefault("calviz.jobs", {})


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


# ---- Queue


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
            with self._changed:
                while True:
                    if stopping():
                        raise Stopped
                    order = self._order()
                    if len(self._running) < self._limit() and order[0] == ticket:
                        break
                    report_ahead(len(self._running) + order.index(ticket))
                    # Seconds between two checks whether a waiting job is still wanted.
                    self._changed.wait(0.25)
                self._waiting.remove(ticket)
                self._running.append(ticket)
                report_ahead(0)
            yield
        finally:
            with self._changed:
                for line in (self._waiting, self._running):
                    if ticket in line:
                        line.remove(ticket)
                self._changed.notify_all()

    def _order(self) -> list[tuple[str, object]]:
        """Return the waiting jobs, the next one first."""
        owners = [owner for owner, _ in self._running]
        return sorted(self._waiting, key=lambda ticket: owners.count(ticket[0]))


#: The queue of this server.
JOB_QUEUE = JobQueue(lambda: MAX_JOBS.value)


# ---- On a page


class WorkStatus(NamedTuple):
    """The state of the work, and its result: None if there is none (yet); stopped work may have one."""

    state: Literal["idle", "running", "stopped", "failed", "finished"]
    result: Any = None


@dataclass(frozen=True, eq=False)
class LongWork:
    """A piece of long work that a page can start, with its button and what the page says in each state.

    Parameters
    ----------
    place : str
        Where it belongs; a place runs one job at a time.
    key : tuple of str
        Identifies everything that the result depends on.
    title : str
        Title of the progress bar.
    prepare : callable
        ``prepare()`` is called on the page when the work starts, and may use streamlit. It returns ``work(job)``, which runs
        beside the page and may not use it.
    button : str
        Label of the button that starts the work; its first word is the verb, which starts it again.
    icon, button_key : str, optional
    about : tuple of str
        The beginning of the key, which identifies the data. If there is no job for the key, the latest result for the same data
        is shown and marked as out of date.
    answers : callable
        Whether a result answers what is asked for now; if not, the work is offered again.
    always : bool
        Whether the button is shown even when there is a result; it is then drawn above it.
    possible : bool
        Whether there is anything to do.
    idle : str
        What the page says before the work is started.
    stopped : callable
        ``stopped(job)``: what stopped work has led to.
    out_of_date : str
        What the page says when the result belongs to earlier choices, or lacks something.
    """

    place: str
    key: tuple[str, ...]
    title: str
    prepare: Callable[[], Work]
    button: str = "Compute again"
    icon: str | None = None
    button_key: str | None = None
    about: tuple[str, ...] = ()
    answers: Callable[[Any], bool] = lambda result: True
    always: bool = False
    possible: bool = True
    idle: str = ""
    stopped: Callable[[Job], str] = lambda job: (
        "Stopped: what was finished by then is shown."
        if job.result is not None
        else "Stopped before there was a result."
    )
    out_of_date: str = (
        "The results below belong to other choices. Start again to bring them up to date."
    )

    def start(self) -> Job:
        """Start the work, and stop the job that still runs in this place."""
        return start(self.place, self.key, self.title, self.prepare())

    @property
    def is_first(self) -> bool:
        """Whether nothing has been started in this place for these data yet."""
        return latest(self.place, self.about) is None

    def draw(
        self, *, at_once: bool = False, patience: float = 0.0, primary: bool = True
    ) -> WorkStatus:
        """Draw the state of the work, with buttons to start and stop it, and return its state and result.

        Parameters
        ----------
        at_once : bool
            Whether the work starts by itself.
        patience : float
            Seconds to wait for work that started by itself before its progress is shown.
        primary : bool
            Whether starting it may be the primary action of the page.
        """
        job = find(self.place, self.key)
        if job is None and at_once:
            job = self.start()
            if patience:
                with st.spinner(f"{md(self.title)} …"):
                    job.wait(patience)
        is_out_of_date = job is None
        if job is None and self.about:
            job = latest(self.place, self.about)
        state = "idle" if job is None else job.state  # once: a job may end at any time
        running = state == "running"
        status = WorkStatus(state, None if job is None or running else job.result)
        if self.always:
            self._button(
                possible=self.possible and (is_out_of_date or not running),
                primary=primary and (is_out_of_date or status.result is None),
                again=status.result is not None,
            )
        if job is None:
            if self.idle:
                st.caption(self.idle)
        elif running or status.state == "failed":
            draw_job(job)
        elif is_out_of_date:
            st.info(self.out_of_date, icon=":material/update:")
        elif status.result is not None and not self.answers(status.result):
            st.caption(self.out_of_date)
            is_out_of_date = True
        elif status.state == "stopped":
            show = st.info if status.result is None else st.warning
            show(self.stopped(job), icon=":material/stop:")
        if (is_out_of_date or status.state in ("idle", "stopped", "failed")) and not self.always:
            self._button(possible=self.possible)
        return status

    def _button(self, *, possible: bool, primary: bool = True, again: bool = False) -> None:
        if st.button(
            f"{self.button.split()[0]} again" if again else self.button,
            type="primary" if primary else "secondary",
            icon=self.icon,
            key=self.button_key,
            disabled=not possible,
        ):
            self.start()
            st.rerun()


#: Seconds between two updates of the view.
REDRAW_EVERY = 0.5


def draw_job(job: Job) -> None:
    """Draw a running job and update the view until it has ended; then run the page once more.

    For an ended job, only an error is shown: the page shows the result.
    """
    if job.running:
        st.fragment(_watch, run_every=REDRAW_EVERY)(job)
    elif job.state == "failed":
        st.error(md(job.error, 2_000), icon=":material/error:")


def _watch(job: Job) -> None:
    if not job.running:
        st.rerun(scope="app")
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            done = f"{job.done:,} of {job.total:,} · " if job.done < job.total else ""
            st.markdown(f"**{md(job.title)}** {done}{job.seconds:.0f} s", width="stretch")
            st.button(
                "Stopping …" if job.stop_request.is_set() else "Stop",
                icon=":material/stop_circle:",
                disabled=job.stop_request.is_set(),
                on_click=job.stop,
                key="calviz.job.stop",
                help="What is finished by then is kept.",
            )
        if job.ahead:
            st.caption(waiting_words(job.ahead))
            return
        # What follows the last step is one more: the bar is not full before the end.
        st.progress((job.done + job.within) / (job.total + 1) if job.total else 0.0)
        st.caption(md(capitalised(job.words), 300))


def waiting_words(ahead: int) -> str:
    """Say why a job has not started."""
    others = f"{ahead:,} other computation{'s' if ahead > 1 else ''}"
    return f"Waiting for {others} on this server to end; this one then starts by itself."


# ---- Sessions that ended

#: Seconds within which a session can be resumed, by a telephone that slept as well; streamlit's own limit (`server.disconnectedSessionTTL`) is longer.
RESUMABLE_FOR = 600.0
#: Seconds between two checks.
SESSIONS_CHECK_EVERY = 15.0


class EndedSessions:
    """Empties what belongs to sessions that have been disconnected for too long, and closes them.

    Streamlit itself keeps a session, with all that its callbacks and fragments hold, until the next visitor leaves.

    Parameters
    ----------
    is_connected : callable
        ``is_connected(session)``: whether its browser is connected.
    close : callable
        ``close(session)`` makes streamlit forget it.
    """

    def __init__(self, is_connected: Callable[[str], bool], close: Callable[[str], object]) -> None:
        self._is_connected, self._close = is_connected, close
        self._lock = threading.Lock()
        self._contents: dict[str, tuple[Any, ...]] = {}
        self._away_since: dict[str, float] = {}

    def remember(self, session: str, *contents: Any) -> None:
        """Register what a session holds, each with a method `clear`; a later call replaces an earlier one."""
        with self._lock:
            self._contents[session] = contents
            self._away_since.pop(session, None)

    def release_ended(self, now: float) -> bool:
        """Release what nobody can return to; return whether there was any."""
        with self._lock:
            before = len(self._contents)
            for session in list(self._contents):
                if self._is_connected(session):
                    self._away_since.pop(session, None)
                elif now - self._away_since.setdefault(session, now) > RESUMABLE_FOR:
                    for part in self._contents.pop(session):
                        part.clear()
                    del self._away_since[session]
                    self._close(session)
            return len(self._contents) < before


#: Option of glibc's mallopt, and most pools of free memory: by default each of 8 threads per core keeps its own.
_ARENAS = (-8, 2)


async def release_ended_sessions() -> None:
    """Release at intervals what ended sessions hold, until the server ends; in its own thread, where sessions are closed."""
    _of_c_library("mallopt", *_ARENAS)
    while True:
        await asyncio.sleep(SESSIONS_CHECK_EVERY)
        if runtime.exists() and _of_this_server().release_ended(time.monotonic()):
            await asyncio.to_thread(return_free_memory)


def return_free_memory() -> None:
    """Give free memory back to the operating system; its C library would keep it for the next visitor."""
    gc.collect()
    _of_c_library("malloc_trim", 0)


def _of_c_library(function: str, *arguments: int) -> None:
    """Call a function that not every C library has."""
    with suppress(OSError, AttributeError, TypeError):
        getattr(ctypes.CDLL(None), function)(*arguments)


@cache
def _of_this_server() -> EndedSessions:
    server = runtime.get_instance()
    return EndedSessions(server.is_active_session, server.close_session)


def empty_when_session_ends(*contents: Any) -> None:
    """Register what this session holds, to be emptied when nobody can return to it. Does nothing outside a server."""
    context = get_script_run_ctx()
    if context is not None and runtime.exists() and type(runtime.get_instance()) is Runtime:
        _of_this_server().remember(context.session_id, *contents)

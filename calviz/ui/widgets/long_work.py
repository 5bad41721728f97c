"""Long work on a page: a start button, progress, a stop button, and the result or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from calviz.ui.session import jobs
from calviz.ui.session.jobs import Job, Work
from calviz.ui.widgets import job_view
from calviz.ui.widgets.escape import md


@dataclass(frozen=True, eq=False)
class LongWork:
    """A piece of long work that a page can start.

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
    about : tuple of str
        The beginning of the key, which identifies the data. If there is no job for the key, the latest result for the same data
        is shown and marked as out of date.
    answers : callable
        Whether a result answers what is asked for now; if not, the work is offered again.
    """

    place: str
    key: tuple[str, ...]
    title: str
    prepare: Callable[[], Work]
    about: tuple[str, ...] = ()
    answers: Callable[[Any], bool] = lambda result: True

    def start(self) -> Job:
        """Start the work, and stop the job that still runs in this place."""
        return jobs.start(self.place, self.key, self.title, self.prepare())

    @property
    def is_first(self) -> bool:
        """Whether nothing has been started in this place yet."""
        return jobs.latest(self.place) is None


@dataclass(frozen=True)
class Button:
    """The button that starts the work, or starts it again.

    Attributes
    ----------
    label : str
    icon : str, optional
    key : str, optional
    always : bool
        Whether it is shown even when there is a result; it is then drawn above it.
    possible : bool
        Whether there is anything to do.
    """

    label: str
    icon: str | None = None
    key: str | None = None
    always: bool = False
    possible: bool = True


@dataclass(frozen=True)
class StateWords:
    """What a page says in each state of its work.

    Attributes
    ----------
    idle : str
        Before the work is started.
    stopped : callable
        ``stopped(job)``: what stopped work has led to.
    out_of_date : str
        When the result belongs to earlier choices, or lacks something.
    """

    idle: str = ""
    stopped: Callable[[Job], str] = lambda job: (
        "Stopped: what was finished by then is shown."
        if job.result is not None
        else "Stopped before there was a result."
    )
    out_of_date: str = (
        "The results below belong to other choices. Start again to bring them up to date."
    )


WorkState = Literal["idle", "running", "stopped", "failed", "finished"]


@dataclass(frozen=True)
class WorkStatus:
    """The state of the work, and its result.

    Attributes
    ----------
    state : {"idle", "running", "stopped", "failed", "finished"}
    result : object
        None if there is none (yet); stopped work may have one.
    """

    state: WorkState
    result: Any = None

    @classmethod
    def of(cls, job: Job | None) -> WorkStatus:
        """Return the state of a job; None is one that was not started."""
        if job is None:
            return cls("idle")
        state = job.state
        return cls(state, None if state == "running" else job.result)


def draw(
    work: LongWork,
    button: Button,
    words: StateWords = StateWords(),
    *,
    at_once: bool = False,
    patience: float = 0.0,
) -> WorkStatus:
    """Draw the state of the work, with buttons to start and stop it, and return its state and result.

    Parameters
    ----------
    work : LongWork
    button : Button
    words : StateWords
    at_once : bool
        Whether the work starts by itself.
    patience : float
        Seconds to wait for work that started by itself before its progress is shown.
    """
    job = jobs.find(work.place, work.key)
    if job is None and at_once:
        job = work.start()
        if patience:
            with st.spinner(f"{md(work.title)} …"):
                job.wait(patience)
    is_out_of_date = job is None
    if job is None and work.about:
        job = jobs.latest(work.place, work.about)
    status = WorkStatus.of(job)  # once: a job may end at any time
    running = status.state == "running"
    if button.always:
        _button(work, button, disabled=running and not is_out_of_date)
    if job is None:
        if words.idle:
            st.caption(words.idle)
    elif running or status.state == "failed":
        job_view.show(job)
    elif is_out_of_date:
        st.info(words.out_of_date, icon=":material/update:")
    elif status.result is not None and not work.answers(status.result):
        st.caption(words.out_of_date)
        is_out_of_date = True
    elif status.state == "stopped":
        show = st.info if status.result is None else st.warning
        show(words.stopped(job), icon=":material/stop:")
    is_offered = is_out_of_date or status.state in ("idle", "stopped", "failed")
    if is_offered and not button.always:
        _button(work, button)
    return status


def _button(work: LongWork, button: Button, *, disabled: bool = False) -> None:
    if st.button(
        button.label,
        type="primary",
        icon=button.icon,
        key=button.key,
        disabled=disabled or not button.possible,
    ):
        work.start()
        st.rerun()

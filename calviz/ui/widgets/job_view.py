"""The view of a job: a progress bar, its parts, and a button to stop it."""

from __future__ import annotations

import streamlit as st

from calviz.text.words import capitalised
from calviz.ui.session.jobs import Job, StepState
from calviz.ui.widgets.escape import md

#: Seconds between two updates of the view.
EVERY = 0.5

_ICONS: dict[StepState, str] = {
    "waiting": ":material/schedule:",
    "running": ":material/hourglass_top:",
    "done": ":material/check:",
    "failed": ":material/close:",
}


def show(job: Job) -> None:
    """Draw a running job and update the view until it has ended; then run the page once more.

    For an ended job, only an error is shown: the page shows the result.
    """
    if job.running:
        st.fragment(_watch, run_every=EVERY)(job)
    elif job.state == "failed":
        st.error(md(job.error, 2_000), icon=":material/error:")


def _watch(job: Job) -> None:
    if not job.running:
        st.rerun(scope="app")
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{md(job.title)}** {_so_far(job)}", width="stretch")
            st.button(
                "Stopping …" if job.is_stop_requested else "Stop",
                icon=":material/stop_circle:",
                disabled=job.is_stop_requested,
                on_click=job.stop,
                key="calviz.job.stop",
                help="What is finished by then is kept.",
            )
        if job.ahead:
            st.caption(waiting_words(job.ahead))
            return
        st.progress(job.done / job.total if job.total else 0.0)
        for name, step in job.steps.items():
            words = f" · {md(step.words, 300)}" if step.words else ""
            colour = ":gray[{}]" if step.state == "waiting" else "{}"
            st.markdown(colour.format(f"{_ICONS[step.state]} {md(name)}{words}"))
        if job.words:
            st.caption(md(capitalised(job.words)))


def waiting_words(ahead: int) -> str:
    """Say why a job has not started."""
    others = f"{ahead:,} other computation{'s' if ahead > 1 else ''}"
    return f"Waiting for {others} on this server to end; this one then starts by itself."


def _so_far(job: Job) -> str:
    parts = [f"{job.done:,} of {job.total:,}"] if job.total else []
    return " · ".join([*parts, f"{job.seconds:.0f} s"])

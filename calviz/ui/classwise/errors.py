"""The errors by class: at once where that is quick, as work that can be watched and stopped where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from calviz.core.errors import NotAvailable
from calviz.core.predictions import Dataset
from calviz.figures import ClassBars
from calviz.figures.class_bars import Mode
from calviz.numerics.error_bars import RESAMPLES
from calviz.ui import cached, job_view, jobs
from calviz.ui.jobs import Job
from calviz.ui.settings import Settings
from calviz.ui.text import rows

PLACE = "classwise"
#: Rows, and rows times classes, from which on it takes seconds.
MANY_ROWS, MANY_ENTRIES = 20_000, 10_000_000
#: Rows times classes from which on intervals come from so many resamples.
LARGE, FEW = 20_000_000, 200
#: Seconds to wait before a bar is drawn that may be gone at once.
PATIENCE = 0.3
MODES: dict[Mode, str] = {
    "predicted-class": "rows predicted as each class",
    "one-vs-rest": "each class against the rest",
    "true-class": "rows of each true class",
}


class ClassErrors(NamedTuple):
    """All views of the classes that the data allow; one-vs-rest needs the probabilities of all classes."""

    true: ClassBars
    predicted: ClassBars | None
    rest: ClassBars | None


def find(settings: Settings) -> ClassErrors | None:
    """All views, or None: then what is being done, or why there is nothing, is on screen."""
    data = cached.data(settings)
    quick = data.n < MANY_ROWS and data.n * max(1, data.n_classes) < MANY_ENTRIES
    if quick or data.labels is None:  # without them there is only a reason
        with st.spinner(f"Resampling {rows(data.n)}, class by class …", show_time=True):
            return _at_once(settings.rows_key, settings)
    job = jobs.find(PLACE, settings.rows_key)
    if job is None:
        job = _start(settings, data)
        job.wait(PATIENCE)
    if job.running or job.state == "failed":
        job_view.show(job)
    elif job.result is None:
        st.info("Stopped before the errors of the classes were known.", icon=":material/stop:")
        if st.button("Compute them", icon=":material/play_arrow:", key="calviz.classes.again"):
            _start(settings, data)
            st.rerun()
    found: ClassErrors | None = job.result
    return found


@st.cache_resource(scope="session", max_entries=16, show_spinner=False)
def _at_once(key: tuple[str, ...], _settings: Settings) -> ClassErrors:
    return _compute(cached.data(_settings), RESAMPLES)


def _start(settings: Settings, data: Dataset) -> Job:
    resamples = FEW if data.n * max(1, data.n_classes) > LARGE else RESAMPLES

    def work(job: Job) -> ClassErrors:
        for words in MODES.values():
            job.step(words, "waiting")
        return _compute(data, resamples, job.step)

    return jobs.start(PLACE, settings.rows_key, f"Resampling {rows(data.n)}, class by class", work)


def _compute(
    data: Dataset, resamples: int, tell: Callable[..., object] = lambda *_: None
) -> ClassErrors:
    found: dict[Mode, ClassBars] = {}
    for mode, words in MODES.items():
        tell(words, "running")
        try:
            found[mode] = ClassBars.compute(data, mode=mode, resamples=resamples)
            tell(words, "done")
        except NotAvailable as error:
            if mode == "true-class":
                raise
            tell(words, "failed", str(error))
    return ClassErrors(found["true-class"], found.get("predicted-class"), found.get("one-vs-rest"))

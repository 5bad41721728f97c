"""The work that leads to a comparison, and what the link says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import streamlit as st

from calviz.comparison import carry_out
from calviz.core.watch import Stopped
from calviz.results.comparison import Comparison, MethodResult
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import seconds_text
from calviz.ui.recalibrate import figures
from calviz.ui.recalibrate.outcome import Outcome
from calviz.ui.recalibrate.plan import Choice
from calviz.ui.session.jobs import Job

#: Bytes of calibrated rows that are kept; more are drawn before they go, and for other pictures the maps are applied again.
KEPT_BYTES = 400_000_000
#: Rows times classes up to which a link may start a comparison.
AT_ONCE = 5_000_000

_COMPARED = "compared"


def work(choice: Choice) -> Callable[[Job], Outcome]:
    """The work of a job; must not need streamlit, so the data are fetched here."""
    data, whole, settings = choice.data, choice.whole, choice.settings
    labels = {spec.key: spec.label for spec in choice.plan.specs}

    def run(job: Job) -> Outcome:
        for label in labels.values():
            job.step(label, "waiting")

        def progress(result: MethodResult, done: int, total: int) -> None:
            if result.ok:
                job.step(result.label, "done", f"fitted in {seconds_text(result.fit_seconds)}")
            else:
                job.step(result.label, "failed", result.reason or "")
            job.progress(done, total, "" if done < total else "resampling the differences")

        comparison = carry_out(
            choice.plan,
            data,
            progress=progress,
            activity=lambda key, doing: job.step(labels[key], "running", doing),
            stop=job.stopping,
        )
        if job.stopping() and not comparison[UNCALIBRATED].ok:
            raise Stopped  # nothing to compare with
        outcome = Outcome(choice.key, data, whole, choice.rows, settings.reduction, comparison)
        if sum(map(_bytes, comparison)) <= KEPT_BYTES:
            return outcome
        return replace(
            outcome, comparison=_slim(comparison), drawn=figures.all_at_once(outcome, settings, job)
        )

    return run


def stopped(job: Job) -> str:
    """What a stopped comparison still shows, in one sentence."""
    if job.result is None:
        return "Stopped before a method was judged."
    return (
        "Stopped: what was finished by then is below, the intervals of its differences from fewer "
        "resamples."
    )


def put_in_link() -> None:
    """Let the link say that methods were compared."""
    if _COMPARED not in st.query_params:
        st.query_params[_COMPARED] = "yes"


def is_in_link(choice: Choice) -> bool:
    """Whether a comparison starts by itself: the link says so, and it is quick."""
    cells = choice.data.n * max(1, choice.data.n_classes)
    return _COMPARED in st.query_params and bool(choice.methods) and cells <= AT_ONCE


def _slim(found: Comparison) -> Comparison:
    """Without the calibrated rows."""
    return replace(
        found,
        methods={
            m.key: replace(m, calibrated=None) if m.recalibrator is not None else m for m in found
        },
    )


def _bytes(result: MethodResult) -> int:
    probs = getattr(result.calibrated, "probs", np.empty(0))
    return int(probs.nbytes)

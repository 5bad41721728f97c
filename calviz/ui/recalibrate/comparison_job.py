"""The work of a comparison, and its mark in the link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import streamlit as st

from calviz.comparison import carry_out
from calviz.core.progress import Stopped
from calviz.results.comparison import Comparison, MethodResult
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import seconds_text
from calviz.ui.recalibrate import figures_computed
from calviz.ui.recalibrate.outcome import ComparisonOutcome
from calviz.ui.recalibrate.plan_choice import PlanChoice
from calviz.ui.session.jobs import Job

PLACE = "recalibrate"
#: Bytes of calibrated rows that are kept. Beyond that, figures are drawn before the rows are dropped, and other figures apply the
#: maps again.
KEPT_BYTES = 400_000_000
#: Rows times classes up to which a link may start a comparison.
AT_ONCE = 5_000_000

_COMPARED = "compared"


def work(choice: PlanChoice) -> Callable[[Job], ComparisonOutcome]:
    """Return the work of a job, which must not use streamlit; the data are therefore fetched here."""
    data, whole, settings = choice.data, choice.whole, choice.settings
    labels = {spec.key: spec.label for spec in choice.plan.specs}

    def run(job: Job) -> ComparisonOutcome:
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
        outcome = ComparisonOutcome(
            choice.key, data, whole, choice.rows, settings.reduction, comparison
        )
        if sum(map(_bytes, comparison)) <= KEPT_BYTES:
            return outcome
        return replace(
            outcome,
            comparison=_without_rows(comparison),
            figures=figures_computed.all_at_once(outcome, settings, job),
        )

    return run


def stopped(job: Job) -> str:
    """Say in one sentence what a stopped comparison still shows."""
    if job.result is None:
        return "Stopped before a method was judged."
    return (
        "Stopped: what was finished by then is below, the intervals of its differences from fewer "
        "resamples."
    )


def put_in_link() -> None:
    """Mark in the link that methods were compared."""
    if _COMPARED not in st.query_params:
        st.query_params[_COMPARED] = "yes"


def starts_at_once(choice: PlanChoice) -> bool:
    """Whether a comparison starts by itself: the link asks for it, and it is quick."""
    cells = choice.data.n * max(1, choice.data.n_classes)
    return _COMPARED in st.query_params and bool(choice.methods) and cells <= AT_ONCE


def _without_rows(comparison: Comparison) -> Comparison:
    """Return the comparison without the calibrated rows."""
    return replace(
        comparison,
        methods={
            m.key: replace(m, calibrated=None) if m.recalibrator is not None else m
            for m in comparison
        },
    )


def _bytes(result: MethodResult) -> int:
    probs = getattr(result.calibrated, "probs", np.empty(0))
    return int(probs.nbytes)

"""A comparison as the page keeps it, and the work that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from calviz.analysis import evaluate
from calviz.comparison import Advice, advise, compare
from calviz.comparison.compare import chosen
from calviz.comparison.fitting import UNCALIBRATED, scores_of, with_probabilities
from calviz.comparison.rows import Rows
from calviz.core.comparison import Comparison, MethodResult
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import MetricResult
from calviz.core.watch import Stopped, watching
from calviz.figures import CalibrationMap, ClassBars, Cumulative, Reliability, RiskCoverage
from calviz.ui.jobs import Job
from calviz.ui.recalibrate.plan import Plan
from calviz.ui.settings import Settings

#: What is always measured; the first four are what differences and advice go by.
METRICS = ("accuracy", "nll", "brier", "ece", "ks")
#: Bytes of calibrated rows that are kept; more are drawn before they go, and for other pictures the maps are applied again.
KEPT_BYTES = 400_000_000
#: Rows times classes up to which a link may start a comparison.
AT_ONCE = 5_000_000

_COMPARED = "compared"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of a plan.

    Attributes
    ----------
    key : tuple of str
        Names the plan, for caches.
    data : Predictions or ConfidencePredictions
        The rows that fitted and those that judged.
    whole : Predictions or ConfidencePredictions
        The rows of all splits.
    rows : Rows
        Of `data`.
    reduction : Reduction
    comparison : Comparison
    drawn : mapping
        Pictures, by method, kind and how, that were computed while all calibrated rows were there.
    """

    key: tuple[str, ...]
    data: Dataset
    whole: Dataset
    rows: Rows
    reduction: Reduction
    comparison: Comparison
    drawn: Mapping[tuple[str, str, str], Any] = field(default_factory=dict)

    @property
    def fitted(self) -> tuple[MethodResult, ...]:
        """The methods that were fitted, the uncalibrated model first."""
        return tuple(m for m in self.comparison if m.ok)

    def calibrated(self, method: str) -> Dataset:
        """The evaluation rows after a method."""
        found = self.comparison[method]
        if found.calibrated is not None:
            return found.calibrated
        return _applied(self.key, method, self)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _applied(key: tuple[str, ...], method: str, _outcome: Outcome) -> Dataset:
    judged = _outcome.rows.pairs[0][1]
    scores, _ = scores_of(_outcome.data)
    probs = _outcome.comparison[method].recalibrator.transform(scores[judged])
    return with_probabilities(_outcome.data.take(judged), probs)


def work(plan: Plan) -> Callable[[Job], Outcome]:
    """The work of a job; must not need streamlit, so the data are fetched here."""
    data, whole, settings = plan.data, plan.whole, plan.settings
    specs = chosen(plan.methods)
    labels = {spec.key: spec.label for spec in specs}

    def run(job: Job) -> Outcome:
        for label in labels.values():
            job.step(label, "waiting")

        def progress(result: MethodResult, done: int, total: int) -> None:
            if result.ok:
                job.step(result.label, "done", f"fitted in {in_words(result.fit_seconds)}")
            else:
                job.step(result.label, "failed", result.reason or "")
            job.progress(done, total, "" if done < total else "resampling the differences")

        found = compare(
            data,
            plan.methods,
            **plan.fit_rows.how,
            metrics=METRICS,
            reduction=settings.reduction,
            options=plan.options,
            refits=plan.refits,
            progress=progress,
            activity=lambda key, doing: job.step(labels[key], "running", doing),
            stop=job.stopping,
        )
        if job.stopping() and not found[UNCALIBRATED].ok:
            raise Stopped  # nothing to compare with
        outcome = Outcome(plan.key, data, whole, plan.rows, settings.reduction, found)
        if sum(map(_bytes, found)) <= KEPT_BYTES:
            return outcome
        return replace(outcome, comparison=_slim(found), drawn=_drawn(outcome, settings, job))

    return run


def _drawn(outcome: Outcome, settings: Settings, job: Job) -> dict[tuple[str, str, str], Any]:
    """The pictures of all methods, as far as nobody asks to stop."""
    found: dict[tuple[str, str, str], Any] = {}
    count = len(outcome.comparison.methods)
    with watching(None):  # the comparison is there: a stop must not lose it
        for m in outcome.fitted:
            if job.stopping():
                break
            job.progress(count, count, f"drawing: {m.label}")
            found[m.key, "reliability", _bins(settings)] = _reliability(outcome, m.key, settings)
            if m.key != UNCALIBRATED:
                found[m.key, "map", str(settings.bins)] = _map(outcome, m.key, settings.bins)
    return found


def put_in_link() -> None:
    """Let the link say that methods were compared."""
    if _COMPARED not in st.query_params:
        st.query_params[_COMPARED] = "yes"


def is_in_link(plan: Plan) -> bool:
    """Whether a comparison is to begin by itself: the link says so, and it does not take long."""
    cells = plan.data.n * max(1, plan.data.n_classes)
    return _COMPARED in st.query_params and bool(plan.methods) and cells <= AT_ONCE


def in_words(value: float) -> str:
    """Seconds, short."""
    return f"{value:.1f} s" if value >= 0.1 else f"{1_000 * value:.0f} ms"


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


@st.cache_resource(scope="session", max_entries=256, show_spinner=False)
def _metric(key: tuple[str, ...], method: str, metric: str, _outcome: Outcome) -> MetricResult:
    found = evaluate(_outcome.calibrated(method), [metric], reduction=_outcome.reduction)
    return found.metrics[metric]


def metric(outcome: Outcome, method: str, key: str) -> MetricResult:
    """A metric of the evaluation rows after a method, also one that the comparison left out."""
    found = outcome.comparison[method].metrics.get(key)
    return found if found is not None else _metric(outcome.key, method, key, outcome)


def advice(outcome: Outcome, *, keep_classes: bool) -> Advice:
    """What to take, and why."""
    return advise(outcome.comparison, outcome.data, keep_classes=keep_classes)


@st.cache_resource(scope="session", max_entries=96, show_spinner=False)
def _kept(key: tuple[str, ...], method: str, kind: str, how: str, _compute: Any) -> Any:
    return _compute()


def _picture(outcome: Outcome, method: str, kind: str, how: str, compute: Callable[[], Any]) -> Any:
    at_hand = outcome.drawn.get((method, kind, how))
    return at_hand if at_hand is not None else _kept(outcome.key, method, kind, how, compute)


def _bins(settings: Settings) -> str:
    return f"{settings.bins} {settings.scheme}"


def _reliability(outcome: Outcome, method: str, settings: Settings) -> Reliability:
    return Reliability.compute(
        outcome.calibrated(method),
        reduction=outcome.reduction,
        bins=settings.bins,
        scheme=settings.scheme,
        band=False,
    )


def _map(outcome: Outcome, method: str, bins: int) -> CalibrationMap:
    return CalibrationMap.compute(
        outcome.calibrated(UNCALIBRATED),
        outcome.calibrated(method),
        name=outcome.comparison[method].label,
        reduction=outcome.reduction,
        bins=bins,
    )


def reliability(outcome: Outcome, method: str, settings: Settings) -> Reliability:
    """The reliability diagram after a method."""
    return _picture(  # type: ignore[no-any-return]
        outcome,
        method,
        "reliability",
        _bins(settings),
        lambda: _reliability(outcome, method, settings),
    )


def calibration_map(outcome: Outcome, method: str, bins: int) -> CalibrationMap:
    """What a method does to the scores."""
    return _picture(  # type: ignore[no-any-return]
        outcome, method, "map", str(bins), lambda: _map(outcome, method, bins)
    )


def cumulative(outcome: Outcome, method: str) -> Cumulative:
    """The cumulative plot after a method."""
    return _picture(  # type: ignore[no-any-return]
        outcome,
        method,
        "cumulative",
        "",
        lambda: Cumulative.compute(outcome.calibrated(method), reduction=outcome.reduction),
    )


def class_bars(outcome: Outcome, method: str) -> ClassBars:
    """The errors by class after a method."""
    return _picture(  # type: ignore[no-any-return]
        outcome,
        method,
        "classes",
        "",
        lambda: ClassBars.compute(outcome.calibrated(method), resamples=200),
    )


def risk_coverage(outcome: Outcome, method: str) -> RiskCoverage:
    """The risk-coverage curve after a method."""
    return _picture(  # type: ignore[no-any-return]
        outcome,
        method,
        "risk",
        "",
        lambda: RiskCoverage.compute(outcome.calibrated(method)),
    )

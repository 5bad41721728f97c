"""A comparison as the page keeps it, and the work that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import streamlit as st

from calviz.analysis import evaluate
from calviz.comparison import carry_out
from calviz.comparison.fitting import calibrated_by, scores_of
from calviz.comparison.rows import Rows
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.watch import Stopped, watching
from calviz.figures import CalibrationMap, ClassBars, Cumulative, Reliability, RiskCoverage
from calviz.results.comparison import Comparison, MethodResult
from calviz.results.evaluation import MetricResult
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.text.words import seconds_text
from calviz.ui.recalibrate.plan import Choice
from calviz.ui.session.jobs import Job
from calviz.ui.session.settings import Settings

#: Bytes of calibrated rows that are kept; more are drawn before they go, and for other pictures the maps are applied again.
KEPT_BYTES = 400_000_000
#: Rows times classes up to which a link may start a comparison.
AT_ONCE = 5_000_000

_COMPARED = "compared"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a plan, with what its pictures need.

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
        result = self.comparison[method]
        if result.calibrated is not None:
            return result.calibrated
        return _applied(self.key, method, self)


@st.cache_resource(scope="session", max_entries=2, show_spinner=False)
def _applied(key: tuple[str, ...], method: str, _outcome: Outcome) -> Dataset:
    judged = _outcome.rows.pairs[0][1]
    scores, _ = scores_of(_outcome.data)
    recalibrator = _outcome.comparison[method].recalibrator
    return calibrated_by(recalibrator, _outcome.data.take(judged), scores[judged])


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
        return replace(outcome, comparison=_slim(comparison), drawn=_drawn(outcome, settings, job))

    return run


def _drawn(outcome: Outcome, settings: Settings, job: Job) -> dict[tuple[str, str, str], Any]:
    """The pictures of all methods, until somebody asks to stop."""
    found: dict[tuple[str, str, str], Any] = {}
    count = len(outcome.comparison.methods)
    with watching(None):  # the comparison is there: a stop must not lose it
        for m in outcome.fitted:
            if job.stopping():
                break
            job.progress(count, count, f"drawing: {m.label}")
            for kind, picture in PICTURES.items():
                if not picture.at_once or (picture.of_map and m.key == UNCALIBRATED):
                    continue
                how = _how(kind, settings)
                found[m.key, kind, how] = picture.compute(outcome, m.key, settings)
    return found


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


@st.cache_resource(scope="session", max_entries=256, show_spinner=False)
def _metric(key: tuple[str, ...], method: str, metric: str, _outcome: Outcome) -> MetricResult:
    comparison = _outcome.comparison
    return evaluate(
        _outcome.calibrated(method),
        [metric],
        reduction=_outcome.reduction,
        bins=comparison.bins,
        scheme=comparison.scheme,
    )[metric]


def metric(outcome: Outcome, method: str, key: str) -> MetricResult:
    """A metric of the evaluation rows after a method, also one that the comparison left out."""
    measured = outcome.comparison[method].metrics.get(key)
    return measured if measured is not None else _metric(outcome.key, method, key, outcome)


@dataclass(frozen=True)
class Picture:
    """A picture of the rows that judged, after a method.

    Attributes
    ----------
    compute : callable
        ``compute(outcome, method, settings)`` gives the figure.
    binned : bool
        Whether it depends on the bins of the sidebar.
    at_once : bool
        Whether the page shows it of every method, without being asked for it.
    of_map : bool
        Whether it shows a map, which the uncalibrated model has not.
    """

    compute: Callable[[Outcome, str, Settings], Any]
    binned: bool = False
    at_once: bool = False
    of_map: bool = False


PICTURES: Mapping[str, Picture] = {
    "reliability": Picture(
        lambda outcome, method, settings: Reliability.compute(
            outcome.calibrated(method),
            reduction=outcome.reduction,
            bins=settings.bins,
            scheme=settings.scheme,
            band=False,
        ),
        binned=True,
        at_once=True,
    ),
    "map": Picture(
        lambda outcome, method, settings: CalibrationMap.compute(
            outcome.calibrated(UNCALIBRATED),
            outcome.calibrated(method),
            name=outcome.comparison[method].label,
            reduction=outcome.reduction,
            bins=settings.bins,
        ),
        binned=True,
        at_once=True,
        of_map=True,
    ),
    "cumulative": Picture(
        lambda outcome, method, _: Cumulative.compute(
            outcome.calibrated(method), reduction=outcome.reduction
        )
    ),
    "classes": Picture(
        lambda outcome, method, _: ClassBars.compute(outcome.calibrated(method), resamples=200)
    ),
    "risk": Picture(lambda outcome, method, _: RiskCoverage.compute(outcome.calibrated(method))),
}


def _how(kind: str, settings: Settings) -> str:
    """What a picture depends on in addition to the comparison."""
    return " ".join(settings.how_key) if PICTURES[kind].binned else ""


@st.cache_resource(scope="session", max_entries=96, show_spinner=False)
def _kept(
    key: tuple[str, ...], method: str, kind: str, how: str, _outcome: Outcome, _settings: Settings
) -> Any:
    return PICTURES[kind].compute(_outcome, method, _settings)


def picture(outcome: Outcome, method: str, kind: str, settings: Settings) -> Any:
    """A figure of the rows after a method, of a kind of `PICTURES`."""
    how = _how(kind, settings)
    at_hand = outcome.drawn.get((method, kind, how))
    if at_hand is not None:
        return at_hand
    return _kept(outcome.key, method, kind, how, outcome, settings)

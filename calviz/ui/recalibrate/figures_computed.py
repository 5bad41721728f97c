"""The kinds of figures of the evaluation rows after a method, computed at once or when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from calviz.core.progress import watching
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.class_bars import QUICK_RESAMPLES, ClassBars
from calviz.figures.cumulative import Cumulative
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.specs.recalibrator import UNCALIBRATED
from calviz.ui.recalibrate.outcome import ComparisonOutcome
from calviz.ui.session.jobs import Job
from calviz.ui.session.settings import Settings


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure of the evaluation rows after a method.

    Attributes
    ----------
    compute : callable
        ``compute(outcome, method, settings)`` returns the figure.
    binned : bool
        Whether it depends on the bins of the sidebar.
    at_once : bool
        Whether the page shows it for every method without being asked.
    of_map : bool
        Whether it shows a map, which the uncalibrated model does not have.
    """

    compute: Callable[[ComparisonOutcome, str, Settings], Any]
    binned: bool = False
    at_once: bool = False
    of_map: bool = False


KINDS: Mapping[str, FigureKind] = {
    "reliability": FigureKind(
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
    "map": FigureKind(
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
    "cumulative": FigureKind(
        lambda outcome, method, _: Cumulative.compute(
            outcome.calibrated(method), reduction=outcome.reduction
        )
    ),
    "classes": FigureKind(
        lambda outcome, method, _: ClassBars.compute(
            outcome.calibrated(method), resamples=QUICK_RESAMPLES
        )
    ),
    "risk": FigureKind(lambda outcome, method, _: RiskCoverage.compute(outcome.calibrated(method))),
}


def figure(outcome: ComparisonOutcome, method: str, kind: str, settings: Settings) -> Any:
    """Return a figure of the rows after a method, of a kind in `KINDS`."""
    settings_key = _settings_key(kind, settings)
    figure_at_hand = outcome.figures.get((method, kind, settings_key))
    if figure_at_hand is not None:
        return figure_at_hand
    return _computed(outcome.key, method, kind, settings_key, outcome, settings)


def all_at_once(
    outcome: ComparisonOutcome, settings: Settings, job: Job
) -> dict[tuple[str, str, str], Any]:
    """Compute the figures that the page shows for every method, until the job is asked to stop."""
    computed: dict[tuple[str, str, str], Any] = {}
    count = len(outcome.comparison.methods)
    with watching(None):  # the comparison is complete: a stop must not lose it
        for m in outcome.fitted:
            if job.stopping():
                break
            job.progress(count, count, f"drawing: {m.label}")
            for name, kind in KINDS.items():
                if not kind.at_once or (kind.of_map and m.key == UNCALIBRATED):
                    continue
                computed[m.key, name, _settings_key(name, settings)] = kind.compute(
                    outcome, m.key, settings
                )
    return computed


def _settings_key(kind: str, settings: Settings) -> str:
    """Identify what a figure depends on in addition to the comparison."""
    return " ".join(settings.reduction_and_bins_key) if KINDS[kind].binned else ""


@st.cache_resource(scope="session", max_entries=96, show_spinner=False)
def _computed(
    key: tuple[str, ...],
    method: str,
    kind: str,
    settings_key: str,
    _outcome: ComparisonOutcome,
    _settings: Settings,
) -> Any:
    return KINDS[kind].compute(_outcome, method, _settings)

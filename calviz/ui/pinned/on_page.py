"""The pinned state on a page: its points or curves in a figure, its values beside the current ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from calviz import analysis
from calviz.core.errors import CalvizError
from calviz.figures.kernels.overlaid_curves import Overlay, ReliabilityOverlay
from calviz.results.metric_result import MetricResult
from calviz.sample.sample import Sample
from calviz.ui.pinned import state
from calviz.ui.session import results
from calviz.ui.session.settings import Settings
from calviz.ui.widgets.recalibration_choice import NONE

F = TypeVar("F")
#: Settings beside those that choose the rows.
REDUCTION_AND_BINS = ("reduction", "bins", "scheme")


def points(now: Settings) -> tuple[ReliabilityOverlay, ...]:
    """Return the points to draw in a reliability diagram; none if the pinned state is the current one."""
    pinned = state.current(now)
    name = "" if pinned is None else state.difference(pinned, now)
    if pinned is None or not name:
        return ()
    try:
        if pinned.method != NONE:
            # Imported here: most pages are shown without a map, and the modules that fit one take a second to import.
            from calviz.ui.widgets import recalibrated_diagram

            figure = recalibrated_diagram.compute(pinned.settings, pinned.method).after
        else:
            figure = results.reliability(pinned.settings)
    except CalvizError:
        return ()
    return (figure.overlay(f"Pinned: {name}", "pinned"),)


def values(now: Settings, keys: tuple[str, ...]) -> dict[str, MetricResult]:
    """Return the values of metrics in the pinned state, by their current keys; empty if nothing else is pinned."""
    pinned = state.current(now)
    if pinned is None or not state.difference(pinned, now):
        return {}
    # The key of the ECE depends on the bins.
    ece = now.sample.ece_key
    pinned_keys = tuple(pinned.settings.sample.ece_key if key == ece else key for key in keys)
    try:
        if pinned.method != NONE:
            from calviz.ui.widgets import recalibrated_diagram

            after = recalibrated_diagram.sample_after(pinned.settings, pinned.method)
            evaluation = analysis.evaluate(after, pinned_keys)
        else:
            evaluation = results.metrics(pinned.settings, pinned_keys, error_bars=False)
    except CalvizError:
        return {}
    return {key: evaluation[pinned_key] for key, pinned_key in zip(keys, pinned_keys, strict=True)}


def pinned_overlay(
    now: Settings, make: Callable[[Sample], F], *, as_now: tuple[str, ...] = ("bins", "scheme")
) -> Overlay[F] | None:
    """Return what a page shows, for the pinned state; None if nothing is pinned, or if it would be the same.

    Parameters
    ----------
    now : Settings
    make : callable
        Computes it from a sample.
    as_now : tuple of str
        Settings that it does not depend on; these are taken from `now`.
    """
    pinned = state.current(now)
    if pinned is None:
        return None
    same = {name: getattr(now, name) for name in as_now}
    pinned = replace(pinned, settings=replace(pinned.settings, **same))
    name = state.difference(pinned, now)
    if not name:
        return None
    try:
        if pinned.method != NONE:
            from calviz.ui.widgets import recalibrated_diagram

            sample = recalibrated_diagram.sample_after(pinned.settings, pinned.method)
        else:
            sample = pinned.settings.sample
        return Overlay(f"Pinned: {name}", "pinned", make(sample))
    except CalvizError:
        return None

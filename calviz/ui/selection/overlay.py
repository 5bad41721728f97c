"""The selection in a figure: its rows as outlines or a curve; a range of bins is framed instead."""

from __future__ import annotations

from calviz.figures.cumulative import Cumulative, Estimate
from calviz.figures.kernels.overlaid_curves import Overlay, ReliabilityOverlay
from calviz.figures.reliability import Reliability
from calviz.sample.sample import chosen_bins
from calviz.ui.selection import state
from calviz.ui.selection.rules import Bins
from calviz.ui.session.settings import Settings


def points(figure: Reliability, settings: Settings) -> tuple[ReliabilityOverlay, ...]:
    """Return the points to draw beside those of all rows."""
    chosen = _drawable(settings)
    if chosen is None:
        return ()
    return (ReliabilityOverlay.of_rows(settings.sample, figure.sums, chosen.rows, "Selected rows"),)


def score_range(settings: Settings) -> tuple[float, float] | None:
    """Return the range of scores that is selected; None if other rows or no rows are."""
    chosen = state.current(settings)
    if chosen is None or not isinstance(chosen.rule, Bins):
        return None
    edges = chosen_bins(settings.sample).edges
    first, last = chosen.rule.first, chosen.rule.last
    # The first bin holds its lower edge.
    return (float(edges[first]) if first else -1.0, float(edges[last + 1]))


def cumulative(settings: Settings, estimate: Estimate) -> tuple[Overlay[Cumulative], ...]:
    """Return the cumulative plot of the selected rows."""
    chosen = _drawable(settings)
    if chosen is None:
        return ()
    part = state.sample_of(settings, chosen)
    figure = part.view(Cumulative.compute, estimate=estimate, band=False, seed=part.seed)
    return (Overlay("Selected rows", "selected", figure),)


def _drawable(settings: Settings) -> state.Selected | None:
    """Return the selection if it has points or a curve of its own; None otherwise."""
    chosen = state.current(settings)
    if chosen is None or not chosen.rows.size:
        return None
    # The share of hits says nothing about rows that were chosen by their outcome.
    return None if chosen.rule.of_bins or chosen.rule.by_outcome else chosen

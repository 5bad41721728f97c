"""The selection in a reliability diagram: its rows as outlines, unless it is a range of bins, which is framed instead."""

from __future__ import annotations

from calviz.figures import Reliability
from calviz.figures.kernels.beside import Beside
from calviz.ui.selection import state
from calviz.ui.session.settings import Settings


def drawn(figure: Reliability, settings: Settings) -> tuple[Beside, ...]:
    """The points to draw beside those of all rows."""
    chosen = state.among(settings)
    if chosen is None or not chosen.rows.size:
        return ()
    # Of rows that the outcome chose, the share of hits says nothing.
    if chosen.rule.of_bins or chosen.rule.by_outcome:
        return ()
    return (Beside.of_rows(settings.sample, figure.sums, chosen.rows, "Selected rows"),)

"""How a calibration map is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calviz.figures.drawing.curves_and_labels import Trace, area, line, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.small_panels import circles, diagonal, square

if TYPE_CHECKING:
    from calviz.figures.calibration_map import CalibrationMap


def draw(figure: CalibrationMap, sheet: Sheet, *, height: int) -> Picture:
    """Draw the map over the diagonal (no change), with the observed frequencies to which it should map."""
    f, p = figure, sheet.palette
    traces: list[Trace] = [diagonal(p)]
    if not f.is_function:
        traces.append(area(f.before, f.low, f.high, p.glaze(p.blue, 0.22)))
        traces.append(markers(*f.rows, p.glaze(p.blue, 0.45), size=3, hoverinfo="skip"))
    traces.append(
        line(
            f.before,
            f.after,
            p.blue,
            width=2.5,
            hovertemplate="score %{x:.3f} becomes %{y:.3f}<extra></extra>",
        )
    )
    traces.append(circles(*f.observed, p))
    return square(traces, sheet, height, "Score before", "Score after")

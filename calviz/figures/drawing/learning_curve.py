"""How learning curves are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import Trace, area, label, line
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import DASHES, Palette, axis
from calviz.results.metric_words import scale_of
from calviz.specs.metric import METRICS
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.learning_curve import LearningCurves

#: Margins of the panel in pixels.
_MARGINS = (66, 20, 14, 54)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "x")
#: The axis extends beyond the range of the main values by at most this multiple of it.
_ROOM = 1.5


def draw(figure: LearningCurves, sheet: Sheet) -> Picture:
    """Draw learning curves (see `LearningCurves.plot`)."""
    drawing = _LearningCurves(figure, sheet.palette)
    traces = list(drawing.traces())
    return sheet.picture(
        traces,
        inner=sheet.panel_height,
        margins=_MARGINS,
        annotations=drawing.notes(),
        **drawing.axes(),
    )


@dataclass(frozen=True)
class _LearningCurves:
    figure: LearningCurves
    palette: Palette

    @property
    def _scale(self) -> float:
        return scale_of(self.figure.metric)[0]

    def traces(self) -> Iterator[Trace]:
        """Yield the bands, then the reference lines, then the curves."""
        f, p = self.figure, self.palette
        methods = f.curve.methods
        colours = (p.blue, p.vermillion, p.green, p.purple)
        for i, method in enumerate(methods):
            points = f.points(method)
            if len(points) > 1:
                x, low, high = (
                    np.array([getattr(point, name) for point in points], dtype=np.float64)
                    for name in ("rows", "low", "high")
                )
                fill = p.glaze(colours[i % 4], 0.14)
                yield area(x, self._scale * low, self._scale * high, fill, showlegend=False)
        yield from self._across(f.before, p.ink, "dash", "Uncalibrated")
        if f.noise_floor is not None:
            yield from self._across(f.noise_floor, p.muted, "2px,3px", "Noise floor (calibrated)")
        for i, method in enumerate(methods):
            points = f.points(method)
            x = np.array([point.rows for point in points], dtype=np.float64)
            y = self._scale * np.array([point.mean for point in points])
            colour, name = colours[i % 4], plotly_text(f.label(method), 40)
            yield {
                **line(x, y, colour, width=2, dash=DASHES[i // 4 % 4], name=name),
                "mode": "lines+markers",
                "marker": {"size": 7, "color": colour, "symbol": _SYMBOLS[i % 8]},
                "customdata": [
                    [self._text(point.low), self._text(point.high), point.repeats]
                    for point in points
                ],
                "hovertemplate": "%{x:,} labels: %{y:.4~g}<br>5 to 95 % of %{customdata[2]} draws: "
                f"%{{customdata[0]}} to %{{customdata[1]}}<extra>{name}</extra>",
            }

    def _text(self, value: float) -> str:
        return f"{self._scale * value:.3g}"

    def _across(self, value: float, colour: str, dash: str, name: str) -> Iterator[Trace]:
        if np.isnan(value) or not self.figure.sizes:
            return
        ends = np.array([self.figure.sizes[0], self.figure.sizes[-1]], dtype=np.float64)
        yield line(
            ends,
            np.full(2, self._scale * value),
            colour,
            width=1.5,
            dash=dash,
            name=name,
            hovertemplate=f"%{{y:.4~g}}<extra>{name}</extra>",
        )

    @cached_property
    def _values(self) -> tuple[FloatArray, FloatArray]:
        """The main values (reference lines and ends of the curves), and all drawn values."""
        f = self.figure
        every = [f.points(method) for method in f.curve.methods]
        floor = () if f.noise_floor is None else (f.noise_floor,)
        matter = [f.before, *floor, *(points[-1].mean for points in every if points)]
        ends_of_bands = [v for points in every for p in points for v in (p.low, p.high)]
        scaled = (
            self._scale * np.array(v, dtype=np.float64) for v in (matter, matter + ends_of_bands)
        )
        first, second = (v[np.isfinite(v)] for v in scaled)
        return first, second

    @cached_property
    def _range(self) -> tuple[float, float]:
        matter, every_value = self._values
        if not matter.size:
            return 0.0, 1.0
        low, high = float(matter.min()), float(matter.max())
        room = _ROOM * max(high - low, 0.02 * abs(high), 1e-6)
        low, high = (
            max(low - room, float(every_value.min())),
            min(high + room, float(every_value.max())),
        )
        # Curves that are all equal, such as the accuracy of methods that keep it, need room too.
        pad = max(0.06 * (high - low), 0.002 * abs(high), 1e-6)
        # An axis that begins a little above 0 would hide how close the values are to 0.
        start = 0.0 if 0 <= low < 0.35 * high else low - pad
        return start, high + pad

    def notes(self) -> Iterator[dict[str, Any]]:
        """Note that some bands are cut off."""
        low, high = self._range
        every_value = self._values[1]
        if every_value.size and (every_value.max() > high or every_value.min() < low):
            yield label(
                "Some bands go beyond the picture.",
                self.palette,
                xref="paper",
                yref="paper",
                x=0.99,
                y=0.99,
                xanchor="right",
                yanchor="top",
                font={"size": 11, "color": self.palette.muted},
                bgcolor=self.palette.glaze(self.palette.paper, 0.8),
            )

    def axes(self) -> dict[str, Any]:
        """Return the axes: rows on a logarithmic scale with a tick at each number tried, and the metric."""
        f, p = self.figure, self.palette
        sizes = f.sizes or (1,)
        sign = scale_of(f.metric)[1]
        title = METRICS[f.metric].label + (f", {sign}" if sign else "")
        edge = 0.03 * max(np.log10(sizes[-1] / sizes[0]), 0.3)
        return {
            "xaxis": axis(
                p,
                "Calibration rows (labels)",
                type="log",
                range=[np.log10(sizes[0]) - edge, np.log10(sizes[-1]) + edge],
                tickvals=list(sizes),
                ticktext=[f"{size:,}" for size in sizes],
                tickangle=0,
            ),
            "yaxis": axis(p, title, range=list(self._range), nticks=7),
        }

"""How the cumulative plot is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import (
    Trace,
    area,
    frame,
    label,
    line,
    outline,
    short_line,
    vertical_mark,
)
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis
from calviz.figures.kernels.thin_curve import BUCKETS
from calviz.text.escape import plotly_text
from calviz.text.words import (
    decimal,
    level_text,
    points_text,
    with_short_class,
)

if TYPE_CHECKING:
    from calviz.figures.cumulative import Cumulative, CumulativePanel
    from calviz.figures.kernels.overlaid_curves import Overlay

#: Height of a panel, and margins around the panels, in pixels.
_PANEL = 270
_MARGINS = _LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 30, 52
#: Space between panels, for titles and ticks of the axes, in pixels.
_ACROSS, _DOWN = 72, 80
#: Half-width in pixels from which a range around a line is visible.
_LEAST = 4
#: Maximum number of markers on a further curve, and maximum characters of its name.
_MARKS, _BESIDE = 8, 44
#: Width assumed if none is known.
_WIDTH = 880


def draw(
    figure: Cumulative,
    sheet: Sheet,
    *,
    panels: tuple[CumulativePanel, ...],
    selected: tuple[float, float] | None,
    beside: tuple[Overlay[Cumulative], ...],
) -> Picture:
    """Draw a computed cumulative plot (see `Cumulative.plot`)."""
    grid = _Grid(len(panels), sheet.width or _WIDTH, sheet.narrow)
    drawn_panels = [
        _Panel(figure, sheet.palette, panel, place, selected, beside)
        for place, panel in enumerate(panels, start=1)
    ]
    axes: dict[str, Any] = {}
    for place, panel in enumerate(drawn_panels):
        axes |= panel.axes(*grid.domain(place))
    return sheet.picture(
        _named_once([trace for panel in drawn_panels for trace in panel.traces()]),
        inner=grid.inner,
        margins=_MARGINS,
        above=24,
        annotations=[label for panel in drawn_panels for label in panel.labels()],
        shapes=[shape for panel in drawn_panels for shape in panel.frames()],
        **axes,
    )


def _named_once(traces: list[Trace]) -> list[Trace]:
    """Give traces of the same name one entry in the legend that the panels share."""
    named: set[str] = set()
    for trace in traces:
        name = trace.get("name", "")
        trace["showlegend"] = bool(name) and name not in named
        named.add(name)
    return traces


@dataclass(frozen=True)
class _Grid:
    """Positions of the panels."""

    panels: int
    width: int
    narrow: bool

    @property
    def columns(self) -> int:
        return 1 if self.narrow or self.panels == 1 else 2

    @property
    def inner(self) -> int:
        """Height of all panels and the space between them, in pixels."""
        rows = -(-self.panels // self.columns)
        return rows * _PANEL + (rows - 1) * _DOWN

    def domain(self, place: int) -> tuple[list[float], list[float]]:
        row, column = divmod(place, self.columns)
        gap = _ACROSS / max(self.width - _LEFT - _RIGHT, 1)
        wide = (1 - gap * (self.columns - 1)) / self.columns
        left = column * (wide + gap)
        top = 1 - row * (_PANEL + _DOWN) / self.inner
        return [left, left + wide], [max(0.0, top - _PANEL / self.inner), top]


@dataclass(frozen=True)
class _Panel:
    """One panel: its traces, axes and labels."""

    figure: Cumulative
    palette: Palette
    panel: CumulativePanel
    place: int
    selected: tuple[float, float] | None
    beside: tuple[Overlay[Cumulative], ...]

    @property
    def _suffix(self) -> str:
        return "" if self.place == 1 else str(self.place)

    @property
    def _cumulative(self) -> bool:
        return self.panel in ("a", "b")

    @cached_property
    def _x(self) -> FloatArray:
        f = self.figure
        return {"b": f.cumulative_score, "d": f.score}.get(self.panel, f.fractile)

    def traces(self) -> list[Trace]:
        """Return the band, the score, the hits or probability, and the mark at the maximum."""
        traces = [*self._lines(), *self._others()]
        axes = {"xaxis": f"x{self._suffix}", "yaxis": f"y{self._suffix}"}
        return [{**trace, **axes} for trace in traces]

    def _lines(self) -> Iterator[Trace]:
        f, p = self.figure, self.palette
        if self.panel == "gap":
            yield from self._gap_lines()
            return
        score, hits = f.score, f.probability
        x = self._x
        if self._cumulative:
            score, hits = f.cumulative_score, f.cumulative_hits
            x, score, hits = (np.append(0.0, values) for values in (x, score, hits))
        elif x.size == 1:
            x = np.array([0.0, 1.0]) if self.panel == "c" else short_line(x)
            score, hits = np.repeat(score, 2), np.repeat(hits, 2)
        yield from self._band(x, score)
        yield self._mark_line(score, hits)
        what = "cumulative score" if self._cumulative else "score"
        # Plotted against itself, the score is a straight line.
        ends = [0, -1] if self.panel in ("b", "d") else slice(None)
        yield line(x[ends], score[ends], p.blue, name="Score", hovertemplate=_hover(what))
        what = "cumulative hits" if self._cumulative else "probability"
        stepped = not self._cumulative and f.estimate == "isotonic"
        yield line(
            x,
            hits,
            p.vermillion,
            name=self._hits_name,
            dash="7px,3px",
            width=2.5,
            hovertemplate=_hover(what),
            **({"shape": "vh"} if stepped else {}),
        )
        if self._cumulative:
            yield self._ends()

    def _others(self) -> Iterator[Trace]:
        """Draw curves of other rows, in the panels where a single line suffices."""
        for other in self.beside:
            f = other.content
            if self.panel == "gap":
                x, y = np.append(0.0, f.fractile), 100 * np.append(0.0, f.gap)
            elif self.panel == "d":
                x, y = f.score, f.probability
            else:
                continue
            symbol, dash, colour = outline(other.role, self.palette)
            what = "gap" if self.panel == "gap" else "probability"
            yield line(
                x,
                y,
                colour,
                name=plotly_text(other.name, _BESIDE),
                dash=dash,
                width=1.5,
                hovertemplate=_hover(what),
            ) | {
                "mode": "lines+markers",
                "marker": {"symbol": symbol, "size": 8, "color": colour, "maxdisplayed": _MARKS},
            }

    def frames(self) -> Iterator[dict[str, Any]]:
        """Draw a frame around the selected range of scores."""
        if self.selected is None:
            return
        ends = (max(self.selected[0], 0.0), self.selected[1])
        if self.panel != "d":
            at = 1 if self.panel == "b" else 0
            ends = (self.figure.upto(self.selected[0])[at], self.figure.upto(self.selected[1])[at])
        yield frame(
            self.palette.ink,
            xref=f"x{self._suffix}",
            yref=f"y{self._suffix} domain",
            x0=ends[0],
            x1=ends[1],
            y0=0,
            y1=1,
            fillcolor=self.palette.glaze(self.palette.ink, 0.08),
            layer="below",
            width=1.5,
        )

    @property
    def _hits_name(self) -> str:
        way = "isotonic" if self.figure.estimate == "isotonic" else "smoothed"
        if self._cumulative:
            return "Hits"
        return f"Probability ({way})"

    def _band(self, x: FloatArray, score: FloatArray) -> Iterator[Trace]:
        f, p = self.figure, self.palette
        level = level_text(f.level)
        name, fill = f"{level} range if calibrated", p.calibrated
        if self._cumulative and f.bound is not None:
            low = np.maximum(score - f.bound, 0)
            # A range as thin as the line on it is invisible, and gets no legend entry.
            entry: dict[str, Any] = (
                {"name": name} if f.bound * _PANEL > _LEAST * self._y_range()[1] else {}
            )
            yield area(*_lighter(x, low, score + f.bound), fill, **entry)
        elif not self._cumulative and f.band is not None:
            low, high = f.band
            if low.size < x.size:
                low, high = np.repeat(low, 2), np.repeat(high, 2)
            yield area(*_lighter(x, low, high), fill, name=name)

    def _gap_lines(self) -> Iterator[Trace]:
        f, p = self.figure, self.palette
        x, gap = np.append(0.0, f.fractile), 100 * np.append(0.0, f.gap)
        if f.bound is not None:
            ends, b = np.array([0.0, 1.0]), np.full(2, 100 * f.bound)
            name = f"{level_text(f.level)} range if calibrated"
            yield area(ends, -b, b, p.calibrated, name=name)
        yield line(np.array([0.0, 1.0]), np.zeros(2), p.ink, dash="dash", width=1, hoverinfo="skip")
        yield line(x, gap, p.purple, name="Score minus hits", hovertemplate=_hover("gap"))
        ends = np.array([0.0, 1.0, np.nan])
        levels = np.repeat([100 * end for end in f.gap_range], 3)
        name = "Range (Kuiper error)"
        yield line(
            np.tile(ends, 2), levels, p.ink, name=name, dash="dot", width=1.5, hoverinfo="skip"
        )
        at = f.maximum + 1
        yield self._dots(x[[at]], gap[[at]])

    def _mark_line(self, score: FloatArray, hits: FloatArray) -> Trace:
        """Draw a thin line through the panel where the gap is largest."""
        top = float(max(score.max(), hits.max()))
        return vertical_mark(
            float(self._x[self.figure.maximum]), 0.0, 1.04 * top, self.palette.muted
        )

    def _ends(self) -> Trace:
        """Mark both ends of the largest gap."""
        f = self.figure
        m = f.maximum
        ends = np.array([f.cumulative_score[m], f.cumulative_hits[m]])
        return self._dots(self._x[[m, m]], ends)

    def _dots(self, x: FloatArray, y: FloatArray) -> Trace:
        return {
            **line(x, y, self.palette.ink, width=2.5, hoverinfo="skip"),
            "mode": "lines+markers",
            "marker": {
                "symbol": "circle",
                "size": 7,
                "color": self.palette.ink,
                "line": {"color": self.palette.paper, "width": 1},
            },
            "name": "Largest gap (KS error)",
            "cliponaxis": False,
        }

    def _title(self) -> str:
        return {
            "a": "Cumulative, by fractile",
            "b": "Cumulative, by cumulative score",
            "c": "Score and probability, by fractile",
            "d": "Score and probability, by score",
            "gap": "Score minus hits, cumulative",
        }[self.panel]

    def labels(self) -> Iterator[dict[str, Any]]:
        """Label the panel with its letter and title, and with the size of the gap in a free corner."""
        p, f = self.palette, self.figure
        place = {"xref": f"x{self._suffix} domain", "yref": f"y{self._suffix} domain"}
        letter = "" if self.panel == "gap" else f"<b>{self.panel}</b>&nbsp; "
        yield label(
            letter + self._title(), p, **place, x=0, y=1, yshift=4, xanchor="left", yanchor="bottom"
        )
        if self._cumulative or (self.panel == "gap"):
            at = f"fractile {decimal(f.at_fractile, 2)}"
            if self.panel == "b":
                # Where the mark stands on this axis.
                at = f"cumulative score {decimal(float(f.cumulative_score[f.maximum]), 2)}"
            up = self.panel != "gap" or f.ks_signed < 0
            more = f"<br>Kuiper {points_text(f.kuiper)}" if self.panel == "gap" else ""
            yield label(
                f"KS {points_text(f.ks)}<br>at {at}{more}",
                p,
                **place,
                x=0.03,
                y=self._free(up=up),
                xanchor="left",
                yanchor="top" if up == (self.panel != "gap") else "bottom",
                bgcolor=p.glaze(p.paper, 0.75),
            )

    def _free(self, *, up: bool) -> float:
        """Return the height of the label in the panel; in panel "gap" it stands between the extreme gap and the band around 0."""
        if self.panel == "gap":
            return 0.14 if up else 0.86
        return 0.96 if up else 0.04

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        """Return both axes of the panel."""
        p, f = self.palette, self.figure
        fractile = "Fractile (share of rows, lowest scores first)"
        x_title = {"b": "Cumulative score", "d": with_short_class(f.reduction, 18).score_label}.get(
            self.panel, fractile
        )
        y_title = (
            "Points"
            if self.panel == "gap"
            else "Cumulative share"
            if self._cumulative
            else "Probability"
        )
        x_range = [0.0, 1.0]
        if self.panel == "b":
            x_range = [0.0, float(f.cumulative_score[-1]) or 1.0]
        return {
            f"xaxis{self._suffix}": axis(
                p,
                plotly_text(x_title),
                size=13,
                domain=across,
                anchor=f"y{self._suffix}",
                range=x_range,
                nticks=6,
            ),
            f"yaxis{self._suffix}": axis(
                p,
                y_title,
                size=13,
                domain=down,
                anchor=f"x{self._suffix}",
                range=self._y_range(),
                nticks=6,
            ),
        }

    def _y_range(self) -> list[float]:
        f = self.figure
        if self.panel == "gap":
            ranges = [f.gap_range, *(other.content.gap_range for other in self.beside)]
            low, high = 100 * min(r[0] for r in ranges), 100 * max(r[1] for r in ranges)
            bound = 100 * (f.bound or 0)
            low, high = min(low, -bound), max(high, bound)
            room = 0.08 * (high - low or 1)
            return [low - room, high + room]
        if self._cumulative:
            top = max(float(f.cumulative_score[-1]), float(f.cumulative_hits[-1]))
            return [0.0, 1.04 * top or 1.0]
        return [0.0, 1.04]


def _lighter(
    x: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Keep every second point of a long smooth band, and its end."""
    some = np.arange(x.size)
    if x.size > BUCKETS:
        some = np.append(some[:-1:2], x.size - 1)
    return x[some], low[some], high[some]


def _hover(what: str) -> str:
    return f"{what} %{{y:.3f}} at %{{x:.3f}}<extra></extra>"

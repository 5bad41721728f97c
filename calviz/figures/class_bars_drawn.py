"""How the errors by class are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.words import counted, decimals_for, level_text, plotly_text, points, shorten
from calviz.figures.marks import (
    UNFADED,
    Picture,
    Sheet,
    Trace,
    area,
    frame,
    hatched,
    heading,
    label,
    line,
    markers,
    outline,
    packed,
    vertical_shape,
    whiskers,
)
from calviz.figures.style import Palette, axis, name_room

if TYPE_CHECKING:
    from calviz.figures.class_bars import ClassBars, Order
    from calviz.figures.marks import Overlay


#: Height of a bar with the space around it, height of the curve, and margins of the panels, in pixels.
_BAR, _CURVE = 22, 260
_RIGHT, _TOP, _BOTTOM = 16, 12, 54
#: Maximum characters of a class name, and space beside the names in pixels.
_NAME, _BESIDE = 18, 22
#: Legend entries of the colours for errors above and below the range.
LEGEND: dict[str, tuple[str, str]] = {
    "predicted-class": ("Overconfident", "Underconfident"),
    "true-class": ("More confident than if calibrated", "Less confident than if calibrated"),
    "one-vs-rest": ("Too high", "Too low"),
}
#: Maximum number of points on the curve of all classes.
_MOST_POINTS = 2_000
#: Space between the bars of both ends, in bars.
_BREAK = 1.6


def draw(
    figure: ClassBars,
    sheet: Sheet,
    *,
    order: Order,
    ends: int,
    selected: int | None,
    beside: tuple[Overlay[FloatArray], ...],
) -> Picture:
    """Draw computed errors by class (see `ClassBars.plot`)."""
    palette, wide = sheet.palette, not sheet.narrow
    shown = figure.shown(order, ends)
    bars = _Bars(figure, palette, shown, figure.value.size, selected, sheet.narrow, beside)
    curve = _Curve(figure, palette, figure.ranked(order)) if bars.cut else None
    stacked = curve is not None and sheet.narrow
    inner = bars.height + (_CURVE + 90 if stacked else 0)
    across = [0.0, 0.56] if curve and wide else [0.0, 1.0]
    down = [1 - bars.height / inner, 1.0] if stacked else [0.0, 1.0]
    axes = bars.axes(across, down)
    if curve:
        left = [0.66, 1.0] if wide else [0.0, 1.0]
        axes |= curve.axes(left, [0.0, 1.0] if wide else [0.0, _CURVE / inner])
    titles = 24 if curve else 0
    return sheet.picture(
        [*bars.traces(), *(curve.traces() if curve else ())],
        inner=inner,
        margins=(bars.left, _RIGHT, _TOP + titles, _BOTTOM),
        above=24 if curve else 8,
        air=24 - titles,
        legend_over="container",
        annotations=[*bars.labels(), *(curve.labels() if curve else ())],
        barmode="overlay",
        shapes=[*bars.zero(), *bars.highlight()],
        **axes,
    )


@dataclass(frozen=True)
class _Bars:
    """One bar per shown class, the first at the top."""

    figure: ClassBars
    palette: Palette
    shown: IntArray
    total: int
    selected: int | None
    narrow: bool
    beside: tuple[Overlay[FloatArray], ...]

    @cached_property
    def left(self) -> int:
        """Width of the longest name with its number of rows, in pixels."""
        f = self.figure
        names = (f"{shorten(f.class_name[i], _NAME)}  n = {f.rows[i]:,}" for i in self.shown)
        return name_room(names, _BESIDE)

    @property
    def cut(self) -> bool:
        return self.shown.size < self.total

    @cached_property
    def y(self) -> FloatArray:
        """Positions from the top down, with a gap where classes are left out, shape (S,)."""
        place = np.arange(self.shown.size, dtype=np.float64)
        if self.cut:
            place[self.shown.size // 2 :] += _BREAK
        return place

    @property
    def height(self) -> int:
        # With the height of a single bar, plotly cannot place the axes.
        return max(60, round(_BAR * (float(self.y[-1]) + 1) + 8)) if self.y.size else 60

    def traces(self) -> Iterator[Trace]:
        """Yield the ranges of a calibrated model, the bars, and their intervals."""
        f, p, at = self.figure, self.palette, self.shown
        beyond = f.beyond[at]
        if f.band is not None:
            low, high = (100 * end[at] for end in f.band)
            yield {
                "type": "bar",
                "orientation": "h",
                "y": packed(self.y),
                "base": packed(low),
                "x": packed(high - low),
                "width": 0.94,
                "marker": {
                    "color": p.calibrated,
                    "line": {"color": p.muted, "width": 1},
                },
                "name": "Range if calibrated",
                "hoverinfo": "skip",
                "legendrank": 3,
            }
        above, below = LEGEND[f.mode]
        within = "Within the range" if f.band else "Not judged: no range is known"
        kinds = (
            (beyond > 0, above, p.vermillion, "/"),
            (beyond < 0, below, p.purple, "\\"),
            (beyond == 0, within, p.neutral, ""),
        )
        for rank, (which, name, colour, shape) in enumerate(kinds):
            if which.any():
                yield self._bar(which, name, colour, shape) | {"legendrank": rank}
        yield self._intervals()
        for other in self.beside:
            yield self._outlines(other)

    def _outlines(self, other: Overlay[FloatArray]) -> Trace:
        """Draw the errors of the same classes in another state."""
        symbol, _, colour = outline(other.role, self.palette)
        name = plotly_text(other.name, 44)
        at = self.figure.class_index[self.shown]
        return markers(
            packed(100 * other.content[at]),
            packed(self.y),
            colour,
            size=10,
            symbol=symbol,
            edge=colour,
            name=name,
            customdata=at,
            hovertemplate="%{x:.2f} points<extra>" + name + "</extra>",
            legendrank=5,
            **UNFADED,
        )

    def _bar(self, which: Any, name: str, colour: str, shape: str) -> Trace:
        f, p = self.figure, self.palette
        chosen = self.shown[which]
        marker: dict[str, Any] = {
            "color": colour if shape else p.tint(colour, 0.55),
            "line": {"color": colour, "width": 1},
        }
        if shape:
            marker["pattern"] = hatched(colour, p, shape=shape, tint=0.25, solidity=0.4)
        return {
            "type": "bar",
            "orientation": "h",
            "y": packed(self.y[which]),
            "x": packed(100 * f.value[chosen]),
            "width": 0.6,
            "customdata": f.class_index[chosen],
            "marker": marker,
            "name": name,
            "hoverinfo": "text",
            "hovertext": [_hover(f, int(i)) for i in chosen],
            **UNFADED,
        }

    def _intervals(self) -> Trace:
        f, at = self.figure, self.shown
        value = f.value[at]
        low, high = (end[at] for end in f.interval)
        has = np.isfinite(low)
        return markers(
            packed(100 * value),
            packed(self.y),
            self.palette.ink,
            size=5,
            customdata=f.class_index[at],
            error_x=whiskers(
                packed(100 * np.where(has, high - value, 0)),
                packed(100 * np.where(has, value - low, 0)),
                self.palette.ink,
                thickness=1.5,
                width=3,
            ),
            name=f"{level_text(f.level)} interval",
            showlegend=bool(has.any()),
            hoverinfo="text",
            hovertext=[_hover(f, int(i)) for i in at],
            legendrank=4,
            **UNFADED,
        )

    def zero(self) -> Iterator[dict[str, Any]]:
        """Draw a line where mean score and share of hits agree."""
        yield vertical_shape(self.palette.ink, x=0, width=1.5, xref="x", yref="y domain")

    def highlight(self) -> Iterator[dict[str, Any]]:
        """Draw a frame around the selected class."""
        for i, y in zip(self.shown, self.y, strict=True):
            if self.figure.class_index[i] == self.selected:
                yield frame(
                    self.palette.ink,
                    xref="x domain",
                    yref="y",
                    x0=0,
                    x1=1,
                    y0=float(y) - 0.5,
                    y1=float(y) + 0.5,
                )

    def labels(self) -> Iterator[dict[str, Any]]:
        """Say how many classes are left out between the two ends, and give the panel a heading."""
        p = self.palette
        if not self.cut:
            return
        half = self.shown.size // 2
        yield label(
            f"… {counted(self.total - self.shown.size, 'class', 'classes')} between …",
            p,
            xref="x domain",
            yref="y",
            x=0.5,
            y=float(self.y[half - 1] + self.y[half]) / 2,
            xanchor="center",
            yanchor="middle",
            bgcolor=p.paper,
            font={"size": 12, "color": p.muted},
        )
        yield heading(f"<b>{half} at either end</b>", p, ("x domain", "y domain"))

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        f, p = self.figure, self.palette
        names = [
            f'{plotly_text(f.class_name[i], _NAME)}  <span style="color:{p.muted}">n = {f.rows[i]:,}</span>'
            for i in self.shown
        ]
        last = float(self.y[-1]) if self.y.size else 0
        return {
            "xaxis": axis(
                p,
                _value_title(f, self.narrow),
                size=12 if self.narrow else 13,
                domain=across,
                anchor="y",
                nticks=7,
            ),
            "yaxis": axis(
                p,
                domain=down,
                anchor="x",
                range=[last + 0.6, -0.6],
                tickmode="array",
                tickvals=self.y.tolist(),
                ticktext=names,
                showgrid=False,
            )
            | {"tickfont": {"size": 12, "color": p.ink}},
        }


@dataclass(frozen=True)
class _Curve:
    """All classes in drawing order, as points."""

    figure: ClassBars
    palette: Palette
    ranked: IntArray

    def traces(self) -> Iterator[Trace]:
        f, p = self.figure, self.palette
        count = self.ranked.size
        some = np.unique(np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(np.intp))
        at, x = self.ranked[some], some + 1.0
        attributes: Trace = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
        if f.band is not None:
            low, high = (100 * end[at] for end in f.band)
            yield area(x, low, high, p.calibrated, **attributes)
        ends = np.array([1.0, float(count)])
        yield line(ends, np.zeros(2), p.ink, width=1, hoverinfo="skip", **attributes)
        beyond = f.beyond[at]
        kinds = (
            (beyond == 0, p.neutral, "circle-open", 4),
            (beyond > 0, p.vermillion, "triangle-up", 6),
            (beyond < 0, p.purple, "triangle-down", 6),
        )
        for which, colour, symbol, size in kinds:
            if which.any():
                yield markers(
                    packed(x[which]),
                    packed(100 * f.value[at[which]]),
                    colour,
                    symbol=symbol,
                    size=size,
                    customdata=f.class_index[at[which]],
                    text=[plotly_text(f.class_name[i], 24) for i in at[which]],
                    hovertemplate="%{text}: %{y:.2f} points<extra></extra>",
                    **UNFADED,
                    **attributes,
                )

    def labels(self) -> Iterator[dict[str, Any]]:
        text = f"<b>All {counted(self.ranked.size, 'class', 'classes')}</b>"
        yield heading(text, self.palette, ("x2 domain", "y2 domain"))

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        p = self.palette
        count = self.ranked.size
        return {
            "xaxis2": axis(
                p,
                "Place in the order",
                size=13,
                domain=across,
                anchor="y2",
                range=[1 - 0.02 * count, 1.02 * count],
                nticks=5,
            ),
            "yaxis2": axis(p, "Points", size=13, domain=down, anchor="x2", nticks=7),
        }


def _value_title(figure: ClassBars, narrow: bool) -> str:
    score, hit = ("confidence", "accuracy")
    if figure.mode == "one-vs-rest":
        score, hit = ("probability", "frequency")
    first = score.capitalize() if narrow else f"Mean {score}"
    return f"{first} − {hit} (points)"


def _hover(figure: ClassBars, i: int) -> str:
    f = figure
    low, high = f.interval
    value = float(f.value[i])
    beyond = float(f.beyond[i])
    decimals = decimals_for(100 * value, most=3)
    lines = [
        f"<b>{plotly_text(f.class_name[i], 40)}</b>",
        f"{counted(int(f.rows[i]), 'row')} {'predicted as this' if f.mode == 'predicted-class' else 'with this label'}",
        f"{points(value, decimals)} points",
    ]
    if np.isfinite(low[i]):
        lines.append(
            f"{level_text(f.level)} interval {points(float(low[i]), decimals)} to {points(float(high[i]), decimals)}"
        )
    if f.mode == "one-vs-rest":
        expected = f.n * value + float(f.rows[i])
        lines.append(f"Expected {expected:,.1f} rows, seen {int(f.rows[i]):,}")
    if f.band is not None:
        limits = " to ".join(points(float(end[i]), decimals) for end in f.band)
        where = LEGEND[f.mode][0 if beyond > 0 else 1] if beyond else "Within the range"
        lines += [f"If calibrated: {limits}", where]
    return "<br>".join(lines)

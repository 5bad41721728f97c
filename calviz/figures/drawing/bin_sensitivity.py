"""How the ECE by number of bins is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.drawing.curves_and_labels import (
    UNFADED,
    Trace,
    area,
    label,
    line,
    markers,
    vertical_mark,
)
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis
from calviz.text.words import counted, level_text, points_text

if TYPE_CHECKING:
    from calviz.figures.bin_sensitivity import BinSensitivity

#: Margins (left, right, above, below) and height of the panel, in pixels.
_MARGINS, _HEIGHT = (58, 18, 14, 50), 220


def draw(figure: BinSensitivity, sheet: Sheet) -> Picture:
    """Draw the ECE by number of bins (see `BinSensitivity.plot`)."""
    palette = sheet.palette
    highest = 100 * max(float(values.max()) for values in figure.ece.values())
    if figure.floor:
        highest = max(highest, 100 * float(figure.floor[figure.scheme].high.max()))
    room = 1.12 * highest or 1.0
    return sheet.picture(
        [*_traces(figure, palette), *_mark(figure, palette, room)],
        inner=_HEIGHT,
        margins=_MARGINS,
        annotations=_mark_label(figure, palette, room),
        xaxis=axis(palette, "Number of bins", range=[0, figure.counts.size + 1], nticks=7),
        yaxis=axis(palette, "ECE (points)", range=[0, room], nticks=6),
    )


def _traces(f: BinSensitivity, p: Palette) -> Iterator[Trace]:
    x = f.counts.astype(np.float64)
    if f.floor:
        floor = f.floor[f.scheme]
        name = f"{level_text(f.level)} range if calibrated ({f.scheme})"
        fill = p.calibrated
        yield area(x, np.zeros(x.size), 100 * floor.high, fill, name=name, legendrank=3)
        yield line(
            x,
            100 * floor.mean,
            p.muted,
            width=1.5,
            dash="2px,3px",
            name="Mean if calibrated",
            hovertemplate="mean if calibrated %{y:.2f} points<extra></extra>",
            legendrank=4,
        )
    schemes: tuple[tuple[Any, ...], ...] = (
        ("equal-width", "Equal-width bins", p.blue, "solid", "circle"),
        ("equal-mass", "Equal-mass bins", p.vermillion, "7px,3px", "diamond"),
    )
    for rank, (placed, name, colour, dash, symbol) in enumerate(schemes, start=1):
        curve = line(
            x,
            100 * f.ece[placed],
            colour,
            dash=dash,
            name=name,
            hovertemplate=f"{name}: %{{customdata}}, ECE %{{y:.2f}} points<extra></extra>",
            legendrank=rank,
        )
        yield curve | {
            # Markers, because a line alone cannot be clicked.
            "mode": "lines+markers",
            "marker": {"size": 4, "symbol": symbol, "color": colour},
            "customdata": f.counts,
            **UNFADED,
        }


def _mark(f: BinSensitivity, p: Palette, room: float) -> Iterator[Trace]:
    """Mark the chosen number of bins."""
    if f.chosen is None:
        return
    yield vertical_mark(f.bins, 0.0, room, p.ink)
    yield markers(
        [f.bins],
        [100 * f.chosen],
        p.ink,
        size=10,
        edge=p.paper,
        hoverinfo="skip",
        showlegend=False,
    )


def _mark_label(f: BinSensitivity, p: Palette, room: float) -> Iterator[dict[str, Any]]:
    if f.chosen is None:
        return
    right = f.bins < 0.6 * f.counts.size
    upper = 100 * f.chosen < 0.55 * room
    yield label(
        f"{counted(f.bins, 'bin')}: <b>{points_text(f.chosen)}</b>",
        p,
        x=f.bins,
        y=0.97 * room if upper else 0.04 * room,
        xshift=6 if right else -6,
        xanchor="left" if right else "right",
        yanchor="top" if upper else "bottom",
        bgcolor=p.glaze(p.paper, 0.8),
    )

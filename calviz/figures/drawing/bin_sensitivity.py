"""How the ECE by number of bins is drawn; plain arrays in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.core.words import counted
from calviz.figures._parts import (
    LINE,
    NARROW,
    Trace,
    area,
    caption_label,
    caption_lines,
    label,
    legend,
    level_text,
    line,
    points_text,
)
from calviz.figures._style import PALETTES, Palette, axis, axis_title, layout

if TYPE_CHECKING:
    from calviz.figures.bin_sensitivity import BinSensitivity

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 58, 18, 14, 50, 220
_WIDTH = 880


def draw(
    figure: BinSensitivity, *, theme: Theme, caption: tuple[str, ...], width: int | None
) -> go.Figure:
    """Draw the computed strip (see `BinSensitivity.plot`)."""
    palette = PALETTES[theme]
    lines = caption_lines(caption, width)
    below = LINE * (4 if (width or _WIDTH) < NARROW else 1) + 10
    top = _TOP + (LINE * len(lines) + 6 if lines else 0)
    height = top + _HEIGHT + _BOTTOM + below
    highest = 100 * max(float(values.max()) for values in figure.ece.values())
    if figure.floor:
        highest = max(highest, 100 * float(figure.floor[figure.scheme].high.max()))
    room = 1.12 * highest or 1.0
    return go.Figure(
        data=[*_traces(figure, palette), *_mark(figure, palette, room)],
        layout=layout(
            palette,
            height=height,
            margin={"l": _LEFT, "r": _RIGHT, "t": top, "b": _BOTTOM + below},
            legend=legend(palette, yref="container", y=below / height),
            annotations=[
                *caption_label(lines, palette, above=8),
                *_mark_label(figure, palette, room),
            ],
            xaxis=axis(
                palette,
                range=[0, figure.counts.size + 1],
                nticks=7,
                title=axis_title("Number of bins", palette),
            ),
            yaxis=axis(
                palette,
                range=[0, room],
                nticks=6,
                title=axis_title("ECE (points)", palette),
            ),
        ),
    )


def _traces(f: BinSensitivity, p: Palette) -> Iterator[Trace]:
    x = f.counts.astype(np.float64)
    if f.floor:
        floor = f.floor[f.scheme]
        name = f"{level_text(f.level)} range if calibrated ({f.scheme})"
        fill = p.glaze(p.ink, 0.14)
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
    drawn: tuple[tuple[Any, ...], ...] = (
        ("equal-width", "Equal-width bins", p.blue, "solid", "circle"),
        ("equal-mass", "Equal-mass bins", p.vermillion, "7px,3px", "diamond"),
    )
    for rank, (placed, name, colour, dash, symbol) in enumerate(drawn, start=1):
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
            # Points, because a line alone cannot be clicked.
            "mode": "lines+markers",
            "marker": {"size": 4, "symbol": symbol, "color": colour},
            "customdata": f.counts,
            "selected": {"marker": {"opacity": 1}},
            "unselected": {"marker": {"opacity": 1}},
        }


def _mark(f: BinSensitivity, p: Palette, room: float) -> Iterator[Trace]:
    """The chosen number of bins."""
    if f.chosen is None:
        return
    x = float(f.bins)
    yield line(
        np.array([x, x]),
        np.array([0.0, room]),
        p.ink,
        width=1,
        dash="2px,3px",
        hoverinfo="skip",
        showlegend=False,
    )
    yield {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [100 * f.chosen],
        "marker": {"size": 10, "color": p.ink, "line": {"color": p.paper, "width": 2}},
        "hoverinfo": "skip",
        "showlegend": False,
    }


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

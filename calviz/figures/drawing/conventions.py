"""How the ECE by library is drawn; plain values in, a plotly figure out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.figures._parts import LINE, Trace, caption_label, caption_lines, legend
from calviz.figures._style import PALETTES, Palette, axis, axis_title, escape, layout

if TYPE_CHECKING:
    from calviz.figures.conventions import ConventionDots, Dot

#: Pixels; a row holds two lines of text, the library and its function.
_ROW, _LEFT, _RIGHT, _TOP, _BOTTOM = 36, 166, 14, 10, 50


def draw(
    figure: ConventionDots, *, theme: Theme, caption: tuple[str, ...], width: int | None
) -> go.Figure:
    """Draw the computed dots (see `ConventionDots.plot`)."""
    palette = PALETTES[theme]
    lines = caption_lines(caption, width)
    top = _TOP + (LINE * len(lines) + 6 if lines else 0)
    below = 3 * LINE + 10
    height = top + _ROW * len(figure.dots) + _BOTTOM + below
    highest = max(v for d in figure.dots for v in (d.value, d.noise) if not math.isnan(v))
    places = list(range(len(figure.dots)))
    return go.Figure(
        data=list(_traces(figure, palette)),
        layout=layout(
            palette,
            height=height,
            margin={"l": _LEFT, "r": _RIGHT, "t": top, "b": _BOTTOM + below},
            legend=legend(palette, yref="container", y=below / height),
            annotations=list(caption_label(lines, palette, above=8)),
            xaxis=axis(
                palette,
                range=[0, 116 * highest or 1.0],
                nticks=6,
                title=axis_title("ECE (points)", palette),
            ),
            yaxis=axis(
                palette,
                range=[len(figure.dots) - 0.5, -0.5],
                tickmode="array",
                tickvals=places,
                ticktext=[_label(dot, palette) for dot in figure.dots],
                showgrid=False,
                ticks="",
            ),
        ),
    )


def _label(dot: Dot, palette: Palette) -> str:
    if dot.library == "calviz":
        return "<b>calviz</b>"
    call = f'<span style="color:{palette.muted}">{escape(dot.call)}</span>'
    return f"{escape(dot.library)}<br>{call}"


def _traces(figure: ConventionDots, p: Palette) -> Iterator[Trace]:
    own = 100 * figure.conventions.ece
    if not math.isnan(figure.conventions.noise):
        yield {
            "type": "bar",
            "orientation": "h",
            "y": list(range(len(figure.dots))),
            "x": [None if math.isnan(d.noise) else 100 * d.noise for d in figure.dots],
            "width": 0.62,
            "marker": {"color": p.glaze(p.ink, 0.14), "line": {"width": 0}},
            "name": "Mean if calibrated",
            "hovertemplate": "mean if calibrated %{x:.2f} points<extra></extra>",
        }
    yield {
        "type": "scatter",
        "mode": "lines",
        "x": [own, own],
        "y": [-0.5, len(figure.dots) - 0.5],
        "line": {"color": p.ink, "width": 1, "dash": "2px,3px"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    for name, colour, symbol, is_own in (
        ("calviz", p.ink, "diamond", True),
        ("Other libraries", p.blue, "circle", False),
    ):
        chosen = [
            (at, dot) for at, dot in enumerate(figure.dots) if (dot.library == "calviz") is is_own
        ]
        yield {
            "type": "scatter",
            "mode": "markers+text",
            "y": [at for at, _ in chosen],
            "x": np.array([100 * dot.value for _, dot in chosen]),
            "text": [f"{100 * dot.value:.2f}" for _, dot in chosen],
            # Its text must not cross calviz's line just right of the dot.
            "textposition": [
                "middle left" if 0.8 * own < 100 * dot.value < 0.98 * own else "middle right"
                for _, dot in chosen
            ],
            "textfont": {"size": 12, "color": p.ink},
            "cliponaxis": False,
            "marker": {
                "size": 10,
                "symbol": symbol,
                "color": colour,
                "line": {"color": p.paper, "width": 1},
            },
            "name": name,
            "hovertemplate": "%{x:.2f} points<extra></extra>",
        }

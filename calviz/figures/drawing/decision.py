"""How the cost of decisions is drawn; plain arrays in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.core.words import decimal, decimals_for
from calviz.figures._parts import (
    LINE,
    NARROW,
    PER,
    Trace,
    area,
    caption_label,
    caption_lines,
    label,
    legend,
    level_text,
    line,
    packed,
)
from calviz.figures._style import PALETTES, Palette, axis, axis_title, layout, safe

if TYPE_CHECKING:
    from calviz.figures.decision import Decision

_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 28, 26, 54
_TALL, _SMALL = 340, 280
_WIDTH = 880
_DASHES = ("8px,3px", "2px,3px", "8px,3px,2px,3px")
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def draw(
    figure: Decision,
    *,
    theme: Theme,
    caption: tuple[str, ...],
    width: int | None,
    others: tuple[Decision, ...],
) -> go.Figure:
    """Draw computed costs (see `Decision.plot`)."""
    palette = PALETTES[theme]
    lines = caption_lines(caption, width)
    narrow = (width or _WIDTH) < NARROW
    drawing = _Costs(figure, palette, others)
    traces = list(drawing.traces())
    entries = sum(t.get("showlegend", True) for t in traces)
    below = LINE * (entries if narrow else -(-entries // 3)) + 10
    top = _TOP + (LINE * len(lines) + 6 if lines else 0)
    height = top + (_SMALL if narrow else _TALL) + _BOTTOM + below
    return go.Figure(
        data=traces,
        layout=layout(
            palette,
            height=height,
            margin={"l": _LEFT, "r": _RIGHT, "t": top, "b": _BOTTOM + below},
            legend=legend(palette, yref="container", y=below / height),
            annotations=[
                *caption_label(lines, palette, above=_TOP - 6),
                *drawing.face_label(),
            ],
            **drawing.axes(),
        ),
    )


@dataclass(frozen=True)
class _Costs:
    """Curves, the two thresholds of each, and the costs of no rule at all."""

    figure: Decision
    palette: Palette
    others: tuple[Decision, ...]

    @property
    def _every(self) -> tuple[Decision, ...]:
        return (self.figure, *self.others)

    def traces(self) -> Iterator[Trace]:
        """From back to front."""
        f, p = self.figure, self.palette
        if f.band is not None:
            low, high = (PER * end for end in f.band)
            name = f"{level_text(f.level)} bootstrap range"
            yield area(f.threshold, low, high, p.glaze(p.blue, 0.2), name=name, legendrank=20)
        yield line(
            np.array(self._across),
            np.full(2, PER * f.costs.referred),
            p.muted,
            name="Refer everything",
            width=1.5,
            dash="dash",
            hoverinfo="skip",
            legendrank=40,
        )
        if self._face is not None:
            yield line(
                np.array([self._face, self._face]),
                np.array(self._up),
                p.ink,
                width=1,
                dash="2px,3px",
                hoverinfo="skip",
                showlegend=False,
            )
        colours = (p.vermillion, p.purple, p.green)
        for i, other in enumerate(self.others):
            yield from self._one(
                other, colours[i % 3], _SYMBOLS[1 + i % 3], 2 + 2 * i, dash=_DASHES[i % 3]
            )
        yield from self._one(f, p.blue, _SYMBOLS[0], 0, width=2.5)

    def _one(self, f: Decision, colour: str, symbol: str, rank: int, **own: Any) -> Iterator[Trace]:
        alone = len(self._every) == 1
        name = "Cost" if alone else safe(f.name, 30)
        low, high = self._across
        # Below its lowest score a curve keeps everything.
        yield line(
            np.append(low, f.threshold),
            PER * np.append(f.keep_all.cost, f.cost),
            colour,
            name=name,
            legendrank=rank,
            hovertemplate=f"%{{y:,.4~g}} where confidence ≥ %{{x:.4~f}} is kept<extra>{name}</extra>",
            **own,
        )
        place = min(max(f.best.threshold, low), high)
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": packed(np.array([place])),
            "y": packed(np.array([PER * f.best.cost])),
            "marker": {
                "size": 12,
                "symbol": symbol,
                "color": colour,
                "line": {"color": self.palette.paper, "width": 2},
            },
            "name": "Best threshold" if alone else f"Best threshold, {name}",
            "hovertemplate": f"best threshold: %{{y:,.4~g}}<extra>{name}</extra>",
            "legendrank": rank + 1,
            "cliponaxis": False,
        }

    @property
    def _face(self) -> float | None:
        """The threshold at face value, where it is on the axis."""
        face = self.figure.costs.face_value
        low, high = self._across
        return face if low <= face <= high else None

    def face_label(self) -> Iterator[dict[str, Any]]:
        """Name the line of the threshold at face value, above the panel."""
        if self._face is None:
            return
        low, high = self._across
        place = (self._face - low) / (high - low)
        digits = decimals_for(self._face, 1 - self._face or 1, figures=1, least=2)
        yield label(
            f"face value: confidence ≥ {decimal(self._face, digits)}",
            self.palette,
            x=self._face,
            y=1,
            yref="paper",
            yshift=2,
            xanchor="right" if place > 0.75 else "left" if place < 0.25 else "center",
            yanchor="bottom",
        )

    @property
    def _across(self) -> tuple[float, float]:
        lowest = min(float(f.threshold[0]) for f in self._every)
        return (min(lowest, 0.99), 1.0)

    @property
    def _up(self) -> tuple[float, float]:
        """From 0 where that leaves the curves room; what lies far above the best is not what matters."""
        ends = [f.cost for f in self._every] + list(self.figure.band or ())
        refer = self.figure.costs.referred
        low = PER * min(refer, *(float(e.min()) for e in ends))
        high = PER * max(refer, *(float(e.max()) for e in ends))
        if 0 < low < 0.5 * high:
            low = 0.0
        room = 0.06 * (high - low or max(abs(high), 1.0))
        return (low - (room if low else 0), high + room)

    def axes(self) -> dict[str, Any]:
        """Confidence across, cost of a thousand predictions up."""
        p = self.palette
        low, high = self._across
        dense = high - low < 0.02
        return {
            "xaxis": axis(
                p,
                range=[low, high],
                nticks=7,
                tickformat=".4~f" if dense else ".2~f",
                title=axis_title("Keep from this confidence on", p),
            ),
            "yaxis": axis(
                p,
                range=list(self._up),
                nticks=7,
                tickformat=",",
                title=axis_title(f"Cost of {PER:,} predictions", p),
            ),
        }

"""How the cost of decisions is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.decision_cost import PREDICTIONS_PER_COST
from calviz.figures.drawing.curves_and_labels import (
    Trace,
    area,
    label,
    line,
    markers,
    packed,
    vertical_mark,
)
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import DASHES, Palette, axis
from calviz.text.escape import plotly_text
from calviz.text.words import decimal, decimals_for, level_text

if TYPE_CHECKING:
    from calviz.figures.decision_cost import Decision

#: Margins of the panel in pixels.
_MARGINS = (70, 28, 26, 54)
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def draw(figure: Decision, sheet: Sheet, *, others: tuple[Decision, ...]) -> Picture:
    """Draw computed costs (see `Decision.plot`)."""
    drawing = _Costs(figure, sheet.palette, others)
    traces = list(drawing.traces())
    return sheet.picture(
        traces,
        inner=sheet.panel_height,
        margins=_MARGINS,
        above=20,
        annotations=drawing.face_label(),
        **drawing.axes(),
    )


@dataclass(frozen=True)
class _Costs:
    """The curves, their best thresholds, the threshold at face value, and the cost of referring everything."""

    figure: Decision
    palette: Palette
    others: tuple[Decision, ...]

    @property
    def _every(self) -> tuple[Decision, ...]:
        return (self.figure, *self.others)

    def traces(self) -> Iterator[Trace]:
        """Yield the traces from back to front."""
        f, p = self.figure, self.palette
        if f.band is not None:
            low, high = (PREDICTIONS_PER_COST * end for end in f.band)
            name = f"{level_text(f.level)} bootstrap range"
            yield area(f.threshold, low, high, p.glaze(p.blue, 0.2), name=name, legendrank=20)
        yield line(
            np.array(self._across),
            np.full(2, PREDICTIONS_PER_COST * f.costs.referred),
            p.muted,
            name="Refer everything",
            width=1.5,
            dash="dash",
            hoverinfo="skip",
            legendrank=40,
        )
        if self._face is not None:
            yield vertical_mark(self._face, *self._up, p.ink)
        colours = (p.vermillion, p.purple, p.green)
        for i, other in enumerate(self.others):
            yield from self._one(
                other, colours[i % 3], _SYMBOLS[1 + i % 3], 2 + 2 * i, dash=DASHES[1 + i % 3]
            )
        yield from self._one(f, p.blue, _SYMBOLS[0], 0, width=2.5)

    def _one(
        self, f: Decision, colour: str, symbol: str, rank: int, **attributes: Any
    ) -> Iterator[Trace]:
        alone = len(self._every) == 1
        name = "Cost" if alone else plotly_text(f.name, 30)
        low, high = self._across
        # Below the lowest score, everything is kept.
        yield line(
            np.append(low, f.threshold),
            PREDICTIONS_PER_COST * np.append(f.keep_all.cost, f.cost),
            colour,
            name=name,
            legendrank=rank,
            hovertemplate=f"%{{y:,.4~g}} where confidence ≥ %{{x:.4~f}} is kept<extra>{name}</extra>",
            **attributes,
        )
        place = min(max(f.best.threshold, low), high)
        yield markers(
            packed(np.array([place])),
            packed(np.array([PREDICTIONS_PER_COST * f.best.cost])),
            colour,
            size=12,
            symbol=symbol,
            edge=self.palette.paper,
            name="Best threshold" if alone else f"Best threshold, {name}",
            hovertemplate=f"best threshold: %{{y:,.4~g}}<extra>{name}</extra>",
            legendrank=rank + 1,
            cliponaxis=False,
        )

    @property
    def _face(self) -> float | None:
        """The threshold at face value; None if it is not on the axis."""
        face = self.figure.costs.face_value
        low, high = self._across
        return face if low <= face <= high else None

    def face_label(self) -> Iterator[dict[str, Any]]:
        """Label the line of the threshold at face value, above the panel."""
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
        """Range of the cost axis, starting at 0 if the curves then still fill at least half of it."""
        ends = [f.cost for f in self._every] + list(self.figure.band or ())
        refer = self.figure.costs.referred
        low = PREDICTIONS_PER_COST * min(refer, *(float(e.min()) for e in ends))
        high = PREDICTIONS_PER_COST * max(refer, *(float(e.max()) for e in ends))
        if 0 < low < 0.5 * high:
            low = 0.0
        room = 0.06 * (high - low or max(abs(high), 1.0))
        return (low - (room if low else 0), high + room)

    def axes(self) -> dict[str, Any]:
        """Return the axes: confidence across, cost of 1,000 predictions up."""
        p = self.palette
        low, high = self._across
        dense = high - low < 0.02
        return {
            "xaxis": axis(
                p,
                "Keep from this confidence on",
                range=[low, high],
                nticks=7,
                tickformat=".4~f" if dense else ".2~f",
            ),
            "yaxis": axis(
                p,
                f"Cost of {PREDICTIONS_PER_COST:,} predictions",
                range=list(self._up),
                nticks=7,
                tickformat=",",
            ),
        }

"""How the gaps of slices are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calviz.core.arrays import FloatArray
from calviz.core.reduction import Reduction
from calviz.figures.drawing.curves_and_labels import (
    UNFADED,
    Trace,
    label,
    markers,
    outline,
    vertical_shape,
    whiskers,
)
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis, name_room, row_axis
from calviz.results.slices import Slice
from calviz.text.escape import plotly_text
from calviz.text.words import points, score_and_hit, shorten

if TYPE_CHECKING:
    from calviz.figures.kernels.overlaid_curves import Overlay
    from calviz.figures.slice_gaps import SliceGaps

#: Height of a row, and of one with its name above it, and margins of the panel, in pixels.
_ROW, _TALL, _RIGHT, _TOP, _BOTTOM = 24, 42, 20, 12, 52
#: Size of a mark, and of one that was clicked, in pixels.
_MARK, _CLICKED = 9, 14
#: Maximum characters of a name beside and above its row, and space beside the names in pixels.
_NAME, _ABOVE, _BESIDE = 52, 46, 20


def draw(figure: SliceGaps, sheet: Sheet, *, beside: tuple[Overlay[FloatArray], ...]) -> Picture:
    """Draw the gaps of slices (see `SliceGaps.plot`)."""
    palette, above = sheet.palette, sheet.narrow
    limit = _ABOVE if above else _NAME
    short = [shorten(s.name, limit) for s in figure.shown]
    names = [plotly_text(name) for name in short]
    # On a narrow page, names beside their rows would take most of the width.
    left = _RIGHT if above else name_room(short, _BESIDE)
    return sheet.picture(
        [*_traces(figure, palette), *(_outlines(other, palette) for other in beside)],
        inner=(_TALL if above else _ROW) * max(len(names), 2),
        margins=(left, _RIGHT, _TOP, _BOTTOM),
        shapes=[
            vertical_shape(palette.neutral, x=x, width=1.2, dash=dash, yref="paper", layer="below")
            for x, dash in ((0.0, "solid"), (100 * figure.result.gap, "dash"))
        ],
        xaxis=axis(palette, _gap_words(figure), nticks=5 if sheet.narrow else 9),
        yaxis=row_axis(palette, names, showticklabels=not above, ticks="" if above else "outside"),
        annotations=_names_above(names, palette) if above else (),
    )


def _names_above(names: list[str], palette: Palette) -> list[Trace]:
    place = {"xref": "paper", "x": 0.0, "xanchor": "left", "yref": "y", "yanchor": "bottom"}
    return [
        label(name, palette, **place, y=at, yshift=6, bgcolor=palette.glaze(palette.paper, 0.7))
        for at, name in enumerate(names)
    ]


def _gap_words(figure: SliceGaps) -> str:
    score, hit = score_and_hit(Reduction.of(figure.result.reduction))
    return f"{score.capitalize()} − {hit} (points)"


def _traces(figure: SliceGaps, palette: Palette) -> Iterator[Trace]:
    rate = figure.result.rate
    top = Reduction.of(figure.result.reduction).kind == "top-label"
    high, low = ("Overconfident", "Underconfident") if top else ("Too high", "Too low")
    kinds = ((high, True, palette.vermillion, "diamond"), (low, False, palette.purple, "circle"))
    for title, above, colour, symbol in kinds:
        for off in (True, False):
            at = [
                i
                for i, s in enumerate(figure.shown)
                if (s.gap > 0) == above and (s.adjusted <= rate) == off
            ]
            if not at:
                continue
            some = [figure.shown[i] for i in at]
            name = title if off else f"{title}, may be chance"
            yield markers(
                [100 * s.gap for s in some],
                at,
                colour,
                size=_MARK,
                symbol=symbol if off else f"{symbol}-open",
                edge=colour,
                edge_width=1.5,
                name=name,
                error_x=whiskers(
                    [100 * (s.interval.high - s.gap) for s in some],
                    [100 * (s.gap - s.interval.low) for s in some],
                    palette.ink if off else palette.muted,
                    thickness=1.3,
                    width=4,
                ),
                customdata=[[i, *_facts(figure.shown[i])] for i in at],
                hovertemplate="%{customdata[1]}<br>%{customdata[2]}<extra></extra>",
                unselected=UNFADED["unselected"],
                selected={"marker": {"opacity": 1, "size": _CLICKED}},
            )


def _outlines(other: Overlay[FloatArray], palette: Palette) -> Trace:
    """Draw the gaps of the same slices in another state."""
    symbol, _, colour = outline(other.role, palette)
    name = plotly_text(other.name, 44)
    return markers(
        100 * other.content,
        list(range(other.content.size)),
        colour,
        size=10,
        symbol=symbol,
        edge=colour,
        name=name,
        # So that a click selects the slice, as on the main marker.
        customdata=[[i] for i in range(other.content.size)],
        **UNFADED,
        hovertemplate="%{x:.2f} points<extra>" + name + "</extra>",
    )


def _facts(s: Slice) -> list[str]:
    gap = f"{points(s.gap)} points ({points(s.interval.low)} to {points(s.interval.high)})"
    return [plotly_text(s.name, 80), f"{gap}, {s.rows:,} rows"]

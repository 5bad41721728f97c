"""How the gaps of slices are drawn; plain numbers in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.core.reduction import Reduction
from calviz.core.slices import Slice
from calviz.core.words import points, score_and_hit
from calviz.figures._parts import LINE, NARROW, Trace, caption_label, caption_lines, legend
from calviz.figures._style import PALETTES, Palette, axis, axis_title, layout, safe

if TYPE_CHECKING:
    from calviz.figures.slice_gaps import SliceGaps

_ROW, _TOP, _BOTTOM, _RIGHT, _WIDTH = 24, 12, 52, 20, 880
#: Characters of a name, and pixels of one.
_NAME, _SHORT, _CHARACTER = 52, 20, 6.5


def draw(
    figure: SliceGaps, *, theme: Theme, caption: tuple[str, ...], width: int | None
) -> go.Figure:
    """Draw the gaps of slices (see `SliceGaps.plot`)."""
    palette = PALETTES[theme]
    narrow = (width or _WIDTH) < NARROW
    lines = caption_lines(caption, width)
    limit = _SHORT if narrow else _NAME
    names = [safe(s.name, limit) for s in figure.shown]
    left = round(_CHARACTER * max((min(len(s.name), limit) for s in figure.shown), default=0)) + 20
    top = _TOP + (LINE * len(lines) + 6 if lines else 0)
    below = LINE * (4 if narrow else 2) + 10
    height = top + _ROW * max(len(names), 2) + _BOTTOM + below
    count = len(names)
    return go.Figure(
        data=list(_traces(figure, palette)),
        layout=layout(
            palette,
            height=height,
            margin={"l": left, "r": _RIGHT, "t": top, "b": _BOTTOM + below},
            legend=legend(palette, yref="container", y=below / height),
            annotations=[*caption_label(lines, palette, above=8)],
            shapes=list(_lines(figure, palette)),
            xaxis=axis(
                palette,
                title=axis_title(_gap_words(figure), palette),
                zeroline=False,
                nticks=5 if narrow else 9,
            ),
            # From the top down; names that are alike after shortening stay two rows.
            yaxis=axis(
                palette,
                range=[count - 0.5, -0.5],
                tickvals=list(range(count)),
                ticktext=names,
                showgrid=False,
            ),
        ),
    )


def _gap_words(figure: SliceGaps) -> str:
    score, hit = score_and_hit(Reduction.of(figure.result.reduction))
    return f"{score.capitalize()} − {hit} (points)"


def _traces(figure: SliceGaps, palette: Palette) -> Iterator[Trace]:
    rate = figure.result.rate
    top = Reduction.of(figure.result.reduction).kind == "top-label"
    high, low = ("Overconfident", "Underconfident") if top else ("Too high", "Too low")
    kinds = ((high, True, palette.vermillion, "diamond"), (low, False, palette.blue, "circle"))
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
            yield {
                "type": "scatter",
                "mode": "markers",
                "x": [100 * s.gap for s in some],
                "y": at,
                "name": name,
                "marker": {
                    "symbol": symbol if off else f"{symbol}-open",
                    "size": 9,
                    "color": colour,
                    "line": {"width": 1.5, "color": colour},
                },
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [100 * (s.interval.high - s.gap) for s in some],
                    "arrayminus": [100 * (s.gap - s.interval.low) for s in some],
                    "color": palette.ink if off else palette.muted,
                    "thickness": 1.3,
                    "width": 4,
                },
                "customdata": [_facts(s) for s in some],
                "hovertemplate": "%{customdata[0]}<br>%{customdata[1]}<extra></extra>",
            }


def _facts(s: Slice) -> list[str]:
    gap = f"{points(s.gap)} points ({points(s.interval.low)} to {points(s.interval.high)})"
    return [safe(s.name, 80), f"{gap}, {s.rows:,} rows"]


def _lines(figure: SliceGaps, palette: Palette) -> Iterator[dict[str, Any]]:
    for x, dash in ((0.0, "solid"), (100 * figure.result.gap, "dash")):
        yield {
            "type": "line",
            "layer": "below",
            "x0": x,
            "x1": x,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": {"color": palette.neutral, "width": 1.2, "dash": dash},
        }

"""How a metric over time is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import Trace, line, markers, outline, whiskers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis
from calviz.results.metric_words import scale_of
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.kernels.overlaid_curves import Overlay
    from calviz.figures.over_time import OverTimeLine

#: Margins of the panel left, right, above and below, in pixels; the last one if the names of the periods are written upright.
_LEFT, _RIGHT, _TOP, _BOTTOM, _TURNED = 66, 20, 14, 40, 70
#: Width of a letter, and of the drawing if it is not known, in pixels.
_LETTER, _USUAL = 7, 700
#: Number of period names that fit below the panel, on wide and narrow pages.
_NAMES, _FEW = 12, 5


def draw(figure: OverTimeLine, sheet: Sheet, *, beside: tuple[Overlay[FloatArray], ...]) -> Picture:
    """Draw the periods in their order (see `OverTimeLine.plot`)."""
    traces = [*_traces(figure, sheet.palette), *_others(figure, sheet.palette, beside)]
    periods = figure.result.periods
    step = max(1, -(-len(periods) // (_FEW if sheet.narrow else _NAMES)))
    at = list(range(0, len(periods), step))
    sign = scale_of(figure.result.metric)[1]
    # The beginning of a period suffices to identify it.
    names = [plotly_text(periods[i].name.split(" to ")[0], 16) for i in at]
    room = (sheet.width or _USUAL) - _LEFT - _RIGHT
    fit = len(names) * (2 + max(map(len, names), default=0)) * _LETTER <= room
    return sheet.picture(
        traces,
        inner=sheet.panel_height,
        margins=(_LEFT, _RIGHT, _TOP, _BOTTOM if fit else _TURNED),
        xaxis=axis(
            sheet.palette,
            range=[-0.6, len(periods) - 0.4],
            tickmode="array",
            tickvals=at,
            ticktext=names,
        ),
        yaxis=axis(sheet.palette, figure.label + (f", {sign}" if sign else ""), nticks=7),
    )


def _traces(figure: OverTimeLine, palette: Palette) -> Iterator[Trace]:
    r = figure.result
    scale = scale_of(r.metric)[0]
    x = np.arange(len(r.periods), dtype=np.float64)
    floor = np.array(
        [p.result.noise_floor.mean if p.result.noise_floor else np.nan for p in r.periods]
    )
    if np.isfinite(floor).any():
        name = "Noise floor (calibrated)"
        yield line(x, scale * floor, palette.muted, width=1.5, dash="2px,3px", name=name)
    expected = np.array([p.expected for p in r.periods])
    if np.isfinite(expected).any():
        name = "Usual, if nothing changes"
        yield line(x, scale * expected, palette.ink, width=1.5, dash="dash", name=name)
    if any(p.recalibrated for p in r.periods):
        after = np.array([p.recalibrated.value if p.recalibrated else np.nan for p in r.periods])
        name = f"{RECALIBRATORS[r.method or ''].label}, fitted on the past"
        yield {
            **line(x, scale * after, palette.green, width=2, name=plotly_text(name, 60)),
            "mode": "lines+markers",
            "marker": {"size": 6, "color": palette.green, "symbol": "square"},
            "hovertemplate": "%{y:.4~g}<extra>fitted on the past</extra>",
        }
    for changed in (False, True):
        some = [i for i, p in enumerate(r.periods) if (p.adjusted <= r.level) == changed]
        if not some:
            continue
        results = [r.periods[i].result for i in some]
        value = [scale * f.value for f in results]
        ends = [f.interval or (f.value, f.value) for f in results]
        colour = palette.vermillion if changed else palette.blue
        name = "Differs from the others beyond chance" if changed else "Each period, with 95 % CI"
        yield markers(
            some,
            value,
            colour,
            size=9,
            symbol="diamond" if changed else "circle",
            name=name,
            error_y=whiskers(
                [scale * e[1] - v for e, v in zip(ends, value, strict=True)],
                [v - scale * e[0] for e, v in zip(ends, value, strict=True)],
                colour,
                thickness=1.3,
                width=4,
            ),
            customdata=[[plotly_text(r.periods[i].name, 40), r.periods[i].rows] for i in some],
            hovertemplate="%{customdata[0]}: %{y:.4~g}<br>%{customdata[1]:,} rows<extra></extra>",
        )


def _others(
    figure: OverTimeLine, palette: Palette, beside: tuple[Overlay[FloatArray], ...]
) -> Iterator[Trace]:
    """Draw values of other rows as outlines, joined where neighbouring periods have values."""
    scale = scale_of(figure.result.metric)[0]
    for other in beside:
        symbol, dash, colour = outline(other.role, palette)
        name = plotly_text(other.name, 44)
        x = np.arange(other.content.size, dtype=np.float64)
        yield line(x, scale * other.content, colour, name=name, dash=dash, width=1.5) | {
            "mode": "lines+markers",
            "marker": {"symbol": symbol, "size": 9, "color": colour},
            "hovertemplate": "%{y:.4~g}<extra>" + name + "</extra>",
        }

"""Small square panels that stand side by side on one scale: reliability diagrams and calibration maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from calviz.core.arrays import FloatArray
from calviz.core.figure import Theme
from calviz.core.words import decimal, points
from calviz.figures._parts import Trace, area, line
from calviz.figures._style import PALETTES, Palette, axis, axis_title, layout, safe

if TYPE_CHECKING:
    from calviz.figures.calibration_map import CalibrationMap
    from calviz.figures.reliability import Reliability

#: Pixels round the square; the largest circle, for all rows.
_LEFT, _RIGHT, _TOP, _BOTTOM, _CIRCLE = 46, 8, 8, 44, 26


def reliability(figure: Reliability, *, theme: Theme, height: int) -> go.Figure:
    """Bars of the observed frequency, gaps to the diagonal, intervals; circles as large as their rows."""
    p = PALETTES[theme]
    f = figure
    middle, width = (f.low + f.high) / 2, f.high - f.low
    hover = [
        f"scores {decimal(a, 2)} to {decimal(b, 2)}<br>mean score {decimal(s)}, observed {decimal(o)}"
        f"<br>gap {points(s - o)} points, {int(n):,} rows"
        for a, b, s, o, n in zip(f.low, f.high, f.mean_score, f.observed, f.count, strict=True)
    ]
    bars: list[Trace] = [
        {
            "type": "bar",
            "x": middle,
            "y": f.observed,
            "width": width,
            "marker": {"color": p.tint(p.blue, 0.35), "line": {"color": p.blue, "width": 1}},
            "text": hover,
            "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>",
        },
        {
            "type": "bar",
            "x": middle,
            "base": f.observed,
            "y": f.mean_score - f.observed,
            "width": width,
            "marker": {
                "color": p.glaze(p.vermillion, 0.18),
                "pattern": {"shape": "/", "fgcolor": p.vermillion, "size": 6, "solidity": 0.25},
                "line": {"color": p.vermillion, "width": 1},
            },
            "hoverinfo": "skip",
        },
    ]
    low, high = f.interval
    dots = _dots(f.mean_score, f.observed, f.share, p)
    dots["error_y"] = {
        "type": "data",
        "symmetric": False,
        "array": high - f.observed,
        "arrayminus": f.observed - low,
        "color": p.ink,
        "thickness": 1,
        "width": 2,
    }
    return _square(
        [*bars, _diagonal(p), dots],
        p,
        height,
        safe(f.reduction.score_label, 34),
        "Observed frequency",
        barmode="overlay",
        bargap=0,
    )


def calibration_map(figure: CalibrationMap, *, theme: Theme, height: int) -> go.Figure:
    """The map over the diagonal of no change, and the observed frequencies it should lead to."""
    p = PALETTES[theme]
    f = figure
    traces: list[Trace] = [_diagonal(p)]
    if not f.is_function:
        traces.append(area(f.before, f.low, f.high, p.glaze(p.blue, 0.22)))
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": f.rows[0],
                "y": f.rows[1],
                "marker": {"size": 3, "color": p.glaze(p.blue, 0.45)},
                "hoverinfo": "skip",
            }
        )
    traces.append(
        line(
            f.before,
            f.after,
            p.blue,
            width=2.5,
            hovertemplate="score %{x:.3f} becomes %{y:.3f}<extra></extra>",
        )
    )
    traces.append(_dots(*f.observed, p))
    return _square(
        traces,
        p,
        height,
        "Score before",
        "After (dots: observed)",
    )


def _dots(x: FloatArray, y: FloatArray, share: FloatArray, p: Palette) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "customdata": 100 * share,
        "marker": {
            "size": np.maximum(4, _CIRCLE * np.sqrt(share)),
            "color": p.glaze(p.vermillion, 0.25),
            "line": {"color": p.vermillion, "width": 1.5},
        },
        "hovertemplate": "score %{x:.3f}, observed %{y:.3f}<br>%{customdata:.1f} % of the rows"
        "<extra></extra>",
    }


def _diagonal(p: Palette) -> Trace:
    ends = np.array([0.0, 1.0])
    return line(ends, ends, p.ink, width=1, dash="4px,3px", hoverinfo="skip")


def _square(traces: list[Trace], p: Palette, height: int, x: str, y: str, **own: Any) -> go.Figure:
    unit = {"range": [0, 1], "tickmode": "linear", "dtick": 0.25, "tickformat": ".2~f"}
    title = {"font": {"size": 12, "color": p.ink}, "standoff": 6}
    return go.Figure(
        traces,
        layout(
            p,
            height=height,
            margin={"l": _LEFT, "r": _RIGHT, "t": _TOP, "b": _BOTTOM},
            showlegend=False,
            xaxis=axis(p, **unit, constrain="domain", title=axis_title(x, p) | title),
            yaxis=axis(
                p,
                **unit,
                scaleanchor="x",
                scaleratio=1,
                constrain="domain",
                title=axis_title(y, p) | title,
            ),
            **own,
        ),
    )

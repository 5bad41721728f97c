"""Building blocks of curves, bars and their surroundings, as plain dicts for plotly."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.results import Interval
from calviz.core.words import decimals_for, points
from calviz.figures._style import Palette, escape

Trace = dict[str, Any]

#: Pixels of a line of the caption.
LINE = 19
#: Characters of a line of the caption that fit a phone.
CAPTION_LINE = 46
#: Costs are written for so many predictions.
PER = 1_000
#: Below this width panels stand one above the other, and labels are short.
NARROW = 620


def packed(values: npt.NDArray[Any]) -> FloatArray:
    """Coordinates in half the bytes: more digits than a screen has pixels."""
    return np.asarray(values, dtype=np.float32)


def line(x: FloatArray, y: FloatArray, colour: str, **own: Any) -> Trace:
    """Draw a curve; `dash`, `width` and `shape` are those of the line."""
    style = {"color": colour, "width": own.pop("width", 2), "dash": own.pop("dash", "solid")}
    if "shape" in own:
        style["shape"] = own.pop("shape")
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(x),
        "y": packed(y),
        "line": style,
        **own,
    }


def area(x: FloatArray, low: FloatArray, high: FloatArray, fill: str, **own: Any) -> Trace:
    """Fill the band between two curves over the same places."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(np.concatenate([x, x[::-1]])),
        "y": packed(np.concatenate([low, high[::-1]])),
        "fill": "toself",
        "fillcolor": fill,
        "line": {"width": 0},
        "hoverinfo": "skip",
        **own,
    }


def wrapped(caption: Sequence[str], width: int = CAPTION_LINE) -> list[str]:
    """Lines that fit a phone, broken between the parts that dots separate where that is possible."""

    def together(part: str) -> str:
        return part.replace(" ", "\u00a0") if len(part) <= width else part

    return [
        part.removesuffix("\u00a0·").replace("\u00a0", " ")
        for text in caption
        for part in textwrap.wrap(
            "\u00a0· ".join(together(p) for p in text.split(" · ")), width, break_on_hyphens=False
        )
    ]


def caption_lines(caption: Sequence[str], width: int | None) -> list[str]:
    """Break the caption for the width that is known, or for a phone."""
    return wrapped(caption, CAPTION_LINE if width is None else max(24, round(width / 7.6)))


def caption_label(
    lines: Sequence[str], palette: Palette, *, above: int
) -> Iterator[dict[str, Any]]:
    """Put the caption so many pixels above the panels, flush left; its first line is bold."""
    if not lines:
        return
    head, *rest = (escape(text) for text in lines)
    yield {
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 1,
        "yshift": above,
        "text": "<br>".join([f"<b>{head}</b>", *rest]),
        "showarrow": False,
        "align": "left",
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"size": 13, "color": palette.ink},
    }


def label(text: str, palette: Palette, **own: Any) -> Trace:
    """Put text into the drawing without an arrow; `text` is already safe."""
    return {
        "text": text,
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": palette.ink},
        **own,
    }


def legend(palette: Palette, **own: Any) -> dict[str, Any]:
    """Describe a legend in a row; a click on it hides nothing."""
    return {
        "orientation": "h",
        "x": 0.5,
        "xanchor": "center",
        "yanchor": "top",
        "bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"size": 12, "color": palette.ink},
        "itemclick": False,
        "itemdoubleclick": False,
        "traceorder": "normal",
        **own,
    }


def level_text(level: float) -> str:
    """Write a level.

    >>> level_text(0.95)
    '95 %'
    """
    return f"{100 * level:g} %"


def points_text(value: float, interval: Interval | None = None, level: float = 0.95) -> str:
    """Write a difference in points with its interval.

    >>> points_text(0.0541, Interval(0.0482, 0.0603))
    '5.4 points (95 % CI 4.8 to 6.0)'
    """
    spread = 100 * (interval.high - interval.low) / 2 if interval else 100 * abs(value)
    decimals = decimals_for(spread, figures=1 if interval else 2, most=2)
    text = f"{points(value, decimals)} points"
    if interval:
        low, high = (points(v, decimals) for v in interval)
        text += f" ({level_text(level)} CI {low} to {high})"
    return text

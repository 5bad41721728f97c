"""Curves, bands, points, labels and captions, as plain dicts for plotly."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.style import Palette
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.kernels.overlaid_curves import Role

Trace = dict[str, Any]

#: Height of a line of the caption in pixels.
LINE = 19
#: Characters of a caption line that fit on a phone.
CAPTION_LINE = 46
#: Turns off plotly's fading of unselected points; the drawing itself marks a selection.
UNFADED: Trace = {
    "selected": {"marker": {"opacity": 1}},
    "unselected": {"marker": {"opacity": 1}},
}


def packed(values: npt.NDArray[Any]) -> FloatArray:
    """Convert coordinates of any shape to single precision, which is more precise than a screen."""
    return np.asarray(values, dtype=np.float32)


def line(x: FloatArray, y: FloatArray, colour: str, **attributes: Any) -> Trace:
    """Draw a curve; `dash`, `width` and `shape` are those of the line."""
    style = {
        "color": colour,
        "width": attributes.pop("width", 2),
        "dash": attributes.pop("dash", "solid"),
    }
    if "shape" in attributes:
        style["shape"] = attributes.pop("shape")
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(x),
        "y": packed(y),
        "line": style,
        **attributes,
    }


def short_line(x: FloatArray) -> FloatArray:
    """Return both ends of a short line around the only score `x` (1,) of a curve, because a single point would not be visible."""
    return np.asarray(x + np.array([-0.05, 0.05]))


def vertical_mark(x: float, low: float, high: float, colour: str) -> Trace:
    """Draw a thin dotted vertical line as a mark."""
    return line(
        np.array([x, x]),
        np.array([low, high]),
        colour,
        width=1,
        dash="2px,3px",
        hoverinfo="skip",
        showlegend=False,
    )


def markers(x: Any, y: Any, colour: str, *, edge: str | None = None, **attributes: Any) -> Trace:
    """Draw points of a `size` and `symbol`, with an outline of the colour `edge` and the width `edge_width`."""
    style: Trace = {"color": colour} | {
        k: attributes.pop(k) for k in ("size", "symbol") if k in attributes
    }
    if edge is not None:
        style["line"] = {"color": edge, "width": attributes.pop("edge_width", 2)}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": style, **attributes}


def outline(role: Role, palette: Palette) -> tuple[str, str, str]:
    """Return symbol, dash and colour of further curves or points, so that they also differ without colour."""
    return {
        "selected": ("square-open", "1px,3px", palette.ink),
        "pinned": ("diamond-open", "5px,3px", palette.green),
        "before": ("circle-open", "2px,2px", palette.muted),
    }[role]


def whiskers(above: Any, below: Any, colour: str, *, thickness: float, width: int) -> Trace:
    """Describe the error bars of points by their lengths on both sides."""
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": colour,
        "thickness": thickness,
        "width": width,
    }


def area(x: FloatArray, low: FloatArray, high: FloatArray, fill: str, **attributes: Any) -> Trace:
    """Fill the band between two curves with the same x values, shape (P,)."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(np.concatenate([x, x[::-1]])),
        "y": packed(np.concatenate([low, high[::-1]])),
        "fill": "toself",
        "fillcolor": fill,
        "line": {"width": 0},
        "hoverinfo": "skip",
        **attributes,
    }


def hatched(colour: str, palette: Palette, *, shape: str, tint: float, solidity: float) -> Trace:
    """Describe the hatching of a bar, so that bars do not differ in colour only."""
    return {
        "shape": shape,
        "fillmode": "replace",
        "fgcolor": colour,
        "bgcolor": palette.tint(colour, tint),
        "fgopacity": 1,
        "size": 6,
        "solidity": solidity,
    }


def vertical_shape(colour: str, *, x: float, width: float, **attributes: Any) -> dict[str, Any]:
    """Describe a line from the bottom of a panel to its top, or from `y0` to `y1`."""
    style = {"color": colour, "width": width}
    if "dash" in attributes:
        style["dash"] = attributes.pop("dash")
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": style, **attributes}


def frame(colour: str, **attributes: Any) -> dict[str, Any]:
    """Describe a rectangle; `width` is that of its line."""
    return {
        "type": "rect",
        "line": {"color": colour, "width": attributes.pop("width", 2)},
        **attributes,
    }


def wrapped(caption: Sequence[str], width: int = CAPTION_LINE) -> list[str]:
    """Break a caption into lines of at most `width` characters, if possible at the dots between its parts."""

    def unbroken(part: str) -> str:
        return part.replace(" ", "\u00a0") if len(part) <= width else part

    return [
        part.removesuffix("\u00a0·").replace("\u00a0", " ")
        for text in caption
        for part in textwrap.wrap(
            "\u00a0· ".join(unbroken(p) for p in text.split(" · ")), width, break_on_hyphens=False
        )
    ]


def caption_label(
    lines: Sequence[str],
    palette: Palette,
    *,
    above: int,
    over: tuple[str, str] = ("paper", "paper"),
) -> Iterator[dict[str, Any]]:
    """Put the caption `above` pixels above all panels or one of them, flush left; its first line is bold."""
    if not lines:
        return
    head, *rest = (plotly_text(text) for text in lines)
    text = "<br>".join([f"<b>{head}</b>", *rest])
    yield heading(text, palette, over, above, font={"size": 13, "color": palette.ink})


def heading(
    text: str, palette: Palette, over: tuple[str, str], above: int = 4, **attributes: Any
) -> dict[str, Any]:
    """Put text `above` pixels above a panel, flush left; `over` names the axes of the panel. `text` must be escaped."""
    place = {"x": 0, "y": 1, "yshift": above, "xanchor": "left", "yanchor": "bottom"}
    return label(text, palette, xref=over[0], yref=over[1], **place, **attributes)


def label(text: str, palette: Palette, **attributes: Any) -> Trace:
    """Put text into the drawing without an arrow; `text` must be escaped."""
    return {
        "text": text,
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": palette.ink},
        **attributes,
    }


def legend(palette: Palette, **attributes: Any) -> dict[str, Any]:
    """Describe a horizontal legend; clicks on it hide nothing."""
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
        **attributes,
    }

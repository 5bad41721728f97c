"""How a confusion matrix is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.figures.drawing.curves_and_labels import Trace, frame
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.style import Palette, axis, name_room, row_axis
from calviz.text.escape import plotly_text
from calviz.text.words import counted, percent, shorten

if TYPE_CHECKING:
    from calviz.figures.confusion import By, Confusion

#: Height of a row, and margins right of, above and below the panel, in pixels.
_ROW, _RIGHT, _TOP, _BOTTOM = 38, 12, 10, 62
#: Maximum characters of a name beside and below the panel, and space beside the names in pixels.
_NAME, _BELOW, _BESIDE = 16, 9, 40


def draw(
    figure: Confusion,
    sheet: Sheet,
    *,
    by: By,
    shown: IntArray,
    selected: tuple[int, int] | None = None,
) -> Picture:
    """Draw the cells of some classes: right predictions in blue, mistakes in vermillion, darker for larger shares."""
    p = sheet.palette
    names = [shorten(figure.class_names[k], _NAME) for k in shown]
    short = [shorten(figure.class_names[k], _BELOW) for k in shown]
    return sheet.picture(
        [*_traces(figure, p, by, shown, narrow=sheet.narrow), _click(figure, by, shown)],
        inner=_ROW * max(shown.size, 3),
        margins=(name_room(names, _BESIDE), _RIGHT, _TOP, _BOTTOM),
        entries=False,
        shapes=list(_framed(p, shown, selected)),
        xaxis=axis(
            p,
            "Predicted class",
            size=13,
            range=[-0.5, shown.size - 0.5],
            tickmode="array",
            tickvals=list(range(shown.size)),
            ticktext=[plotly_text(name) for name in short],
            showgrid=False,
        ),
        yaxis=row_axis(
            p, [plotly_text(name) for name in names], title="True class", size=13, standoff=6
        ),
    )


def _framed(p: Palette, shown: IntArray, cell: tuple[int, int] | None) -> Iterator[Trace]:
    if cell is None or not all(np.isin(cell, shown)):
        return
    y, x = (int(np.flatnonzero(shown == k)[0]) for k in cell)
    yield frame(p.ink, layer="above", x0=x - 0.5, x1=x + 0.5, y0=y - 0.5, y1=y + 0.5)


def _click(f: Confusion, by: By, shown: IntArray) -> Trace:
    """Invisible markers over the cells, because a heat map does not report where it was clicked."""
    place = np.full(len(f.class_names), -1)
    place[shown] = np.arange(shown.size)
    at = np.flatnonzero((place[f.true] >= 0) & (place[f.predicted] >= 0))
    share = f.share(by)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": place[f.predicted[at]],
        "y": place[f.true[at]],
        "marker": {"symbol": "square", "size": _ROW - 2, "opacity": 0},
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        # Lists, because for a two-dimensional array the browser returns the clicked row as an object, {"0": true, "1": predicted}.
        "customdata": np.stack([f.true[at], f.predicted[at]], axis=1).tolist(),
        "hoverinfo": "text",
        "hovertext": [_hover(f, int(i), float(share[i]), by) for i in at],
        "showlegend": False,
    }


def _traces(f: Confusion, p: Palette, by: By, shown: IntArray, *, narrow: bool) -> Iterator[Trace]:
    size = shown.size
    place = np.full(len(f.class_names), -1)
    place[shown] = np.arange(size)
    inside = (place[f.true] >= 0) & (place[f.predicted] >= 0)
    share = f.share(by)
    right = f.true == f.predicted
    for which, colour, what in (
        (inside & right, p.blue, "right"),
        (inside & ~right, p.vermillion, "wrong"),
    ):
        if which.any():
            yield _cells(f, p, which, place, share, colour, size, by, what, narrow=narrow)


def _hover(f: Confusion, i: int, share: float, by: str) -> str:
    true, predicted = (plotly_text(f.class_names[k], 40) for k in (f.true[i], f.predicted[i]))
    return (
        f"<b>{true}</b> taken for <b>{predicted}</b><br>"
        f"{counted(int(f.rows[i]), 'row')}, {percent(share)} of the {by} class<br>"
        f"mean confidence {f.confidence[i]:.3f}"
    )


def _cells(
    f: Confusion,
    p: Palette,
    which: BoolArray,
    place: IntArray,
    share: FloatArray,
    colour: str,
    size: int,
    by: str,
    what: str,
    *,
    narrow: bool,
) -> Trace:
    z = np.full((size, size), np.nan)
    text = np.full((size, size), "", dtype=object)
    hover = np.full((size, size), "", dtype=object)
    for i in np.flatnonzero(which):
        at = place[f.true[i]], place[f.predicted[i]]
        z[at] = share[i]
        text[at] = f"{f.rows[i]:,}" if narrow else f"{f.rows[i]:,}<br>{f.confidence[i]:.2f}"
        hover[at] = _hover(f, int(i), float(share[i]), by)
    strongest = 0.5
    return {
        "type": "heatmap",
        "z": z,
        "zmin": 0,
        "zmax": 1 if what == "right" else max(float(np.nanmax(z)), 1e-9),
        "colorscale": [[0, p.tint(colour, 0.08)], [1, p.tint(colour, strongest)]],
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 11, "color": p.ink},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": False,
    }

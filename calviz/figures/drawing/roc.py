"""How ROC and precision-recall curves are drawn; plain arrays in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.parts import Trace, heading, line, markers
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.small_panels import diagonal, square
from calviz.figures.drawing.style import Palette

if TYPE_CHECKING:
    from calviz.figures.roc import Panel, Roc
    from calviz.sample.cutoff import Confusion

#: Pixels of the square with its axes, and of the line above it.
_HEIGHT, _ABOVE = 350, 24


def draw(figure: Roc, sheet: Sheet, *, panel: Panel, at: Confusion | None) -> Picture:
    """Draw a curve (see `Roc.plot`)."""
    roc = panel == "roc"
    x, y = (
        ("False alarms (1 - specificity)", "Sensitivity")
        if roc
        else ("Sensitivity (recall)", "Precision")
    )
    picture = square(
        list(_traces(figure, sheet.palette, roc, at)),
        sheet,
        _HEIGHT,
        x,
        y,
    )
    layout = picture["layout"]
    layout["margin"]["t"] += _ABOVE
    layout["height"] += _ABOVE
    text = figure.area_words(panel)
    note = heading(
        text, sheet.palette, ("x domain", "y domain"), font={"size": 12, "color": sheet.palette.ink}
    )
    layout["annotations"] = [*layout["annotations"], note]
    return picture


def _traces(f: Roc, p: Palette, roc: bool, at: Confusion | None) -> Iterator[Trace]:
    x, y = (f.false_alarms, f.sensitivity) if roc else (f.sensitivity, f.precision)
    there = np.isfinite(x) & np.isfinite(y)
    if roc:
        yield diagonal(p)
    else:
        ends = np.array([0.0, 1.0])
        yield line(ends, 0 * ends + f.share, p.ink, width=1, dash="4px,3px", hoverinfo="skip")
    shown = np.where(np.isfinite(f.cutoff), f.cutoff, 1.0)[there]
    yield line(
        x[there],
        y[there],
        p.blue,
        width=2.5,
        # Between two cutoffs precision is not on a straight line.
        shape="linear" if roc else "vh",
    ) | {
        "customdata": shown,
        "hovertemplate": "cutoff %{customdata:.3f}<br>%{x:.3f}, %{y:.3f}<extra></extra>",
    }
    if at is not None:
        yield from _mark(at, p, roc)


def _mark(at: Confusion, p: Palette, roc: bool) -> Iterator[Trace]:
    def share(part: FloatArray, rest: FloatArray) -> float:
        whole = float(part + rest)
        return float(part) / whole if whole else float("nan")

    sensitivity = share(at.tp, at.fn)
    x, y = (share(at.fp, at.tn), sensitivity) if roc else (sensitivity, share(at.tp, at.fp))
    if np.isfinite([x, y]).all():
        yield markers(
            [x],
            [y],
            p.vermillion,
            size=12,
            edge=p.paper,
            cliponaxis=False,
            hovertemplate=f"cutoff {at.params['cutoff']:.3g}<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>",
        )

"""How ROC and precision-recall curves are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.figures.drawing.curves_and_labels import LINE, Trace, heading, line, markers, outline
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.small_panels import diagonal, square
from calviz.figures.drawing.style import Palette
from calviz.text.escape import plotly_text

if TYPE_CHECKING:
    from calviz.figures.kernels.overlaid_curves import Overlay
    from calviz.figures.roc import Roc, RocPanel
    from calviz.sample.cutoff import CutoffCounts

#: Height of the square with its axes, and of the line of text above it, in pixels.
_HEIGHT, _ABOVE = 350, 24


def draw(
    figure: Roc,
    sheet: Sheet,
    *,
    panel: RocPanel,
    at: CutoffCounts | None,
    beside: tuple[Overlay[Roc], ...],
) -> Picture:
    """Draw a curve (see `Roc.plot`)."""
    roc = panel == "roc"
    x, y = (
        ("False alarms (1 − specificity)", "Sensitivity")
        if roc
        else ("Sensitivity (recall)", "Precision")
    )
    picture = square(
        list(_traces(figure, sheet.palette, roc, at, beside)),
        sheet,
        _HEIGHT,
        x,
        y,
    )
    layout = picture["layout"]
    above = _ABOVE + LINE * len(beside)
    layout["margin"]["t"] += above
    layout["height"] += above
    text = "<br>".join(
        [
            figure.area_words(panel),
            # The role instead of the name, which may be wider than the square.
            *(f"{o.role.capitalize()}: {o.content.area_words(panel)}" for o in beside),
        ]
    )
    note = heading(
        text, sheet.palette, ("x domain", "y domain"), font={"size": 12, "color": sheet.palette.ink}
    )
    layout["annotations"] = [*layout["annotations"], note]
    return picture


def _traces(
    f: Roc, p: Palette, roc: bool, at: CutoffCounts | None, beside: tuple[Overlay[Roc], ...]
) -> Iterator[Trace]:
    if roc:
        yield diagonal(p)
    else:
        ends = np.array([0.0, 1.0])
        yield line(ends, 0 * ends + f.share, p.ink, width=1, dash="4px,3px", hoverinfo="skip")
    for other in beside:
        _, dash, colour = outline(other.role, p)
        yield _curve(other.content, colour, roc, other.name, width=1.5, dash=dash)
    yield _curve(f, p.blue, roc, width=2.5)
    if at is not None:
        yield from _mark(at, p, roc)


def _curve(f: Roc, colour: str, roc: bool, name: str = "", **attributes: Any) -> Trace:
    x, y = (f.false_alarms, f.sensitivity) if roc else (f.sensitivity, f.precision)
    defined = np.isfinite(x) & np.isfinite(y)
    shown = np.where(np.isfinite(f.cutoff), f.cutoff, 1.0)[defined]
    # Precision must not be interpolated linearly between cutoffs, so it is drawn in steps.
    trace = line(x[defined], y[defined], colour, shape="linear" if roc else "vh", **attributes)
    extra = f"<extra>{plotly_text(name, 44)}</extra>"
    return trace | {
        "customdata": shown,
        "hovertemplate": "cutoff %{customdata:.3f}<br>%{x:.3f}, %{y:.3f}" + extra,
    }


def _mark(at: CutoffCounts, p: Palette, roc: bool) -> Iterator[Trace]:
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

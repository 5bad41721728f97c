"""How a computed reliability diagram is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.figures.drawing.curves_and_labels import (
    LINE,
    caption_label,
    frame,
    label,
    legend,
    vertical_shape,
    wrapped,
)
from calviz.figures.drawing.reliability_traces import Traces
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing.small_panels import diagonal, square
from calviz.figures.drawing.style import Palette, axis, layout
from calviz.text.escape import plotly_text
from calviz.text.gaps import two_fractions
from calviz.text.words import counted, points, score_and_hit, with_short_class

if TYPE_CHECKING:
    from calviz.figures.kernels.overlaid_curves import ReliabilityOverlay
    from calviz.figures.reliability import Marks, Reliability

#: Height of the figure in pixels, without the caption, if its width is not known.
HEIGHT = 640
#: Maximum side of the square in pixels.
SIDE = 420
#: Margins left, right, above and below the plotting area, and width of a legend entry, in pixels.
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 20, 58
_ENTRY = 172
#: Distance of the legend from the histogram as a share of the plotting height, and at least, in pixels: below tick labels and title.
_LEGEND, _TITLED = 0.12, 56
#: Largest and smallest font size of the line above the histogram, and the mean width of its characters in em.
_LARGEST, _SMALLEST, _CHARACTER = 12, 8, 0.53
#: Heights of the histogram and of the strip with labels above it, as shares of the plotting height.
_HISTOGRAM, _STRIP = 0.18, 0.065
#: Width and height of the label of the worst bin with its distance from the corner, in pixels.
_LABEL = 130, 48
#: Maximum characters of a class name on an axis.
_AXIS_NAME = 18


def draw(
    figure: Reliability,
    sheet: Sheet,
    *,
    marks: Marks,
    selected: int | tuple[int, int] | None,
    beside: tuple[ReliabilityOverlay, ...] = (),
) -> Picture:
    """Draw a computed diagram (see `Reliability.plot`)."""
    palette = sheet.palette
    traces = Traces(figure, palette, marks, beside)
    drawing = _Surroundings(figure, palette, traces, sheet.width)
    lines = wrapped(sheet.caption)
    caption_height = LINE * len(lines)
    caption = caption_label(lines, palette, above=6, over=("x domain", "y domain"))
    return {
        "data": traces.all(),
        "layout": layout(
            palette,
            height=caption_height
            + (HEIGHT + LINE * len(beside) if sheet.width is None else drawing.height(sheet.width)),
            margin={"l": _LEFT, "r": _RIGHT, "t": _TOP + caption_height, "b": _BOTTOM},
            barmode="overlay",
            bargap=0,
            legend=legend(palette, y=-drawing.legend_distance()),
            shapes=[drawing.frame(), *drawing.mean_lines(), *drawing.highlight(selected)],
            annotations=[*caption, drawing.mean_labels(), drawing.tallest(), *drawing.worst()],
            **drawing.axes(),
        ),
    }


def draw_small(figure: Reliability, sheet: Sheet, *, height: int) -> Picture:
    """Draw only the square with points and gaps, for panels side by side."""
    traces = Traces(figure, sheet.palette)
    return square(
        [*traces.band(), diagonal(sheet.palette), *traces.stems(), *traces.points()],
        sheet,
        height,
        plotly_text(score_and_hit(figure.reduction)[0].capitalize(), 34),
        "Observed",
    )


@dataclass(frozen=True)
class _Surroundings:
    """Axes, lines, labels and legend."""

    figure: Reliability
    palette: Palette
    traces: Traces
    width: int | None

    def height(self, width: int) -> int:
        """Return the height, without the caption, at which the square fills the width, up to its maximum side."""
        plotting = self._plotting_height(width)
        entries = sum(
            t.get("name") is not None and t.get("visible", True) and t.get("showlegend", True)
            for t in self.traces.all()
        )
        lines = math.ceil(entries / max(1, (width - 2 * _RIGHT) // _ENTRY))
        below = _BOTTOM + max(0.0, _TITLED - _LEGEND * plotting)
        return round(_TOP + plotting + below + LINE * lines) + 14

    def _plotting_height(self, width: int) -> float:
        side = min(SIDE, max(width - _LEFT - _RIGHT, 100))
        return side / (1 - _HISTOGRAM - _STRIP)

    def legend_distance(self) -> float:
        """Return the distance of the legend from the histogram, as a share of the plotting height."""
        if self.width is None:
            return _LEGEND
        return max(_LEGEND, _TITLED / self._plotting_height(self.width))

    def _means(self) -> list[tuple[float, str, str, str]]:
        """Return mean score and share of hits of all rows: position, text, colour and dash of each."""
        f, p = self.figure, self.palette
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        mean, observed = two_fractions(f.overall_score, f.overall_observed)
        return [
            (f.overall_score, f"{score} {mean}", p.ink, "5px,3px"),
            (f.overall_observed, f"{hit} {observed}", p.blue, "solid"),
        ]

    def mean_lines(self) -> Iterator[dict[str, Any]]:
        """Draw both means as lines in the histogram."""
        for x, _, colour, dash in reversed(self._means()):
            top = 100 * float(self.figure.share.max())
            yield vertical_shape(colour, x=x, width=2, dash=dash, xref="x", yref="y2", y1=top)

    def mean_labels(self) -> dict[str, Any]:
        """Explain both lines in a line of text above the histogram, where nothing overlaps it."""
        means = self._means()
        parts = [
            f'<span style="color:{colour}"><b>{"—" if dash == "solid" else "- -"}</b></span> {text}'
            for _, text, colour, dash in means
        ]
        characters = sum(len(text) + 4 for _, text, *_ in means)
        return label(
            "&nbsp;&nbsp;&nbsp;".join(parts),
            self.palette,
            xref="x domain",
            yref="y2 domain",
            x=0.5,
            y=1,
            yshift=2,
            xanchor="center",
            yanchor="bottom",
            font={"size": self._size_for(characters), "color": self.palette.ink},
        )

    def _size_for(self, characters: int) -> int:
        """Font size at which a centred line stays inside the drawing."""
        if self.width is None:
            return _LARGEST
        room = min(SIDE, self.width - _LEFT - _RIGHT) + 2 * _RIGHT
        return max(_SMALLEST, min(_LARGEST, int(room / (_CHARACTER * characters))))

    def tallest(self) -> dict[str, Any]:
        """Label the tallest bar with its number of rows, which gives the scale of all bars."""
        f = self.figure
        most = int(np.argmax(f.count))
        left, right = float(self.traces.left[most]), float(self.traces.right[most])
        middle = (left + right) / 2
        x, anchor = (middle, "center")
        if middle > 0.85 or middle < 0.15:
            x, anchor = (right, "right") if middle > 0.5 else (left, "left")
        return label(
            counted(int(f.count[most]), "row"),
            self.palette,
            xref="x",
            yref="y2",
            x=x,
            y=100 * float(f.share[most]),
            xanchor=anchor,
            yanchor="bottom",
            font={"size": 11, "color": self.palette.muted},
        )

    def worst(self) -> Iterator[dict[str, Any]]:
        """Label the bin that is furthest off beyond noise, in the corner that the points leave free."""
        f, p = self.figure, self.palette
        at = f.worst
        if at is None or self.traces.marks == "bars":
            return
        gap, score = float(f.gap[at]), float(f.mean_score[at])
        below, above = (0.98, 0.03, ("right", "bottom")), (0.02, 0.97, ("left", "top"))
        corners = [above, below] if gap < 0 else [below, above]
        # Where both have as many, that on the side of the points of this bin, whose line is then short.
        x, y, anchor = min(corners, key=lambda corner: self._covered(corner[0] < 0.5))
        yield label(
            f"<b>{points(abs(gap))} points</b> too {'high' if gap > 0 else 'low'}<br>"
            f"{counted(int(f.count[at]), 'row')}",
            p,
            xref="x",
            yref="y",
            x=score,
            y=(score + float(f.observed[at])) / 2,
            axref="x",
            ayref="y",
            ax=x,
            ay=y,
            xanchor=anchor[0],
            yanchor=anchor[1],
            align=anchor[0],
            bgcolor=p.glaze(p.paper, 0.8),
        ) | {
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 1,
            "arrowcolor": p.muted,
        }

    def _covered(self, left: bool) -> int:
        """Number of bins whose point, interval or gap the label would cover in the upper left, or else the lower right, corner."""
        f = self.figure
        side = SIDE if self.width is None else min(SIDE, max(self.width - _LEFT - _RIGHT, 100))
        across, up = _LABEL[0] / side, _LABEL[1] / side
        drawn = np.stack([f.mean_score, f.observed, *f.interval])
        if left:
            hidden = (f.mean_score < across) & (np.nanmax(drawn, axis=0) > 1 - up)
        else:
            hidden = (f.mean_score > 1 - across) & (np.nanmin(drawn, axis=0) < up)
        return int(np.count_nonzero(hidden))

    def frame(self) -> dict[str, Any]:
        """Draw a frame around the square, whose x axis is drawn below the histogram."""
        attributes = {"xref": "x domain", "yref": "y domain", "layer": "below"}
        return frame(self.palette.neutral, width=1, x0=0, x1=1, y0=0, y1=1, **attributes)

    def highlight(self, selected: int | tuple[int, int] | None) -> Iterator[dict[str, Any]]:
        """Draw frames around the selected bins, over the full height of both panels."""
        edges = self.figure.sums.edges
        if selected is None:
            return
        first, last = selected if isinstance(selected, tuple) else (selected, selected)
        if not 0 <= first <= last < edges.size - 1:
            return
        p = self.palette
        for domain in ("y domain", "y2 domain"):
            yield frame(
                p.ink,
                layer="above",
                xref="x",
                yref=domain,
                x0=max(0.0, float(edges[first])),
                x1=min(1.0, float(edges[last + 1])),
                y0=0,
                y1=1,
                fillcolor=p.glaze(p.ink, 0.05),
            )

    def axes(self) -> dict[str, Any]:
        """Return one x axis for both panels, and the y axes; the square stays square at any page width."""
        p, reduction = self.palette, with_short_class(self.figure.reduction, _AXIS_NAME)
        unit: dict[str, Any] = {
            "range": [0, 1],
            "tickmode": "linear",
            "tick0": 0,
            "dtick": 0.2,
            "tickformat": ".1f",
        }
        return {
            "xaxis": axis(
                p, plotly_text(reduction.score_label), **unit, constrain="domain", anchor="y2"
            ),
            "yaxis": axis(
                p,
                plotly_text(reduction.hit_label),
                **unit,
                scaleanchor="x",
                scaleratio=1,
                constrain="domain",
                # Vertical space that the square does not need, as on a narrow page, is split evenly above and below.
                constraintoward="middle",
                domain=[_HISTOGRAM + _STRIP, 1],
            ),
            "yaxis2": axis(
                p,
                "Rows",
                domain=[0, _HISTOGRAM],
                anchor="x",
                range=[0, self.traces.histogram_top],
                ticksuffix=" %",
                nticks=4,
            ),
        }

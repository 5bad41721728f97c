"""How a computed reliability diagram is drawn; plain arrays in, a plotly figure out."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from calviz.core.figure import Theme
from calviz.core.reduction import Reduction
from calviz.core.words import counted, decimal, score_and_hit, shorten
from calviz.figures._reliability_traces import Traces
from calviz.figures._style import PALETTES, Palette, axis, axis_title, escape, layout

if TYPE_CHECKING:
    from calviz.figures.reliability import Reliability

#: Height of the figure in pixels, without caption, where its width is not known.
HEIGHT = 640
#: Side of the square where there is room for it.
SIDE = 420
#: Pixels beside, above and below the plotting area; of a line of text; of an entry of the legend.
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 20, 58
_LINE = 19
_ENTRY = 172
#: Shares of the plotting height: the histogram, and the strip with labels above it.
_HISTOGRAM, _STRIP = 0.18, 0.065
#: Characters of a class name on an axis, and of a line of the caption, that fit a phone.
_AXIS_NAME, _CAPTION_LINE = 18, 46


def draw(
    figure: Reliability,
    *,
    theme: Theme,
    caption: tuple[str, ...],
    selected: int | None,
    width: int | None,
) -> go.Figure:
    """Draw a computed diagram (see `Reliability.plot`)."""
    palette = PALETTES[theme]
    traces = Traces(figure, palette)
    drawing = _Surroundings(figure, palette, traces)
    lines = _wrapped(caption)
    caption_height = _LINE * len(lines)
    return go.Figure(
        data=traces.all(),
        layout=layout(
            palette,
            height=caption_height + (HEIGHT if width is None else drawing.height(width)),
            margin={"l": _LEFT, "r": _RIGHT, "t": _TOP + caption_height, "b": _BOTTOM},
            barmode="overlay",
            bargap=0,
            legend=drawing.legend(),
            shapes=[drawing.frame(), *drawing.mean_lines(), *drawing.highlight(selected)],
            annotations=[*drawing.caption(lines), drawing.mean_labels(), drawing.tallest()],
            **drawing.axes(),
        ),
    )


def _wrapped(caption: tuple[str, ...]) -> list[str]:
    """Lines that fit a phone, broken between the parts that dots separate where that is possible."""
    return [
        part.removesuffix(" ·").replace("\u00a0", " ")
        for line in caption
        for part in textwrap.wrap(
            " · ".join(_together(p) for p in line.split(" · ")),
            _CAPTION_LINE,
            break_on_hyphens=False,
        )
    ]


def _together(part: str) -> str:
    return part.replace(" ", "\u00a0") if len(part) <= _CAPTION_LINE else part


@dataclass(frozen=True)
class _Surroundings:
    """Axes, lines, labels and legend."""

    figure: Reliability
    palette: Palette
    traces: Traces

    @cached_property
    def _named(self) -> Reduction:
        """The reduction, with a class name that fits an axis."""
        reduction = self.figure.reduction
        return replace(reduction, class_name=shorten(reduction.class_name, _AXIS_NAME))

    def height(self, width: int) -> int:
        """Height, without caption, at which the square fills the width, up to its full size."""
        side = min(SIDE, max(width - _LEFT - _RIGHT, 100))
        entries = sum(
            t.get("name") is not None and t.get("visible", True) for t in self.traces.all()
        )
        lines = math.ceil(entries / max(1, (width - 2 * _RIGHT) // _ENTRY))
        return round(_TOP + side / (1 - _HISTOGRAM - _STRIP) + _BOTTOM + _LINE * lines) + 14

    def _means(self) -> list[tuple[float, str, str, str]]:
        """Mean score and share of hits of all rows: place, text, colour, dash."""
        f, p = self.figure, self.palette
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        return [
            (f.overall_score, f"{score} {decimal(f.overall_score)}", p.ink, "5px,3px"),
            (f.overall_observed, f"{hit} {decimal(f.overall_observed)}", p.blue, "solid"),
        ]

    def mean_lines(self) -> Iterator[dict[str, Any]]:
        """Where they lie, in the histogram."""
        for x, _, colour, dash in reversed(self._means()):
            yield {
                "type": "line",
                "xref": "x",
                "yref": "y2",
                "x0": x,
                "x1": x,
                "y0": 0,
                "y1": 100 * float(self.figure.share.max()),
                "line": {"color": colour, "width": 2, "dash": dash},
            }

    def mean_labels(self) -> dict[str, Any]:
        """Say what the lines are in one line above the histogram, where nothing can run into it."""
        parts = [
            f'<span style="color:{colour}"><b>{"—" if dash == "solid" else "- -"}</b></span> {text}'
            for _, text, colour, dash in self._means()
        ]
        return {
            "xref": "x domain",
            "yref": "y2 domain",
            "x": 0.5,
            "y": 1,
            "yshift": 2,
            "text": "&nbsp;&nbsp;&nbsp;".join(parts),
            "showarrow": False,
            "xanchor": "center",
            "yanchor": "bottom",
            "font": {"size": 12, "color": self.palette.ink},
        }

    def tallest(self) -> dict[str, Any]:
        """The rows of the tallest bar, which give the scale of all."""
        f = self.figure
        most = int(np.argmax(f.count))
        left, right = float(self.traces.left[most]), float(self.traces.right[most])
        middle = (left + right) / 2
        x, anchor = (middle, "center")
        if middle > 0.85 or middle < 0.15:
            x, anchor = (right, "right") if middle > 0.5 else (left, "left")
        return {
            "xref": "x",
            "yref": "y2",
            "x": x,
            "y": 100 * float(f.share[most]),
            "text": counted(int(f.count[most]), "row"),
            "showarrow": False,
            "xanchor": anchor,
            "yanchor": "bottom",
            "font": {"size": 11, "color": self.palette.muted},
        }

    def caption(self, lines: list[str]) -> Iterator[dict[str, Any]]:
        """Above the square and flush with it, at any width of the page."""
        if not lines:
            return
        head, *rest = (escape(line) for line in lines)
        yield {
            "xref": "x domain",
            "yref": "y domain",
            "x": 0,
            "y": 1,
            "yshift": 6,
            "text": "<br>".join([f"<b>{head}</b>", *rest]),
            "showarrow": False,
            "align": "left",
            "xanchor": "left",
            "yanchor": "bottom",
            "font": {"size": 13, "color": self.palette.ink},
        }

    def frame(self) -> dict[str, Any]:
        """A frame round the square, whose x axis is drawn below the histogram."""
        return {
            "type": "rect",
            "layer": "below",
            "xref": "x domain",
            "yref": "y domain",
            "x0": 0,
            "x1": 1,
            "y0": 0,
            "y1": 1,
            "line": {"color": self.palette.neutral, "width": 1},
        }

    def highlight(self, selected: int | None) -> Iterator[dict[str, Any]]:
        """The selected bin, from top to bottom."""
        edges = self.figure.sums.edges
        if selected is None or not 0 <= selected < edges.size - 1:
            return
        p = self.palette
        for domain in ("y domain", "y2 domain"):
            yield {
                "type": "rect",
                "layer": "above",
                "xref": "x",
                "yref": domain,
                "x0": max(0.0, float(edges[selected])),
                "x1": min(1.0, float(edges[selected + 1])),
                "y0": 0,
                "y1": 1,
                "fillcolor": p.glaze(p.ink, 0.05),
                "line": {"color": p.ink, "width": 2},
            }

    def axes(self) -> dict[str, Any]:
        """One x axis for both; the square stays square, whatever the page's width."""
        p, reduction = self.palette, self._named
        unit = {
            "range": [0, 1],
            "tickmode": "linear",
            "tick0": 0,
            "dtick": 0.2,
            "tickformat": ".1f",
        }
        return {
            "xaxis": axis(
                p,
                **unit,
                constrain="domain",
                anchor="y2",
                title=axis_title(escape(reduction.score_label), p),
            ),
            "yaxis": axis(
                p,
                **unit,
                scaleanchor="x",
                scaleratio=1,
                constrain="domain",
                # On a narrow page, room that the square does not need goes to both sides of it.
                constraintoward="middle",
                domain=[_HISTOGRAM + _STRIP, 1],
                title=axis_title(escape(reduction.hit_label), p),
            ),
            "yaxis2": axis(
                p,
                domain=[0, _HISTOGRAM],
                anchor="x",
                range=[0, self.traces.histogram_top],
                ticksuffix=" %",
                nticks=4,
                title=axis_title("Rows", p),
            ),
        }

    def legend(self) -> dict[str, Any]:
        """Below everything, in as many lines as it takes."""
        return {
            "orientation": "h",
            "x": 0.5,
            "xanchor": "center",
            "y": -0.12,
            "yanchor": "top",
            "bgcolor": "rgba(0, 0, 0, 0)",
            "font": {"size": 12, "color": self.palette.ink},
            "itemclick": False,
            "itemdoubleclick": False,
        }

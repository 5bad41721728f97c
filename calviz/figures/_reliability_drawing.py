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

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.figure import Theme
from calviz.core.reduction import Reduction
from calviz.core.words import counted, decimal, ends, percent, score_and_hit, shorten, too_high
from calviz.figures._style import PALETTES, Palette, axis, axis_title, escape, layout

if TYPE_CHECKING:
    from calviz.figures.reliability import Reliability

Trace = dict[str, Any]

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
#: With more bins than this, outlines and large points would hide what they show.
_MANY_BINS = 30
_UNSEEN: Trace = {"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}}


def draw(
    figure: Reliability,
    *,
    theme: Theme,
    caption: tuple[str, ...],
    selected: int | None,
    width: int | None,
) -> go.Figure:
    """Draw a computed diagram (see `Reliability.plot`)."""
    drawing = _Drawing(figure, PALETTES[theme])
    lines = _wrapped(caption)
    caption_height = _LINE * len(lines)
    return go.Figure(
        data=drawing.traces(),
        layout=layout(
            drawing.palette,
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
class _Drawing:
    """The parts of the picture."""

    figure: Reliability
    palette: Palette

    @cached_property
    def _named(self) -> Reduction:
        """The reduction, with a class name that fits an axis."""
        reduction = self.figure.reduction
        return replace(reduction, class_name=shorten(reduction.class_name, _AXIS_NAME))

    @cached_property
    def _left(self) -> FloatArray:
        return np.clip(self.figure.low, 0, 1)

    @cached_property
    def _right(self) -> FloatArray:
        return np.clip(self.figure.high, 0, 1)

    @property
    def _dense(self) -> bool:
        return self.figure.sums.edges.size - 1 > _MANY_BINS

    def height(self, width: int) -> int:
        """Height, without caption, at which the square fills the width, up to its full size."""
        side = min(SIDE, max(width - _LEFT - _RIGHT, 100))
        entries = sum(t.get("name") is not None and t.get("visible", True) for t in self.traces())
        lines = math.ceil(entries / max(1, (width - 2 * _RIGHT) // _ENTRY))
        return round(_TOP + side / (1 - _HISTOGRAM - _STRIP) + _BOTTOM + _LINE * lines) + 14

    def traces(self) -> list[Trace]:
        """All of it, in the order in which it is drawn."""
        return [*self.bars(), *self.band(), self.diagonal(), self.points(), *self.histogram()]

    def _bars(self, which: BoolArray, base: FloatArray, height: FloatArray, **own: Any) -> Trace:
        """Bars over the chosen bins; a click or hover on one gives its bin."""
        return {
            "type": "bar",
            "x": ((self._left + self._right) / 2)[which],
            "width": (self._right - self._left)[which],
            "base": base[which],
            "y": height[which],
            "customdata": self.figure.bin[which],
            # A selection is marked by `highlight`, not by fading everything else.
            "selected": {"marker": {"opacity": 1}},
            "unselected": {"marker": {"opacity": 1}},
            **own,
        }

    def bars(self) -> Iterator[Trace]:
        """Observed frequency, the gap to the mean score, and the space above, which can be clicked."""
        f, p = self.figure, self.palette
        everywhere = np.ones(f.bin.shape, dtype=np.bool_)
        nothing = np.zeros(f.bin.shape)
        hit = score_and_hit(f.reduction)[1].capitalize()
        yield self._bars(
            everywhere,
            nothing,
            f.observed,
            name=f"{hit} per bin",
            marker=self._fill(p.blue, 0.28),
            hoverinfo="text",
            hovertext=self._hover,
            legendrank=1,
        )
        # Empty bars are as easy to hit as tall ones, and their label stands at the observed frequency.
        yield self._bars(
            everywhere,
            nothing + 1,
            f.observed - 1,
            marker=_UNSEEN,
            hoverinfo="text",
            hovertext=self._hover,
            showlegend=False,
        )
        high, low = too_high(f.reduction)
        above, below = f.gap > 0, f.gap < 0
        for which, base, name, colour, shape, rank in (
            (above, f.observed, high, p.vermillion, "/", 3),
            (below, f.mean_score, low, p.purple, "\\", 4),
        ):
            yield self._bars(
                which,
                base,
                np.abs(f.gap),
                name=f"{name} (gap)",
                marker=self._hatch(colour, shape),
                hoverinfo="skip",
                legendrank=rank,
                visible=bool(which.any()),
            )

    def _fill(self, colour: str, share: float) -> Trace:
        width = 0 if self._dense else 1
        return {
            "color": self.palette.tint(colour, share + 0.2 * self._dense),
            "line": {"color": colour, "width": width},
        }

    def _hatch(self, colour: str, shape: str) -> Trace:
        return {
            "color": colour,
            "line": {"color": colour, "width": 0 if self._dense else 1},
            "pattern": {
                "shape": shape,
                "fillmode": "replace",
                "fgcolor": colour,
                "bgcolor": self.palette.tint(colour, 0.16),
                "fgopacity": 1,
                "size": 6,
                "solidity": 0.28,
            },
        }

    def band(self) -> Iterator[Trace]:
        """Where a calibrated model would fall: one box per bin, with a lid and a floor."""
        f, p = self.figure, self.palette
        if f.band is None:
            return
        low, high = f.band
        left, right, gap = self._left, self._right, np.full(f.bin.shape, np.nan)
        same: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
        yield {
            **same,
            "x": np.stack([left, right, right, left, left, gap], axis=1).ravel(),
            "y": np.stack([low, low, high, high, low, gap], axis=1).ravel(),
            "fill": "toself",
            "fillcolor": p.glaze(p.ink, 0.09),
            "line": {"width": 0},
            "showlegend": False,
        }
        yield {
            **same,
            "x": np.stack([left, right, gap, left, right, gap], axis=1).ravel(),
            "y": np.stack([low, low, gap, high, high, gap], axis=1).ravel(),
            # Filled for the sake of the legend; a line encloses nothing.
            "fill": "toself",
            "fillcolor": p.glaze(p.ink, 0.09),
            "line": {"width": 0 if self._dense else 1, "color": p.muted},
            "name": f"{self._level} range if calibrated",
            "legendrank": 5,
        }

    def diagonal(self) -> Trace:
        """Perfect calibration."""
        return {
            "type": "scatter",
            "mode": "lines",
            "x": [0, 1],
            "y": [0, 1],
            "line": {"color": self.palette.ink, "width": 1.5, "dash": "dash"},
            "name": "Perfect calibration",
            "hoverinfo": "skip",
            "legendrank": 6,
        }

    def points(self) -> Trace:
        """Observed frequency at the mean score, with its exact interval."""
        f, p = self.figure, self.palette
        low, high = f.interval
        size = 4 if self._dense else 7
        return {
            "type": "scatter",
            "mode": "markers",
            "x": f.mean_score,
            "y": f.observed,
            "customdata": f.bin,
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": high - f.observed,
                "arrayminus": f.observed - low,
                "color": p.glaze(p.ink, 0.6) if self._dense else p.ink,
                "thickness": 1 if self._dense else 1.5,
                "width": 0 if self._dense else 3,
            },
            "marker": {
                "color": p.ink,
                "size": size,
                "line": {"color": p.paper, "width": 0 if self._dense else 1},
            },
            "selected": {"marker": {"opacity": 1}},
            "unselected": {"marker": {"opacity": 1}},
            "cliponaxis": False,
            "name": f"Exact {self._level} interval",
            "hoverinfo": "text",
            "hovertext": self._hover,
            "legendrank": 2,
        }

    def histogram(self) -> Iterator[Trace]:
        """Share of the rows per bin, and the space above, which can be clicked."""
        everywhere = np.ones(self.figure.bin.shape, dtype=np.bool_)
        base = np.zeros(self.figure.bin.shape)
        same: Trace = {
            "yaxis": "y2",
            "hoverinfo": "text",
            "hovertext": self._hover,
            "showlegend": False,
        }
        share = 100 * self.figure.share
        bars = self._fill(self.palette.neutral, 0.45)
        yield self._bars(everywhere, base, share, marker=bars, **same)
        top = self._histogram_top
        yield self._bars(everywhere, base + top, share - top, marker=_UNSEEN, **same)

    @property
    def _histogram_top(self) -> float:
        """Percent; above the tallest bar there is room for its label."""
        return 132 * float(self.figure.share.max())

    @property
    def _level(self) -> str:
        return f"{100 * self.figure.level:g} %"

    @cached_property
    def _hover(self) -> list[str]:
        f = self.figure
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        high, low = (name.lower() for name in too_high(f.reduction))
        bins = f.sums.edges.size - 1
        band = f.band or (f.observed, f.observed)
        texts = []
        for m, index in enumerate(f.bin):
            start, stop = ends(float(f.low[m]), float(f.high[m]))
            gap = float(f.gap[m])
            lines = [
                f"<b>Bin {index + 1:,} of {bins:,}</b>: {start} to {stop}",
                f"{counted(int(f.count[m]), 'row')} ({percent(float(f.share[m]))})",
                f"{score} {decimal(float(f.mean_score[m]))}",
                f"{hit} {decimal(float(f.observed[m]))}",
                f"Exact {self._level} interval {_range(f.interval, m)}",
                f"Gap {decimal(abs(gap))}" + (f", {high if gap > 0 else low}" if gap else ""),
            ]
            if f.band is not None:
                lines.append(f"If calibrated: {_range(band, m)}")
            texts.append("<br>".join(lines))
        return texts

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
        left, right = float(self._left[most]), float(self._right[most])
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
                constraintoward="bottom",
                domain=[_HISTOGRAM + _STRIP, 1],
                title=axis_title(escape(reduction.hit_label), p),
            ),
            "yaxis2": axis(
                p,
                domain=[0, _HISTOGRAM],
                anchor="x",
                range=[0, self._histogram_top],
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


def _range(pair: tuple[FloatArray, FloatArray], m: int) -> str:
    return f"{decimal(float(pair[0][m]))} to {decimal(float(pair[1][m]))}"

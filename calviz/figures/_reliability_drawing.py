"""How a computed reliability diagram is drawn; plain arrays in, a plotly figure out."""

from __future__ import annotations

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

#: Height of the figure in pixels, without caption; its width is that of the page.
HEIGHT = 640
_LINE = 19
#: Shares of the plotting height: the histogram, and the strip with labels above it.
_HISTOGRAM, _STRIP = 0.17, 0.10
#: Characters of a class name on an axis, and of a line of the caption, that fit a phone.
_AXIS_NAME, _CAPTION_LINE = 18, 48
#: With more bins than this, outlines and large points would hide what they show.
_MANY_BINS = 30


def draw(
    figure: Reliability, *, theme: Theme, caption: tuple[str, ...], selected: int | None
) -> go.Figure:
    """Draw a computed diagram (see `Reliability.plot`)."""
    drawing = _Drawing(figure, PALETTES[theme])
    lines = _wrapped(caption)
    top = 14 + (12 + _LINE * len(lines) if lines else 0)
    return go.Figure(
        data=drawing.traces(),
        layout=layout(
            drawing.palette,
            height=HEIGHT + top - 14,
            margin={"l": 60, "r": 20, "t": top, "b": 58},
            barmode="overlay",
            title=_title(lines),
            legend=drawing.legend(),
            shapes=[*drawing.highlight(selected), *drawing.mean_lines()],
            annotations=drawing.mean_labels(),
            **drawing.axes(),
        ),
    )


def _wrapped(caption: tuple[str, ...]) -> list[str]:
    return [part for line in caption for part in textwrap.wrap(line, _CAPTION_LINE)]


def _title(lines: list[str]) -> dict[str, Any] | None:
    if not lines:
        return None
    head, *rest = (escape(line) for line in lines)
    return {
        "text": "<br>".join([f"<b>{head}</b>", *rest]),
        "font": {"size": 14},
        "x": 0,
        "xanchor": "left",
        "xref": "container",
        "y": 1,
        "yanchor": "top",
        "yref": "container",
        "pad": {"l": 14, "t": 12},
    }


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

    def traces(self) -> list[Trace]:
        """All of it, in the order in which it is drawn."""
        return [*self.bars(), self.band(), self.diagonal(), self.points(), self.histogram()]

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
            name=f"{hit} in the bin",
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
            marker={"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}},
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

    def band(self) -> Trace:
        """Where a calibrated model would fall: one box per bin."""
        f, p = self.figure, self.palette
        low, high = f.band or (f.observed, f.observed)
        gap = np.full(f.bin.shape, np.nan)
        left, right = self._left, self._right
        return {
            "type": "scatter",
            "mode": "lines",
            "x": np.stack([left, right, right, left, left, gap], axis=1).ravel(),
            "y": np.stack([low, low, high, high, low, gap], axis=1).ravel(),
            "fill": "toself",
            "fillcolor": p.glaze(p.ink, 0.13),
            "line": {"width": 0, "color": p.glaze(p.ink, 0.13)},
            "name": f"{self._level} band if calibrated",
            "hoverinfo": "skip",
            "legendrank": 5,
            "visible": f.band is not None,
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
                "color": p.ink,
                "thickness": 1 if self._dense else 1.5,
                "width": 0 if self._dense else 3,
            },
            "marker": {"color": p.ink, "size": size, "line": {"color": p.paper, "width": 1}},
            "selected": {"marker": {"opacity": 1}},
            "unselected": {"marker": {"opacity": 1}},
            "cliponaxis": False,
            "name": f"{self._level} interval (exact)",
            "hoverinfo": "text",
            "hovertext": self._hover,
            "legendrank": 2,
        }

    def histogram(self) -> Trace:
        """Share of the rows per bin."""
        f, p = self.figure, self.palette
        everywhere = np.ones(f.bin.shape, dtype=np.bool_)
        return self._bars(
            everywhere,
            np.zeros(f.bin.shape),
            f.share,
            yaxis="y2",
            marker=self._fill(p.neutral, 0.45),
            hoverinfo="text",
            hovertext=self._hover,
            showlegend=False,
        )

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
                f"{hit} {decimal(float(f.observed[m]))} "
                f"({self._level} interval {_range(f.interval, m)})",
                f"Gap {decimal(abs(gap))}" + (f", {high if gap > 0 else low}" if gap else ""),
            ]
            if f.band is not None:
                lines.append(f"If calibrated: {_range(band, m)}")
            texts.append("<br>".join(lines))
        return texts

    def _means(self) -> list[tuple[float, str, str, str]]:
        """Mean score and share of hits: place, text, colour, dash."""
        f, p = self.figure, self.palette
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        return [
            (f.overall_score, f"{score} {decimal(f.overall_score)}", p.ink, "dash"),
            (f.overall_observed, f"{hit} {decimal(f.overall_observed)}", p.blue, "solid"),
        ]

    def _placed(self) -> Iterator[tuple[float, str, str, str, float]]:
        """The means with the height of their labels, such that no line runs through a label."""
        left, right = sorted(self._means())
        to_the_left = right[0] >= 0.5
        upper, lower = (right, left) if to_the_left else (left, right)
        yield *upper, _HISTOGRAM + 0.8 * _STRIP
        yield *lower, _HISTOGRAM + 0.35 * _STRIP

    def mean_lines(self) -> Iterator[dict[str, Any]]:
        """Where mean score and share of hits of all rows lie, in the histogram."""
        for x, _, colour, dash, y in self._placed():
            yield {
                "type": "line",
                "xref": "x",
                "yref": "paper",
                "x0": x,
                "x1": x,
                "y0": 0,
                "y1": y,
                "line": {"color": colour, "width": 2, "dash": dash},
            }

    def mean_labels(self) -> list[dict[str, Any]]:
        """What the lines are."""
        labels = []
        for x, text, colour, _, y in self._placed():
            side = "right" if x >= 0.5 else "left"
            labels.append(
                {
                    "xref": "x",
                    "yref": "paper",
                    "x": x,
                    "y": y,
                    "text": text,
                    "showarrow": False,
                    "xanchor": side,
                    "xshift": -5 if side == "right" else 5,
                    "yanchor": "middle",
                    "font": {"size": 12, "color": colour},
                    "bgcolor": self.palette.paper,
                    "borderpad": 0,
                }
            )
        return labels

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
                "fillcolor": p.glaze(p.ink, 0.08),
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
                mirror="all",
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
                range=[0, 1.08 * float(self.figure.share.max())],
                tickformat=".0%",
                nticks=3,
                title=axis_title("Rows", p),
            ),
        }

    def legend(self) -> dict[str, Any]:
        """Below everything, in as many lines as it takes."""
        return {
            "orientation": "h",
            "x": 0.5,
            "xanchor": "center",
            "y": -0.13,
            "yanchor": "top",
            "bgcolor": "rgba(0, 0, 0, 0)",
            "font": {"size": 12, "color": self.palette.ink},
            "itemclick": False,
            "itemdoubleclick": False,
        }


def _range(pair: tuple[FloatArray, FloatArray], m: int) -> str:
    return f"{decimal(float(pair[0][m]))} to {decimal(float(pair[1][m]))}"

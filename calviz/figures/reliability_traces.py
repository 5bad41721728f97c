"""The traces of a reliability diagram: bars, gaps, band, points, curves and histogram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray
from calviz.core.words import (
    counted,
    decimal,
    gap_decimals,
    level_text,
    percent,
    plotly_text,
    points,
    range_ends,
    score_and_hit,
    too_high,
    two_shares,
)
from calviz.figures.marks import UNFADED, Trace, hatched, line, markers, outline, whiskers
from calviz.figures.style import Palette
from calviz.sample.binning import FEW_ROWS

if TYPE_CHECKING:
    from calviz.figures.marks import ReliabilityOverlay
    from calviz.figures.reliability import Marks, Reliability


#: With more bins than this, outlines and large points would overlap too much.
_MANY_BINS = 30
_UNSEEN: Trace = {"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}}


@dataclass(frozen=True)
class Traces:
    """The traces of a computed diagram, as plain dicts for plotly."""

    figure: Reliability
    palette: Palette
    marks: Marks = "points"
    beside: tuple[ReliabilityOverlay, ...] = ()

    @cached_property
    def left(self) -> FloatArray:
        """Left ends of the bins, clipped to the axis, shape (M,)."""
        return np.clip(self.figure.low, 0, 1)

    @cached_property
    def right(self) -> FloatArray:
        """Right ends of the bins, clipped to the axis, shape (M,)."""
        return np.clip(self.figure.high, 0, 1)

    @property
    def _dense(self) -> bool:
        return self.figure.sums.edges.size - 1 > _MANY_BINS

    def all(self) -> list[Trace]:
        """Return all traces in drawing order."""
        if self.marks == "bars":
            back = [*self.bars(), *self.band(), self.diagonal()]
        else:
            back = [self._click(), *self.band(), self.diagonal(), *self.stems()]
        return [
            *back,
            *curve_traces(self.figure, self.palette),
            *self.points(),
            *(self._outlines(other) for other in self.beside),
            *self.histogram(),
        ]

    def _bars(
        self, which: BoolArray, base: FloatArray, height: FloatArray, **attributes: Any
    ) -> Trace:
        """Draw bars over the chosen bins; each carries the index of its bin as ``customdata``."""
        return {
            "type": "bar",
            "x": ((self.left + self.right) / 2)[which],
            "width": (self.right - self.left)[which],
            "base": base[which],
            "y": height[which],
            "customdata": self.figure.bin[which],
            **UNFADED,
            **attributes,
        }

    def bars(self) -> Iterator[Trace]:
        """Yield bars of the observed frequency, the gap to the mean score, and the clickable space above."""
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
        # The space above makes short bars as easy to hit as tall ones; its label appears at the observed frequency.
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
            "pattern": hatched(colour, self.palette, shape=shape, tint=0.16, solidity=0.28),
        }

    def _click(self) -> Trace:
        """Draw invisible bars over the full height, so that bins can be clicked anywhere."""
        everywhere = np.ones(self.figure.bin.shape, dtype=np.bool_)
        nothing = np.zeros(self.figure.bin.shape)
        return self._bars(
            everywhere,
            nothing,
            nothing + 1,
            marker=_UNSEEN,
            hoverinfo="text",
            hovertext=self._hover,
            showlegend=False,
        )

    def stems(self) -> Iterator[Trace]:
        """Yield the gaps as vertical lines from the observed frequency to the diagonal, at the mean score."""
        f, p = self.figure, self.palette
        high, low = too_high(f.reduction)
        kinds = (
            (f.gap > 0, high, p.vermillion, "solid", 3),
            (f.gap < 0, low, p.purple, "3px,2px", 4),
        )
        few = f.count < FEW_ROWS
        for side, name, colour, dash, rank in kinds:
            for which, solidity in ((side & ~few, 0.75), (side & few, 0.3)):
                x, start, stop = f.mean_score[which], f.observed[which], f.mean_score[which]
                gap = np.full(x.shape, np.nan)
                yield line(
                    np.stack([x, x, gap], axis=1).ravel(),
                    np.stack([start, stop, gap], axis=1).ravel(),
                    p.tint(colour, solidity),
                    width=1.5 if self._dense else 3.5,
                    dash=dash,
                    name=f"{name} (gap)",
                    hoverinfo="skip",
                    legendrank=rank,
                    visible=bool(which.any()),
                    showlegend=solidity > 0.5 or not (side & ~few).any(),
                )

    def band(self) -> Iterator[Trace]:
        """Yield the consistency band behind everything: one box per bin, with edges at both ends for bars."""
        f, p = self.figure, self.palette
        if f.band is None:
            return
        low, high = f.band
        left, right, gap = self.left, self.right, np.full(f.bin.shape, np.nan)
        same: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
        yield {
            **same,
            "x": np.stack([left, right, right, left, left, gap], axis=1).ravel(),
            "y": np.stack([low, low, high, high, low, gap], axis=1).ravel(),
            "fill": "toself",
            "fillcolor": p.calibrated,
            "line": {"width": 0},
            "name": f"{self._level} range if calibrated",
            "legendrank": 5,
            # plotly draws bars below lines; without this the grey would cover their hatching.
            "zorder": -1,
        }
        if self.marks == "bars":
            yield {
                **same,
                "x": np.stack([left, right, gap, left, right, gap], axis=1).ravel(),
                "y": np.stack([low, low, gap, high, high, gap], axis=1).ravel(),
                "line": {"width": 0 if self._dense else 1, "color": p.muted},
                "showlegend": False,
            }

    def diagonal(self) -> Trace:
        """Draw the diagonal of perfect calibration."""
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

    def points(self) -> Iterator[Trace]:
        """Yield the observed frequencies at the mean scores, with exact intervals; bins of few rows are faint."""
        few = self.figure.count < FEW_ROWS
        words = f"{score_and_hit(self.figure.reduction)[1].capitalize()}, {self._level} interval"
        if self.marks == "bars":
            words = f"Exact {self._level} interval"
        for which, name, solid in (
            (~few, words, True),
            (few, f"Fewer than {FEW_ROWS} rows", False),
        ):
            if which.any():
                yield self._points(which, name if solid or not few.all() else words, solid=solid)

    def _points(self, which: BoolArray, name: str, *, solid: bool) -> Trace:
        f, p = self.figure, self.palette
        low, high = (end[which] for end in f.interval)
        observed = f.observed[which]
        colour = p.ink if self.marks == "bars" else p.blue
        if not solid:
            colour = p.tint(colour, 0.6)
        thickness, width = (1, 0) if self._dense else (1.5, 3)
        return markers(
            f.mean_score[which],
            observed,
            colour,
            size=self._sizes[which],
            edge=p.paper,
            edge_width=0 if self._dense else 1,
            customdata=f.bin[which],
            error_y=whiskers(
                high - observed,
                observed - low,
                p.glaze(colour, 0.6) if self._dense else colour,
                thickness=thickness,
                width=width,
            ),
            **UNFADED,
            cliponaxis=False,
            name=name,
            hoverinfo="text",
            hovertext=[text for text, w in zip(self._hover, which, strict=True) if w],
            legendrank=1 if self.marks == "points" else 2,
        )

    def _outlines(self, other: ReliabilityOverlay) -> Trace:
        """Draw further points as outlines joined by a thin line, so that they also differ without colour."""
        p = self.palette
        symbol, dash, colour = outline(other.role, p)
        hit = score_and_hit(self.figure.reduction)[1].capitalize()
        name = plotly_text(other.name, 28)
        return markers(
            other.mean_score,
            other.observed,
            colour,
            size=9,
            symbol=symbol,
            name=name,
            **UNFADED,
            cliponaxis=False,
            hoverinfo="text",
            hovertext=[
                f"<b>{name}</b><br>{counted(int(n), 'row')}<br>mean score {decimal(float(x))}<br>{hit} {decimal(float(y))}"
                for n, x, y in zip(other.count, other.mean_score, other.observed, strict=True)
            ],
            legendrank=10,
        ) | {"mode": "lines+markers", "line": {"width": 1, "dash": dash, "color": colour}}

    @cached_property
    def _sizes(self) -> FloatArray:
        """Diameters of the points in pixels, shape (M,): areas proportional to the rows, down to a visible minimum."""
        if self.marks == "bars":
            return np.full(self.figure.bin.shape, 4.0 if self._dense else 7.0)
        least, all_rows = (4, 14) if self._dense else (6, 22)
        return np.asarray(np.maximum(least, all_rows * np.sqrt(self.figure.share)))

    def histogram(self) -> Iterator[Trace]:
        """Yield bars of the share of rows per bin, and the clickable space above."""
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
        top = self.histogram_top
        yield self._bars(everywhere, base + top, share - top, marker=_UNSEEN, **same)

    @property
    def histogram_top(self) -> float:
        """Upper end of the histogram in percent, with room for a label above the tallest bar."""
        return 132 * float(self.figure.share.max())

    @property
    def _level(self) -> str:
        return level_text(self.figure.level)

    @cached_property
    def _hover(self) -> list[str]:
        f = self.figure
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        high, low = (name.lower() for name in too_high(f.reduction))
        bins = f.sums.edges.size - 1
        band = f.band or (f.observed, f.observed)
        texts = []
        for m, index in enumerate(f.bin):
            start, stop = range_ends(float(f.low[m]), float(f.high[m]))
            gap = float(f.gap[m])
            mean, observed = two_shares(float(f.mean_score[m]), float(f.observed[m]))
            lines = [
                f"<b>Bin {index + 1:,} of {bins:,}</b>: {start} to {stop}",
                f"{counted(int(f.count[m]), 'row')} ({percent(float(f.share[m]))})",
                f"{score} {mean}",
                f"{hit} {observed}",
                f"Exact {self._level} interval {_range(f.interval, m)}",
                f"Gap {points(abs(gap), gap_decimals(gap))} points"
                + (f", {high if gap > 0 else low}" if gap else ""),
            ]
            if f.band is not None:
                lines.append(f"If calibrated: {_range(band, m)}")
            texts.append("<br>".join(lines))
        return texts


def _range(pair: tuple[FloatArray, FloatArray], m: int) -> str:
    return f"{points(float(pair[0][m]))} to {percent(float(pair[1][m]))}"


def curve_traces(figure: Reliability, palette: Palette) -> Iterator[Trace]:
    """Yield the bin-free curves, which differ in dash and name as well as in colour."""
    looks = {
        "kernel": ("Kernel-smoothed", palette.green, "solid"),
        "isotonic": ("Isotonic (CORP)", palette.ink, "3px,2px"),
    }
    for rank, (kind, curve) in enumerate(figure.curves.items(), start=7):
        name, colour, dash = looks[kind]
        # If all scores are equal, the curve is drawn as a marker, because a line without length is invisible.
        point = float(np.ptp(curve.score)) == 0
        attributes: Trace = {"dash": dash, "name": name, "hoverinfo": "skip", "legendrank": rank}
        few = curve.rows < FEW_ROWS
        if few.any() and not few.all() and not point:
            # Stretches with few rows fluctuate strongly, so they are drawn faint.
            faint = palette.tint(colour, 0.45)
            yield line(
                curve.score, curve.probability, faint, width=1.5, **attributes, showlegend=False
            )
            solid = np.where(few, np.nan, curve.probability)
        else:
            solid = curve.probability
        yield line(curve.score, solid, colour, width=3, **attributes) | (
            {"mode": "markers", "marker": {"size": 9, "symbol": "x"}} if point else {}
        )

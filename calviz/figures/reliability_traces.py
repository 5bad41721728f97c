"""The traces of a reliability diagram: bars, gaps, band, points, curves and histogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.blocks import FloatArray
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
from calviz.figures.marks import (
    UNFADED,
    ReliabilityOverlay,
    Sheet,
    Trace,
    hatched,
    line,
    markers,
    outline,
    whiskers,
)
from calviz.sample.binning import FEW_ROWS

if TYPE_CHECKING:
    from calviz.figures.reliability import Marks, Reliability


#: With more bins than this, outlines and large points would overlap too much.
_MANY_BINS = 30
_UNSEEN: Trace = {"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}}


@dataclass(frozen=True)
class Traces:
    """The traces of a computed diagram, as plain dicts for plotly."""

    figure: Reliability
    sheet: Sheet
    marks: Marks = "points"
    beside: Sequence[ReliabilityOverlay] = ()

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
            back = [*self._gap_bars(), *self.band(), self._diagonal()]
        else:
            # Invisible bars over the full height, so that bins can be clicked anywhere.
            unseen = self._bars(0, np.ones(self.figure.bin.shape))
            back = [unseen, *self.band(), self._diagonal(), *self.stems()]
        return [
            *back,
            *self._curves(),
            *self.points(),
            *(self._outlines(other) for other in self.beside),
            *self._histogram(),
        ]

    def _bars(self, base: FloatArray | float, height: FloatArray, **attributes: Any) -> Trace:
        """Draw a bar over each bin, which carries the index of its bin as ``customdata``; invisible without a `marker`."""
        return {
            "type": "bar",
            "x": (self.left + self.right) / 2,
            "width": self.right - self.left,
            "base": np.zeros(height.shape) + base,
            "y": height,
            "customdata": self.figure.bin,
            "marker": _UNSEEN,
            "hoverinfo": "text",
            "hovertext": self._hover,
            "showlegend": False,
            **UNFADED,
            **attributes,
        }

    def _gap_bars(self) -> Iterator[Trace]:
        """Yield bars of the observed frequency, the clickable space above, and the gap to the mean score."""
        f, p = self.figure, self.sheet.palette
        name = f"{score_and_hit(f.reduction)[1].capitalize()} per bin"
        look: Trace = {"name": name, "legendrank": 1, "showlegend": None}
        yield self._bars(0, f.observed, marker=self._fill(p.blue, 0.28), **look)
        # The space above makes short bars as easy to hit as tall ones; its label appears at the observed frequency.
        yield self._bars(1, f.observed - 1)
        high, low = too_high(f.reduction)
        for which, base, name, colour, shape, rank in (
            (f.gap > 0, f.observed, high, p.vermillion, "/", 3),
            (f.gap < 0, f.mean_score, low, p.purple, "\\", 4),
        ):
            pattern = hatched(colour, p, shape=shape, tint=0.16, solidity=0.28)
            bars = self._bars(base, np.abs(f.gap))
            yield {k: v[which] if isinstance(v, np.ndarray) else v for k, v in bars.items()} | {
                "name": f"{name} (gap)",
                "marker": {"color": colour, "line": self._edge(colour), "pattern": pattern},
                "hoverinfo": "skip",
                "hovertext": None,
                "showlegend": None,
                "legendrank": rank,
                "visible": bool(which.any()),
            }

    def _edge(self, colour: str) -> Trace:
        return {"color": colour, "width": 0 if self._dense else 1}

    def _fill(self, colour: str, share: float) -> Trace:
        tint = self.sheet.palette.tint(colour, share + 0.2 * self._dense)
        return {"color": tint, "line": self._edge(colour)}

    def stems(self) -> Iterator[Trace]:
        """Yield the gaps as vertical lines from the observed frequency to the diagonal, at the mean score."""
        f, p = self.figure, self.sheet.palette
        high, low = too_high(f.reduction)
        kinds = (
            (f.gap > 0, high, p.vermillion, "solid", 3),
            (f.gap < 0, low, p.purple, "3px,2px", 4),
        )
        few, no_line = f.count < FEW_ROWS, np.full(f.bin.shape, np.nan)
        x = np.stack([f.mean_score, f.mean_score, no_line], axis=1)
        y = np.stack([f.observed, f.mean_score, no_line], axis=1)
        for side, name, colour, dash, rank in kinds:
            for which, solidity in ((side & ~few, 0.75), (side & few, 0.3)):
                yield line(
                    x[which].ravel(),
                    y[which].ravel(),
                    p.tint(colour, solidity),
                    width=1.5 if self._dense else 3.5,
                    dash=dash,
                    name=f"{name} (gap)",
                    legendrank=rank,
                    visible=bool(which.any()),
                    showlegend=solidity > 0.5 or not (side & ~few).any(),
                )

    def band(self) -> Iterator[Trace]:
        """Yield the consistency band behind everything: one box per bin, with edges at both ends for bars."""
        f, p = self.figure, self.sheet.palette
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
                "line": self._edge(p.muted),
                "showlegend": False,
            }

    def _diagonal(self) -> Trace:
        """Draw the diagonal of perfect calibration."""
        return {
            "type": "scatter",
            "mode": "lines",
            "x": [0, 1],
            "y": [0, 1],
            "line": {"color": self.sheet.palette.ink, "width": 1.5, "dash": "dash"},
            "name": "Perfect calibration",
            "hoverinfo": "skip",
            "legendrank": 6,
        }

    def points(self) -> Iterator[Trace]:
        """Yield the observed frequencies at the mean scores, with exact intervals; bins of few rows are faint."""
        f, p, bars = self.figure, self.sheet.palette, self.marks == "bars"
        words = f"{score_and_hit(f.reduction)[1].capitalize()}, {self._level} interval"
        if bars:
            words = f"Exact {self._level} interval"
        few = f.count < FEW_ROWS
        thickness, width = (1, 0) if self._dense else (1.5, 3)
        for which, solid in ((~few, True), (few, False)):
            if not which.any():
                continue
            (low, high), observed = (end[which] for end in f.interval), f.observed[which]
            colour = p.ink if bars else p.blue
            colour = colour if solid else p.tint(colour, 0.6)
            whisker = p.glaze(colour, 0.6) if self._dense else colour
            ends = high - observed, observed - low
            yield markers(
                f.mean_score[which],
                observed,
                colour,
                size=self._sizes[which],
                edge=p.paper,
                edge_width=0 if self._dense else 1,
                customdata=f.bin[which],
                error_y=whiskers(*ends, whisker, thickness=thickness, width=width),
                **UNFADED,
                cliponaxis=False,
                name=words if solid or few.all() else f"Fewer than {FEW_ROWS} rows",
                hover=[text for text, w in zip(self._hover, which, strict=True) if w],
                legendrank=2 if bars else 1,
            )

    def _outlines(self, other: ReliabilityOverlay) -> Trace:
        """Draw further points as outlines joined by a thin line, so that they also differ without colour."""
        symbol, dash, colour = outline(other.role, self.sheet.palette)
        hit = score_and_hit(self.figure.reduction)[1].capitalize()
        name = plotly_text(other.name, 28)
        texts = [
            f"<b>{name}</b><br>{counted(int(n), 'row')}<br>mean score {decimal(float(x))}<br>{hit} {decimal(float(y))}"
            for n, x, y in zip(other.count, other.mean_score, other.observed, strict=True)
        ]
        return markers(
            other.mean_score,
            other.observed,
            colour,
            size=9,
            symbol=symbol,
            name=name,
            **UNFADED,
            cliponaxis=False,
            hover=texts,
            legendrank=10,
            mode="lines+markers",
            line={"width": 1, "dash": dash, "color": colour},
        )

    @cached_property
    def _sizes(self) -> FloatArray:
        """Diameters of the points in pixels, shape (M,): areas proportional to the rows, down to a visible minimum."""
        if self.marks == "bars":
            return np.full(self.figure.bin.shape, 4.0 if self._dense else 7.0)
        least, all_rows = (4, 14) if self._dense else (6, 22)
        return np.asarray(np.maximum(least, all_rows * np.sqrt(self.figure.share)))

    def _histogram(self) -> Iterator[Trace]:
        """Yield bars of the share of rows per bin, and the clickable space above."""
        share, top = 100 * self.figure.share, self.histogram_top
        fill = self._fill(self.sheet.palette.neutral, 0.45)
        yield self._bars(0, share, marker=fill, yaxis="y2")
        yield self._bars(top, share - top, yaxis="y2")

    @property
    def histogram_top(self) -> float:
        """Upper end of the histogram in percent, with room for a label above the tallest bar."""
        return 132 * float(self.figure.share.max())

    def _curves(self) -> Iterator[Trace]:
        """Yield the bin-free curves, which differ in dash and name as well as in colour."""
        palette = self.sheet.palette
        looks = {
            "kernel": ("Kernel-smoothed", palette.green, "solid"),
            "isotonic": ("Isotonic (CORP)", palette.ink, "3px,2px"),
        }
        for rank, (kind, curve) in enumerate(self.figure.curves.items(), start=7):
            name, colour, dash = looks[kind]
            look: Trace = {"dash": dash, "name": name, "legendrank": rank}
            few, y = curve.rows < FEW_ROWS, curve.probability
            if float(np.ptp(curve.score)) == 0:
                # If all scores are equal, the curve is drawn as a marker, because a line without length is invisible.
                mark: Trace = {"mode": "markers", "marker": {"size": 9, "symbol": "x"}}
                yield line(curve.score, y, colour, width=3, **look, **mark)
                continue
            if few.any() and not few.all():
                # Stretches with few rows fluctuate strongly, so they are drawn faint.
                faint = palette.tint(colour, 0.45)
                yield line(curve.score, y, faint, width=1.5, **look, showlegend=False)
                y = np.where(few, np.nan, y)
            yield line(curve.score, y, colour, width=3, **look)

    @property
    def _level(self) -> str:
        return level_text(self.figure.level)

    @cached_property
    def _hover(self) -> list[str]:
        f = self.figure
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        high, low = (name.lower() for name in too_high(f.reduction))
        bins = f.sums.edges.size - 1
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
                lines.append(f"If calibrated: {_range(f.band, m)}")
            texts.append("<br>".join(lines))
        return texts


def _range(pair: tuple[FloatArray, FloatArray], m: int) -> str:
    return f"{points(float(pair[0][m]))} to {percent(float(pair[1][m]))}"

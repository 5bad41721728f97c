"""The drawing of a reliability diagram: bars, gaps, band, points, curves and histogram, and what surrounds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core import words
from calviz.core.blocks import BoolArray, FloatArray
from calviz.core.words import counted, decimal, expected_gap, plotly_text, points, score_and_hit
from calviz.figures import marks
from calviz.figures.marks import LINE, UNFADED, Picture, ScoreAxes, Sheet, Trace, markers
from calviz.figures.style import layout
from calviz.sample.binning import FEW_ROWS

if TYPE_CHECKING:
    from calviz.figures.reliability import Marks, Reliability, ReliabilityOverlay


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
_LARGEST, _SMALLEST, _CHARACTER = 12, 10, 0.53
#: Heights of the histogram and of the strip with one line or two above it, as shares of the plotting height.
_HISTOGRAM, _STRIPS = 0.18, (0.065, 0.14)
#: Width of a character (in Arial, wider than on the page) of the label of the worst bin, and height of the label with its distance from the corner, in pixels.
_LABEL = 5.8, 64
#: Sides of the square in pixels from which each power of ten is named on logarithmic axes, and the worst bin and all that the axes show.
_MANY_POWERS, _LABELLED = 300, 250


@dataclass(frozen=True)
class Diagram:
    """The drawing of a computed diagram, as plain dicts for plotly."""

    figure: Reliability
    sheet: Sheet
    marks: Marks = "points"
    beside: Sequence[ReliabilityOverlay] = ()
    least_end: float = 0.0
    floor: float | None = None
    tallest: float = 0.0
    legend: bool = True

    @cached_property
    def axes(self) -> ScoreAxes:
        """Where the axes end, at `least_end` at least, and where logarithmic ones start: see `Reliability.end` and `Reliability.floor`."""
        beside = [v for other in self.beside for v in (other.mean_score, other.observed)]
        floor = self.figure.floor(*beside) if self.floor is None else self.floor
        return ScoreAxes(max(self.least_end, self.figure.end(*beside)), floor)

    def picture(self, selected: int | tuple[int, int] | None) -> Picture:
        """Lay out the square over the histogram."""
        p, lines = self.sheet.palette, marks.wrapped(self.sheet.caption)
        beyond = int(self.figure.count[~self._within].sum())
        over, said = ("x domain", "y domain"), self.axes.words
        said += f"; the points of {counted(beyond, 'row')} lie beyond" * bool(beyond)
        room = LINE * (len(lines) + bool(lines and said))
        # The caption stands above the line about the axes.
        above = list(marks.caption_label(lines, p, above=6 + LINE * bool(said), over=over))
        if said:
            above.append(marks.heading(said, p, over, 2, font={"size": 11, "color": p.muted}))
        return {
            "data": self._traces(),
            "layout": layout(
                p,
                height=room + self._height,
                margin={"l": _LEFT, "r": _RIGHT, "t": _TOP + room, "b": _BOTTOM},
                barmode="overlay",
                bargap=0,
                legend=marks.legend(p, **self._legend),
                showlegend=self.legend,
                shapes=[*self._mean_lines(), *self._highlight(selected)],
                annotations=[*above, self._mean_labels(), self._tallest(), *self._worst()],
                **self._axes(),
            ),
        }

    def small(self, height: int) -> Picture:
        """Lay out only the square, for panels side by side."""
        score = plotly_text(score_and_hit(self.figure.reduction)[0].capitalize(), 34)
        traces = [*self._band(), self._diagonal(), *self._stems(), *self._points()]
        return marks.square(traces, self.sheet, height, self.axes, score, "Observed")

    @cached_property
    def _left(self) -> FloatArray:
        """Left ends of the bins on the axis, clipped to it, shape (M,)."""
        return self._at(np.clip(self.figure.low, 0, self.axes.end))

    @cached_property
    def _right(self) -> FloatArray:
        """Right ends of the bins on the axis, clipped to it, shape (M,)."""
        return self._at(np.clip(self.figure.high, 0, self.axes.end))

    @property
    def _within(self) -> BoolArray:
        """Whether the point of each bin lies on the axes, shape (M,)."""
        return np.maximum(self.figure.mean_score, self.figure.observed) <= self.axes.end

    def _at(self, values: Any) -> FloatArray:
        """Coordinates of scores and frequencies."""
        return np.asarray(self.axes.at(values), float)

    def _of_hits(self, observed: FloatArray) -> FloatArray:
        """Coordinates of frequencies; nan without hits on logarithmic axes, where the ratio of none to some has no length."""
        return np.where((observed > 0) | (not self.axes.floor), self._at(observed), np.nan)

    @property
    def _dense(self) -> bool:
        # With more bins than this, outlines and large points would overlap too much.
        return self.figure.sums.edges.size - 1 > 30

    def _traces(self) -> list[Trace]:
        """Return all traces in drawing order."""
        if self.marks == "bars":
            back = [*self._gap_bars(), self._diagonal()]
        else:
            # Invisible bars over the full height, so that bins can be clicked anywhere.
            unseen = self._bars(self._at(0), self._at(1))
            back = [unseen, *self._band(), self._diagonal(), *self._stems()]
        return [
            *back,
            *self._curves(),
            *self._points(),
            *(self._outlines(other) for other in self.beside),
            *self._histogram(),
        ]

    def _bars(self, base: Any, top: Any, **attributes: Any) -> Trace:
        """Draw a bar over each bin between two coordinates, which carries the index of its bin as ``customdata``; invisible without a `marker`."""
        base = np.broadcast_to(base, self.figure.bin.shape).astype(float)
        return {
            "type": "bar",
            "x": (self._left + self._right) / 2,
            "width": self._right - self._left,
            "base": base,
            "y": top - base,
            "customdata": self.figure.bin,
            "marker": {"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}},  # unseen
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
        score, observed = self._at(f.mean_score), self._at(f.observed)
        yield self._bars(self._at(0), observed, marker=self._fill(p.blue, 0.28), **look)
        # The space above makes short bars as easy to hit as tall ones; its label appears at the observed frequency.
        yield self._bars(self._at(1), observed)
        high, low = words.too_high(f.reduction)
        for which, base, name, colour, shape, rank in (
            (f.gap > 0, observed, high, p.vermillion, "/", 3),
            (f.gap < 0, score, low, p.purple, "\\", 4),
        ):
            pattern = marks.hatched(colour, p, shape=shape, tint=0.16, solidity=0.28)
            bars = self._bars(base, np.maximum(score, observed))
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

    def _stems(self) -> Iterator[Trace]:
        """Yield the gaps as vertical lines from the observed frequency to the diagonal, at the mean score."""
        f, p = self.figure, self.sheet.palette
        high, low = words.too_high(f.reduction)
        kinds = (
            (f.gap > 0, high, p.vermillion, "solid", 3),
            (f.gap < 0, low, p.purple, "3px,2px", 4),
        )
        few, no_line = f.count < FEW_ROWS, np.full(f.bin.shape, np.nan)
        score, observed = self._at(f.mean_score), self._of_hits(f.observed)
        x = np.stack([score, score, no_line], axis=1)
        y = np.stack([observed, score, no_line], axis=1)
        # A gap that a point covers, but for less than a dash, is not seen.
        long = np.abs(f.gap) * self._side / self.axes.end > self._sizes / 2 + 3
        seen = long | bool(self.axes.floor)
        for side, name, colour, dash, rank in kinds:
            for which, solidity in ((side & ~few, 0.75), (side & few, 0.55)):
                yield marks.line(
                    x[which].ravel(),
                    y[which].ravel(),
                    p.tint(colour, solidity),
                    width=1.5 if self._dense else 3.5,
                    dash=dash,
                    name=f"{name} (gap)",
                    legendrank=rank,
                    visible=bool(which.any()),
                    showlegend=bool((which & seen).any())
                    and (solidity > 0.6 or not (side & seen & ~few).any()),
                )

    def _band(self) -> Iterator[Trace]:
        """Yield the consistency band behind everything: one box per bin."""
        f, p = self.figure, self.sheet.palette
        if f.band is None:
            return
        low, high = map(self._at, f.band)
        left, right, gap = self._left, self._right, np.full(f.bin.shape, np.nan)
        x = np.stack([left, right, right, left, left, gap], axis=1).ravel()
        y = np.stack([low, low, high, high, low, gap], axis=1).ravel()
        look: Trace = {"fill": "toself", "fillcolor": p.calibrated, "legendrank": 5}
        yield marks.line(x, y, p.ink, width=0, name=f"{self._level} range if calibrated", **look)

    def _diagonal(self) -> Trace:
        """Draw the diagonal of perfect calibration."""
        ends = self._at([0, 1])
        look: Trace = {"width": 1.5, "dash": "dash", "name": "Perfect calibration", "legendrank": 6}
        return marks.line(ends, ends, self.sheet.palette.ink, **look)

    def _points(self) -> Iterator[Trace]:
        """Yield the observed frequencies at the mean scores, with exact intervals; bins of few rows are diamonds, those without hits at the edge of logarithmic axes."""
        f, p, bars = self.figure, self.sheet.palette, self.marks == "bars"
        name = f"{score_and_hit(f.reduction)[1].capitalize()}, {self._level} interval"
        if bars:
            name = f"Exact {self._level} interval"
        few, none = f.count < FEW_ROWS, (f.observed == 0) & (self.axes.floor > 0)
        thickness, width = (1, 0) if self._dense else (1.5, 3)
        for which, solid in [
            (at & side, solid)
            for at in (~none, none)
            for side, solid in ((~few, True), (few, False))
        ]:
            which &= self._within
            if not which.any():
                continue
            edge = bool(none[which].any())
            named = name if solid or few.all() else f"Fewer than {FEW_ROWS} rows"
            named = "No hits: upper end" if edge else named
            low, high = (self._at(np.minimum(end[which], self.axes.end)) for end in f.interval)
            observed = self._at(f.observed[which])
            colour = p.ink if bars else p.blue
            colour = colour if solid else p.tint(colour, 0.85)
            whisker = p.glaze(colour, 0.6) if self._dense else colour
            ends = high - observed, observed - low
            yield markers(
                self._at(f.mean_score[which]),
                observed,
                colour,
                size=self._sizes[which] + 5 * edge,
                symbol="triangle-down-open" if edge else None if solid else "diamond",
                edge=colour if edge else p.paper,
                edge_width=0 if self._dense else 1 + edge,
                customdata=f.bin[which],
                error_y=marks.whiskers(*ends, whisker, thickness=thickness, width=width),
                **UNFADED,
                cliponaxis=False,
                name=named,
                hover=[text for text, w in zip(self._hover, which, strict=True) if w],
                legendrank=2 if bars else 1,
            )

    def _outlines(self, other: ReliabilityOverlay) -> Trace:
        """Draw further points as outlines joined by a thin line, so that they also differ without colour."""
        symbol, dash, colour = marks.outline(other.role, self.sheet.palette)
        hit = score_and_hit(self.figure.reduction)[1].capitalize()
        name = plotly_text(other.name, 20 if self.sheet.narrow else 28)
        texts = [
            f"<b>{name}</b><br>{counted(int(n), 'row')}<br>mean score {decimal(float(x))}<br>{hit} {decimal(float(y))}"
            for n, x, y in zip(other.count, other.mean_score, other.observed, strict=True)
        ]
        return markers(
            self._at(other.mean_score),
            self._of_hits(other.observed),
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
        share, top = 100 * self.figure.share, self._histogram_top
        yield self._bars(0, share, marker=self._fill(self.sheet.palette.neutral, 0.45), yaxis="y2")
        yield self._bars(top, share, yaxis="y2")

    @property
    def _histogram_top(self) -> float:
        """Upper end of the histogram in percent, with room for a label above the tallest bar."""
        room = 1 - 16 / (_HISTOGRAM * self._plotting)
        return max(132, 100 / room) * max(self.tallest, float(self.figure.share.max()))

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
            x, y = self._at(curve.score), self._at(curve.probability)
            few = curve.rows < FEW_ROWS
            if float(np.ptp(curve.score)) == 0:
                # If all scores are equal, the curve is drawn as a marker, because a line without length is invisible.
                mark: Trace = {"mode": "markers", "marker": {"size": 9, "symbol": "x"}}
                yield marks.line(x, y, colour, width=3, **look, **mark)
                continue
            if few.any() and not few.all():
                # Stretches with few rows fluctuate strongly, so they are drawn faint.
                faint = palette.tint(colour, 0.6)
                yield marks.line(x, y, faint, width=1.5, **look, showlegend=False)
                y = np.where(few, np.nan, y)
            yield marks.line(x, y, colour, width=3, **look)

    @property
    def _level(self) -> str:
        return words.level_text(self.figure.level)

    @cached_property
    def _hover(self) -> list[str]:
        f = self.figure
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        high, low = (name.lower() for name in words.too_high(f.reduction))
        bins = f.sums.edges.size - 1
        of_weight = " by weight" * (f.sums.members is not None)
        texts = []
        for m, index in enumerate(f.bin):
            start, stop = words.range_ends(float(f.low[m]), float(f.high[m]))
            gap = float(f.gap[m])
            mean, observed = words.two_shares(float(f.mean_score[m]), float(f.observed[m]), 1)
            lines = [
                f"<b>Bin {index + 1:,} of {bins:,}</b>: {start} to {stop}",
                f"{counted(int(f.count[m]), 'row')} ({words.percent(float(f.share[m]))}{of_weight})",
                f"{score} {mean}",
                f"{hit} {observed}",
                f"Exact {self._level} interval {_range(f.interval, m)}",
                f"Gap {points(abs(gap), words.gap_decimals(gap))} points"
                + (f", {high if gap > 0 else low}" if gap else ""),
            ]
            if f.band is not None:
                lines.append(f"If calibrated: {_range(f.band, m)}")
            texts.append("<br>".join(lines))
        return texts

    # ---- Surroundings

    @property
    def _side(self) -> int:
        """Side of the square, in pixels."""
        if self.sheet.width is None:
            return SIDE
        return min(SIDE, max(self.sheet.width - _LEFT - _RIGHT, 100))

    @property
    def _plotting(self) -> float:
        """Height of square, histogram and what is between them, in pixels."""
        return self._side / (1 - _HISTOGRAM - self._strip)

    @property
    def _strip(self) -> float:
        """Height of the strip above the histogram, as a share of the plotting height."""
        return _STRIPS[self._letters < _SMALLEST]

    @property
    def _height(self) -> int:
        """Height without the caption: if the width is known, that at which the square fills it, up to its maximum side."""
        if self.sheet.width is None:
            return HEIGHT + LINE * len(self.beside)
        entries = self.legend * marks.entries(self._traces())
        lines = math.ceil(len(entries) / max(1, self.sheet.width // _ENTRY))
        below = _BOTTOM + self.legend * max(0.0, _TITLED - _LEGEND * self._plotting)
        return round(_TOP + self._plotting + below + LINE * lines) + 14

    @property
    def _legend(self) -> Trace:
        """Where the legend is, in shares of the panels; on a narrow page it begins left of them, as only then plotly lets it be wider than they are."""
        width, y = self.sheet.width, -max(_LEGEND, _TITLED / self._plotting)
        if width is None or not self.sheet.narrow:
            return {"y": y}
        return {"y": y, "x": (_RIGHT - _LEFT) / (width - _LEFT - _RIGHT), "xanchor": "left"}

    def _means(self) -> list[tuple[float, str, str, str]]:
        """Return mean score and share of hits of all rows: position, text, colour and dash of each."""
        f, p = self.figure, self.sheet.palette
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        mean, observed = words.two_shares(f.overall_score, f.overall_observed)
        return [
            (f.overall_score, f"{score} {mean}", p.ink, "5px,3px"),
            (f.overall_observed, f"{hit} {observed}", p.blue, "solid"),
        ]

    @cached_property
    def _letters(self) -> int:
        """Font size with which both means stand in one line that stays, centred, inside the drawing."""
        characters = sum(len(text) + 4 for _, text, *_ in self._means())
        return min(_LARGEST, int((self._side + 2 * _RIGHT) / (_CHARACTER * characters)))

    def _mean_lines(self) -> Iterator[dict[str, Any]]:
        """Draw both means as lines in the histogram."""
        for x, _, colour, dash in reversed(self._means()):
            top = 100 * float(self.figure.share.max())
            yield marks.vertical_shape(
                colour, x=self.axes.at(x), width=2, dash=dash, xref="x", yref="y2", y1=top
            )

    def _mean_labels(self) -> dict[str, Any]:
        """Explain both lines above the histogram, where nothing overlaps it: in one line of text if that has room."""
        parts = [
            f'<span style="color:{colour}"><b>{"—" if dash == "solid" else "- -"}</b></span> {text}'
            for _, text, colour, dash in self._means()
        ]
        place: Trace = {"xref": "x domain", "yref": "y2 domain", "x": 0.5, "y": 1, "yshift": 2}
        return marks.label(
            ("<br>" if self._letters < _SMALLEST else "&nbsp;" * 3).join(parts),
            self.sheet.palette,
            **place,
            xanchor="center",
            yanchor="bottom",
            font={"size": max(_SMALLEST, self._letters), "color": self.sheet.palette.ink},
        )

    def _tallest(self) -> dict[str, Any]:
        """Label the tallest bar with its number of rows, which gives the scale of all bars."""
        f = self.figure
        most = int(np.argmax(f.share))
        left, right = float(self._left[most]), float(self._right[most])
        middle = (left + right) / 2
        x, anchor = (middle, "center")
        share = (middle - self.axes.along(0)) / (self.axes.along(1) - self.axes.along(0))
        if not 0.15 <= share <= 0.85:
            x, anchor = (right, "right") if share > 0.5 else (left, "left")
        return marks.label(
            counted(int(f.count[most]), "row"),
            self.sheet.palette,
            xref="x",
            yref="y2",
            x=x,
            y=100 * float(f.share[most]),
            xanchor=anchor,
            yanchor="bottom",
            font={"size": 11, "color": self.sheet.palette.muted},
            yshift=1,
            bgcolor=self.sheet.palette.paper,  # no line of the grid strikes it through
        )

    def _worst(self) -> Iterator[dict[str, Any]]:
        """Label the bin that is furthest off beyond noise, in the corner that the points leave free; not beside other points, which the picture is about, nor where it would hide the points."""
        f, p = self.figure, self.sheet.palette
        at = f.worst
        if at is None or self.marks == "bars" or self.beside or self._side < _LABELLED:
            return
        gap, expected = float(f.gap[at]), float(f.expected_gap[at])
        size, way = expected_gap(expected).split(" too")
        last = f"({points(abs(gap), words.gap_decimals(expected))} on these {f.sums.row_words(int(f.bin[at]))})"
        # Where both have as many, that on the side of the points of this bin.
        left = min([gap < 0, gap >= 0], key=lambda left: self._covered(left, len(last)))
        x, y, side, end = (0.02, 0.97, "left", "top") if left else (0.98, 0.03, "right", "bottom")
        yield marks.label(
            f"<b>□ {size}</b><br>too{way} on new rows<br>{last}",
            p,
            x=self.axes.along(x),
            y=self.axes.along(y),
            xanchor=side,
            yanchor=end,
            align=side,
            # On a grey range, or on marks, it keeps a ground of its own.
            bgcolor=p.glaze(p.paper, 0.8),
        )
        # A frame around its point; a line to the point would look like an interval.
        place: Trace = {
            "x": float(self._at(f.mean_score[at])),
            "y": float(self._at(f.observed[at])),
        }
        inside = self._sizes[at] + 4
        yield marks.label(" ", p, **place, width=inside, height=inside, bordercolor=p.ink)

    def _covered(self, left: bool, characters: int) -> int:
        """Number of bins whose point, interval or gap the label, so many characters wide, would cover in the upper left, or else the lower right, corner."""
        f = self.figure
        across, up = characters * _LABEL[0] / self._side, _LABEL[1] / self._side
        drawn = self.axes.share(np.stack([f.mean_score, f.observed, *f.interval]))
        if left:
            hidden = (drawn[0] < across) & (np.nanmax(drawn, axis=0) > 1 - up)
        else:
            hidden = (drawn[0] > 1 - across) & (np.nanmin(drawn, axis=0) < up)
        return int(np.count_nonzero(hidden))

    def _highlight(self, selected: int | tuple[int, int] | None) -> Iterator[dict[str, Any]]:
        """Draw frames around the selected bins, over the full height of both panels."""
        edges = self.figure.sums.edges
        if selected is None:
            return
        first, last = selected if isinstance(selected, tuple) else (selected, selected)
        if not 0 <= first <= last < edges.size - 1:
            return
        p = self.sheet.palette
        for domain in ("y domain", "y2 domain"):
            yield marks.frame(
                p.ink,
                layer="above",
                xref="x",
                yref=domain,
                x0=float(self._at(max(0.0, edges[first]))),
                x1=float(self._at(min(self.axes.end, edges[last + 1]))),
                y0=0,
                y1=1,
                fillcolor=p.glaze(p.ink, 0.05),
            )

    def _axes(self) -> dict[str, Any]:
        """Return one x axis for both panels, and the y axes; the square stays square at any page width."""
        # Maximum characters of a class name on an axis.
        reduction = words.with_short_class(self.figure.reduction, 18)
        titles = reduction.score_label, reduction.hit_label
        if self._side < _LABELLED:
            score, hit = score_and_hit(reduction)
            titles = score.removeprefix("mean ").capitalize(), hit.capitalize()
        axes = marks.square_axes(
            self.sheet, *map(plotly_text, titles), **self.axes.unit(few=self._side < _MANY_POWERS)
        )
        # The frame of the square is of the axis below the histogram, too.
        axes["xaxis"] |= {"anchor": "y2", "mirror": "all", "ticks": ""}
        # Vertical space that the square does not need, as on a narrow page, is split evenly above and below.
        axes["yaxis"] |= {"constraintoward": "middle", "domain": [_HISTOGRAM + self._strip, 1]}
        place: Trace = {"domain": [0, _HISTOGRAM], "anchor": "x", "range": [0, self._histogram_top]}
        return axes | {"yaxis2": self.sheet.axis("Rows", **place, ticksuffix=" %", nticks=4)}


def _range(pair: tuple[FloatArray, FloatArray], m: int) -> str:
    return f"{points(float(pair[0][m]))} to {words.percent(float(pair[1][m]))}"

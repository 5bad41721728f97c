"""The reliability diagram: observed frequency against score, bin by bin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, Theme, figure
from calviz.core.errors import OptionError, check_choice, check_level, needs
from calviz.core.events import Reduction, Scheme
from calviz.core.p_values import clopper_pearson
from calviz.core.profile import dataset_of
from calviz.core.words import (
    SINGLE_ROW,
    bins_words,
    counted,
    decimal,
    decimals_for,
    expected_gap,
    level_text,
    plotly_text,
    points,
    points_decimals,
    range_ends,
    score_and_hit,
    two_shares,
    with_short_class,
)
from calviz.figures.curve_estimates import Curve, CurveKind, make_curves
from calviz.figures.figure import Data, Page, ScoreFigure, ends_or_nan
from calviz.figures.marks import (
    EDGE,
    LINE,
    Drawing,
    ReliabilityOverlay,
    Role,
    Sheet,
    Trace,
    caption_label,
    diagonal,
    drawn,
    frame,
    label,
    legend,
    square,
    square_axes,
    vertical_shape,
    wrapped,
)
from calviz.figures.reliability_traces import Traces
from calviz.figures.style import layout
from calviz.sample.binning import BinSums, bins_off, expected_share
from calviz.sample.error_bars import Interval, Redrawing, interval, resampled
from calviz.sample.sample import Sample, chosen_bins

if TYPE_CHECKING:
    import pandas as pd


#: Style of the diagram: points with their gaps on the band, or the bars of Guo et al.
Marks = Literal["points", "bars"]


@figure(
    key="reliability",
    label="Reliability diagram",
    summary="Observed frequency against mean score, bin by bin: a calibrated model follows the "
    "diagonal. Exact intervals per bin, the band of a calibrated model, and the scores' histogram.",
    reference="Guo et al. 2017, figure 1; Broecker & Smith 2007; Clopper & Pearson 1934",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Reliability(ScoreFigure):
    """A reliability diagram, computed; `plot` draws it.

    Arrays have one entry per non-empty bin, in ascending order; empty bins are not drawn.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    sums : BinSums
        The sums per bin from which everything drawn, and the binned metrics, are computed.
    bin : ndarray of int, shape (M,)
        0-based index of the bin among all bins, empty ones included.
    low, high : ndarray of float64, shape (M,)
        Edges of the bin.
    count : ndarray of int, shape (M,)
        Rows in the bin.
    mean_score, observed : ndarray of float64, shape (M,)
        Mean score, and share of hits.
    interval : (ndarray, ndarray), shape (M,) each
        Exact (Clopper-Pearson) interval of the share of hits.
    band : (ndarray, ndarray) or None, shape (M,) each
        Range of the share of hits if the scores are the true probabilities (consistency band).
    redrawing : Redrawing
        Seed and number of the resamples.
    curves : mapping of str to Curve
        Bin-free estimates of the same frequency, if requested.

    References
    ----------
    Guo et al. 2017, figure 1 (diagram, gaps, histogram); Broecker & Smith 2007 (consistency
    under calibration); Clopper & Pearson 1934 (exact interval); Zhang et al. 2020, section 4.1
    (kernel curve); Dimitriadis, Gneiting & Jordan 2021 (isotonic curve).
    """

    sums: BinSums
    bin: IntArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    mean_score: FloatArray
    observed: FloatArray
    interval: tuple[FloatArray, FloatArray]
    band: tuple[FloatArray, FloatArray] | None
    redrawing: Redrawing
    curves: Mapping[CurveKind, Curve]
    _score: FloatArray
    _selected: IntArray | None

    def overlay(self, name: str, role: Role) -> ReliabilityOverlay:
        """The points of this diagram, to draw in another one."""
        count = np.asarray(self.count, float)
        return ReliabilityOverlay(name, role, self.mean_score, self.observed, count)

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        reduction: Reduction | str | None = None,
        bins: int | None = None,
        scheme: Scheme | None = None,
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
        curves: tuple[CurveKind, ...] = (),
    ) -> Self:
        """Bin the rows and compute the intervals and the band.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        bins : int
            Number of bins (ignored by ``sturges``).
        scheme : {"equal-width", "equal-mass", "sturges"}
            How the bins are placed.
        level : float
            Level of the exact interval of each bin and of the band, between 0 and 1.
        band : bool
            Whether to compute the consistency band.
        seed, resamples : int
            Seed and number of the resamples for the band and the interval of the ECE.
        curves : tuple of {"kernel", "isotonic"}
            Bin-free curves to add: the kernel estimate of the KDE-ECE, and isotonic regression (CORP).

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(
            data,
            split=split,
            reduction=reduction,
            bins=bins,
            scheme=scheme,
            seed=seed,
            resamples=resamples,
        )
        whole = data.data if isinstance(data, Sample) else dataset_of(data)
        selected: IntArray | None = None
        if split is not None:
            assert whole.splits is not None
            selected = np.flatnonzero(whole.splits.mask(split))
            if whole.weights is not None:
                whole = whole.split(split)
        if (counting := whole.rows_that_count) is not None:
            selected = counting if selected is None else selected[counting]
        sums = chosen_bins(sample)
        filled = np.flatnonzero(sums.count)
        hits, rows = sums.trials
        edges = sums.edges.astype(np.float64)
        return cls(
            **cls._fields(sample),
            sums=sums,
            level=level,
            bin=filled,
            low=edges[:-1][filled],
            high=edges[1:][filled],
            count=sums.whole_rows[filled].astype(np.int64),
            mean_score=sums.confidence[filled],
            observed=sums.accuracy[filled],
            interval=clopper_pearson(hits[filled], rows[filled], level=level),
            band=_band(sums, filled, level, sample.redrawing) if band else None,
            redrawing=sample.redrawing,
            curves=make_curves(sample, curves),
            _score=sample.scored.score,
            _selected=selected,
        )

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits, shape (M,); positive where the scores are too high."""
        return self.sums.gap[self.bin]

    @property
    def share(self) -> FloatArray:
        """Share of the rows in each bin, shape (M,)."""
        return self.sums.weight[self.bin]

    @property
    def overall_score(self) -> float:
        """Mean score of all rows (the mean confidence, for the top label)."""
        return float(self.sums.score_sum.sum() / self.sums.n)

    @property
    def overall_observed(self) -> float:
        """Share of hits of all rows (the accuracy, for the top label)."""
        return float(self.sums.hit_sum.sum() / self.sums.n)

    @property
    def ece(self) -> float:
        """Expected calibration error over these bins, the same as the metric."""
        return float(self.sums.mean_gap)

    @cached_property
    def ece_interval(self) -> Interval | None:
        """Bootstrap interval of the ECE, at `level`; None if resampling changes nothing."""
        if self.n < 2:
            return None
        # The same random streams as in an evaluation, so that both print the same interval.
        redraws = resampled(self.sums, "bootstrap", **self.redrawing)
        calibrated = resampled(self.sums, "under_calibration", **self.redrawing)
        return interval(
            redraws.mean_gap,
            self.level,
            value=self.ece,
            view=self.sums,
            method=METRICS["ece"].interval,
            calibrated=calibrated.mean_gap,
            bounds=METRICS["ece"].bounds,
        )

    @property
    def bins_words(self) -> str:
        """Number and scheme of the bins in words."""
        return bins_words(self.sums.edges.size - 1, self.sums.params["scheme"])

    def rows(self, bin: int) -> IntArray:
        """Return the indices, into the given data, of the rows in a bin.

        Parameters
        ----------
        bin : int
            0-based index among all bins, as in `frame` and in the ``customdata`` of the drawing.
        """
        edges = self.sums.edges
        last = edges.size - 2
        if not 0 <= bin <= last:
            raise OptionError(f"there are bins 0 to {last}, not {bin}.")
        inside = np.ones(self._score.shape, dtype=np.bool_)
        if bin > 0:
            inside &= self._score > edges[bin]
        if bin < last:
            inside &= self._score <= edges[bin + 1]
        rows = np.flatnonzero(inside)
        return rows if self._selected is None else self._selected[rows]

    def columns(self) -> Mapping[str, Any]:
        """One row per bin that has rows."""
        band_low, band_high = ends_or_nan(self.band, self.bin)
        return {
            "bin": self.bin,
            "low": self.low,
            "high": self.high,
            "rows": self.count,
            "share": self.share,
            "mean_score": self.mean_score,
            "observed": self.observed,
            "gap": self.gap,
            "ci_low": self.interval[0],
            "ci_high": self.interval[1],
            "band_low": band_low,
            "band_high": band_high,
        }

    def curves_frame(self) -> pd.DataFrame:
        """Return the points of the curves as a table, one row each; empty without curves."""
        needs("pandas")
        import pandas as pd

        names = [kind for kind, curve in self.curves.items() for _ in curve.score]
        columns = [np.concatenate([[], *part]) for part in zip(*self.curves.values(), strict=True)]
        score, probability, rows = columns or (np.zeros(0),) * 3
        return pd.DataFrame(
            {"curve": names, "score": score, "probability": probability, "rows": rows}
        )

    def plot(
        self,
        *,
        selected: int | tuple[int, int] | None = None,
        marks: Marks = "points",
        beside: Sequence[ReliabilityOverlay] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure.

        If the width of the page is known, the height is chosen so that the square fills it. Without it the drawing adapts to any
        width, with more space around the square.

        Parameters
        ----------
        selected : int or (int, int), optional
            0-based index of a bin to highlight, or first and last index of a range of bins.
        marks : {"points", "bars"}
            Points with exact intervals, sized by their rows, with the gaps as lines on the band; or bars with hatched gaps, as
            in figure 1 of Guo et al. 2017. Bins of fewer than 20 rows are faint.
        beside : sequence of ReliabilityOverlay
            Further points, drawn as outlines: a subset of the rows, the rows before recalibration, or another state.
        **page
            See `Figure.plot`.

        Returns
        -------
        plotly.graph_objects.Figure
            Bars and points carry the 0-based index of their bin as ``customdata``.

        Raises
        ------
        OptionError
            If `marks` is unknown.
        """
        check_choice("marks", marks, get_args(Marks))
        sheet = self.sheet(**page)
        traces = Traces(self, sheet, marks, beside)
        drawing = _Surroundings(self, sheet, traces)
        lines = wrapped(sheet.caption)
        room = LINE * len(lines)
        above = caption_label(lines, sheet.palette, above=6, over=("x domain", "y domain"))
        layout_ = layout(
            sheet.palette,
            height=room + drawing.height,
            margin={"l": _LEFT, "r": _RIGHT, "t": _TOP + room, "b": _BOTTOM},
            barmode="overlay",
            bargap=0,
            legend=legend(sheet.palette, y=-drawing.legend_distance),
            shapes=[drawing.frame(), *drawing.mean_lines(), *drawing.highlight(selected)],
            annotations=[*above, drawing.mean_labels(), drawing.tallest(), *drawing.worst()],
            **drawing.axes(),
        )
        return drawn({"data": traces.all(), "layout": layout_})

    def plot_small(self, *, theme: Theme = "light", height: int = 330) -> Drawing:
        """Draw only the square, with a height in pixels, to be shown beside others on the same scale."""
        sheet = self.sheet(theme=theme)
        traces = Traces(self, sheet)
        score = plotly_text(score_and_hit(self.reduction)[0].capitalize(), 34)
        marks = [*traces.band(), diagonal(sheet.palette), *traces.stems(), *traces.points()]
        return drawn(square(marks, sheet, height, score, "Observed"))

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the ECE with its interval: one line each."""
        head = self._head(self.bins_words)
        if self.n == 1:
            return *head, SINGLE_ROW
        decimals = decimals_for(self.ece, figures=3, least=3)
        error = f"ECE {decimal(self.ece, decimals)}"
        if self.ece_interval is not None:
            low, high = (decimal(v, decimals) for v in self.ece_interval)
            error += f" ({level_text(self.level)} CI {low} to {high})"
        return *head, error

    def describe(self) -> str:
        """Say in plain words what the diagram shows (alternative text)."""
        score, hit = score_and_hit(self.reduction)
        head = f"Reliability diagram of {self._scored}"
        if self.n == 1:
            outcome = "a hit" if self.overall_observed > 0 else "no hit"
            return f"{head} with a score of {decimal(self.overall_score)}, {outcome}. {SINGLE_ROW}"
        mean, observed = two_shares(self.overall_score, self.overall_observed)
        every = self.bin.size == self.sums.count.size
        of_them = "all of them" if every else f"{self.bin.size:,} of them"
        parts = [
            f"{head} in {self.bins_words}, {of_them} with rows.",
            f"The {score} is {mean}, the {hit} {observed}; "
            f"the expected calibration error is {points(self.ece, points_decimals(self.ece))} points.",
            self._largest_gap(),
        ]
        if self.band is not None:
            low, high = self.band
            outside = int(np.count_nonzero((self.observed < low) | (self.observed > high)))
            parts.append(
                f"{counted(outside, 'bin lies', 'bins lie')} outside the {level_text(self.level)} band "
                "of a calibrated model."
            )
        return " ".join(parts)

    @property
    def worst(self) -> int | None:
        """Position, among the non-empty bins, of the bin that is furthest off beyond noise; None if there is none.

        As a bin with few rows can have any gap, only bins count whose interval, at 95 % for all bins together, excludes
        the mean score. The findings name the same bin.
        """
        off = [m for m in bins_off(self.sums) if m is not None]
        return max(off, key=lambda m: abs(float(self.gap[m])), default=None)

    def _largest_gap(self) -> str:
        gaps = np.abs(self.gap)
        if not gaps.any():
            return "No bin has a gap."
        off = self.worst
        worst = int(np.argmax(gaps)) if off is None else off
        gap = float(self.gap[worst])
        between = " and ".join(
            range_ends(float(self.low[worst]), float(self.high[worst]), tolerance=0.06)
        )
        rows = counted(int(self.count[worst]), "row")
        if off is None:
            way = "high" if gap > 0 else "low"
            return (
                f"The largest gap, within its interval (95 % for all bins together), is between {between}, where the scores are "
                f"{points(abs(gap))} points too {way} ({rows})."
            )
        return (
            f"The bin furthest outside its interval (95 % for all bins together) is between {between}, where the scores are "
            f"{expected_gap(self.worst_gap)} ({rows}), as it was chosen for its gap."
        )

    @property
    def worst_gap(self) -> float:
        """Gap to expect in the worst bin (`calviz.sample.binning.expected_share`)."""
        at = self.worst
        return 0.0 if at is None else float(self.mean_score[at]) - expected_share(self.sums, at)[0]


def _band(
    sums: BinSums, filled: IntArray, level: float, redrawing: Redrawing
) -> tuple[FloatArray, FloatArray]:
    redraws = resampled(sums, "under_calibration", **redrawing)
    low, high = np.quantile(redraws.accuracy[:, filled], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


# ---- Drawing


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


@dataclass(frozen=True)
class _Surroundings:
    """Axes, lines, labels and legend."""

    figure: Reliability
    sheet: Sheet
    traces: Traces

    @property
    def _side(self) -> int:
        """Side of the square, in pixels."""
        if self.sheet.width is None:
            return SIDE
        return min(SIDE, max(self.sheet.width - _LEFT - _RIGHT, 100))

    @property
    def _plotting(self) -> float:
        """Height of square, histogram and what is between them, in pixels."""
        return self._side / (1 - _HISTOGRAM - _STRIP)

    @property
    def height(self) -> int:
        """Height without the caption: if the width is known, that at which the square fills it, up to its maximum side."""
        if self.sheet.width is None:
            return HEIGHT + LINE * len(self.traces.beside)
        entries = sum(
            t.get("name") is not None
            and t.get("visible", True)
            and t.get("showlegend") is not False
            for t in self.traces.all()
        )
        lines = math.ceil(entries / max(1, (self.sheet.width - 2 * _RIGHT) // _ENTRY))
        below = _BOTTOM + max(0.0, _TITLED - _LEGEND * self._plotting)
        return round(_TOP + self._plotting + below + LINE * lines) + 14

    @property
    def legend_distance(self) -> float:
        """Distance of the legend from the histogram, as a share of the plotting height."""
        if self.sheet.width is None:
            return _LEGEND
        return max(_LEGEND, _TITLED / self._plotting)

    def _means(self) -> list[tuple[float, str, str, str]]:
        """Return mean score and share of hits of all rows: position, text, colour and dash of each."""
        f, p = self.figure, self.sheet.palette
        score, hit = (name.capitalize() for name in score_and_hit(f.reduction))
        mean, observed = two_shares(f.overall_score, f.overall_observed)
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
        size = _LARGEST
        if self.sheet.width is not None:
            # A centred line stays inside the drawing.
            room = min(SIDE, self.sheet.width - _LEFT - _RIGHT) + 2 * _RIGHT
            characters = sum(len(text) + 4 for _, text, *_ in means)
            size = max(_SMALLEST, min(_LARGEST, int(room / (_CHARACTER * characters))))
        place: Trace = {"xref": "x domain", "yref": "y2 domain", "x": 0.5, "y": 1, "yshift": 2}
        return label(
            "&nbsp;&nbsp;&nbsp;".join(parts),
            self.sheet.palette,
            **place,
            xanchor="center",
            yanchor="bottom",
            font={"size": size, "color": self.sheet.palette.ink},
        )

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
            self.sheet.palette,
            xref="x",
            yref="y2",
            x=x,
            y=100 * float(f.share[most]),
            xanchor=anchor,
            yanchor="bottom",
            font={"size": 11, "color": self.sheet.palette.muted},
        )

    def worst(self) -> Iterator[dict[str, Any]]:
        """Label the bin that is furthest off beyond noise, in the corner that the points leave free."""
        f, p = self.figure, self.sheet.palette
        at = f.worst
        if at is None or self.traces.marks == "bars":
            return
        gap, score = float(f.gap[at]), float(f.mean_score[at])
        below, above = (0.98, 0.03, ("right", "bottom")), (0.02, 0.97, ("left", "top"))
        corners = [above, below] if gap < 0 else [below, above]
        # Where both have as many, that on the side of the points of this bin, whose line is then short.
        x, y, anchor = min(corners, key=lambda corner: self._covered(corner[0] < 0.5))
        yield label(
            f"<b>{expected_gap(f.worst_gap).replace(' too', '</b> too')}<br>"
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
        across, up = _LABEL[0] / self._side, _LABEL[1] / self._side
        drawn = np.stack([f.mean_score, f.observed, *f.interval])
        if left:
            hidden = (f.mean_score < across) & (np.nanmax(drawn, axis=0) > 1 - up)
        else:
            hidden = (f.mean_score > 1 - across) & (np.nanmin(drawn, axis=0) < up)
        return int(np.count_nonzero(hidden))

    def frame(self) -> dict[str, Any]:
        """Draw a frame around the square, whose x axis is drawn below the histogram."""
        attributes = {"xref": "x domain", "yref": "y domain", "layer": "below"}
        return frame(self.sheet.palette.neutral, width=1, x0=0, x1=1, y0=0, y1=1, **attributes)

    def highlight(self, selected: int | tuple[int, int] | None) -> Iterator[dict[str, Any]]:
        """Draw frames around the selected bins, over the full height of both panels."""
        edges = self.figure.sums.edges
        if selected is None:
            return
        first, last = selected if isinstance(selected, tuple) else (selected, selected)
        if not 0 <= first <= last < edges.size - 1:
            return
        p = self.sheet.palette
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
        reduction = with_short_class(self.figure.reduction, _AXIS_NAME)
        titles = (plotly_text(text) for text in (reduction.score_label, reduction.hit_label))
        # Room for the points on the edges.
        unit: Trace = {"range": [-EDGE, 1 + EDGE], "tick0": 0, "dtick": 0.2, "tickformat": ".1f"}
        axes = square_axes(self.sheet, *titles, **unit)
        axes["xaxis"] |= {"anchor": "y2"}
        # Vertical space that the square does not need, as on a narrow page, is split evenly above and below.
        axes["yaxis"] |= {"constraintoward": "middle", "domain": [_HISTOGRAM + _STRIP, 1]}
        place: Trace = {
            "domain": [0, _HISTOGRAM],
            "anchor": "x",
            "range": [0, self.traces.histogram_top],
        }
        return axes | {"yaxis2": self.sheet.axis("Rows", **place, ticksuffix=" %", nticks=4)}

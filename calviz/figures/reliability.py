"""The reliability diagram: observed frequency against score, bin by bin, and by curves without bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Self, Unpack, get_args

import numpy as np
from scipy.ndimage import convolve1d
from scipy.optimize import isotonic_regression

from calviz.core import curve_fits, entry_specs, errors, p_values, words
from calviz.core.blocks import FloatArray, IntArray, checkpoint
from calviz.core.events import BinaryEvents
from calviz.core.words import SINGLE_ROW, bins_words, counted, decimal, level_text, points, shorten
from calviz.figures.figure import Data, ScoreFigure, end_columns, measured_at, pointwise
from calviz.figures.marks import ZOOMED, Drawing, Page, Role, drawn, end_of
from calviz.figures.reliability_traces import Diagram
from calviz.sample import binning, error_bars, step_views, steps
from calviz.sample.sample import (
    BinOptions,
    Sample,
    chosen_bins,
    dataset_of,
    on_days,
    rows_where,
    shows_options,
    where_words,
)
from calviz.verdicts.evaluation import Verdict
from calviz.verdicts.joint_tests import collect_evidence

#: What is to expect of a bin on new rows (`calviz.sample.binning.expected_share`).
DRAWN = "a bin is drawn to the curve through all bins, less far where its interval excludes that"
#: Style of the diagram: points with their gaps on the band, or the bars of Guo et al.
Marks = Literal["points", "bars"]


@dataclass(frozen=True, eq=False)
class ReliabilityOverlay:
    """Points of the non-empty bins of other rows, or of some of the rows, over a reliability diagram, in ascending order.

    Attributes
    ----------
    name : str
        Name in the legend.
    role : {"selected", "pinned", "before", "named"}
    mean_score, observed : ndarray of float64, shape (M,)
        Mean score and share of hits per bin.
    count : ndarray, shape (M,)
        Rows per bin.
    """

    name: str
    role: Role
    mean_score: FloatArray
    observed: FloatArray
    count: FloatArray

    @classmethod
    def of_rows(
        cls,
        sample: Sample,
        sums: binning.BinSums,
        rows: IntArray,
        name: str,
        role: Role = "selected",
        *,
        least: int = 1,
    ) -> Self:
        """Bin some rows of a sample, given by their indices, in the bins of its diagram; bins of fewer than `least` rows are left out."""
        events, weights = sample.scored, sample.weights
        selected_events = BinaryEvents(events.score[rows], events.hit[rows])
        row_weights = None if weights is None else weights[rows]
        part = binning.bin_between(selected_events, sums.edges, sums.params, weights=row_weights)
        if events.counted:
            part = replace(part, members=None)  # each event stands for many rows
        kept = np.flatnonzero(part.whole_rows >= least)
        counts = np.asarray(part.whole_rows[kept], float)
        return cls(name, role, part.confidence[kept], part.accuracy[kept], counts)

    @classmethod
    def of_headline(
        cls, sample: Sample, sums: binning.BinSums, verdict: Verdict | None
    ) -> tuple[Self, ...]:
        """The bins of the slice that the headline of a verdict is about, but those of few rows; none if it is about all rows."""
        if verdict is None or not (where := verdict.changed_where or verdict.named_where):
            return ()
        name = where_words(where, 20)
        # The headline says of which columns these are, for which a legend often has no room.
        values = (f"{'class ' * (c == errors.PREDICTED)}{shorten(v, 20)}" for c, v in where)
        name = name if len(name) <= 20 else ", ".join(values)
        if verdict.changed_where:
            name += " until then" if verdict.ended else " since then"
            where = on_days(sample.data, verdict.changed_days, where)
        rows = np.flatnonzero(np.asarray(rows_where(sample.data, where)))
        return (cls.of_rows(sample, sums, rows, name, "named", least=binning.FEW_ROWS),)


@entry_specs.figure(
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
    named : bool
        Whether bins that are off are named: not on a `Sample` whose verdict finds nothing.
    curves : mapping of str to Curve
        Bin-free estimates of the same frequency, if requested.

    References
    ----------
    Guo et al. 2017, figure 1 (diagram, gaps, histogram); Broecker & Smith 2007 (consistency
    under calibration); Clopper & Pearson 1934 (exact interval); Zhang et al. 2020, section 4.1
    (kernel curve); Dimitriadis, Gneiting & Jordan 2021 (isotonic curve).
    """

    sums: binning.BinSums
    bin: IntArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    mean_score: FloatArray
    observed: FloatArray
    interval: tuple[FloatArray, FloatArray]
    band: tuple[FloatArray, FloatArray] | None
    named: bool
    curves: Mapping[CurveKind, Curve]
    _selected: IntArray | None
    _score: FloatArray
    _measured: Callable[[], entry_specs.MetricResult]

    def overlay(self, name: str, role: Role) -> ReliabilityOverlay:
        """The points of this diagram, to draw in another one; those of few rows, which a line through all would lead to, only if there are no others."""
        few, points = self.count < binning.FEW_ROWS, (self.mean_score, self.observed, self.count)
        kept = (np.asarray(v[few.all() | ~few], float) for v in points)
        return ReliabilityOverlay(name, role, *kept)

    @classmethod
    @shows_options
    def compute(
        cls,
        data: Data,
        *,
        level: float = 0.95,
        band: bool = True,
        curves: tuple[CurveKind, ...] = (),
        **options: Unpack[BinOptions],
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
        errors.check_level(level)
        sample = Sample.of(data, **options)
        whole = data.data if isinstance(data, Sample) else dataset_of(data)
        selected: IntArray | None = None
        if (split := options.get("split")) is not None:
            assert whole.splits is not None
            selected = np.flatnonzero(whole.splits.mask(split))
            if whole.weights is not None:
                whole = whole.split(split)
        if (counting := whole.rows_that_count) is not None:
            selected = counting if selected is None else selected[counting]
        sums = chosen_bins(sample)
        filled = np.flatnonzero(sums.count)
        hits, rows = sums.trials
        limits = None
        if band:
            redraws = error_bars.resampled(sums, "under_calibration", **sample.redrawing)
            limits = pointwise(redraws.accuracy[:, filled].clip(0, 1), level)
        edges = sums.edges.astype(np.float64)
        return cls(
            **cls._fields(sample, level=level),
            sums=sums,
            bin=filled,
            low=edges[:-1][filled],
            high=edges[1:][filled],
            count=sums.whole_rows[filled].astype(np.int64),
            mean_score=sums.confidence[filled],
            observed=sums.accuracy[filled],
            interval=p_values.clopper_pearson(hits[filled], rows[filled], level=level),
            band=limits,
            # The verdict, whose tests take longer than the figure, is at hand where a sample is shared.
            named=not (isinstance(data, Sample) and binning.bins_off(sums))
            or sample.once(collect_evidence).beyond_noise,
            curves=make_curves(sample, curves),
            _selected=selected,
            _score=sample.scored.score,
            _measured=partial(measured_at, sample, sample.ece_key, level),
        )

    def end(self, *beside: FloatArray) -> float:
        """Where the axes end: beyond the points, those beside them too, and beyond the intervals of all bins but those of few rows, which alone do not make them end at 1.

        The outermost bins of few rows, not off beyond noise, may lie beyond the end if they hold at most 2.5 % of all rows.
        """
        out = np.argsort(-np.maximum(self.mean_score, self.observed))
        # Largest share of the rows whose points may lie beyond the axes.
        out = out[np.cumsum(self.share[out]) <= 0.025]
        out = out[(self.count[out] < binning.FEW_ROWS) & np.isnan(self.expected_gap[out])]
        points = (np.delete(v, out) for v in (self.mean_score, self.observed))
        sure = self.interval[1][self.count >= binning.FEW_ROWS]
        return end_of(*points, np.minimum(sure, ZOOMED), *beside)

    def floor(self, *beside: FloatArray) -> float:
        """Where logarithmic axes start: the power of ten below all points, at most six below the end; 0 for linear axes.

        They are logarithmic for a rare event (`calviz.core.words.RARE`) if linear ones had most bins in their lowest tenth.
        """
        end = self.end(*beside)
        if not 0 < self.overall_observed < words.RARE or np.median(self.mean_score) > end / 10:
            return 0.0
        values = np.concatenate([self.mean_score, self.observed, *beside])
        lowest = math.log10(np.min(values, where=values > 0, initial=end / 10))
        # Powers of ten on logarithmic axes, at most.
        return 10.0 ** math.floor(max(lowest, math.log10(end) - 6))

    @property
    def decimals(self) -> int:
        """Decimals of shares and gaps of bins in percent: one more for a rare event."""
        return words.decimals_for(*(100 * self.observed), figures=1, most=2)

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits, shape (M,); positive where the scores are too high."""
        return self.sums.gap[self.bin]

    @property
    def expected_gap(self) -> FloatArray:
        """Gap to expect in each bin that is off beyond noise (`calviz.sample.binning.expected_share`), shape (M,); nan in others."""
        gaps = np.full(self.bin.size, np.nan)
        for m in binning.bins_off(self.sums) if self.named else ():
            gaps[m] = self.mean_score[m] - binning.expected_share(self.sums, m)[0]
        return gaps

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
    def ece_interval(self) -> entry_specs.Interval | None:
        """The interval of the metric, at `level`; None if resampling changes nothing."""
        return self._measured().interval

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
            raise errors.OptionError(f"there are bins 0 to {last}, not {bin}.")
        inside = (self._score > edges[bin]) | (bin == 0)
        rows = np.flatnonzero(inside & ((self._score <= edges[bin + 1]) | (bin == last)))
        return rows if self._selected is None else self._selected[rows]

    def columns(self) -> Mapping[str, Any]:
        """One row per bin that has rows."""
        return {
            **errors.picked(self, "bin low high"),
            "rows": self.count,
            **errors.picked(self, "share mean_score observed gap expected_gap"),
            **end_columns("ci", self.interval, self.bin),
            **end_columns("band", self.band, self.bin),
        }

    def plot(
        self,
        *,
        selected: int | tuple[int, int] | None = None,
        marks: Marks = "points",
        beside: Sequence[ReliabilityOverlay] = (),
        whole: bool = False,
        end: float = 0.0,
        floor: float | None = None,
        tallest: float = 0.0,
        legend: bool = True,
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure.

        The axes end a little beyond the last bin if that is below 0.4, and are logarithmic for rare events (`floor`); a line above
        the square says so. Bins without hits then lie on the lower edge, as triangles.

        If the width of the page is known, the height is chosen so that the square fills it. Without it the drawing adapts to any
        width, with more space around the square.

        Parameters
        ----------
        selected : int or (int, int), optional
            0-based index of a bin to highlight, or first and last index of a range of bins.
        marks : {"points", "bars"}
            Points with exact intervals, sized by their rows, with the gaps as lines on the band; or bars with hatched gaps, as
            in figure 1 of Guo et al. 2017. Bins of fewer than 20 rows are diamonds.
        beside : sequence of ReliabilityOverlay
            Further points, drawn as outlines: a subset of the rows, the rows before recalibration, or another state.
        whole : bool
            Linear axes from 0 to 1, wherever the bins are.
        end : float
            Where the axes end at least: the largest `end` of diagrams that are shown beside each other.
        floor : float, optional
            Where logarithmic axes start, 0 for linear ones: the smallest `floor` of such diagrams; if left out, its own.
        tallest : float
            Share of the rows that the histogram has room for at least: the largest of all bins of such diagrams.
        legend : bool
            Whether what is drawn is named below.
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
        errors.check_choice("marks", marks, get_args(Marks))
        least, floor = (1.0, 0.0) if whole else (end, floor)
        diagram = Diagram(self, self.sheet(**page), marks, beside, least, floor, tallest, legend)
        return drawn(diagram.picture(selected))

    def plot_small(
        self,
        *,
        theme: entry_specs.Theme = "light",
        height: int = 330,
        end: float = 0.0,
        floor: float | None = None,
    ) -> Drawing:
        """Draw only the square, with a height in pixels, to be shown beside others; `end` and `floor` as in `plot`."""
        diagram = Diagram(self, self.sheet(theme=theme), least_end=end, floor=floor)
        return drawn(diagram.small(height))

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the ECE with its interval: one line each."""
        head = self._head(self.bins_words)
        if self.n == 1:
            return *head, SINGLE_ROW
        decimals = words.decimals_for(self.ece, figures=3, least=3)
        error = f"ECE {decimal(self.ece, decimals)}"
        if self.ece_interval is not None:
            low, high = (decimal(v, decimals) for v in self.ece_interval)
            error += f" ({level_text(self.level)} CI {low} to {high})"
        return *head, error

    def printed(self) -> Self:
        """Without the band, which print leaves out: its words do not speak of it either."""
        return replace(self, band=None)

    def describe(self) -> str:
        """Say in plain words what the diagram shows (alternative text)."""
        score, hit = words.score_and_hit(self.reduction)
        head = f"Reliability diagram of {self._scored}"
        if self.n == 1:
            outcome = "a hit" if self.overall_observed > 0 else "no hit"
            return f"{head} with a score of {decimal(self.overall_score)}, {outcome}. {SINGLE_ROW}"
        mean, observed = words.two_shares(self.overall_score, self.overall_observed)
        every = self.bin.size == self.sums.count.size
        of_them = "all of them" if every else f"{self.bin.size:,} of them"
        parts = [
            f"{head} in {self.bins_words}, {of_them} with rows.",
            f"The {score} is {mean}, the {hit} {observed}; "
            f"the expected calibration error is {points(self.ece, words.points_decimals(self.ece))} points.",
            *self._furthest_off(),
        ]
        if self.band is not None:
            low, high = self.band
            outside = int(np.count_nonzero((self.observed < low) | (self.observed > high)))
            parts.append(
                f"{counted(outside, 'bin lies', 'bins lie')} outside the {level_text(self.level)} range "
                "that a calibrated model would show."
            )
        return " ".join(parts)

    def shared_axes(self, *beside: Reliability) -> dict[str, Any]:
        """Return the options `end`, `floor` and `tallest` with which `plot` draws diagrams that are shown beside each other."""
        each = ((f.end(), f.floor(), float(f.share.max())) for f in (self, *beside))
        ends, floors, shares = zip(*each, strict=True)
        return {"end": max(ends), "floor": min(floors), "tallest": max(shares)}

    def gap_lines(self, *beside: Reliability) -> str:
        """Which gaps of these diagrams are drawn as which lines: "Gaps: solid too high, dotted too low. "; those up to 2 % of the axes lie under their marks."""
        every = (self, *beside)
        gap = np.concatenate([figure.gap for figure in every]) / max(f.end() for f in every)
        kinds = {"solid too high": gap > 0.02, "dotted too low": gap < -0.02}
        said = ", ".join(kind for kind, are in kinds.items() if are.any())
        return said and f"Gaps: {said}. "

    @property
    def worst(self) -> int | None:
        """Position, among the non-empty bins, of the bin with the largest gap to expect; None if none is off beyond noise.

        As a bin with few rows can have any gap, only bins count whose interval, at 95 % for all bins together, excludes
        the mean score, and that is not less off than all rows together. The findings name the same bin.
        """
        return next(iter(binning.furthest_off(self.sums)), None) if self.named else None

    def _furthest_off(self) -> Iterator[str]:
        off = self.worst
        if off is not None:
            where = words.between(float(self.low[off]), float(self.high[off]))
            gap, seen = float(self.expected_gap[off]), abs(float(self.gap[off]))
            rows = self.sums.row_words(int(self.bin[off]))
            yield (
                f"Of the bins outside their interval (95 % for all bins together), that {where} is furthest off: on new rows, its "
                f"scores are {words.expected_gap(gap)} ({points(seen, words.gap_decimals(gap))} on these {rows})."
            )
        elif self.named:
            yield "No bin lies outside its interval (95 % for all bins together)."


# ---- Curves without bins


CurveKind = Literal["kernel", "isotonic"]

#: Number of drawn points of a kernel curve, which is smooth between them.
_POINTS = 400


class Curve(NamedTuple):
    """Estimated probability of a hit against the score, and the number of rows behind each estimate, shape (P,) each.

    For the kernel curve these are the rows within its half-width; for the isotonic curve, those of the same constant piece.
    """

    score: FloatArray
    probability: FloatArray
    rows: FloatArray


def make_curves(sample: Sample, kinds: Sequence[CurveKind]) -> dict[CurveKind, Curve]:
    """Estimate the requested curves.

    Raises
    ------
    OptionError
        If a curve is unknown.
    """
    curves: dict[CurveKind, Curve] = {}
    for kind in kinds:
        errors.check_choice("curves", kind, get_args(CurveKind))
        view = sample.view(step_views.steps)
        if kind == "kernel":
            x, y = kernel_curve(view)
            some = np.unique(np.linspace(0, x.size - 1, min(x.size, _POINTS)).astype(np.intp))
            width = _half_width(view)
            curves[kind] = Curve(
                x[some], y[some], _rows_within(view, x[some] - width, x[some] + width)
            )
        else:
            first, last, level = isotonic_curve(view)
            rows = np.repeat(_rows_within(view, first, last), 2)
            curves[kind] = Curve(np.stack([first, last], axis=1).ravel(), np.repeat(level, 2), rows)
    return curves


def rule_of_thumb(sd: float, n: float) -> float:
    """Half-width of the kernel, ``1.06 sd n^(-1/5)`` (Zhang 2020, appendix C)."""
    return 1.06 * sd / math.pow(n, 0.2)


def _half_width(view: steps.Steps) -> float:
    n = float(view.n)
    mean = float(view.score_sum.sum()) / n
    return rule_of_thumb(math.sqrt(float(view.count @ (view.score - mean) ** 2) / n), n)


def _rows_within(view: steps.Steps, low: FloatArray, high: FloatArray) -> FloatArray:
    """Number of rows with scores from `low` to `high`, shape (P,)."""
    upto = np.append(0.0, np.cumsum(view.count))
    return np.asarray(
        upto[np.searchsorted(view.score, high, "right")]
        - upto[np.searchsorted(view.score, low, "left")]
    )


def kernel_curve(view: steps.Steps) -> tuple[FloatArray, FloatArray]:
    """Kernel estimate of the probability of a hit given the score: nodes and values, shape (N,) each.

    This is the estimate that the KDE-ECE compares with the diagonal: a triweight kernel with reflection at 0 and 1. It
    is given between the smallest and the largest score, where there are rows.

    References
    ----------
    Zhang et al. 2020, section 4.1 and appendices B and C.
    """
    n, width = float(view.n), _half_width(view)
    if width < step_views.NARROWEST:
        return view.score[:1], np.array([float(view.hits.sum()) / n])
    size = step_views.grid_size(width, nodes=32)
    response = step_views.triweight_response(width, size)
    rows, hits = (
        np.maximum(step_views.smooth(step_views.spread_parts(view, mass, size), response), 0)
        for mass in (lambda part: part.count, lambda part: part.hits)
    )
    nodes = np.linspace(0, 1, size)
    # The kernel curve has no values where the density of the scores (per unit of score, as a share of the rows) is below this.
    inside = (rows > 1e-7 * n) & (nodes >= view.score[0]) & (nodes <= view.score[-1])
    return nodes[inside], np.minimum(hits[inside] / rows[inside], 1)


def isotonic_curve(view: steps.Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Isotonic (PAV) probability of a hit: first score, last score and value of each constant piece, shape (L,) each.

    References
    ----------
    Dimitriadis, Gneiting & Jordan 2021 (the CORP reliability diagram).
    """
    fitted = isotonic_regression(view.hits / view.count, weights=view.count).x
    ends = np.flatnonzero(np.append(fitted[1:] != fitted[:-1], True))
    return view.score[np.append(0, ends[:-1] + 1)], view.score[ends], np.asarray(fitted[ends])


def fractiles(view: steps.Steps) -> FloatArray:
    """Share of the rows with at most the score of each step, shape (G,)."""
    return np.asarray(np.cumsum(view.count) / view.n)


def smoothed_gap(view: steps.Steps, upto: FloatArray) -> FloatArray:
    """Score minus probability of a hit per step, smoothed along the fractiles, shape (..., G).

    The derivative of the cumulative gap, smoothed over neighbouring fractiles with a triweight kernel and reflection at
    both ends. Smoothing the gap instead of the hits avoids bias for a calibrated model, however steeply its scores
    rise. Tied rows form one step and share a value.

    Parameters
    ----------
    view : Steps
        If it holds resamples, all have the same number of rows per step.
    upto : ndarray, shape (G,)
        The fractile at the end of each step.

    References
    ----------
    Gupta et al. 2021, section 4.1, who take the derivative of a spline instead of a kernel.
    """
    width = rule_of_thumb(math.sqrt(1 / 12), float(np.max(view.n)))
    # Grid cells along the fractiles per half-width of the kernel.
    cells = math.ceil(32 / width)
    bounds = np.append(0.0, upto)
    edges = np.linspace(0, 1, cells + 1)
    gap = view.cumulative_gap
    gap = np.concatenate([np.zeros((*gap.shape[:-1], 1)), gap], axis=-1)
    density = np.diff(curve_fits.between(bounds, gap, edges), axis=-1) * cells
    density = convolve1d(density, _triweight(width * cells), axis=-1, mode="reflect")
    integral = np.zeros((*gap.shape[:-1], cells + 1))
    np.cumsum(density, axis=-1, out=integral[..., 1:])
    integral /= cells
    return np.asarray(
        np.diff(curve_fits.between(edges, integral, bounds), axis=-1) / np.diff(bounds)
    )


def _triweight(width: float) -> FloatArray:
    """Weights of the triweight kernel with a half-width in cells."""
    reach = math.ceil(width)
    kernel = np.maximum(1 - (np.arange(-reach, reach + 1) / width) ** 2, 0) ** 3
    return np.asarray(kernel / kernel.sum())


def isotonic_at(view: steps.Steps, score: FloatArray) -> FloatArray:
    """Evaluate the isotonic curve of one sample at scores (P,), shape (P,): linear between steps, constant beyond them."""
    used = view.count > 0
    count, hits = view.count[used], view.hits[used]
    return np.interp(score, view.score[used], isotonic_regression(hits / count, weights=count).x)


def isotonic_band(
    drawn: steps.Steps, score: FloatArray, level: float, view: steps.Steps | None = None
) -> tuple[FloatArray, FloatArray]:
    """Pointwise ends of the curves of all resamples of a view at scores (P,), shape (P,) each; see `widened`."""
    curves = np.empty((drawn.count.shape[0], score.size))
    # Fractional positions of the scores among the steps, valid if all steps have rows.
    place = np.interp(score, drawn.score, np.arange(drawn.size))
    below = place.astype(np.intp)
    above = np.minimum(below + 1, drawn.size - 1)
    for fits in curve_fits.isotonic_fits(drawn.count, drawn.hits):
        checkpoint("fitting isotonic curves again")
        fitted = np.asarray(fits.per_step(fits.level))
        if fits.used.all():
            along = fitted.reshape(fits.used.shape)
            low = along[:, below]
            curves[fits.samples] = low + (along[:, above] - low) * (place - below)
            continue
        ends = np.cumsum(np.count_nonzero(fits.used, axis=1))[:-1]
        for curve, used, own in zip(
            curves[fits.samples], fits.used, np.split(fitted, ends), strict=True
        ):
            curve[:] = np.interp(score, drawn.score[used], own)
    return pointwise(curves, level, view, bounds=(0, 1))

"""The reliability diagram: observed frequency against score, bin by bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import Theme, figure
from calviz.core.errors import OptionError, check_choice, check_level, needs
from calviz.core.events import BinaryEvents, BinNumber, Reduction, Scheme
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
    points,
    points_decimals,
    range_ends,
    score_and_hit,
    two_shares,
)
from calviz.figures.curve_estimates import Curve, CurveKind, make_curves
from calviz.figures.figure import Data, ScoreFigure, end_columns, metric_interval, pointwise
from calviz.figures.marks import Drawing, Page, Role, drawn
from calviz.figures.reliability_traces import Diagram
from calviz.sample.binning import BinSums, bin_between, bins_off, expected_share
from calviz.sample.error_bars import Interval, Redrawing, resampled
from calviz.sample.sample import Sample, chosen_bins

if TYPE_CHECKING:
    import pandas as pd


#: Style of the diagram: points with their gaps on the band, or the bars of Guo et al.
Marks = Literal["points", "bars"]


@dataclass(frozen=True, eq=False)
class ReliabilityOverlay:
    """Points of the non-empty bins of other rows, or of some of the rows, over a reliability diagram, in ascending order.

    Attributes
    ----------
    name : str
        Name in the legend.
    role : {"selected", "pinned", "before"}
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
    def of_rows(cls, sample: Sample, sums: BinSums, rows: IntArray, name: str) -> Self:
        """Bin some rows of a sample, given by their indices, in the bins of its diagram."""
        events, weights = sample.scored, sample.weights
        selected_events = BinaryEvents(events.score[rows], events.hit[rows])
        row_weights = None if weights is None else weights[rows]
        part = bin_between(selected_events, sums.edges, sums.params, weights=row_weights)
        filled = np.flatnonzero(part.count)
        return cls(
            name,
            "selected",
            part.confidence[filled],
            part.accuracy[filled],
            np.asarray(part.count[filled]),
        )


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
        bins: BinNumber | None = None,
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
        limits = None
        if band:
            redraws = resampled(sums, "under_calibration", **sample.redrawing)
            limits = pointwise(redraws.accuracy[:, filled], level)
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
            interval=clopper_pearson(hits[filled], rows[filled], level=level),
            band=limits,
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
        sums = self.sums
        return metric_interval("ece", sums, lambda s: s.mean_gap, self.level, self.redrawing)

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
        return {
            "bin": self.bin,
            "low": self.low,
            "high": self.high,
            "rows": self.count,
            "share": self.share,
            "mean_score": self.mean_score,
            "observed": self.observed,
            "gap": self.gap,
            **end_columns("ci", self.interval, self.bin),
            **end_columns("band", self.band, self.bin),
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
        return drawn(Diagram(self, self.sheet(**page), marks, beside).picture(selected))

    def plot_small(self, *, theme: Theme = "light", height: int = 330) -> Drawing:
        """Draw only the square, with a height in pixels, to be shown beside others on the same scale."""
        return drawn(Diagram(self, self.sheet(theme=theme)).small(height))

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

"""The reliability diagram: observed frequency against score, bin by bin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.figure import FIGURES, FigureSpec, Theme
from calviz.core.metric import METRICS
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import Interval
from calviz.core.words import counted, decimal, decimals_for, ends, score_and_hit, shorten
from calviz.figures._reliability_curves import Curve, CurveKind, make_curves
from calviz.numerics.binning import BinSums, Scheme
from calviz.numerics.error_bars import interval, stream
from calviz.numerics.proportions import clopper_pearson
from calviz.numerics.sample import Sample, bin_sums

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

#: Resamples behind the consistency band and the interval of the ECE.
RESAMPLES = 1_000


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram, computed; `plot` draws it.

    Arrays have one entry per bin that has rows, in ascending order; empty bins are not drawn.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split that is drawn, or None for all rows.
    reduction : Reduction
        What score and hit are.
    sums : BinSums
        The sums that everything drawn follows from, the same that the binned metrics follow from.
    level : float
        Level of the exact intervals and of the band.
    bin : ndarray of int, shape (M,)
        0-based index of the bin among all bins, empty ones included.
    low, high : ndarray of float64, shape (M,)
        The bin's edges.
    count : ndarray of int, shape (M,)
        Rows in the bin.
    mean_score, observed : ndarray of float64, shape (M,)
        Mean score, and share of hits.
    interval : (ndarray, ndarray), shape (M,) each
        Exact (Clopper-Pearson) interval of the share of hits.
    band : (ndarray, ndarray) or None, shape (M,) each
        Where the share of hits falls if the scores are the true probabilities (consistency band).
    seed : int
        Seed of the redrawing.
    curves : mapping of str to Curve
        Bin-free estimates of the same frequency, where they were asked for.

    References
    ----------
    Guo et al. 2017, figure 1 (diagram, gaps, histogram); Broecker & Smith 2007 (consistency
    under calibration); Clopper & Pearson 1934 (exact interval); Zhang et al. 2020, section 4.1
    (kernel curve); Dimitriadis, Gneiting & Jordan 2021 (isotonic curve).
    """

    name: str
    split: str | None
    reduction: Reduction
    sums: BinSums
    level: float
    bin: IntArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    mean_score: FloatArray
    observed: FloatArray
    interval: tuple[FloatArray, FloatArray]
    band: tuple[FloatArray, FloatArray] | None
    seed: int
    curves: Mapping[CurveKind, Curve]
    _score: FloatArray
    _selected: IntArray | None

    @classmethod
    def compute(
        cls,
        data: Dataset,
        *,
        reduction: Reduction | str | None = None,
        bins: int = 15,
        scheme: Scheme = "equal-width",
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
        curves: tuple[CurveKind, ...] = (),
    ) -> Self:
        """Bin the rows and compute intervals and band.

        Parameters
        ----------
        data : Predictions or ConfidencePredictions
        reduction : Reduction or str, optional
            Which (score, hit) pair is drawn; the positive class of two where left out, else the top label.
        bins : int
            Number of bins (ignored by ``sturges``).
        scheme : {"equal-width", "equal-mass", "sturges"}
            How the bins are placed.
        level : float
            Level of the exact interval of each bin and of the band, between 0 and 1.
        band : bool
            Whether to compute the consistency band.
        seed : int
            Seed of the redrawing behind the band and the interval of the ECE.
        split : str, optional
            Only the rows of this split.
        curves : tuple of {"kernel", "isotonic"}
            Bin-free curves to add: the kernel estimate behind KDE-ECE, and isotonic regression (CORP).

        Raises
        ------
        OptionError, InputError, NotAvailable
            As `calviz.evaluate` does.
        """
        selected = None
        if split is not None:
            whole, data = data, data.split(split)
            assert whole.splits is not None
            selected = np.flatnonzero(whole.splits.mask(split))
        return cls.of_sample(
            Sample(data, reduction),
            bins=bins,
            scheme=scheme,
            level=level,
            band=band,
            seed=seed,
            split=split,
            selected=selected,
            curves=curves,
        )

    @classmethod
    def of_sample(
        cls,
        sample: Sample,
        *,
        bins: int = 15,
        scheme: Scheme = "equal-width",
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
        selected: IntArray | None = None,
        curves: tuple[CurveKind, ...] = (),
    ) -> Self:
        """The same, of a sample whose views are shared with the metrics.

        `split` and `selected` say where the sample comes from: the name of the split, and the
        indices of its rows in the whole.
        """
        if not 0 < level < 1:
            raise OptionError(f"'level' must lie between 0 and 1, got {level!r}.")
        sums = sample.view(bin_sums, bins=bins, scheme=scheme)
        filled = np.flatnonzero(sums.count)
        edges = sums.edges.astype(np.float64)
        count = sums.count[filled].astype(np.int64)
        return cls(
            name=sample.data.name,
            split=split,
            reduction=sample.reduction,
            sums=sums,
            level=level,
            bin=filled,
            low=edges[:-1][filled],
            high=edges[1:][filled],
            count=count,
            mean_score=sums.confidence[filled],
            observed=sums.accuracy[filled],
            interval=clopper_pearson(sums.hit_sum[filled], count, level=level),
            band=_band(sums, filled, level, seed) if band else None,
            seed=seed,
            curves=make_curves(sample, curves),
            _score=sample.events.score,
            _selected=selected,
        )

    @property
    def n(self) -> int:
        """Rows in all."""
        return int(self.count.sum())

    @property
    def gap(self) -> FloatArray:
        """Mean score minus share of hits; above 0 the scores are too high."""
        return self.sums.gap[self.bin]

    @property
    def share(self) -> FloatArray:
        """Share of the rows in each bin."""
        return self.sums.weight[self.bin]

    @property
    def overall_score(self) -> float:
        """Mean score of all rows (the mean confidence, for the top label)."""
        return float(self.sums.score_sum.sum() / self.n)

    @property
    def overall_observed(self) -> float:
        """Share of hits of all rows (the accuracy, for the top label)."""
        return float(self.sums.hit_sum.sum() / self.n)

    @property
    def ece(self) -> float:
        """Expected calibration error over these bins, as the metric of that name computes it."""
        return float(_ece(self.sums))

    @cached_property
    def ece_interval(self) -> Interval | None:
        """Bootstrap interval of the ECE, at `level`; None where resampling changes nothing."""
        if self.n < 2:
            return None
        # The same streams as an evaluation's, so that both print the same interval.
        drawn = self.sums.bootstrap(stream(self.seed, "bootstrap"), RESAMPLES)
        calibrated = self.sums.under_calibration(stream(self.seed, "under_calibration"), RESAMPLES)
        return interval(
            _ece(drawn),
            self.level,
            value=self.ece,
            method=METRICS["ece"].interval,
            calibrated=_ece(calibrated),
            bounds=METRICS["ece"].bounds,
        )

    @property
    def bins_words(self) -> str:
        """How the rows are binned, in words."""
        kind = "equal-mass" if self.sums.params["scheme"] == "equal-mass" else "equal-width"
        return counted(self.sums.edges.size - 1, f"{kind} bin")

    def rows(self, bin: int) -> IntArray:
        """Indices, into the data that were given, of the rows in a bin.

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

    @property
    def _reduction_words(self) -> str:
        short = replace(self.reduction, class_name=shorten(self.reduction.class_name, 24))
        return short.label

    def frame(self) -> pd.DataFrame:
        """Exactly what is drawn: one row per bin that has rows."""
        import pandas as pd

        nothing = np.full(self.bin.shape, np.nan)
        band_low, band_high = self.band or (nothing, nothing)
        return pd.DataFrame(
            {
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
        )

    def curves_frame(self) -> pd.DataFrame:
        """The points of the curves, one row each; empty without curves."""
        import pandas as pd

        names = [kind for kind, curve in self.curves.items() for _ in curve.score]
        columns = [np.concatenate([[], *part]) for part in zip(*self.curves.values(), strict=True)]
        score, probability = columns or (np.zeros(0), np.zeros(0))
        return pd.DataFrame({"curve": names, "score": score, "probability": probability})

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        selected: int | None = None,
        width: int | None = None,
    ) -> go.Figure:
        """Draw it.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put name, split, rows, reduction, bins and ECE above the diagram, or a text
            to put there instead.
        selected : int, optional
            0-based index of a bin to highlight.
        width : int, optional
            Pixels that the page has for it, where that is known: the height is then chosen so that
            the square fills them. The drawing adapts to any width without it, with more space around it.

        Returns
        -------
        plotly.graph_objects.Figure
            Bars and points carry the 0-based index of their bin as ``customdata``.
        """
        from calviz.figures import _reliability_drawing

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        return _reliability_drawing.draw(
            self, theme=theme, caption=text, selected=selected, width=width
        )

    def plot_small(self, *, theme: Theme = "light", height: int = 330) -> go.Figure:
        """Draw the square alone, so many pixels high, to stand beside others on the same scale.

        As figure 4 of Guo et al. 2017; circles have areas in proportion to the rows.
        """
        from calviz.figures import _small_panels

        return _small_panels.reliability(self, theme=theme, height=height)

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; and the ECE with its interval: one line each."""
        what = [counted(self.n, "row"), self._reduction_words, self.bins_words]
        if self.split is not None:
            what.insert(0, f"split {shorten(self.split)}")
        decimals = decimals_for(self.ece, figures=3, least=3)
        error = f"ECE {decimal(self.ece, decimals)}"
        if self.ece_interval is not None:
            low, high = (decimal(v, decimals) for v in self.ece_interval)
            error += f" ({100 * self.level:g} % CI {low} to {high})"
        return shorten(self.name, 60), " · ".join(what), error

    def describe(self) -> str:
        """Say in plain words what the diagram shows, for those who do not see it."""
        score, hit = score_and_hit(self.reduction)
        where = f", split {shorten(self.split)}" if self.split is not None else ""
        parts = [
            f"Reliability diagram of {shorten(self.name, 60)}{where}: {self._reduction_words}, "
            f"{counted(self.n, 'row')} in {self.bins_words}, {self.bin.size:,} of them with rows.",
            f"The {score} is {decimal(self.overall_score)}, the {hit} {decimal(self.overall_observed)}; "
            f"the expected calibration error is {decimal(self.ece, decimals_for(self.ece, figures=3))}.",
            self._largest_gap(),
        ]
        if self.band is not None:
            low, high = self.band
            outside = int(np.count_nonzero((self.observed < low) | (self.observed > high)))
            parts.append(
                f"{counted(outside, 'bin lies', 'bins lie')} outside the {100 * self.level:g} % band "
                "of a calibrated model."
            )
        return " ".join(parts)

    def _largest_gap(self) -> str:
        gaps = np.abs(self.gap)
        if not gaps.any():
            return "No bin has a gap."
        low, high = self.interval
        # A bin with few rows can have any gap: those count whose interval leaves out the mean score.
        clear = (self.mean_score < low) | (self.mean_score > high)
        worst = int(np.argmax(np.where(clear, gaps, 0) if clear.any() else gaps))
        gap = float(self.gap[worst])
        start, stop = ends(float(self.low[worst]), float(self.high[worst]))
        head = "The largest gap" + (
            " beyond its interval" if clear.any() else ", within its interval,"
        )
        return (
            f"{head} is between {start} and {stop}, where the scores are "
            f"{decimal(abs(gap))} too {'high' if gap > 0 else 'low'} "
            f"({counted(int(self.count[worst]), 'row')})."
        )


def _ece(sums: BinSums) -> FloatArray:
    return np.asarray((sums.weight * np.abs(sums.gap)).sum(axis=-1))


def _band(
    sums: BinSums, filled: IntArray, level: float, seed: int
) -> tuple[FloatArray, FloatArray]:
    drawn = sums.under_calibration(np.random.default_rng([seed, False]), RESAMPLES)
    low, high = np.quantile(drawn.accuracy[:, filled], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


FIGURES.register(
    FigureSpec(
        key="reliability",
        label="Reliability diagram",
        summary="Observed frequency against mean score, bin by bin: a calibrated model follows the "
        "diagonal. Exact intervals per bin, the band of a calibrated model, and the scores' histogram.",
        reference="Guo et al. 2017, figure 1; Broecker & Smith 2007; Clopper & Pearson 1934",
        compute=Reliability.compute,
    )
)

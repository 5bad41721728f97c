"""Cumulative score and hits, calibration without bins: the four panels of Gupta et al. 2021, figure 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.core.options import check_choice, check_level
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import Figure, ends_or_nan, named, score_lines
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.figures.kernels.reliability_curves import fractiles, isotonic_curve, smoothed_gap
from calviz.figures.kernels.thin_curve import extremes
from calviz.results.metric_result import Interval
from calviz.results.verdict import Verdict
from calviz.sample import error_bars
from calviz.sample.error_bars import Redrawing
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.figure import Theme, figure
from calviz.specs.metric import METRICS
from calviz.text.words import (
    SINGLE_ROW,
    counted,
    decimal,
    level_text,
    points,
    points_decimals,
    points_text,
    with_short_class,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

CumulativePanel = Literal["a", "b", "c", "d", "gap"]
Estimate = Literal["smooth", "isotonic"]

#: The panels of the paper's figure.
FOUR: tuple[CumulativePanel, ...] = ("a", "b", "c", "d")


@figure(
    key="cumulative",
    label="Cumulative plot and KS error",
    summary="Cumulative score and cumulative hits along the sorted rows: the largest distance between "
    "the two is the KS error. Beside it, score and probability show where the two differ.",
    reference="Gupta et al. 2021, figure 1",
)
@dataclass(frozen=True, eq=False)
class Cumulative(Figure):
    """The cumulative plot and the KS error, computed; `plot` draws it.

    Rows are sorted by score; tied rows form one step. Arrays have one entry per kept step: all steps, or those with the
    smallest and the largest gap of each of 300 buckets of neighbouring steps, so that the maximum stays exact.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split shown, or None for all rows.
    reduction : Reduction
        Defines score and hit.
    steps : Steps
        All steps: the view from which the KS error is computed.
    level : float
        Level of the bands and the interval.
    estimate : {"smooth", "isotonic"}
        How the probability of a hit is estimated.
    redrawing : Redrawing
        Seed and number of the resamples.
    fractile : ndarray, shape (G,)
        Share of the rows with at most this score.
    cumulative_score, cumulative_hits : ndarray, shape (G,)
        Sum of scores, and number of hits, of these rows, divided by the number of all rows.
    score, probability : ndarray, shape (G,)
        Score of the step, and estimated probability of a hit.
    bound : float or None
        With probability `level`, the cumulative hits of a calibrated model stay within this distance of its cumulative
        score everywhere (simultaneous).
    band : (ndarray, ndarray) or None, shape (G,) each
        Pointwise range of `probability` for a calibrated model.
    maximum : int
        Index of the step with the largest absolute gap, which is the KS error.

    References
    ----------
    Gupta et al. 2021, figure 1, eq. 11-12 and section 4.1.
    """

    name: str
    split: str | None
    reduction: Reduction
    steps: Steps
    level: float
    estimate: Estimate
    redrawing: Redrawing
    fractile: FloatArray
    cumulative_score: FloatArray
    cumulative_hits: FloatArray
    score: FloatArray
    probability: FloatArray
    bound: float | None
    band: tuple[FloatArray, FloatArray] | None
    maximum: int

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        estimate: Estimate = "smooth",
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Compute the cumulative sums, and the bands from redrawn hits.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        estimate : {"smooth", "isotonic"}
            How the probability of a hit is estimated: a kernel along the fractiles, or isotonic regression.
        level : float
            Level of the bands and of the interval, between 0 and 1.
        band : bool
            Whether to compute the range of a calibrated model.
        seed, resamples : int
            Seed and number of the resamples with redrawn hits.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed, resamples=resamples)
        check_choice("estimate", estimate, get_args(Estimate))
        view = sample.view(steps)
        upto, gap = fractiles(view), view.cumulative_gap
        kept = extremes(gap)
        cumulative_score = np.cumsum(view.score_sum) / float(view.n)
        fitted: FloatArray = np.clip(view.score - smoothed_gap(view, upto), 0, 1)
        if estimate == "isotonic":
            _, last, level_of = isotonic_curve(view)
            fitted = level_of[np.searchsorted(last, view.score)]
        bound, limits = None, None
        if band:
            redraws = error_bars.resampled(view, "under_calibration", **sample.redrawing)
            bound = float(np.quantile(_largest(redraws), level))
            if estimate == "smooth":
                limits = _limits(view, redraws, level, upto[kept], view.score[kept])
        return cls(
            name=sample.data.name,
            split=sample.split,
            reduction=sample.reduction,
            steps=view,
            level=level,
            estimate=estimate,
            redrawing=sample.redrawing,
            fractile=upto[kept],
            cumulative_score=cumulative_score[kept],
            cumulative_hits=(cumulative_score - gap)[kept],
            score=view.score[kept],
            probability=fitted[kept],
            bound=bound,
            band=limits,
            maximum=int(np.argmax(np.abs(gap[kept]))),
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.steps.n)

    @property
    def gap(self) -> FloatArray:
        """Cumulative score minus cumulative hits, shape (G,)."""
        return self.cumulative_score - self.cumulative_hits

    @property
    def ks(self) -> float:
        """The KS error."""
        return abs(self.ks_signed)

    @property
    def ks_signed(self) -> float:
        """The largest gap with its sign; positive if the scores run ahead of the hits."""
        return float(self.gap[self.maximum])

    def upto(self, score: float) -> tuple[float, float]:
        """Return the share of the rows with at most this score, and the cumulative score there."""
        view = self.steps
        at = int(np.searchsorted(view.score, score, side="right"))
        n = float(view.n)
        return float(view.count[:at].sum()) / n, float(view.score_sum[:at].sum()) / n

    @property
    def gap_range(self) -> tuple[float, float]:
        """The smallest and the largest gap, including the gap 0 at the start."""
        return min(float(self.gap.min()), 0.0), max(float(self.gap.max()), 0.0)

    @property
    def kuiper(self) -> float:
        """The Kuiper error: the width of `gap_range`."""
        low, high = self.gap_range
        return high - low

    @property
    def at_fractile(self) -> float:
        """Fractile at which the absolute gap is largest."""
        return float(self.fractile[self.maximum])

    @property
    def at_score(self) -> float:
        """Score at which the absolute gap is largest."""
        return float(self.score[self.maximum])

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the KS error exceeds `bound`; None if there is no bound."""
        return None if self.bound is None else self.ks > self.bound

    @cached_property
    def interval(self) -> Interval | None:
        """Bootstrap interval of the KS error, the same as in an evaluation."""
        if self.n < 2:
            return None
        redraws = error_bars.resampled(self.steps, "bootstrap", **self.redrawing)
        calibrated = error_bars.resampled(self.steps, "under_calibration", **self.redrawing)
        return error_bars.interval(
            _largest(redraws),
            self.level,
            view=self.steps,
            value=self.ks,
            method=METRICS["ks"].interval,
            calibrated=_largest(calibrated),
            bounds=METRICS["ks"].bounds,
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per kept step."""
        low, high = ends_or_nan(self.band, self.score)
        return {
            "fractile": self.fractile,
            "score": self.score,
            "cumulative_score": self.cumulative_score,
            "cumulative_hits": self.cumulative_hits,
            "gap": self.gap,
            "probability": self.probability,
            "band_low": low,
            "band_high": high,
            "maximum": np.arange(self.score.size) == self.maximum,
        }

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        panels: Sequence[CumulativePanel] = FOUR,
        selected: tuple[float, float] | None = None,
        beside: Sequence[Overlay[Cumulative]] = (),
    ) -> go.Figure:
        """Draw the figure.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`; on a narrow page the panels are stacked.
        panels : sequence of {"a", "b", "c", "d", "gap"}
            Which panels to draw: cumulative score and hits against fractile (a) and against cumulative score
            (b), score and probability against fractile (c) and against score (d), and the gap on its own scale.
        selected : (float, float), optional
            Range of scores to frame: above the first, up to and including the second.
        beside : sequence of Overlay
            Plots of other rows, such as a subset of these: their probability is drawn in panel d, their gap in panel "gap".
        """
        unknown = [p for p in panels if p not in get_args(CumulativePanel)]
        if unknown or not panels:
            raise OptionError(
                f"'panels' must be among {', '.join(get_args(CumulativePanel))}; got {panels!r}."
            )
        return self._plotly_figure(
            theme, caption, width, panels=tuple(panels), selected=selected, beside=tuple(beside)
        )

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the KS error with its interval: one line each."""
        return (
            *score_lines(self.name, self.split, self.n, self.reduction),
            SINGLE_ROW if self.n == 1 else f"KS {self._size}",
        )

    @property
    def _size(self) -> str:
        return points_text(self.ks, self.interval, self.level)

    def describe(self) -> str:
        """Say in plain words what the panels show."""
        reduction, of = with_short_class(self.reduction).label, named(self.name, self.split)
        head = f"Cumulative score and hits of {of}: {reduction}, {counted(self.n, 'row')}."
        return f"{head} {self.reading()}"

    def reading(self, verdict: Verdict | None = None) -> str:
        """Return the description without the name of the data: how far scores and hits differ, where, and whether it is noise.

        Parameters
        ----------
        verdict : Verdict, optional
            Verdict on the same rows, which adjusts for several tests: it decides whether a gap beyond the bound is called
            "beyond noise". Without a verdict it is only called "more".
        """
        if self.n == 1:
            return SINGLE_ROW
        place = f"fractile {decimal(self.at_fractile, 2)} (score {decimal(self.at_score)})"
        if self.ks == 0:
            text = "Cumulative score and hits agree everywhere."
        else:
            ahead = "ahead of" if self.ks_signed > 0 else "behind"
            text = f"The scores run {ahead} the hits by up to {self._size}, at {place}"
            text += f"; {self._after()}."
        if self.bound is not None:
            # As many decimals as the error itself, as on metric cards.
            stays = f"{points(self.bound, points_decimals(self.ks))} points"
            more = "more"
            if verdict is not None:
                more = "beyond noise" if verdict.beyond_noise else "more, looked at alone"
            text += (
                f" A calibrated model stays within {stays} in {level_text(self.level)} of samples of "
                f"this size: this is {more if self.beyond_noise else 'within noise'}."
            )
        return text

    def _after(self) -> str:
        """Say what remains of the gap over all rows."""
        rest = float(self.gap[-1])
        if abs(rest) > 0.9 * self.ks:
            # As many decimals as the largest gap, to which it may be equal.
            size = points_text(abs(rest), self.interval, self.level).split(" (")[0]
            return f"over all rows they are {size} too {_high(rest)}"
        change = "above it the error changes its sign, so that over all rows they are"
        return f"{change} only {points_text(abs(rest))} too {_high(rest)}"


def _high(gap: float) -> str:
    return "high" if gap > 0 else "low"


def _largest(view: Steps) -> FloatArray:
    return np.concatenate([np.abs(part.cumulative_gap).max(axis=-1) for part in view.parts()])


def _limits(
    view: Steps, redraws: Steps, level: float, upto: FloatArray, score: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Pointwise range of the smooth estimate under calibration, at the kept steps, shape (P,) each."""
    base = view.merged()
    ends = fractiles(base)
    gaps = np.concatenate([smoothed_gap(part, ends) for part in redraws.parts()])
    low, high = np.quantile(gaps, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (
        np.clip(score - np.interp(upto, ends, high), 0, 1),
        np.clip(score - np.interp(upto, ends, low), 0, 1),
    )

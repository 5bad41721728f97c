"""What a recalibrator does to the scores: the score of each row after recalibration against its score before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.errors import OptionError
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, score_lines
from calviz.figures.kernels.thin_curve import extremes
from calviz.sample.binning import BinSums
from calviz.sample.reduce import reduce
from calviz.sample.sample import Sample, bin_sums
from calviz.specs.figure import Theme
from calviz.text.words import decimal, points, shorten

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Neighbouring rows are separated by a map if their scores after it differ by more than `JITTER` plus `STEEPEST` times the difference before.
JITTER, STEEPEST = 0.005, 3.0
#: The score after counts as a function of the score before if at most this share of neighbours is separated.
LOOSE = 0.05
#: A map is called falling if it falls by at least this much.
DIP = 0.01
#: Number of groups of neighbouring scores behind the band, and number of rows drawn as points.
GROUPS, POINTS = 40, 400


@dataclass(frozen=True, eq=False)
class CalibrationMap(Figure):
    """The effect of a calibration map on these rows, computed; `plot` draws it.

    A map that acts on all classes is in general not a function of one score: rows with the same confidence may
    get different scores. Then the median and the central 90 % range of groups of neighbouring rows are drawn.

    Attributes
    ----------
    name : str
        Name of the map.
    reduction : Reduction
        Defines the score.
    is_function : bool
        Whether the score after is, up to rounding, a function of the score before.
    before, after : ndarray, shape (M,)
        Points of the curve, ascending in `before`; if the map is not a function, the mean score before and the
        median score after of groups of neighbouring rows.
    low, high : ndarray, shape (M,)
        If the map is not a function: the 5 % and 95 % quantiles of each group's scores after; otherwise equal to `after`.
    rows : (ndarray, ndarray)
        Scores before and after of some evenly spread rows, drawn as points; empty for functions.
    sums : BinSums
        The rows in bins of the score before; the share of hits of a bin is what the map should map it to.
    n : int
        Number of rows.
    median : (float, float)
        Median score before and after.
    dip : (float, float, float) or None
        The deepest fall of a map that is a function: the scores before at which it begins and ends, and its depth.
    """

    name: str
    reduction: Reduction
    is_function: bool
    before: FloatArray
    after: FloatArray
    low: FloatArray
    high: FloatArray
    rows: tuple[FloatArray, FloatArray]
    sums: BinSums
    n: int
    median: tuple[float, float]
    dip: tuple[float, float, float] | None = None

    @classmethod
    def compute(
        cls,
        before: Dataset,
        after: Dataset,
        *,
        name: str = "",
        reduction: Reduction | str | None = None,
        bins: int = 15,
    ) -> Self:
        """Compare the score of every row before and after the map.

        Parameters
        ----------
        before, after : Predictions or ConfidencePredictions
            The same rows without and with the map.
        name : str
            Name of the map.
        reduction : Reduction or str, optional
            Which score to compare; by default that of the positive class if there are two classes, else the top label.
        bins : int
            Number of bins of equal width for the observed frequencies.

        Raises
        ------
        OptionError
            If the two do not have the same number of rows.
        """
        if before.n != after.n:
            raise OptionError(
                f"before and after must be the same rows, got {before.n:,} and {after.n:,}."
            )
        sample = Sample.of(before, reduction=reduction)
        x = sample.events.score.astype(np.float64)
        y = reduce(after, sample.reduction).score.astype(np.float64)
        order = np.lexsort((y, x))
        sx: FloatArray = x[order]
        sy: FloatArray = y[order]
        is_function = _is_function(sx, sy)
        rows: tuple[FloatArray, FloatArray] = (np.zeros(0), np.zeros(0))
        if is_function:
            points = extremes(sy)
            centre, middle, low, high = sx[points], sy[points], sy[points], sy[points]
        else:
            centre, middle, low, high = _groups(sx, sy)
            some = np.linspace(0, x.size - 1, min(POINTS, x.size)).round().astype(np.intp)
            rows = (sx[some], sy[some])
        return cls(
            name,
            sample.reduction,
            is_function,
            centre,
            middle,
            low,
            high,
            rows,
            sample.view(bin_sums, bins=bins),
            before.n,
            (float(np.median(x)), float(np.median(y))),
            _deepest_fall(*_groups(sx, sy)[:2]) if is_function else None,
        )

    @property
    def observed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean score, share of hits and share of the rows of each non-empty bin of the score before, shape (M,) each."""
        filled: BoolArray = self.sums.count > 0
        return (
            self.sums.confidence[filled],
            self.sums.accuracy[filled],
            self.sums.weight[filled],
        )

    def columns(self) -> Mapping[str, Any]:
        """Return the map with its range, the single rows and the observed frequencies."""
        score, hits, _ = self.observed
        one, two = self.rows
        parts = {
            "map": (self.before, self.after, self.low, self.high),
            "row": (one, two, two, two),
            "observed": (score, hits, hits, hits),
        }
        kinds = [kind for kind, part in parts.items() for _ in part[0]]
        values = (np.concatenate(each) for each in zip(*parts.values(), strict=True))
        return {"kind": kinds} | dict(zip(("before", "after", "low", "high"), values, strict=True))

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        height: int = 330,
    ) -> go.Figure:
        """Draw the figure as wide as the page; `height` is in pixels, without the caption."""
        return self._plotly_figure(theme, caption, width, height=height)

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score: one line each."""
        return score_lines(self.name, None, self.n, self.reduction)

    def describe(self) -> str:
        """Say what the map does to the scores."""
        one, two = self.median
        kind = (
            ""
            if self.is_function
            else ", with a range where rows of equal score get different scores"
        )
        return (
            f"Calibration map of {shorten(self.name, NAME_LENGTH) or 'a recalibrator'}, {self.n:,} rows{kind}. "
            f"The median score goes from {decimal(one)} to {decimal(two)} "
            f"({points(two - one)} points)." + ("" if self.dip is None else f" {self.falls()}.")
        )

    def falls(self) -> str:
        """Say where the map falls; empty if it does not."""
        if self.dip is None:
            return ""
        start, end, depth = self.dip
        return (
            f"It falls by {points(depth)} points from a score of {decimal(start)} to {decimal(end)}"
        )


def _is_function(x: FloatArray, y: FloatArray) -> bool:
    """Whether nearly all neighbouring scores stay neighbours; `x` is ascending."""
    if x.size < 2:
        return True
    separated = np.abs(np.diff(y)) > JITTER + STEEPEST * np.diff(x)
    return bool(separated.mean() <= LOOSE)


def _deepest_fall(x: FloatArray, y: FloatArray) -> tuple[float, float, float] | None:
    """Return start, end and depth of the deepest fall of `y` below its running maximum; None below `DIP`."""
    fall = np.maximum.accumulate(y) - y
    end = int(fall.argmax())
    if fall[end] < DIP:
        return None
    return float(x[y[: end + 1].argmax()]), float(x[end]), float(fall[end])


def _groups(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    parts = [
        (a, b)
        for a, b in zip(np.array_split(x, GROUPS), np.array_split(y, GROUPS), strict=True)
        if a.size
    ]
    centre = np.array([a.mean() for a, _ in parts], dtype=np.float64)
    low, median, high = (np.array([np.quantile(b, q) for _, b in parts]) for q in (0.05, 0.5, 0.95))
    return centre, median, low, high

"""What a recalibrator does to the scores, and the flexible calibration curve with its band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray
from calviz.core.entry_specs import Theme, figure
from calviz.core.errors import OptionError, check_choice, check_level
from calviz.core.events import Reduction
from calviz.core.predictions import Dataset
from calviz.core.words import (
    counted,
    decimal,
    level_text,
    plotly_text,
    points,
    points_decimals,
    shorten,
    with_short_class,
)
from calviz.figures.figure import NAME_LENGTH, Figure, facts, named, score_lines
from calviz.figures.marks import (
    Picture,
    Sheet,
    Trace,
    area,
    circles,
    diagonal,
    extremes,
    line,
    markers,
    square,
)
from calviz.figures.style import Palette, axis
from calviz.sample import logistic_curves
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, bin_sums, reduce
from calviz.sample.step_views import steps

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

    def draw(self, sheet: Sheet, *, height: int) -> Picture:
        """Draw the map over the diagonal (no change), with the observed frequencies to which it should map."""
        p = sheet.palette
        traces: list[Trace] = [diagonal(p)]
        if not self.is_function:
            traces.append(area(self.before, self.low, self.high, p.glaze(p.blue, 0.22)))
            traces.append(markers(*self.rows, p.glaze(p.blue, 0.45), size=3, hoverinfo="skip"))
        traces.append(
            line(
                self.before,
                self.after,
                p.blue,
                width=2.5,
                hovertemplate="score %{x:.3f} becomes %{y:.3f}<extra></extra>",
            )
        )
        traces.append(circles(*self.observed, p))
        return square(traces, sheet, height, "Score before", "Score after")


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


# ---- Flexible calibration curve


#: Name of each kind of curve.
NAMES: dict[logistic_curves.FlexibleKind, str] = {
    "spline": "spline of the log-odds",
    "loess": "loess (span 0.75)",
    "logistic": "logistic line",
}
#: Margins of the panel (left, right, above, below) and its height, in pixels.
_MARGINS, _TALL = (60, 20, 14, 54), 400


@figure(
    key="calibration-curve",
    label="Calibration curve",
    summary="The probability of a hit as a smooth function of the score, without bins, with its pointwise band: a calibrated model "
    "follows the diagonal.",
    reference="Austin & Steyerberg 2019; Van Calster et al. 2025",
)
@dataclass(frozen=True, eq=False)
class CalibrationCurve(Figure):
    """A flexible calibration curve, computed; `plot` draws it.

    Attributes
    ----------
    name : str
    split : str or None
    reduction : Reduction
        Defines score and hit.
    n : int
    level : float
        Level of the band.
    kind : {"spline", "loess", "logistic"}
    band : Band
        The curve from the lowest to the highest score, with its pointwise confidence band.
    inner : (float, float)
        The 1 % and 99 % quantiles of the scores.
    distance : float
        Mean absolute distance of the curve from the diagonal over the rows (ICI).
    """

    name: str
    split: str | None
    reduction: Reduction
    n: int
    level: float
    kind: logistic_curves.FlexibleKind
    band: logistic_curves.Band
    inner: tuple[float, float]
    distance: float

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        curve: logistic_curves.FlexibleKind = "spline",
        level: float = 0.95,
        seed: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Fit the curve.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        reduction : Reduction or str, optional
            The (score, hit) pair to fit.
        curve : {"spline", "loess", "logistic"}
            Kind of curve. The logistic line is empty if its likelihood has no finite maximum.
        level : float
            Level of the band, between 0 and 1.
        seed : int
            Accepted as by other figures, but unused: nothing here is random.
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        check_choice("curve", curve, get_args(logistic_curves.FlexibleKind))
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed)
        view = sample.view(steps)
        base = view.merged()
        upto = np.cumsum(base.count) / float(base.n)
        inner = [float(base.score[int(np.searchsorted(upto, q))]) for q in (0.01, 0.99)]
        off = np.abs(logistic_curves.fitted_curve(base, curve) - base.score)
        return cls(
            name=sample.data.name,
            split=sample.split,
            reduction=sample.reduction,
            n=int(view.n),
            level=level,
            kind=curve,
            band=logistic_curves.band(view, curve, level=level),
            inner=(inner[0], inner[1]),
            distance=float((base.count * off).sum() / base.n),
        )

    def columns(self) -> Mapping[str, FloatArray]:
        """One row per score of the curve."""
        b = self.band
        return {"score": b.score, "probability": b.probability, "low": b.low, "high": b.high}

    def caption(self) -> tuple[str, ...]:
        """Name; rows, score and curve; the mean distance: one line each."""
        reduction = with_short_class(self.reduction).label
        details = facts(self.split, counted(self.n, "row"), reduction, NAMES[self.kind])
        return (
            shorten(self.name, NAME_LENGTH),
            details,
            f"Mean distance from the diagonal (ICI): {self._points()}",
        )

    def _points(self) -> str:
        if not np.isfinite(self.distance) or self.n == 1:
            return "undefined"
        return f"{points(self.distance, points_decimals(self.distance))} points"

    def describe(self) -> str:
        """Say how far the curve is from the diagonal, and where it is furthest."""
        if self.n == 1:
            return (
                f"Calibration curve of {named(self.name, self.split)}: a single row has no curve, and says nothing about "
                "calibration."
            )
        text = (
            f"Calibration curve ({NAMES[self.kind]}) of {named(self.name, self.split)}, "
            f"{counted(self.n, 'row')}: {self._points()} from the diagonal on average over the rows (ICI)."
        )
        b = self.band
        inside = (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        gap = np.where(inside & np.isfinite(b.probability), np.abs(b.probability - b.score), -1.0)
        worst = int(gap.argmax())
        if gap[worst] > 0:
            text += (
                f" Furthest, among all but the outermost rows, at a score of {decimal(float(b.score[worst]))}, where "
                f"{decimal(float(b.probability[worst]))} are hits ({level_text(self.level)} band {decimal(float(b.low[worst]))} "
                f"to {decimal(float(b.high[worst]))})."
            )
        return text

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the curve over its band; thin beyond `inner`, where rows are few."""
        p = sheet.palette
        reduction = with_short_class(self.reduction)
        unit: dict[str, Any] = {
            "range": [0, 1],
            "tickmode": "linear",
            "dtick": 0.2,
            "tickformat": ".1f",
        }
        # On a narrow page the height shrinks with the width, so that the panel stays square.
        room = _TALL if sheet.width is None else max(sheet.width - _MARGINS[0] - _MARGINS[1], 100)
        return sheet.picture(
            self._traces(p),
            inner=min(_TALL, room),
            margins=_MARGINS,
            xaxis=axis(p, plotly_text(reduction.score_label), **unit, constrain="domain"),
            yaxis=axis(
                p,
                plotly_text(reduction.hit_label),
                **unit,
                scaleanchor="x",
                scaleratio=1,
                constrain="domain",
            ),
        )

    def _traces(self, p: Palette) -> list[dict[str, Any]]:
        """Return the band, the diagonal, and the curve: thin from end to end, thick inside `inner`."""
        b = self.band
        ends = np.array([0.0, 1.0])
        finite = np.isfinite(b.probability)
        traces = [
            area(
                b.score[finite],
                b.low[finite],
                b.high[finite],
                p.glaze(p.blue, 0.2),
                name=f"{level_text(self.level)} band",
                legendrank=2,
                visible=self.n > 1,
            ),
            line(
                ends,
                ends,
                p.ink,
                width=1.5,
                dash="dash",
                name="Perfect calibration",
                legendrank=3,
                hoverinfo="skip",
            ),
            line(
                b.score[finite],
                b.probability[finite],
                p.blue,
                width=1,
                showlegend=False,
                hoverinfo="skip",
            ),
        ]
        inside = finite & (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        point = int(inside.sum()) < 2
        traces.append(
            line(
                b.score[inside],
                b.probability[inside],
                p.blue,
                width=3,
                name="The row" if self.n == 1 else "Calibration curve",
                legendrank=1,
                hovertemplate="score %{x:.3f}: %{y:.3f} are hits<extra></extra>",
            )
            | ({"mode": "markers", "marker": {"size": 9, "color": p.blue}} if point else {})
        )
        return traces

"""What a recalibrator does to the scores, and the flexible calibration curve with its band."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, Unpack, get_args

import numpy as np

from calviz.core import entry_specs, errors, events, predictions, words
from calviz.core.blocks import FloatArray
from calviz.core.words import counted, decimal, points, shorten, with_short_class
from calviz.figures import marks
from calviz.figures.figure import NAME_LENGTH, Data, Figure, ScoreFigure, facts, named
from calviz.figures.marks import Drawing, Page, Picture, Sheet, Trace, area, circles, line, markers
from calviz.sample import binning, logistic_curves, step_views
from calviz.sample.sample import Sample, bin_sums, reduce

#: Neighbouring rows are separated by a map if their scores after it differ by more than `JITTER` plus `STEEPEST` times the difference before.
JITTER, STEEPEST = 0.005, 3.0
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
    reduction: events.Reduction
    is_function: bool
    before: FloatArray
    after: FloatArray
    low: FloatArray
    high: FloatArray
    rows: tuple[FloatArray, FloatArray]
    sums: binning.BinSums
    n: int
    median: tuple[float, float]
    dip: tuple[float, float, float] | None = None

    @classmethod
    def compute(
        cls,
        before: predictions.Dataset,
        after: predictions.Dataset,
        *,
        name: str = "",
        reduction: events.Reduction | str | None = None,
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
            raise errors.OptionError(
                f"before and after must be the same rows, got {before.n:,} and {after.n:,}."
            )
        sample = Sample.of(before, reduction=reduction)
        x = sample.events.score.astype(np.float64)
        y = reduce(after, sample.reduction).score.astype(np.float64)
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
        curve, some = _groups(x, y), np.zeros(0, dtype=np.intp)
        is_function = _is_function(x, y)
        dip = _deepest_fall(*curve[:2]) if is_function else None
        if is_function:
            points = marks.extremes(y)
            curve = x[points], y[points], y[points], y[points]
        else:
            some = np.linspace(0, x.size - 1, min(POINTS, x.size)).round().astype(np.intp)
        return cls(
            name,
            sample.reduction,
            is_function,
            *curve,
            (x[some], y[some]),
            sample.view(bin_sums, bins=bins),
            before.n,
            (float(np.median(x)), float(np.median(y))),
            dip,
        )

    @property
    def observed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean score, share of hits and share of the rows of each non-empty bin of the score before, shape (M,) each."""
        sums, filled = self.sums, self.sums.count > 0
        return sums.confidence[filled], sums.accuracy[filled], sums.weight[filled]

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

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score: one line each."""
        rows = facts(None, counted(self.n, "row"), with_short_class(self.reduction).label)
        return shorten(self.name, NAME_LENGTH), rows

    def describe(self) -> str:
        """Say what the map does to the scores."""
        one, two = self.median
        kind = ", with a range where rows of equal score get different scores"
        kind = "" if self.is_function else kind
        return (
            f"Calibration map: {words.shorten(self.name, NAME_LENGTH) or 'a recalibrator'}, {self.n:,} rows{kind}. "
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

    def plot(self, *, height: int = 330, **page: Unpack[Page]) -> Drawing:
        """Draw the map over the diagonal (no change), with the observed frequencies to which it should map.

        Parameters
        ----------
        height : int
            Height of the square with its axes, in pixels; it is as wide as the page.
        **page
            See `Figure.plot`.
        """
        sheet = self.sheet(**page)
        p = sheet.palette
        traces: list[Trace] = [marks.diagonal(p)]
        if not self.is_function:
            traces.append(area(self.before, self.low, self.high, p.glaze(p.blue, 0.22)))
            traces.append(markers(*self.rows, p.glaze(p.blue, 0.45), size=3))
        hover = "score %{x:.3f} becomes %{y:.3f}"
        traces.append(line(self.before, self.after, p.blue, width=2.5, hover=hover))
        traces.append(circles(*self.observed, p))
        axes = marks.ScoreAxes(marks.end_of(self.before, self.low, self.high, *self.observed[:2]))
        return marks.drawn(marks.square(traces, sheet, height, axes, "Score before", "Score after"))


def _is_function(x: FloatArray, y: FloatArray) -> bool:
    """Whether nearly all neighbouring scores stay neighbours; `x` is ascending."""
    if x.size < 2:
        return True
    separated = np.abs(np.diff(y)) > JITTER + STEEPEST * np.diff(x)
    # The score after counts as a function of the score before if at most this share of neighbours is separated.
    return bool(separated.mean() <= 0.05)


def _deepest_fall(x: FloatArray, y: FloatArray) -> tuple[float, float, float] | None:
    """Return start, end and depth of the deepest fall of `y` below its running maximum; None below `DIP`."""
    fall = np.maximum.accumulate(y) - y
    end = int(fall.argmax())
    if fall[end] < DIP:
        return None
    return float(x[y[: end + 1].argmax()]), float(x[end]), float(fall[end])


def _groups(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    one, two = ([part for part in np.array_split(v, GROUPS) if part.size] for v in (x, y))
    centre = np.array([part.mean() for part in one], dtype=np.float64)
    low, median, high = np.array([np.quantile(part, [0.05, 0.5, 0.95]) for part in two]).T
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


@entry_specs.figure(
    key="calibration-curve",
    label="Calibration curve",
    summary="The probability of a hit as a smooth function of the score, without bins, with its pointwise band: a calibrated model "
    "follows the diagonal.",
    reference="Austin & Steyerberg 2019; Van Calster et al. 2025",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationCurve(ScoreFigure):
    """A flexible calibration curve, computed; `plot` draws it.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    kind : {"spline", "loess", "logistic"}
    band : Band
        The curve from the lowest to the highest score, with its pointwise confidence band.
    inner : (float, float)
        The 1 % and 99 % quantiles of the scores.
    distance : float
        Mean absolute distance of the curve from the diagonal over the rows (ICI).
    """

    kind: logistic_curves.FlexibleKind
    band: logistic_curves.Band
    inner: tuple[float, float]
    distance: float

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        reduction: events.Reduction | str | None = None,
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
        errors.check_choice("curve", curve, get_args(logistic_curves.FlexibleKind))
        errors.check_level(level)
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed)
        view = sample.view(step_views.steps)
        base = view.merged()
        upto = np.cumsum(base.count) / float(base.n)
        low, high = base.score[np.searchsorted(upto, [0.01, 0.99])].tolist()
        off = np.abs(logistic_curves.fitted_curve(base, curve) - base.score)
        return cls(
            **cls._fields(sample, level=level),
            kind=curve,
            band=logistic_curves.band(view, curve, level=level),
            inner=(low, high),
            distance=float((base.count * off).sum() / base.n),
        )

    def columns(self) -> Mapping[str, FloatArray]:
        """One row per score of the curve."""
        b = self.band
        return {"score": b.score, "probability": b.probability, "low": b.low, "high": b.high}

    def caption(self) -> tuple[str, ...]:
        """Name; rows, score and curve; the mean distance: one line each."""
        distance = f"Mean distance from the diagonal (ICI): {self._points()}"
        return *self._head(NAMES[self.kind]), distance

    def _points(self) -> str:
        if not np.isfinite(self.distance) or self.n == 1:
            return "undefined"
        return f"{points(self.distance, words.points_decimals(self.distance))} points"

    def describe(self) -> str:
        """Name the curve and the data, and say the `reading`."""
        if self.n == 1:
            return f"Calibration curve of {named(self.name, self.split)}: {self.reading()}"
        return f"Calibration curve ({NAMES[self.kind]}) of {self._subject}: {self.reading()}"

    def reading(self) -> str:
        """Say how far the curve is from the diagonal, and where it is furthest."""
        if self.n == 1:
            return "a single row has no curve, and says nothing about calibration."
        text = f"{self._points()} from the diagonal on average over the rows (ICI)."
        b = self.band
        inside = (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        gap = np.where(inside & np.isfinite(b.probability), np.abs(b.probability - b.score), -1.0)
        worst = int(gap.argmax())
        if gap[worst] > 0:
            score, hits, low, high = (
                decimal(float(v[worst])) for v in (b.score, b.probability, b.low, b.high)
            )
            text += (
                f" Furthest, among all but the outermost rows, at a score of {score}, with a frequency of {hits} "
                f"({words.level_text(self.level)} band {low} to {high})."
            )
        return text

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the curve over its band; thin beyond `inner`, where rows are few."""
        reduction = words.with_short_class(self.reduction)
        # On a narrow page the height shrinks with the width, so that the panel stays square.
        room = _TALL if sheet.width is None else max(sheet.width - _MARGINS[0] - _MARGINS[1], 100)
        titles = (words.plotly_text(text) for text in (reduction.score_label, reduction.hit_label))
        axes = marks.ScoreAxes(marks.end_of(self.band.score, self.band.probability))
        return sheet.picture(
            self._traces(sheet),
            inner=min(_TALL, room),
            margins=_MARGINS,
            **marks.square_axes(sheet, *titles, **axes.unit()),
        )

    def _traces(self, sheet: Sheet) -> Iterator[Trace]:
        """Yield the band, the diagonal, and the curve: thin from end to end, thick inside `inner`."""
        b, p = self.band, sheet.palette
        finite = np.isfinite(b.probability)
        name, fill = f"{words.level_text(self.level)} band", p.glaze(p.blue, 0.2)
        ends = b.low[finite], b.high[finite]
        yield area(b.score[finite], *ends, fill, name=name, legendrank=2, visible=self.n > 1)
        unit, ideal = np.array([0.0, 1.0]), "Perfect calibration"
        yield line(unit, unit, p.ink, width=1.5, dash="dash", name=ideal, legendrank=3)
        yield line(b.score[finite], b.probability[finite], p.blue, width=1, showlegend=False)
        inside = finite & (b.score >= self.inner[0]) & (b.score <= self.inner[1])
        name, hover = "Calibration curve", "score %{x:.3f}: %{y:.3f} are hits"
        look: Trace = {"name": "The row" if self.n == 1 else name, "legendrank": 1, "hover": hover}
        if int(inside.sum()) < 2:
            look |= {"mode": "markers", "points": {"size": 9}}
        yield line(b.score[inside], b.probability[inside], p.blue, width=3, **look)

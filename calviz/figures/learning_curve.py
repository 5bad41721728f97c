"""What labels bring: a metric against the number of calibration rows, and the width of a judge's interval against that of its labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calviz.comparison.comparison_results import Difference, DifferenceVerdict, ModelComparison
from calviz.comparison.judging import Judged
from calviz.comparison.learning_curves import SHARE, LabelsNeeded, LearningCurve, LearningPoint
from calviz.core import words
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, QUOTED, RANKED_BY, UNCALIBRATED
from calviz.core.errors import OptionError, claim
from calviz.core.events import Reduction
from calviz.core.words import counted, decimal, level_text, listed, plotly_text, shorten, told_apart
from calviz.figures import marks
from calviz.figures.figure import NAME_LENGTH, Figure, facts
from calviz.figures.marks import DASHES, Picture, Sheet, Trace, area, label, line, markers
from calviz.verdicts.evaluation import scale_of, value_text

#: A curve has settled where it has reached this share of its final gain.
SETTLED = 0.9
#: Gains below this count as zero.
ZERO = 1e-9
_COLUMNS = ("method", "rows", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class LearningCurves(Figure):
    """One metric of a learning curve, ready to draw.

    Drawn from a result, not from predictions: `calviz.learning_curve` fits, this class draws.

    Attributes
    ----------
    curve : LearningCurve
    metric : str

    References
    ----------
    Zhang et al. 2020, figure 6.
    """

    curve: LearningCurve
    metric: str

    @classmethod
    def compute(cls, curve: LearningCurve, *, metric: str = QUOTED) -> Self:
        """Choose the metric to draw.

        Raises
        ------
        OptionError
            If the curve does not have this metric.
        """
        if metric not in curve.directions:
            metrics = ", ".join(curve.directions)
            raise OptionError(f"'{metric}' is not in this learning curve; it has {metrics}.")
        return cls(curve, metric)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of calibration rows tried."""
        return tuple(sorted({p.rows for p in self.curve.points}))

    @property
    def before(self) -> float:
        """Metric of the uncalibrated model."""
        return self.curve.uncalibrated[self.metric].value

    @property
    def noise_floor(self) -> float | None:
        """Mean of the metric for a calibrated model on the evaluation rows; None unless the metric is an error in [0, 1]."""
        floor = self.curve.uncalibrated[self.metric].noise_floor
        upper = METRICS[self.metric].tail == "upper" and METRICS[self.metric].bounds == (0.0, 1.0)
        return floor.mean if floor is not None and upper else None

    @property
    def moves(self) -> bool:
        """Whether any method changes the metric."""
        means = (p.mean for method in self.curve.methods for p in self.points(method))
        return any(abs(mean - self.before) > ZERO for mean in means)

    def points(self, method: str) -> tuple[LearningPoint, ...]:
        """Points of one method, by increasing number of rows."""
        return self.curve.of(method, self.metric)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per method and number of rows, with the two reference lines as columns."""
        points = [p for method in self.curve.methods for p in self.points(method)]
        floor = np.nan if self.noise_floor is None else self.noise_floor
        return {
            **{name: [getattr(p, name) for p in points] for name in _COLUMNS},
            "draws": [p.repeats for p in points],
            "uncalibrated": np.full(len(points), self.before),
            "noise_floor": np.full(len(points), floor),
        }

    def caption(self) -> tuple[str, ...]:
        """Name; metric and evaluation rows: one line each."""
        judged = self.curve.evaluation
        details = [METRICS[self.metric].label, f"judged on {counted(judged.rows, 'row')}"]
        if judged.split is not None:
            details[-1] += f" of split {shorten(judged.split)}"
        details += [shorten(Reduction.of(self.curve.reduction).label), f"seed {self.curve.seed}"]
        return shorten(self.curve.name, NAME_LENGTH), " · ".join(details)

    @property
    def factor(self) -> float:
        """One half for the Brier score of two classes, which is shown as of one column; else 1."""
        return 0.5 if "one_column" in self.curve.uncalibrated[self.metric].details else 1.0

    def needed(self) -> tuple[LabelsNeeded, ...]:
        """Number of labels each method needs: those that are better first, of these the curve's `lead`, and then those that need the fewest."""
        needs = [self.curve.needed(m, self.metric, within=1 - SETTLED) for m in self.curve.methods]
        most = 1 + max(self.sizes, default=0)
        return tuple(
            sorted(
                filter(None, needs),
                key=lambda n: (
                    n.better_from is None or n.method != self.curve.lead,
                    n.better_from or most,
                    n.settled_from or most,
                    -n.gain,
                ),
            )
        )

    @claim("labels-enough")
    def answer(self) -> str:
        """Say in a few sentences how many labels are needed."""
        return f"{self.headline}. {self.beyond_headline}".rstrip()

    @property
    @claim("labels-enough")
    def headline(self) -> str:
        """How many labels are enough, in at most 15 words."""
        label = METRICS[self.metric].label
        if not (needed := self.needed()):
            return f"No method has a curve of the {label} to judge by"
        first = needed[0]
        if first.better_from is None:
            return f"No number up to {counted(first.largest, 'label')} is shown to be enough, by {label}"
        return f"{counted(first.better_from, 'label')} are enough for {self.label(first.method)} to beat no calibration, by {label}"

    @property
    @claim("labels-enough")
    def beyond_headline(self) -> str:
        """What `answer` says that the headline does not."""
        if not (needed := self.needed()):
            return ""
        first, methods = needed[0], len(self.curve.methods)
        sizes = f"{len(self.sizes)} sizes and " * (len(self.sizes) > 1)
        adjusted = f", adjusted for {sizes}{methods} methods" * (methods > 1)
        noise = f"beyond the noise of the draws and of the {counted(self.curve.evaluation.rows, 'evaluation row')}{adjusted}"
        draws = f"{100 * SHARE:.0f} % of the draws of so many labels"
        if first.better_from is not None:
            text = f"From there on it is better in at least {draws} (95 % confidence, {noise}).{' Fewer were not tried.' * (first.better_from == self.sizes[0])}"
        else:
            text = f"No method is shown to be better in at least {draws} (95 % confidence, {noise}); a comparison of methods tests only the one map of all labels."
            if self.curve.clustered:
                text += " Rows of clusters cannot tell how many labels are enough: fresh ones would be of other clusters."
            elif any(each.gain > ZERO for each in needed):
                text += " More draws, or more evaluation rows, may show one that is."
        return f"{text} {self._at_most(first.largest)}"

    def _at_most(self, largest: int) -> str:
        best = dict(self.curve.best(self.metric))[largest]
        label = METRICS[self.metric].label
        if best == UNCALIBRATED:
            return f"With all {largest:,} none is better."
        value, before = self.factor * self.points(best)[-1].mean, self.factor * self.before
        return (
            f"With {largest:,}, {self.label(best)} has the best {label}: "
            f"{value_text(self.metric, value)}, against {value_text(self.metric, before)} uncalibrated."
        )

    @claim("labels-enough")
    def sentences(self) -> tuple[str, ...]:
        """Say how many labels each method needs, once for those that need the same."""
        names: dict[str, list[str]] = {}
        for needed in self.needed():
            names.setdefault(_needed_words(needed), []).append(self.label(needed.method))
        return tuple(f"{', '.join(names[text])}: {text}." for text in names)

    def warnings(self) -> tuple[str, ...]:
        """Caveats for reading the curves."""
        caveats = []
        floor = self.curve.uncalibrated[self.metric].noise_floor
        if floor is not None and self.noise_floor is not None and floor.p_value > 0.05:
            caveats.append(
                f"The {METRICS[self.metric].label} of the uncalibrated model is within noise on these "
                f"{self.curve.evaluation.rows:,} rows: there is little to gain, and differences mean little."
            )
        if self.curve.failures:
            names = listed([self.label(m) for m in self.curve.failures])
            caveats.append(f"Some fits failed ({names}); points are of those that succeeded.")
        return tuple(caveats)

    def label(self, method: str) -> str:
        """Label of a method."""
        return self.curve.labels.get(method, method)

    def describe(self) -> str:
        """Say in plain words what the curves show."""
        judged = counted(self.curve.evaluation.rows, "row")
        sizes = self.sizes
        span = f"{sizes[0]:,} to {counted(sizes[-1], 'calibration row')}" if sizes else "no rows"
        return (
            f"{METRICS[self.metric].label} of {shorten(self.curve.name, NAME_LENGTH)} against the number of "
            f"calibration rows, {span}, always judged on the same {judged}. {self.answer()}"
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw learning curves."""
        drawing = _LearningCurves(self, sheet)
        sizes, (low, high) = self.sizes or (1,), drawing.range
        sign = scale_of(self.metric)[1]
        title = METRICS[self.metric].label + (f", {sign}" if sign else "")
        edge = 0.03 * max(np.log10(sizes[-1] / sizes[0]), 0.3)
        # A logarithmic scale with a tick at each number tried.
        ticks: Trace = {"tickvals": list(sizes), "ticktext": [f"{size:,}" for size in sizes]}
        return sheet.picture(
            drawing.traces(),
            inner=sheet.panel_height,
            margins=_MARGINS,
            above=_MARGINS[2],
            annotations=drawing.notes(),
            xaxis=sheet.axis(
                "Calibration rows (labels)",
                type="log",
                range=[np.log10(sizes[0]) - edge, np.log10(sizes[-1]) + edge],
                **ticks,
                tickangle=0,
            ),
            yaxis=sheet.axis(title, range=[low, high], nticks=7),
        )


def _needed_words(needed: LabelsNeeded) -> str:
    labels = counted(needed.largest, "label")
    if needed.gain < ZERO:
        return "the same as uncalibrated" if needed.gain > -ZERO else f"not better with {labels}"
    better, settled = needed.better_from, needed.settled_from
    text = f"not shown to be enough: up to {labels}"
    if better is not None:
        text = f"better from {counted(better, 'label')} on"
    if settled is not None and settled < needed.largest:
        return f"{text}; {100 * SETTLED:.0f} % of the gain from {settled:,} on"
    return text + "; more labels may still help" * (better is not None)


# ---- A judge's labels

#: Fewest labels that are drawn, and numbers of labels between these and all rows.
FEWEST, STEPS = 20, 60


@dataclass(frozen=True, eq=False)
class LabelWidths(Figure):
    """Expected width of the interval of a judged rate against the number of human labels, with the judge and without.

    Drawn from a result: `calviz.judge` computes, this class draws.

    Attributes
    ----------
    judged : Judged
    """

    judged: Judged

    @classmethod
    def compute(cls, judged: Judged) -> Self:
        """Take the result."""
        return cls(judged)

    @cached_property
    def labels(self) -> IntArray:
        """Numbers of labels, ascending, among them the present one."""
        most, now = self.judged.items, self.judged.labelled
        steps = np.geomspace(min(FEWEST, now), most, STEPS).round().astype(np.int64)
        return np.unique(np.append(steps, now))

    def columns(self) -> Mapping[str, Any]:
        """One row per number of labels: the expected widths, as shares."""
        each = self.labels.tolist()
        return {
            "labels": self.labels,
            "with_judge": np.array([self.judged.width(n) for n in each]),
            "labels_alone": np.array([self.judged.width(n, alone=True) for n in each]),
        }

    def caption(self) -> tuple[str, ...]:
        """What is drawn; rows and labels."""
        judged = self.judged
        return (
            f"Width of the {level_text(judged.confidence)} interval",
            f"{counted(judged.rows, 'row')} · {counted(judged.labelled, 'label')} so far",
        )

    def describe(self) -> str:
        """Say what the present labels give, and what as many again would."""
        now, more = self.judged.labelled, min(2 * self.judged.labelled, self.judged.items)
        width, alone = self.judged.width(now), self.judged.width(now, alone=True)
        return (
            f"With {counted(now, 'label')} an interval of about {words.points(width)} points, {words.points(alone)} without the judge; with {more:,}, "
            f"about {words.points(self.judged.width(more))} points."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw both curves, and the present number of labels."""
        p, rows = sheet.palette, self.columns()
        x, now = rows["labels"].astype(float), self.judged.labelled
        hover = "%{x:,} labels: %{y:.1f} points"
        drawn = [
            line(x, 100 * rows["labels_alone"], p.muted, dash="dash", name="Labels alone", hover=hover),
            line(x, 100 * rows["with_judge"], p.blue, name="With the judge (PPI++)", hover=hover),
        ]  # fmt: skip
        at = {"size": 9, "symbol": "circle"}
        ticks = [n for e in range(8) for m in (1, 2, 5) if x[0] <= (n := m * 10**e) <= x[-1]]
        ticks = ticks[:: -(-len(ticks) // 5) if sheet.narrow else 1]
        y = np.array([100 * self.judged.width(now)])
        drawn.append(line(np.array([float(now)]), y, p.blue, points=at, name="Now", hover=hover))
        return sheet.picture(
            drawn,
            inner=sheet.panel_height,
            margins=_MARGINS,
            xaxis=sheet.axis(
                "Human labels", type="log", tickvals=ticks, ticktext=[f"{n:,}" for n in ticks]
            ),
            yaxis=sheet.axis("Width, points", rangemode="tozero", nticks=7),
        )


# ---- Drawing


#: Margins of the panel in pixels.
_MARGINS = (66, 20, 24, 54)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "x")
#: The axis extends beyond the range of the main values by at most this multiple of it.
_ROOM = 1.5


@dataclass(frozen=True)
class _LearningCurves:
    figure: LearningCurves
    sheet: Sheet

    @property
    def _scale(self) -> float:
        return self.figure.factor * scale_of(self.figure.metric)[0]

    def traces(self) -> Iterator[Trace]:
        """Yield the bands, then the reference lines, then the curves."""
        f, p = self.figure, self.sheet.palette
        methods = [(method, f.points(method)) for method in f.curve.methods]
        colours = (p.blue, p.vermillion, p.green, p.purple)
        for i, (_, points) in enumerate(methods):
            if len(points) > 1:
                x, low, high = np.array([(p.rows, p.low, p.high) for p in points], dtype=float).T
                fill = p.glaze(colours[i % 4], 0.14)
                yield area(x, self._scale * low, self._scale * high, fill, showlegend=False)
        if not self._outside:
            yield from self._across(f.before, p.ink, "dash", "Uncalibrated")
        if f.noise_floor is not None:
            yield from self._across(f.noise_floor, p.muted, "2px,3px", "Noise floor (calibrated)")
        for i, (method, points) in enumerate(methods):
            name = plotly_text(f.label(method), 40)
            yield line(
                np.array([point.rows for point in points], dtype=float),
                self._scale * np.array([point.mean for point in points]),
                colours[i % 4],
                dash=DASHES[i // 4 % 4],
                points={"size": 7, "symbol": _SYMBOLS[i % 8]},
                name=name,
                customdata=[
                    [self._text(point.low), self._text(point.high), point.repeats]
                    for point in points
                ],
                hover="%{x:,} labels: %{y:.4~g}<br>5 to 95 % of %{customdata[2]} draws: "
                f"%{{customdata[0]}} to %{{customdata[1]}}<extra>{name}</extra>",
            )

    def _text(self, value: float) -> str:
        return words.number(self._scale * value)

    def _across(self, value: float, colour: str, dash: str, name: str) -> Iterator[Trace]:
        if not np.isnan(value) and self.figure.sizes:
            x = np.array([self.figure.sizes[0], self.figure.sizes[-1]], dtype=float)
            look: Trace = {"dash": dash, "name": name, "hover": f"%{{y:.4~g}}<extra>{name}</extra>"}
            yield line(x, np.full(2, self._scale * value), colour, width=1.5, **look)

    @cached_property
    def _values(self) -> tuple[FloatArray, FloatArray]:
        """The main values (noise floor and curves, up to the uncalibrated value if they are worse), and all drawn values but that."""
        f = self.figure
        every = [f.points(method) for method in f.curve.methods]
        floor = [] if f.noise_floor is None else [f.noise_floor]
        ends = [*floor, *(points[-1].mean for points in every if points), f.before]
        means = [p.mean for points in every for p in points]
        matter = [*floor, *np.clip(means, min(ends), max(ends)).tolist()]
        ends_of_bands = [v for points in every for p in points for v in (p.low, p.high)]
        first, second = (self._scale * np.array(v) for v in (matter, matter + ends_of_bands))
        return first[np.isfinite(first)], second[np.isfinite(second)]

    @cached_property
    def range(self) -> tuple[float, float]:
        """The range of the vertical axis."""
        matter, every_value = self._values
        if not matter.size:
            return 0.0, 1.0
        low, high = float(matter.min()), float(matter.max())
        room = _ROOM * max(high - low, 0.02 * abs(high), 1e-6)
        low = max(low - room, float(every_value.min()))
        high = min(high + room, float(every_value.max()))
        # An uncalibrated value further from the curves than a third of their height would press them together.
        before, aside = self._scale * self.figure.before, (high - low) / 3
        if low - aside <= before <= high + aside:
            low, high = min(low, before), max(high, before)
        # Curves that are all equal, such as the accuracy of methods that keep it, need room too.
        pad = max(0.06 * (high - low), 0.002 * abs(high), 1e-6)
        # An axis that begins a little above 0 would hide how close the values are to 0.
        start = 0.0 if 0 <= low < 0.35 * high else low - pad
        return start, high + pad

    @property
    def _outside(self) -> str:
        """The uncalibrated value, with an arrow to it, if it lies beyond the vertical axis."""
        f, (low, high), before = self.figure, self.range, self._scale * self.figure.before
        arrow = "↑" * bool(before > high) + "↓" * bool(before < low)
        return arrow and f"Uncalibrated {value_text(f.metric, f.factor * f.before)} {arrow}"

    def notes(self) -> Iterator[Trace]:
        """Note above the panel, where no curve is, what lies beyond it: the uncalibrated value, and parts of bands."""
        (low, high), every_value, p = self.range, self._values[1], self.sheet.palette
        cut = bool(every_value.size) and bool(every_value.max() > high or every_value.min() < low)
        if text := " · ".join(filter(None, (self._outside, "Some bands are cut" * cut))):
            yield marks.heading(text, p, ("paper", "paper"), font={"size": 11, "color": p.muted})


# ---- Differences between models


@dataclass(frozen=True, eq=False)
class ModelDifferences(Figure):
    """Paired differences to a reference model, ready to draw.

    Drawn from a result, not from predictions: `calviz.compare_models` computes, this class draws.

    Attributes
    ----------
    comparison : ModelComparison
    metric : str
    reference : str
        The model with which the others are compared.
    models : tuple of str
        The other models, best value first.
    differences : tuple of Difference
        One per model.
    """

    comparison: ModelComparison
    metric: str
    reference: str
    models: tuple[str, ...]
    differences: tuple[Difference, ...]

    @classmethod
    def compute(
        cls, comparison: ModelComparison, *, metric: str = RANKED_BY, reference: str | None = None
    ) -> Self:
        """Choose the metric and the reference model (by default the best by that metric).

        Raises
        ------
        OptionError
            If the metric has no paired resamples, or the model does not exist.
        """
        if metric not in comparison.pairs:
            metrics = ", ".join(comparison.pairs) or "none"
            reason = comparison.without_differences.get(metric)
            why = f": it {reason}" if reason else ""
            raise OptionError(
                f"there are no paired differences of '{metric}'{why}; known: {metrics}."
            )
        order = comparison.ranking(metric)
        against = order[0] if reference is None else reference
        if against not in order:
            raise OptionError(f"'{against}' has no '{metric}'; known: {', '.join(order)}.")
        differences = {
            name: d
            for name in order
            if name != against and (d := comparison.difference(metric, name, against)) is not None
        }
        return cls(comparison, metric, against, tuple(differences), tuple(differences.values()))

    @property
    def label(self) -> str:
        """What differs: the metric, or its distance from what it should be."""
        goal = {"zero": ", distance from 0", "one": ", distance from 1"}
        return METRICS[self.metric].label + goal.get(METRICS[self.metric].direction, "")

    @property
    def scale(self) -> tuple[float, str]:
        """What the differences are multiplied by to be shown, and the word after them."""
        written = self.comparison.column(self.metric).written
        return written.scale, scale_of(self.metric, difference=True)[1]

    def columns(self) -> Mapping[str, Any]:
        """One row per model."""
        count = len(self.models)
        return {
            "metric": [self.metric] * count,
            "model": self.models,
            "reference": [self.reference] * count,
            "difference": [d.shown[0] for d in self.differences],
            "low": [d.shown[1] for d in self.differences],
            "high": [d.shown[2] for d in self.differences],
            "beyond_noise": [d.verdict for d in self.differences],
        }

    def caption(self) -> tuple[str, ...]:
        """Metric and reference model; rows: one line each."""
        rows = counted(self.comparison.rows, "row")
        head = f"{self.label}, minus that of {shorten(self.reference)}"
        intervals = self.comparison.interval_words(self.metric)
        return head, facts(self.comparison.split, rows, f"{intervals}, paired")

    def text(self, difference: Difference) -> str:
        """Write a difference with its interval, in the unit of the metric, with the decimals of all."""
        scale, unit = self.scale
        spreads = (scale * (d.shown[2] - d.shown[1]) / 2 for d in self.differences)
        decimals = words.decimals_for(*spreads, figures=2, least=1, most=4)
        value, low, high = (decimal(scale * v, decimals) for v in difference.shown)
        return f"{value}{' ' + unit if unit else ''} (95 % CI {low} to {high})"

    @claim("models-differ")
    def describe(self) -> str:
        """Say in plain words what it shows."""
        by_side: dict[DifferenceVerdict, list[str]] = {"better": [], "tied": [], "worse": []}
        for name, d in zip(self.models, self.differences, strict=True):
            by_side[d.verdict].append(name)
        how = {
            "better": "better beyond noise",
            "tied": "not told apart from it",
            "worse": "worse beyond noise",
        }
        parts = [f"{listed(names)} {how[side]}" for side, names in by_side.items() if names]
        return (
            f"{self.label} of {counted(len(self.models), 'model')} minus that of "
            f"'{shorten(self.reference)}' on the same {counted(self.comparison.rows, 'row')}: "
            f"{'; '.join(parts)}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the reference at the top, then one row per model, best first, each with its numbers."""
        narrow = sheet.narrow
        names = told_apart((self.reference, *self.models), _SHORT if narrow else _NAME)
        numbers = [f"{self.text(d)}, {d.verdict}" for d in self.differences]
        texts = [plotly_text(name) for name in names]
        left, right = marks.name_room(names, _BESIDE), marks.name_room(numbers, 0)
        if narrow:
            left = right = _RIGHT
            texts = [" ".join(parts) for parts in zip(texts, ["", *numbers], strict=True)]
            notes = sheet.names_above(texts, 6)
        else:
            beside: Trace = {"xref": "paper", "x": 1, "xshift": 8, "xanchor": "left", "yref": "y"}
            notes = [label(text, sheet.palette, y=y, **beside) for y, text in enumerate(numbers, 1)]
        scale, unit = self.scale
        every = [0.0] + [v for d in self.differences for v in d.shown]
        low, high = scale * min(every), scale * max(every)
        # The axis needs a width even if all differences are 0.
        pad = max(0.06 * (high - low), 1e-3 * scale)
        title = f"Difference in {self.label}" + (f", {unit}" if unit else "")
        # Both sides are labelled above the rows.
        higher = METRICS[self.metric].direction == "higher"
        ends = ("← worse", "better →") if higher else ("← better", "worse →")
        place: Trace = {"xref": "paper", "yref": "paper", "y": 1, "yshift": 2, "yanchor": "bottom"}
        font = {"size": 12, "color": sheet.palette.muted}
        zero: Trace = {"x": 0, "width": 1.5, "dash": "4px,3px", "yref": "paper", "layer": "below"}
        return sheet.picture(
            _traces(self, sheet, scale),
            inner=(_TALL if narrow else _ROW) * len(names),
            margins=(left, right, _TOP, _BOTTOM),
            above=_TOP - 6,
            annotations=[
                *notes,
                label(ends[0], sheet.palette, x=0, xanchor="left", **place, font=font),
                label(ends[1], sheet.palette, x=1, xanchor="right", **place, font=font),
            ],
            shapes=[marks.vertical_shape(sheet.palette.ink, **zero)],
            xaxis=sheet.axis(title, range=[low - pad, high + pad], nticks=6),
            yaxis=sheet.row_axis(texts, ticks="", showticklabels=not narrow),
        )


# ---- Drawing


_RIGHT, _TOP, _BOTTOM, _ROW, _TALL = 16, 30, 54, 28, 44
#: Maximum characters of a name, of one above its row, before the numbers; and space beside the names in pixels.
_NAME, _SHORT, _BESIDE = 32, 19, 16


def _traces(f: ModelDifferences, sheet: Sheet, scale: float) -> Iterator[Trace]:
    """Yield one point with its interval per model, filled if the difference is beyond noise."""
    p = sheet.palette
    looks = {
        "better": (p.blue, "circle"),
        "worse": (p.vermillion, "square"),
        "tied": (p.neutral, "circle-open"),
    }
    hover = f"{plotly_text(f.reference, 60)}: the reference"
    yield markers([0.0], [0], p.ink, size=10, symbol="diamond", hover=hover)
    for row, (name, d) in enumerate(zip(f.models, f.differences, strict=True), start=1):
        colour, symbol = looks[d.verdict]
        value, low, high = d.shown
        ends = [max(scale * (high - value), 0.0)], [max(scale * (value - low), 0.0)]
        yield markers(
            [scale * value],
            [row],
            colour,
            size=9,
            symbol=symbol,
            edge=colour,
            error_x=marks.whiskers(*ends, colour, thickness=2, width=5),
            hover=f"{plotly_text(name, 60)}: {f.text(d)}<br>{d.verdict}",
        )

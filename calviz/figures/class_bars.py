"""Signed error of each class, compared with the range that a calibrated model would show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core import entry_specs, errors, words
from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.words import counted, listed, plotly_text
from calviz.figures import marks
from calviz.figures.figure import Data, SampleFigure, end_columns
from calviz.figures.marks import UNFADED, Drawing, Overlay, Page, Sheet, Trace, drawn, line, packed
from calviz.sample import class_gaps, error_bars, true_classes
from calviz.sample.class_gaps import beyond
from calviz.sample.sample import Sample, predicted_classes

Mode = class_gaps.ClassView
Order = Literal["value", "beyond", "class"]
#: Why there is no range of a calibrated model: not requested, or not known from these data.
NoRange = Literal["left-out", "clusters", "few-clusters", "profile", "confidence-only"]

#: Titles of the modes: what each draws.
TITLES: dict[Mode, str] = {
    "predicted-class": "Rows predicted as each class: mean confidence − accuracy",
    "one-vs-rest": "Each class against the rest: mean probability − frequency",
    "true-class": "Rows of each true class: mean confidence − accuracy",
}
#: Words for errors above and below the range of a calibrated model.
_WORDS: dict[Mode, tuple[str, str]] = {
    "predicted-class": ("overconfident", "underconfident"),
    "true-class": (
        "more confident than a calibrated model would be",
        "less confident than a calibrated model would be",
    ),
    "one-vs-rest": ("too high", "too low"),
}
_WITHOUT_RANGE: dict[NoRange, str] = {
    "left-out": "was not computed",
    "clusters": "is not known for clustered rows",
    "few-clusters": "is not known with so few clusters",
    "profile": "is not known from a profile",
    "confidence-only": "is not known without the probabilities of all classes",
}
_NOUNS: dict[Mode, tuple[str, str]] = {
    "predicted-class": ("predicted class", "predicted classes"),
    "true-class": ("true class", "true classes"),
    "one-vs-rest": ("class against the rest", "classes against the rest"),
}


@entry_specs.figure(
    key="class-bars",
    label="Errors by class",
    summary="Mean confidence minus accuracy on the rows predicted as each class or of each true class, or mean "
    "probability minus frequency of each class, sorted, with the range that a calibrated model would show.",
    reference="Gupta & Ramdas 2022; Ao et al. 2023, eq. 5; Gupta et al. 2021, eq. 2",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class ClassBars(SampleFigure):
    """Signed error of each class with its interval and the range of a calibrated model; `plot` draws it.

    Arrays have one entry per class that has a value, in the order of the classes.

    Attributes
    ----------
    name, split, n
        See `SampleFigure`.
    mode : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows predicted as the class.
        ``true-class``: the same over the rows whose true label is the class (the cwMCS of Ao et al.).
        ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.
    level : float
        Level of the intervals.
    class_index : ndarray of int, shape (C,)
        0-based index of the class.
    class_name : tuple of str
    rows : ndarray of int, shape (C,)
        Rows predicted as the class (``predicted-class``), or rows whose true label is the class.
    mass : ndarray of float64, shape (C,)
        The same, weighted rows by their weights.
    value : ndarray, shape (C,)
        The error, to be judged against `band`, which need not contain 0.
    interval : (ndarray, ndarray), shape (C,) each
        Bootstrap interval, in closed form except for ``true-class``; ``nan`` where it is unknown or would have no width.
    band : (ndarray, ndarray) or None, shape (C,) each
        Range of the error of a calibrated model, adjusted for the number of classes: with a calibrated model, all
        classes are inside in all but a few of a thousand files. For ``true-class`` it is not centred at 0,
        because wrongly predicted rows are over-represented among the rows of a class.
    missing : tuple of str
        Classes without rows; they have a value only for ``one-vs-rest``.
    needed : ndarray or None, shape (C,)
        How far off a class must be to lie outside the range; inf if no labels could put it there.
    no_range : str or None
        Why there is no band: it was ``left-out``, the rows are in ``clusters``, too few of them (``few-clusters``), or the data are a
        ``profile`` or ``confidence-only``.

    References
    ----------
    Gupta & Ramdas 2022 (predicted class); Ao et al. 2023, eq. 5 and section 5 (cwMCS); Gupta et al. 2021, eq. 2
    (one-vs-rest).
    """

    mode: Mode
    level: float
    class_index: IntArray
    class_name: tuple[str, ...]
    rows: IntArray
    mass: FloatArray
    value: FloatArray
    interval: tuple[FloatArray, FloatArray]
    band: tuple[FloatArray, FloatArray] | None
    missing: tuple[str, ...]
    needed: FloatArray | None = None
    no_range: NoRange | None = None

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        mode: Mode = "true-class",
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Compute the errors of all classes, their intervals, and the range of a calibrated model.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        mode : {"predicted-class", "true-class", "one-vs-rest"}
            Definition of the error of a class.
        level : float
            Level of the intervals, between 0 and 1.
        band : bool
            Whether to include the range of a calibrated model.
        seed, resamples : int
            Seed and number of the resamples for the intervals of ``true-class``; fewer are quicker with many rows
            (`Sample.quick_redrawing`).
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        NotAvailable
            If the data do not name the true or predicted classes, or for one-vs-rest without all probabilities.
        OptionError, InputError
            Under the same conditions as in `calviz.evaluate`.
        """
        errors.check_level(level)
        sample = Sample.of(data, split=split, seed=seed, resamples=resamples)
        errors.check_choice("mode", mode, get_args(Mode))
        ranges = sample.view(class_gaps.class_ranges, view=mode)
        mass, has, limits = ranges.rows, ranges.has, ranges.range if band else None
        rows = np.rint(mass).astype(np.int64)
        if sample.weights is not None and sample.data.cells is None:
            predicted = mode == "predicted-class"
            of_row = predicted_classes(sample.data) if predicted else sample.data.labels
            assert of_row is not None
            rows = np.bincount(of_row, minlength=mass.size)
        names = sample.data.class_names
        low, high = _interval(sample, mode, level)
        # An interval without width would claim certainty.
        certain = ~(low < high) | (sample.data.rows < 2)
        low, high = (np.where(certain, np.nan, end) for end in (low, high))
        return cls(
            **cls._fields(sample, level=level),
            mode=mode,
            class_index=np.flatnonzero(has),
            class_name=tuple(names[k] for k in np.flatnonzero(has)),
            rows=rows[has],
            value=ranges.value[has],
            interval=(low[has], high[has]),
            band=None if limits is None else (limits[0][has], limits[1][has]),
            mass=mass[has],
            missing=tuple(names[k] for k in np.flatnonzero(mass == 0)),
            needed=None if ranges.needed is None else ranges.needed[has],
            no_range=None if limits is not None else _why_no_range(sample, mode, band),
        )

    @property
    def beyond(self) -> FloatArray:
        """Signed distance of the error from the range of a calibrated model, shape (C,); 0 inside the range."""
        return beyond(self.value, self.band)

    @property
    def over(self) -> BoolArray:
        """Classes above the range of a calibrated model, shape (C,)."""
        return np.asarray(self.beyond > 0)

    @property
    def under(self) -> BoolArray:
        """Classes below the range of a calibrated model, shape (C,)."""
        return np.asarray(self.beyond < 0)

    @property
    def furthest(self) -> str:
        """The class furthest outside the range of a calibrated model, in quotes; of two that mirror each other, the event."""
        return listed([self.class_name[self.ranked()[0]]])

    def ranked(self, order: Order = "beyond") -> IntArray:
        """Positions in the arrays in drawing order, shape (C,): by distance from the range, by the size of the error, or by class."""
        errors.check_choice("order", order, get_args(Order))
        place = np.arange(self.value.size)
        if order == "class":
            return place
        # Of two classes that mirror each other, the event is first.
        size, far = (-np.abs(v).round(9) for v in (self.value, self.beyond))
        return np.lexsort((-place, size, far * (order == "beyond")))

    def shown(self, order: Order = "beyond", most: int = 20) -> IntArray:
        """Positions of the classes that get a bar, in drawing order."""
        ranked = self.ranked(order)
        # Up to this many classes get a bar each; with more, only the first do, and a curve shows all classes.
        return ranked if ranked.size <= max(24, most) else ranked[:most]

    def columns(self, order: Order = "beyond") -> Mapping[str, Any]:
        """Return all classes, one row each, in drawing order."""
        at = self.ranked(order)
        return {
            "class": [self.class_name[i] for i in at],
            "class_index": self.class_index[at],
            "rows": self.rows[at],
            "value": self.value[at],
            "ci_low": self.interval[0][at],
            "ci_high": self.interval[1][at],
            **{name: end[at] for name, end in end_columns("band", self.band, self.value).items()},
            "beyond": self.beyond[at],
        }

    def caption(self) -> tuple[str, ...]:
        """Name; rows and classes; what is drawn: one line each."""
        return *self._head(counted(self.value.size, "class", "classes")), TITLES[self.mode]

    def shares(self) -> str:
        """Say how many classes are outside the range of a calibrated model, which, and on which side."""
        one, many = _NOUNS[self.mode]
        total = counted(self.value.size, one, many)
        if self.band is None:
            why = _WITHOUT_RANGE[self.no_range or "left-out"]
            return f"None of {total} is judged: what a calibrated model would show {why}."
        parts = []
        for which, word in zip((self.over, self.under), _WORDS[self.mode], strict=True):
            count = int(which.sum())
            if count:
                names = listed([self.class_name[i] for i in self.ranked() if which[i]])
                parts.append(f"{count:,} {'is' if count == 1 else 'are'} {word} ({names})")
        if not parts:
            none = f"The one {one} is" if self.value.size == 1 else f"None of {total} is"
            inside = "inside" if self.value.size == 1 else "outside"
            return (
                f"{none} {inside} the range that a calibrated model would show{_and(self.unseen)}."
            )
        # The words for true classes already mention the calibrated model.
        where = "" if self.mode == "true-class" else ", outside the range of a calibrated model"
        return f"Of {total}, {' and '.join(parts)}{where}."

    @property
    def unseen(self) -> str:
        """Say which errors classes with few rows cannot show, or how many are in too few clusters; "" if all have enough."""
        every = self.n if self.mode == "one-vs-rest" else None
        few = 0 if self.band is None else int(np.isnan(self.band[0]).sum())
        in_few = f"{few:,} {'has' if few == 1 else 'have'} too few clusters to be judged"
        few_rows = class_gaps.too_few(self.rows, self.needed, rows_in_all=every)
        return few_rows or in_few * (few > 0 and self.mode != "true-class")

    def describe(self) -> str:
        """Say in plain words what the bars show."""
        text = f"{TITLES[self.mode]}. {self._subject}. {self.shares()}"
        beyond = self.beyond
        if self.band is not None and beyond.any():
            worst = int(self.ranked()[0])
            value, low, high = words.outside_range(
                *(float(v[worst]) for v in (self.value, *self.band))
            )
            text += (
                f" Furthest outside is {self.furthest}, {value} points "
                f"({counted(int(self.rows[worst]), 'row')}), where a calibrated model shows "
                f"{low} to {high}: {_WORDS[self.mode][0 if beyond[worst] > 0 else 1]}."
            )
        if self.missing and self.mode != "one-vs-rest":
            head = "Never predicted" if self.mode == "predicted-class" else "Without rows"
            text += f" {head}: {listed(self.missing)}."
        return text

    def plot(
        self,
        *,
        order: Order = "beyond",
        most: int = 20,
        selected: int | None = None,
        like: ClassBars | None = None,
        beside: Sequence[Overlay[FloatArray]] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure; on a narrow page its panels are stacked.

        Parameters
        ----------
        order : {"value", "beyond", "class"}
            Order from top to bottom: "beyond" has the furthest outside the range of a calibrated model first, on either
            side (ties by the size of the error), "value" sorts by that size, "class" keeps the order of the classes.
        most : int
            With many classes, number of bars.
        selected : int, optional
            Index of a class to highlight.
        like : ClassBars, optional
            The same classes of another state, whose order and places are taken.
        beside : sequence of Overlay
            Errors of all classes in another state, shape (K,) each; nan where there is none.
        **page
            See `Figure.plot`.

        Returns
        -------
        plotly.graph_objects.Figure
            Bars and points carry the index of their class as ``customdata``.
        """
        sheet, whole = self.sheet(**page), [0.0, 1.0]
        first = like or self
        classes = first.class_index[first.shown(order, most)]
        more = np.setdiff1d(self.class_index, first.class_index)
        y, shown = np.nonzero(np.append(classes, more)[:, None] == self.class_index)
        bars = _Bars(self, sheet, shown, y.astype(np.float64), beside)
        traces, labels = [*bars.traces(), *bars.others()], list[Trace]()
        inner, titles = bars.height, 24 if bars.cut else 0
        if not bars.cut:
            axes = bars.axes(whole, whole)
        else:
            ranked = np.argsort(-self.value, kind="stable")
            if sheet.narrow:
                inner += _CURVE + 90
                axes = bars.axes(whole, [1 - bars.height / inner, 1.0])
                axes |= bars.curve_axes(whole, [0.0, _CURVE / inner])
            else:
                axes = bars.axes([0.0, 0.56], whole) | bars.curve_axes([0.66, 1.0], whole)
            traces += _curve(self, sheet, ranked)
            text = f"<b>The {'first' if first is self else 'same'} {shown.size}</b>"
            labels = [marks.heading(text, sheet.palette, ("x domain", "y domain"))]
            text = f"<b>All {ranked.size:,} classes</b> by the error (points)"
            labels.append(marks.heading(text, sheet.palette, ("x2 domain", "y2 domain")))
        # Where mean score and share of hits agree.
        zero = marks.vertical_shape(sheet.palette.ink, x=0, width=1.5, xref="x", yref="y domain")
        picture = sheet.picture(
            traces,
            inner=inner,
            margins=(bars.left, _RIGHT, _TOP + titles, _BOTTOM),
            above=titles or 8,
            air=24 - titles,
            legend_over="container",
            annotations=labels,
            barmode="overlay",
            shapes=[zero, *bars.highlight(selected)],
            **axes,
        )
        return drawn(picture)


def headline(views: Sequence[ClassBars]) -> tuple[str, bool]:
    """Say how many classes are outside the range of a calibrated model in each view; also return whether any is."""
    judged = [view for view in views if view.band is not None]
    if not judged:
        why = _WITHOUT_RANGE[next(iter(views)).no_range or "left-out"]
        return f"No class is judged: what a calibrated model would show {why}.", False
    parts = [
        f"{outside:,} of {counted(view.value.size, *_NOUNS[view.mode])} ({'furthest ' * (outside > 1)}{view.furthest})"
        for view in judged
        if (outside := int((view.over | view.under).sum()))
    ]
    if not parts:
        unseen = next((view.unseen for view in judged if view.unseen), "")
        nouns = [_NOUNS[view.mode][0] for view in judged] if len(judged) < len(views) else ["class"]
        none = f"No {' or '.join(nouns)} is outside the range that a calibrated model would show"
        return f"{none}{_and(unseen)}.", False
    return f"Outside the range that a calibrated model would show: {', '.join(parts)}.", True


def _why_no_range(sample: Sample, mode: Mode, requested: bool) -> NoRange:
    if not requested:
        return "left-out"
    if sample.data.clusters is not None:
        return "clusters" if mode == "true-class" else "few-clusters"
    return "confidence-only" if sample.data.cells is None else "profile"


def _and(more: str) -> str:
    return f"; {more}" if more else ""


def _interval(sample: Sample, mode: Mode, level: float) -> tuple[FloatArray, FloatArray]:
    if mode != "true-class":
        if sample.data.clusters is not None:
            low, high = sample.view(class_gaps.sums_of_clusters, view=mode).interval(level)
        elif mode == "predicted-class":
            low, high = sample.view(class_gaps.predicted_class_sums).interval(level)
        else:
            low, high = sample.view(class_gaps.class_gaps).interval(level)
        # The gamma approximation of a mean of few rows may exceed what a gap can be.
        return np.maximum(low, -1), np.minimum(high, 1)
    errors = true_classes.true_class_errors_of_sample(sample)
    drawn = error_bars.resampled(errors, "bootstrap", **sample.redrawing)
    low, high = _quantiles(drawn.mcs, drawn.rows, level)
    return error_bars.widened(low, high, level, errors, centre=errors.mcs, bounds=(-1, 1))


def _quantiles(values: FloatArray, rows: FloatArray, level: float) -> FloatArray:
    """Both quantiles per class over the resamples in which the class has rows: from (B, K) to (2, K)."""
    # Resamples without rows of the class are set to inf, so that they are sorted behind the others.
    ordered = np.sort(np.where(rows > 0, values, np.inf), axis=0)
    some = np.count_nonzero(rows > 0, axis=0)
    ordered[:, some == 0] = np.nan
    last = np.maximum(some - 1, 0)
    place = np.outer([(1 - level) / 2, (1 + level) / 2], last)
    left = place.astype(np.intp)
    ends = left, np.minimum(left + 1, last)
    low, high = (np.take_along_axis(ordered, at, axis=0) for at in ends)
    return np.asarray(low + (place - left) * (high - low))


# ---- Drawing


#: Height of a bar with the space around it, height of the curve, and margins of the panels, in pixels.
_BAR, _CURVE = 22, 260
_RIGHT, _TOP, _BOTTOM = 16, 12, 54
#: Maximum characters of a class name on a phone and on paper, and on a desktop; and space beside the names in pixels.
_NAMES, _BESIDE = (30, 18), 22
#: Legend entries of the colours for errors above and below the range.
LEGEND: dict[str, tuple[str, str]] = {
    "predicted-class": ("Overconfident", "Underconfident"),
    "true-class": ("More confident than if calibrated", "Less confident than if calibrated"),
    "one-vs-rest": ("Too high", "Too low"),
}


@dataclass(frozen=True)
class _Bars:
    """One bar per shown class, at `y` from the top down, shape (S,)."""

    figure: ClassBars
    sheet: Sheet
    shown: IntArray
    y: FloatArray
    beside: Sequence[Overlay[FloatArray]]

    @cached_property
    def left(self) -> int:
        """Width of the longest name with its number of rows, in pixels."""
        rows = self.figure.rows[self.shown]
        return marks.name_room(map("{}  n = {:,}".format, self.names, rows), _BESIDE)

    @cached_property
    def names(self) -> list[str]:
        """Short names of the drawn classes."""
        names = (self.figure.class_name[i] for i in self.shown)
        return words.told_apart(names, _NAMES[self.sheet.narrow])

    @property
    def cut(self) -> bool:
        return self.shown.size < self.figure.value.size

    @property
    def height(self) -> int:
        # With the height of a single bar, plotly cannot place the axes.
        return max(60, round(_BAR * (float(self.y[-1]) + 1) + 8)) if self.y.size else 60

    def traces(self) -> Iterator[Trace]:
        """Yield the ranges of a calibrated model, the bars, and their intervals."""
        f, p, at = self.figure, self.sheet.palette, self.shown
        beyond = f.beyond[at]
        if f.band is not None:
            low, high = (100 * end[at] for end in f.band)
            yield {
                "type": "bar",
                "orientation": "h",
                "y": packed(self.y),
                "base": packed(low),
                "x": packed(high - low),
                "width": 1,
                "marker": {"color": p.calibrated, "line": {"width": 0}},
                "name": "Range if calibrated",
                "hoverinfo": "skip",
                "legendrank": 3,
            }
        above, below = LEGEND[f.mode]
        judged = f.band is not None and bool(np.isfinite(f.band[0][at][beyond == 0]).any())
        within = "Within the range" if judged else "Not judged: no range is known"
        kinds = (
            (beyond > 0, above, p.vermillion, "/"),
            (beyond < 0, below, p.purple, "\\"),
            (beyond == 0, within, p.neutral, "."),
        )
        for rank, (which, name, colour, shape) in enumerate(kinds):
            if which.any():
                yield self._bar(which, name, colour, shape) | {"legendrank": rank}
        value, (low, high) = f.value[at], (end[at] for end in f.interval)
        has = np.isfinite(low)
        yield marks.markers(
            packed(100 * value),
            packed(self.y),
            p.ink,
            size=5,
            customdata=f.class_index[at],
            error_x=marks.whiskers(
                packed(100 * np.where(has, high - value, 0)),
                packed(100 * np.where(has, value - low, 0)),
                p.ink,
                thickness=1.5,
                width=3,
            ),
            name=f"{words.level_text(f.level)} interval",
            showlegend=bool(has.any()),
            hover=[_hover(f, int(i)) for i in at],
            legendrank=4,
            **UNFADED,
        )

    def others(self) -> Iterator[Trace]:
        """Draw the errors of the same classes in other states."""
        at = self.figure.class_index[self.shown]
        for one in self.beside:
            x, y = packed(100 * one.content[at]), packed(self.y)
            yield one.points(x, y, self.sheet.palette, customdata=at, legendrank=5)

    def _bar(self, which: Any, name: str, colour: str, shape: str) -> Trace:
        f, p = self.figure, self.sheet.palette
        chosen = self.shown[which]
        return {
            "type": "bar",
            "orientation": "h",
            "y": packed(self.y[which]),
            "x": packed(100 * f.value[chosen]),
            "width": 0.5,
            "customdata": f.class_index[chosen],
            "marker": {
                "color": colour,
                "line": {"color": colour, "width": 1},
                "pattern": marks.hatched(colour, p, shape=shape, tint=0.25, solidity=0.4),
            },
            "name": name,
            "hoverinfo": "text",
            "hovertext": [_hover(f, int(i)) for i in chosen],
            **UNFADED,
        }

    def highlight(self, selected: int | None) -> list[Trace]:
        """Draw a frame around the selected class."""
        at = self.y[self.figure.class_index[self.shown] == selected].tolist()
        place: Trace = {"xref": "x domain", "yref": "y", "x0": 0, "x1": 1}
        return [marks.frame(self.sheet.palette.ink, **place, y0=y - 0.5, y1=y + 0.5) for y in at]

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        f, sheet = self.figure, self.sheet
        rest = f.mode == "one-vs-rest"
        score, hit = ("probability", "frequency") if rest else ("confidence", "accuracy")
        # What points are of, the line above says, too.
        title = "Points" if sheet.narrow else f"Mean {score} − {hit} (points)"
        muted, rows = f'<span style="color:{sheet.palette.muted}">', f.rows[self.shown]
        names = [
            f"{plotly_text(name)}  {muted}n = {n:,}</span>"
            for name, n in zip(self.names, rows, strict=True)
        ]
        size = 12 if sheet.narrow else 13
        last = float(self.y[-1]) if self.y.size else 0
        states = (one.content[f.class_index] for one in self.beside)
        every = (f.value, *f.interval, *(f.band or ()), *states)
        span = {"range": _range(each[self.shown] for each in every)}
        place: Trace = {
            "domain": down,
            "anchor": "x",
            "range": [last + 0.6, -0.6],
            "showgrid": False,
        }
        return {
            "xaxis": sheet.axis(title, size=size, **span, domain=across, anchor="y", nticks=7),
            "yaxis": sheet.axis(
                **place,
                tickmode="array",
                tickvals=self.y.tolist(),
                ticktext=names,
                tickfont={"size": 12, "color": sheet.palette.ink},
            ),
        }

    def curve_axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        f, axis = self.figure, self.sheet.axis
        x: Trace = {"domain": across, "anchor": "y2"}
        y: Trace = {"domain": down, "anchor": "x2"}
        x["range"] = [1 - 0.02 * f.value.size, 1.02 * f.value.size]
        y["range"] = _range((f.value, *(f.band or ())))
        return {
            "xaxis2": axis("Place in the order", size=13, **x, nticks=5),
            "yaxis2": axis("", **y, nticks=7),
        }


def _curve(f: ClassBars, sheet: Sheet, ranked: IntArray) -> Iterator[Trace]:
    """Draw all classes in drawing order, as points."""
    p, count = sheet.palette, ranked.size
    # Maximum number of points on the curve of all classes.
    some = np.unique(np.linspace(0, count - 1, min(count, 2_000)).astype(np.intp))
    at, x = ranked[some], some + 1.0
    panel: Trace = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    if f.band is not None:
        low, high = (100 * end[at] for end in f.band)
        yield marks.area(x, low, high, p.calibrated, **panel)
    yield line(np.array([1.0, count]), np.zeros(2), p.ink, width=1, **panel)
    beyond = f.beyond[at]
    for which, colour, symbol, size in (
        (beyond == 0, p.neutral, "circle-open", 4),
        (beyond > 0, p.vermillion, "triangle-up", 6),
        (beyond < 0, p.purple, "triangle-down", 6),
    ):
        if which.any():
            yield marks.markers(
                packed(x[which]),
                packed(100 * f.value[at[which]]),
                colour,
                symbol=symbol,
                size=size,
                customdata=f.class_index[at[which]],
                text=[plotly_text(f.class_name[i], 24) for i in at[which]],
                hover="%{text}: %{y:.2f} points",
                **UNFADED,
                **panel,
            )


def _range(drawn: Iterable[FloatArray]) -> list[float]:
    """Return the range of an axis in points that holds these and 0."""
    every = 100 * np.concatenate([[0.0], *drawn])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    air = 0.05 * (high - low or 1)
    return [low - air, high + air]


def _hover(f: ClassBars, i: int) -> str:
    value, beyond = float(f.value[i]), float(f.beyond[i])
    decimals = words.decimals_for(100 * value, most=3)

    def ends(pair: tuple[FloatArray, FloatArray]) -> str:
        return " to ".join(words.points(float(end[i]), decimals) for end in pair)

    lines = [
        f"<b>{plotly_text(f.class_name[i], 40)}</b>",
        f"{counted(int(f.rows[i]), 'row')} {'predicted as this' if f.mode == 'predicted-class' else 'with this label'}",
        f"{words.points(value, decimals)} points",
    ]
    if np.isfinite(f.interval[0][i]):
        lines.append(f"{words.level_text(f.level)} interval {ends(f.interval)}")
    if f.mode == "one-vs-rest":
        seen = float(f.mass[i]) / f.n
        shares = words.percent(value + seen), words.percent(seen)
        lines.append("Expected {} of the rows, seen {}".format(*shares))
    if f.band is not None and np.isfinite(f.band[0][i]):
        where = LEGEND[f.mode][0 if beyond > 0 else 1] if beyond else "Within the range"
        lines += [f"If calibrated: {ends(f.band)}", where]
    return "<br>".join(lines)

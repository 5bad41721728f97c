"""Signed error of each class, compared with the range that a calibrated model would show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.entry_specs import Theme, figure
from calviz.core.errors import check_choice, check_level
from calviz.core.predictions import Dataset
from calviz.core.words import (
    counted,
    decimals_for,
    level_text,
    listed,
    outside_range,
    plotly_text,
    points,
    shorten,
    told_apart,
)
from calviz.figures.figure import NAME_LENGTH, Figure, ends_or_nan, facts, named
from calviz.figures.marks import (
    UNFADED,
    Overlay,
    Picture,
    Sheet,
    Trace,
    area,
    frame,
    hatched,
    heading,
    label,
    line,
    markers,
    outline,
    packed,
    vertical_shape,
    whiskers,
)
from calviz.figures.style import Palette, axis, name_room
from calviz.sample.class_gaps import (
    ClassView,
    beyond,
    class_gaps,
    class_ranges,
    one_vs_rest_intervals,
    predicted_class_intervals,
    predicted_class_sums,
    too_few,
)
from calviz.sample.error_bars import resampled, widened
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors_of_sample

if TYPE_CHECKING:
    import plotly.graph_objects as go


Mode = ClassView
Order = Literal["value", "beyond", "class"]
#: Why there is no range of a calibrated model: not requested, or not known from these data.
NoRange = Literal["left-out", "clusters", "profile", "confidence-only"]

#: Up to this many classes get a bar each; with more, only both ends of the order do, and a curve shows all classes.
ALL_BARS = 24
#: Titles of the modes: what each draws.
TITLES: dict[Mode, str] = {
    "predicted-class": "Rows predicted as each class: mean confidence − accuracy",
    "true-class": "Rows of each true class: mean confidence − accuracy",
    "one-vs-rest": "Each class against the rest: mean probability − frequency",
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
    "profile": "is not known from a profile",
    "confidence-only": "is not known without the probabilities of all classes",
}
_NOUNS: dict[Mode, tuple[str, str]] = {
    "predicted-class": ("predicted class", "predicted classes"),
    "true-class": ("true class", "true classes"),
    "one-vs-rest": ("class against the rest", "classes against the rest"),
}


@figure(
    key="class-bars",
    label="Errors by class",
    summary="Mean confidence minus accuracy on the rows predicted as each class or of each true class, or mean "
    "probability minus frequency of each class, sorted, with the range that a calibrated model would show.",
    reference="Gupta & Ramdas 2022; Ao et al. 2023, eq. 5; Gupta et al. 2021, eq. 2",
)
@dataclass(frozen=True, eq=False)
class ClassBars(Figure):
    """Signed error of each class with its interval and the range of a calibrated model; `plot` draws it.

    Arrays have one entry per class that has a value, in the order of the classes.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split shown, or None for all rows.
    mode : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows predicted as the class.
        ``true-class``: the same over the rows whose true label is the class (the cwMCS of Ao et al.).
        ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.
    level : float
        Level of the intervals.
    n : int
        Number of rows.
    class_index : ndarray of int, shape (C,)
        0-based index of the class.
    class_name : tuple of str
    rows : ndarray of int, shape (C,)
        Rows predicted as the class (``predicted-class``), or rows whose true label is the class.
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
        Why there is no band: it was ``left-out``, the rows are in ``clusters``, or the data are a ``profile`` or ``confidence-only``.

    References
    ----------
    Gupta & Ramdas 2022 (predicted class); Ao et al. 2023, eq. 5 and section 5 (cwMCS); Gupta et al. 2021, eq. 2
    (one-vs-rest).
    """

    name: str
    split: str | None
    mode: Mode
    level: float
    n: int
    class_index: IntArray
    class_name: tuple[str, ...]
    rows: IntArray
    value: FloatArray
    interval: tuple[FloatArray, FloatArray]
    band: tuple[FloatArray, FloatArray] | None
    missing: tuple[str, ...]
    needed: FloatArray | None = None
    no_range: NoRange | None = None

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
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
        check_level(level)
        sample = Sample.of(data, split=split, seed=seed, resamples=resamples)
        check_choice("mode", mode, get_args(Mode))
        ranges = sample.view(class_ranges, view=mode)
        rows, has, limits = ranges.rows, ranges.has, ranges.range if band else None
        names = sample.data.class_names
        low, high = _interval(sample, mode, level)
        # An interval without width would claim certainty.
        certain = ~(low < high) | (sample.data.rows < 2)
        low, high = (np.where(certain, np.nan, end) for end in (low, high))
        return cls(
            name=sample.data.name,
            split=sample.split,
            mode=mode,
            level=level,
            n=sample.data.rows,
            class_index=np.flatnonzero(has),
            class_name=tuple(names[k] for k in np.flatnonzero(has)),
            rows=np.rint(rows[has]).astype(np.int64),
            value=ranges.value[has],
            interval=(low[has], high[has]),
            band=None if limits is None else (limits[0][has], limits[1][has]),
            missing=tuple(names[k] for k in np.flatnonzero(rows == 0)),
            needed=None if ranges.needed is None else ranges.needed[has],
            no_range=None if limits is not None else _why_no_range(sample.data, band),
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

    def ranked(self, order: Order = "beyond") -> IntArray:
        """Positions in the arrays in drawing order, shape (C,): by distance beyond the range, by value, or by class."""
        check_choice("order", order, get_args(Order))
        if order == "class":
            return np.arange(self.value.size)
        keys = (-self.value,) if order == "value" else (-self.value, -self.beyond)
        return np.lexsort(keys)

    def shown(self, order: Order = "beyond", ends: int = 10) -> IntArray:
        """Positions of the classes that get a bar, in drawing order."""
        ranked = self.ranked(order)
        if ranked.size <= max(ALL_BARS, 2 * ends):
            return ranked
        return np.concatenate([ranked[:ends], ranked[ranked.size - ends :]])

    def columns(self, order: Order = "beyond") -> Mapping[str, Any]:
        """Return all classes, one row each, in drawing order."""
        low, high = ends_or_nan(self.band, self.value)
        at = self.ranked(order)
        return {
            "class": [self.class_name[i] for i in at],
            "class_index": self.class_index[at],
            "rows": self.rows[at],
            "value": self.value[at],
            "ci_low": self.interval[0][at],
            "ci_high": self.interval[1][at],
            "band_low": low[at],
            "band_high": high[at],
            "beyond": self.beyond[at],
        }

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        order: Order = "beyond",
        ends: int = 10,
        selected: int | None = None,
        beside: Sequence[Overlay[FloatArray]] = (),
    ) -> go.Figure:
        """Draw the figure.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`; on a narrow page the panels are stacked.
        order : {"value", "beyond", "class"}
            Order from top to bottom: "beyond" sorts by the signed distance from the range of a calibrated model
            (ties by the error), "value" by the error, "class" keeps the order of the classes.
        ends : int
            With many classes, number of bars at either end of the order.
        selected : int, optional
            Index of a class to highlight.
        beside : sequence of Overlay
            Errors of all classes in another state, shape (K,) each; nan where there is none.

        Returns
        -------
        plotly.graph_objects.Figure
            Bars and points carry the index of their class as ``customdata``.
        """
        return self._plotly_figure(
            theme, caption, width, order=order, ends=ends, selected=selected, beside=tuple(beside)
        )

    def caption(self) -> tuple[str, ...]:
        """Name; rows and classes; what is drawn: one line each."""
        classes = counted(self.value.size, "class", "classes")
        details = facts(self.split, counted(self.n, "row"), classes)
        return shorten(self.name, NAME_LENGTH), details, TITLES[self.mode]

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
                at = np.flatnonzero(which)
                at = at[np.argsort(-np.abs(self.beyond[at]), kind="stable")]
                names = listed([self.class_name[i] for i in at])
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
        """Say which errors classes with few rows cannot show; "" if all have enough rows."""
        every = self.n if self.mode == "one-vs-rest" else None
        return too_few(self.rows, self.needed, rows_in_all=every)

    def describe(self) -> str:
        """Say in plain words what the bars show."""
        text = f"{TITLES[self.mode]}. {named(self.name, self.split)}, {counted(self.n, 'row')}. {self.shares()}"
        beyond = self.beyond
        if beyond.any():
            worst = int(np.argmax(np.abs(beyond)))
            ends = self.band or (beyond, beyond)
            value, low, high = outside_range(
                float(self.value[worst]), *(float(e[worst]) for e in ends)
            )
            way = _WORDS[self.mode][0] if beyond[worst] > 0 else _WORDS[self.mode][1]
            text += (
                f" Furthest outside is {listed([self.class_name[worst]])}, {value} points "
                f"({counted(int(self.rows[worst]), 'row')}), where a calibrated model shows "
                f"{low} to {high}: {way}."
            )
        if self.missing and self.mode != "one-vs-rest":
            head = "Never predicted" if self.mode == "predicted-class" else "Without rows"
            text += f" {head}: {listed(self.missing)}."
        return text

    def draw(
        self,
        sheet: Sheet,
        *,
        order: Order,
        ends: int,
        selected: int | None,
        beside: tuple[Overlay[FloatArray], ...],
    ) -> Picture:
        """Draw computed errors by class."""
        palette, wide = sheet.palette, not sheet.narrow
        bars = _Bars(self, sheet, self.shown(order, ends), selected, beside)
        curve = _Curve(self, palette, self.ranked(order)) if bars.cut else None
        stacked = curve is not None and sheet.narrow
        inner = bars.height + (_CURVE + 90 if stacked else 0)
        across = [0.0, 0.56] if curve and wide else [0.0, 1.0]
        down = [1 - bars.height / inner, 1.0] if stacked else [0.0, 1.0]
        axes = bars.axes(across, down)
        if curve:
            left = [0.66, 1.0] if wide else [0.0, 1.0]
            axes |= curve.axes(left, [0.0, 1.0] if wide else [0.0, _CURVE / inner])
        titles = 24 if curve else 0
        return sheet.picture(
            [*bars.traces(), *(curve.traces() if curve else ())],
            inner=inner,
            margins=(bars.left, _RIGHT, _TOP + titles, _BOTTOM),
            above=24 if curve else 8,
            air=24 - titles,
            legend_over="container",
            annotations=[*bars.labels(), *(curve.labels() if curve else ())],
            barmode="overlay",
            shapes=[
                # Where mean score and share of hits agree.
                vertical_shape(palette.ink, x=0, width=1.5, xref="x", yref="y domain"),
                *bars.highlight(),
            ],
            **axes,
        )


def headline(views: Iterable[ClassBars]) -> tuple[str, bool]:
    """Say how many classes are outside the range of a calibrated model in each view; also return whether any is."""
    judged = [view for view in views if view.band is not None]
    if not judged:
        return "No class is judged: what a calibrated model would show is not known.", False
    parts = [
        f"{outside:,} of {counted(view.value.size, *_NOUNS[view.mode])}"
        for view in judged
        if (outside := int((view.over | view.under).sum()))
    ]
    if not parts:
        unseen = next((view.unseen for view in judged if view.unseen), "")
        none = "No class is outside the range that a calibrated model would show"
        return f"{none}{_and(unseen)}.", False
    return f"Outside the range that a calibrated model would show: {', '.join(parts)}.", True


def _why_no_range(data: Dataset, requested: bool) -> NoRange:
    if not requested:
        return "left-out"
    if data.clusters is not None:
        return "clusters"
    return "confidence-only" if data.cells is None else "profile"


def _and(more: str) -> str:
    return f"; {more}" if more else ""


_Ends = tuple[FloatArray, FloatArray]


def _interval(sample: Sample, mode: Mode, level: float) -> _Ends:
    if mode != "true-class":
        if sample.data.clusters is not None:
            view = predicted_class_intervals if mode == "predicted-class" else one_vs_rest_intervals
            low, high = sample.view(view, level=level)
        elif mode == "predicted-class":
            low, high = sample.view(predicted_class_sums).interval(level)
        else:
            low, high = sample.view(class_gaps).interval(level)
        # The gamma approximation of a mean of few rows may exceed what a gap can be.
        return np.maximum(low, -1), np.minimum(high, 1)
    errors = true_class_errors_of_sample(sample)
    drawn = resampled(errors, "bootstrap", **sample.redrawing)
    low, high = _quantiles(drawn.mcs, drawn.rows, level)
    return widened(low, high, level, errors, centre=errors.mcs, bounds=(-1, 1))


def _quantiles(values: FloatArray, rows: FloatArray, level: float) -> _Ends:
    """Both quantiles per class over the resamples in which the class has rows: from (B, K) to (K,) each."""
    # Resamples without rows of the class are set to inf, so that they are sorted behind the others.
    ordered = np.sort(np.where(rows > 0, values, np.inf), axis=0)
    some = np.count_nonzero(rows > 0, axis=0)
    ends = []
    for q in ((1 - level) / 2, (1 + level) / 2):
        place = q * np.maximum(some - 1, 0)
        left = place.astype(np.intp)
        right = np.minimum(left + 1, np.maximum(some - 1, 0))
        low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (left, right))
        filled = some > 0
        low, high = (np.where(filled, end, np.nan) for end in (low, high))
        ends.append(low + (place - left) * (high - low))
    return ends[0], ends[1]


# ---- Drawing


#: Height of a bar with the space around it, height of the curve, and margins of the panels, in pixels.
_BAR, _CURVE = 22, 260
_RIGHT, _TOP, _BOTTOM = 16, 12, 54
#: Maximum characters of a class name, and space beside the names in pixels.
_NAME, _BESIDE = 18, 22
#: Legend entries of the colours for errors above and below the range.
LEGEND: dict[str, tuple[str, str]] = {
    "predicted-class": ("Overconfident", "Underconfident"),
    "true-class": ("More confident than if calibrated", "Less confident than if calibrated"),
    "one-vs-rest": ("Too high", "Too low"),
}
#: Maximum number of points on the curve of all classes.
_MOST_POINTS = 2_000
#: Space between the bars of both ends, in bars.
_BREAK = 1.6


@dataclass(frozen=True)
class _Bars:
    """One bar per shown class, the first at the top."""

    figure: ClassBars
    sheet: Sheet
    shown: IntArray
    selected: int | None
    beside: tuple[Overlay[FloatArray], ...]

    @cached_property
    def left(self) -> int:
        """Width of the longest name with its number of rows, in pixels."""
        rows = self.figure.rows[self.shown]
        return name_room(map("{}  n = {:,}".format, self.names, rows), _BESIDE)

    @cached_property
    def names(self) -> list[str]:
        """Short names of the drawn classes."""
        return told_apart((self.figure.class_name[i] for i in self.shown), _NAME)

    @property
    def cut(self) -> bool:
        return self.shown.size < self.figure.value.size

    @cached_property
    def y(self) -> FloatArray:
        """Positions from the top down, with a gap where classes are left out, shape (S,)."""
        place = np.arange(self.shown.size, dtype=np.float64)
        if self.cut:
            place[self.shown.size // 2 :] += _BREAK
        return place

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
                "width": 0.94,
                "marker": {"color": p.calibrated, "line": {"color": p.muted, "width": 1}},
                "name": "Range if calibrated",
                "hoverinfo": "skip",
                "legendrank": 3,
            }
        above, below = LEGEND[f.mode]
        within = "Within the range" if f.band else "Not judged: no range is known"
        kinds = (
            (beyond > 0, above, p.vermillion, "/"),
            (beyond < 0, below, p.purple, "\\"),
            (beyond == 0, within, p.neutral, ""),
        )
        for rank, (which, name, colour, shape) in enumerate(kinds):
            if which.any():
                yield self._bar(which, name, colour, shape) | {"legendrank": rank}
        yield self._intervals()
        for other in self.beside:
            yield self._outlines(other)

    def _outlines(self, other: Overlay[FloatArray]) -> Trace:
        """Draw the errors of the same classes in another state."""
        symbol, _, colour = outline(other.role, self.sheet.palette)
        name = plotly_text(other.name, 44)
        at = self.figure.class_index[self.shown]
        return markers(
            packed(100 * other.content[at]),
            packed(self.y),
            colour,
            size=10,
            symbol=symbol,
            edge=colour,
            name=name,
            customdata=at,
            hovertemplate="%{x:.2f} points<extra>" + name + "</extra>",
            legendrank=5,
            **UNFADED,
        )

    def _bar(self, which: Any, name: str, colour: str, shape: str) -> Trace:
        f, p = self.figure, self.sheet.palette
        chosen = self.shown[which]
        marker: dict[str, Any] = {
            "color": colour if shape else p.tint(colour, 0.55),
            "line": {"color": colour, "width": 1},
        }
        if shape:
            marker["pattern"] = hatched(colour, p, shape=shape, tint=0.25, solidity=0.4)
        return {
            "type": "bar",
            "orientation": "h",
            "y": packed(self.y[which]),
            "x": packed(100 * f.value[chosen]),
            "width": 0.6,
            "customdata": f.class_index[chosen],
            "marker": marker,
            "name": name,
            "hoverinfo": "text",
            "hovertext": [_hover(f, int(i)) for i in chosen],
            **UNFADED,
        }

    def _intervals(self) -> Trace:
        f, at = self.figure, self.shown
        value = f.value[at]
        low, high = (end[at] for end in f.interval)
        has = np.isfinite(low)
        return markers(
            packed(100 * value),
            packed(self.y),
            self.sheet.palette.ink,
            size=5,
            customdata=f.class_index[at],
            error_x=whiskers(
                packed(100 * np.where(has, high - value, 0)),
                packed(100 * np.where(has, value - low, 0)),
                self.sheet.palette.ink,
                thickness=1.5,
                width=3,
            ),
            name=f"{level_text(f.level)} interval",
            showlegend=bool(has.any()),
            hoverinfo="text",
            hovertext=[_hover(f, int(i)) for i in at],
            legendrank=4,
            **UNFADED,
        )

    def highlight(self) -> Iterator[dict[str, Any]]:
        """Draw a frame around the selected class."""
        for i, y in zip(self.shown, self.y, strict=True):
            if self.figure.class_index[i] == self.selected:
                yield frame(
                    self.sheet.palette.ink,
                    xref="x domain",
                    yref="y",
                    x0=0,
                    x1=1,
                    y0=float(y) - 0.5,
                    y1=float(y) + 0.5,
                )

    def labels(self) -> Iterator[dict[str, Any]]:
        """Say how many classes are left out between the two ends, and give the panel a heading."""
        p = self.sheet.palette
        if not self.cut:
            return
        half = self.shown.size // 2
        yield label(
            f"… {counted(self.figure.value.size - self.shown.size, 'class', 'classes')} between …",
            p,
            xref="x domain",
            yref="y",
            x=0.5,
            y=float(self.y[half - 1] + self.y[half]) / 2,
            xanchor="center",
            yanchor="middle",
            bgcolor=p.paper,
            font={"size": 12, "color": p.muted},
        )
        yield heading(f"<b>{half} at either end</b>", p, ("x domain", "y domain"))

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        f, p = self.figure, self.sheet.palette
        names = [
            f'{plotly_text(name)}  <span style="color:{p.muted}">n = {f.rows[i]:,}</span>'
            for name, i in zip(self.names, self.shown, strict=True)
        ]
        last = float(self.y[-1]) if self.y.size else 0
        return {
            "xaxis": axis(
                p,
                _value_title(f, self.sheet.narrow),
                size=12 if self.sheet.narrow else 13,
                domain=across,
                anchor="y",
                nticks=7,
            ),
            "yaxis": axis(
                p,
                domain=down,
                anchor="x",
                range=[last + 0.6, -0.6],
                tickmode="array",
                tickvals=self.y.tolist(),
                ticktext=names,
                showgrid=False,
                tickfont={"size": 12, "color": p.ink},
            ),
        }


@dataclass(frozen=True)
class _Curve:
    """All classes in drawing order, as points."""

    figure: ClassBars
    palette: Palette
    ranked: IntArray

    def traces(self) -> Iterator[Trace]:
        f, p = self.figure, self.palette
        count = self.ranked.size
        some = np.unique(np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(np.intp))
        at, x = self.ranked[some], some + 1.0
        attributes: Trace = {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
        if f.band is not None:
            low, high = (100 * end[at] for end in f.band)
            yield area(x, low, high, p.calibrated, **attributes)
        ends = np.array([1.0, count])
        yield line(ends, np.zeros(2), p.ink, width=1, hoverinfo="skip", **attributes)
        beyond = f.beyond[at]
        kinds = (
            (beyond == 0, p.neutral, "circle-open", 4),
            (beyond > 0, p.vermillion, "triangle-up", 6),
            (beyond < 0, p.purple, "triangle-down", 6),
        )
        for which, colour, symbol, size in kinds:
            if which.any():
                yield markers(
                    packed(x[which]),
                    packed(100 * f.value[at[which]]),
                    colour,
                    symbol=symbol,
                    size=size,
                    customdata=f.class_index[at[which]],
                    text=[plotly_text(f.class_name[i], 24) for i in at[which]],
                    hovertemplate="%{text}: %{y:.2f} points<extra></extra>",
                    **UNFADED,
                    **attributes,
                )

    def labels(self) -> Iterator[dict[str, Any]]:
        text = f"<b>All {counted(self.ranked.size, 'class', 'classes')}</b>"
        yield heading(text, self.palette, ("x2 domain", "y2 domain"))

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        p = self.palette
        count = self.ranked.size
        return {
            "xaxis2": axis(
                p,
                "Place in the order",
                size=13,
                domain=across,
                anchor="y2",
                range=[1 - 0.02 * count, 1.02 * count],
                nticks=5,
            ),
            "yaxis2": axis(p, "Points", size=13, domain=down, anchor="x2", nticks=7),
        }


def _value_title(figure: ClassBars, narrow: bool) -> str:
    rest = figure.mode == "one-vs-rest"
    score, hit = ("probability", "frequency") if rest else ("confidence", "accuracy")
    first = score.capitalize() if narrow else f"Mean {score}"
    return f"{first} − {hit} (points)"


def _hover(f: ClassBars, i: int) -> str:
    low, high = f.interval
    value = float(f.value[i])
    beyond = float(f.beyond[i])
    decimals = decimals_for(100 * value, most=3)
    lines = [
        f"<b>{plotly_text(f.class_name[i], 40)}</b>",
        f"{counted(int(f.rows[i]), 'row')} {'predicted as this' if f.mode == 'predicted-class' else 'with this label'}",
        f"{points(value, decimals)} points",
    ]
    if np.isfinite(low[i]):
        lines.append(
            f"{level_text(f.level)} interval {points(float(low[i]), decimals)} to {points(float(high[i]), decimals)}"
        )
    if f.mode == "one-vs-rest":
        expected = f.n * value + float(f.rows[i])
        lines.append(f"Expected {expected:,.1f} rows, seen {int(f.rows[i]):,}")
    if f.band is not None:
        limits = " to ".join(points(float(end[i]), decimals) for end in f.band)
        where = LEGEND[f.mode][0 if beyond > 0 else 1] if beyond else "Within the range"
        lines += [f"If calibrated: {limits}", where]
    return "<br>".join(lines)

"""Which classes are off: signed errors per class, against what a calibrated model would show."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.figure import FIGURES, FigureSpec, Theme
from calviz.core.predictions import Dataset
from calviz.core.words import counted, decimals_for, listed, percent, points, shorten
from calviz.figures._parts import level_text, points_text
from calviz.numerics import error_bars
from calviz.numerics.class_gaps import class_gaps
from calviz.numerics.error_bars import RESAMPLES
from calviz.numerics.sample import Sample
from calviz.numerics.true_classes import true_class_errors

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Mode = Literal["true-class", "one-vs-rest"]
Order = Literal["value", "beyond", "class"]

#: Up to this many classes have a bar each; of more, the ends of the order do, and a curve shows all.
ALL_BARS = 24
#: An error this small is 0: sums of equal numbers may differ in the last digits.
ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class ClassBars:
    """Signed error per class with its interval and the range of a calibrated model; `plot` draws it.

    Arrays have one entry per class that can have a value, in the order of the classes.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split that is drawn, or None for all rows.
    mode : {"true-class", "one-vs-rest"}
        ``true-class``: mean confidence minus accuracy of the rows whose true label is the class (Ao's cwMCS).
        ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.
    level : float
        Level of intervals and ranges.
    n : int
        Number of rows.
    class_index : ndarray of int, shape (C,)
        The class.
    class_name : tuple of str
    rows : ndarray of int, shape (C,)
        Rows whose true label is the class.
    value : ndarray, shape (C,)
        The error; above 0 the class is overconfident, or its probability too high.
    interval : (ndarray, ndarray), shape (C,) each
        Bootstrap interval; ``nan`` where resampling changes nothing.
    band : (ndarray, ndarray) or None, shape (C,) each
        Where the error of a calibrated model falls, each class for itself. For ``true-class`` it is not
        centred at 0: among the rows of a class, those that are predicted wrong are over-represented.
    missing : tuple of str
        Classes without rows, which have no value for ``true-class``.

    References
    ----------
    Ao et al. 2023, eq. 5 and section 5 (cwMCS); Gupta et al. 2021, eq. 2 (one-vs-rest).
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

    @classmethod
    def compute(
        cls,
        data: Dataset,
        *,
        mode: Mode = "true-class",
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
        resamples: int = RESAMPLES,
    ) -> Self:
        """Compute the errors of all classes, resample the rows and redraw the labels.

        Parameters
        ----------
        data : Predictions or ConfidencePredictions
        mode : {"true-class", "one-vs-rest"}
            What "the error of a class" is.
        level : float
            Level of intervals and ranges, between 0 and 1.
        band : bool
            Whether to compute what a calibrated model would show.
        seed : int
            Seed of the resampling.
        split : str, optional
            Only the rows of this split.
        resamples : int
            Behind the intervals and ranges of ``true-class``; fewer are quicker with many rows.

        Raises
        ------
        NotAvailable
            For data that do not name the true classes, and one-vs-rest without all probabilities.
        OptionError, InputError
            As `calviz.evaluate` does.
        """
        chosen = data if split is None else data.split(split)
        return cls.of_sample(
            Sample(chosen),
            mode=mode,
            level=level,
            band=band,
            seed=seed,
            split=split,
            resamples=resamples,
        )

    @classmethod
    def of_sample(
        cls,
        sample: Sample,
        *,
        mode: Mode = "true-class",
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
        resamples: int = RESAMPLES,
    ) -> Self:
        """The same, of a sample whose views are shared with the metrics; its reduction does not matter."""
        if not 0 < level < 1:
            raise OptionError(f"'level' must lie between 0 and 1, got {level!r}.")
        if mode not in get_args(Mode):
            raise OptionError(f"'mode' must be true-class or one-vs-rest; got {mode!r}.")
        find = _by_true_class if mode == "true-class" else _one_vs_rest
        rows, value, interval, limits = find(
            sample, level, seed, resamples if band else 0, resamples
        )
        has = rows > 0 if mode == "true-class" else np.ones(rows.shape, dtype=np.bool_)
        names = sample.data.class_names
        low, high = interval
        # No width would claim certainty.
        certain = ~(low < high) | (sample.data.n < 2)
        low, high = (np.where(certain, np.nan, end) for end in (low, high))
        return cls(
            name=sample.data.name,
            split=split,
            mode=mode,
            level=level,
            n=sample.data.n,
            class_index=np.flatnonzero(has),
            class_name=tuple(names[k] for k in np.flatnonzero(has)),
            rows=rows[has].astype(np.int64),
            value=value[has],
            interval=(low[has], high[has]),
            band=None if limits is None else (limits[0][has], limits[1][has]),
            missing=tuple(names[k] for k in np.flatnonzero(rows == 0)),
        )

    @property
    def over(self) -> BoolArray:
        """Classes with an error above 0, shape (C,)."""
        return np.asarray(self.value > ZERO)

    @property
    def under(self) -> BoolArray:
        """Classes with an error below 0, shape (C,)."""
        return np.asarray(self.value < -ZERO)

    @property
    def beyond(self) -> FloatArray:
        """How far the error lies outside the range of a calibrated model, with its sign, shape (C,); 0 inside."""
        if self.band is None:
            return np.zeros(self.value.shape)
        low, high = self.band
        return np.asarray(np.maximum(self.value - high, 0) - np.maximum(low - self.value, 0))

    @property
    def words(self) -> tuple[str, str]:
        """What an error above and below 0 is called."""
        if self.mode == "true-class":
            return "overconfident", "underconfident"
        return "too high", "too low"

    def ranked(self, order: Order = "value") -> IntArray:
        """Positions in the arrays in the order of drawing: by value, by distance beyond the range, or by class."""
        if order not in get_args(Order):
            raise OptionError(f"'order' must be value, beyond or class; got {order!r}.")
        if order == "class":
            return np.arange(self.value.size)
        keys = (-self.value,) if order == "value" else (-self.value, -self.beyond)
        return np.lexsort(keys)

    def shown(self, order: Order = "value", ends: int = 10) -> IntArray:
        """Positions of the classes that have a bar, in the order of drawing."""
        ranked = self.ranked(order)
        if ranked.size <= max(ALL_BARS, 2 * ends):
            return ranked
        return np.concatenate([ranked[:ends], ranked[ranked.size - ends :]])

    def frame(self, order: Order = "value") -> pd.DataFrame:
        """All classes, one row each, in the order of drawing."""
        import pandas as pd

        nothing = np.full(self.value.shape, np.nan)
        low, high = self.band or (nothing, nothing)
        at = self.ranked(order)
        return pd.DataFrame(
            {
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
        )

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        order: Order = "value",
        ends: int = 10,
        selected: int | None = None,
    ) -> go.Figure:
        """Draw it.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put name, split, rows and what is drawn above the bars, or a text to put there instead.
        width : int, optional
            Pixels that the page has for it; on a narrow one the panels stand one above the other.
        order : {"value", "beyond", "class"}
            From top to bottom: by the error, by how far it lies outside the range of a calibrated model, or
            in the order of the classes.
        ends : int
            With many classes, how many bars to draw at either end of the order.
        selected : int, optional
            Index of a class to highlight.

        Returns
        -------
        plotly.graph_objects.Figure
            Bars and points carry the index of their class as ``customdata``.
        """
        from calviz.figures import _class_bars_drawing

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        return _class_bars_drawing.draw(
            self, theme=theme, caption=text, width=width, order=order, ends=ends, selected=selected
        )

    def caption(self) -> tuple[str, ...]:
        """Name; rows and classes; what is drawn: one line each."""
        what = [counted(self.n, "row"), counted(self.value.size, "class", "classes")]
        if self.split is not None:
            what.insert(0, f"split {shorten(self.split)}")
        drawn = (
            "Rows of each true class: mean confidence − accuracy"
            if self.mode == "true-class"
            else "Each class against the rest: mean probability − frequency"
        )
        return shorten(self.name, 60), " · ".join(what), drawn

    def shares(self) -> str:
        """How many classes are over- and underconfident, by how much on average, and how many beyond noise."""
        total = self.value.size
        high, low = self.words
        parts = []
        for which, word in ((self.over, high), (self.under, low)):
            size = (
                f", by {points_text(abs(float(self.value[which].mean())))} on average"
                if which.any()
                else ""
            )
            count = int(which.sum())
            are = "is" if count == 1 else "are"
            parts.append(f"{count:,} ({percent(which.mean(), 0)}) {are} {word}{size}")
        text = f"Of {counted(total, 'class', 'classes')}, {parts[0]}; {parts[1]}."
        if self.band is None:
            return text
        beyond = self.beyond
        up, down = int((beyond > 0).sum()), int((beyond < 0).sum())
        chance = (1 - self.level) * total
        expected = f"about {chance:.0f}" if chance >= 1 else "less than one"
        return (
            f"{text} Outside the {level_text(self.level)} range of a calibrated model: {up:,} {high} "
            f"and {down:,} {low}, where chance alone puts {expected}."
        )

    def describe(self) -> str:
        """Say in plain words what the bars show."""
        where = f", split {shorten(self.split)}" if self.split is not None else ""
        head = self.caption()[-1]
        text = f"{head}. {shorten(self.name, 60)}{where}, {counted(self.n, 'row')}. {self.shares()}"
        beyond = self.beyond
        if beyond.any():
            worst = int(np.argmax(np.abs(beyond)))
            low, high = self.band or (beyond, beyond)
            value = float(self.value[worst])
            decimals = decimals_for(100 * value, 100 * float(beyond[worst]), most=3)
            way = self.words[0] if beyond[worst] > 0 else self.words[1]
            text += (
                f" Furthest outside is {listed([self.class_name[worst]])}, {points(value, decimals)} points "
                f"({counted(int(self.rows[worst]), 'row')}), where a calibrated model shows "
                f"{points(low[worst], decimals)} to {points(high[worst], decimals)}: {way}."
            )
        if self.missing and self.mode == "true-class":
            text += f" Without rows: {listed(self.missing)}."
        return text


_Ends = tuple[FloatArray, FloatArray]
_Found = tuple[FloatArray, FloatArray, _Ends, _Ends | None]


def _by_true_class(sample: Sample, level: float, seed: int, redraws: int, resamples: int) -> _Found:
    view = sample.view(true_class_errors)
    drawn = view.bootstrap(error_bars.stream(seed, "bootstrap"), resamples)
    limits = None
    if redraws:
        with suppress(NotAvailable):  # without all probabilities there are no labels to redraw
            redrawn = view.under_calibration(error_bars.stream(seed, "under_calibration"), redraws)
            limits = _quantiles(redrawn.mcs, redrawn.rows, level)
    return view.rows, view.mcs, _quantiles(drawn.mcs, drawn.rows, level), limits


def _one_vs_rest(sample: Sample, level: float, seed: int, redraws: int, resamples: int) -> _Found:
    view = sample.view(class_gaps)
    return view.rows, view.gap, view.interval(level), view.calibrated(level) if redraws else None


def _quantiles(values: FloatArray, rows: FloatArray, level: float) -> _Ends:
    """Both quantiles per class, (B, K) to (K,) each, of those resamples in which the class has rows."""
    # A class without rows in a resample goes to the end of the order, beyond those that count.
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


FIGURES.register(
    FigureSpec(
        key="class-bars",
        label="Errors by class",
        summary="Mean confidence minus accuracy on the rows of each true class, or mean probability minus "
        "frequency of each class, sorted, with the range that a calibrated model would show.",
        reference="Ao et al. 2023, eq. 5; Gupta et al. 2021, eq. 2",
        compute=ClassBars.compute,
    )
)

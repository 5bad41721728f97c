"""Which classes are off: signed errors per class, against what a calibrated model would show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.figure import FIGURES, FigureSpec, Theme
from calviz.core.predictions import Dataset
from calviz.core.words import counted, listed, outside, shorten
from calviz.numerics import error_bars
from calviz.numerics.class_gaps import class_gaps
from calviz.numerics.class_ranges import ClassView, beyond, class_ranges
from calviz.numerics.error_bars import RESAMPLES
from calviz.numerics.predicted_classes import predicted_class_sums
from calviz.numerics.sample import Sample
from calviz.numerics.true_classes import true_class_errors

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Mode = ClassView
Order = Literal["value", "beyond", "class"]

#: Up to this many classes have a bar each; of more, the ends of the order do, and a curve shows all.
ALL_BARS = 24
#: What is drawn, in words.
DRAWN: dict[Mode, str] = {
    "predicted-class": "Rows predicted as each class: mean confidence − accuracy",
    "true-class": "Rows of each true class: mean confidence − accuracy",
    "one-vs-rest": "Each class against the rest: mean probability − frequency",
}
#: What errors above and below the range of a calibrated model are called.
WORDS: dict[Mode, tuple[str, str]] = {
    "predicted-class": ("overconfident", "underconfident"),
    "true-class": (
        "more confident than a calibrated model would be",
        "less confident than a calibrated model would be",
    ),
    "one-vs-rest": ("too high", "too low"),
}
_NOUNS: dict[Mode, tuple[str, str]] = {
    "predicted-class": ("predicted class", "predicted classes"),
    "true-class": ("true class", "true classes"),
    "one-vs-rest": ("class against the rest", "classes against the rest"),
}


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
    mode : {"predicted-class", "true-class", "one-vs-rest"}
        ``predicted-class``: mean confidence minus accuracy of the rows that are predicted as the class.
        ``true-class``: the same of the rows whose true label is the class (Ao's cwMCS).
        ``one-vs-rest``: mean probability of the class minus its frequency, over all rows.
    level : float
        Level of the intervals.
    n : int
        Number of rows.
    class_index : ndarray of int, shape (C,)
        The class.
    class_name : tuple of str
    rows : ndarray of int, shape (C,)
        Rows that are predicted as the class (``predicted-class``), or whose true label it is.
    value : ndarray, shape (C,)
        The error; what it means depends on the range, which need not hold 0.
    interval : (ndarray, ndarray), shape (C,) each
        Bootstrap interval; ``nan`` where resampling changes nothing.
    band : (ndarray, ndarray) or None, shape (C,) each
        Where the error of a calibrated model falls, adjusted for the number of classes: all of them
        are inside together in all but a few of a thousand files. For ``true-class`` it is not
        centred at 0: among the rows of a class, those that are predicted wrong are over-represented.
    missing : tuple of str
        Classes without rows, which have no value but for ``one-vs-rest``.

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
        """Compute the errors of all classes, their intervals, and what a calibrated model would show.

        Parameters
        ----------
        data : Predictions or ConfidencePredictions
        mode : {"predicted-class", "true-class", "one-vs-rest"}
            What "the error of a class" is.
        level : float
            Level of the intervals, between 0 and 1.
        band : bool
            Whether to compute what a calibrated model would show.
        seed : int
            Seed of the resampling.
        split : str, optional
            Only the rows of this split.
        resamples : int
            Behind the intervals of ``true-class``; fewer are quicker with many rows.

        Raises
        ------
        NotAvailable
            For data that do not name the true or predicted classes, and one-vs-rest without all probabilities.
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
            raise OptionError(f"'mode' must be one of {', '.join(get_args(Mode))}; got {mode!r}.")
        found = sample.view(class_ranges, view=mode)
        rows, has, limits = found.rows, found.has, found.range if band else None
        interval = _interval(sample, mode, level, seed, resamples)
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
            value=found.value[has],
            interval=(low[has], high[has]),
            band=None if limits is None else (limits[0][has], limits[1][has]),
            missing=tuple(names[k] for k in np.flatnonzero(rows == 0)),
        )

    @property
    def beyond(self) -> FloatArray:
        """How far the error lies outside the range of a calibrated model, with its sign, shape (C,); 0 inside."""
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
    def words(self) -> tuple[str, str]:
        """What an error above and below the range of a calibrated model is called."""
        return WORDS[self.mode]

    def ranked(self, order: Order = "beyond") -> IntArray:
        """Positions in the arrays in the order of drawing: by distance beyond the range, by value, or by class."""
        if order not in get_args(Order):
            raise OptionError(f"'order' must be value, beyond or class; got {order!r}.")
        if order == "class":
            return np.arange(self.value.size)
        keys = (-self.value,) if order == "value" else (-self.value, -self.beyond)
        return np.lexsort(keys)

    def shown(self, order: Order = "beyond", ends: int = 10) -> IntArray:
        """Positions of the classes that have a bar, in the order of drawing."""
        ranked = self.ranked(order)
        if ranked.size <= max(ALL_BARS, 2 * ends):
            return ranked
        return np.concatenate([ranked[:ends], ranked[ranked.size - ends :]])

    def frame(self, order: Order = "beyond") -> pd.DataFrame:
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
        order: Order = "beyond",
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
            From top to bottom: by how far the error lies outside the range of a calibrated model (inside
            it, by the error), by the error, or in the order of the classes.
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
        return shorten(self.name, 60), " · ".join(what), DRAWN[self.mode]

    def shares(self) -> str:
        """How many classes are outside the range of a calibrated model, which, and on which side."""
        one, many = _NOUNS[self.mode]
        total = counted(self.value.size, one, many)
        if self.band is None:
            return (
                f"None of {total} is judged: what a calibrated model would show is not known without "
                "the probabilities of all classes."
            )
        parts = []
        for which, word in zip((self.over, self.under), self.words, strict=True):
            count = int(which.sum())
            if count:
                at = np.flatnonzero(which)
                at = at[np.argsort(-np.abs(self.beyond[at]), kind="stable")]
                names = listed([self.class_name[i] for i in at])
                parts.append(f"{count:,} {'is' if count == 1 else 'are'} {word} ({names})")
        if not parts:
            none = f"The one {one} is" if self.value.size == 1 else f"None of {total} is"
            inside = "inside" if self.value.size == 1 else "outside"
            return f"{none} {inside} the range that a calibrated model would show."
        # "Calibrated model" stands in the words of true classes already.
        where = "" if self.mode == "true-class" else ", outside the range of a calibrated model"
        return f"Of {total}, {' and '.join(parts)}{where}."

    def describe(self) -> str:
        """Say in plain words what the bars show."""
        where = f", split {shorten(self.split)}" if self.split is not None else ""
        head = self.caption()[-1]
        text = f"{head}. {shorten(self.name, 60)}{where}, {counted(self.n, 'row')}. {self.shares()}"
        beyond = self.beyond
        if beyond.any():
            worst = int(np.argmax(np.abs(beyond)))
            ends = self.band or (beyond, beyond)
            value, low, high = outside(float(self.value[worst]), *(float(e[worst]) for e in ends))
            way = self.words[0] if beyond[worst] > 0 else self.words[1]
            text += (
                f" Furthest outside is {listed([self.class_name[worst]])}, {value} points "
                f"({counted(int(self.rows[worst]), 'row')}), where a calibrated model shows "
                f"{low} to {high}: {way}."
            )
        if self.missing and self.mode != "one-vs-rest":
            head = "Never predicted" if self.mode == "predicted-class" else "Without rows"
            text += f" {head}: {listed(self.missing)}."
        return text


def headline(views: Iterable[ClassBars]) -> tuple[str, bool]:
    """How many classes are outside the range of a calibrated model in each of some views, and whether any is."""
    judged = [view for view in views if view.band is not None]
    if not judged:
        return "No class is judged: what a calibrated model would show is not known.", False
    outside = [(int((view.over | view.under).sum()), view) for view in judged]
    parts = [
        f"{count:,} of {counted(view.value.size, *_NOUNS[view.mode])}"
        for count, view in outside
        if count
    ]
    if not parts:
        return "No class is outside the range that a calibrated model would show.", False
    return f"Outside the range that a calibrated model would show: {', '.join(parts)}.", True


_Ends = tuple[FloatArray, FloatArray]


def _interval(sample: Sample, mode: Mode, level: float, seed: int, resamples: int) -> _Ends:
    if mode == "predicted-class":
        return sample.view(predicted_class_sums).interval(level)
    if mode == "one-vs-rest":
        return sample.view(class_gaps).interval(level)
    view = sample.view(true_class_errors)
    drawn = view.bootstrap(error_bars.stream(seed, "bootstrap"), resamples)
    return _quantiles(drawn.mcs, drawn.rows, level)


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
        summary="Mean confidence minus accuracy on the rows predicted as each class or of each true class, or mean "
        "probability minus frequency of each class, sorted, with the range that a calibrated model would show.",
        reference="Gupta & Ramdas 2022; Ao et al. 2023, eq. 5; Gupta et al. 2021, eq. 2",
        compute=ClassBars.compute,
    )
)

"""The base classes of figures, and the phrases that their captions and descriptions share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, Self, TypeVar, Unpack

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import METRICS, MetricResult
from calviz.core.errors import DataFrame, OptionError, check_level, data_frame, known_names, visible
from calviz.core.events import BinNumber, Reduction
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import counted, shorten, with_short_class
from calviz.figures.marks import Drawing, Page, Picture, Sheet, drawn
from calviz.sample.error_bars import widened
from calviz.sample.metric_results import Resampling, measured_with_error_bars
from calviz.sample.sample import EventOptions, Sample, shows_options

V = TypeVar("V", bound=Any)
#: Maximum length of the name of the data, in characters.
NAME_LENGTH = 60
#: What figures of a sample are computed from: with a sample, arguments that are left out take its settings.
Data = Dataset | Sample


class Figure(ABC):
    """A computed figure: a frozen dataclass of plain arrays that can describe, tabulate and draw its contents.

    A figure gives the drawn values as a table (`columns` or `frame`), describes them in a sentence (`describe`) and a caption,
    and draws them (`draw`).
    """

    #: Options of `plot` in print.
    print_options: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # The __repr__ of a dataclass would print all arrays; a dataclass keeps one that the class defines already.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Figure.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {visible(self.describe())}>"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        figure: Any = self.plot()
        return figure._repr_mimebundle_(**options)

    def _repr_html_(self) -> str | None:
        figure: Any = self.plot()
        # Notebooks that can render plotly use the MIME bundle above; elsewhere the HTML must be self-contained.
        if figure._repr_mimebundle_():
            return None
        return figure.to_html(full_html=False, include_plotlyjs=True)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: BinNumber | None = None,
        pos_label: Any = None,
        class_names: Sequence[Any] | None = None,
        kind: Literal["probabilities", "logits"] = "probabilities",
        name: str = "predictions",
        **options: Any,
    ) -> Self:
        """Compute the figure from labels and probabilities, like scikit-learn's displays.

        Parameters
        ----------
        y_true, y_prob, pos_label, class_names, kind, name
            See `calviz.Predictions.from_arrays`.
        n_bins : int, optional
            The option `bins` under its scikit-learn name.
        **options
            Options of ``compute``.

        Raises
        ------
        OptionError, InputError
            If the figure is not computed from predictions, has no such option, or the arrays are invalid.

        Examples
        --------
        >>> import calviz
        >>> figure = calviz.figures.Reliability.from_predictions([0, 1, 1, 1], [0.2, 0.4, 0.6, 0.9], n_bins=2)
        >>> figure.frame()["rows"].tolist()
        [2, 2]
        """
        compute_options = cls._options(options, n_bins)
        data = Predictions.from_arrays(
            y_true, y_prob, pos_label=pos_label, class_names=class_names, kind=kind, name=name
        )
        return cls.compute(data, **compute_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: BinNumber | None = None,
        pos_label: Any = None,
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Compute the figure from the predictions of a fitted classifier for X.

        Parameters
        ----------
        estimator, X, y, pos_label, response_method, name
            See `calviz.Predictions.from_estimator`.
        n_bins, **options
            See `from_predictions`.

        Raises
        ------
        OptionError, InputError
            Under the same conditions as in `from_predictions`, and if the estimator gives no scores.
        """
        compute_options = cls._options(options, n_bins)
        data = Predictions.from_estimator(
            estimator, X, y, pos_label=pos_label, response_method=response_method, name=name
        )
        return cls.compute(data, **compute_options)

    @classmethod
    def _options(cls, options: dict[str, Any], n_bins: BinNumber | None) -> dict[str, Any]:
        """Return the options of `compute`; raise OptionError if it does not take predictions or has no such option."""
        first, *known = signature(cls.compute).parameters
        if first != "data":
            raise OptionError(
                f"{cls.__name__} is not drawn from one set of predictions: {cls.__name__}.compute takes '{first}'."
            )
        chosen = options if n_bins is None else {"bins": n_bins} | options
        if wrong := sorted(set(chosen) - set(known)):
            raise OptionError(
                f"{cls.__name__} has no option '{wrong[0]}'; {known_names(wrong[0], sorted(known))}."
            )
        return chosen

    @classmethod
    def compute(cls, *args: Any, **options: Any) -> Self:
        """Compute the figure; each has its own arguments."""
        raise NotImplementedError

    @abstractmethod
    def describe(self) -> str:
        """Say in one or two plain sentences what the figure shows (alternative text)."""

    def caption(self) -> tuple[str, ...]:
        """Return the lines of the caption: name; what is drawn; the main number."""
        return ()

    def columns(self) -> Mapping[str, Any]:
        """Return the drawn values by column name."""
        raise NotImplementedError

    def frame(self, *args: Any, **options: Any) -> DataFrame:
        """Return exactly the drawn values as a table; arguments are those of `columns`."""
        return data_frame(dict(self.columns(*args, **options)))

    def plot(self, **page: Unpack[Page]) -> Drawing:
        """Draw the figure.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put the figure's caption above it, or a text to use instead; not by default.
        width : int, optional
            Width available on the page, in pixels.
        """
        return drawn(self.draw(self.sheet(**page)))

    def draw(self, sheet: Sheet) -> Picture:
        """Return traces and a layout as plain dicts, with the colours and the width of a sheet.

        A figure whose drawing has options takes these by `plot`, and draws there.
        """
        raise NotImplementedError

    def printed(self) -> Self:
        """The figure without what print leaves out (`calviz.figures.style.printed`)."""
        return self

    def sheet(self, **page: Unpack[Page]) -> Sheet:
        """What the figure is drawn on; see `plot`."""
        return Sheet.of(self.caption, **page)


def end_columns(
    name: str, band: tuple[FloatArray, FloatArray] | None, like: FloatArray | IntArray
) -> dict[str, FloatArray]:
    """Return the ends of a band as the columns "..._low" and "..._high", shape (G,) as that of `like`; nan if there is no band."""
    low, high = band or np.full((2, *like.shape), np.nan)
    return {f"{name}_low": low, f"{name}_high": high}


def pointwise(
    drawn: FloatArray,
    level: float,
    view: Any = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> tuple[FloatArray, FloatArray]:
    """Pointwise percentile interval of curves, shape (B, P), drawn from a view; shape (P,) each (see `widened`)."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return widened(low, high, level, view, centre=drawn.mean(axis=0), bounds=bounds)


def measured_at(sample: Sample, key: str, level: float) -> MetricResult:
    """A metric with its interval at a level, the same as in an evaluation."""
    how = Resampling(True, False, level, "own", **sample.redrawing)
    return measured_with_error_bars(sample, [METRICS[key]], {}, how)[key]


def named(name: str, split: str | None) -> str:
    """Name the data in a sentence: name and split."""
    return shorten(name, NAME_LENGTH) + (f", split {shorten(split)}" if split is not None else "")


def facts(split: str | None, *details: str) -> str:
    """Return one line of a caption: the split, then the other facts."""
    return " · ".join([f"split {shorten(split)}"] * (split is not None) + list(details))


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleFigure(Figure):
    """A figure of the rows of a sample.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split shown, or None for all rows.
    n : int
        Number of rows.
    """

    name: str
    split: str | None
    n: int

    @classmethod
    def _fields(cls, sample: Sample, **more: Any) -> dict[str, Any]:
        """Return the fields that a sample has, and more."""
        return {"name": sample.data.name, "split": sample.split, "n": sample.data.rows, **more}

    def _head(self, *details: str) -> tuple[str, str]:
        """Return the first lines of the caption: the name; split, rows and other facts."""
        return shorten(self.name, NAME_LENGTH), facts(self.split, counted(self.n, "row"), *details)

    @property
    def _subject(self) -> str:
        """The rows in a sentence."""
        return f"{named(self.name, self.split)}, {counted(self.n, 'row')}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreFigure(SampleFigure):
    """A figure of the scores and hits of a sample, with bands or intervals.

    Attributes
    ----------
    name, split, n
        See `SampleFigure`.
    reduction : Reduction
        Defines score and hit.
    level : float
        Level of bands (pointwise) and intervals.
    """

    reduction: Reduction
    level: float

    @classmethod
    def _fields(cls, sample: Sample, **more: Any) -> dict[str, Any]:
        return super()._fields(sample, reduction=sample.reduction, **more)

    def _head(self, *details: str) -> tuple[str, str]:
        return super()._head(with_short_class(self.reduction).label, *details)

    @property
    def _scored(self) -> str:
        """The rows and their score in a sentence."""
        reduction, rows = with_short_class(self.reduction).label, counted(self.n, "row")
        return f"{named(self.name, self.split)}: {reduction}, {rows}"


class ResampledFigure(ScoreFigure):
    """A score figure that has no options of its own."""

    @classmethod
    @shows_options
    def compute(cls, data: Data, *, level: float = 0.95, **options: Unpack[EventOptions]) -> Self:
        """Compute the figure.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        level : float
            Level of bands and intervals, between 0 and 1.
        seed, resamples : int
            Seed and number of the resamples.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(data, **options)
        return cls._from_sample(sample, level, cls._fields(sample, level=level))

    @classmethod
    @abstractmethod
    def _from_sample(cls, sample: Sample, level: float, fields: dict[str, Any]) -> Self:
        """Compute the figure of a sample; `fields` holds those of `ScoreFigure`."""

"""What every figure has: a table of what is drawn, a sentence, a caption, and a drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self

from calviz.core.errors import OptionError, visible
from calviz.core.extra_packages import needs
from calviz.core.options import check_choice
from calviz.core.predictions import Predictions
from calviz.figures.drawing.sheet import Sheet
from calviz.figures.drawing.style import PALETTES
from calviz.specs.figure import Theme
from calviz.text.words import shorten

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

#: Characters of a name that is not the user's own words.
NAME = 60


class Figure(ABC):
    """A computed figure: a frozen dataclass of plain arrays that can say, tabulate and draw what it holds.

    A figure says what is drawn (`columns` or `frame`), in a sentence (`describe`) and as a caption, and draws it: by its
    method ``draw(sheet)``, or, where that is long, by the function ``draw(figure, sheet)`` of the file of the same name in
    ``calviz/figures/drawing``. Both give traces and a layout as plain dicts.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A dataclass would write out its arrays; one that is there already it leaves alone.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Figure.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {visible(self.describe())}>"

    def _repr_mimebundle_(self, **asked: Any) -> dict[str, Any]:
        return _bundle(self.plot(), **asked)

    def _repr_html_(self) -> str | None:
        drawn = self.plot()
        # A notebook that knows plotly gets its own form, see above; elsewhere the page has to hold all that it needs.
        if _bundle(drawn):
            return None
        page: str = drawn.to_html(full_html=False, include_plotlyjs=True)
        return page

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int | None = None,
        pos_label: Any = None,
        class_names: Sequence[Any] | None = None,
        kind: Literal["probabilities", "logits"] = "probabilities",
        name: str = "predictions",
        **options: Any,
    ) -> Self:
        """Compute the figure of labels and probabilities, as scikit-learn's displays are made.

        Parameters
        ----------
        y_true, y_prob, pos_label, class_names, kind, name
            As of `calviz.Predictions.from_arrays`.
        n_bins : int, optional
            The option `bins`, as scikit-learn calls it.
        **options
            Of ``compute``.

        Raises
        ------
        OptionError, InputError
            Where the figure is not drawn of predictions, has no such option, or the arrays do not fit.

        Examples
        --------
        >>> import calviz
        >>> figure = calviz.figures.Reliability.from_predictions([0, 1, 1, 1], [0.2, 0.4, 0.6, 0.9], n_bins=2)
        >>> figure.frame()["rows"].tolist()
        [2, 2]
        """
        how = cls._options(options, n_bins)
        made = Predictions.from_arrays(
            y_true, y_prob, pos_label=pos_label, class_names=class_names, kind=kind, name=name
        )
        return cls._computed(made, how)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int | None = None,
        pos_label: Any = None,
        response_method: Literal["predict_proba", "decision_function"] = "predict_proba",
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Compute the figure of what a fitted classifier says of X.

        Parameters
        ----------
        estimator, X, y, pos_label, response_method, name
            As of `calviz.Predictions.from_estimator`.
        n_bins, **options
            As of `from_predictions`.

        Raises
        ------
        OptionError, InputError
            As `from_predictions`, and where the estimator gives no scores.
        """
        how = cls._options(options, n_bins)
        made = Predictions.from_estimator(
            estimator, X, y, pos_label=pos_label, response_method=response_method, name=name
        )
        return cls._computed(made, how)

    @classmethod
    def _options(cls, options: dict[str, Any], n_bins: int | None) -> dict[str, Any]:
        """The options of `compute`; raises OptionError where the figure is not drawn of predictions, or has no such option."""
        first, *known = signature(cls._compute()).parameters
        if first != "data":
            raise OptionError(
                f"{cls.__name__} is not drawn of one set of predictions: {cls.__name__}.compute takes '{first}'."
            )
        asked = options if n_bins is None else {"bins": n_bins} | options
        if wrong := sorted(set(asked) - set(known)):
            raise OptionError(
                f"{cls.__name__} has no option '{wrong[0]}'; known: {', '.join(sorted(known))}."
            )
        return asked

    @classmethod
    def _compute(cls) -> Callable[..., Self]:
        compute: Callable[..., Self] = cls.compute  # type: ignore[attr-defined]  # each figure has its own arguments
        return compute

    @classmethod
    def _computed(cls, data: Predictions, options: dict[str, Any]) -> Self:
        return cls._compute()(data, **options)

    @abstractmethod
    def describe(self) -> str:
        """Say in one or two plain sentences what the figure shows (alternative text)."""

    def caption(self) -> tuple[str, ...]:
        """The caption of a picture, one text per line: name; what is drawn; the number."""
        return ()

    def columns(self) -> Mapping[str, Any]:
        """What is drawn, by the name of its column."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """Exactly what is drawn, as a table."""
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(dict(self.columns()))

    def plot(
        self, *, theme: Theme = "light", caption: bool | str = False, width: int | None = None
    ) -> go.Figure:
        """Draw it.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put the figure's caption above it, or a text to put there instead.
        width : int, optional
            Pixels that the page has for it.
        """
        return self._drawn(theme, caption, width)

    def _drawn(
        self,
        theme: Theme,
        caption: bool | str = False,
        width: int | None = None,
        *,
        how: str = "draw",
        **options: Any,
    ) -> go.Figure:
        """Draw it by its own method, or by the function of that name in its drawing's file."""
        check_choice("theme", theme, tuple(PALETTES))
        needs("plotly")
        import plotly.graph_objects as go

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        draw = getattr(type(self), how, None)
        if draw is None:
            package, _, file = type(self).__module__.rpartition(".")
            draw = getattr(import_module(f"{package}.drawing.{file}"), how)
        return go.Figure(**draw(self, Sheet(PALETTES[theme], text, width), **options))


def _bundle(drawn: Any, **asked: Any) -> dict[str, Any]:
    """What plotly gives a notebook that knows it; empty elsewhere."""
    bundle: dict[str, Any] = drawn._repr_mimebundle_(**asked)
    return bundle


def named(name: str, split: str | None) -> str:
    """What is drawn, in a sentence: its name, and the split."""
    return shorten(name, NAME) + (f", split {shorten(split)}" if split is not None else "")


def facts(split: str | None, *what: str) -> str:
    """One line of a caption: the split, then the other facts."""
    return " · ".join([f"split {shorten(split)}"] * (split is not None) + list(what))

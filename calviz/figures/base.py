"""What every figure has: a table of what is drawn, a sentence, a caption, and a drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
        import plotly.graph_objects as go

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        draw = getattr(type(self), how, None)
        if draw is None:
            package, _, file = type(self).__module__.rpartition(".")
            draw = getattr(import_module(f"{package}.drawing.{file}"), how)
        return go.Figure(**draw(self, Sheet(PALETTES[theme], text, width), **options))


def named(name: str, split: str | None) -> str:
    """What is drawn, in a sentence: its name, and the split."""
    return shorten(name, NAME) + (f", split {shorten(split)}" if split is not None else "")


def facts(split: str | None, *what: str) -> str:
    """One line of a caption: the split, then the other facts."""
    return " · ".join([f"split {shorten(split)}"] * (split is not None) + list(what))

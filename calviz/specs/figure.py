"""What a figure is, and the registry of figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from calviz.core.metric import Parameter, parameters_of
from calviz.core.registry import Registry

if TYPE_CHECKING:
    import pandas as pd

Theme = Literal["light", "dark"]


class Figure(Protocol):
    """A computed figure, plain arrays: `frame` is what is drawn, `plot` draws it."""

    def frame(self) -> pd.DataFrame:
        """Exactly what is drawn, as a table."""
        ...

    def plot(self, *, theme: Theme = "light") -> Any:
        """Return a plotly figure; the only place that touches plotly."""
        ...

    def describe(self) -> str:
        """One or two sentences that say what the figure shows (alternative text)."""
        ...


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure.

    Attributes
    ----------
    key : str
        The stable name by which it is asked for.
    label : str
        What it is called on screen.
    summary : str
        What it shows, in one or two plain sentences.
    reference : str
        The source.
    compute : callable
        ``compute(data, **parameters)`` gives the figure; its keyword-only parameters are the user's.
    """

    key: str
    label: str
    summary: str
    reference: str
    compute: Callable[..., Figure]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a user may set."""
        return parameters_of(self.compute)


FIGURES: Registry[FigureSpec] = Registry("figure", "calviz.figures")

"""What a figure is, and the registry of figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import pandas as pd

from calviz.core.metric import Parameter, parameters_of
from calviz.core.predictions import Dataset
from calviz.core.registry import Registry

Theme = Literal["light", "dark"]


class Figure(Protocol):
    """A computed figure: `compute` makes it, `frame` is what is drawn, `plot` draws it."""

    @classmethod
    def compute(cls, data: Dataset, **params: Any) -> Self:
        """Compute plain arrays from predictions."""
        ...

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
    """A registered figure."""

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

"""What a registered figure is, and the registry of figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from calviz.specs.metric import Parameter, parameters_of, takes_weights
from calviz.specs.registry import Registry

Theme = Literal["light", "dark"]

T = TypeVar("T", bound=type[Any])


@dataclass(frozen=True)
class FigureSpec:
    """A registered figure.

    Attributes
    ----------
    key : str
        The stable name by which it is requested.
    label : str
        The name on screen.
    summary : str
        What it shows, in one or two plain sentences.
    reference : str
        The source.
    compute : callable
        ``compute(data, **parameters)`` returns the figure (see `calviz.figures.base.Figure`); its keyword-only parameters are
        those that a user may set.
    """

    key: str
    label: str
    summary: str
    reference: str
    compute: Callable[..., Any]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a user may set."""
        return parameters_of(self.compute)


FIGURES: Registry[FigureSpec] = Registry("figure")


def figure(*, key: str, label: str, summary: str, reference: str) -> Callable[[T], T]:
    """Register a figure class, whose ``compute`` makes the figure (see `FigureSpec`).

    The views that it is made from refuse weighted rows and profiles where they do not support them; the figure itself does not.
    """

    def register(cls: T) -> T:
        takes_weights(cls.compute.__func__)
        FIGURES.register(FigureSpec(key, label, summary, reference, cls.compute))
        return cls

    return register

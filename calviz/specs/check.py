"""What a check is, and the registry of checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from calviz.core.finding import Finding
from calviz.core.predictions import Dataset
from calviz.specs.registry import Registry

About = Literal["scores", "bins", "classes", "slices"]


@dataclass(frozen=True)
class Check:
    """A rule that examines a sample and may yield findings.

    Attributes
    ----------
    key : str
        The stable code of its findings ("CAL003").
    title : str
        What it looks for.
    run : callable
        ``run(sample)`` yields findings.
    reference : str
        The publication that it comes from, if any.
    about : {"scores", "bins", "classes", "slices"}
        What its findings are about, which determines where more about them is shown.
    clusters, weights : bool
        Whether it is valid for clustered rows, and for weighted rows: a test for independent rows is not, and is
        then skipped.
    cells : bool
        Whether it is valid for a profile, even if it is not for weights.
    """

    key: str
    title: str
    run: Callable[..., Iterable[Finding]]
    reference: str = ""
    about: About = "scores"
    clusters: bool = False
    weights: bool = False
    cells: bool = False

    def takes(self, data: Dataset) -> bool:
        """Whether the check is valid for these data."""
        alike = data.weights is None or (self.cells and data.cells is not None)
        return (self.clusters or data.clusters is None) and (self.weights or alike)


CHECKS: Registry[Check] = Registry("check")

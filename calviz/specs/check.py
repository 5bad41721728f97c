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
    """A rule that looks at a sample and may have something to say.

    Attributes
    ----------
    key : str
        The stable code of its findings ("CAL003").
    title : str
        What it looks for.
    run : callable
        ``run(sample)`` yields findings.
    reference : str
        The publication that it is from, if any.
    about : {"scores", "bins", "classes", "slices"}
        What its findings are about, which says where more of it is shown.
    clusters, weights : bool
        Whether it is right for rows that belong to clusters, and for rows with weights: a test of independent rows is not, and
        is not asked then.
    cells : bool
        Whether it may be asked of a profile, although not of weights.
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
        """Whether it may be asked of such rows."""
        alike = data.weights is None or (self.cells and data.cells is not None)
        return (self.clusters or data.clusters is None) and (self.weights or alike)


CHECKS: Registry[Check] = Registry("check")

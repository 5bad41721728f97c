"""Common base of figures of one (score, hit) pair: their fields and their ``compute``."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from calviz.core.options import check_level
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import Figure
from calviz.sample.sample import Sample


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreFigure(Figure):
    """A figure of the scores and hits of a sample, with a band or an interval.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split shown, or None for all rows.
    reduction : Reduction
        Defines score and hit.
    n : int
        Number of rows.
    level : float
        Level of bands (pointwise) and intervals.
    """

    name: str
    split: str | None
    reduction: Reduction
    n: int
    level: float

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        level: float = 0.95,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
    ) -> Self:
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
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed, resamples=resamples)
        return cls._from_sample(sample, level=level, **_common_fields(sample))

    @classmethod
    @abstractmethod
    def _from_sample(cls, sample: Sample, *, level: float, **common_fields: Any) -> Self:
        """Compute the figure of a sample; `common_fields` holds the other fields of this class."""


def _common_fields(sample: Sample) -> dict[str, Any]:
    return {
        "name": sample.data.name,
        "split": sample.split,
        "reduction": sample.reduction,
        "n": sample.data.rows,
    }

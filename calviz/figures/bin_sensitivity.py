"""How much the ECE depends on the number of bins, and how much of it is noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.options import check_level
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import Figure, named, score_lines
from calviz.figures.kernels.bin_sweep import bin_sweep
from calviz.sample.binning import Scheme
from calviz.sample.error_bars import stream
from calviz.sample.sample import Sample
from calviz.specs.figure import figure
from calviz.specs.metric import takes_weights
from calviz.text.words import (
    counted,
    percent,
    points,
    points_decimals,
    points_text,
)

Placed = Literal["equal-width", "equal-mass"]

#: Maximum number of resamples for the noise floors, as each is evaluated for all numbers of bins.
MOST_RESAMPLES = 400


@dataclass(frozen=True, eq=False)
class FloorByBins:
    """Distribution of the ECE of a calibrated model, per number of bins, shape (M,) each.

    Attributes
    ----------
    mean, high : ndarray
        Mean, and quantile at `level`.
    """

    mean: FloatArray
    high: FloatArray


@figure(
    key="bin-sensitivity",
    label="ECE by number of bins",
    summary="The ECE for 1 to 100 bins of equal width and of equal mass, above what a calibrated model would show "
    "on the same number of rows.",
    reference="Guo et al. 2017, eq. 3; Roelofs et al. 2022",
)
@dataclass(frozen=True, eq=False)
class BinSensitivity(Figure):
    """The ECE for 1 to 100 bins of equal width and of equal mass; `plot` draws it.

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
    bins : int
        The chosen number of bins, marked in the drawing.
    scheme : {"equal-width", "equal-mass"}
        The chosen scheme, whose noise floor is drawn.
    level : float
        Level of the noise floor.
    counts : ndarray of int, shape (M,)
        1, 2, ..., M.
    ece : mapping of scheme to ndarray, shape (M,)
    floor : mapping of scheme to Floor
        Empty if not requested.

    References
    ----------
    Guo et al. 2017, eq. 3; Roelofs et al. 2022 (dependence on the number of bins).
    """

    name: str
    split: str | None
    reduction: Reduction
    n: int
    bins: int
    scheme: Placed
    level: float
    counts: IntArray
    ece: dict[Placed, FloatArray]
    floor: dict[Placed, FloorByBins]

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        bins: int | None = None,
        scheme: Scheme | None = None,
        most: int = 100,
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Compute the ECE for every number of bins, and its noise floor from redrawn hits.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        bins : int
            The number of bins to mark.
        scheme : {"equal-width", "equal-mass", "sturges"}
            The scheme to mark; ``sturges`` counts as bins of equal width.
        most : int
            The largest number of bins.
        level : float
            Level of the noise floor, between 0 and 1.
        band : bool
            Whether to compute the noise floor.
        seed, resamples : int
            Seed and number (at most 400) of the resamples with redrawn hits.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(
            data,
            split=split,
            reduction=reduction,
            bins=bins,
            scheme=scheme,
            seed=seed,
            resamples=resamples,
        )
        redrawing = sample.but(resamples=min(MOST_RESAMPLES, sample.resamples)).redrawing
        ece: dict[Placed, FloatArray] = {}
        floor: dict[Placed, FloorByBins] = {}
        for placed in get_args(Placed):
            sweep = sample.view(bin_sweep, scheme=placed, most=most)
            ece[placed] = sweep.ece()
            if band:
                floor[placed] = sample.view(
                    _floor, scheme=placed, most=most, level=level, **redrawing
                )
        return cls(
            name=sample.data.name,
            split=sample.split,
            reduction=sample.reduction,
            n=sample.data.rows,
            bins=sample.bins_used,
            scheme="equal-mass" if sample.scheme == "equal-mass" else "equal-width",
            level=level,
            counts=np.arange(1, most + 1),
            ece=ece,
            floor=floor,
        )

    @property
    def chosen(self) -> float | None:
        """ECE at the chosen number of bins; None if that number is not drawn."""
        if not 1 <= self.bins <= self.counts.size:
            return None
        return float(self.ece[self.scheme][self.bins - 1])

    def columns(self) -> Mapping[str, Any]:
        """One row per number of bins."""
        columns: dict[str, FloatArray | IntArray] = {"bins": self.counts}
        for placed in get_args(Placed):
            key = placed.replace("-", "_")
            columns[f"ece_{key}"] = self.ece[placed]
            if placed in self.floor:
                columns[f"floor_mean_{key}"] = self.floor[placed].mean
                columns[f"floor_high_{key}"] = self.floor[placed].high
        return columns

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn: one line each."""
        return *score_lines(self.name, self.split, self.n, self.reduction), "ECE by number of bins"

    def describe(self) -> str:
        """Say in plain words how much the choice of bins matters."""
        of = named(self.name, self.split)
        return f"ECE of {of} by number of bins, {counted(self.n, 'row')}. {self.reading()}"

    def reading(self) -> str:
        """Return the description without the name of the data: the range of the ECE, and how much of it is noise."""
        if self.n == 1:
            return "A single row is in one bin, however many there are, and says nothing about calibration."
        every = np.stack(list(self.ece.values()))
        values = every[:, 1:] if self.counts.size > 1 else every
        low, high = float(values.min()), float(values.max())
        decimals = points_decimals(low, high)
        ends = points(low, decimals), points(high, decimals)
        where = f"goes from {ends[0]} to {ends[1]}" if ends[0] != ends[1] else f"is {ends[0]}"
        parts = [
            f"From 2 to {self.counts.size:,} bins of equal width or equal mass the ECE {where} points.",
        ]
        if self.chosen is not None:
            kind = counted(self.bins, f"{self.scheme} bin")
            parts.append(f"With {kind} it is {points_text(self.chosen)}.")
        if self.floor:
            inside = np.concatenate([self.ece[s] <= self.floor[s].high for s in self.floor])
            parts.append(_verdict(float(inside.mean())))
        return " ".join(parts)


@takes_weights
def _floor(
    sample: Sample, *, scheme: Placed, most: int, level: float, seed: int, resamples: int
) -> FloorByBins:
    sweep = sample.view(bin_sweep, scheme=scheme, most=most)
    redrawn_ece = sweep.under_calibration(stream(seed, "under_calibration"), resamples)
    return FloorByBins(redrawn_ece.mean(axis=0), np.quantile(redrawn_ece, level, axis=0))


def _verdict(inside: float) -> str:
    if inside == 0:
        return "It lies above what noise explains for every number of bins."
    if inside > 0.9:
        return "For nearly every number of bins noise explains it."
    return (
        f"For {percent(inside, 0)} of these binnings noise explains it: the choice of bins decides."
    )

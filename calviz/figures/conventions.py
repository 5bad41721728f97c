"""The "ECE" of the same predictions as different libraries define it, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, facts, named
from calviz.peers import measure
from calviz.sample.binning import Scheme
from calviz.sample.sample import Sample
from calviz.specs.convention import Conventions
from calviz.specs.figure import figure
from calviz.text.words import (
    SINGLE_ROW,
    counted,
    points,
    points_decimals,
    shorten,
    with_short_class,
)


class LibraryEce(NamedTuple):
    """A row of the picture: library, function, ECE, and mean ECE of a calibrated model."""

    library: str
    call: str
    value: float
    noise: float


@figure(
    key="conventions",
    label="ECE by library",
    summary="The same predictions' ECE as other libraries define it by default, above what each would show for a "
    "calibrated model on the same number of rows.",
    reference="Nixon et al. 2019; Roelofs et al. 2022 (dependence on the definition)",
)
@dataclass(frozen=True, eq=False)
class EceByLibrary(Figure):
    """One dot per convention, the largest value first; `plot` draws it.

    Attributes
    ----------
    conventions : Conventions
        All values, including those that are not available.
    dots : tuple of LibraryEce
        The drawn values, including calviz's own ECE.
    """

    conventions: Conventions
    dots: tuple[LibraryEce, ...]

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        bins: int | None = None,
        scheme: Scheme | None = None,
        band: bool = True,
        seed: int | None = None,
        split: str | None = None,
    ) -> Self:
        """Compute the values and, if the data are not too large, their means under calibration.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        bins, scheme
            Bins of calviz's own ECE.
        band : bool
            Whether to compute the means under calibration.
        seed : int
            Seed of the redrawn labels.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.conventions`.
        """
        sample = Sample.of(
            data, split=split, reduction=reduction, bins=bins, scheme=scheme, seed=seed
        )
        return cls.of(sample.once(measure, noise=band))

    @classmethod
    def of(cls, conventions: Conventions) -> Self:
        """Create the figure from computed values."""
        dots = [LibraryEce("calviz", "ece", conventions.ece, conventions.noise)]
        dots += [
            LibraryEce(v.convention.library, v.convention.call, v.value, v.noise)
            for v in conventions
            if v.available
        ]
        return cls(conventions, tuple(sorted(dots, key=lambda dot: -dot.value)))

    def columns(self) -> Mapping[str, Any]:
        """One row per dot."""
        values = list(zip(*self.dots, strict=True))
        return dict(zip(("library", "call", "value", "noise_mean"), values, strict=True))

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn: one line each."""
        c = self.conventions
        reduction = with_short_class(Reduction.of(c.reduction)).label
        details = facts(c.split, counted(c.rows, "row"), reduction)
        return shorten(c.name, NAME_LENGTH), details, "ECE by library"

    def describe(self) -> str:
        """Say in plain words how far apart the conventions are."""
        low, high = self.dots[-1], self.dots[0]
        decimals = points_decimals(low.value, high.value, self.conventions.ece)
        text = (
            f"ECE of {named(self.conventions.name, self.conventions.split)} by the defaults of different libraries: from "
            f"{points(low.value, decimals)} points ({low.library}, {low.call}) to "
            f"{points(high.value, decimals)} points ({high.library}, {high.call}); calviz "
            f"{points(self.conventions.ece, decimals)} points"
        )
        if self.conventions.rows == 1:
            return f"{text}. {SINGLE_ROW}"
        if math.isnan(self.conventions.noise):
            return f"{text}."
        return (
            f"{text}, where a calibrated model would show {points(self.conventions.noise, decimals)} "
            "on average."
        )

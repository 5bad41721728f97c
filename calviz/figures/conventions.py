"""The same predictions' "ECE" as different libraries define it, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

from calviz.core.convention import Conventions
from calviz.core.figure import FIGURES, FigureSpec, Theme
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.words import counted, decimals_for, points, shorten
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample
from calviz.peers import measure

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class Dot(NamedTuple):
    """A row of the picture: whose ECE, by which function, its value and its mean if calibrated."""

    library: str
    call: str
    value: float
    noise: float


@dataclass(frozen=True, eq=False)
class ConventionDots:
    """One dot per convention, the largest value first; `plot` draws it.

    Attributes
    ----------
    conventions : Conventions
        All values, those that are not available included.
    dots : tuple of Dot
        What is drawn, calviz's own ECE among them.
    """

    conventions: Conventions
    dots: tuple[Dot, ...]

    @classmethod
    def compute(
        cls,
        data: Dataset,
        *,
        reduction: Reduction | str | None = None,
        bins: int = 15,
        scheme: Scheme = "equal-width",
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
    ) -> Self:
        """Compute the values and, where the size of the data allows it, their means if calibrated.

        Parameters
        ----------
        data : Predictions or ConfidencePredictions
        reduction : Reduction or str, optional
            Which (score, hit) pair is looked at; the positive class of two where left out, else the top label.
        bins, scheme
            The bins of calviz's own ECE.
        band : bool
            Whether to compute the means if calibrated.
        seed : int
            Seed of the redrawn labels.
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        OptionError, InputError, NotAvailable
            As `calviz.conventions` does.
        """
        sample = Sample(data if split is None else data.split(split), reduction)
        return cls.of(measure(sample, bins=bins, scheme=scheme, noise=band, seed=seed, split=split))

    @classmethod
    def of(cls, conventions: Conventions) -> Self:
        """Draw values that are there already."""
        dots = [Dot("calviz", "ece", conventions.ece, conventions.noise)]
        dots += [
            Dot(v.convention.library, v.convention.call, v.value, v.noise)
            for v in conventions
            if v.available
        ]
        return cls(conventions, tuple(sorted(dots, key=lambda dot: -dot.value)))

    def frame(self) -> pd.DataFrame:
        """Exactly what is drawn: one row per dot."""
        import pandas as pd

        return pd.DataFrame(self.dots, columns=["library", "call", "value", "noise_mean"])

    def plot(
        self, *, theme: Theme = "light", caption: bool | str = False, width: int | None = None
    ) -> go.Figure:
        """Draw it.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put name, split, rows and reduction above the dots, or a text to put there instead.
        width : int, optional
            Pixels that the page has for it.
        """
        from calviz.figures import _conventions_drawing

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        return _conventions_drawing.draw(self, theme=theme, caption=text, width=width)

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn: one line each."""
        reduction = Reduction.of(self.conventions.reduction)
        short = replace(reduction, class_name=shorten(reduction.class_name, 24))
        what = [counted(self.conventions.rows, "row"), short.label]
        if self.conventions.split is not None:
            what.insert(0, f"split {shorten(self.conventions.split)}")
        return shorten(self.conventions.name, 60), " · ".join(what), "ECE by library"

    def describe(self) -> str:
        """Say in plain words how far the conventions are apart."""
        low, high = self.dots[-1], self.dots[0]
        where = (
            f", split {shorten(self.conventions.split)}"
            if self.conventions.split is not None
            else ""
        )
        decimals = decimals_for(*(100 * dot.value for dot in (low, high)), most=2)
        text = (
            f"ECE of {shorten(self.conventions.name, 60)}{where} by the defaults of different libraries: from "
            f"{points(low.value, decimals)} points ({low.library}, {low.call}) to "
            f"{points(high.value, decimals)} points ({high.library}, {high.call}); calviz "
            f"{points(self.conventions.ece, decimals)} points"
        )
        if math.isnan(self.conventions.noise):
            return f"{text}."
        return (
            f"{text}, where a calibrated model would show {points(self.conventions.noise, decimals)} "
            "on average."
        )


FIGURES.register(
    FigureSpec(
        key="conventions",
        label="ECE by library",
        summary="The same predictions' ECE as other libraries define it by default, above what each would show for a "
        "calibrated model on as many rows.",
        reference="Nixon et al. 2019; Roelofs et al. 2022 (dependence on the definition)",
        compute=ConventionDots.compute,
    )
)

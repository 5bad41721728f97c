"""How much the ECE depends on the number of bins, and how much of it is noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, get_args

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.figure import FIGURES, FigureSpec, Theme
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.words import counted, decimals_for, points, shorten
from calviz.figures._parts import points_text
from calviz.numerics import error_bars
from calviz.numerics.bin_sweep import bin_sweep
from calviz.numerics.sample import Sample

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

Placed = Literal["equal-width", "equal-mass"]

#: Resamples behind the noise floor of every number of bins.
RESAMPLES = 400


@dataclass(frozen=True, eq=False)
class Floor:
    """What the ECE of a calibrated model would be, per number of bins, shape (M,) each.

    Attributes
    ----------
    mean, high : ndarray
        Mean, and the value that it stays below with the probability `level`.
    """

    mean: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class BinSensitivity:
    """The ECE for 1 to 100 bins of equal width and of equal mass; `plot` draws it.

    Attributes
    ----------
    name : str
        Name of the predictions.
    split : str or None
        The split that is drawn, or None for all rows.
    reduction : Reduction
        What score and hit are.
    n : int
        Number of rows.
    bins : int
        The chosen number of bins, which is marked.
    scheme : {"equal-width", "equal-mass"}
        The chosen scheme: its noise floor is drawn.
    level : float
        Level of the noise floor.
    counts : ndarray of int, shape (M,)
        1, 2, ..., M.
    ece : mapping of scheme to ndarray, shape (M,)
    floor : mapping of scheme to Floor
        Empty where it was not asked for.

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
    floor: dict[Placed, Floor]

    @classmethod
    def compute(
        cls,
        data: Dataset,
        *,
        reduction: Reduction | str | None = None,
        bins: int = 15,
        scheme: Placed = "equal-width",
        most: int = 100,
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
    ) -> Self:
        """Compute the ECE for every number of bins, and redraw the hits for the noise floor.

        Parameters
        ----------
        data : Predictions or ConfidencePredictions
        reduction : Reduction or str, optional
            Which (score, hit) pair is drawn; the positive class of two where left out, else the top label.
        bins : int
            The number of bins to mark.
        scheme : {"equal-width", "equal-mass"}
            The scheme to mark; ``sturges`` has bins of equal width.
        most : int
            The largest number of bins.
        level : float
            Level of the noise floor, between 0 and 1.
        band : bool
            Whether to compute the noise floor.
        seed : int
            Seed of the redrawing.
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        OptionError, InputError, NotAvailable
            As `calviz.evaluate` does.
        """
        chosen = data if split is None else data.split(split)
        return cls.of_sample(
            Sample(chosen, reduction),
            bins=bins,
            scheme=scheme,
            most=most,
            level=level,
            band=band,
            seed=seed,
            split=split,
        )

    @classmethod
    def of_sample(
        cls,
        sample: Sample,
        *,
        bins: int = 15,
        scheme: Placed = "equal-width",
        most: int = 100,
        level: float = 0.95,
        band: bool = True,
        seed: int = 0,
        split: str | None = None,
    ) -> Self:
        """The same, of a sample that is shared with the metrics."""
        if not 0 < level < 1:
            raise OptionError(f"'level' must lie between 0 and 1, got {level!r}.")
        if scheme not in get_args(Placed):
            raise OptionError(f"'scheme' must be equal-width or equal-mass; got {scheme!r}.")
        ece: dict[Placed, FloatArray] = {}
        floor: dict[Placed, Floor] = {}
        for placed in get_args(Placed):
            sweep = sample.view(bin_sweep, scheme=placed, most=most)
            ece[placed] = sweep.ece()
            if band:
                rng = error_bars.stream(seed, "under_calibration")
                drawn = sweep.under_calibration(rng, RESAMPLES)
                floor[placed] = Floor(drawn.mean(axis=0), np.quantile(drawn, level, axis=0))
        return cls(
            name=sample.data.name,
            split=split,
            reduction=sample.reduction,
            n=sample.data.n,
            bins=bins,
            scheme=scheme,
            level=level,
            counts=np.arange(1, most + 1),
            ece=ece,
            floor=floor,
        )

    @property
    def chosen(self) -> float | None:
        """The ECE at the chosen number of bins; None where that is beyond the drawn ones."""
        if not 1 <= self.bins <= self.counts.size:
            return None
        return float(self.ece[self.scheme][self.bins - 1])

    def frame(self) -> pd.DataFrame:
        """Exactly what is drawn: one row per number of bins."""
        import pandas as pd

        columns: dict[str, FloatArray | IntArray] = {"bins": self.counts}
        for placed in get_args(Placed):
            key = placed.replace("-", "_")
            columns[f"ece_{key}"] = self.ece[placed]
            if placed in self.floor:
                columns[f"floor_mean_{key}"] = self.floor[placed].mean
                columns[f"floor_high_{key}"] = self.floor[placed].high
        return pd.DataFrame(columns)

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
    ) -> go.Figure:
        """Draw it.

        Parameters
        ----------
        theme : {"light", "dark"}
        caption : bool or str
            Whether to put name, split, rows and reduction above the curves, or a text to put there instead.
        width : int, optional
            Pixels that the page has for it.

        Returns
        -------
        plotly.graph_objects.Figure
            Points carry the number of bins as ``customdata``.
        """
        from calviz.figures import _bin_sensitivity_drawing

        text = self.caption() if caption is True else tuple(str(caption or "").splitlines())
        return _bin_sensitivity_drawing.draw(self, theme=theme, caption=text, width=width)

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn: one line each."""
        short = replace(self.reduction, class_name=shorten(self.reduction.class_name, 24))
        what = [counted(self.n, "row"), short.label]
        if self.split is not None:
            what.insert(0, f"split {shorten(self.split)}")
        return shorten(self.name, 60), " · ".join(what), "ECE by number of bins"

    def describe(self) -> str:
        """Say in plain words how much the choice of bins matters."""
        where = f", split {shorten(self.split)}" if self.split is not None else ""
        head = (
            f"ECE of {shorten(self.name, 60)}{where} by number of bins, {counted(self.n, 'row')}."
        )
        return f"{head} {self.reading()}"

    def reading(self) -> str:
        """The same without naming the data: from where to where the ECE goes, and what of it is noise."""
        values = np.stack(list(self.ece.values()))[:, 1:] if self.counts.size > 1 else self._all()
        low, high = float(values.min()), float(values.max())
        decimals = decimals_for(100 * low, 100 * high, most=2)
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

    def _all(self) -> FloatArray:
        return np.stack(list(self.ece.values()))


def _verdict(inside: float) -> str:
    if inside == 0:
        return "It lies above what noise explains for every number of bins."
    if inside > 0.9:
        return "For nearly every number of bins noise explains it."
    return (
        f"For {100 * inside:.0f} % of these binnings noise explains it: the choice of bins decides."
    )


FIGURES.register(
    FigureSpec(
        key="bin-sensitivity",
        label="ECE by number of bins",
        summary="The ECE for 1 to 100 bins of equal width and of equal mass, above what a calibrated model would show "
        "on as many rows.",
        reference="Guo et al. 2017, eq. 3; Roelofs et al. 2022",
        compute=BinSensitivity.compute,
    )
)

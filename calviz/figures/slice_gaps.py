"""Gap of each slice with its interval, the most significant first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, facts
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.results.slices import Slice, Slices
from calviz.specs.figure import Theme
from calviz.text.words import counted, points, shorten

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Maximum number of slices drawn.
MOST = 20


@dataclass(frozen=True, eq=False)
class SliceGaps(Figure):
    """The first slices of `calviz.slices`, ready to draw.

    Drawn from a result, not from predictions: `calviz.slices` computes, this class draws.

    Attributes
    ----------
    result : Slices
    shown : tuple of Slice
        The drawn slices.
    """

    result: Slices
    shown: tuple[Slice, ...]

    @classmethod
    def compute(cls, result: Slices, *, most: int = MOST) -> Self:
        """Choose the slices to draw: the `most` most significant ones.

        Raises
        ------
        OptionError
            If `most` is below 1.
        """
        if most < 1:
            raise OptionError(f"'most' must be 1 or more, got {most}.")
        return cls(result, result.slices[:most])

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        beside: Sequence[Overlay[FloatArray]] = (),
    ) -> go.Figure:
        """Draw the figure.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`.
        beside : sequence of Overlay
            Gaps of the same slices in another state: one per drawn slice, nan where there is none.
        """
        return self._plotly_figure(theme, caption, width, beside=tuple(beside))

    def columns(self) -> Mapping[str, Any]:
        """One row per slice."""
        return dict(self.result.frame().head(len(self.shown)))

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        r = self.result
        reduction = shorten(Reduction.of(r.reduction).label)
        return shorten(r.name, NAME_LENGTH), facts(None, counted(r.rows, "row"), reduction)

    def answer(self) -> str:
        """Say how many slices are off beyond chance, and which is most significant."""
        r = self.result
        if not r.slices:
            return f"No slice has {r.min_rows:,} rows or more."
        than = "a calibrated model" if r.against == "calibrated" else "the other rows"
        looked = counted(len(r.slices), "slice")
        if not r.off:
            return f"None of {looked} differs from {than} beyond chance."
        verb = "differ" if len(r.off) > 1 else "differs"
        return (
            f"{len(r.off):,} of {looked} {verb} from {than} beyond chance; most surely "
            f"{shorten(r.off[0].name, 80)}: {self.sentence(r.off[0])}."
        )

    def sentence(self, one: Slice) -> str:
        """Describe the gap of one slice in words."""
        size = points(abs(one.gap))
        if Reduction.of(self.result.reduction).kind in ("class", "positive"):
            kind = f"probabilities {size} points too {'high' if one.gap > 0 else 'low'}"
        else:
            kind = f"{'over' if one.gap > 0 else 'under'}confident by {size} points"
        return f"{kind} on {counted(one.rows, 'row')}"

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        return f"Gap of score and hits by slice of {shorten(self.result.name, NAME_LENGTH)}. {self.answer()}"

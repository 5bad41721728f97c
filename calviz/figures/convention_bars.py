"""The ECE of the same predictions as different libraries define it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from calviz.core.entry_specs import Conventions, figure
from calviz.core.events import BinNumber, Reduction, Scheme
from calviz.core.words import (
    SINGLE_ROW,
    counted,
    plotly_text,
    points,
    points_decimals,
    shorten,
    with_short_class,
)
from calviz.figures.figure import NAME_LENGTH, Data, Figure, facts, named
from calviz.figures.marks import Picture, Sheet, Trace, markers, vertical_mark
from calviz.metrics.other_libraries import measured_conventions
from calviz.sample.sample import Sample


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
        data: Data,
        *,
        reduction: Reduction | str | None = None,
        bins: BinNumber | None = None,
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
        return cls.of(sample.once(measured_conventions, noise=band))

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

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the computed dots."""
        highest = max(v for d in self.dots for v in (d.value, d.noise) if not math.isnan(v))
        return sheet.picture(
            _traces(self, highest, sheet),
            inner=_ROW * len(self.dots),
            margins=_MARGINS,
            xaxis=sheet.axis("ECE (points)", range=[0, _AXIS_END * highest or 1.0], nticks=6),
            yaxis=sheet.row_axis([_label(dot, sheet) for dot in self.dots], ticks=""),
        )


# ---- Drawing


#: Height of a row, which has two lines of text (library and function), and margins of the panel, in pixels.
_ROW, _MARGINS = 36, (166, 14, 10, 50)
#: Where the axis ends, in percent of the largest value: the number beside that value has room on a phone too.
_AXIS_END = 135
#: A dot closer than this to the left edge, as a share of the largest value, has no room for its number on the left.
_FROM_EDGE = 0.25


def _label(dot: LibraryEce, sheet: Sheet) -> str:
    if dot.library == "calviz":
        return "<b>calviz</b>"
    call = f'<span style="color:{sheet.palette.muted}">{plotly_text(dot.call)}</span>'
    return f"{plotly_text(dot.library)}<br>{call}"


def _traces(figure: EceByLibrary, highest: float, sheet: Sheet) -> Iterator[Trace]:
    p, own_ece, rows = sheet.palette, 100 * figure.conventions.ece, len(figure.dots)
    if not math.isnan(figure.conventions.noise):
        yield {
            "type": "bar",
            "orientation": "h",
            "y": list(range(rows)),
            "x": [None if math.isnan(d.noise) else 100 * d.noise for d in figure.dots],
            "width": 0.62,
            "marker": {"color": p.calibrated, "line": {"width": 0}},
            "name": "Mean if calibrated",
            "hovertemplate": "mean if calibrated %{x:.2f} points<extra></extra>",
        }
    exact = {"x": [own_ece, own_ece], "y": [-0.5, rows - 0.5]}
    yield vertical_mark(own_ece, -0.5, rows - 0.5, p.ink) | exact
    for name, colour, symbol, own in (
        ("calviz", p.ink, "diamond", True),
        ("Other libraries", p.blue, "circle", False),
    ):
        at = [i for i, dot in enumerate(figure.dots) if (dot.library == "calviz") is own]
        values = [100 * figure.dots[i].value for i in at]
        # The text must not cross calviz's line just right of the dot.
        left = [
            0.8 * own_ece < v < 0.98 * own_ece and v > 100 * _FROM_EDGE * highest for v in values
        ]
        yield markers(
            np.array(values),
            at,
            colour,
            size=10,
            symbol=symbol,
            edge=p.paper,
            edge_width=1,
            mode="markers+text",
            text=[f"{v:.2f}" for v in values],
            textposition=["middle left" if is_left else "middle right" for is_left in left],
            textfont={"size": 12, "color": p.ink},
            cliponaxis=False,
            name=name,
            hover="%{x:.2f} points",
        )

"""The ECE for 1 to 100 bins, with the noise floor for each number of bins, and as different libraries define it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, Unpack, get_args

import numpy as np

from calviz.core import words
from calviz.core.blocks import FloatArray, IntArray
from calviz.core.entry_specs import Conventions, figure, takes_weights
from calviz.core.errors import check_level
from calviz.core.events import BinNumber, Reduction, Scheme, check_bins, make_edges
from calviz.core.words import SINGLE_ROW, counted, points, points_decimals
from calviz.figures import marks
from calviz.figures.figure import NAME_LENGTH, Data, Figure, ScoreFigure, facts, named
from calviz.figures.marks import UNFADED, Picture, Sheet, Trace, area, line, markers, vertical_mark
from calviz.metrics.other_libraries import measured_conventions
from calviz.sample.binning import BinSums, bin_between, redrawn_sums
from calviz.sample.error_bars import stream
from calviz.sample.sample import BinOptions, Sample, shows_options

Placed = Literal["equal-width", "equal-mass"]

#: Maximum number of resamples for the noise floors, as each is evaluated for all numbers of bins.
MOST_RESAMPLES = 400


@figure(
    key="bin-sensitivity",
    label="ECE by number of bins",
    summary="The ECE for 1 to 100 bins of equal width and of equal mass, above what a calibrated model would show "
    "on the same number of rows.",
    reference="Guo et al. 2017, eq. 3; Roelofs et al. 2022",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class BinSensitivity(ScoreFigure):
    """The ECE for 1 to 100 bins of equal width and of equal mass; `plot` draws it.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`; the level is that of the noise floor.
    bins : int
        The chosen number of bins, marked in the drawing.
    scheme : {"equal-width", "equal-mass"}
        The chosen scheme, whose noise floor is drawn.
    counts : ndarray of int, shape (M,)
        1, 2, ..., M.
    ece : mapping of scheme to ndarray, shape (M,)
    floor : mapping of scheme to (ndarray, ndarray), shape (M,) each
        Mean, and quantile at `level`, of the ECE of a calibrated model; empty if not requested.

    References
    ----------
    Guo et al. 2017, eq. 3; Roelofs et al. 2022 (dependence on the number of bins).
    """

    bins: int
    scheme: Placed
    counts: IntArray
    ece: dict[Placed, FloatArray]
    floor: dict[Placed, tuple[FloatArray, FloatArray]]

    @classmethod
    @shows_options
    def compute(
        cls,
        data: Data,
        *,
        most: int = 100,
        level: float = 0.95,
        band: bool = True,
        **options: Unpack[BinOptions],
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
        sample = Sample.of(data, **options)
        redrawing = sample.but(resamples=min(MOST_RESAMPLES, sample.resamples)).redrawing
        schemes: tuple[Placed, ...] = get_args(Placed)
        floors = {"most": most, "level": level, **redrawing}
        sweeps = {placed: sample.view(bin_sweep, scheme=placed, most=most) for placed in schemes}
        return cls(
            **cls._fields(sample, level=level),
            bins=sample.bins_used,
            scheme="equal-mass" if sample.placed == "equal-mass" else "equal-width",
            counts=np.arange(1, most + 1),
            ece={placed: sweep.ece() for placed, sweep in sweeps.items()},
            floor={p: sample.view(_floor, scheme=p, **floors) for p in schemes if band},
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
                columns[f"floor_mean_{key}"], columns[f"floor_high_{key}"] = self.floor[placed]
        return columns

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn: one line each."""
        return *self._head(), "ECE by number of bins"

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
            f"From 2 to {self.counts.size:,} bins of equal width or equal mass the ECE {where} points."
        ]
        if self.chosen is not None:
            kind = counted(self.bins, f"{self.scheme} bin")
            parts.append(f"With {kind} it is {words.points_text(self.chosen)}.")
        if self.floor:
            inside = np.concatenate([self.ece[s] <= high for s, (_, high) in self.floor.items()])
            parts.append(_verdict(float(inside.mean())))
        return " ".join(parts)

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the ECE by number of bins."""
        highest = 100 * max(float(values.max()) for values in self.ece.values())
        if self.floor:
            highest = max(highest, 100 * float(self.floor[self.scheme][1].max()))
        room = 1.12 * highest or 1.0
        return sheet.picture(
            [*_traces(self, sheet), *_mark(self, sheet, room)],
            inner=_HEIGHT,
            margins=_MARGINS,
            annotations=_mark_label(self, sheet),
            xaxis=sheet.axis("Number of bins", range=[0, self.counts.size + 1], nticks=7),
            yaxis=sheet.axis("ECE (points)", range=[0, room], nticks=6),
        )


@takes_weights
def _floor(
    sample: Sample, *, scheme: Placed, most: int, level: float, seed: int, resamples: int
) -> tuple[FloatArray, FloatArray]:
    sweep = sample.view(bin_sweep, scheme=scheme, most=most)
    redrawn_ece = sweep.under_calibration(stream(seed, "under_calibration"), resamples)
    return redrawn_ece.mean(axis=0), np.quantile(redrawn_ece, level, axis=0)


def _verdict(inside: float) -> str:
    if inside == 0:
        return "It lies above what noise explains for every number of bins."
    if inside > 0.9:
        return "For nearly every number of bins noise explains it."
    return f"For {words.percent(inside, 0)} of these binnings noise explains it: the choice of bins decides."


# ---- Sweep over the numbers of bins


#: Number of resamples drawn at a time, to limit memory.
_BLOCK = 50


@dataclass(frozen=True, eq=False)
class BinSweep:
    """Sums over cells that are fine enough that each bin of every binning is a union of cells.

    Attributes
    ----------
    cells : BinSums
        Sums over the cells between neighbouring edges of all binnings.
    cuts : tuple of ndarray of int
        Per number of bins: index of the first cell of each bin, then the total number of cells.
    calibrated : callable, optional
        Function that redraws the cells of weighted or clustered rows; None if they are redrawn from the sums.
    """

    cells: BinSums
    cuts: tuple[IntArray, ...]
    calibrated: Callable[[np.random.Generator, int], BinSums] | None = None

    def ece(self) -> FloatArray:
        """ECE per number of bins, shape (M,)."""
        return self._errors(self.cells)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """ECE per number of bins with hits redrawn from the scores, shape (B, M)."""
        sizes = [min(_BLOCK, resamples - done) for done in range(0, resamples, _BLOCK)]
        draw = self.calibrated or self.cells.under_calibration
        return np.concatenate([self._errors(draw(rng, size)) for size in sizes])

    def _errors(self, cells: BinSums) -> FloatArray:
        gap = cells.score_sum - cells.hit_sum
        upto = np.zeros((*gap.shape[:-1], gap.shape[-1] + 1))
        np.cumsum(gap, axis=-1, out=upto[..., 1:])
        n = float(self.cells.n)
        errors = [np.abs(np.diff(upto[..., cuts], axis=-1)).sum(axis=-1) / n for cuts in self.cuts]
        return np.stack(errors, axis=-1)


@takes_weights
def bin_sweep(sample: Sample, *, scheme: Placed = "equal-width", most: int = 100) -> BinSweep:
    """Build the cells for 1 to `most` bins of a scheme; scores are sorted once and traversed once.

    Parameters
    ----------
    sample : Sample
    scheme : {"equal-width", "equal-mass"}
    most : int
        Largest number of bins.
    """
    check_bins(most)
    scored, weights = sample.scored, sample.weights
    # Sorted once for all binnings.
    events = scored.in_order() if weights is None else scored
    inner = [make_edges(events, bins, scheme, weights)[1:-1] for bins in range(1, most + 1)]
    every = np.unique(np.concatenate(inner))
    ends = np.array([min(0, scored.score.min()), max(1, scored.score.max())], scored.score.dtype)
    edges = np.concatenate([ends[:1], every, ends[1:]])
    last = edges.size - 1
    cuts = tuple(np.concatenate([[0], np.searchsorted(every, e) + 1, [last]]) for e in inner)
    if sample.data.alike:
        return BinSweep(bin_between(events, edges, weights=weights), cuts)
    cells = bin_between(scored, edges, weights=weights)
    draw, rows = redrawn_sums(scored, cells), sample.row_draws
    return BinSweep(cells, cuts, lambda rng, size: draw(rng, rows, rows.affordable(size)))


# ---- Drawing


#: Margins (left, right, above, below) and height of the panel, in pixels.
_MARGINS, _HEIGHT = (58, 18, 14, 50), 220


def _traces(f: BinSensitivity, sheet: Sheet) -> Iterator[Trace]:
    p, x = sheet.palette, f.counts.astype(np.float64)
    if f.floor:
        mean, high = f.floor[f.scheme]
        name = f"{words.level_text(f.level)} range if calibrated ({f.scheme})"
        yield area(x, np.zeros(x.size), 100 * high, p.calibrated, name=name, legendrank=3)
        look: Trace = {"width": 1.5, "dash": "2px,3px", "name": "Mean if calibrated"}
        hover = "mean if calibrated %{y:.2f} points"
        yield line(x, 100 * mean, p.muted, **look, hover=hover, legendrank=4)
    schemes: tuple[tuple[Any, ...], ...] = (
        ("equal-width", "Equal-width bins", p.blue, "solid", "circle"),
        ("equal-mass", "Equal-mass bins", p.vermillion, "7px,3px", "diamond"),
    )
    for rank, (placed, name, colour, dash, symbol) in enumerate(schemes, start=1):
        yield line(
            x,
            100 * f.ece[placed],
            colour,
            dash=dash,
            # Points, because a line alone cannot be clicked.
            points={"size": 4, "symbol": symbol},
            name=name,
            hover=f"{name}: %{{customdata}}, ECE %{{y:.2f}} points",
            legendrank=rank,
            customdata=f.counts,
            **UNFADED,
        )


def _mark(f: BinSensitivity, sheet: Sheet, room: float) -> Iterator[Trace]:
    """Mark the chosen number of bins."""
    if f.chosen is not None:
        p = sheet.palette
        yield vertical_mark(f.bins, 0.0, room, p.ink)
        yield markers([f.bins], [100 * f.chosen], p.ink, size=10, edge=p.paper, showlegend=False)


def _mark_label(f: BinSensitivity, sheet: Sheet) -> Iterator[Trace]:
    if f.chosen is None:
        return
    right = f.bins < 0.6 * f.counts.size
    yield marks.label(
        f"{counted(f.bins, 'bin')}: <b>{words.points_text(f.chosen)}</b>",
        sheet.palette,
        x=f.bins,
        y=100 * f.chosen,
        yshift=6,
        xshift=6 if right else -6,
        xanchor="left" if right else "right",
        yanchor="bottom",
        bgcolor=sheet.palette.glaze(sheet.palette.paper, 0.8),
    )


# ---- By library


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
        reduction = words.with_short_class(Reduction.of(c.reduction)).label
        details = facts(c.split, counted(c.rows, "row"), reduction)
        return words.shorten(c.name, NAME_LENGTH), details, "ECE by library"

    def describe(self) -> str:
        """Say in plain words how far apart the conventions are."""
        low, high = self.dots[-1], self.dots[0]
        decimals = points_decimals(self.conventions.ece)
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
            _library_traces(self, highest, sheet),
            inner=_ROW * len(self.dots),
            margins=_LIBRARY_MARGINS,
            # It ends at 135 % of the largest value: the number beside that value has room on a phone too.
            xaxis=sheet.axis("ECE (points)", range=[0, 135 * highest or 1.0], nticks=6),
            yaxis=sheet.row_axis([_label(dot, sheet) for dot in self.dots], ticks=""),
        )


# ---- Drawing


#: Height of a row, which has two lines of text (library and function), and margins of the panel, in pixels.
_ROW, _LIBRARY_MARGINS = 36, (166, 14, 10, 50)
#: A dot closer than this to the left edge, as a share of the largest value, has no room for its number on the left.
_FROM_EDGE = 0.25


def _label(dot: LibraryEce, sheet: Sheet) -> str:
    if dot.library == "calviz":
        return "<b>calviz</b>"
    call = f'<span style="color:{sheet.palette.muted}">{words.plotly_text(dot.call)}</span>'
    return f"{words.plotly_text(dot.library)}<br>{call}"


def _library_traces(figure: EceByLibrary, highest: float, sheet: Sheet) -> Iterator[Trace]:
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
            text=[words.decimal(v, points_decimals(figure.conventions.ece)) for v in values],
            textposition=["middle left" if is_left else "middle right" for is_left in left],
            textfont={"size": 12, "color": p.ink},
            cliponaxis=False,
            name=name,
            hover="%{x:.2f} points",
        )

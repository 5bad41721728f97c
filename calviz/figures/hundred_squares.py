"""Pictures without technical terms: 100 squares for a frequency, and the bullet graph of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from calviz.core.entry_specs import METRICS, MetricResult
from calviz.core.events import Reduction
from calviz.core.words import counted, listed, percent, plotly_text
from calviz.figures.figure import Figure
from calviz.figures.marks import Picture, Sheet, Trace, heading, markers, wrapped
from calviz.figures.style import Palette
from calviz.sample.sample import Sample, event_sums, on_days, rows_where, where_words
from calviz.sample.slices import usual_slices
from calviz.verdicts.evaluation import Verdict, Written
from calviz.verdicts.watching import watched

#: Squares per panel.
HUNDRED = 100


@dataclass(frozen=True)
class Promise:
    """A promise (mean score) and how often it was kept (share of hits).

    Attributes
    ----------
    title : str
    mean_score, observed : float
        Mean score, and share of hits.
    rows : int
    decimals : int
        Decimals of both in percent.
    expected : float or None
        Share of hits to expect, in rows that were chosen for their gap; drawn instead of the share of hits.
    """

    title: str
    mean_score: float
    observed: float
    rows: int
    decimals: int = 1
    expected: float | None = None

    @property
    def to_expect(self) -> float:
        """The share of hits that is drawn."""
        return self.observed if self.expected is None else self.expected

    @property
    def squares(self) -> tuple[int, int]:
        """Number of squares, of a hundred, for the mean score and for the share of hits that is drawn."""
        return round(HUNDRED * self.mean_score), round(HUNDRED * self.to_expect)

    @property
    def words(self) -> str:
        """Both numbers in words, rounded as in the verdict."""
        promised, happened = (percent(v, self.decimals) for v in (self.mean_score, self.to_expect))
        return f"promised {promised}, {'happened' if self.expected is None else 'to expect'} {happened}"


@dataclass(frozen=True, eq=False)
class HundredSquares(Figure):
    """Mean score and share of hits of all rows, and of the rows where they differ most, as grids of 100 squares.

    Attributes
    ----------
    reduction : Reduction
    panels : tuple of Promise
    """

    reduction: Reduction
    panels: tuple[Promise, ...]

    @classmethod
    def compute(cls, verdict: Verdict, sample: Sample | None = None) -> Self:
        """Take the numbers from a verdict and, of the slice that its headline is about, from the sample.

        Parameters
        ----------
        verdict : Verdict
        sample : Sample, optional
            The rows that were judged; without, the second panel is that of the worst bin.
        """
        v, worst = verdict, verdict.worst
        panels = [Promise("All rows", v.score, v.observed, v.rows, v.share_decimals)]
        groups = usual_slices(sample) if sample is not None and v.named_where else None
        state = sample.once(watched) if sample is not None and v.changed_where else None
        if sample is not None and state is not None and state.within is not None:
            change, data = state.within, sample.data
            rows = rows_where(data, on_days(data, change.change.days, change.where))
            score = float(sample.rows_of(np.asarray(rows)).view(event_sums).confidence[0])
            hits, expected = score - change.seen, score - change.gap
            title = f"{'Until' if v.ended else 'Since'} then: {where_words(change.where, 20)}"
            panels.append(Promise(title, score, hits, change.rows, v.share_decimals, expected))
        elif groups is not None:
            one, title = groups.off[0], f"Where {where_words(v.named_where)}"
            title += f": {listed([one.of_class])}" * bool(one.of_class)
            expected = one.score - one.expected
            panels.append(Promise(title, one.score, one.hits, one.rows, v.share_decimals, expected))
        elif worst is not None:
            decimals = min(v.share_decimals, worst.share_decimals)
            numbers = worst.mean_score, worst.observed, worst.rows, decimals, worst.expected
            panels.append(Promise(f"Where it says {worst.percents}\u00a0%", *numbers))
        return cls(Reduction.of(v.reduction), tuple(panels))

    @property
    def decimals(self) -> int:
        """Decimals in percent that suit the numbers of all panels."""
        return max(panel.decimals for panel in self.panels)

    def columns(self) -> Mapping[str, Any]:
        """One row per panel."""
        return {
            "rows_of": [panel.title for panel in self.panels],
            "rows": [panel.rows for panel in self.panels],
            "promised": [panel.mean_score for panel in self.panels],
            "happened": [panel.observed for panel in self.panels],
            "to_expect": [panel.to_expect for panel in self.panels],
        }

    def caption(self) -> tuple[str, ...]:
        """Title; mean score and share of hits of all rows: one line each."""
        return "Promised and happened", self.panels[0].words

    def describe(self) -> str:
        """Say what the squares show."""
        return " ".join(f"{p.title} ({counted(p.rows, 'row')}): {p.words}." for p in self.panels)

    def draw(self, sheet: Sheet) -> Picture:
        """Draw one panel per promise, side by side or stacked."""
        count = len(self.panels)
        stacked = sheet.narrow and count > 1
        room = _ABOVE if stacked else _BESIDE
        size = (1 - room * (count - 1)) / count
        bare: Trace = {"visible": False, "fixedrange": True, "range": [-0.6, _ROW - 0.4]}
        bare["constrain"] = "domain"
        axes: dict[str, Any] = {}
        traces: list[Trace] = []
        titles: list[Trace] = []
        named: set[str] = set()
        lines = [wrapped([panel.title], _LETTERS) for panel in self.panels]
        for number, panel in enumerate(self.panels):
            suffix = "" if number == 0 else str(number + 1)
            x, y = f"x{suffix}", f"y{suffix}"
            start = number * (size + room)
            across: list[float] = [start, start + size]
            up: list[float] = [0, 1]
            if stacked:
                across, up = up, [max(0.0, 1 - start - size), 1 - start]
            left, top = {"constraintoward": "left"}, {"constraintoward": "top", "scaleanchor": x}
            axes[f"xaxis{suffix}"] = {**bare, "domain": across, "anchor": y, **left}
            axes[f"yaxis{suffix}"] = {**bare, "domain": up, "anchor": x, **top}
            traces += _squares(panel, sheet, suffix, named)
            # One line per number, because side by side both would not fit on one line.
            numbers = plotly_text(panel.words).replace(", ", ",<br>")
            title = f"<b>{'<br>'.join(map(plotly_text, lines[number]))}</b><br>{numbers}"
            font = {"size": 14, "color": sheet.palette.ink}
            titles.append(heading(title, sheet.palette, (f"{x} domain", f"{y} domain"), font=font))
        tall = _PANEL * count + round(_PANEL * _ABOVE * count) if stacked else _PANEL
        above = _MARGINS[2] + (0 if stacked else _LINE * (max(map(len, lines)) - 1))
        margins = (*_MARGINS[:2], above, _MARGINS[3])
        return sheet.picture(
            traces, inner=tall, margins=margins, above=above - 8, annotations=titles, **axes
        )


#: Squares per row; letters of a line of a title; sizes of a panel, of a square and of such a line, and margins of the panels, in pixels.
_ROW, _LETTERS, _PANEL, _SQUARE, _LINE, _MARGINS = 10, 32, 230, 15, 19, (8, 8, 66, 8)
#: Space between panels side by side, and between stacked ones, as a share of the total.
_BESIDE, _ABOVE = 0.08, 0.18


def _squares(panel: Promise, sheet: Sheet, suffix: str, named: set[str]) -> Iterator[Trace]:
    """Yield the squares grouped by outcome, filling the grid row by row."""
    promised, happened = panel.squares
    both, most = min(promised, happened), max(promised, happened)
    p = sheet.palette
    differ = ("came true, not promised", p.purple, "square-cross-open")
    if promised > happened:
        differ = ("promised, did not come true", p.vermillion, "square-x-open")
    for first, last, name, colour, symbol in (
        (0, both, "came true", p.blue, "square"),
        (both, most, *differ),
        (most, HUNDRED, "neither", p.neutral, "square-open"),
    ):
        at = np.arange(first, last)
        if not at.size:
            continue
        yield markers(
            at % _ROW,
            _ROW - 1 - at // _ROW,
            colour,
            size=_SQUARE,
            symbol=symbol,
            edge=colour,
            edge_width=1.2,
            name=name,
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
            showlegend=name not in named,
            legendgroup=name,
        )
        named.add(name)


# ---- Bullet graph


#: Size of the drawing in its own units; it is stretched to the available space, while lines keep their thickness.
WIDTH, HEIGHT = 200.0, 22.0
#: Legend of a drawing, in words.
MARKS_WORDS = (
    "Vertical mark: the value. Line: its 95 % interval. Grey: what a calibrated model would show."
)
#: Size of a drawing in a table cell, in pixels.
CELL = (96, 22)
#: Share of the width left free at each end.
_PAD = 0.04

Scale = tuple[float, float]
#: Characters that must be escaped in a data URL, and quotes, so that it can stand between quotes itself.
_SIGNS = str.maketrans({"#": "%23", "<": "%3C", ">": "%3E", " ": "%20", '"': "'"})
_XMLNS = 'xmlns="http://www.w3.org/2000/svg"'
#: Widths, in pixels, of the grey mark, of the interval and of the mark of the value: on a card, and in a table cell.
_THICK, _THIN = (5, 3, 4), (4, 2.5, 3)


@dataclass(frozen=True)
class Bullet:
    """The numbers that are drawn.

    Attributes
    ----------
    value : float
    interval : tuple of float, optional
        Ends of the interval of the value.
    usual : tuple of float, optional
        Range of a calibrated model; drawn as a single mark if both ends are equal.
    from_zero : bool
        Whether this range begins at 0, which is then the left end of the drawing.
    """

    value: float
    interval: Scale | None = None
    usual: Scale | None = None
    from_zero: bool = False

    @classmethod
    def of(cls, result: MetricResult) -> Bullet:
        """Take the numbers of a metric that has a value.

        For an error that noise makes larger, the grey range extends from 0 to the 95 % quantile of a calibrated model;
        other metrics have a grey vertical mark at its mean.
        """
        floor, upper = result.noise_floor, METRICS[result.key].tail == "upper"
        usual = None
        if floor is not None:
            usual = (0.0, floor.q95) if upper else (floor.mean, floor.mean)
        return cls(result.value, result.interval, usual, upper)

    @classmethod
    def column(cls, results: Iterable[MetricResult | None]) -> list[Bullet | None]:
        """Create one bullet per row of a table; None where there is no value."""
        return [None if r is None or not r.available else cls.of(r) for r in results]

    @property
    def extent(self) -> list[float]:
        """All values that the scale must contain."""
        return [self.value, *(self.interval or ()), *(self.usual or ())]


def words(result: MetricResult, noise: str) -> str:
    """Describe the drawing in a sentence (alternative text)."""
    written = Written(result)
    parts = [f"{METRICS[result.key].label} {written.value}", written.interval(result.interval)]
    return "; ".join(part for part in (*parts, noise) if part) + "."


def shared_scale(bullets: Iterable[Bullet | None]) -> Scale:
    """Return a common scale of all bullets; it contains 0, unless all would then lie beyond its middle."""
    values = [place for one in bullets if one is not None for place in one.extent] or [0.0]
    low, high = min(values), max(values)
    if not 0 < high / 2 < low:
        low, high = min(low, 0.0), max(high, 0.0)
    room = _PAD * ((high - low) or 1.0)
    return low - room, high + room


def svg(bullet: Bullet, palette: Palette, scale: Scale | None = None) -> str:
    """Draw a bullet: a thick vertical mark for the value, a line for its 95 % interval, grey for a calibrated model.

    Parameters
    ----------
    bullet : Bullet
    palette : Palette
    scale : tuple of float, optional
        Ends of a scale shared with other bullets, on which 0 is marked; by default a scale of its own.
    """
    paths = _paths(bullet, palette, scale, (WIDTH, HEIGHT), _THICK)
    marks = "".join(f'<path {path} vector-effect="non-scaling-stroke"/>' for path in paths)
    return (
        f'<svg {_XMLNS} viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none">{marks}</svg>'
    )


def _own_scale(bullet: Bullet) -> Scale:
    low, high = min(bullet.extent), max(bullet.extent)
    span = (high - low) or abs(high) or 1.0
    return low - (0.0 if bullet.from_zero and low == 0 else _PAD * span), high + _PAD * span


def _cell(bullet: Bullet, palette: Palette, scale: Scale | None, wide: int, tall: int) -> str:
    """Draw a bullet for a table cell as a data URL, in few characters, as there may be a thousand of them."""
    paths = _paths(bullet, palette, scale, (wide, CELL[1]), _THIN)
    marks = "".join(f"<path {path}/>" for path in paths)
    size = f'width="{wide}" height="{tall}" viewBox="0 {(CELL[1] - tall) / 2:g} {wide} {tall}"'
    return f"data:image/svg+xml,{f'<svg {_XMLNS} {size}>{marks}</svg>'.translate(_SIGNS)}"


def _paths(
    bullet: Bullet,
    palette: Palette,
    scale: Scale | None,
    size: tuple[float, float],
    widths: tuple[float, float, float],
) -> Iterator[str]:
    """Yield the attributes of each path, from back to front; `widths` are those of a grey mark, of the interval and of the value."""
    start, end = scale or _own_scale(bullet)
    wide, tall = size
    grey, blue = palette.neutral, palette.blue
    grey_width, interval_width, value_width = widths

    def x(value: float) -> str:
        return f"{(value - start) * wide / (end - start):.2f}"

    def upright(value: float, margin: float) -> str:
        return f"M{x(value)} {margin:g}V{tall - margin:g}"

    yield f'd="M0 {tall / 2:g}H{wide:g}" stroke="{palette.grid}"'
    if scale is not None:
        yield f'd="{upright(0.0, 0)}" stroke="{palette.muted}"'
    if bullet.usual is not None:
        low, high = bullet.usual
        if low == high:
            yield f'd="{upright(low, 3)}" stroke="{grey}" stroke-width="{grey_width}"'
        else:
            # The edge has a contrast of 3:1 to the background; the area alone would not.
            outline = f"{upright(low, 3)}H{x(high)}V3Z"
            yield f'd="{outline}" fill="{grey}" fill-opacity=".45" stroke="{grey}"'
    if bullet.interval is not None:
        low, high = bullet.interval
        line = f"M{x(low)} {tall / 2:g}H{x(high)}"
        yield f'd="{line}" stroke="{blue}" stroke-width="{interval_width}"'
    yield f'd="{upright(bullet.value, 1)}" stroke="{blue}" stroke-width="{value_width}"'


def address(drawing: str) -> str:
    """Return a drawing as a data URL."""
    return f"data:image/svg+xml,{quote(drawing)}"


def column(
    bullets: Sequence[Bullet | None],
    palette: Palette,
    *,
    shared: bool = True,
    wide: int = CELL[0],
    tall: int = CELL[1],
) -> list[str | None]:
    """Return the drawings of a column as data URLs, on one scale or each on its own.

    Parameters
    ----------
    bullets : sequence of Bullet or None
    palette : Palette
    shared : bool
        Whether all share one scale.
    wide, tall : int
        Width and height of a drawing in pixels; one in a high row has room above and below its marks.
    """
    scale = shared_scale(bullets) if shared else None
    return [None if one is None else _cell(one, palette, scale, wide, tall) for one in bullets]

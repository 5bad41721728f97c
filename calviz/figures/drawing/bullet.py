"""Bullet graph of a metric: its value, its interval, and what a calibrated model would show, on one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from calviz.figures.drawing.style import Palette
from calviz.results.evaluation import MetricResult
from calviz.specs.metric import METRICS
from calviz.text.metric_values import Written

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
#: Characters that must be escaped in a data URL.
_SIGNS = str.maketrans({"#": "%23", "<": "%3C", ">": "%3E", " ": "%20"})


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
        low_high = result.interval
        interval = None if low_high is None else (low_high.low, low_high.high)
        return cls(result.value, interval, usual, upper)

    @classmethod
    def column(cls, results: Iterable[MetricResult | None]) -> list[Bullet | None]:
        """Create one bullet per row of a table; None where there is no value."""
        return [None if r is None or not r.available else cls.of(r) for r in results]

    @property
    def seen(self) -> list[float]:
        """All values that the scale must contain."""
        return [self.value, *(self.interval or ()), *(self.usual or ())]


def words(result: MetricResult, noise: str) -> str:
    """Describe the drawing in a sentence (alternative text)."""
    written = Written(result)
    parts = [f"{METRICS[result.key].label} {written.value}", written.interval(result.interval)]
    return "; ".join(part for part in (*parts, noise) if part) + "."


def shared_scale(bullets: Iterable[Bullet | None]) -> Scale:
    """Return a common scale of all bullets that contains 0."""
    seen = [0.0, *(place for one in bullets if one is not None for place in one.seen)]
    low, high = min(seen), max(seen)
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
    start, end = scale or _own_scale(bullet)

    def x(value: float) -> float:
        return float(round(WIDTH * (value - start) / (end - start), 2))

    middle = HEIGHT / 2
    marks = []
    if scale is not None:
        marks.append(_upright(x(0.0), 0, palette.muted, 1))
    if bullet.usual is not None and bullet.usual[0] != bullet.usual[1]:
        left, right = (x(place) for place in bullet.usual)
        marks.append(
            f'<rect x="{left}" y="3" width="{max(right - left, 0.5):.2f}" height="{HEIGHT - 6:g}" '
            # The edge has a contrast of 3:1 to the background; the area alone would not.
            f'fill="{palette.neutral}" fill-opacity="0.45" stroke="{palette.neutral}" vector-effect="non-scaling-stroke"/>'
        )
    elif bullet.usual is not None:
        marks.append(_upright(x(bullet.usual[0]), 3, palette.neutral, 5))
    if bullet.interval is not None:
        marks.append(
            f'<line x1="{x(bullet.interval[0])}" x2="{x(bullet.interval[1])}" y1="{middle:g}" y2="{middle:g}" '
            f'stroke="{palette.blue}" stroke-width="3" vector-effect="non-scaling-stroke"/>'
        )
    marks.append(_upright(x(bullet.value), 1, palette.blue, 4))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none">'
        f'<line x1="0" x2="{WIDTH:g}" y1="{middle:g}" y2="{middle:g}" stroke="{palette.grid}" stroke-width="1" '
        f'vector-effect="non-scaling-stroke"/>{"".join(marks)}</svg>'
    )


def _own_scale(bullet: Bullet) -> Scale:
    low, high = min(bullet.seen), max(bullet.seen)
    span = (high - low) or abs(high) or 1.0
    return low - (0.0 if bullet.from_zero and low == 0 else _PAD * span), high + _PAD * span


def _cell(bullet: Bullet, palette: Palette, scale: Scale | None) -> str:
    """Draw a bullet for a table cell as a data URL, in few characters, as there may be a thousand of them."""
    start, end = scale or _own_scale(bullet)
    wide, tall = CELL
    unit = wide / (end - start)

    def x(value: float) -> str:
        return f"{(value - start) * unit:.1f}"

    grey, blue = palette.neutral, palette.blue
    marks = [f"<path d='M0 11H{wide}' stroke='{palette.grid}'/>"]
    if scale is not None:
        marks.append(f"<path d='M{x(0)} 0V{tall}' stroke='{palette.muted}'/>")
    if bullet.usual is not None:
        low, high = bullet.usual
        if low == high:
            marks.append(f"<path d='M{x(low)} 3V{tall - 3}' stroke='{grey}' stroke-width='4'/>")
        else:
            marks.append(
                f"<path d='M{x(low)} 3H{x(high)}V{tall - 3}H{x(low)}Z' fill='{grey}' fill-opacity='.45' stroke='{grey}'/>"
            )
    if bullet.interval is not None:
        low, high = bullet.interval
        marks.append(f"<path d='M{x(low)} 11H{x(high)}' stroke='{blue}' stroke-width='2.5'/>")
    marks.append(f"<path d='M{x(bullet.value)} 1V{tall - 1}' stroke='{blue}' stroke-width='3'/>")
    size = f"width='{wide}' height='{tall}' viewBox='0 0 {wide} {tall}'"
    drawing = f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{''.join(marks)}</svg>"
    return f"data:image/svg+xml,{drawing.translate(_SIGNS)}"


def _upright(x: float, margin: float, colour: str, width: int) -> str:
    return (
        f'<line x1="{x}" x2="{x}" y1="{margin:g}" y2="{HEIGHT - margin:g}" stroke="{colour}" '
        f'stroke-width="{width}" vector-effect="non-scaling-stroke"/>'
    )


def address(drawing: str) -> str:
    """Return a drawing as a data URL."""
    return f"data:image/svg+xml,{quote(drawing)}"


def column(
    bullets: Sequence[Bullet | None], palette: Palette, *, shared: bool = True
) -> list[str | None]:
    """Return the drawings of a column as data URLs, on one scale or each on its own.

    Parameters
    ----------
    bullets : sequence of Bullet or None
    palette : Palette
    shared : bool
        Whether all share one scale.
    """
    scale = shared_scale(bullets) if shared else None
    return [None if one is None else _cell(one, palette, scale) for one in bullets]

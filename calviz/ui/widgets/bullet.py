"""A number as a picture: the value, its interval, and what a calibrated model would show, on one line."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from calviz.figures.drawing.style import Palette
from calviz.results.evaluation import MetricResult
from calviz.specs.metric import METRICS
from calviz.text.metric_values import Written

#: Units of the drawing, which is stretched to its place; lines keep their thickness.
_WIDTH, _HEIGHT = 200.0, 22.0
#: Share of the width left free at both ends.
_PAD = 0.04


def words(result: MetricResult, noise: str) -> str:
    """What the picture says, in a sentence for those who do not see it."""
    written = Written(result)
    parts = [f"{METRICS[result.key].label} {written.value}", written.interval(result.interval)]
    return "; ".join(part for part in (*parts, noise) if part) + "."


def picture(result: MetricResult, palette: Palette, *, noise: str = "") -> str:
    """The drawing as an image in HTML, with its words for those who point at it and those who do not see it."""
    said = escape(words(result, noise), quote=True)
    # As an image: streamlit takes drawings that stand in HTML out of it.
    return (
        f'<img src="data:image/svg+xml,{quote(svg(result, palette))}" alt="{said}" title="{said}" '
        f'style="display:block;width:100%;height:{_HEIGHT:g}px">'
    )


def svg(result: MetricResult, palette: Palette) -> str:
    """Draw it: a thick upright is the value, the line its 95 % interval, grey what a calibrated model would show.

    An error that noise makes larger has a grey range from 0 to where 95 % of calibrated models stay below; other
    metrics have a grey upright at their mean.

    Parameters
    ----------
    result : MetricResult
        With a value.
    palette : Palette
    """
    floor, upper = result.noise_floor, METRICS[result.key].tail == "upper"
    seen = [result.value, *(result.interval or ())]
    if floor is not None:
        seen += [0.0, floor.q95] if upper else [floor.mean]
    low, high = min(seen), max(seen)
    span = (high - low) or abs(high) or 1.0
    start = low - (0.0 if upper and low == 0 else _PAD * span)
    width = high + _PAD * span - start

    def x(value: float) -> float:
        return float(round(_WIDTH * (value - start) / width, 2))

    middle = _HEIGHT / 2
    marks = []
    if floor is not None and upper:
        left, right = x(0.0), x(floor.q95)
        marks.append(
            f'<rect x="{left}" y="3" width="{max(right - left, 0.5):.2f}" height="{_HEIGHT - 6:g}" '
            f'fill="{palette.neutral}" fill-opacity="0.45"/>'
        )
    elif floor is not None:
        marks.append(_upright(x(floor.mean), 3, palette.neutral, 5))
    if result.interval is not None:
        marks.append(
            f'<line x1="{x(result.interval.low)}" x2="{x(result.interval.high)}" y1="{middle}" y2="{middle}" '
            f'stroke="{palette.blue}" stroke-width="3" vector-effect="non-scaling-stroke"/>'
        )
    marks.append(_upright(x(result.value), 1, palette.blue, 4))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none">'
        f'<line x1="0" x2="{_WIDTH:g}" y1="{middle}" y2="{middle}" stroke="{palette.grid}" stroke-width="1" '
        f'vector-effect="non-scaling-stroke"/>{"".join(marks)}</svg>'
    )


def _upright(x: float, margin: float, colour: str, width: int) -> str:
    return (
        f'<line x1="{x}" x2="{x}" y1="{margin}" y2="{_HEIGHT - margin:g}" stroke="{colour}" '
        f'stroke-width="{width}" vector-effect="non-scaling-stroke"/>'
    )

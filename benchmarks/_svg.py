"""Small line charts as SVG for the documents, without a browser or a drawing library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

#: Palette of Okabe and Ito, distinguishable with all kinds of colour vision.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D00")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW = 430, 300, 62, 34, 46


@dataclass(frozen=True)
class Panel:
    """One chart: lines by name, each a list of x and a list of y; a name has the same colour in all panels."""

    title: str
    x_title: str
    y_title: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log_x: bool = False
    log_y: bool = False
    #: Lower and upper y of the shaded band of a line, by its name.
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)


def write(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """Draw the panels side by side, with one legend below."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    width, rows = _WIDTH * len(panels), -(-len(names) // (3 * len(panels)))
    height = _HEIGHT + 22 * rows + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, panel in enumerate(panels):
        parts += [f'<g transform="translate({_WIDTH * i} 0)">', *_panel(panel, colour), "</g>"]
    for i, name in enumerate(names):
        x = _LEFT + (i % (3 * len(panels))) * 135
        y = _HEIGHT + 12 + 22 * (i // (3 * len(panels)))
        parts.append(f'<path d="M{x} {y}h22" stroke="{colour[name]}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 28}" y="{y + 4}">{escape(name)}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def _panel(panel: Panel, colour: Mapping[str, str]) -> list[str]:
    xs = [x for line in panel.lines.values() for x in line[0]]
    ys = [y for line in panel.lines.values() for y in line[1]]
    ys += [y for band in panel.bands.values() for side in band for y in side]
    across = _Scale(min(xs), max(xs), _LEFT, _WIDTH - 14, panel.log_x)
    margin = 0 if panel.log_y else 0.05 * (max(ys) - min(ys))
    up = _Scale(min(ys) - margin, max(ys) + margin, _HEIGHT - _BELOW, _TOP, panel.log_y)
    out = [f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(panel.title)}</text>']
    for tick in across.ticks():
        x = across(tick)
        out.append(f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BELOW}" stroke="#e5e5e5"/>')
        out.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BELOW + 16}" text-anchor="middle">{tick:,.6g}</text>'
        )
    for tick in up.ticks():
        y = up(tick)
        out.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - 14}" stroke="#e5e5e5"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
    middle = (_LEFT + _WIDTH - 14) / 2
    out.append(
        f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(panel.x_title)}</text>'
    )
    out.append(
        f'<text transform="translate(14 {(_TOP + _HEIGHT - _BELOW) / 2}) rotate(-90)" '
        f'text-anchor="middle">{escape(panel.y_title)}</text>'
    )
    for name, (low, high) in panel.bands.items():
        x = panel.lines[name][0]
        around = [*zip(x, low, strict=True), *reversed(list(zip(x, high, strict=True)))]
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in around)
        out.append(f'<polygon points="{points}" fill="{colour[name]}" fill-opacity="0.12"/>')
    for name, (x, y) in panel.lines.items():
        points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(x, y, strict=True))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour[name]}" stroke-width="2"/>'
        )
    return out


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    stop: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high = (self.low, self.high) if self.high > self.low else (self.low, self.low + 1)
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (self.stop - self.start) * (value - low) / (high - low)

    def ticks(self) -> list[float]:
        """Round numbers within the scale, for the ticks."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            ticks = [m * 10.0**k for k in powers for m in (1, 2, 5)]
        else:
            rough = (self.high - self.low) / 5 or 1.0
            unit = 10.0 ** math.floor(math.log10(rough))
            step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= rough)
            first = math.ceil(self.low / step)
            ticks = [round(i * step, 12) for i in range(first, first + 12)]
        return [v for v in ticks if self.low <= v <= self.high]

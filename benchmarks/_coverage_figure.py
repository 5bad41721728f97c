"""Figure of the coverage study as a small SVG: one panel per case, one line per metric, one dot per sample size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LEFT, TOP, PANEL, GAP, LINE = 150, 66, 168, 34, 21
OWN, PLAIN, TEXT, GRID = "#0b6e99", "#c2571a", "#444444", "#e3e3e3"


def draw_coverage(
    results: Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]],
    cases: Sequence[str],
    sizes: Sequence[int],
    labels: Mapping[str, str],
    path: Path,
) -> None:
    """Write the figure, with `labels` of metrics by key; filled dots are the intervals of calviz, rings percentile intervals."""
    keys = list(labels)
    height = TOP + LINE * len(keys) + 52
    width = LEFT + len(cases) * (PANEL + GAP)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{TEXT}">',
        "<title>Share of 95 % intervals that contain the truth, by metric and case</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<text x="12" y="22" font-size="14">Share of 95 % intervals that contain the truth</text>',
        *_legend(sizes, width),
    ]
    for row, key in enumerate(keys):
        y = TOP + LINE * (row + 0.5)
        out.append(f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{labels[key]}</text>')
    for column, case in enumerate(cases):
        out += _panel(results, case, sizes, keys, LEFT + column * (PANEL + GAP))
    path.write_text("\n".join([*out, "</svg>", ""]), encoding="utf-8")


def _legend(sizes: Sequence[int], width: int) -> list[str]:
    out, x = [], width - 520
    for words, colour, filled in (("own interval", OWN, True), ("percentiles", PLAIN, False)):
        out.append(_dot(x, 18, 5, colour, filled))
        out.append(f'<text x="{x + 10}" y="22">{words}</text>')
        x += 110
    for i, n in enumerate(sizes):
        out.append(_dot(x, 18, 2.5 + 1.25 * i, "#888888", True))
        out.append(f'<text x="{x + 10}" y="22">n = {n:,}</text>')
        x += 92
    return out


def _panel(
    results: Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]],
    case: str,
    sizes: Sequence[int],
    keys: Sequence[str],
    left: float,
) -> list[str]:
    def at(percent: float) -> float:
        return left + PANEL * percent / 100

    bottom = TOP + LINE * len(keys)
    out = [f'<text x="{left}" y="{TOP - 12}" font-weight="600">{case}</text>']
    out.append(
        f'<rect x="{at(93):.1f}" y="{TOP}" width="{at(97) - at(93):.1f}" height="{bottom - TOP}" '
        f'fill="{OWN}" opacity="0.15"/>'
    )
    for percent in (0, 50, 95):
        out.append(f'<path d="M{at(percent):.1f} {TOP}V{bottom}" stroke="{GRID}"/>')
        out.append(
            f'<text x="{at(percent):.1f}" y="{bottom + 18}" text-anchor="middle">{percent} %</text>'
        )
    for row, key in enumerate(keys):
        y = TOP + LINE * (row + 0.5)
        out.append(f'<path d="M{left} {y}H{left + PANEL}" stroke="{GRID}"/>')
        for i, n in enumerate(sizes):
            if key in results[case, n]:
                radius = 2.5 + 1.25 * i
                cell = results[case, n][key]
                out.append(_dot(at(cell["plain"]), y, radius, PLAIN, False))
                out.append(_dot(at(cell["own"]), y, radius, OWN, True))
    return out


def _dot(x: float, y: float, radius: float, colour: str, filled: bool) -> str:
    look = f'fill="{colour}" fill-opacity="0.75"' if filled else f'fill="none" stroke="{colour}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'

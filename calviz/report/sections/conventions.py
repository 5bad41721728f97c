"""The ECE of the same predictions by the defaults of other libraries, and why the numbers differ."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from calviz.analysis import conventions
from calviz.figures.conventions import EceByLibrary
from calviz.report.blocks import Block, Facts, Heading, Note, TableBlock, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.specs.convention import ConventionValue
from calviz.text.words import points_cell, signed_points

_POINTS = partial(points_cell, decimals=2)


def make(subject: Subject) -> Iterator[Block]:
    """Yield one row per library: its value, the difference from calviz's, and the reason."""
    values = conventions(subject.sample)
    dots = EceByLibrary.of(values)
    yield Text(dots.describe())
    yield chart(
        dots,
        key="conventions-drawn",
        title="ECE by library",
        caption=caption(subject),
        formats={
            "library": ("library", str),
            "call": ("function", str),
            "value": ("ECE (points)", _POINTS),
            "noise_mean": ("if calibrated (points)", _POINTS),
        },
        width=WIDTH,
    )
    available = [v for v in values if v.available]
    shown = pd.DataFrame(
        {
            "library": [f"{v.convention.library} {v.convention.version}" for v in available],
            "function": [v.convention.call for v in available],
            "ECE (points)": [points_cell(v.value, 2) for v in available],
            "minus calviz's": [signed_points(v.value - values.ece, 2) for v in available],
            "why": [v.convention.why for v in available],
        }
    )
    right = ("ECE (points)", "minus calviz's")
    yield TableBlock("conventions", "Libraries", shown, values.frame().reset_index(), right)
    yield Note(
        "With the defaults of each library: calviz computes them with its own code, written from their documentation "
        "and checked against the versions named."
    )
    missing = [v for v in values if not v.available]
    if missing:
        yield Heading("Without a value")
        yield Facts(tuple(_reason(v) for v in missing))


def _reason(v: ConventionValue) -> tuple[str, str]:
    return f"{v.convention.library} {v.convention.call}", v.reason or "undefined."


SECTIONS.register(
    Section(
        "conventions", "What other libraries call ECE", 75, "The same data's ECE by library", make
    )
)

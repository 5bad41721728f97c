"""Where the probabilities are off: the reliability diagram, and whether the choice of bins matters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.reliability import Reliability
from calviz.report.blocks import Block, CellFormat, Text, chart
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.text.gaps import share_cell, two_shares
from calviz.text.words import (
    counted,
    decimal,
    level_text,
    points,
    points_decimals,
    score_and_hit,
    signed_points,
    whole,
)

#: Heading and format of the columns of the table of bins. Headings have to differ: the second "to" ends with a space.
COLUMNS: dict[str, tuple[str, CellFormat]] = {
    "low": ("above", decimal),
    "high": ("up to", decimal),
    "rows": ("rows", whole),
    "mean_score": ("mean score", share_cell),
    "observed": ("observed", share_cell),
    "ci_low": ("95 % CI from", decimal),
    "ci_high": ("to", decimal),
    "band_low": ("calibrated from", decimal),
    "band_high": ("to ", decimal),
    "gap": ("gap (points)", signed_points),
}


def make(subject: Subject) -> Iterator[Block]:
    """Yield the diagram with its bins, and the ECE by number of bins."""
    diagram = subject.sample.once(Reliability.compute, curves=())
    yield Text(_words(diagram))
    yield chart(
        diagram,
        key="reliability",
        title="Reliability diagram",
        caption=caption(subject, diagram.caption()[-1]),
        formats=COLUMNS,
        width=WIDTH,
    )
    strip = subject.sample.once(BinSensitivity.compute)
    formats: dict[str, tuple[str, CellFormat]] = {"bins": ("bins", whole)}
    for key, words in (("equal_width", "equal width"), ("equal_mass", "equal mass")):
        formats[f"ece_{key}"] = (f"ECE, {words} (points)", lambda v: points(v, 2))
        if strip.floor:
            formats[f"floor_high_{key}"] = (f"noise 95 %, {words} (points)", lambda v: points(v, 2))
    yield chart(
        strip,
        key="ece-by-bins",
        title="ECE by number of bins",
        caption=caption(subject),
        formats=formats,
        rows=[row for row, bins in enumerate(strip.counts.tolist()) if bins <= 20 or bins % 5 == 0],
        width=WIDTH,
    )


def _words(diagram: Reliability) -> str:
    score, hit = score_and_hit(diagram.reduction)
    mean, observed = two_shares(diagram.overall_score, diagram.overall_observed)
    decimals = points_decimals(diagram.ece)
    text = (
        f"The {score} is {mean}, the {hit} {observed}; the "
        f"expected calibration error is {points(diagram.ece, decimals)} points"
    )
    if diagram.ece_interval is not None:
        ends = " to ".join(points(v, decimals) for v in diagram.ece_interval)
        text += f" ({level_text(diagram.level)} CI {ends})"
    text += "."
    if diagram.band is not None:
        low, high = diagram.band
        outside = int(np.count_nonzero((diagram.observed < low) | (diagram.observed > high)))
        text += (
            f" {outside:,} of {counted(diagram.bin.size, 'bin')} with rows "
            f"{'lies' if outside == 1 else 'lie'} outside the range of a calibrated model."
        )
    return text


SECTIONS.register(
    Section(
        "reliability",
        "Reliability",
        30,
        "The diagram, its bins, and the ECE by number of bins",
        make,
        brief=True,
    )
)

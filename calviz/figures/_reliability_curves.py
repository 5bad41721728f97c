"""Bin-free curves on the reliability diagram: kernel-smoothed and isotonic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.figures._parts import Trace, line
from calviz.figures._style import Palette
from calviz.numerics.curves import isotonic_curve, kernel_curve
from calviz.numerics.sample import Sample
from calviz.numerics.steps import steps

if TYPE_CHECKING:
    from calviz.figures.reliability import Reliability

CurveKind = Literal["kernel", "isotonic"]

#: Points of a kernel curve that are drawn; it is smooth between them.
_POINTS = 400


class Curve(NamedTuple):
    """Estimated probability of a hit against the score, shape (P,) each."""

    score: FloatArray
    probability: FloatArray


def make_curves(sample: Sample, kinds: Sequence[CurveKind]) -> dict[CurveKind, Curve]:
    """Estimate the curves that were asked for.

    Raises
    ------
    OptionError
        On an unknown curve.
    """
    made: dict[CurveKind, Curve] = {}
    for kind in kinds:
        if kind not in get_args(CurveKind):
            raise OptionError(f"'curves' are among kernel and isotonic; got {kind!r}.")
        view = sample.view(steps)
        if kind == "kernel":
            x, y = kernel_curve(view)
            some = np.unique(np.linspace(0, x.size - 1, min(x.size, _POINTS)).astype(np.intp))
            made[kind] = Curve(x[some], y[some])
        else:
            first, last, level = isotonic_curve(view)
            made[kind] = Curve(np.stack([first, last], axis=1).ravel(), np.repeat(level, 2))
    return made


def curve_traces(figure: Reliability, palette: Palette) -> Iterator[Trace]:
    """Lines that differ in dash and name as well as in colour."""
    looks = {
        "kernel": ("Kernel-smoothed", palette.green, "solid"),
        "isotonic": ("Isotonic (CORP)", palette.ink, "3px,2px"),
    }
    for rank, (kind, curve) in enumerate(figure.curves.items(), start=7):
        name, colour, dash = looks[kind]
        # All scores equal: a line without length would not be seen.
        point = float(np.ptp(curve.score)) == 0
        yield line(
            curve.score,
            curve.probability,
            colour,
            width=3,
            dash=dash,
            name=name,
            hoverinfo="skip",
            legendrank=rank,
        ) | ({"mode": "markers", "marker": {"size": 9, "symbol": "x"}} if point else {})

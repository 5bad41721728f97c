"""torchmetrics: ``calibration_error`` (1.9.0), and probmetrics, which calls it.

Bins are [a, b) between ``torch.linspace(0, 1, 16)``, and scores of exactly 1 have a bin of their own. The
multiclass form takes the top label and casts it to float32; the binary form takes P(class 1) in the type that
it comes in. It also sums in that type, which is not repeated here: values agree to some 1e-6.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.convention import CONVENTIONS, Convention
from calviz.core.events import BinaryEvents
from calviz.numerics.sample import Sample
from calviz.peers._bins import mean_gap, positive_of_two

_BINS = 15


def torch_linspace(bins: int, dtype: np.dtype[np.floating]) -> FloatArray:
    """0, 1/M, ..., 1 as torch counts them: up from 0 in the lower half, down from 1 in the upper."""
    step = dtype.type(1) / dtype.type(bins)
    up = np.arange(bins + 1, dtype=dtype)
    edges = np.where(up < (bins + 1) // 2, up * step, 1 - up[::-1] * step)
    return np.asarray(edges, dtype=dtype)


def _ece(events: BinaryEvents, score: FloatArray) -> float:
    edges = torch_linspace(_BINS, score.dtype)
    cell = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS)
    return mean_gap(score, events.hit.astype(np.float64), cell, _BINS + 1)


def torchmetrics_ece(sample: Sample) -> float:
    """Of the top label in float32; of any other event in the type of the scores."""
    events = sample.events
    is_top = sample.reduction.kind == "top-label"
    return _ece(events, events.score.astype(np.float32) if is_top else events.score)


def probmetrics_ece(sample: Sample) -> float:
    """The same, of the positive class where there are two classes."""
    events = positive_of_two(sample)
    if events is sample.events:
        return torchmetrics_ece(sample)
    return _ece(events, events.score)


_convention = partial(
    Convention, rule="15 equal-width bins [a, b), one more for scores of exactly 1"
)
CONVENTIONS.register(
    _convention(
        key="torchmetrics",
        library="torchmetrics",
        version="1.9.0",
        call="calibration_error",
        why="Bins are closed on the left, confidences are rounded to single precision, and scores of exactly "
        "1 have a bin of their own, so that it differs where scores lie on an edge or at 1.",
        reference="https://lightning.ai/docs/torchmetrics/stable/classification/calibration_error.html",
        value=torchmetrics_ece,
    )
)
CONVENTIONS.register(
    _convention(
        key="probmetrics",
        library="probmetrics",
        version="1.3.0",
        call="ece-15",
        why="It calls torchmetrics, but where there are two classes it looks at the positive class instead of "
        "the predicted one.",
        reference="https://github.com/dholzmueller/probmetrics",
        value=probmetrics_ece,
    )
)

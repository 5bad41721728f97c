"""torchmetrics: ``calibration_error`` (1.9.0), and probmetrics, which calls it.

Bins are [a, b) between ``torch.linspace(0, 1, 16)``, and scores of exactly 1 have a bin of their own. The
multiclass form uses the top label, cast to float32; the binary form uses P(class 1) in its own dtype.
torchmetrics also sums in that dtype, which is not reproduced here: values agree to about 1e-6.

probmetrics drops classes without labels, clips probabilities to [1e-7, 1 - 1e-7], normalises rows to sum to 1, and
uses the binary form if two classes are left.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.peers._bins import mean_gap
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_BINS = 15


def torch_linspace(bins: int, dtype: np.dtype[np.floating]) -> FloatArray:
    """Return 0, 1/M, ..., 1, shape (M + 1,), as torch computes it: up from 0 in the lower half, down from 1 in the upper."""
    step = dtype.type(1) / dtype.type(bins)
    up = np.arange(bins + 1, dtype=dtype)
    edges = np.where(up < (bins + 1) // 2, up * step, 1 - up[::-1] * step)
    return np.asarray(edges, dtype=dtype)


def _ece(score: FloatArray, hit: BoolArray) -> float:
    edges = torch_linspace(_BINS, score.dtype)
    cell = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS)
    return mean_gap(score, hit.astype(np.float64), cell, _BINS + 1)


def torchmetrics_ece(sample: Sample) -> float:
    """Compute the ECE for the top label in float32, for any other event in the dtype of the scores."""
    score, hit = sample.events.score, sample.events.hit
    is_top = sample.reduction.kind == "top-label"
    return _ece(score.astype(np.float32) if is_top else score, hit)


def probmetrics_ece(sample: Sample) -> float:
    """Compute the ECE on the classes that occur, for the positive class if these are two."""
    data = sample.data
    if not isinstance(data, Predictions):
        return torchmetrics_ece(sample)
    if sample.reduction.kind == "top-label":
        probs, labels = data.probs, data.labels
    else:
        score, labels = sample.events.score, sample.events.hit.astype(np.int32)
        probs = np.stack([1 - score, score], axis=1)
    classes, position = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise NotAvailable("not available: all labels are of one class, which probmetrics refuses.")
    score = np.empty(data.n, dtype=probs.dtype)
    hit = position == 1
    for rows in row_blocks(probs):
        # Keep probabilities away from 0 and 1, and let the rows sum to 1 again.
        block = np.clip(probs[rows][:, classes], 1e-7, 1 - 1e-7)
        block /= block.sum(axis=1, keepdims=True)
        if classes.size == 2:
            score[rows] = block[:, 1]
        else:
            score[rows], hit[rows] = block.max(axis=1), block.argmax(axis=1) == position[rows]
    return _ece(score if classes.size == 2 else score.astype(np.float32), hit)


_convention = partial(
    Convention, rule="15 equal-width bins [a, b), one more for scores of exactly 1"
)
CONVENTIONS.register(
    _convention(
        key="torchmetrics",
        library="torchmetrics",
        version="1.9.0",
        call="calibration_error",
        why="Bins are closed on the left, with edges in single precision, and scores of exactly 1 have a bin of their "
        "own: it differs for scores on an edge or at 1.",
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
        why="It calls torchmetrics on the classes that occur; if these are two, it always looks at the "
        "positive one.",
        reference="https://github.com/dholzmueller/probmetrics",
        value=probmetrics_ece,
    )
)

"""Rankings of predictions by certainty: confidence, entropy or margin."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import for_row_blocks
from calviz.core.events import BinaryEvents
from calviz.core.options import check_choice
from calviz.sample.losses import full_predictions
from calviz.sample.ranking import ranked
from calviz.sample.sample import Sample
from calviz.sample.step_views import redrawn, reweighted, top_label_steps
from calviz.sample.steps import Steps, make_steps
from calviz.specs.metric import reweighted_by

RankedBy = Literal["confidence", "entropy", "margin"]

#: Size of a block of rows in bytes, small enough that a copy also fits into the cache.
_BLOCK_BYTES = 1 << 18


def negative_entropy(probs: FloatArray) -> FloatArray:
    """``sum_k p_k ln p_k`` of each row of `probs` (n, K), in nats, shape (n,); 0 if one class has probability 1."""
    out = np.empty(probs.shape[0])
    tiny = np.finfo(probs.dtype).tiny

    def work(rows: slice) -> None:
        block = np.maximum(probs[rows], tiny)
        out[rows] = np.einsum("ij,ij->i", block, np.log(block))

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return np.minimum(out, 0)


def margin(probs: FloatArray) -> FloatArray:
    """Largest minus second largest probability of each row of `probs` (n, K), shape (n,)."""
    out = np.empty(probs.shape[0])

    def work(rows: slice) -> None:
        top = np.partition(probs[rows], probs.shape[1] - 2, axis=1)[:, -2:]
        np.subtract(top[:, 1], top[:, 0], out=out[rows])

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return out


@reweighted_by(
    lambda sample, view: reweighted(_ranked_events(sample, view), view),
    redrawn=lambda sample, view: redrawn(_ranked_events(sample, view), view),
    weighted=True,
    grouped=True,
)
def ranking_steps(sample: Sample, *, by: RankedBy = "confidence") -> Steps:
    """Rows and right predictions per distinct value of a ranking, ascending; of the top label, whatever the reduction.

    The values lie in [0, 1], with the most certain predictions highest: confidence, margin, or ``1 - entropy / ln K``.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    """
    if by == "confidence":
        # The same cached view, so that it is resampled only once.
        return sample.view(top_label_steps)
    value = ranking_values(sample, by)
    events = BinaryEvents(value, sample.top_scored.hit)
    view = make_steps(events, sample.weights)
    view.__dict__["_events"] = events
    return view


def ranking_values(sample: Sample, by: RankedBy) -> FloatArray:
    """Values by which the rows are ranked, shape (n,), with the most certain predictions highest.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    OptionError
        If the ranking is unknown.
    """
    check_choice("ranking", by, get_args(RankedBy))
    if by == "confidence":
        return sample.top_scored.score
    data = full_predictions(sample)
    if by == "entropy":
        return np.asarray(
            np.maximum(1 + negative_entropy(data.probs) / math.log(data.n_classes), 0)
        )
    return np.asarray(np.maximum(margin(data.probs), 0))


def _ranked_events(sample: Sample, view: Steps) -> BinaryEvents:
    events: BinaryEvents = view.__dict__.get("_events", sample.top_scored)
    return events


def errors_along(view: Steps, kept: FloatArray) -> FloatArray:
    """Expected number of errors among the rows ranked highest, for each of C counts, shape (..., C).

    Within a group of ties, rows are kept at random, so the expectation is linear.

    Parameters
    ----------
    view : Steps
    kept : ndarray, shape (C,)
        Numbers of rows, from 0 to n.
    """
    ranking = ranked(view)
    rows = np.atleast_2d(ranking.rows)
    errors = np.atleast_2d(ranking.errors)
    out = np.empty((rows.shape[0], kept.size))
    for line, upto, wrong in zip(out, rows, errors, strict=True):
        line[:] = np.interp(kept, upto, wrong)
        # Interpolate between 0 rows and the first step without copying all steps to prepend a 0.
        first = kept < upto[0]
        line[first] = kept[first] * (wrong[0] / max(upto[0], 1e-300))
    return out.reshape(*view.count.shape[:-1], kept.size)


def area_under_risk(view: Steps) -> float:
    """Area under the risk-coverage curve (AURC): linear between steps, constant before the first one."""
    ranking = ranked(view)
    risk = ranking.errors / ranking.rows
    heights = np.append(risk[0], (risk[1:] + risk[:-1]) / 2)
    return float(heights @ np.diff(ranking.rows, prepend=0.0) / ranking.n)

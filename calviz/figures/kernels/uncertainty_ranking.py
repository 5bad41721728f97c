"""Which predictions to trust first: confidence, entropy or margin."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents
from calviz.numerics.blocks import for_row_blocks
from calviz.sample.losses import full_predictions
from calviz.sample.ranking import ranked
from calviz.sample.sample import Sample
from calviz.sample.step_views import redrawn, reweighted, top_label_steps
from calviz.sample.steps import Steps, make_steps
from calviz.specs.metric import reweighted_by

Ranking = Literal["confidence", "entropy", "margin"]

#: Blocks of rows of about this many bytes, with room for a copy in the cache.
_BLOCK_BYTES = 1 << 18


def negative_entropy(probs: FloatArray) -> FloatArray:
    """``sum_k p_k ln p_k`` per row in nats, shape (n,); 0 where one class has all probability."""
    out = np.empty(probs.shape[0])
    tiny = np.finfo(probs.dtype).tiny

    def work(rows: slice) -> None:
        block = np.maximum(probs[rows], tiny)
        out[rows] = np.einsum("ij,ij->i", block, np.log(block))

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return np.minimum(out, 0)


def margin(probs: FloatArray) -> FloatArray:
    """Largest minus second largest probability per row, shape (n,)."""
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
def ranking_steps(sample: Sample, *, by: Ranking = "confidence") -> Steps:
    """Rows and right predictions per distinct value of a ranking, ascending; the top label's, whatever the reduction.

    The values lie in [0, 1], the highest to be trusted most: confidence, margin, or ``1 - entropy / ln K``.

    Raises
    ------
    NotAvailable
        For confidence-only data and another ranking than the confidence.
    """
    if by == "confidence":
        # The very same view, so that it is resampled once.
        return sample.view(top_label_steps)
    value = ranking_values(sample, by)
    events = BinaryEvents(value, sample.top_scored.hit)
    made = make_steps(events, sample.weights)
    made.__dict__["_events"] = events
    return made


def ranking_values(sample: Sample, by: Ranking) -> FloatArray:
    """What the rows are ranked by, shape (n,): the highest to be trusted most.

    Raises
    ------
    NotAvailable
        For confidence-only data and another ranking than the confidence.
    OptionError
        On another ranking.
    """
    if by == "confidence":
        return sample.top_scored.score
    data = full_predictions(sample)
    if by == "entropy":
        found: FloatArray = np.maximum(
            1 + negative_entropy(data.probs) / math.log(data.n_classes), 0
        )
    elif by == "margin":
        found = np.maximum(margin(data.probs), 0)
    else:
        raise OptionError(f"'ranking' must be confidence, entropy or margin; got {by!r}.")
    return found


def _ranked_events(sample: Sample, view: Steps) -> BinaryEvents:
    found: BinaryEvents = view.__dict__.get("_events", sample.top_scored)
    return found


def errors_along(view: Steps, kept: FloatArray) -> FloatArray:
    """Expected errors among the first rows by rank, for each of C counts, shape (..., C).

    Inside a group of ties, which rows are kept is left to chance: the expectation is linear.

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
        # From no row to the first step, without a copy of all steps that begins with 0.
        first = kept < upto[0]
        line[first] = kept[first] * (wrong[0] / max(upto[0], 1e-300))
    return out.reshape(*view.count.shape[:-1], kept.size)


def area_under_risk(view: Steps) -> float:
    """Area under the risk-coverage curve (AURC): linear between steps, flat below the first one."""
    ranking = ranked(view)
    risk = ranking.errors / ranking.rows
    heights = np.append(risk[0], (risk[1:] + risk[:-1]) / 2)
    return float(heights @ np.diff(ranking.rows, prepend=0.0) / ranking.n)

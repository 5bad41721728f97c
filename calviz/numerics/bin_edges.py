"""Edges of bins."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.bins import Scheme, bins_used
from calviz.core.errors import OptionError
from calviz.core.events import BinaryEvents, ends_of_near_ties, tied_scores

#: Largest number of bins: more say nothing and slow everything down.
MAX_BINS = 1_000


def equal_width_edges(bins: int, dtype: np.dtype[Any] | type = np.float64) -> FloatArray:
    """Return the edges 0, 1/M, ..., 1, rounded to the dtype of the scores, shape (M + 1,).

    A score that was written as an edge lies on that edge, whatever its dtype: the float32 number
    nearest to 0.3 is larger than the float64 number nearest to 0.3, so that against float64
    edges it would fall into the next bin. (Edges as multiples of 1/M have the same flaw:
    ``3 * 0.1`` is larger than ``0.3``, where ``3 / 10`` is not.)
    """
    return (np.arange(bins + 1) / bins).astype(dtype)


def equal_mass_edges(score: FloatArray, bins: int, *, is_sorted: bool = False) -> FloatArray:
    """Return edges between bins of (nearly) equal counts; ties stay together, no bin is empty.

    Scores have shape (n,), edges (M + 1,). The sorted scores are cut as by ``np.array_split``: bin sizes differ by at most one, the
    larger ones first. A cut inside a group of ties (equal up to rounding) moves to the end of that group, and cuts that coincide are
    merged, so that there may be fewer bins than asked for. The edge is the last score below the cut.

    Notes
    -----
    uncertainty-calibration cuts in the same places and puts the edge half-way to the next score; both put
    every row of these data into the same bin. Implementations that split by rank (torch-uncertainty,
    robustness_metrics, Mix-n-Match) tear ties apart, so that their value depends on the order of the rows.
    """
    ordered = score if is_sorted else np.sort(score)
    n = ordered.shape[0]
    size, larger = divmod(n, bins)
    m = np.arange(1, bins)
    cuts = m * size + np.minimum(m, larger)
    cuts = cuts[(cuts > 0) & (cuts < n)]
    # Looked up at the ends of their ties, as a copy with one score per tie would be large.
    places = ends_of_near_ties(ordered, np.concatenate([[0], cuts - 1, [n - 1]]))
    return _with_ends(ordered[places[1:-1]], ordered[places[[0, -1]]])


def assign(score: FloatArray, edges: FloatArray) -> IntArray:
    """Return the index of the right-closed bin ``(edges[m], edges[m + 1]]`` of each score; the first bin includes 0.

    Scores of any shape, edges of shape (M + 1,); the result has the shape of the scores.
    """
    return np.searchsorted(edges[1:-1], score, side="left")


def check_bins(bins: int) -> None:
    """Raise OptionError if this number of bins is not allowed."""
    if not 1 <= bins <= MAX_BINS:
        raise OptionError(f"the number of bins must be from 1 to {MAX_BINS:,}, got {bins}.")


def weighted_mass_edges(
    score: FloatArray, weights: FloatArray, bins: int, *, counted: bool = False
) -> FloatArray:
    """Return edges between bins of (nearly) equal sums of weights, shape (M + 1,); ties stay together, no bin is empty.

    Scores and weights have shape (n,). A cut follows the row at which the cumulative weight reaches its share. The bins are those of
    `equal_mass_edges` for equal weights if M divides n, and always for weights that count rows (`counted`).
    """
    order = np.argsort(score, kind="stable")
    ordered = tied_scores(score[order])
    upto = np.cumsum(weights[order])
    if counted:
        size, larger = divmod(int(upto[-1]), bins)
        m = np.arange(1, bins)
        cut_weights = m * size + np.minimum(m, larger)
        cut_weights = cut_weights[cut_weights > 0].astype(np.float64)
    else:
        # Sums of weights that should be equal may differ by rounding.
        cut_weights = upto[-1] * np.arange(1, bins) / bins * (1 - 1e-12)
    return _with_ends(ordered[np.searchsorted(upto, cut_weights)], ordered)


def _with_ends(inner: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return distinct edges from the last scores of the bins but the last, with the ends 0 and 1; `ordered` are the scores, or their ends."""
    inner = np.unique(inner)
    inner = inner[inner < ordered[-1]]
    # Rounding may leave scores a little outside [0, 1]; the edges still enclose them all.
    ends = np.array([min(0, ordered[0]), max(1, ordered[-1])], dtype=ordered.dtype)
    return np.concatenate([ends[:1], inner, ends[1:]])


def make_edges(
    events: BinaryEvents, bins: int, scheme: Scheme, weights: FloatArray | None = None
) -> FloatArray:
    """Return the edges of a binning scheme for these events, shape (M + 1,), in the dtype of the scores.

    With `weights`, shape (n,), equal-mass bins have equal sums of weights. Raises OptionError for an unknown scheme.
    """
    if scheme not in get_args(Scheme):
        raise OptionError(f"'scheme' must be one of {', '.join(get_args(Scheme))}; got {scheme!r}.")
    check_bins(bins)
    if scheme == "equal-mass" and weights is not None:
        return weighted_mass_edges(events.score, weights, bins, counted=events.counted)
    if scheme == "equal-mass":
        return equal_mass_edges(events.rows.score, bins, is_sorted=True)
    rows = int(weights.sum()) if events.counted and weights is not None else events.n
    edges = equal_width_edges(bins_used(rows, bins, scheme), events.edge_type)
    return edges.astype(events.score.dtype)

"""Rows worth looking at: the most confident mistakes, the highest losses, and outcomes that contradict their bin."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.sample.sample import Sample, chosen_bins
from calviz.sample.subset_summary import row_log_losses

Why = Literal["mistake", "loss", "bin"]


def notable_rows(
    sample: Sample, why: Why, *, most: int = 200, among: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The rows that stand out most, and by how much.

    Parameters
    ----------
    sample : Sample
    why : {"mistake", "loss", "bin"}
        ``mistake``: the distance between score and outcome, |s - h|, of rows that are predicted wrongly; where the score is
        the probability of an event, of rows on the wrong side of 0.5. ``loss``: the negative logarithm of the probability of
        the true class. ``bin``: the distance between the outcome and the share of hits of the row's bin.
    most : int
        Largest number of rows to return.
    among : ndarray of int, shape (A,), optional
        Return only some of these rows.

    Returns
    -------
    rows : ndarray of int, shape (M,)
        The most notable first, ties in the order of the data; empty if there is no mistake.
    value : ndarray, shape (M,)

    Raises
    ------
    NotAvailable
        For losses of data without the probabilities of all classes.
    OptionError
        For any other `why`.
    """
    if why not in get_args(Why):
        raise OptionError(f"'why' is one of {', '.join(get_args(Why))}; got {why!r}.")
    value = _value(sample, why)
    if among is not None:
        not_among = np.ones(value.shape, dtype=np.bool_)
        not_among[among] = False
        value = np.where(not_among, -np.inf, value)
    count = min(most, int(np.count_nonzero(value > -np.inf)))
    if not count:
        return np.empty(0, dtype=np.intp), np.empty(0)
    # The largest without sorting all; ties at the border are decided by the order of the data.
    limit = np.partition(value, value.size - count)[value.size - count]
    candidates = np.flatnonzero(value >= limit)
    order = candidates[np.argsort(-value[candidates], kind="stable")][:count]
    return order, value[order]


def _value(sample: Sample, why: Why) -> FloatArray:
    if why == "loss":
        return row_log_losses(sample)
    score, hit = sample.scored.score, sample.scored.hit.astype(np.float64)
    if why == "mistake":
        off = np.abs(score - hit)
        of_event = sample.reduction.kind in ("positive", "class", "top-r")
        return np.where(off > 0.5 if of_event else hit == 0, off, -np.inf)
    sums = chosen_bins(sample)
    at = np.searchsorted(sums.edges[1:-1], score, side="left")
    return np.abs(hit - sums.accuracy[at])

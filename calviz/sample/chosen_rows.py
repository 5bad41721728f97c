"""Some of the rows: a summary of any selection, and the rows most worth looking at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calviz.core.blocks import FloatArray, IntArray
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.core.p_values import clopper_pearson
from calviz.sample.binning import effective_rows
from calviz.sample.error_bars import LEVEL, Interval
from calviz.sample.losses import row_log_losses
from calviz.sample.sample import Sample, chosen_bins


@dataclass(frozen=True)
class PartNumbers:
    """Summary of some rows; no test is run on them, as they may have been chosen by looking at their outcomes.

    Attributes
    ----------
    rows : int
    share : float
        Share of all rows, by weight for weighted rows.
    score, observed : float
        Mean score and share of hits; nan without rows.
    interval : Interval or None
        Exact interval (Clopper and Pearson) of ``score - observed``, with the mean score taken as fixed; None without rows.
    misses : float
        Share of all misses of the sample that are among these rows; nan if the sample has no misses.
    log_loss, loss_share : float or None
        Mean negative logarithm of the probability of the true class, and the share of these rows in the sum over all rows;
        None if the data do not hold these probabilities.
    """

    rows: int
    share: float
    score: float
    observed: float
    interval: Interval | None
    misses: float
    log_loss: float | None
    loss_share: float | None

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.score - self.observed


def part_numbers(sample: Sample, rows: IntArray | None = None) -> PartNumbers:
    """Summarise some rows under the sample's reduction.

    Parameters
    ----------
    sample : Sample
    rows : ndarray of int, shape (M,), optional
        Numbers of the rows; all rows if left out.
    """
    events, weights_of_all = sample.scored, sample.row_weights
    part = np.arange(events.n) if rows is None else rows
    w, score, hit = weights_of_all[part], events.score[part].astype(np.float64), events.hit[part]
    mass = float(w.sum())
    all_misses = float(weights_of_all @ ~events.hit)
    misses = float(w @ ~hit) / all_misses if all_misses else np.nan
    count = round(mass) if events.counted else part.size
    losses = _losses(sample)
    if not part.size:
        none = None if losses is None else np.nan
        return PartNumbers(0, 0.0, np.nan, np.nan, None, misses, none, none)
    mean, observed = float(w @ score) / mass, float(w @ hit) / mass
    loss = loss_share = None
    if losses is not None:
        loss_sum = float(w @ losses[part])
        loss, loss_share = loss_sum / mass, loss_sum / max(float(weights_of_all @ losses), 1e-300)
    return PartNumbers(
        rows=count,
        share=mass / float(weights_of_all.sum()),
        score=mean,
        observed=observed,
        interval=_gap_interval(sample, part, mean, observed),
        misses=misses,
        log_loss=loss,
        loss_share=loss_share,
    )


def _gap_interval(sample: Sample, part: IntArray, mean: float, observed: float) -> Interval:
    events, weights, clusters = sample.scored, sample.weights, sample.data.clusters
    own = None if weights is None else weights[part]
    if events.counted:
        assert own is not None
        independent = float(own.sum())
    else:
        few = BinaryEvents(events.score[part], events.hit[part])
        cluster = (
            None if clusters is None else np.unique(clusters.codes[part], return_inverse=True)[1]
        )
        independent = float(effective_rows(few, np.array([0.0, 1.0]), cluster, own)[0])
    low, high = clopper_pearson(
        np.array([observed * independent]), np.array([independent]), level=LEVEL
    )
    return Interval(mean - float(high[0]), mean - float(low[0]))


def _losses(sample: Sample) -> FloatArray | None:
    try:
        return row_log_losses(sample)
    except NotAvailable:
        return None


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

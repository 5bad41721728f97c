"""Rows in the order of their scores, for discrimination, selective prediction and failure detection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.safe_division import quotient
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view


class Ranking(NamedTuple):
    """Cumulative sums from the most to the least confident step, shape (..., G) each.

    Attributes
    ----------
    rows, errors : ndarray
        Number of rows kept, and of wrong predictions among them, if all rows down to this step are kept.
    """

    rows: FloatArray
    errors: FloatArray

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return self.rows[..., -1]


@once_per_view
def ranked(view: Steps) -> Ranking:
    """Cumulative rows and errors, most confident first; tied rows enter together."""
    return Ranking(
        np.cumsum(view.count[..., ::-1], axis=-1),
        np.cumsum((view.count - view.hits)[..., ::-1], axis=-1),
    )


def ranked_parts(view: Steps) -> Iterator[Ranking]:
    """`ranked`, a block of steps at a time; every block but the first begins with the last entry of the one before."""
    rows: FloatArray = np.zeros(())
    errors: FloatArray = np.zeros(())
    for i, part in enumerate(view.blocks(descending=True)):
        ranking = ranked(part)
        if i:
            ranking = Ranking(
                np.append(rows, ranking.rows + rows), np.append(errors, ranking.errors + errors)
            )
        yield ranking
        rows, errors = ranking.rows[..., -1], ranking.errors[..., -1]


def errors_at_coverage(view: Steps, coverage: float) -> FloatArray:
    """Expected errors among the ``coverage * n`` most confident rows, shape (...).

    Among tied rows, those to keep are chosen at random: the expectation is linear.
    """
    target = coverage * view.n[..., None]
    ranking = next(r for r in ranked_parts(view) if (r.rows[..., -1:] >= target).all())
    at = np.minimum((ranking.rows < target).sum(axis=-1, keepdims=True), ranking.rows.shape[-1] - 1)
    before = np.maximum(at - 1, 0)
    first = at == 0

    def pick(
        values: FloatArray, index: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
    ) -> FloatArray:
        return np.take_along_axis(values, index, axis=-1)

    rows0 = np.where(first, 0.0, pick(ranking.rows, before))
    errors0 = np.where(first, 0.0, pick(ranking.errors, before))
    rows1, errors1 = pick(ranking.rows, at), pick(ranking.errors, at)
    width = np.maximum(rows1 - rows0, 1e-300)
    return np.asarray((errors0 + (errors1 - errors0) * (target - rows0) / width)[..., 0])


def coverage_at(view: Steps, risk: float) -> FloatArray:
    """Largest share of the rows that whole steps can keep at this error rate or less, shape (...); 0 where none can."""
    kept = np.zeros(np.shape(view.n))
    for rows, errors in ranked_parts(view):
        fine = errors <= risk * rows + 1e-9
        kept = np.maximum(kept, np.where(fine, rows, 0.0).max(axis=-1))
    # Sums of weights in another order are not the same in their last digits.
    return np.asarray(np.where(kept > view.n * (1 - 1e-12), 1.0, kept / view.n))


@once_per_view
def chance_of_order(view: Steps) -> FloatArray:
    """Probability that a hit has a higher score than a miss, ties counting half, shape (...); ``nan`` without hits or without misses."""
    upto, ordered = np.zeros(view.n.shape), np.zeros(view.n.shape)
    for part in view.blocks():
        missed = part.count - part.hits
        below = np.cumsum(missed, axis=-1)
        below -= missed / 2
        ordered += (part.hits * below).sum(axis=-1) + part.n_hits * upto
        upto += missed.sum(axis=-1)
    return quotient(ordered, view.n_hits * upto)


def average_precision(view: Steps, *, of: Literal["hits", "misses"]) -> FloatArray:
    """Average precision of finding the hits by their high scores, or the misses by their low ones, shape (...).

    Tied rows enter together; ``nan`` where there is nothing to find.
    """
    of_hits = of == "hits"
    found_so_far, rows_so_far, total = (np.zeros(view.n.shape) for _ in range(3))
    for part in view.blocks(descending=of_hits):
        turn = slice(None, None, -1 if of_hits else 1)
        wanted = (part.hits if of_hits else part.count - part.hits)[..., turn]
        upto = np.cumsum(wanted, axis=-1) + found_so_far[..., None]
        rows = np.cumsum(part.count[..., turn], axis=-1) + rows_so_far[..., None]
        found_so_far, rows_so_far = upto[..., -1].copy(), rows[..., -1]
        precision = np.divide(upto, rows, out=upto, where=rows > 0)
        precision *= wanted
        total += precision.sum(axis=-1)
    return quotient(total, found_so_far)

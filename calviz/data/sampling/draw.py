"""Draw a stratified sample that depends only on the rows, not on their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.data.sampling.hashes import Hashes, rehashed, uniform

#: Number of counters; rows are counted by hash, so each counter is an upper bound on the copies of a row.
COUNTERS = 1 << 24
#: Number of candidates collected before copies are merged.
_PENDING = 1 << 21


def counted_rows(counters: np.ndarray[tuple[int], np.dtype[Any]], hashes: Hashes) -> IntArray:
    """Count in the counter of each row, shape (n,)."""
    return counters[(hashes & np.uint64(counters.size - 1)).astype(np.intp)].astype(np.intp)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The drawn contents (distinct rows), and how many rows of each are for fitting and for judging.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (m,)
        In ascending order.
    fit, judged : ndarray of int, shape (m,)
    """

    hashes: Hashes
    fit: IntArray
    judged: IntArray

    def taken(self) -> Callable[[Hashes, IntArray], tuple[IntArray, IntArray]]:
        """Return a function, to be called block by block, from hashes and frequency weights of rows, shape (n,) each, to draws.

        Its result is how often each row was drawn for fitting and for judging, shape (n,) each. Of equal rows, the first ones
        are taken, since they differ in nothing that matters.
        """
        seen = np.zeros(self.hashes.size, dtype=np.intp)

        def of(hashes: Hashes, copies: IntArray) -> tuple[IntArray, IntArray]:
            draws = np.zeros((2, hashes.size), dtype=np.intp)
            if not self.hashes.size:
                return draws[0], draws[1]
            index = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
            rows = np.flatnonzero(self.hashes[index] == hashes)
            order = rows[np.argsort(index[rows], kind="stable")]
            if not order.size:
                return draws[0], draws[1]
            content, weights = index[order], copies[order]
            new = np.flatnonzero(np.diff(content, prepend=-1))
            before = np.cumsum(weights) - weights
            before -= np.repeat(before[new], np.diff(new, append=content.size)) - seen[content]
            seen[content[new]] += np.add.reduceat(weights, new)
            fit, all_drawn = self.fit[content], (self.fit + self.judged)[content]
            fits, drawn = (
                np.minimum(before + weights, most) - np.minimum(before, most)
                for most in (fit, all_drawn)
            )
            draws[0, order], draws[1, order] = fits, drawn - fits
            return draws[0], draws[1]

        return of


def draw(
    blocks: Callable[[], Iterable[tuple[Hashes, IntArray, IntArray, IntArray]]],
    counts: IntArray,
    fit: IntArray,
    judged: IntArray,
    seed: int,
) -> Drawn:
    """Draw the requested number of rows from each stratum.

    Parameters
    ----------
    blocks : callable
        Yields all rows block by block: hashes, strata, an upper bound on the number of copies of each row, and its own frequency
        weight, shape (n,) each.
    counts, fit, judged : ndarray of int, shape (S,)
        Per stratum: number of rows, and how many to draw for fitting and for judging.
    seed : int

    Notes
    -----
    Copy j = 0, ..., m - 1 of a content gets the position (j + u) / m, with u in (0, 1] from the hash of the content and the seed.
    The rows of a stratum with the smallest positions are drawn: every row has the same probability of being drawn, and the m copies
    of a content are drawn in proportion, to within one row, so that frequent rows (saturated or rounded scores) are neither all
    drawn nor all left out. A smaller sample with the same seed is part of a larger one.
    """
    needed = fit + judged
    # Positions are uniform, so this is more than eight standard deviations above the expected need.
    limit = np.minimum((needed + 8 * np.sqrt(needed) + 16) / np.maximum(counts, 1), 1.0)
    while True:
        hashes, strata, copies = _candidates(blocks, limit, seed)
        position, content = _positions(hashes, copies, limit[strata], seed)
        stratum = strata[content]
        available = np.bincount(stratum, minlength=counts.size)
        if ((available >= needed) | (limit >= 1)).all():
            break
        limit = np.where(available < needed, np.minimum(2 * limit, 1.0), limit)
    order = np.lexsort((content, position, stratum))
    rank = np.arange(order.size) - np.searchsorted(stratum[order], stratum[order])
    is_fit = rank < fit[stratum[order]]
    is_judged = ~is_fit & (rank < needed[stratum[order]])
    size = hashes.size
    draws = [np.bincount(content[order[chosen]], minlength=size) for chosen in (is_fit, is_judged)]
    drawn = np.flatnonzero(draws[0] + draws[1])
    return Drawn(hashes[drawn], draws[0][drawn], draws[1][drawn])


def _candidates(
    blocks: Callable[[], Iterable[tuple[Hashes, IntArray, IntArray, IntArray]]],
    limit: FloatArray,
    seed: int,
) -> tuple[Hashes, IntArray, IntArray]:
    """Contents whose first copy may be within the limit: ascending hashes, strata and exact numbers of copies, shape (m,) each."""
    pending: list[tuple[Hashes, IntArray, IntArray]] = []
    rows = 0
    for hashes, strata, most_copies, weights in blocks():
        within_limit: BoolArray = uniform(rehashed(hashes, seed)) <= limit[strata] * most_copies
        pending.append((hashes[within_limit], strata[within_limit], weights[within_limit]))
        rows += pending[-1][0].size
        if rows > _PENDING:
            pending, rows = [_merged(pending)], 0
    return _merged(pending)


def _merged(parts: list[tuple[Hashes, IntArray, IntArray]]) -> tuple[Hashes, IntArray, IntArray]:
    hashes, strata, copies = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    distinct, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.zeros(distinct.size, dtype=np.intp)
    np.add.at(summed, place, copies)
    return distinct, strata[first], summed


def _positions(
    hashes: Hashes, copies: IntArray, limit: FloatArray, seed: int
) -> tuple[FloatArray, IntArray]:
    """Positions of all copies that may be within the limit, and the index of the content of each, shape (c,) each."""
    u = uniform(rehashed(hashes, seed))
    within = np.clip(np.floor(copies * limit - u).astype(np.intp) + 1, 0, copies)
    content = np.repeat(np.arange(hashes.size), within)
    number = np.arange(content.size) - np.repeat(np.cumsum(within) - within, within)
    return (number + u[content]) / copies[content], content

"""Binary events (score, hit), which every calibration metric and diagram is computed from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only
from calviz.core.errors import InputError

#: Sorted rows are cached for up to this many events; larger data are sorted on each request.
CACHED_ROWS = 1 << 18
#: Double-precision scores whose relative difference is at most this are considered equal up to rounding.
ROUNDING = 1e-12
#: Block size in rows for comparing neighbours; temporaries of this size stay in the CPU cache.
_RUN = 1 << 14


class Ordered(NamedTuple):
    """Events sorted by score.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        Scores, ascending. Scores that differ only by rounding may be replaced by their largest (`one_score_per_tie`).
    hit : ndarray of bool, shape (n,)
        Their hits; among tied scores, misses come first.
    """

    score: FloatArray
    hit: BoolArray


@dataclass(frozen=True, eq=False)
class BinaryEvents:
    """One score per row, and whether its event happened.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        Predicted probability of the event, in [0, 1].
    hit : ndarray of bool, shape (n,)
        Whether the event happened.
    """

    score: FloatArray
    hit: BoolArray

    def __post_init__(self) -> None:
        if self.score.ndim != 1 or self.score.shape != self.hit.shape:
            raise InputError(
                "score and hit must be 1-D and of one length, "
                f"got shapes {self.score.shape} and {self.hit.shape}"
            )
        object.__setattr__(self, "score", read_only(self.score))
        object.__setattr__(self, "hit", read_only(self.hit.astype(np.bool_, copy=False)))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.score.shape[0])

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype to which bin edges are rounded: that of the scores."""
        return self.score.dtype

    @property
    def counted(self) -> bool:
        """Whether each event stands for many rows, so that weights are row counts (`CellEvents`)."""
        return False

    @property
    def ordered(self) -> Ordered:
        """The events sorted by score, with near ties made ties (`one_score_per_tie`).

        Cached up to `CACHED_ROWS` events, and for events that are `in_order`. More are sorted on each request: the time is small
        compared with the memory that caching would take.
        """
        ordered: Ordered | None = self.__dict__.get("_ordered")
        if ordered is None:
            ordered = one_score_per_tie(self.rows)
            if "_rows" in self.__dict__:
                self.__dict__["_ordered"] = ordered
        return ordered

    def ordered_copy(self) -> Ordered:
        """`ordered`, in arrays of its own that the caller may write to."""
        ordered = self.ordered
        if "_ordered" in self.__dict__:
            return Ordered(ordered.score.copy(), ordered.hit.copy())
        # The arrays behind the read-only views, which nobody else has.
        score, hit = (column.base for column in ordered)
        assert score is not None
        assert hit is not None
        return Ordered(score, hit)

    @property
    def rows(self) -> Ordered:
        """The rows sorted by score, with unchanged scores, for sums over bins. Cached like `ordered`."""
        rows: Ordered | None = self.__dict__.get("_rows")
        if rows is None:
            rows = self._sorted()
            if self.n <= CACHED_ROWS:
                self.__dict__["_rows"] = rows
        return rows

    def in_order(self) -> BinaryEvents:
        """Return the same events with rows sorted by score and this order cached."""
        rows = self.rows
        events = BinaryEvents(*rows)
        events.__dict__["_rows"] = rows
        return events

    def _sorted(self) -> Ordered:
        """Same order as ``np.lexsort((hit, score))``, but many times faster (see `_bits`)."""
        bits = self._bits()
        if bits is None:
            order = np.lexsort((self.hit, self.score))
            return Ordered(read_only(self.score[order]), read_only(self.hit[order]))
        one = bits.dtype.type(1)
        score = np.empty(self.n, dtype=self.score.dtype)
        packed = np.left_shift(bits, one, out=score.view(bits.dtype))
        packed |= self.hit
        packed.sort()
        hit = np.empty(packed.shape, dtype=np.bool_)
        np.bitwise_and(packed, one, out=hit, casting="unsafe")
        packed >>= one
        return Ordered(read_only(score), read_only(hit))

    def by_hit(self) -> tuple[FloatArray, FloatArray]:
        """Scores of the misses and scores of the hits, each ascending; sorted on every call.

        Same as ``np.sort(score[~hit]), np.sort(score[hit])``, but with a single sort and no masks (see `_bits`).
        """
        bits = self._bits()
        if bits is None:
            misses, hits = np.sort(self.score[~self.hit]), np.sort(self.score[self.hit])
            return read_only(misses), read_only(hits)
        sign = bits.dtype.type(8 * bits.itemsize - 1)
        packed = self.hit.astype(bits.dtype)
        packed <<= sign
        packed |= bits
        packed.sort()
        first = self.n - int(np.count_nonzero(self.hit))
        packed[first:] ^= bits.dtype.type(1) << sign
        both = read_only(packed.view(self.score.dtype))
        return both[:first], both[first:]

    def _bits(self) -> IntArray | None:
        """The scores as unsigned integers in the same order, with the highest bit free.

        Non-negative floats are ordered like their bit patterns, and their sign bit is unused. With the hit
        in that bit, one integer sort moves both. None if a sign bit is set: rounding may leave a
        probability slightly below 0.
        """
        score = np.ascontiguousarray(self.score)
        bits: IntArray = score.view(np.uint32 if score.itemsize == 4 else np.uint64)
        highest = 8 * bits.itemsize - 1
        return None if bits.size and int(bits.max()) >> highest else bits


@dataclass(frozen=True, eq=False)
class CellEvents(BinaryEvents):
    """Events of the cells of a profile: each stands for the rows of one cell with or without a hit.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n,)
        Smallest and largest score of the observed rows.
    edges_as : dtype
        See `BinaryEvents.edge_type`.
    counts : ndarray of float64, shape (n,)
        Number of observed rows behind each event.
    """

    low: FloatArray
    high: FloatArray
    edges_as: np.dtype[Any]
    counts: FloatArray

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype of the scores of the observed rows."""
        return self.edges_as

    @property
    def counted(self) -> bool:
        """Always True."""
        return True


def one_score_per_tie(rows: Ordered) -> Ordered:
    """Make scores of sorted rows that differ only by rounding equal; return the same object if nothing changes.

    A run of close neighbours is one tie if all of it lies within `ROUNDING` of its largest score. A wider run
    is not rounding but many close scores (saturated ones, near 1), whose order is informative. Scores in
    single precision are coarser than that and stay unchanged. Takes 3 ms per million rows without such
    runs, 30 ms with many.
    """
    tied = None
    for starts, ends in _near_ties(rows.score):
        tied = tied or Ordered(rows.score.copy(), rows.hit.copy())
        sizes = ends - starts + 1
        at = np.arange(sizes.sum()) + np.repeat(ends + 1 - np.cumsum(sizes), sizes)
        tied.score[at] = np.repeat(rows.score[ends], sizes)
        hits = np.add.reduceat(rows.hit[at], np.cumsum(sizes) - sizes, dtype=np.int64)
        tied.hit[at] = at > np.repeat(ends - hits, sizes)
    return rows if tied is None else Ordered(*map(read_only, tied))


def tied_scores(ordered: FloatArray) -> FloatArray:
    """Replace each of the ascending scores, shape (n,), by the largest score of its tie (see `one_score_per_tie`).

    Returns the same object if no two scores differ only by rounding.
    """
    return one_score_per_tie(Ordered(ordered, np.zeros(ordered.size, dtype=np.bool_))).score


def ends_of_near_ties(score: FloatArray, at: IntArray) -> IntArray:
    """Move places, shape (m,), in ascending scores, shape (n,), to the last row of their tie, where its scores differ by rounding."""
    moved = at.copy()
    for starts, ends in _near_ties(score):
        tie = np.searchsorted(starts, at, side="right") - 1
        moved = np.where((tie >= 0) & (at <= ends[tie]), ends[tie], moved)
    return moved


def _near_ties(score: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield first and last rows of the ties of ascending scores that are not all equal, the ties of some rows at a time."""
    if score.itemsize < 8 or score.size < 2 or not _any_close(score):
        return
    start = 0
    for first in range(0, score.size, _RUN):
        part = score[first : first + _RUN + 1]
        ends = first + np.flatnonzero(part[1:] - part[:-1] > ROUNDING * np.abs(part[1:]))
        if first + _RUN >= score.size:
            ends = np.append(ends, score.size - 1)
        if ends.size:
            # The first of these runs may have started in an earlier part.
            starts = np.append(start, ends[:-1] + 1)
            start = int(ends[-1]) + 1
            gap = score[ends] - score[starts]
            near = np.flatnonzero((gap > 0) & (gap <= ROUNDING * np.abs(score[ends])))
            if near.size:
                yield starts[near], ends[near]


def _any_close(score: FloatArray) -> bool:
    """Whether any two neighbours differ, but only by rounding."""
    for start in range(0, score.size - 1, _RUN):
        part = score[start : start + _RUN + 1]
        gap = part[1:] - part[:-1]
        close = gap <= ROUNDING * np.abs(part[1:])
        close &= gap > 0
        if close.any():
            return True
    return False

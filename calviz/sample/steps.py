"""Scores in order, ties as one step: the summary from which every bin-free metric of (score, hit) is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import map_threads
from calviz.core.events import BinaryEvents, CellEvents, tied_scores
from calviz.sample.step_draws import BLOCK_ENTRIES, binomial, multinomial
from calviz.sample.view_caches import kept_draw, once_per_view

R = TypeVar("R")


#: Resampled summaries hold at most this many steps. Each is then a group of neighbouring scores with
#: (nearly) equal counts; a maximum over cut points is searched at 2,048 of them.
MAX_STEPS = 2_048
#: Above `MANY_ROWS` rows this many steps suffice: the detail that they lose is far below the noise.
FEW_STEPS, MANY_ROWS = 512, 10_000_000
#: Steps of a large sample that are processed at a time.
STEP_BLOCK = 1 << 15
#: Rows that are counted at a time.
COUNTED_BLOCK = 1 << 14
#: Steps that are processed at a time by several threads, each with temporaries of its own.
WORK_BLOCK = 1 << 13


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows and hits per distinct score, in ascending order of the scores.

    A leading axis of resamples is allowed on `count` and `hits`.

    Attributes
    ----------
    score : ndarray of float64, shape (G,)
        Distinct scores; the mean score of a group where steps were merged.
    count : ndarray of float64, shape (..., G)
        Rows per step.
    hits : ndarray of float64, shape (..., G)
        Hits per step.
    merged_square : ndarray of float64, shape (G,), optional
        Mean squared score per step, where steps were merged.
    params : mapping
    whole : Steps, optional
        The steps of the sample itself, where these are resamples, a block or merged groups of them.
    weight : ndarray of float64, shape (G,), optional
        For rows with weights w, ``sum w^2 / sum w`` per step: the factor by which weights change variances of sums.
    powers : callable, optional
        For such rows, returns ``sum w^2`` of the hits and ``sum w^4`` of all rows per step, shape (2, G), for sums over pairs of rows.
    nearest : float, optional
        Smallest nonzero distance of a score from 0 or 1, where steps are means of several scores.
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("count", "hits")

    score: FloatArray
    count: FloatArray
    hits: FloatArray
    merged_square: FloatArray | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    whole: Steps | None = None
    weight: FloatArray | None = None
    nearest: float | None = None
    powers: Callable[[], FloatArray] | None = None

    @property
    def row_weight(self) -> FloatArray | float:
        """`weight`, shape (G,), for resamples that of the sample; 1 for unweighted rows."""
        if self.weight is not None or self.whole is None:
            return 1.0 if self.weight is None else self.weight
        if isinstance(self.whole, SampleSteps):
            return 1.0
        base = self.whole.merged()
        return 1.0 if base.weight is None or base.size != self.size else base.weight

    @property
    def of_sample(self) -> Steps:
        """The steps of the sample itself."""
        return self if self.whole is None else self.whole

    @property
    def size(self) -> int:
        """Number of steps, G."""
        return int(self.score.shape[0])

    def scores_at(self, steps: IntArray) -> FloatArray:
        """The scores of some steps, shape (S,); `score` of a large sample would make a copy of all."""
        return self.score[steps]

    @property
    def n_hits(self) -> FloatArray:
        """Total number of hits, shape (...)."""
        return np.asarray(self.hits.sum(axis=-1))

    def blocks(self, *, descending: bool = False) -> Iterator[Steps]:
        """Blocks of neighbouring steps, so that a large sample's steps are never all in memory.

        The blocks come in ascending or descending order of their scores; within each the order is ascending.
        """
        yield self

    def of_blocks(self, work: Callable[[Steps], R]) -> Iterator[R]:
        """Yield ``work(block)`` of blocks of neighbouring steps, in their order; on several threads if there are several blocks."""
        yield work(self)

    @property
    def square(self) -> FloatArray:
        """Mean squared score per step, shape (G,)."""
        return np.square(self.score) if self.merged_square is None else self.merged_square

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return np.asarray(self.count.sum(axis=-1))

    @property
    def score_sum(self) -> FloatArray:
        """Sum of the scores per step, shape (..., G)."""
        return self.count * self.score

    @property
    def cumulative_gap(self) -> FloatArray:
        """(Cumulative score - cumulative hits) / n at the end of each step, shape (..., G)."""
        gap = np.cumsum(self.score_sum - self.hits, axis=-1)
        gap /= self.n[..., None]
        return np.asarray(gap)

    @once_per_view
    def merged(self) -> Steps:
        """Merge neighbouring steps into at most `most_steps` groups, if there are more than `MAX_STEPS`; all sums are kept."""
        if self.size <= MAX_STEPS:
            return self
        n = float(self.n)
        most = most_steps(n)
        sums = np.zeros((5, most))
        upto = 0.0
        for part in self.blocks():
            middle = np.cumsum(part.count) + (upto - part.count / 2)
            upto += float(part.count.sum())
            group = np.minimum(middle * (most / n), most - 1).astype(np.intp)
            starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
            weighted = part.count * part.row_weight
            mass = part.score_sum, part.count, part.hits, part.count * part.square, weighted
            sums[:, group[starts]] += [np.add.reduceat(m, starts) for m in mass]
        score, count, hits, square, weighted = sums[:, sums[1] > 0]
        weight = None if self.weight is None else weighted / count
        whole = self.of_sample
        return Steps(score / count, count, hits, square / count, self.params, whole, weight)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Steps:
        """Rows drawn with replacement: multinomial over the (step, hit) cells."""
        base = self.merged()

        def draw() -> tuple[FloatArray, FloatArray]:
            cells = np.stack([base.count - base.hits, base.hits]).ravel()
            drawn = multinomial(rng, cells, resamples).reshape(resamples, 2, -1)
            hits = drawn[:, 1].astype(np.float64)
            return drawn[:, 0] + hits, hits

        count, hits = kept_draw(self, f"bootstrap {resamples}", rng, draw)
        return Steps(base.score, count, hits, base.merged_square, base.params, self.of_sample)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Steps:
        """Hits redrawn from the scores: binomial per step."""
        base = self.merged()
        hits = kept_draw(
            self,
            f"calibrated {resamples}",
            rng,
            lambda: binomial(rng, base.count, np.clip(base.score, 0, 1), resamples),
        )
        count = np.broadcast_to(base.count, hits.shape)
        return Steps(base.score, count, hits, base.merged_square, base.params, self.of_sample)

    def as_drawn(self) -> Steps:
        """The sample itself as one resample, over the same (merged) steps as resamples."""
        base = self.merged()
        one = base.count[None], base.hits[None]
        return Steps(base.score, *one, base.merged_square, base.params, self.of_sample)

    def parts(self) -> Iterator[Steps]:
        """The resamples in blocks that stay in the cache while a metric goes through them."""
        block = max(1, BLOCK_ENTRIES // self.size)
        for start in range(0, self.count.shape[0], block):
            count, hits = self.count[start : start + block], self.hits[start : start + block]
            yield replace(self, count=count, hits=hits)


@once_per_view
def distance_from_ends(view: Steps) -> float:
    """Smallest nonzero distance of a score from 0 or 1, at most 1."""
    if view.nearest is not None:
        return view.nearest
    smallest = 1.0
    for part in view.blocks():
        first, last = np.searchsorted(part.score, 0, "right"), np.searchsorted(part.score, 1)
        if first < last:
            ends = float(part.score[first]), float(1 - part.score[last - 1])
            smallest = min(smallest, *ends)
    return smallest


def most_steps(rows: float) -> int:
    """Largest number of steps in resampled summaries of this many rows."""
    return MAX_STEPS if rows <= MANY_ROWS else FEW_STEPS


class SampleSteps(Steps):
    """The steps of a sample itself, stored in as few bytes as possible.

    Each access to a column makes a copy in double precision; sums and searches go through `blocks` instead.

    Parameters
    ----------
    score : ndarray, shape (G,)
    count, hits : ndarray of uint8, shape (G,)
        Most scores of a large sample occur once or twice: a byte holds the count. 0 for the steps in `long`.
    long : ndarray of int64, shape (3, L)
        Index, count and hits of the steps with more rows than a byte holds.
    """

    columns: tuple[FloatArray, IntArray, IntArray]
    long: IntArray

    def __init__(self, score: FloatArray, count: IntArray, hits: IntArray, long: IntArray) -> None:
        # The attributes of frozen steps, of which score, count and hits are properties here.
        self.__dict__.update(
            columns=(score, count, hits),
            long=long,
            merged_square=None,
            params={},
            whole=None,
            nearest=None,
            powers=None,
        )

    @property
    def score(self) -> FloatArray:
        """Distinct scores, shape (G,)."""
        return self._column(0)

    @property
    def count(self) -> FloatArray:
        """Rows per step, shape (G,)."""
        return self._column(1)

    @property
    def hits(self) -> FloatArray:
        """Hits per step, shape (G,)."""
        return self._column(2)

    def scores_at(self, steps: IntArray) -> FloatArray:
        """See `Steps`; shape (S,)."""
        return self.columns[0][steps].astype(np.float64)

    def _column(self, which: int, start: int = 0, stop: int | None = None) -> FloatArray:
        column: FloatArray = self.columns[which][start:stop].astype(np.float64)
        if which:
            first, last = np.searchsorted(self.long[0], [start, start + column.size])
            column[self.long[0, first:last] - start] = self.long[which, first:last]
        return column

    def _sum(self, which: int) -> FloatArray:
        bytes_sum = self.columns[which].sum(dtype=np.float64)
        return np.asarray(bytes_sum + self.long[which].sum())

    @property
    def size(self) -> int:
        """Number of steps, G."""
        return int(self.columns[0].shape[0])

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape ()."""
        return self._sum(1)

    @property
    def n_hits(self) -> FloatArray:
        """Total number of hits, shape ()."""
        return self._sum(2)

    def blocks(self, *, descending: bool = False) -> Iterator[Steps]:
        """Yield blocks of neighbouring steps; see `Steps`."""
        starts = range(0, self.size, STEP_BLOCK)
        for start in reversed(starts) if descending else starts:
            yield self._block(start, STEP_BLOCK)

    def of_blocks(self, work: Callable[[Steps], R]) -> Iterator[R]:
        """See `Steps`."""
        size = STEP_BLOCK if self.size <= STEP_BLOCK else WORK_BLOCK
        starts = range(0, self.size, size)

        def of_block(start: int) -> R:
            return work(self._block(start, size))

        return map_threads(of_block, starts, threaded=len(starts) > 1)

    def _block(self, start: int, size: int) -> Steps:
        score, count, hits = (self._column(i, start, start + size) for i in range(3))
        return Steps(score, count, hits, whole=self)


def make_steps(events: BinaryEvents, weights: FloatArray | None = None) -> Steps:
    """Count rows and hits per distinct score; with weights, shape (n,), sum the weights instead."""
    if weights is None and isinstance(events, CellEvents):
        weights = events.counts
    if weights is not None:
        return _weighted_steps(events, weights)
    score, hit = events.ordered_copy()
    size = sum(ends.size for _, ends in _ends(score))
    count, hits = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)
    long = [np.empty((3, 0), dtype=np.int64)]
    done = rows = right = 0
    for block, ends in _ends(score):
        upto = np.cumsum(hit[block])
        part = slice(done, done + ends.size)
        # In the place of rows that have been counted, which saves an array.
        score[part] = score[block][ends]
        # `rows` and `right` are the rows and hits of the current step from earlier blocks.
        totals = np.stack([np.diff(ends, prepend=-1 - rows), np.diff(upto[ends], prepend=-right)])
        over = np.flatnonzero(totals[0] > np.iinfo(np.uint8).max)
        if over.size:
            long.append(np.stack([over + done, *totals[:, over]]))
            totals[:, over] = 0
        count[part], hits[part] = totals
        done += ends.size
        rows = upto.size - 1 - int(ends[-1]) if ends.size else rows + upto.size
        right = int(upto[-1] - upto[ends[-1]]) if ends.size else right + int(upto[-1])
    # Cut without a copy: no other name for the array is left.
    score.resize(size, refcheck=False)
    return SampleSteps(score, count, hits, np.concatenate(long, axis=1))


def _weighted_steps(events: BinaryEvents, weights: FloatArray) -> Steps:
    rows = np.flatnonzero(weights)
    order = rows[np.argsort(events.score[rows])]
    score = tied_scores(events.score[order])
    starts = np.flatnonzero(np.diff(score, prepend=-1))
    of_rows = weights[order]
    count = np.add.reduceat(of_rows, starts)
    hits = np.add.reduceat(of_rows * events.hit[order], starts)
    # Weights that are numbers of rows stand for rows of equal weight.
    weight, powers = None, None
    if not events.counted:
        weight = np.add.reduceat(of_rows**2, starts) / count

        def powers_of() -> FloatArray:
            over = of_rows**2 * events.hit[order], of_rows**4
            return np.stack([np.add.reduceat(column, starts) for column in over])

        powers = powers_of
    nearest = None
    if isinstance(events, CellEvents):
        ends = np.concatenate([events.low, 1 - events.high])
        nearest = float(ends.min(where=ends > 0, initial=1.0))
    return Steps(
        score[starts].astype(np.float64), count, hits, weight=weight, nearest=nearest, powers=powers
    )


def _ends(score: FloatArray) -> Iterator[tuple[slice, IntArray]]:
    """Yield blocks of rows, and the positions within each block of the rows that are the last of a step."""
    for start in range(0, score.size, COUNTED_BLOCK):
        block = slice(start, min(start + COUNTED_BLOCK, score.size))
        after = score[start + 1 : block.stop + 1]
        last = np.full(block.stop - start, True)
        np.not_equal(score[block][: after.size], after, out=last[: after.size])
        yield block, np.flatnonzero(last)

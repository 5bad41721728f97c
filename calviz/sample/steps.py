"""Scores in order, ties as one step: the summary from which every bin-free metric of (score, hit) is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.special import binom, pdtr

from calviz.core.blocks import FloatArray, IntArray, map_threads
from calviz.core.events import BinaryEvents, CellEvents, tied_scores
from calviz.sample.draws import kept_draw, once_per_view, random_rows

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

    def bootstrap(self, rng: Generator, resamples: int) -> Steps:
        """Rows drawn with replacement: multinomial over the (step, hit) cells."""
        base = self.merged()

        def draw() -> tuple[FloatArray, FloatArray]:
            cells = np.stack([base.count - base.hits, base.hits]).ravel()
            drawn = multinomial(rng, cells, resamples).reshape(resamples, 2, -1)
            hits = drawn[:, 1].astype(np.float64)
            return drawn[:, 0] + hits, hits

        count, hits = kept_draw(self, f"bootstrap {resamples}", rng, draw)
        return Steps(base.score, count, hits, base.merged_square, base.params, self.of_sample)

    def under_calibration(self, rng: Generator, resamples: int) -> Steps:
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
        return np.asarray(self.columns[which].sum(dtype=np.float64) + self.long[which].sum())

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
            over = of_rows**2 * events.hit[order], (of_rows**2) ** 2
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


# ---- Random rows and hits

#: Array entries that are processed at a time, so that they stay in the cache.
BLOCK_ENTRIES = 1 << 17
#: Hits are drawn with a table up to the first number of rows per step, rows up to the second number of rows per cell.
TABLE_TRIALS, TABLE_ROWS = 64, 32
#: From this variance on, a number is drawn as a rounded normal corrected for its skewness, which is then below 0.2.
NORMAL_VARIANCE = 25.0


def multinomial(rng: Generator, cells: FloatArray, resamples: int) -> IntArray:
    """Rows per cell of samples drawn with replacement.

    Parameters
    ----------
    rng : numpy.random.Generator
    cells : ndarray, shape (C,)
        Rows per cell.
    resamples : int

    Returns
    -------
    ndarray of int, shape (resamples, C)
        Many cells with many rows are only nearly multinomial: each is drawn as a rounded normal with its mean, variance and
        skewness, and so that the total is the number of rows.
    """
    used = np.flatnonzero(cells)
    n = int(cells.sum())
    # Takes half the time of `rng.multinomial`, which repeats its setup for every number but is faster for a few cells.
    if (n >= 100 and cells.max() <= TABLE_ROWS) or used.size**2 > n > 100 * used.size:
        return _poisson_and_rest(rng, cells, n, resamples)
    if n > 8 * used.size:
        out = np.zeros((resamples, cells.size), dtype=np.int64)
        out[:, used] = rng.multinomial(n, cells[used] / n, size=resamples)
        return out
    cell_of_row = np.repeat(used, cells[used].astype(np.intp))
    out = np.empty((resamples, cells.size), dtype=np.int64)
    at_once = max(1, BLOCK_ENTRIES // max(n, cells.size))
    for first in range(0, resamples, at_once):
        some = out[first : first + at_once]
        drawn = cell_of_row[random_rows(rng, n, some.shape[0] * n)].reshape(-1, n)
        drawn += cells.size * np.arange(some.shape[0])[:, None]
        some[:] = np.bincount(drawn.ravel(), minlength=some.size).reshape(some.shape)
    return out


def _poisson_and_rest(rng: Generator, cells: FloatArray, n: int, resamples: int) -> IntArray:
    """Rows per cell from independent Poisson numbers, which are multinomial given their total; shape (resamples, C).

    They are drawn for slightly fewer than n rows, and drawn again if their total exceeds n; the few rows that are missing
    are drawn one by one.
    """
    mean = cells * (1 - (5 if cells.max() <= TABLE_ROWS else 2.5) / math.sqrt(n))
    wide = mean >= max(NORMAL_VARIANCE, TABLE_ROWS)
    normal = _RoundedNormal(mean[wide], mean[wide], np.ones(int(wide.sum())))
    upto = _poisson_table(mean[~wide])

    def draw(part: IntArray) -> None:
        # Cells of large variance with rounded normals, the others from the table.
        if wide.all():
            part[:] = normal.draw(rng, part.shape[0])
        elif not wide.any():
            part[:] = _count_above(rng, upto, part.shape)
        else:
            part[:, wide] = normal.draw(rng, part.shape[0])
            part[:, ~wide] = _count_above(rng, upto, (part.shape[0], upto.shape[1]))

    number = np.arange(cells.size, dtype=np.min_scalar_type(cells.size))
    cell_of_row = np.repeat(number, cells.astype(np.intp))
    out = np.empty((resamples, cells.size), dtype=np.int32 if n < 1 << 31 else np.int64)
    block = max(1, BLOCK_ENTRIES // cells.size)
    for start in range(0, resamples, block):
        part = out[start : start + block]
        draw(part)
        missing = n - part.sum(axis=1)
        while (over := np.flatnonzero(missing < 0)).size:
            again = np.empty_like(part[over])
            draw(again)
            part[over] = again
            missing[over] = n - again.sum(axis=1)
        place = cell_of_row[random_rows(rng, n, int(missing.sum()))].astype(np.intp)
        place += np.repeat(np.arange(missing.size) * cells.size, missing)
        part += np.bincount(place, minlength=part.size).reshape(part.shape)
    return out


def _poisson_table(mean: FloatArray) -> FloatArray:
    """Distribution functions of Poisson numbers at 0, 1, ... until all of them are 1, shape (m, C)."""
    most = mean.max(initial=0.0)
    k = np.arange(int(most + 6 * math.sqrt(most) + 12))
    upto = pdtr(k[:, None], mean).astype(np.float32)
    return np.asarray(upto[(upto < 1).any(axis=1)])


def binomial(rng: Generator, count: FloatArray, p: FloatArray, resamples: int) -> FloatArray:
    """Hits per step: binomial, for many rows nearly so (a rounded normal with the same mean, variance and skewness).

    Parameters
    ----------
    rng : numpy.random.Generator
    count, p : ndarray, shape (C,)
        Rows per step, and the probability of a hit.
    resamples : int

    Returns
    -------
    ndarray of float64, shape (resamples, C)
    """
    out = np.zeros((resamples, p.size))
    most = int(count.max())
    block = max(1, BLOCK_ENTRIES // p.size)
    parts = [out[start : start + block] for start in range(0, resamples, block)]
    if most > TABLE_TRIALS:
        trials = count.astype(np.int64)
        variance = count * p * (1 - p)
        wide = variance >= NORMAL_VARIANCE
        normal = _RoundedNormal((count * p)[wide], variance[wide], (1 - 2 * p)[wide])
        for part in parts:
            if wide.any():
                part[:, wide] = normal.draw(rng, part.shape[0])
            if not wide.all():
                part[:, ~wide] = rng.binomial(
                    trials[~wide], p[~wide], (part.shape[0], int((~wide).sum()))
                )
        return out
    # Few rows per step: one uniform number against a table of the distribution functions.
    k = np.arange(most)[:, None]
    chance = binom(count, k) * p**k * (1 - p) ** np.maximum(count - k, 0)
    upto = np.cumsum(chance, axis=0).astype(np.float32)
    upto[k >= count] = 1  # exactly, so that no step has more hits than rows
    for part in parts:
        part[:] = _count_above(rng, upto, part.shape)
    return out


class _RoundedNormal:
    """Random integers for each cell with (nearly) a given mean, variance and skewness.

    Parameters
    ----------
    mean, variance, skew_ratio : ndarray, shape (C,)
        `skew_ratio` is the third cumulant divided by the variance: 1 for a Poisson number, 1 - 2p for a binomial one.

    Notes
    -----
    Cornish and Fisher's expansion ``mean + sd z + skew_ratio (z^2 - 1) / 6``, whose variance is too large by ``skew_ratio^2 / 18``; rounding
    adds another 1 / 12. Both are subtracted from the variance first.
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, skew_ratio: FloatArray) -> None:
        # In single precision as long as it can tell integers apart.
        exact = mean.max(initial=0.0) < 1 << 20
        self.size = mean.size
        self._mean = (mean - skew_ratio / 6).astype(np.float32 if exact else np.float64)
        self._spread = np.sqrt(variance - 1 / 12 - skew_ratio**2 / 18).astype(np.float32)
        self._skew = (skew_ratio / 6).astype(np.float32)

    def draw(self, rng: Generator, resamples: int) -> FloatArray:
        """Draw the integers, shape (resamples, C)."""
        z = rng.standard_normal((resamples, self.size), dtype=np.float32)
        rows = z * self._skew
        rows += self._spread
        rows *= z
        rows = np.add(rows, self._mean)
        return np.asarray(np.rint(rows, out=rows))


def _count_above(rng: Generator, upto: FloatArray, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Draw numbers by inversion: how many of the values ``upto[k]`` a uniform number reaches."""
    uniform = rng.random(shape, dtype=np.float32)
    out = np.zeros(shape, dtype=np.uint8)
    for bound in upto:
        out += (uniform >= bound).view(np.uint8)
    return out

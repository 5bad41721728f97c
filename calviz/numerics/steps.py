"""Scores in order, ties as one step: what every bin-free metric of (score, hit) is a function of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.events import BinaryEvents
from calviz.numerics.sample import Sample

#: Resampled summaries hold at most this many steps. Each is then a group of neighbouring scores of
#: (nearly) equal counts; a maximum over cut points is looked for at 2,048 of them.
MAX_STEPS = 2_048


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
    square : ndarray of float64, shape (G,)
        Mean squared score per step (equal to ``score**2`` unless steps were merged).
    params : mapping
    """

    score: FloatArray
    count: FloatArray
    hits: FloatArray
    square: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> FloatArray:
        """Rows in all, shape (...)."""
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

    def merged(self, most: int = MAX_STEPS) -> Steps:
        """Neighbouring steps put together until there are at most `most`; mass is kept."""
        if self.score.size <= most:
            return self
        upto = np.cumsum(self.count)
        group = np.minimum((upto - self.count / 2) * (most / upto[-1]), most - 1).astype(np.intp)
        starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        count = np.add.reduceat(self.count, starts)
        return Steps(
            np.add.reduceat(self.count * self.score, starts) / count,
            count,
            np.add.reduceat(self.hits, starts),
            np.add.reduceat(self.count * self.square, starts) / count,
            self.params,
        )

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement: multinomial over the (step, hit) cells."""
        base = self.merged()
        cells = np.stack([base.count - base.hits, base.hits])
        drawn = _multinomial(rng, cells.ravel(), resamples).reshape(resamples, 2, -1)
        count = drawn[:, 0] + drawn[:, 1]
        return type(self)(base.score, count, drawn[:, 1], base.square, base.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores: binomial per step."""
        base = self.merged()
        p = np.clip(base.score, 0, 1)
        if base.count.max() == 1:
            hits = (rng.random((resamples, p.size)) < p).astype(np.float64)
        else:
            hits = rng.binomial(base.count.astype(np.int64), p, size=(resamples, p.size)).astype(
                np.float64
            )
        count = np.broadcast_to(base.count, hits.shape)
        return type(self)(base.score, count, hits, base.square, base.params)


def _multinomial(rng: np.random.Generator, cells: FloatArray, resamples: int) -> FloatArray:
    used = np.flatnonzero(cells)
    n = int(cells.sum())
    out = np.zeros((resamples, cells.size))
    # Few rows per cell: drawing rows one by one is the faster way to the same distribution.
    if n <= 16 * used.size:
        cell_of_row = np.repeat(used, cells[used].astype(np.intp))
        for draw in out:
            draw += np.bincount(cell_of_row[rng.integers(n, size=n)], minlength=cells.size)
    else:
        out[:, used] = rng.multinomial(n, cells[used] / n, size=resamples)
    return out


def make_steps(events: BinaryEvents) -> Steps:
    """Sort scores once and count rows and hits per distinct score."""
    score, hit = _sorted_pairs(events)
    ends = np.flatnonzero(np.append(score[1:] != score[:-1], True))
    cumulative = np.cumsum(hit, dtype=np.int64)[ends]
    distinct = score[ends].astype(np.float64)
    return Steps(
        distinct,
        np.diff(ends, prepend=-1).astype(np.float64),
        np.diff(cumulative, prepend=0).astype(np.float64),
        distinct**2,
    )


def _sorted_pairs(events: BinaryEvents) -> tuple[FloatArray, BoolArray]:
    """Scores in ascending order with their hits.

    Non-negative floats sort like their bit patterns, and their sign bit is free: shifted left by
    one, the pattern makes room for the hit, and one sort of integers does the whole work.
    """
    score = events.score
    if score.size and score.min() < 0:
        order = np.argsort(score, kind="stable")
        return score[order], events.hit[order]
    kind = np.dtype(np.uint32 if score.dtype == np.float32 else np.uint64)
    # Adding zero turns -0.0 into 0.0, whose sign bit is clear.
    packed = (score + score.dtype.type(0)).view(kind) << kind.type(1)
    packed |= events.hit
    packed.sort()
    return (packed >> kind.type(1)).view(score.dtype), (packed & kind.type(1)).astype(np.bool_)


def steps(sample: Sample) -> Steps:
    """Steps of the sample's own reduction."""
    return make_steps(sample.events)


def top_label_steps(sample: Sample) -> Steps:
    """Steps of the top label, whatever the reduction."""
    return make_steps(sample.top_events)

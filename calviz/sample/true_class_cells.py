"""The errors of the true classes of a profile, from its cells by true class, which are redrawn as sums of their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.events import CellEvents
from calviz.core.predictions import Predictions
from calviz.numerics.bin_edges import assign, equal_width_edges
from calviz.numerics.safe_division import denominators, quotient
from calviz.sample.affordable_resamples import in_parts
from calviz.sample.cell_bootstrap import resample_cells
from calviz.sample.cell_bounds import has_cut_cells
from calviz.sample.sample import Sample

#: Up to this many (cell, resample) pairs, hits are drawn cell by cell; beyond, sums over cells, which then hold very many rows.
DRAWN_ONE_BY_ONE = 20_000_000


@dataclass(frozen=True, eq=False)
class CellSource:
    """Cells of a profile with their confidence, hits, true class and bin.

    Attributes
    ----------
    score, counts : ndarray of float64, shape (n,)
        Confidence, and number of rows.
    hit : ndarray of bool, shape (n,)
    labels, bin_of : ndarray of int, shape (n,)
        True class, and the bin of the confidence.
    n_classes, bins : int
    edges : ndarray, shape (bins + 1,)
    second : ndarray of float64, shape (n,), or None
        With two classes, the probability of the second; None with more, whose probabilities a profile does not have.
    has_cut_cells : bool
        Whether any cell extends over two bins.
    """

    score: FloatArray
    hit: BoolArray
    labels: IntArray
    bin_of: IntArray
    counts: FloatArray
    n_classes: int
    bins: int
    edges: FloatArray
    second: FloatArray | None
    has_cut_cells: bool

    def errors(self, labels: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, ECE and MCS per class, shape (K,)."""
        cells = self._cells(labels)
        gaps = np.bincount(
            cells, self.counts * (self.score - self.hit), minlength=self.n_classes * self.bins
        )
        rows = np.bincount(labels, self.counts, minlength=self.n_classes)
        one = self._errors(rows[None].astype(np.float64), gaps[None].astype(np.float64))
        return one[0][0], one[1][0], one[2][0]

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> list[tuple[FloatArray, ...]]:
        """Rows, ECE and MCS of rows drawn with replacement, shape (b, K) each, a block of resamples at a time."""
        size = self.n_classes * self.bins
        place = self._cells(self.labels) * 2 + self.hit
        columns = (self.counts, self.counts * self.score, self.counts * self.score**2)
        sums: FloatArray = np.stack([np.bincount(place, c, minlength=2 * size) for c in columns])
        errors = []
        for part in in_parts(resamples, 2 * size):
            rows, total = resample_cells(rng, sums, _size(part, resamples))
            gaps = (total[:, ::2] + total[:, 1::2]) - rows[:, 1::2]
            by_class = (rows[:, ::2] + rows[:, 1::2]).reshape(len(rows), self.n_classes, self.bins)
            errors.append(self._errors(by_class.sum(axis=2), gaps))
        return errors

    def calibrated(self, rng: np.random.Generator, resamples: int) -> list[tuple[FloatArray, ...]]:
        """Rows, ECE and MCS with labels drawn from the probabilities, shape (b, K) each, a block of resamples at a time.

        Raises
        ------
        NotAvailable
            With more than two classes.
        """
        if self.second is None:
            raise NotAvailable("a profile does not have the probabilities of all classes.")
        # Group the cells, hits and misses together, by bin and by predicted class.
        predicted = (self.labels == 1) == self.hit
        group = self.bin_of * np.intp(2) + predicted
        if self.counts.size * resamples <= DRAWN_ONE_BY_ONE:
            draw = self._draw_cells(rng, group)
        else:
            draw = self._draw_groups(rng, group)
        rows_of, score_of = (
            np.bincount(group, c, minlength=2 * self.bins)
            for c in (self.counts, self.counts * self.score)
        )
        errors = []
        for part in in_parts(resamples, max(self.counts.size, 4 * self.bins)):
            one, of_one = draw(_size(part, resamples))
            # Rows of the first and of the second class, and the sums of their confidence, by bin and predicted class.
            counts = np.stack([rows_of - one, one], axis=1)
            totals = np.stack([score_of - of_one, of_one], axis=1)
            split = counts.reshape(len(one), 2, self.bins, 2)
            right = np.stack([split[:, 0, :, 0], split[:, 1, :, 1]], axis=1)
            gaps = totals.reshape(len(one), 2, self.bins, 2).sum(axis=3) - right
            errors.append(self._errors(split.sum(axis=(2, 3)), gaps.reshape(len(one), -1)))
        return errors

    def _draw_cells(self, rng: np.random.Generator, group: IntArray) -> Any:
        """Function that draws the rows of the second class in each group and the sum of their confidence, cell by cell."""
        assert self.second is not None
        trials, p = self.counts.astype(np.int64), np.clip(self.second, 0, 1)
        order = np.argsort(group, kind="stable")
        filled, starts = np.unique(group[order], return_index=True)

        def draw(resamples: int) -> tuple[FloatArray, FloatArray]:
            drawn = rng.binomial(trials, p, size=(resamples, trials.size))
            out = np.zeros((2, len(drawn), 2 * self.bins))
            out[0][:, filled] = np.add.reduceat(drawn[:, order], starts, axis=1)
            out[1][:, filled] = np.add.reduceat((drawn * self.score)[:, order], starts, axis=1)
            return out[0], out[1]

        return draw

    def _draw_groups(self, rng: np.random.Generator, group: IntArray) -> Any:
        """Like `_draw_cells`, but as normal pairs with the right means, variances and covariance."""
        assert self.second is not None
        p = np.clip(self.second, 0, 1)
        variance = self.counts * p * (1 - p)
        mean, mean_score, v, c, w = (
            np.bincount(group, column, minlength=2 * self.bins)
            for column in (
                self.counts * p,
                self.counts * p * self.score,
                variance,
                variance * self.score,
                variance * self.score**2,
            )
        )
        slope = quotient(c, v, otherwise=0.0)
        rest = np.sqrt(np.maximum(w - slope * c, 0))
        rows = np.bincount(group, self.counts, minlength=2 * self.bins)

        def draw(resamples: int) -> tuple[FloatArray, FloatArray]:
            shape = resamples, mean.size
            moved = np.sqrt(v) * rng.standard_normal(shape)
            one = np.clip(np.rint(mean + moved), 0, rows)
            return one, mean_score + slope * (one - mean) + rest * rng.standard_normal(shape)

        return draw

    def _cells(self, labels: IntArray) -> IntArray:
        return labels * np.intp(self.bins) + self.bin_of

    def _errors(self, rows: FloatArray, gaps: FloatArray) -> tuple[FloatArray, ...]:
        """Rows, ECE and MCS, shape (b, K) each, from rows per class and gaps per class and bin."""
        table = gaps.reshape(len(rows), self.n_classes, self.bins)
        count = denominators(rows)
        return rows, np.abs(table).sum(axis=2) / count, table.sum(axis=2) / count


def _size(part: slice, resamples: int) -> int:
    return len(range(*part.indices(resamples)))


def cell_source(sample: Sample, labels: IntArray, classes: int, bins: int) -> CellSource:
    """The cells of the top label of a profile, with their true classes `labels`, shape (n,)."""
    events, counts = sample.top_scored, sample.weights
    assert isinstance(events, CellEvents)
    assert counts is not None
    edges = equal_width_edges(bins, events.edge_type)
    data = sample.data
    second = np.asarray(data.probs[:, 1], np.float64) if isinstance(data, Predictions) else None
    score = events.score.astype(np.float64)
    return CellSource(
        score=score,
        hit=events.hit,
        labels=labels,
        bin_of=np.asarray(assign(score, edges), dtype=np.intp),
        counts=counts,
        n_classes=classes,
        bins=bins,
        edges=edges,
        second=second,
        has_cut_cells=has_cut_cells(events, edges),
    )

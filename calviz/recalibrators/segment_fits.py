"""The models behind segments: temperatures, and a logistic regression of hits on log-odds, with normal effects of the segments that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import chdtrc, expit, softmax

from calviz.core.blocks import FloatArray, IntArray, row_blocks
from calviz.core.p_values import benjamini_hochberg

#: False discovery rate of the columns, and of the pairs of columns, in which segments are said to differ; level of an intercept.
DIFFER = 0.01
#: Most offsets and slopes that are fitted together.
MOST_EFFECTS = 1_500
#: Smallest probability whose logarithm is taken.
LEAST = 1e-300
#: Smallest variance that is not taken for 0; and how close variances, and offsets, are fitted.
_NONE, _CLOSE = 1e-7, 1e-6


@dataclass(frozen=True, eq=False)
class SegmentEffects:
    """What is added to the log-odds, and to the log-temperature, within the segments of one column, or of two crossed.

    Attributes
    ----------
    of : tuple of int
        The one or two columns.
    offsets, slopes, log_temperatures : ndarray, shape (S,)
        Of each segment, of the first column times the second; temperatures, for more than two classes, are relative to that of all rows.
    """

    of: tuple[int, ...]
    offsets: FloatArray
    slopes: FloatArray
    log_temperatures: FloatArray

    @property
    def kinds(self) -> dict[str, FloatArray]:
        """Offsets and slopes, and log-temperatures if there are any."""
        colder = {"log_temperatures": self.log_temperatures} if self.log_temperatures.any() else {}
        return {"offsets": self.offsets, "slopes": self.slopes} | colder

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        kinds = {name: values.tolist() for name, values in self.kinds.items()}
        return {"columns": list(self.of)} | kinds


@dataclass(frozen=True, eq=False)
class EffectBlock:
    """Offsets, slopes or log-temperatures of the segments of a column, or offsets of two crossed or of a region of these.

    Attributes
    ----------
    of : tuple of int
        The one or two columns.
    codes : ndarray of int, shape (n,)
        Segment of each row.
    size : int
        Number of segments.
    kind : int
        0 for offsets, 1 for slopes, 2 for log-temperatures.
    parts : ndarray of int, shape (S,), optional
        Which of the `size` effects each of the S segments of two columns shares; -1 for none.
    """

    of: tuple[int, ...]
    codes: IntArray
    size: int
    kind: int = 0
    parts: IntArray | None = None


class SegmentFit:
    """A logistic model of hits with offset z and normal effects of segments.

    Parameters
    ----------
    z, hit : ndarray, shape (n,)
        Log-odds of the map of all rows, and whether the event has happened, 0 or 1.
    counts : ndarray, shape (n,)
        How many rows each stands for.

    Attributes
    ----------
    center : float
        Log-odds at which slopes change nothing.
    values : ndarray, shape (E,)
        An offset and a slope that all rows with known segments share, then the effects of `blocks`.
    variances : ndarray, shape (B,)
        Of the effects of each block.
    left_out : int
        Blocks that differ and for which there was no room.
    """

    #: Whether all rows share an offset and a slope.
    SHARED = True

    def __init__(self, z: FloatArray, hit: FloatArray | IntArray, counts: FloatArray) -> None:
        self.z, self.hit, self.counts = z, hit, counts
        #: As many rows are taken at a time as of this fit into the cache.
        self.rows_of: FloatArray = z
        self.margin = z.copy()
        doubt = counts * _doubt(z)
        self.center = float(doubt @ z / doubt.sum()) if doubt.sum() > 0 else 0.0
        self.x = z - self.center
        self.blocks: list[EffectBlock] = []
        self.variances = np.zeros(0)
        self.values = np.zeros(2)
        self.left_out = 0

    def needs_intercept(self) -> bool:
        """Whether all rows need an offset, by the score test at 1 %, efficient for their slope."""
        residual, doubt = self.counts * (self.hit - expit(self.z)), self.counts * _doubt(self.z)
        part = float(doubt @ self.z) / max(float(doubt @ self.z**2), 1e-300)
        own = float(doubt.sum() - part * (doubt @ self.z))
        score = float(residual.sum() - part * (residual @ self.z))
        return bool(own > 0 and chdtrc(1, score**2 / own) <= DIFFER)

    def add(self, blocks: list[EffectBlock], beside: Sequence[float] = ()) -> None:
        """Add those of the blocks whose segments differ, and fit all; `beside` are p-values of the same family."""
        if not blocks:
            return
        tests = benjamini_hochberg([*self.p_values(blocks), *beside])[: len(blocks)]
        self.take([blocks[i] for i in np.argsort(tests, kind="stable") if tests[i] <= DIFFER])

    def p_values(self, blocks: list[EffectBlock]) -> list[float]:
        """p-values of the hypotheses that the segments of a block do not differ."""
        residual, doubt = np.empty_like(self.z), np.empty_like(self.z)
        for rows in row_blocks(self.rows_of, block_bytes=1 << 20):
            _, residual[rows], doubt[rows] = self._terms(rows)
        residual, doubt = self.counts * residual, self.counts * doubt
        return [self.p_value(block, residual, doubt) for block in blocks]

    def _terms(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-likelihood of each row at its margin, its derivative and its information, shape (b,) each."""
        margin, hit = self.margin[rows], self.hit[rows]
        return hit * margin - np.logaddexp(0, margin), hit - expit(margin), _doubt(margin)

    def _own(self, block: EffectBlock, doubt: FloatArray) -> FloatArray:
        """What the scores of a block are multiplied by, shape (n,)."""
        return self.x if block.kind == 1 else np.ones_like(self.x)

    def take(self, found: list[EffectBlock]) -> None:
        """Add blocks, as far as there is room, and fit all."""
        room = MOST_EFFECTS - self._starts[-1]
        for block in found:
            if block.size <= room:
                room -= block.size
                self.blocks.append(block)
            else:
                self.left_out += 1
        if found:
            self._maximise()

    def p_value(self, block: EffectBlock, residual: FloatArray, doubt: FloatArray) -> float:
        """p-value of the hypothesis that the segments of a block do not differ (Lin 1997)."""
        own = self._own(block, doubt)

        def sums(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(block.codes, values, minlength=block.size), np.float64)

        fixed = np.stack([np.ones_like(self.x), self.x])
        of_all = (fixed * doubt) @ fixed.T
        shared = np.stack([sums(doubt * own), sums(doubt * own * self.x)], axis=1)
        part = shared @ np.linalg.pinv(of_all, hermitian=True)
        score = sums(residual * own) - part @ (fixed @ residual)
        diagonal = sums(doubt * own * own)
        # The covariance of the scores is diag(diagonal) - part @ shared.T, of which only two traces are needed.
        mean = diagonal.sum() - np.einsum("ij,ij->", part, shared)
        inner = shared.T @ part
        square = (
            diagonal @ diagonal
            - 2 * diagonal @ np.einsum("ij,ij->i", part, shared)
            + np.einsum("ij,ji->", inner, inner)
        )
        if not (mean > 0 and square > 0):
            return 1.0
        return float(chdtrc(mean**2 / square, mean * (score @ score) / square))

    @property
    def _starts(self) -> list[int]:
        """First effect of each block, and the number of all."""
        return [int(first) for first in np.cumsum([2, *(b.size for b in self.blocks)])]

    def _design(self, rows: slice) -> csr_matrix:
        x = self.x[rows]
        one = np.ones_like(x)
        places = [b.codes[rows] + i for b, i in zip(self.blocks, self._starts, strict=False)]
        at = np.stack([np.zeros(x.size, np.intp), np.ones(x.size, np.intp), *places], axis=1)
        entries = np.stack([one, x, *(x if b.kind == 1 else one for b in self.blocks)], axis=1)
        ends = np.arange(0, entries.size + 1, entries.shape[1])
        return csr_matrix((entries.ravel(), at.ravel(), ends), (x.size, self._starts[-1]))

    def _sums(self) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, gradient, shape (E,), and information, shape (E, E), at the values; the margin is set."""
        size = self._starts[-1]
        likelihood, gradient, information = 0.0, np.zeros(size), np.zeros((size, size))
        for rows in row_blocks(self.rows_of, block_bytes=1 << 20):
            design, counts = self._design(rows), self.counts[rows]
            self.margin[rows] = self.z[rows] + design @ self.values
            each, residual, doubt = self._terms(rows)
            likelihood += float(counts @ each)
            gradient += design.T @ (counts * residual)
            weighted = csr_matrix(design.multiply((counts * doubt)[:, None]))
            information += (design.T @ weighted).toarray()
        return likelihood, gradient, information

    def _maximise(self) -> None:
        """Fit effects and variances in turn: Newton's method with backtracking for effects, fixed points for variances."""
        sizes = np.array([b.size for b in self.blocks])
        self.variances = np.append(self.variances, np.full(sizes.size - self.variances.size, 0.1))
        self.values = np.append(self.values, np.zeros(self._starts[-1] - self.values.size))
        likelihood, gradient, information = self._sums()
        for _ in range(50):
            before = self.values
            after = self._shrunk(information, gradient + information @ before, sizes)
            penalty = self._precisions(sizes)
            old = likelihood - penalty @ before**2 / 2
            for length in 0.5 ** np.arange(20):
                self.values = before + length * (after - before)
                likelihood, gradient, information = self._sums()
                if likelihood - penalty @ self.values**2 / 2 >= old - 1e-9 * abs(old):
                    break
            if np.abs(self.values - before).max() < _CLOSE:
                break

    def _precisions(self, sizes: IntArray) -> FloatArray:
        """Inverse variance of each value, shape (E,); 0 for those of all rows."""
        return np.append([0.0, 0.0], np.repeat(1 / np.maximum(self.variances, _NONE), sizes))

    def _shrunk(self, information: FloatArray, target: FloatArray, sizes: IntArray) -> FloatArray:
        """Find the variances of the model that is quadratic in the effects; return its effects."""
        starts = np.array(self._starts[:-1])
        for _ in range(200):
            some = self.variances > _NONE
            at = np.flatnonzero(np.append([self.SHARED] * 2, np.repeat(some, sizes)))
            values, spread = np.zeros(target.size), np.zeros(target.size)
            precision = np.diag(self._precisions(sizes)[at])
            inverse = np.linalg.pinv(information[np.ix_(at, at)] + precision, hermitian=True)
            values[at], spread[at] = inverse @ target[at], np.diag(inverse)
            # Number of effects of each block that the rows determine.
            free = sizes - np.add.reduceat(spread, starts) / np.maximum(self.variances, _NONE)
            found = np.add.reduceat(values**2, starts) / np.maximum(free, 1e-9)
            # Largest variance of offsets and slopes, in squared logits.
            found = np.where(some, np.minimum(found, 25.0), 0.0)
            close = np.abs(found - self.variances) <= 1e-4 * np.maximum(self.variances, 1e-3)
            self.variances = found
            if close.all():
                break
        return values

    def effects(self, *beside: SegmentFit) -> tuple[SegmentEffects, ...]:
        """Offsets, slopes and log-temperatures by column, or pair of columns, of this fit and others."""
        merged: dict[tuple[int, ...], FloatArray] = {}
        for fit in (self, *beside):
            for block, first in zip(fit.blocks, fit._starts, strict=False):
                # Segments without rows have exactly none, not one of 1e-20.
                with_rows = np.bincount(block.codes, minlength=block.size) > 0
                values = np.where(with_rows, fit.values[first : first + block.size], 0.0)
                if block.parts is not None:
                    values = np.where(block.parts < 0, 0.0, values[block.parts])
                if values.any():
                    merged.setdefault(block.of, np.zeros((3, values.size)))[block.kind] += values
        return tuple(
            SegmentEffects(of, *kinds)
            for of, kinds in sorted(merged.items(), key=lambda item: (len(item[0]), item[0]))
        )


class TemperatureFit(SegmentFit):
    """A softmax of log p / T, whose log T has normal effects of segments around 0, the map of all rows.

    Parameters
    ----------
    transform : callable
        The map of all rows, which returns probabilities p.
    scores : ndarray, shape (n, K)
        What it is applied to.
    labels, counts : ndarray, shape (n,)
        As for `SegmentFit`; the margin is log T.
    """

    SHARED = False

    def __init__(
        self,
        transform: Callable[[FloatArray], FloatArray],
        scores: FloatArray,
        labels: IntArray,
        counts: FloatArray,
    ) -> None:
        super().__init__(np.zeros(labels.size), labels, counts)
        self.transform, self.rows_of = transform, scores
        #: Fourth cumulant of the score of each row.
        self.tails = np.zeros(labels.size)
        #: Of the top label at the margin.
        self.log_odds = np.zeros(labels.size)

    def add_beside(self, blocks: list[EffectBlock], others: list[float]) -> list[float]:
        """Add those of the blocks whose segments differ, and more clearly so than in offsets; return their p-values.

        `others` are the p-values of offsets and slopes of the same columns in turn, of the same family.
        """
        own = self.p_values(blocks)
        each = zip(blocks, own, benjamini_hochberg([*own, *others]), others[::2], strict=False)
        self.take([b for b, p, test, offset in each if test <= DIFFER and p <= offset])
        return own

    def _terms(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        p = self.transform(self.rows_of[rows].astype(np.float64))
        logs = np.log(np.maximum(p, LEAST))
        inverse = np.exp(-self.margin[rows])
        p = softmax(logs * inverse[:, None], axis=1)
        top = p.max(axis=1)
        self.log_odds[rows] = np.log(top) - np.log(np.maximum(p.sum(axis=1) - top, LEAST))
        logs -= np.vecdot(p, logs)[:, None]
        variance = np.vecdot(p, logs**2)
        self.tails[rows] = np.vecdot(p, logs**4) - 3 * variance**2
        of_label = np.arange(len(p)), self.hit[rows]
        return (
            np.log(np.maximum(p[of_label], LEAST)),
            -inverse * logs[of_label],
            inverse**2 * variance,
        )

    def _own(self, block: EffectBlock, doubt: FloatArray) -> FloatArray:
        """Divide scores by their standard deviation, as flat rows tell little of T; in heavy tails, of few or confident rows, by more."""
        variance = np.bincount(block.codes, doubt, minlength=block.size)
        tails = np.bincount(block.codes, self.counts * self.tails, minlength=block.size)
        weights = variance / np.maximum(variance**2 + 2 * np.maximum(tails, 0), LEAST)
        return np.asarray(np.sqrt(weights)[block.codes])


def _doubt(margin: FloatArray) -> FloatArray:
    share = expit(margin)
    return np.asarray(share * (1 - share))

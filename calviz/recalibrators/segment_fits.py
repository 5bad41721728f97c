"""The model behind segments: a logistic regression of hits on log-odds, with normal effects of the segments that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import chdtrc, expit

from calviz.core.blocks import FloatArray, IntArray, row_blocks
from calviz.core.p_values import benjamini_hochberg

#: False discovery rate of the columns, and of the pairs of columns, in which segments are said to differ; level of an intercept.
DIFFER = 0.01
#: Most offsets and slopes that are fitted together.
MOST_EFFECTS = 1_500
#: Largest variance of offsets and slopes, in squared logits.
MOST_VARIANCE = 25.0
#: Smallest variance that is not taken for 0; and how close variances, and offsets, are fitted.
_NONE, _CLOSE = 1e-7, 1e-6


@dataclass(frozen=True, eq=False)
class SegmentEffects:
    """What is added to the log-odds within the segments of one column, or of two crossed.

    Attributes
    ----------
    of : tuple of int
        The one or two columns.
    offsets, slopes : ndarray, shape (S,)
        Of each segment, of the first column times the second.
    """

    of: tuple[int, ...]
    offsets: FloatArray
    slopes: FloatArray

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "columns": list(self.of),
            "offsets": self.offsets.tolist(),
            "slopes": self.slopes.tolist(),
        }


@dataclass(frozen=True, eq=False)
class EffectBlock:
    """Offsets or slopes of the segments of a column, or offsets of two crossed or of a region of these.

    Attributes
    ----------
    of : tuple of int
        The one or two columns.
    codes : ndarray of int, shape (n,)
        Segment of each row.
    size : int
        Number of segments.
    sloped : bool
    parts : ndarray of int, shape (S,), optional
        Which of the `size` effects each of the S segments of two columns shares; -1 for none.
    """

    of: tuple[int, ...]
    codes: IntArray
    size: int
    sloped: bool = False
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

    def __init__(self, z: FloatArray, hit: FloatArray, counts: FloatArray) -> None:
        self.z, self.hit, self.counts = z, hit, counts
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

    def add(self, blocks: list[EffectBlock]) -> None:
        """Add those of the blocks whose segments differ, and fit all."""
        if not blocks:
            return
        residual = self.counts * (self.hit - expit(self.margin))
        doubt = self.counts * _doubt(self.margin)
        tests = benjamini_hochberg([self.p_value(b, residual, doubt) for b in blocks])
        self.take([blocks[i] for i in np.argsort(tests, kind="stable") if tests[i] <= DIFFER])

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
        own = self.x if block.sloped else np.ones_like(self.x)

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
        entries = np.stack([one, x, *(x if b.sloped else one for b in self.blocks)], axis=1)
        ends = np.arange(0, entries.size + 1, entries.shape[1])
        return csr_matrix((entries.ravel(), at.ravel(), ends), (x.size, self._starts[-1]))

    def _sums(self) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, gradient, shape (E,), and information, shape (E, E), at the values; the margin is set."""
        size = self._starts[-1]
        likelihood, gradient, information = 0.0, np.zeros(size), np.zeros((size, size))
        for rows in row_blocks(self.x, block_bytes=1 << 20):
            design, counts, hit = self._design(rows), self.counts[rows], self.hit[rows]
            margin = self.margin[rows] = self.z[rows] + design @ self.values
            likelihood += counts @ (hit * margin - np.logaddexp(0, margin))
            gradient += design.T @ (counts * (hit - expit(margin)))
            weighted = csr_matrix(design.multiply((counts * _doubt(margin))[:, None]))
            information += (design.T @ weighted).toarray()
        return float(likelihood), gradient, information

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
            at = np.flatnonzero(np.append([True, True], np.repeat(some, sizes)))
            values, spread = np.zeros(target.size), np.zeros(target.size)
            precision = np.diag(self._precisions(sizes)[at])
            inverse = np.linalg.pinv(information[np.ix_(at, at)] + precision, hermitian=True)
            values[at], spread[at] = inverse @ target[at], np.diag(inverse)
            # Number of effects of each block that the rows determine.
            free = sizes - np.add.reduceat(spread, starts) / np.maximum(self.variances, _NONE)
            found = np.add.reduceat(values**2, starts) / np.maximum(free, 1e-9)
            found = np.where(some, np.minimum(found, MOST_VARIANCE), 0.0)
            close = np.abs(found - self.variances) <= 1e-4 * np.maximum(self.variances, 1e-3)
            self.variances = found
            if close.all():
                break
        return values

    def effects(self) -> tuple[SegmentEffects, ...]:
        """Offsets and slopes by column, or pair of columns."""
        merged: dict[tuple[int, ...], dict[bool, FloatArray]] = {}
        for block, first in zip(self.blocks, self._starts, strict=False):
            # Segments without rows have exactly none, not one of 1e-20.
            with_rows = np.bincount(block.codes, minlength=block.size) > 0
            values = np.where(with_rows, self.values[first : first + block.size], 0.0)
            if block.parts is not None:
                values = np.where(block.parts < 0, 0.0, values[block.parts])
            if values.any():
                kinds = merged.setdefault(block.of, {})
                kinds[block.sloped] = kinds.get(block.sloped, 0.0) + values
        return tuple(
            SegmentEffects(
                of,
                *(kinds.get(s, np.zeros_like(next(iter(kinds.values())))) for s in (False, True)),
            )
            for of, kinds in sorted(merged.items(), key=lambda item: (len(item[0]), item[0]))
        )


def _doubt(margin: FloatArray) -> FloatArray:
    share = expit(margin)
    return np.asarray(share * (1 - share))

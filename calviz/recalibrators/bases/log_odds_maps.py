"""Base of the methods that map the log-odds of each class separately, and normalise."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import for_row_blocks
from calviz.core.probabilities import row_sums
from calviz.numerics.scores import Scores
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.fitting.per_class_logistic import log_parts

#: Largest absolute margin, by dtype, whose sigmoid is a normal (not a subnormal) number.
FARTHEST: dict[Any, float] = {np.float32: 80.0, np.float64: 700.0}
#: Multiple of the original probabilities that is added, so that a row whose classes all underflow still has a distribution.
_LEAST = 1e-30


class LogOddsMaps(BaseRecalibrator):
    """Base of the methods with one margin per class, a function of log p and log(1 - p), whose sigmoid is the probability.

    With two classes only class 1 has a map, and class 0 gets the remaining probability.
    """

    def _takes_logarithms(self) -> bool:
        return True

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        """Return the margins of a block from log p and log(1 - p), all of shape (b, C); the arguments may be overwritten."""
        raise NotImplementedError

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        def work(rows: slice) -> None:
            out[rows] = normalised(self._margins(*log_parts(scores, rows)), scores, rows)

        for_row_blocks(scores.array, work, block_bytes=1 << 17)

    def _constants(self, name: str) -> str:
        """Return source that defines the constants of the margin."""
        raise NotImplementedError

    def _margin(self, name: str) -> str:
        """Return a source expression of the margin in ``log_p`` and ``log_rest``, shape (n, C)."""
        raise NotImplementedError

    def _source(self, name: str) -> str:
        read = self._floor.source
        return f"""{self._constants(name)}


def {name}_of(p):
    if p.shape[1] == 2:
        p = {read("p")}
        log_p, log_rest = np.log(p[:, 1:]), np.log(p[:, :1])
    else:
        top, rest = p.argmax(axis=1), 1 - p
        rows = np.arange(len(p))
        others = p.copy()
        others[rows, top] = 0
        rest[rows, top] = others.sum(axis=1)
        log_p, log_rest = np.log({read("p")}), np.log({read("rest")})
    margin = np.clip({self._margin(name)}, -700, 700)
    if p.shape[1] == 2:
        return np.concatenate([1 / (1 + np.exp(margin)), 1 / (1 + np.exp(-margin))], axis=1)
    out = 1 / (1 + np.exp(-margin)) + {_LEAST!r} * p
    return out / out.sum(axis=1, keepdims=True)
"""


def sigmoid(margin: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-margin)), without overflow."""
    # Margins are limited so that the result is above 0: an exact 0 for the true class would have an infinite loss.
    e = np.exp(-np.minimum(np.abs(margin), FARTHEST[margin.dtype.type]))
    return np.asarray(np.where(margin >= 0, 1, e) / (1 + e))


def normalised(margin: FloatArray, scores: Scores, rows: slice) -> FloatArray:
    """Return normalised probabilities from the margins of a block, shape (b, C) to (b, K)."""
    if margin.shape[1] == 1:
        return np.concatenate([sigmoid(-margin), sigmoid(margin)], axis=1)
    shares = sigmoid(margin)
    p = scores.block(rows)
    p *= _LEAST
    shares += p
    shares /= row_sums(shares)[:, None]
    return shares

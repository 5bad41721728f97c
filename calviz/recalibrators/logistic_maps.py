"""Methods that map the log-odds of each class by a logistic regression, and normalise."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.blocks import for_row_blocks
from calviz.numerics.scores import Scores, row_sums
from calviz.recalibrators import numpy_source
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.fitting.per_class_logistic import (
    BOUND,
    FEATURES,
    LogisticFit,
    fit_logistic,
    log_parts,
)
from calviz.specs.recalibrator import Needs

#: The largest margins whose shares are normal numbers.
FARTHEST: dict[Any, float] = {np.float32: 80.0, np.float64: 700.0}
#: Keeps a row whose classes all underflow from having no distribution at all.
_LEAST = 1e-30


class LogisticMaps(BaseRecalibrator):
    """Base of Platt scaling and beta calibration: one logistic regression per class."""

    needs: ClassVar[Needs] = "probabilities"
    fitted = ("coefficients_",)
    #: Shape (D, C): one column per class, or one in all where there are two classes.
    coefficients_: FloatArray
    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[Literal["log-odds", "beta"]]
    start: ClassVar[tuple[float, ...]]
    non_negative: ClassVar[int] = 0

    def _takes_logarithms(self) -> bool:
        return True

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        maps = self._fit_maps(scores, labels)
        self.coefficients_ = maps.parameters
        self._warn_absent(
            np.bincount(labels, minlength=scores.shape[1]),
            "their probabilities are only normalised",
        )
        if maps.separated.any():
            self._warn(
                f"the positive rows of {int(maps.separated.sum())} of {maps.separated.size} classes are "
                f"perfectly separated from the others: any steeper map fits better, the search was stopped."
            )
        if np.abs(maps.parameters).max() >= BOUND:
            self._warn(f"a coefficient is at the bound of {BOUND:,.0f}.")
        if not maps.converged:
            self._warn("not converged: the maps are the best that were found.")

    def _fit_maps(self, scores: Scores, labels: IntArray) -> LogisticFit:
        cls = type(self)
        return fit_logistic(
            scores, labels, FEATURES[cls.kind], np.array(cls.start), non_negative=cls.non_negative
        )

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        theta = self.coefficients_
        features = FEATURES[self.kind]

        def work(rows: slice) -> None:
            x = features(*log_parts(scores, rows))
            margin = np.einsum("dbc,dc->bc", x, theta[:-1].astype(x.dtype))
            margin += theta[-1].astype(x.dtype)
            out[rows] = normalised(margin, scores, rows)

        for_row_blocks(scores.array, work, block_bytes=1 << 17)

    def _described(self) -> dict[str, Any]:
        """The coefficients, by name."""
        rows = zip(self.names, self.coefficients_, strict=True)
        return {name: row.tolist() if row.size > 1 else float(row[0]) for name, row in rows}

    def _source(self, name: str) -> str:
        read = self._floor.source
        return f"""{name}_w = {numpy_source.array(self.coefficients_)}


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

    def _margin(self, name: str) -> str:
        """Source of the margin from ``log_p`` and ``log_rest``."""
        raise NotImplementedError


def sigmoid(margin: FloatArray) -> FloatArray:
    """1 / (1 + exp(-margin)), without overflow."""
    # No further than exponents of normal numbers go: a share of exactly 0 on the true class would have an infinite loss.
    e = np.exp(-np.minimum(np.abs(margin), FARTHEST[margin.dtype.type]))
    return np.asarray(np.where(margin >= 0, 1, e) / (1 + e))


def normalised(margin: FloatArray, scores: Scores, rows: slice) -> FloatArray:
    """Probabilities of all classes from the margins of each, shape (b, C) to (b, K)."""
    if margin.shape[1] == 1:
        return np.concatenate([sigmoid(-margin), sigmoid(margin)], axis=1)
    shares = sigmoid(margin)
    p = scores.block(rows)
    p *= _LEAST
    shares += p
    shares /= row_sums(shares)[:, None]
    return shares

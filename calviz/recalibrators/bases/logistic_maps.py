"""Base of the methods that fit one logistic regression per class, and normalise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases.log_odds_maps import LogOddsMaps
from calviz.recalibrators.fitting.per_class_logistic import (
    BOUND,
    FEATURES,
    FeatureKind,
    LogisticFit,
    fit_logistic,
)
from calviz.recalibrators.fitting.weighted_logistic import weighted_logistic
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, Sizes, fields


class LogisticMaps(LogOddsMaps):
    """Base of Platt scaling, beta calibration and similar methods: one logistic regression per class."""

    fitted = fields(coefficients_=Numbers(("D", "C")))
    #: Shape (D, C): one column per class, or a single one with two classes; the last row holds the intercepts.
    coefficients_: FloatArray
    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[FeatureKind]
    start: ClassVar[tuple[float, ...]]
    non_negative: ClassVar[int] = 0
    #: Whether an intercept is fitted; otherwise it is 0.
    intercept: ClassVar[bool] = True

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        self._set_maps(self._fit_maps(scores, labels), scores, labels)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray) -> None:
        cls = type(self)
        maps = weighted_logistic(
            scores,
            labels,
            weights,
            FEATURES[cls.kind],
            np.array(cls.start),
            non_negative=cls.non_negative,
            intercept=cls.intercept,
        )
        self._set_maps(maps, scores, labels)

    def _set_maps(self, maps: LogisticFit, scores: Scores, labels: IntArray) -> None:
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
            scores,
            labels,
            FEATURES[cls.kind],
            np.array(cls.start),
            non_negative=cls.non_negative,
            intercept=cls.intercept,
        )

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        theta = self.coefficients_.astype(log_p.dtype)
        x = FEATURES[self.kind](log_p, log_rest)
        margin = np.einsum("dbc,dc->bc", x, theta[:-1])
        margin += theta[-1]
        return np.asarray(margin)

    def _sizes(self) -> Sizes:
        return super()._sizes() | {"D": len(self.start)}

    def _described(self) -> dict[str, Any]:
        """Return the coefficients by name."""
        rows = self.coefficients_ if self.intercept else self.coefficients_[:-1]
        return {
            name: row.tolist() if row.size > 1 else float(row[0])
            for name, row in zip(self.names, rows, strict=True)
        }

    def _constants(self, name: str) -> str:
        return f"{name}_w = {numpy_source.array(self.coefficients_)}"

"""Logistic spline: a smooth function of the log-odds, added to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import InputError, OptionError
from calviz.core.progress import checkpoint
from calviz.numerics.column_groups import for_columns
from calviz.numerics.scores import Scores
from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.log_odds_maps import LogOddsMaps
from calviz.recalibrators.fitting.logit_spline import STRAIGHT, LogitSpline, logit_spline
from calviz.recalibrators.fitting.per_class_logistic import log_parts
from calviz.recalibrators.maps import numpy_source
from calviz.recalibrators.maps.fields import Numbers, OnePerMap, damaged, fields
from calviz.specs.recalibrator import FloorChoice, Input, recalibrator


@recalibrator(
    key="logit-spline",
    label="Logistic spline",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Lucena 2018, section 3; Green & Silverman 1994, section 2.1",
    formula=r"\sigma(z + g(z)),\ g = \arg\min \mathrm{NLL} + \frac{\lambda}{2} \int g''(z)^2\, dz",
    left_out=reasons_to_leave_out.each_class_alone,
    mixed_up_to=20,
)
class LogisticSpline(LogOddsMaps):
    """A logistic regression on the log-odds plus a smooth function of them, a penalised natural cubic spline; fitted one-vs-rest, then normalised.

    The penalty strength is the largest one whose cross-validated NLL is within one standard error of the lowest; the
    spline is then fitted to all rows. With few rows, the map stays close to the original scores.

    Parameters
    ----------
    knots : int
        Largest number of knots, which are placed at quantiles of the log-odds.
    folds : int
        Number of cross-validation folds. Rows are dealt out in the order of their scores, so that the result is deterministic.
    own_rows : float
        Weight of the original scores, in rows: as if this many additional rows had hits exactly as the scores predict.
    strength : float, optional
        Penalty strength, in units of the log-odds divided by their standard deviation; found by cross-validation by default.
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    knots_, values_, bends_ : list of ndarray, shape (M,)
        Knots of each class (with two classes, of class 1 alone), and g and its second derivative there.
    strengths_ : ndarray, shape (C,)
        Penalty strengths; 0 stands for a straight line.
    """

    fitted = fields(
        knots_=OnePerMap(Numbers(("M",), ascending=True)),
        values_=OnePerMap(Numbers(("M",))),
        bends_=OnePerMap(Numbers(("M",))),
        strengths_=Numbers(("C",), least=0),
    )
    knots_: list[FloatArray]
    values_: list[FloatArray]
    bends_: list[FloatArray]
    strengths_: FloatArray

    def __init__(
        self,
        *,
        knots: int = 20,
        folds: int = 5,
        own_rows: float = 5.0,
        strength: float | None = None,
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.knots = knots
        self.folds = folds
        self.own_rows = own_rows
        self.strength = strength
        self.floor = floor
        self.input = input

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        n, k = scores.shape
        start = 1 if k == 2 else 0
        counts = np.bincount(labels, minlength=k)
        splines = [STRAIGHT] * (k - start)
        log_odds = np.empty((n, k - start), dtype=scores.dtype)
        for rows in row_blocks(scores.array):
            log_odds[rows] = np.subtract(*log_parts(scores, rows))
        checkpoint("cross-validating the penalty")

        def work(at: int, column: FloatArray) -> None:
            if counts[at + start]:
                splines[at] = logit_spline(
                    column,
                    labels == at + start,
                    weights,
                    knots=self.knots,
                    folds=self.folds,
                    own_rows=self.own_rows,
                    strength=self.strength,
                )

        for_columns(log_odds, work, wide=True)
        self._set_splines(splines)
        self._warn_absent(counts, "their probabilities are only normalised")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.knots < 2 or self.folds < 2:
            raise OptionError(
                f"'knots' and 'folds' must be 2 or more, got {self.knots!r} and {self.folds!r}."
            )
        if self.own_rows < 0:
            raise OptionError(f"'own_rows' must be 0 or more, got {self.own_rows!r}.")
        if self.strength is not None and not self.strength > 0:
            raise OptionError(f"'strength' must be above 0, got {self.strength!r}.")

    def _set_splines(self, splines: list[LogitSpline]) -> None:
        self._splines = splines
        self.knots_ = [s.knots for s in splines]
        self.values_ = [s.values for s in splines]
        self.bends_ = [s.bends for s in splines]
        self.strengths_ = np.array([s.strength if np.isfinite(s.strength) else 0 for s in splines])

    def _restored(self) -> None:
        parts = zip(self.knots_, self.values_, self.bends_, self.strengths_, strict=True)
        splines = [LogitSpline(t, v, c, float(s) or np.inf) for t, v, c, s in parts]
        for spline in splines:
            try:
                spline.check()
            except InputError as error:
                raise damaged(self.key, str(error).rstrip(".")) from None
        self._set_splines(splines)

    def _margins(self, log_p: FloatArray, log_rest: FloatArray) -> FloatArray:
        z = np.subtract(log_p, log_rest)
        for at, spline in enumerate(self._splines):
            z[:, at] = spline(z[:, at])
        return z

    def curve(self, score: FloatArray, k: int = 0) -> FloatArray:
        """Return the map of class k (with two classes, of class 1) at scores above 0 and below 1, before normalisation."""
        p = np.asarray(score, dtype=np.float64)
        spline = self._splines[0 if len(self._splines) == 1 else k]
        return np.asarray(1 / (1 + np.exp(-spline(np.log(p) - np.log1p(-p)))))

    def _described(self) -> dict[str, Any]:
        """Return the number of knots, the penalty strengths (None for a straight line), and the largest shift at a knot."""
        strengths = [float(s) or None for s in self.strengths_]
        return {
            "knots": sum(t.size for t in self.knots_),
            "strengths": strengths if len(strengths) > 1 else strengths[0],
            "largest_departure": max(float(np.abs(v).max()) for v in self.values_),
        }

    def _constants(self, name: str) -> str:
        parts = [
            f"{name}_{part} = {numpy_source.arrays(values)}"
            for part, values in (
                ("knots", self.knots_),
                ("values", self.values_),
                ("bends", self.bends_),
            )
        ]
        return (
            "\n".join(parts)
            + f"""


def {name}_margin(z):
    out = z.copy()
    for k, (t, v, c) in enumerate(zip({name}_knots, {name}_values, {name}_bends)):
        at = np.clip(np.searchsorted(t, z[:, k]) - 1, 0, t.size - 2)
        width = t[at + 1] - t[at]
        right = (np.clip(z[:, k], t[0], t[-1]) - t[at]) / width
        left = 1 - right
        out[:, k] += left * v[at] + right * v[at + 1]
        out[:, k] += ((left**3 - left) * c[at] + (right**3 - right) * c[at + 1]) * (width * width / 6)
        first = (v[1] - v[0]) / (t[1] - t[0]) - (t[1] - t[0]) * c[1] / 6
        last = (v[-1] - v[-2]) / (t[-1] - t[-2]) + (t[-1] - t[-2]) * c[-2] / 6
        out[:, k] += first * np.minimum(z[:, k] - t[0], 0) + last * np.maximum(z[:, k] - t[-1], 0)
    return out"""
        )

    def _margin(self, name: str) -> str:
        return f"{name}_margin(log_p - log_rest)"

"""Platt scaling and its relatives: one logistic regression on the log-odds per class, then normalised."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from calviz.core.blocks import FloatArray, IntArray, row_blocks
from calviz.core.entry_specs import FitFacts, FloorChoice, Input, recalibrator
from calviz.core.probabilities import Scores
from calviz.recalibrators.base import always, each_class_alone
from calviz.recalibrators.logistic_fits import (
    BOUND,
    FEATURES,
    FeatureKind,
    LogisticFit,
    fit_logistic,
    log_parts,
    weighted_logistic,
)
from calviz.recalibrators.maps import Numbers, Sizes, array_source, learned
from calviz.recalibrators.per_class import LogOddsMaps, sigmoid


class LogisticMaps(LogOddsMaps):
    """Base of Platt scaling, beta calibration and similar methods: one logistic regression per class.

    Where the rows of a class are separable, perhaps but for ties, the labels of its fit are smoothed as in Platt scaling.
    """

    #: Shape (D, C): one column per class, or a single one with two classes; the last row holds the intercepts.
    coefficients_: FloatArray = learned(Numbers(("D", "C")))
    floor: FloorChoice = "auto"
    input: Input = "probabilities"
    names: ClassVar[tuple[str, ...]]
    kind: ClassVar[FeatureKind]
    start: ClassVar[tuple[float, ...]]
    non_negative: ClassVar[int] = 0
    #: Whether an intercept is fitted; otherwise it is 0.
    intercept: ClassVar[bool] = True
    #: Whether labels are always smoothed.
    smooth: ClassVar[bool] = False

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        features, start = FEATURES[self.kind], np.array(self.start)
        how: dict[str, Any] = {"non_negative": self.non_negative, "intercept": self.intercept}

        def fit(smooth: float) -> LogisticFit:
            if weights is None:
                return fit_logistic(scores, labels, features, start, **how, smooth=smooth)
            return weighted_logistic(scores, labels, weights, features, start, **how, smooth=smooth)

        maps = fit(self.rows_each if self.smooth else 0.0)
        if maps.separated.any() and not self.smooth:
            smoothed = fit(self.rows_each)
            parameters = np.where(maps.separated, smoothed.parameters, maps.parameters)
            maps = replace(maps, parameters=parameters, converged=smoothed.converged)
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
                f"perfectly separated from the others: any steeper map fits better, so that their labels were smoothed as in Platt scaling."
            )
        if np.abs(maps.parameters).max() >= BOUND:
            self._warn(f"a coefficient is at the bound of {BOUND:,.0f}.")
        if not maps.converged:
            self._warn("not converged: the maps are the best that were found.")

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
        return f"{name}_w = {array_source(self.coefficients_)}"


@recalibrator(
    key="platt",
    label="Platt scaling",
    family="Parametric",
    confidence_only=True,
    reference="Platt 1999; Guo et al. 2017, section 4.1",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=each_class_alone,
    preselected=True,
)
class PlattScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds; with more than two classes fitted one-vs-rest, then normalised.

    It uses log-odds rather than single logits, so that adding a constant to the logits of a row changes nothing. Labels are smoothed
    as in Platt 1999 and scikit-learn: of N+ positive and N- negative rows, a positive one counts as (N+ + 1) / (N+ + 2) and a
    negative one as 1 / (N- + 2), so that separable rows have a map, too. `AffineScaling` does not smooth them.

    Parameters
    ----------
    floor : float, "auto" or None
        Value that a p or 1 - p of exactly 0 counts as in logarithms, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """

    names = ("a", "b")
    kind = "log-odds"
    start = (1.0, 0.0)
    smooth = True

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest) + {name}_w[1]"


@recalibrator(
    key="affine",
    label="Affine scaling",
    family="Parametric",
    confidence_only=True,
    reference="Berta et al. 2026; Platt 1999",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=always("it is Platt scaling without smoothed labels."),
)
class AffineScaling(PlattScaling):
    """A factor and an offset for the log-odds, fitted by maximum likelihood: Platt scaling without its smoothed labels.

    Where the rows of a class are separable, perhaps but for ties, labels are smoothed as in `PlattScaling`.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """

    smooth = False


@recalibrator(
    key="beta",
    label="Beta calibration",
    family="Parametric",
    confidence_only=True,
    reference="Kull et al. 2017",
    formula=r"\sigma\left(a \log p - b \log(1 - p) + c\right),\ a, b \ge 0",
    left_out=each_class_alone,
    preselected=True,
    mixed_up_to=20,
)
class BetaCalibration(LogisticMaps):
    """A logistic regression on log p and -log(1 - p), which bends where Platt scaling cannot; fitted one-vs-rest, then normalised.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        a, b (not negative) and c; C is K, or 1 for two classes.
    """

    names = ("a", "b", "c")
    kind = "beta"
    start = (1.0, 1.0, 0.0)
    non_negative = 2

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * log_p - {name}_w[1] * log_rest + {name}_w[2]"


def _without_offset(facts: FitFacts) -> str:
    """Why linear scaling is left out (see `RecalibratorSpec.left_out`)."""
    if facts.classes == 2:
        return "for two classes it is temperature scaling."
    return each_class_alone(facts)


@recalibrator(
    key="linear",
    label="Linear scaling",
    family="Parametric",
    confidence_only=True,
    reference="Berta et al. 2026; Guo et al. 2017, section 4.2",
    formula=r"\sigma(a z),\ z = \log\frac{p}{1 - p}",
    left_out=_without_offset,
)
class LinearScaling(LogisticMaps):
    """A factor for the log-odds, fitted by maximum likelihood; with more than two classes fitted one-vs-rest, then normalised.

    With two classes it is temperature scaling with T = 1 / a; a score of one half is unchanged.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a, and a row of zeros; C is K, or 1 for two classes.
    """

    names = ("a",)
    kind = "log-odds"
    start = (1.0, 0.0)
    intercept = False

    def _margin(self, name: str) -> str:
        return f"{name}_w[0] * (log_p - log_rest)"


@recalibrator(
    key="quadratic",
    label="Quadratic scaling",
    family="Parametric",
    confidence_only=True,
    reference="Berta et al. 2026",
    formula=r"\sigma(a + b z + c z^2),\ z = \log\frac{p}{1 - p}",
    left_out=each_class_alone,
    mixed_up_to=20,
)
class QuadraticScaling(LogisticMaps):
    """A logistic regression of the label on the log-odds and their square, by maximum likelihood; fitted one-vs-rest, then normalised.

    The parabola turns at ``z = -b / (2 c)``: if that is within the range of the calibration rows, the map is not monotone, and a
    warning says so.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (3, C)
        b, c and a; C is K, or 1 for two classes.
    range_ : ndarray, shape (2, C)
        The smallest and the largest log-odds of the calibration rows.
    """

    names = ("b", "c", "a")
    kind = "quadratic"
    start = (1.0, 0.0, 0.0)
    range_: FloatArray = learned(Numbers((2, "C"), ascending=True))

    def _set_maps(self, maps: LogisticFit, scores: Scores, labels: IntArray) -> None:
        super()._set_maps(maps, scores, labels)
        low, high = np.inf, -np.inf
        for rows in row_blocks(scores.array):
            z = np.subtract(*log_parts(scores, rows))
            low, high = np.minimum(low, z.min(axis=0)), np.maximum(high, z.max(axis=0))
        self.range_ = np.array([low, high], dtype=np.float64)
        self._warn_of_turns()

    def turns(self) -> FloatArray:
        """Return the log-odds at which the map of each class turns, shape (C,); nan where that is outside the calibration rows."""
        b, c = self.coefficients_[:2]
        turns = np.full(b.shape, np.nan)
        np.divide(-b, 2 * c, out=turns, where=c != 0)
        low, high = self.range_
        turns[~((low < turns) & (turns < high))] = np.nan
        return turns

    def _warn_of_turns(self) -> None:
        turns = self.turns()
        columns = np.flatnonzero(~np.isnan(turns))
        if not columns.size:
            return
        k = int(columns[0])
        subject = (
            "the map is not monotone: it turns"
            if turns.size == 1
            else f"the maps of {columns.size} of {turns.size} classes are not monotone: that of column {k} turns"
        )
        side = "below" if self.coefficients_[1, k] > 0 else "above"
        self._warn(
            f"{subject} at a score of {_score(turns[k]):.4g}, and reverses the order of scores {side} that."
        )

    def _described(self) -> dict[str, Any]:
        """Return the coefficients by name, and the scores at which the maps turn (None where they do not)."""
        turns = [None if np.isnan(z) else _score(z) for z in self.turns()]
        return super()._described() | {"turns_at": turns if len(turns) > 1 else turns[0]}

    def _margin(self, name: str) -> str:
        z = "(log_p - log_rest)"
        return f"{name}_w[2] + {z} * ({name}_w[0] + {name}_w[1] * {z})"


def _score(log_odds: float) -> float:
    """Return the probability with these log-odds."""
    return float(sigmoid(np.asarray(log_odds, dtype=np.float64)))

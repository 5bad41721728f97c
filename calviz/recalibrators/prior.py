"""An offset of the log-odds, to the shares of the classes or to other ones, and estimates of these shares from unlabelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import chi2

from calviz.core.blocks import FloatArray, IntArray, effective_number, row_blocks, row_weights
from calviz.core.entry_specs import follows_noise, recalibrator
from calviz.core.errors import InputError, NotAvailable, OptionError, claim, shortened
from calviz.core.predictions import Dataset, Predictions, checked_rates
from calviz.core.probabilities import Scores, softmax
from calviz.core.words import counted, percent, shorten
from calviz.recalibrators import base, maps

#: Largest deviation of a mean from its target.
_CLOSE = 1e-13
#: Level of the test of `BaseRates.changed`.
CHANGED = 0.005


@recalibrator(
    key="prior",
    label="Offset (recalibration in the large)",
    family="Parametric",
    needs="logits",
    confidence_only=True,
    reference="Steyerberg et al. 2004; Janssen et al. 2008; Saerens, Latinne & Decaestecker 2002, eq. 2.4; Elkan 2001, theorem 2",
    formula=r"\hat p_k \propto p_k\, e^{b_k}",
    left_out=follows_noise,
)
class PriorShift(base.FlooredRecalibrator):
    """An offset of the log-odds, the same for every row: after it the mean probability of each class is its share, or a given one.

    Fitted by maximum likelihood, with slope 1. Given a base rate, ``b_k = log(base rate / share)``: right if the rows of each class stay
    as they are, and only the shares of the classes change; scores that are not calibrated before are not afterwards.

    Parameters
    ----------
    base_rate : float or list of float, optional
        Share of class 1, or of each class, among new rows. The shares among the calibration rows are those of their labels.
    mean : float or list of float, optional
        Instead: what the mean probability of class 1, or of each class, is to be over the calibration rows. Without both, the share of
        each class among these rows.
    floor : float, "auto" or None
        Value that an exact probability of 0 counts as in logarithms, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    offsets_ : ndarray, shape (K,)
        b, with 0 for class 0.
    """

    base_rate: Any = None
    mean: Any = None
    offsets_: FloatArray = maps.learned(maps.Numbers(("K",)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.base_rate is not None and self.mean is not None:
            raise OptionError("give 'base_rate' or 'mean', not both.")
        for name in ("base_rate", "mean"):
            if (rates := getattr(self, name)) is not None:
                checked_rates(rates, None, name)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        k = scores.shape[1]
        share: FloatArray = np.bincount(labels, weights, minlength=k) / scores.shape[0]
        absent = np.flatnonzero(share == 0)
        if self.base_rate is not None:
            wanted = checked_rates(self.base_rate, k, "base_rate")
            if absent.size:
                raise InputError(
                    f"there are no calibration rows of class {absent[0]}: its base rate cannot be changed"
                )
            self._warn_of_means(scores, share, weights)
            offsets = np.log(wanted / share)
        else:
            target = share
            if self.mean is not None:
                target = checked_rates(self.mean, k, "mean")
            elif absent.size:
                self._warn_absent(np.bincount(labels, minlength=k), "their mean stays as it is")
                own = _sums(scores, np.zeros(k), weights)[1]
                target = np.where(share == 0, own, share * (1 - own[absent].sum()))
            offsets = offsets_to(scores, target, weights)
        self.offsets_ = offsets - offsets[0]

    def _warn_of_means(self, scores: Scores, share: FloatArray, weights: FloatArray | None) -> None:
        _, mean, _ = _sums(scores, np.zeros(share.size), weights)
        n = effective_number(row_weights(weights, scores.shape[0]))
        off = np.abs(mean - share) / np.sqrt(np.maximum(mean * (1 - mean), 1e-12) / n)
        worst = int(off.argmax())
        # Standard errors from which a mean score differs visibly from the share of its class.
        if off[worst] > 4.0:
            self._warn(
                f"the mean probability of class {worst} is {percent(mean[worst])}, its share {percent(share[worst])}: calibrate first, "
                "because an offset carries this error along."
            )

    def _apply(self, block: FloatArray) -> FloatArray:
        block += self.offsets_.astype(block.dtype)
        return softmax(block)

    def _source(self, name: str) -> str:
        return f"def {name}_of(z):\n    return softmax(z + {maps.array_source(self.offsets_)})\n"

    def _described(self) -> dict[str, Any]:
        """Return the offset of class 1, or those of all classes."""
        offsets = self.offsets_.tolist()
        return {"offset": offsets[1] if len(offsets) == 2 else offsets}


def _sums(
    scores: Scores, offsets: FloatArray, weights: FloatArray | None
) -> tuple[float, FloatArray, FloatArray]:
    """Means over the rows of ``log sum_k exp(z_k + b_k)``, of its derivatives p (K,), and of their products (K, K)."""
    n, k = scores.shape
    normaliser, mean, product = 0.0, np.zeros(k), np.zeros((k, k))
    for rows in row_blocks(scores.array):
        block = scores.block(rows, np.float64) + offsets
        own = np.ones(block.shape[0]) if weights is None else weights[rows]
        normaliser += float(own @ logsumexp(block, axis=1))
        shifted = softmax(block)
        mean += own @ shifted
        rooted = np.sqrt(own)[:, None] * shifted
        product += rooted.T @ rooted
    return normaliser / n, mean / n, product / n


def offsets_to(scores: Scores, target: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Offsets b, shape (K,), with which the mean of ``softmax(z + b)`` is the target, shape (K,).

    They minimise ``mean log sum_k exp(z_k + b_k) - target @ b``, which is convex; by Newton's method with backtracking.
    """
    offsets = np.zeros(target.size)
    value, mean, product = _sums(scores, offsets, weights)
    for _ in range(200):
        gradient = mean - target
        if np.abs(gradient).max() <= _CLOSE:
            break
        hessian = np.diag(mean) - product
        step = np.append(0.0, np.linalg.lstsq(hessian[1:, 1:], -gradient[1:], rcond=None)[0])
        step *= min(1.0, 20 / max(np.abs(step).max(), 1e-300))
        for _ in range(40):
            tried = offsets + step
            new = _sums(scores, tried, weights)
            # Near the minimum, the value no longer tells two points apart; the gradient does.
            nearer = np.abs(new[1] - target).max() < np.abs(gradient).max()
            if nearer or new[0] - target @ tried < value - target @ offsets:
                break
            step /= 2
        else:
            break
        offsets, (value, mean, product) = tried, new
    return offsets


# ---- Shares of the classes among unlabelled rows


@dataclass(frozen=True, repr=False)
class BaseRates:
    """Shares of the classes among unlabelled rows.

    Attributes
    ----------
    class_names : tuple of str
    rates : tuple of float
        By maximum likelihood, for calibrated scores (the fixed point of EM).
    moments, intervals : tuple of float, tuple of (float, float)
        Those that explain how many rows fall into which cells of the scores (BBSE), whether or not the scores are calibrated, with
        95 % intervals.
    p_value : float or None
        Of the hypothesis that the rows of each class have the scores that they had among the labelled rows; None for clustered rows,
        or where there are too few cells.
    rows : int
        Number of unlabelled rows.
    """

    class_names: tuple[str, ...]
    rates: tuple[float, ...]
    moments: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]
    p_value: float | None
    rows: int

    @property
    def changed(self) -> bool:
        """Whether the scores of each class have visibly changed too, so that a new base rate alone does not explain the rows."""
        return self.p_value is not None and self.p_value <= CHANGED

    def __repr__(self) -> str:
        return self.reading()

    @claim(
        "base-rate",
        says="The scores within the classes have changed too, beyond chance: a new base rate alone does not explain these rows.",
        chosen="the shares of the classes",
        adjusted="chi-square test with a degree of freedom less for each share that is estimated, at 0.5 %",
    )
    def reading(self) -> str:
        """The estimates, whether they agree, and whether a new base rate is enough, in sentences."""
        shown = range(1, 2) if len(self.rates) == 2 else range(min(len(self.rates), 5))
        parts = [
            f"'{shorten(self.class_names[k], 30)}' {percent(self.rates[k])} (check {percent(self.moments[k])}, 95 % CI "
            f"{percent(self.intervals[k][0])} to {percent(self.intervals[k][1])})"
            for k in shown
        ]
        more = "" if len(self.rates) - len(shown) <= 1 else ", …"
        text = f"Among {counted(self.rows, 'unlabelled row')}: {', '.join(parts)}{more}."
        apart = [
            name
            for name, p, ends in zip(self.class_names, self.rates, self.intervals, strict=True)
            if not ends[0] <= p <= ends[1]
        ]
        if self.changed:
            text += " The scores within the classes have changed too, beyond chance: a new base rate alone does not explain these rows."
        elif apart:
            text += f" The two estimates differ for '{shorten(apart[0], 30)}': the scores may not be calibrated."
        return text


def base_rates(labelled: Dataset, unlabelled: Dataset | npt.ArrayLike) -> BaseRates:
    """Estimate the shares of the classes among unlabelled rows, if the rows of each class are as they were.

    Parameters
    ----------
    labelled : Predictions
        Rows with labels.
    unlabelled : Predictions or array_like, shape (m, K) or (m,)
        Rows whose labels, if there are any, are not looked at.

    Returns
    -------
    BaseRates

    Raises
    ------
    InputError
        If the classes are others, or one has no labelled rows.

    References
    ----------
    Saerens, Latinne & Decaestecker 2002, section 2.2 (EM); Lipton, Wang & Smola 2018 (BBSE); Alexandari, Kundaje & Shrikumar 2020, who
    show that EM is the better one on calibrated scores.
    """
    labelled = _with_classes(labelled)
    if not isinstance(unlabelled, Dataset):
        probs = np.asarray(unlabelled, np.float64)
        named = probs.ndim == 1 or probs.shape[1] == labelled.n_classes
        names = labelled.class_names if named else ()
        unlabelled = Predictions(
            probs=probs, labels=np.zeros(probs.shape[0], np.intp), class_names=names
        )
    unlabelled = _with_classes(unlabelled)
    if unlabelled.class_names != labelled.class_names:
        raise InputError(
            f"the unlabelled rows have other classes: {_few(unlabelled.class_names)} against {_few(labelled.class_names)}"
        )
    own = row_weights(labelled.weights, labelled.n)
    share = np.bincount(labelled.labels, own, minlength=labelled.n_classes) / own.sum()
    if (share == 0).any():
        name = labelled.class_names[int(np.flatnonzero(share == 0)[0])]
        raise InputError(f"no labelled row has the class '{shortened(name)}'")
    rates = _most_likely(unlabelled.probs.astype(np.float64), share)
    moments, errors, p_value = _moments(labelled, unlabelled, own)
    low, high = (np.clip(moments + side * 1.96 * errors, 0, 1) for side in (-1, 1))
    return BaseRates(
        labelled.class_names,
        tuple(rates.tolist()),
        tuple(np.clip(moments, 0, 1).tolist()),
        tuple(zip(low.tolist(), high.tolist(), strict=True)),
        None if labelled.clusters is not None or unlabelled.clusters is not None else p_value,
        unlabelled.n,
    )


def _with_classes(data: Dataset) -> Predictions:
    if not isinstance(data, Predictions) or data.cells is not None:
        raise NotAvailable("base rates need rows with the probabilities of their classes.")
    return data


def _few(names: Sequence[str]) -> str:
    return ", ".join(shortened(name) for name in names[:5]) + (", …" if len(names) > 5 else "")


def _most_likely(probs: FloatArray, share: FloatArray) -> FloatArray:
    """Shares that maximise ``mean log sum_k rate_k p_k / share_k``, shape (K,)."""
    ratio = probs / share
    if share.size == 2:

        def slope(rate: float) -> float:
            return float(((ratio[:, 1] - ratio[:, 0]) / (ratio @ [1 - rate, rate])).mean())

        ends = 1e-12, 1 - 1e-12
        if slope(ends[0]) <= 0 or slope(ends[1]) >= 0:
            rate = ends[0] if slope(ends[0]) <= 0 else ends[1]
        else:
            rate = brentq(slope, *ends, xtol=1e-14)
        return np.array([1 - rate, rate])
    rates = new = share
    for _ in range(10_000):
        new = rates * ((1 / (ratio @ rates)) @ ratio) / probs.shape[0]
        if np.abs(new - rates).max() < 1e-12:
            break
        rates = new
    return np.asarray(new / new.sum())


def _moments(
    labelled: Predictions, unlabelled: Predictions, own: FloatArray
) -> tuple[FloatArray, FloatArray, float | None]:
    """Shares of the classes that explain the cells of the unlabelled rows, their standard errors, and the p-value of what is left.

    Generalised least squares: with as many cells as classes it is BBSE.
    """
    k = labelled.n_classes
    cells, size = _cells([labelled.probs, unlabelled.probs], min(labelled.n, unlabelled.n))
    of_class = np.zeros((size, k))
    np.add.at(of_class, (cells[0], labelled.labels), own)
    n_class = effective_number(own) * of_class.sum(axis=0) / own.sum()
    of_class /= of_class.sum(axis=0)
    # A cell without rows of a class is not impossible for it: half a row in each, for the variance.
    likely = (of_class * n_class + 0.5) / (n_class + 0.5 * size)
    other = row_weights(unlabelled.weights, unlabelled.n)
    seen = np.bincount(cells[1], other, minlength=size) / other.sum()
    n_seen = effective_number(other)
    # The last cell and class 0 follow from the others.
    design = (of_class[:, 1:] - of_class[:, :1])[:-1]
    gap = (seen - of_class[:, 0])[:-1]
    rates = np.full(k, 1 / k)
    for _ in range(20):
        spread = _spread(likely @ rates) / n_seen
        for j in range(k):
            spread += rates[j] ** 2 * _spread(likely[:, j]) / n_class[j]
        inverse = np.linalg.pinv(spread[:-1, :-1], hermitian=True)
        covariance = np.linalg.pinv(design.T @ inverse @ design, hermitian=True)
        found = covariance @ (design.T @ (inverse @ gap))
        rates = np.clip(np.append(1 - found.sum(), found), 0, 1)
        rates /= rates.sum()
    rest = gap - design @ found
    freedom = size - k
    p_value = float(chi2.sf(rest @ inverse @ rest, freedom)) if freedom > 0 else None
    variance = np.append(covariance.sum(), np.diag(covariance))
    return np.append(1 - found.sum(), found), np.sqrt(np.maximum(variance, 0)), p_value


def _spread(share: FloatArray) -> FloatArray:
    return np.asarray(np.diag(share) - np.outer(share, share))


def _cells(probs: Sequence[FloatArray], rows: int) -> tuple[list[IntArray], int]:
    """Cells of the rows of two sets: of two classes up to ten of equal mass, of more the predicted class, in two halves by confidence."""
    if probs[0].shape[1] == 2:
        score = [p[:, 1].astype(np.float64) for p in probs]
        inner = np.linspace(0, 1, int(np.clip(rows // 50, 2, 10)) + 1)[1:-1]
        edges = np.unique(np.quantile(np.concatenate(score), inner))
        cells = [np.searchsorted(edges, s, side="left") for s in score]
    else:
        top = [p.argmax(axis=1) for p in probs]
        sure = [p.max(axis=1) for p in probs]
        every, confidence = np.concatenate(top), np.concatenate(sure)
        middle = np.zeros(probs[0].shape[1])
        for j in np.unique(every):
            middle[j] = np.median(confidence[every == j])
        cells = [2 * t + (s > middle[t]) for t, s in zip(top, sure, strict=True)]
    _, numbers = np.unique(np.concatenate(cells), return_inverse=True)
    n = cells[0].size
    return [numbers[:n], numbers[n:]], int(numbers.max()) + 1

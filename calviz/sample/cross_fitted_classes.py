"""Held-out losses of all classes: the probabilities of each row are recalibrated by a temperature fitted to the other folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np

from calviz.core import blocks
from calviz.core.blocks import BoolArray, FloatArray, IntArray, for_row_blocks, runs
from calviz.core.entry_specs import Redrawn, needs_rows, reweighted_by, takes_weights
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores, automatic_floor, fit_temperature, softmax
from calviz.sample import losses
from calviz.sample.cross_fitted import FEWEST_ROWS, FOLDS, fold_of_rows
from calviz.sample.draws import RowDraws, RowSums, kept_draw, redrawn_labels
from calviz.sample.losses import MeanLoss, negative_log_likelihood, reweighted_losses, squared_error
from calviz.sample.sample import Sample, full_predictions

#: Bits that hold the number of a row: more than `calviz.core.errors.MAX_ROWS` needs.
_ROW_BITS = 30
#: Most bytes of rows that a temperature is fitted to: a single parameter needs no more. A fit to m rows loses about 1 / (2 m) nats.
FIT_BYTES = 1 << 23
#: 1/T stays within this factor of 1, even where the loss has no optimum.
FURTHEST = 1e4
#: Lower limit of the second derivative per row in a Newton step.
LEAST_CURVATURE = 1e-9
#: The first columns of `Folds._columns` are products of two deviations: this many.
_PRODUCTS = 6
#: With logits beyond this, the probabilities are used instead, as sums of such logits would overflow.
LARGEST_LOGIT = 1e30

CrossFittedScore = Literal["nll", "brier"]
LossPart = Literal["calibration", "refinement"]


@dataclass(frozen=True, eq=False)
class HeldOutLoss(MeanLoss):
    """Mean loss of held-out probabilities, or their mean gain; resamples keep the fits.

    Attributes
    ----------
    redraw : callable, optional
        ``redraw(rng, B)`` returns the mean with redrawn labels and new fits, shape (B,); given the `RowDraws` of clustered
        rows as ``rows``, the residuals of each cluster keep or change their sign instead.
    """

    redraw: Callable[..., FloatArray] | None = None

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the probabilities, and everything fitted again; see `Folds.redrawn`."""
        assert self.redraw is not None
        return type(self)(self.redraw(rng, resamples), self.of_rows, params=self.params)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of the losses and their derivatives for labels drawn from the rows' own probabilities, per fold (F,) or in total.

    With z the logits, m their mean under p, and q = p (z - m), the derivative of the loss of a row with respect to 1/T at
    T = 1 is u = m - z_y for the log loss and s = 2 (sum p q - q_y) for the squared error. The deviation of the squared error
    from its expectation is t = 2 (sum p^2 - p_y); that of the log loss is u.

    Attributes
    ----------
    covariance : ndarray, shape (F, 3, 3)
        Covariance of the sums of u, s and t, which count each row by its weight.
    curvature : ndarray, shape (2, F)
        Expected second derivatives of both losses.
    own, mixing : ndarray, shape (2,)
        Expected sums of both losses, and of what mixing with the uniform distribution adds to them.
    """

    covariance: FloatArray
    curvature: FloatArray
    own: FloatArray
    mixing: FloatArray


@dataclass(frozen=True, eq=False)
class Folds:
    """Folds of the rows, and the temperatures fitted without each fold.

    Attributes
    ----------
    data : Predictions
    scores : Scores
        The logits, or log-probabilities.
    fold : ndarray of int, shape (n,)
    inverse_temperature : ndarray, shape (F,)
        1/T of the fit without each fold.
    rows : ndarray, shape (F,)
        Number of rows of each fit; for weighted rows their effective sample size (Kish 1965).
    weights : ndarray, shape (n,), optional
        Weights of the rows, with a mean of 1.
    """

    data: Predictions
    scores: Scores
    fold: IntArray
    inverse_temperature: FloatArray
    rows: FloatArray
    weights: FloatArray | None = None

    def losses(self, rows: slice) -> FloatArray:
        """Log loss and squared error of the held-out probabilities of a block of rows, shape (2, b)."""
        fold, labels = self.fold[rows], self.data.labels[rows]
        block = self.scores.block(rows, self._type)
        block -= block.max(axis=1, keepdims=True)
        block *= self.inverse_temperature[fold].astype(block.dtype)[:, None]
        p = self._mixed(softmax(block), fold)
        own = p[np.arange(labels.size), labels].astype(np.float64)
        return np.stack([-np.log(own), np.einsum("ij,ij->i", p, p) + 1 - 2 * own])

    @property
    def _type(self) -> type:
        """Precision of the computation: the rounding of single numbers averages out over many rows."""
        array = self.data.probs
        # Up to this many probabilities, everything is computed in double precision.
        return np.float64 if array.size <= (1 << 20) else array.dtype.type

    def _mixed(self, p: FloatArray, fold: IntArray) -> FloatArray:
        share = (1 / (self.rows[fold][:, None] + 1)).astype(p.dtype)
        return np.asarray((1 - share) * p + share / p.dtype.type(p.shape[1]))

    def mean(self) -> FloatArray:
        """Mean log loss and mean squared error, shape (2,)."""
        w = self.weights

        def work(rows: slice) -> FloatArray:
            of_rows = self.losses(rows)
            return np.asarray(of_rows.sum(axis=1) if w is None else of_rows @ w[rows])

        return blocks.sum_over_blocks(self.data.probs, work) / self.data.n

    def of_rows(self, score: CrossFittedScore) -> FloatArray:
        """One of the two losses of each row, shape (n,)."""
        out = np.empty(self.data.n)

        def work(rows: slice) -> None:
            out[rows] = self.losses(rows)[int(score == "brier")]

        for_row_blocks(self.data.probs, work)
        return out

    def moments(self) -> Moments:
        """Compute the `Moments` in one pass over the array."""
        size = 8

        def work(rows: slice) -> FloatArray:
            fold, of_fold = self.fold[rows], np.zeros((size, FOLDS))
            columns, whole = self._columns(rows)
            w = None if self.weights is None else self.weights[rows]
            for row, values in enumerate(columns):
                # Six products of deviations, then two second derivatives.
                weight = 1.0 if w is None else w * w if row < _PRODUCTS else w
                of_fold[row] = np.bincount(fold, values * weight, minlength=FOLDS)
            sums = [v.sum() if w is None else (v @ w).sum() for v in whole]
            return np.append(of_fold.ravel(), sums)

        total = blocks.sum_over_blocks(self.data.probs, work)
        uu, us, ut, ss, st, tt, log_curvature, square_curvature = total[:-4].reshape(size, FOLDS)
        covariance = np.array([[uu, us, ut], [us, ss, st], [ut, st, tt]])
        curvature = np.stack([log_curvature, square_curvature])
        return Moments(np.moveaxis(covariance, -1, 0), curvature, total[-4:-2], total[-2:])

    def _columns(self, rows: slice) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """(Co)variances and second derivatives per row, (b,) each; expected losses and effects of mixing, in parts of shape (..., b)."""
        p: FloatArray = self.data.probs[rows].astype(self._type)
        np.maximum(p, 0, out=p)
        p /= p.sum(axis=1, keepdims=True)
        z = self.scores.block(rows, self._type)
        z -= np.einsum("ij,ij->i", p, z)[:, None]
        q = p * z
        square, cross = (np.einsum("ij,ij->i", p, v) for v in (p, q))
        uu, qq = np.einsum("ij,ij->i", q, z), np.einsum("ij,ij->i", q, q)
        ss = 4 * (np.einsum("ij,ij,ij->i", p, q, q) - cross**2)
        st = 4 * (np.einsum("ij,ij,ij->i", p, p, q) - cross * square)
        tt = 4 * (np.einsum("ij,ij,ij->i", p, p, p) - square**2)
        mixed = self._mixed(p, self.fold[rows])
        safe = np.where(p > 0, p, 1)
        whole = (
            -(p * np.log(safe)).T,
            1 - square,
            (p * (np.log(safe) - np.log(mixed))).T,
            np.square(mixed - p).T,
        )
        return (uu, 2 * qq, 2 * cross, ss, st, tt, uu, 2 * qq), whole

    def redrawn(
        self,
        rng: np.random.Generator,
        resamples: int,
        *,
        score: CrossFittedScore,
        part: LossPart,
        rows: RowDraws | None = None,
    ) -> FloatArray:
        """The mean with redrawn labels and new fits, shape (B,).

        Labels that follow the probabilities put 1/T near 1, where both losses are nearly parabolas: a fit is one Newton step
        from the sums of the other folds, and its gain follows from the sums of its own fold. The sums are exact for few rows
        (`EXACT_LOSS_ROWS`), and otherwise normal with their exact covariances. For clustered `rows` they are sums of the
        residuals of the observed labels, which keep or change their sign by cluster.
        """

        def draw() -> tuple[FloatArray, FloatArray]:
            return self._drawn(rng, resamples, rows)

        loss, gain = kept_draw(self, f"labels {resamples}", rng, draw)
        row = int(score == "brier")
        calibration = gain[row] / self.data.n
        return np.asarray(
            calibration if part == "calibration" else loss[row] / self.data.n - calibration
        )

    def _drawn(
        self, rng: np.random.Generator, resamples: int, rows: RowDraws | None
    ) -> tuple[FloatArray, FloatArray]:
        """Sums of both losses, and how much the fits lower them, shape (2, B) each."""
        moments = self.moments()
        if rows is not None:
            residuals = RowSums(self.fold, FOLDS, *self._residuals())
            sums = residuals(rows.signs(rng, resamples)).swapaxes(1, 2)
        elif self.data.n <= losses.EXACT_LOSS_ROWS:
            sums = self._sums_of_labels(rng, resamples)
        else:
            # Positive semi-definite up to rounding.
            size, turn = np.linalg.eigh(moments.covariance)
            root = turn * np.sqrt(np.maximum(size, 0))[:, None, :]
            sums = np.einsum("fij,rfj->irf", root, rng.standard_normal((resamples, FOLDS, 3)))
        u, s, t = sums
        curvature = moments.curvature
        others, slopes = curvature[0].sum() - curvature[0], u.sum(axis=1, keepdims=True) - u
        # A fit to fewer rows is noisier.
        outside = self._outside()
        step = (
            -slopes / np.maximum(others, LEAST_CURVATURE * outside) * np.sqrt(outside / self.rows)
        )
        # Where the rows hardly determine the temperature, the parabola could give a step of any length.
        step = np.clip(step, -1, 1)
        gain = np.stack([-(step * v + step**2 * c / 2).sum(axis=1) for v, c in zip((u, s), curvature, strict=True)])  # fmt: skip
        loss = np.stack([u.sum(axis=1), t.sum(axis=1)]) + moments.own[:, None]
        return loss, gain - moments.mixing[:, None]

    def _of_labels(self, rows: slice) -> tuple[tuple[FloatArray, ...], FloatArray]:
        """u, s and t (`Moments`) of a block of rows for each possible label, and the probabilities, shape (b, K) each."""
        p = self.data.probs[rows].astype(np.float64)
        z = self.scores.block(rows, np.float64)
        z -= np.einsum("ij,ij->i", p, z)[:, None]
        q = p * z
        tables = (
            -z,
            2 * (np.einsum("ij,ij->i", p, q)[:, None] - q),
            2 * (np.einsum("ij,ij->i", p, p)[:, None] - p),
        )
        return tables, p

    def _residuals(self) -> FloatArray:
        """u, s and t of the observed labels, shape (3, n)."""
        out = np.empty((3, self.data.n))

        def work(rows: slice) -> None:
            labels = self.data.labels[rows]
            for column, table in zip(out, self._of_labels(rows)[0], strict=True):
                column[rows] = table[np.arange(labels.size), labels]

        for_row_blocks(self.data.probs, work)
        return out

    def _outside(self) -> FloatArray:
        """Number of rows outside each fold, counted as in `rows`, shape (F,)."""
        if self.weights is None:
            return np.asarray(self.data.n - np.bincount(self.fold, minlength=FOLDS), np.float64)
        w = self.weights
        own, squares = (np.bincount(self.fold, v, minlength=FOLDS) for v in (w, w * w))
        return blocks.effective_numbers_of_sums(w.sum() - own, (w @ w) - squares)

    def _sums_of_labels(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """Sums of u, s and t (`Moments`) for labels drawn one by one, shape (3, B, F)."""
        tables, p = self._of_labels(slice(0, self.data.n))
        labels = redrawn_labels(p, rng, resamples)
        belongs = (self.fold[:, None] == np.arange(FOLDS)).astype(np.float64)
        if self.weights is not None:
            belongs *= self.weights[:, None]
        every = np.arange(self.data.n)
        return np.stack([table[every, labels] @ belongs for table in tables])


@needs_rows
@takes_weights
def folds(sample: Sample) -> Folds:
    """Folds of the rows, and the temperature fitted without each.

    Raises
    ------
    NotAvailable
        For confidence-only data, two classes, fewer rows than `FEWEST_ROWS`, and a single cluster.
    """
    data = full_predictions(sample)
    if data.n_classes == 2:
        raise NotAvailable(
            "not available for two classes: use the cross-fitted parts of the positive class, which then cover both classes."
        )
    if data.n < FEWEST_ROWS:
        raise NotAvailable(f"not available for fewer than {FEWEST_ROWS} rows: it is cross-fitted.")
    weights, clusters = sample.weights, data.clusters
    fold = _fold_of_rows(data, weights) if clusters is None else fold_of_rows(clusters)
    return fit_folds(data, fold, weights)


def fit_folds(data: Predictions, fold: IntArray, weights: FloatArray | None = None) -> Folds:
    """Fit a temperature for each fold to the rows outside it; `fold` and `weights` have shape (n,)."""
    if data.logits is not None and max(data.logits.max(), -data.logits.min()) < LARGEST_LOGIT:
        scores = Scores(data.logits, "logits", "logits")
    else:
        floor = automatic_floor(data.probs, data.labels)
        scores = Scores(data.probs, "probabilities", "logits", floor)
    most_rows = max(1, FIT_BYTES // scores.array[:1].nbytes)

    def fitted(number: int) -> tuple[float, float]:
        """1/T of the fit without a fold, and the number of its rows."""
        outside = fold != number
        if weights is not None:
            outside &= weights > 0  # a row of weight 0 carries no information
        kept = _thinned(outside, most_rows)
        part_scores = Scores(scores.array[kept], scores.given, scores.wanted, scores.floor)
        own = None if weights is None else weights[kept]
        value = 1 / fit_temperature(part_scores, data.labels[kept], weights=own).value
        rows = kept.size if own is None else blocks.effective_number(own)
        return min(max(value, 1 / FURTHEST), FURTHEST), rows

    inverse_temperature, counts = np.array([fitted(f) for f in range(FOLDS)], dtype=np.float64).T
    return Folds(data, scores, fold, inverse_temperature, counts, weights)


def _thinned(chosen: BoolArray, most: int) -> IntArray:
    """Every m-th of the chosen rows, given as a mask of shape (n,), with the smallest m that leaves at most `most` rows."""
    count = int(np.count_nonzero(chosen))
    step = max(1, -(-count // most))
    if step == 1:
        return np.flatnonzero(chosen)
    kept = np.empty(-(-count // step), dtype=np.intp)
    before = done = 0
    for rows in runs(0, chosen.size):
        inside = np.flatnonzero(chosen[rows])
        some = inside[-before % step :: step] + rows.start
        kept[done : done + some.size] = some
        before, done = before + inside.size, done + some.size
    return kept


def _fold_of_rows(data: Predictions, weights: FloatArray | None = None) -> IntArray:
    """Random fold of each row, shape (n,), which does not depend on the order of the rows or of the classes."""

    def others(rows: IntArray) -> tuple[FloatArray, ...]:
        own, top = data.probs[rows, data.labels[rows]], np.empty(rows.size, data.probs.dtype)
        for part in runs(0, rows.size):
            top[part] = data.probs[rows[part]].max(axis=1)
        return (own, top) if weights is None else (own, top, weights[rows])

    order = _in_order(_sums_of_cubes(data), others)
    shuffled = np.tile(np.arange(FOLDS, dtype=np.uint8), -(-data.n // FOLDS))[: data.n]
    np.random.default_rng(0).shuffle(shuffled)
    fold = np.empty(data.n, dtype=np.uint8)
    fold[order] = shuffled
    return fold


def _sums_of_cubes(data: Predictions) -> IntArray:
    """Sum of the cubes of the probabilities of each row, in units of 1e-10, shape (n,) of uint64."""
    cubes = np.empty(data.n, dtype=np.uint64)

    def work(rows: slice) -> None:
        p = data.probs[rows].astype(np.float64)
        # Rounded, as sums in another order differ in their last digits.
        sums = np.rint(np.einsum("ij,ij,ij->i", p, p, p) * 1e10)
        cubes[rows] = np.clip(sums, 0, (1 << 64 - _ROW_BITS) - 1)

    # Small blocks, as they are converted to double precision.
    for_row_blocks(data.probs, work, block_bytes=1 << 17)
    return cubes


def _in_order(first: IntArray, others: Callable[[IntArray], tuple[FloatArray, ...]]) -> IntArray:
    """``np.lexsort((..., others[0], first))`` of keys of shape (n,); calls `others` only for the ties of `first`, and writes into its memory.

    `first` holds uint64 below ``2 ** (64 - _ROW_BITS)``: with the row in its free bits, one array holds both and is sorted in
    place. Rows that tie in all keys stay in their order.
    """
    bits = np.uint64(_ROW_BITS)
    first <<= bits
    for part in runs(0, first.size):
        first[part] |= np.arange(part.start, part.stop, dtype=np.uint64)
    first.sort()
    tied = np.zeros(first.size, dtype=np.bool_)
    for part in runs(1, first.size):
        before = slice(part.start - 1, part.stop - 1)
        same = first[part] >> bits == first[before] >> bits
        tied[before] |= same
        tied[part] |= same
    keys = first[tied] >> bits
    first &= np.uint64((1 << _ROW_BITS) - 1)
    order = first.view(np.int64)
    rows = order[tied]
    order[tied] = rows[np.lexsort([rows, *reversed(others(rows)), keys])]
    return order


def _redrawn(_: Sample, view: HeldOutLoss) -> Redrawn:
    """See `Reweighting`."""

    def draw(rng: np.random.Generator, rows: RowDraws, size: int) -> HeldOutLoss:
        if rows.cluster is None:
            return view.under_calibration(rng, size)
        assert view.redraw is not None
        mean = view.redraw(rng, size, rows=rows)
        return HeldOutLoss(mean, view.of_rows, params=view.params)

    return draw


@needs_rows
@reweighted_by(reweighted_losses, redrawn=_redrawn)
def held_out(sample: Sample, *, score: CrossFittedScore, part: LossPart) -> HeldOutLoss:
    """Mean loss of the held-out probabilities of all classes, or how much lower it is than that of the original ones.

    Parameters
    ----------
    sample : Sample
    score : {"nll", "brier"}
    part : {"refinement", "calibration"}
        ``refinement``: the loss itself. ``calibration``: the loss of the original probabilities minus it.

    Raises
    ------
    NotAvailable
        As for `folds`.
    """
    fitted = sample.view(folds)
    view: MeanLoss = sample.view(negative_log_likelihood if score == "nll" else squared_error)
    # Both losses share one pass over the rows.
    held_out_mean = sample.view(_means)[int(score == "brier")]
    of_rows = partial(fitted.of_rows, score)
    redraw = partial(fitted.redrawn, score=score, part=part)
    if part == "refinement":
        return HeldOutLoss(held_out_mean, of_rows, redraw=redraw)
    return HeldOutLoss(
        np.asarray(view.mean - held_out_mean), lambda: view.of_rows() - of_rows(), redraw=redraw
    )


@takes_weights
def _means(sample: Sample) -> FloatArray:
    fitted: Folds = sample.view(folds)
    return fitted.mean()

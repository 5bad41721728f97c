"""Held-out recalibrated probabilities: those of each row come from a spline, or of all classes a temperature, fitted to the other folds."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.special import expit

from calviz.core import blocks, entry_specs
from calviz.core.blocks import BoolArray, FloatArray, IntArray, for_row_blocks, quotient, runs
from calviz.core.curve_fits import Basis, penalised_logistic
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents, tied_scores
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores, automatic_floor, fit_temperature, softmax
from calviz.sample import draws, losses
from calviz.sample.losses import MeanLoss, losses_of, negative_log_likelihood, squared_error
from calviz.sample.sample import Sample, full_predictions
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps, distance_from_ends

#: Number of folds; with fewer rows than the second number, folds are too small.
FOLDS, FEWEST_ROWS = 5, 20
#: Neighbouring scores share a cell: this many intervals by rank, crossed with as many by log-odds, so that no cell is wide.
_CELLS = 128
#: Knots of the spline, and the strength of the penalty on its squared second derivative, with the log-odds in standard deviations.
#: Fixed rather than chosen from the labels, so that redrawn labels are treated like the observed ones.
KNOTS, STRENGTH = 8, 1.0
#: Weight of the scores themselves in a fit, in rows, as in the recalibrator "logit-spline".
OWN_ROWS = 5.0
#: Newton decrement (in nats) at which a fit has converged, and a fit to redrawn hits: far below the effect of one more row.
_FINE, _ROUGH = 1e-9, 1e-3
#: Most Newton steps of a fit to redrawn hits.
_STEPS = 8
#: Most that a fit that has not converged changes a log-odds.
_FAR = 3.0
#: Resamples fitted together.
_TOGETHER = 128


class Losses(NamedTuple):
    """Mean losses per cell of hits and misses, log loss and squared error, shape (C,) each."""

    log_hit: FloatArray
    log_miss: FloatArray
    square_hit: FloatArray
    square_miss: FloatArray


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Rows and hits per cell (of neighbouring scores) and fold; a leading axis of resamples is allowed on both.

    Attributes
    ----------
    z : ndarray, shape (C,)
        Mean log-odds of the scores of each cell.
    x : ndarray, shape (C, D)
        Basis functions of the spline at `z`.
    penalty : ndarray, shape (D,)
    rows, hits, score_sum : ndarray, shape (..., C, F)
        Number of rows and of hits, and sum of the scores.
    losses : Losses
        Losses of the scores themselves, as observed or, for redrawn hits, as expected.
    expected : Losses
        The expected losses of the scores themselves.
    theta : ndarray, shape (..., F, D), optional
        Coefficients of the basis functions in the fit without each fold; fitted when first needed.
    params : mapping
    place : ndarray of int, shape (n,), optional
        For weighted or clustered rows: the index of each row's cell and fold. Weighted rows count by their weights.
    """

    z: FloatArray
    x: FloatArray
    penalty: FloatArray
    rows: FloatArray
    hits: FloatArray
    score_sum: FloatArray
    losses: Losses
    expected: Losses
    theta: FloatArray | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    place: IntArray | None = None

    @property
    def DRAWN(self) -> tuple[str, ...]:  # noqa: N802  # as in other views
        """Fields that differ between resamples: redrawn hits leave the rows as they are."""
        return ("hits",) if self.rows.ndim == 2 else ("rows", "hits", "score_sum")

    @property
    def mean_score(self) -> FloatArray:
        """Mean score per cell and fold, shape (..., C, F); 0 without rows."""
        return quotient(self.score_sum, self.rows, otherwise=0.0)

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return np.asarray(self.rows.sum(axis=(-2, -1)))

    @draws.once_per_view
    def weights(self) -> FloatArray:
        """Coefficients of the basis functions in the fit without each fold, shape (..., F, D)."""
        if self.theta is not None:
            return self.theta
        # Each fit uses the rows outside its fold; the scores themselves count as a few extra rows.
        weight, target = (v.sum(axis=-1, keepdims=True) - v for v in (self.rows, self.hits))
        own = weight * (OWN_ROWS / np.maximum(weight.sum(axis=-2, keepdims=True), 1))
        weight, target = weight + own, target + own * expit(self.z)[:, None]
        if target.ndim == 2:
            return self._fits(weight, target, _FINE)
        theta, settled = self._calibrated_fits(weight, target)
        far = np.flatnonzero(~settled & self._possible())
        if far.size:
            # All fits of all these resamples are columns of one problem.
            columns = np.moveaxis(target[far], 1, 0).reshape(self.z.size, -1)
            fits = self._fits(np.tile(weight, far.size), columns, _ROUGH)
            theta[far] = fits.reshape(far.size, FOLDS, -1)
        return theta

    def _fits(self, weight: FloatArray, target: FloatArray, enough: float) -> FloatArray:
        """Coefficients, shape (M, D), of M fits to rows and hits per cell, shape (C, M) each."""
        start = np.zeros((weight.shape[1], self.penalty.size))
        return penalised_logistic(self.x, self.z, weight, target, self.penalty, start, enough)

    def _calibrated_fits(
        self, weight: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Coefficients for redrawn hits (R, C, F), all fits at once, and which resamples have converged, shape (R,).

        The rows are the same in all resamples, and the coefficients are near 0: all Newton steps use the Hessian at 0. Those of
        resamples that have not converged are the first step, which moves no log-odds by more than `_FAR`: the curvature there may be
        that of a few confident rows.
        """
        p = expit(self.z)
        curvature = weight.T * (p * (1 - p))
        inverse = np.linalg.inv((self.x.T * curvature[:, None]) @ self.x + np.diag(self.penalty))
        theta = np.zeros((target.shape[0], FOLDS, self.penalty.size))
        first: FloatArray | None = None
        share = np.broadcast_to(p[:, None], target.shape[1:])
        settled = np.zeros(target.shape[0], dtype=np.bool_)
        for _ in range(_STEPS):
            gradient = np.swapaxes(target - weight * share, -2, -1) @ self.x
            gradient -= self.penalty * theta
            step = np.einsum("fij,rfj->rfi", inverse, gradient)
            theta += step
            first = theta.copy() if first is None else first
            settled = np.vecdot(gradient, step).max(axis=-1) < _ROUGH
            if settled.all():
                break
            share = expit(self.z[:, None] + self.x @ np.swapaxes(theta, -2, -1))
        if first is not None:
            step = first[~settled]
            moved = np.abs(self.x @ np.swapaxes(step, -2, -1)).max(axis=-2, initial=0.0)
            theta[~settled] = step * np.minimum(1.0, _FAR / np.maximum(moved, _FAR))[..., None]
        return theta, settled

    def _possible(self) -> BoolArray:
        """Which resamples have hits from 0 to the number of rows in all cells, shape (R,).

        Signs of clusters' residuals give others, to which a curve may fit the better the farther it goes.
        """
        slack = 1e-9 * self.rows
        inside = (self.hits >= -slack) & (self.hits <= self.rows + slack)
        return np.asarray(inside.all(axis=(-2, -1)))

    @draws.once_per_view
    def shift(self) -> FloatArray:
        """Correction that the fit without the fold adds to the log-odds of each cell, shape (..., C, F)."""
        return np.asarray(self.x @ np.swapaxes(self.weights(), -2, -1))

    @draws.once_per_view
    def recalibrated(self) -> FloatArray:
        """The recalibrated probabilities, held out, shape (..., C, F)."""
        return np.asarray(expit(self.z[:, None] + self.shift()))

    def of_scores(self, hit: FloatArray, miss: FloatArray) -> FloatArray:
        """Mean over the rows, shape (...), of losses per cell, shape (C,) each."""
        hits = self.hits.sum(axis=-1)
        return np.asarray((hits @ hit + (self.rows.sum(axis=-1) - hits) @ miss) / self.n)

    def of_cells(self, hit: FloatArray, miss: FloatArray) -> FloatArray:
        """Mean over the rows, shape (...), of losses per cell and fold, shape (..., C, F) each."""
        total = self.hits * hit + (self.rows - self.hits) * miss
        return np.asarray(total.sum(axis=(-2, -1)) / self.n)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; each keeps its cell, its fold and its held-out probability."""
        cells = np.stack([self.rows - self.hits, self.hits]).reshape(2, -1)
        used = np.flatnonzero(cells.ravel())
        share = cells.ravel()[used] / cells.sum()

        def draw() -> FloatArray:
            out = np.zeros((resamples, cells.size))
            out[:, used] = rng.multinomial(round(float(self.n)), share, size=resamples)
            return out.reshape(resamples, 2, *self.rows.shape)

        drawn = draws.kept_draw(self, f"bootstrap {resamples}", rng, draw)
        return self.resampled(drawn.sum(axis=1), drawn[:, 1])

    def resampled(self, rows: FloatArray, hits: FloatArray) -> Self:
        """Replace the rows and hits per cell and fold, shape (..., C, F) each, and keep the fits."""
        score_sum, theta = rows * self.mean_score, self.weights()
        return replace(self, rows=rows, hits=hits, score_sum=score_sum, theta=theta)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores, and everything fitted again."""
        mean = self.mean_score
        trials = np.rint(self.rows).astype(np.int64)

        def draw() -> FloatArray:
            # Cells are narrow, so that all scores of a cell are nearly equal.
            return rng.binomial(trials, np.clip(mean, 0, 1), (resamples, *trials.shape)) * 1.0

        hits = draws.kept_draw(self, f"calibrated {resamples}", rng, draw)
        return replace(self, hits=hits, losses=self.expected)

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks, so that their fits need little memory at a time."""
        for start in range(0, self.hits.shape[0], _TOGETHER):
            some = slice(start, start + _TOGETHER)
            # Redrawn hits leave the rows as they are.
            rows, score_sum = (v if v.ndim == 2 else v[some] for v in (self.rows, self.score_sum))
            yield replace(self, rows=rows, hits=self.hits[some], score_sum=score_sum)


def _reweighted(sample: Sample, view: CrossFitted) -> entry_specs.Reweighted:
    """See `Reweighting`."""
    assert view.place is not None
    size = view.rows.size
    sums_of = draws.RowSums(view.place + size * sample.scored.hit.astype(np.intp), 2 * size, None)

    def resampled(weights: draws.RowWeights) -> Callable[[float | None], CrossFitted]:
        misses, hits = sums_of(weights)[0].T.reshape(-1, 2, *view.rows.shape).swapaxes(0, 1)
        drawn = view.resampled(misses + hits, hits)
        return lambda _: drawn

    return resampled


def _redrawn(sample: Sample, view: CrossFitted) -> entry_specs.Redrawn:
    """See `Reweighting`: everything is fitted again."""
    assert view.place is not None
    hits_of = draws.HitSums(sample.scored, view.place, view.rows.size)

    def draw(rng: np.random.Generator, rows: Any, size: int) -> CrossFitted:
        hits = hits_of(rng, rows, size).T.reshape(size, *view.rows.shape)
        return replace(view, hits=np.ascontiguousarray(hits), losses=view.expected)

    return draw


@entry_specs.makes_steps
@entry_specs.needs_rows
@entry_specs.reweighted_by(_reweighted, redrawn=_redrawn)
def cross_fitted(sample: Sample) -> CrossFitted:
    """Cells and folds of the sample's own reduction.

    Rows are assigned to the folds in turn, in the order of their scores; hits among tied scores are assigned at random, as
    folds with the same noise would make a fit look better than it is. Weighted rows count by their weights, which have a
    mean of 1, in every sum and fit. Clusters stay whole: a fit that has seen some rows of a cluster would know the
    noise that its other rows share.

    Raises
    ------
    NotAvailable
        If there are fewer rows than `FEWEST_ROWS`, or a single cluster.
    """
    if sample.data.n < FEWEST_ROWS:
        raise NotAvailable(f"not available for fewer than {FEWEST_ROWS} rows: it is cross-fitted.")
    weights, clusters = sample.weights, sample.data.clusters
    if weights is None and clusters is None:
        return make_cross_fitted(sample.view(steps))
    fold = None if clusters is None else fold_of_rows(clusters)
    return _of_folds(sample.scored, weights, sample.view(steps), fold)


def fold_of_rows(clusters: blocks.Factor) -> IntArray:
    """Fold, from 0 to `FOLDS` - 1, of each row, shape (n,): clusters stay whole, and folds have (nearly) equal numbers of rows.

    Clusters are assigned from the largest to the smallest, each to the fold with the fewest rows, as in scikit-learn's
    ``GroupKFold``; clusters of equal size come in a random order that does not depend on the order of the rows.

    Raises
    ------
    NotAvailable
        For a single cluster.
    """
    sizes = np.bincount(clusters.codes, minlength=len(clusters.levels))
    if np.count_nonzero(sizes) < 2:
        raise NotAvailable(
            "not available for a single cluster: it is cross-fitted, and all rows of a cluster belong to the same fold."
        )
    # Levels are in the order of their first rows, which must not matter.
    named = np.array(sorted(range(sizes.size), key=clusters.levels.__getitem__), dtype=np.intp)
    order = named[np.random.default_rng(0).permutation(named.size)]
    order = order[np.argsort(-sizes[order], kind="stable")]
    loads = [(0, fold) for fold in range(FOLDS)]
    fold_of = np.empty(sizes.size, dtype=np.intp)
    for cluster, size in zip(order.tolist(), sizes[order].tolist(), strict=True):
        rows, fold = loads[0]
        fold_of[cluster] = fold
        heapq.heapreplace(loads, (rows + size, fold))
    return fold_of[clusters.codes]


#: ``split(part, start)`` yields rows and hits of some steps for each fold, shape (G,) each; `start` counts the rows before each step.
FoldSplit = Callable[[Steps, FloatArray], Iterable[tuple[FloatArray, FloatArray]]]


def make_cross_fitted(
    view: Steps, split: FoldSplit | None = None, cells: list[IntArray] | None = None
) -> CrossFitted:
    """Sum the steps of a sample over cells and folds.

    Parameters
    ----------
    view : Steps
    split : callable, optional
        Splits steps between folds (see `FoldSplit`). If left out, whole rows are assigned in turn, tied ones at random.
    cells : list, optional
        Receives the cell of each step, shape (G,) for each block of steps.
    """
    if split is None:
        # A fixed seed: the folds are the same whatever the order of the rows.
        split = partial(_split_into_folds, rng=np.random.default_rng(0))
    n = float(view.n)
    # Scores are clipped to [f, 1 - f], where f is half of `distance_from_ends`, at most this.
    least = max(min(distance_from_ends(view) / 2, 0.01), 1e-300)
    ends = [_log_odds(part.score[[0, -1]], least) for part in view.blocks()]
    lowest, spread = ends[0][0], max(ends[-1][1] - ends[0][0], 1e-300)
    size = 2 * _CELLS + 2
    folds = np.zeros((3, FOLDS, size))
    sums = np.zeros((10, size))
    upto, cell, last = 0.0, -1, -1
    for part in view.blocks():
        z = _log_odds(part.score, least)
        after = np.cumsum(part.count) + upto
        before = after - part.count
        upto = float(after[-1])
        # By rank and by value.
        key = ((after - part.count / 2) * (_CELLS / n)).astype(np.intp)
        key *= _CELLS + 2
        key += ((z - lowest) * (_CELLS / spread)).astype(np.intp)
        cell_of_step = cell + np.cumsum(np.append(key[0] != last, key[1:] != key[:-1]))
        cell, last = int(cell_of_step[-1]), int(key[-1])
        if cells is not None:
            cells.append(cell_of_step)
        del after, key
        for f, (rows, hits) in enumerate(split(part, before)):
            for total, column in zip(folds, (rows, hits, rows * part.score), strict=True):
                total[f] += np.bincount(cell_of_step, column, minlength=size)
        for total, column in zip(sums, _columns(part, z), strict=True):
            total += np.bincount(cell_of_step, column, minlength=size)
    rows, hits, score_sum = (np.ascontiguousarray(v[:, : cell + 1].T) for v in folds)
    count, z_sum, *weighted = sums[:, : cell + 1]
    z = z_sum / count
    basis = Basis.of(z, count, KNOTS)
    expected = Losses(*_means(weighted[1::2], expit(z), count))
    hits_of_cell = hits.sum(axis=1)
    misses_of_cell = count - hits_of_cell
    observed = Losses(
        *(
            quotient(total, rows_of_cell, otherwise=usual)
            for total, rows_of_cell, usual in zip(
                weighted[::2], (hits_of_cell, misses_of_cell) * 2, expected, strict=True
            )
        )
    )
    penalty = STRENGTH * basis.bent + 1e-6
    return CrossFitted(z, basis.at(z), penalty, rows, hits, score_sum, observed, expected)


def _of_folds(
    events: BinaryEvents, weights: FloatArray | None, view: Steps, fold: IntArray | None = None
) -> CrossFitted:
    """Cells and folds of rows with weights, shape (n,), or with given folds, shape (n,)."""
    if weights is None:
        weights = np.ones(events.n)
    rows = np.flatnonzero(weights)
    # Sorted by all columns, so that the order of the input does not matter; rows with tied scores are then shuffled.
    rows = rows[np.lexsort([weights[rows], events.hit[rows], events.score[rows]])]
    step = np.cumsum(np.diff(tied_scores(events.score[rows]), prepend=-1) != 0) - 1
    if fold is None:
        order = np.lexsort([np.random.default_rng(0).random(rows.size), step])
        rows, fold = rows[order], np.arange(rows.size) % FOLDS
    else:
        fold = fold[rows]
    fold_and_step = fold * view.size + step
    sums = [
        np.bincount(fold_and_step, w, minlength=FOLDS * view.size).reshape(FOLDS, -1) * 1.0
        for w in (weights[rows], weights[rows] * events.hit[rows])
    ]
    cells: list[IntArray] = []
    fitted = make_cross_fitted(view, lambda *_: zip(*sums, strict=True), cells)
    place = np.zeros(events.n, dtype=np.intp)
    place[rows] = np.concatenate(cells)[step] * FOLDS + fold
    return replace(fitted, place=place)


def _columns(part: Steps, z: FloatArray) -> Iterator[FloatArray]:
    """Yield the columns that are summed over the steps of a cell; see `make_cross_fitted`."""
    s, hits, misses = part.score, part.hits, part.count - part.hits
    yield part.count
    yield part.count * z
    log_hit, log_miss = losses_of(s)
    of_hits, of_misses = part.count * s, part.count * (1 - s)
    for loss_of_hit, loss_of_miss in ((log_hit, log_miss), ((1 - s) ** 2, s**2)):
        yield hits * loss_of_hit
        yield of_hits * loss_of_hit
        yield misses * loss_of_miss
        yield of_misses * loss_of_miss


def _means(totals: list[FloatArray], score: FloatArray, count: FloatArray) -> Iterator[FloatArray]:
    hits, misses = count * score, count * (1 - score)
    for total, rows in zip(totals, (hits, misses) * 2, strict=True):
        yield quotient(total, rows, otherwise=0.0)


def _split_into_folds(
    part: Steps, start: FloatArray, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield rows and hits of each step for each fold, shape (G,) each; `start` counts the rows before each step."""
    first, count = np.rint(start).astype(np.int64), np.rint(part.count).astype(np.int64)
    left = np.rint(part.hits).astype(np.int64)
    rest = count.copy()
    for f in range(FOLDS):
        # How many of the numbers first, ..., first + count - 1 equal f modulo the number of folds.
        own = (first + count - 1 - f) // FOLDS - (first - 1 - f) // FOLDS
        drawn: IntArray = np.where(left == rest, own, 0)
        mixed = np.flatnonzero((left > 0) & (left < rest))
        drawn[mixed] = rng.hypergeometric(left[mixed], (rest - left)[mixed], own[mixed])
        yield own * 1.0, drawn * 1.0
        left, rest = left - drawn, rest - own


def _log_odds(score: FloatArray, least: float) -> FloatArray:
    return np.asarray(np.log(np.maximum(score, least)) - np.log(np.maximum(1 - score, least)))


# ---- All classes: a temperature per fold


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
        rows: draws.RowDraws | None = None,
    ) -> FloatArray:
        """The mean with redrawn labels and new fits, shape (B,).

        Labels that follow the probabilities put 1/T near 1, where both losses are nearly parabolas: a fit is one Newton step
        from the sums of the other folds, and its gain follows from the sums of its own fold. The sums are exact for few rows
        (`EXACT_LOSS_ROWS`), and otherwise normal with their exact covariances. For clustered `rows` they are sums of the
        residuals of the observed labels, which keep or change their sign by cluster.
        """

        def draw() -> tuple[FloatArray, FloatArray]:
            return self._drawn(rng, resamples, rows)

        loss, gain = draws.kept_draw(self, f"labels {resamples}", rng, draw)
        row = int(score == "brier")
        calibration = gain[row] / self.data.n
        return np.asarray(
            calibration if part == "calibration" else loss[row] / self.data.n - calibration
        )

    def _drawn(
        self, rng: np.random.Generator, resamples: int, rows: draws.RowDraws | None
    ) -> tuple[FloatArray, FloatArray]:
        """Sums of both losses, and how much the fits lower them, shape (2, B) each."""
        moments = self.moments()
        if rows is not None:
            residuals = draws.RowSums(self.fold, FOLDS, *self._residuals())
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
        labels = draws.redrawn_labels(p, rng, resamples)
        belongs = (self.fold[:, None] == np.arange(FOLDS)).astype(np.float64)
        if self.weights is not None:
            belongs *= self.weights[:, None]
        every = np.arange(self.data.n)
        return np.stack([table[every, labels] @ belongs for table in tables])


@entry_specs.needs_rows
@entry_specs.takes_weights
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


def _refitted(_: Sample, view: HeldOutLoss) -> entry_specs.Redrawn:
    """See `Reweighting`."""

    def draw(rng: np.random.Generator, rows: draws.RowDraws, size: int) -> HeldOutLoss:
        if rows.cluster is None:
            return view.under_calibration(rng, size)
        assert view.redraw is not None
        return HeldOutLoss(view.redraw(rng, size, rows=rows), view.of_rows, params=view.params)

    return draw


@entry_specs.needs_rows
@entry_specs.reweighted_by(losses.reweighted_losses, redrawn=_refitted)
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
    held_out_mean = sample.view(_mean_parts)[int(score == "brier")]
    of_rows = partial(fitted.of_rows, score)
    redraw = partial(fitted.redrawn, score=score, part=part)
    if part == "refinement":
        return HeldOutLoss(held_out_mean, of_rows, redraw=redraw)
    return HeldOutLoss(
        np.asarray(view.mean - held_out_mean), lambda: view.of_rows() - of_rows(), redraw=redraw
    )


@entry_specs.takes_weights
def _mean_parts(sample: Sample) -> FloatArray:
    return sample.view(folds).mean()

"""Held-out recalibrated probabilities: those of each row come from a spline that was fitted to the other folds."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit

from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, quotient
from calviz.core.curve_fits import Basis, penalised_logistic
from calviz.core.entry_specs import Redrawn, Reweighted, makes_steps, needs_rows, reweighted_by
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents, tied_scores
from calviz.sample.draws import HitSums, RowSums, RowWeights, kept_draw, once_per_view
from calviz.sample.losses import losses_of
from calviz.sample.sample import Sample
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

    @once_per_view
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

    @once_per_view
    def shift(self) -> FloatArray:
        """Correction that the fit without the fold adds to the log-odds of each cell, shape (..., C, F)."""
        return np.asarray(self.x @ np.swapaxes(self.weights(), -2, -1))

    @once_per_view
    def recalibrated(self) -> FloatArray:
        """The recalibrated probabilities, held out, shape (..., C, F)."""
        return np.asarray(expit(self.z[:, None] + self.shift()))

    def of_scores(self, hit: FloatArray, miss: FloatArray) -> FloatArray:
        """Mean over the rows, shape (...), of losses per cell, shape (C,) each."""
        hits = self.hits.sum(axis=-1)
        misses = self.rows.sum(axis=-1) - hits
        return np.asarray((hits @ hit + misses @ miss) / self.n)

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

        drawn = kept_draw(self, f"bootstrap {resamples}", rng, draw)
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

        hits = kept_draw(self, f"calibrated {resamples}", rng, draw)
        return replace(self, hits=hits, losses=self.expected)

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks, so that their fits need little memory at a time."""
        for start in range(0, self.hits.shape[0], _TOGETHER):
            some = slice(start, start + _TOGETHER)
            # Redrawn hits leave the rows as they are.
            rows, score_sum = (v if v.ndim == 2 else v[some] for v in (self.rows, self.score_sum))
            yield replace(self, rows=rows, hits=self.hits[some], score_sum=score_sum)


def _reweighted(sample: Sample, view: CrossFitted) -> Reweighted:
    """See `Reweighting`."""
    assert view.place is not None
    size = view.rows.size
    sums_of = RowSums(view.place + size * sample.scored.hit.astype(np.intp), 2 * size, None)

    def resampled(weights: RowWeights) -> Callable[[float | None], CrossFitted]:
        misses, hits = sums_of(weights)[0].T.reshape(-1, 2, *view.rows.shape).swapaxes(0, 1)
        drawn = view.resampled(misses + hits, hits)
        return lambda _: drawn

    return resampled


def _redrawn(sample: Sample, view: CrossFitted) -> Redrawn:
    """See `Reweighting`: everything is fitted again."""
    assert view.place is not None
    hits_of = HitSums(sample.scored, view.place, view.rows.size)

    def draw(rng: np.random.Generator, rows: Any, size: int) -> CrossFitted:
        hits = hits_of(rng, rows, size).T.reshape(size, *view.rows.shape)
        return replace(view, hits=np.ascontiguousarray(hits), losses=view.expected)

    return draw


@makes_steps
@needs_rows
@reweighted_by(_reweighted, redrawn=_redrawn)
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


def fold_of_rows(clusters: Factor) -> IntArray:
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

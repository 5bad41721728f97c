"""Means of a loss per row, steps with the log losses of their hits and misses, and the rows most worth looking at."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from calviz.core import blocks, p_values
from calviz.core.blocks import BLOCK_BYTES, FloatArray, IntArray, for_row_blocks
from calviz.core.entry_specs import Interval, Redrawn, Reweighted, reweighted_by
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Predictions
from calviz.core.probabilities import LOG_FLOOR, raise_to, row_sums, smallest_normal
from calviz.core.words import counted, decimal, percent
from calviz.sample import error_bars, slice_tests
from calviz.sample.draws import RowSums, RowWeights, once_per_view
from calviz.sample.sample import Sample, chosen_bins, full_predictions
from calviz.sample.step_views import StepsWithParams, over_steps, steps
from calviz.sample.steps import Steps

#: Up to this many rows, rows and labels are drawn one by one, which is exact.
EXACT_LOSS_ROWS = 500
#: When rows are resampled, this many of the largest losses are drawn one by one: they make up the tail of the mean.
_LARGEST_LOSSES = 64
#: Below this, a probability computed from logits has lost digits: its loss is computed from the logits.
_ROUNDED = 1e-30
#: Upper limit of a loss, so that sums of squares are finite for any logits.
_LARGEST = 1e100
_COUNTS_AS = f"counts as {LOG_FLOOR:.2g}, a loss of {-math.log(LOG_FLOOR):.0f}"
#: Takes probabilities, shape (rows, K), to the losses for each possible label, shape (rows, K).
LossPerClass = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class MeanLoss:
    """Mean of a loss over the rows, and what is needed to resample it.

    Attributes
    ----------
    mean : ndarray, shape (...)
        Mean loss; a leading axis of resamples is allowed.
    of_rows : callable
        Returns the loss of each row, shape (n,), in the type of the probabilities; only resampling needs it.
    random_labels : RandomLabels, optional
        The mean loss under calibration, where it is known.
    counts : ndarray, shape (n,), optional
        Number of rows that each loss stands for, for the cells of a profile.
    params, details : mapping
    small : int
        Of a log loss: the number of rows that give the true class a probability below `LOG_FLOOR`, which counts as it unless there are logits.
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("mean",)

    mean: FloatArray
    of_rows: Callable[[], FloatArray]
    random_labels: RandomLabels | None = None
    counts: FloatArray | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, float] = field(default_factory=dict)
    small: int = 0

    @cached_property
    def losses(self) -> FloatArray:
        """Loss of each row, shape (n,)."""
        return self.of_rows()

    @property
    def shown(self) -> float:
        """The mean as tables show it: the Brier score of two classes is that of one column."""
        return self.details.get("one_column", float(self.mean))

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Means of samples drawn with replacement.

        Exact for few rows (`EXACT_LOSS_ROWS`). Otherwise the largest losses, which make up a heavy tail such as that of the negative
        log-likelihood, are drawn one by one, and the others together: as a shifted gamma (Pearson III) variable with their mean,
        variance and skewness.
        """
        n = self.losses.shape[0]
        if self.counts is None and n <= EXACT_LOSS_ROWS:
            mean = self.losses[rng.integers(n, size=(resamples, n))].mean(axis=1, dtype=np.float64)
            return type(self)(mean, self.of_rows, params=self.params)
        last = max(n - _LARGEST_LOSSES, 1)
        order = np.argpartition(self.losses, last - 1)[::-1]
        losses = self.losses[order].astype(np.float64)
        counts = np.ones(n) if self.counts is None else self.counts[order]
        # A cell of a profile that stands for more rows is one of the others.
        few = min(int((np.cumsum(counts[:_LARGEST_LOSSES]) <= _LARGEST_LOSSES).sum()), n - 1)
        largest = np.repeat(losses[:few], counts[:few].astype(np.intp))
        losses, rows = losses[few:], float(counts[few:].sum())
        share, total = counts[few:] / rows, rows + largest.size
        usual = float(share @ losses)
        off = losses - usual
        sd = math.sqrt(share @ np.square(off))
        skewness = float(share @ (np.square(off) * off)) / (sd**3 or 1.0)
        many = rng.binomial(int(total), largest.size / total, size=resamples)
        drawn, ends = rng.integers(max(largest.size, 1), size=many.sum()), np.cumsum(many)
        noise = p_values.draws(rng, 0.0, 1.0, skewness / math.sqrt(rows), resamples)
        sums = (total - many) * usual + np.sqrt(total - many) * sd * noise
        upto = np.append(0.0, np.cumsum(largest[drawn]))
        sums += upto[ends] - upto[ends - many]
        return type(self)(sums / total, self.of_rows, params=self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Means with the labels redrawn from the rows' own probabilities (see `RandomLabels`)."""
        if self.random_labels is None:
            raise NotAvailable("not available: the probabilities of the rows are not known.")
        return type(self)(self.random_labels.draw(rng, resamples), self.of_rows, params=self.params)


class Cumulants(NamedTuple):
    """Mean, variance and third cumulant of the mean loss with random labels."""

    mean: float
    variance: float
    third: float


@dataclass(frozen=True, eq=False)
class RandomLabels:
    """The mean loss if every label were drawn from the probabilities of its own row.

    `weights`, shape (n,), are the weights of the rows, with a mean of 1 (all 1 without weights); if `counted`, they are the numbers
    of rows that each row stands for.
    """

    probs: FloatArray
    loss: LossPerClass
    weights: FloatArray
    counted: bool = False

    def draw(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """Draws of the mean loss, shape (B,).

        Exact for few rows (`EXACT_LOSS_ROWS`). Otherwise a shifted gamma (Pearson III) variable with the exact
        mean, variance and skewness, which are sums over the rows.
        """
        if self.probs.shape[0] <= EXACT_LOSS_ROWS and not self.counted:
            return self.draw_labels(rng, resamples)
        return p_values.draws(rng, *self.cumulants, resamples)

    def draw_labels(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """Draws of the mean loss from labels drawn one by one, shape (B,)."""
        total = np.zeros(resamples)
        for rows in blocks.row_blocks(self.probs):
            block = self.probs[rows].astype(np.float64)
            all_losses = self.loss(block) * self.weights[rows, None]
            for losses, upto in zip(all_losses, np.cumsum(_weights(block), 1), strict=True):
                # The last sum is 1 up to rounding; the draw must stay inside it.
                total += losses[np.searchsorted(upto[:-1], rng.random(resamples), side="right")]
        total /= self.probs.shape[0]
        return total

    @cached_property
    def cumulants(self) -> Cumulants:
        """Cumulants of the mean loss, from one pass over the array when they are first needed."""
        parts: list[tuple[float, ...]] = []

        def work(rows: slice) -> None:
            # In the precision of the array: its rounding is far below the noise of the draws.
            block = np.ascontiguousarray(self.probs[rows])
            losses = self.loss(block)
            weights = _weights(block)
            mean = np.einsum("ij,ij->i", weights, losses)
            # Central moments about the row's mean: differences of raw moments would cancel.
            losses -= mean[:, None]
            weights *= losses
            variance = np.einsum("ij,ij->i", weights, losses)
            weights *= losses
            third = np.einsum("ij,ij->i", weights, losses)
            w = self.weights[rows]
            again = 1.0 if self.counted else w
            mean, variance, third = mean * w, variance * w * again, third * w * again**2
            parts.append(tuple(float(c.sum(dtype=np.float64)) for c in (mean, variance, third)))

        for_row_blocks(self.probs, work, block_bytes=1 << 17)
        n = float(self.weights.sum()) if self.counted else self.probs.shape[0]
        total = [math.fsum(part) for part in zip(*parts, strict=True)]
        return Cumulants(*(value / n**power for power, value in enumerate(total, 1)))

    def expected(self) -> FloatArray:
        """Expected loss of each row, shape (n,)."""
        out = np.empty(self.probs.shape[0])

        def work(rows: slice) -> None:
            block = self.probs[rows].astype(np.float64)
            out[rows] = np.einsum("ij,ij->i", _weights(block), self.loss(block))

        for_row_blocks(self.probs, work)
        return out


def reweighted_losses(_: Sample, view: MeanLoss) -> Reweighted:
    """See `Reweighting`."""
    losses = view.losses.astype(np.float64)
    sums_of = RowSums(np.zeros(losses.size, dtype=np.intp), 1, losses, None)

    def reweighted(weights: RowWeights) -> Callable[[float | None], MeanLoss]:
        total, rows = sums_of(weights)[:, 0]
        mean = MeanLoss(total / rows, view.of_rows)
        return lambda _: mean

    return reweighted


def _redrawn(_: Sample, view: MeanLoss) -> Redrawn:
    """See `Reweighting`; with clusters, the deviations of the losses from their expectations keep or change their sign."""
    random = view.random_labels
    if random is None:
        raise NotAvailable("not available: the probabilities of the rows are not known.")
    parts: list[tuple[float, RowSums]] = []

    def draw(rng: np.random.Generator, rows: Any, size: int) -> MeanLoss:
        if rows.cluster is None:
            return MeanLoss(random.draw(rng, size), view.of_rows, params=view.params)
        if not parts:
            expected, one = random.expected(), np.zeros(rows.n, dtype=np.intp)
            mean = float(rows.of_rows(expected).mean())
            parts.append((mean, RowSums(one, 1, view.losses - expected)))
        mean, residual = parts[0]
        drawn = mean + residual(rows.signs(rng, size))[0, 0] / rows.n
        return MeanLoss(drawn, view.of_rows, params=view.params)

    return draw


_by_row = reweighted_by(reweighted_losses, redrawn=_redrawn)


@_by_row
def negative_log_likelihood(sample: Sample) -> MeanLoss:
    """-log of the probability of the true class, per row (nats).

    A probability below 2.2e-16 (`LOG_FLOOR`) counts as this, as in scikit-learn;
    ``details["clipped_rows"]`` is the number of such rows. With logits there are none: where their softmax is too small to be
    precise, the loss is computed from the logits.
    """
    if sample.data.cells is not None:
        cells, loss = sample.data.cells, partial(_log_losses, least=LOG_FLOOR)
        view = _of_cells(sample, cells.log_loss, loss)
        return replace(view, details={"clipped_rows": float(cells.clipped.sum())})
    data = full_predictions(sample)
    logits = data.logits if data.kind == "logits" else None
    small_rows: list[int] = []

    def of_rows(rows: slice, block: FloatArray, labels: IntArray) -> FloatArray:
        p = _of_label(block, labels)
        small_rows.append(int(np.count_nonzero(p < LOG_FLOOR)))
        if logits is not None:
            small = np.flatnonzero(p < _ROUNDED)
            p[small] = 1
            losses = 0.0 - np.log(p)
            if small.size:
                losses[small] = _from_logits(logits[rows][small], labels[small])
            return losses
        raise_to(LOG_FLOOR, p)
        # A certain row has a loss of 0, not of -0.
        return np.subtract(0.0, np.log(p, out=p), out=p)

    loss = partial(_log_losses, least=LOG_FLOOR if logits is None else 0.0)
    # One probability per row is read, and a row's loss takes as much memory as ten labels.
    view = _of_rows(sample, of_rows, loss, read=data.labels, block_bytes=BLOCK_BYTES // 10)
    small = sum(small_rows)
    return replace(
        view, details={"clipped_rows": float(small if logits is None else 0)}, small=small
    )


def smaller_squared_error(one: Sample, other: Sample) -> tuple[float, float] | None:
    """Brier scores of two samples as shown, of two classes of one column, if that of the first is smaller at a level of 0.5 %; else None."""
    try:
        views = [sample.view(squared_error) for sample in (one, other)]
    except NotAvailable:
        return None
    drawn = [error_bars.resampled(v, "bootstrap", seed=0, resamples=200).mean for v in views]
    beyond = 2.576 * math.hypot(*(float(mean.std()) for mean in drawn))
    return (views[0].shown, views[1].shown) if views[1].mean - views[0].mean > beyond else None


@_by_row
def squared_error(sample: Sample) -> MeanLoss:
    """Squared distance to the one-hot label, summed over classes, per row."""

    def of_rows(_: slice, block: FloatArray, labels: IntArray) -> FloatArray:
        wide = block.astype(np.float64, order="C")
        return np.einsum("ij,ij->i", wide, wide) + 1 - 2 * _of_label(wide, labels)

    if sample.data.cells is None:
        view = _of_rows(sample, of_rows, _squared_errors)
    else:
        view = _of_cells(sample, sample.data.cells.squared_error, _squared_errors)
    two = sample.data.n_classes == 2
    return replace(view, details={"one_column": float(view.mean / 2)}) if two else view


def _of_cells(sample: Sample, losses: FloatArray, loss: LossPerClass) -> MeanLoss:
    """The mean loss of the rows behind the cells of a profile, which holds their sums."""
    data, counts = sample.data, sample.weights
    assert counts is not None
    if np.isnan(losses).any():
        raise NotAvailable("not available: this profile holds no sums of this loss.")
    random = None
    if isinstance(data, Predictions):
        random = RandomLabels(data.probs, loss, counts, counted=True)
    return MeanLoss(np.asarray(losses @ counts / counts.sum()), lambda: losses, random, counts)


def _of_rows(
    sample: Sample,
    of_rows: Callable[[slice, FloatArray, IntArray], FloatArray],
    loss: LossPerClass,
    *,
    read: IntArray | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> MeanLoss:
    """The mean loss of rows, from the losses of a block of them; `read` is as large as what it reads, all scores if None."""
    data, weights = full_predictions(sample), sample.weights

    def mean_of(losses: FloatArray | None) -> FloatArray:
        """Mean of the losses of all rows in float64; the losses themselves are written to `losses`, if given."""
        sums: list[float] = []

        def work(rows: slice) -> None:
            values = of_rows(rows, data.probs[rows], data.labels[rows])
            if losses is not None:
                losses[rows] = values
            sums.append(float(values.sum()))

        for_row_blocks(data.probs if read is None else read, work, block_bytes=block_bytes)
        # fsum does not depend on the order in which the threads finish.
        return np.asarray(math.fsum(sums) / data.n)

    def of_each() -> FloatArray:
        # Losses of logits may be beyond the range of their type.
        losses = np.empty(data.n, dtype=np.float64 if data.kind == "logits" else data.probs.dtype)
        mean_of(losses)
        return losses

    # Weights have a mean of 1.
    mean = mean_of(None) if weights is None else weights @ of_each().astype(np.float64) / data.n
    return MeanLoss(np.asarray(mean), of_each, RandomLabels(data.probs, loss, sample.row_weights))


def _log_losses(block: FloatArray, least: float) -> FloatArray:
    losses = np.maximum(block, block.dtype.type(max(least, smallest_normal(block.dtype))))
    np.log(losses, out=losses)
    return np.negative(losses, out=losses)


def _squared_errors(block: FloatArray) -> FloatArray:
    losses = block * -2
    losses += 1 + np.einsum("ij,ij->i", block, block)[:, None]
    return losses


def _weights(block: FloatArray) -> FloatArray:
    """Probabilities to draw labels with, corrected for rounding: none is below 0, and each row sums to 1."""
    weights = np.maximum(block, 0)
    weights /= row_sums(weights)[:, None]
    return weights


def _from_logits(logits: FloatArray, labels: IntArray) -> FloatArray:
    """Log loss of some rows, in extended precision where the machine has it: logits may be as large as numbers get."""
    z = logits.astype(np.longdouble)
    z -= z.max(axis=1, keepdims=True)
    loss = np.log(np.exp(z).sum(axis=1)) - z[np.arange(labels.size), labels]
    return np.asarray(np.minimum(loss, _LARGEST), dtype=np.float64)


def _of_label(probs: FloatArray, labels: IntArray) -> FloatArray:
    n, k = probs.shape
    if k == 2:  # exact, and three times as fast as an index
        return np.asarray(probs[:, 0] * (1 - labels) + probs[:, 1] * labels, dtype=np.float64)
    # One index is faster than two.
    if probs.flags.c_contiguous:
        return probs.ravel().take(np.arange(0, n * k, k) + labels).astype(np.float64)
    return probs[np.arange(n), labels].astype(np.float64)


def row_log_losses(sample: Sample) -> FloatArray:
    """Losses whose mean is the negative log-likelihood, shape (n,); raises NotAvailable if they are not known for each row."""
    data = sample.data
    if not isinstance(data, Predictions) or data.cells is not None:
        raise NotAvailable("losses need the probabilities of all classes.")
    return sample.view(negative_log_likelihood).losses.astype(np.float64)


def has_smaller_nll(one: Sample, other: Sample) -> bool:
    """Whether the NLL of the first is smaller by more than one standard error of the difference, of paired rows or clusters."""
    data, gaps = one.data, row_log_losses(other) - row_log_losses(one)
    weights = np.ones(data.n) if data.weights is None else data.weights
    parts = (gaps - np.average(gaps, weights=weights)) * weights
    if data.clusters is not None:
        parts = np.bincount(data.clusters.codes, parts).astype(np.float64)
    return float(gaps @ weights) > math.sqrt(float(parts @ parts))


def clipped_words(view: MeanLoss) -> str | None:
    """Say how many rows the negative log-likelihood clips; None if it clips none."""
    clipped = int(view.details.get("clipped_rows", 0))
    return _small_words(view, clipped, f"it {_COUNTS_AS}, as in scikit-learn")


def exact_words(view: MeanLoss) -> str | None:
    """Like `clipped_words`; where there are logits, say how many rows would be clipped without them."""
    exact = view.small if view.details.get("clipped_rows") == 0 else 0
    from_logits = "the loss is computed from the logits, exactly and unclipped"
    return clipped_words(view) or _small_words(view, exact, from_logits)


def _small_words(view: MeanLoss, rows: int, then: str) -> str | None:
    if not rows or view.random_labels is None:
        return None
    counts = view.counts
    n = view.random_labels.probs.shape[0] if counts is None else int(counts.sum())
    return (
        f"{counted(rows, 'row')} ({percent(rows / n, 2)}) {'gives' if rows == 1 else 'give'} the true class a probability of 0, or "
        f"one below {LOG_FLOOR:.2g}: {then}."
    )


# ---- Steps with log losses


class StepLosses(NamedTuple):
    """Mean log loss of the hits and of the misses of each step, in nats, shape (G,) each."""

    hit: FloatArray
    miss: FloatArray


@dataclass(frozen=True, eq=False)
class LogSteps(StepsWithParams):
    """Steps of a sample, or resampled steps with the mean losses of their hits and misses.

    Merged steps (`Steps.merged`) hold scores with different losses, which do not follow from the mean score: near 0 it
    would hide the loss of single hits. So the mean losses are kept beside the steps.
    """

    losses: StepLosses | None = None

    def over(self, resampled: Steps, *, redrawn: bool = False, signed: bool = False) -> Self:
        """See `StepsWithParams`."""
        return replace(self, steps=resampled, losses=(expected if redrawn else observed)(self))

    @once_per_view
    def log_loss(self) -> FloatArray:
        """Mean log loss of the scores, shape (...)."""
        total = np.zeros(np.shape(self.n))
        for part in self.steps.blocks():
            losses = losses_of(part.score) if self.losses is None else self.losses
            total = total + part.hits @ losses.hit + (part.count - part.hits) @ losses.miss
        return np.asarray(total / self.n)

    @once_per_view
    def clipped_rows(self) -> int:
        """Number of rows of a sample whose loss is limited: hits with a score of nearly 0, misses with one of nearly 1."""
        rows = 0.0
        for part in self.steps.blocks():
            rows += float(part.hits[part.score < LOG_FLOOR].sum())
            rows += float((part.count - part.hits)[1 - part.score < LOG_FLOOR].sum())
        return round(rows)


def losses_of(score: FloatArray) -> StepLosses:
    """Log loss of a hit and of a miss at scores of shape (G,); a probability below `LOG_FLOOR` counts as it, as in the NLL."""
    hit, miss = (np.maximum(p, LOG_FLOOR) for p in (score, 1 - score))
    return StepLosses(0.0 - np.log(hit), 0.0 - np.log(miss))


@once_per_view
def observed(view: LogSteps) -> StepLosses:
    """Mean losses of the hits and misses of the merged steps of a sample; the expected ones for steps without any."""
    hits, misses = _merged(view, lambda part: (part.hits, part.count - part.hits))
    pairs = zip((hits, misses), expected(view), strict=True)
    return StepLosses(*(blocks.quotient(total, rows, otherwise=m) for (rows, total), m in pairs))


@once_per_view
def expected(view: LogSteps) -> StepLosses:
    """Expected mean losses of the merged steps of a sample, for hits that are drawn from the scores."""

    def weights(part: Steps) -> tuple[FloatArray, FloatArray]:
        score = np.clip(part.score, 0, 1)
        return part.count * score, part.count * (1 - score)

    hits, misses = _merged(view, weights)
    return StepLosses(*(blocks.quotient(total, w, otherwise=0.0) for w, total in (hits, misses)))


def _merged(
    view: LogSteps, weights: Callable[[Steps], tuple[FloatArray, FloatArray]]
) -> FloatArray:
    """Sums of weights and of weighted losses per merged step, for hits and for misses, shape (2, 2, G)."""
    base = view.steps.merged()
    ends = np.cumsum(base.count)
    sums, upto = np.zeros((2, 2, base.size)), 0.0
    for part in view.steps.blocks():
        rows = np.cumsum(part.count) + upto
        group = np.minimum(np.searchsorted(ends, rows - part.count / 2), base.size - 1)
        upto = float(rows[-1])
        for kind, (w, loss) in enumerate(zip(weights(part), losses_of(part.score), strict=True)):
            sums[kind, 0] += np.bincount(group, w, minlength=base.size)
            sums[kind, 1] += np.bincount(group, w * loss, minlength=base.size)
    return sums


@over_steps(steps)
def log_steps(sample: Sample) -> LogSteps:
    """Steps of the sample's own reduction, with their losses."""
    return LogSteps(sample.view(steps))


def clipped_step_words(view: LogSteps) -> str | None:
    """Say how many rows have a limited log loss of (score, hit); None if there are none."""
    rows = view.clipped_rows()
    if not rows:
        return None
    have = "has" if rows == 1 else "have"
    return (
        f"{counted(rows, 'row')} ({percent(rows / float(view.n), 2)}) {have} a score of 1 without a hit, or of 0 with one (within "
        f"{LOG_FLOOR:.2g}): what is left for the outcome {_COUNTS_AS}."
    )


def unlike_nll(sample: Sample) -> str | None:
    """Say why the log loss of (score, hit) is not the NLL of the same rows; None if both are written alike, or there is no NLL."""
    try:
        nll = decimal(float(sample.view(negative_log_likelihood).mean), 4)
    except NotAvailable:
        return None
    view = sample.view(log_steps)
    if nll == decimal(float(view.log_loss()), 4):
        return None
    if sample.data.n_classes == 2 and sample.data.cells is not None:
        why = "a profile holds the sum of the rows' own losses, while the parts take the mean score of each of its cells"
        return f"The NLL of these rows is {nll}: {why}."
    why = "it takes the probability of the true class, while here a miss has 1 minus the score, "
    if sample.data.n_classes > 2:
        why += "whatever the true class has"
    else:
        rows = view.clipped_rows()
        why += "which is rounded"
        why += f" (in {counted(rows, 'row')} it {_COUNTS_AS})" if rows else ""
    return f"The NLL of these rows is {nll}: {why}."


# ---- Some of the rows


@dataclass(frozen=True)
class PartNumbers:
    """Summary of some rows; no test is run on them, as they may have been chosen by looking at their outcomes.

    Attributes
    ----------
    rows : int
    share : float
        Share of all rows, by weight for weighted rows.
    score, observed : float
        Mean score and share of hits; nan without rows.
    interval : Interval or None
        Exact interval (Clopper and Pearson) of ``score - observed``, with the mean score taken as fixed; None without rows.
    misses : float
        Share of all misses of the sample that are among these rows; nan if the sample has no misses.
    log_loss, loss_share : float or None
        Mean negative logarithm of the probability of the true class, and the share of these rows in the sum over all rows;
        None if the data do not hold these probabilities.
    """

    rows: int
    share: float
    score: float
    observed: float
    interval: Interval | None
    misses: float
    log_loss: float | None
    loss_share: float | None

    @property
    def gap(self) -> float:
        """Mean score minus share of hits."""
        return self.score - self.observed


def part_numbers(sample: Sample, rows: IntArray | None = None) -> PartNumbers:
    """Summarise some rows under the sample's reduction.

    Parameters
    ----------
    sample : Sample
    rows : ndarray of int, shape (M,), optional
        Numbers of the rows; all rows if left out.
    """
    events, weights_of_all = sample.scored, sample.row_weights
    part = np.arange(events.n) if rows is None else rows
    w, score, hit = weights_of_all[part], events.score[part].astype(np.float64), events.hit[part]
    mass = float(w.sum())
    all_misses = float(weights_of_all @ ~events.hit)
    misses = float(w @ ~hit) / all_misses if all_misses else np.nan
    count = round(mass) if events.counted else part.size
    losses = _losses(sample)
    if not part.size:
        none = None if losses is None else np.nan
        return PartNumbers(0, 0.0, np.nan, np.nan, None, misses, none, none)
    mean, observed = float(w @ score) / mass, float(w @ hit) / mass
    loss = loss_share = None
    if losses is not None:
        loss_sum = float(w @ losses[part])
        loss, loss_share = loss_sum / mass, loss_sum / max(float(weights_of_all @ losses), 1e-300)
    ends = slice_tests.gap_interval(sample, part)
    return PartNumbers(
        rows=count,
        share=mass / float(weights_of_all.sum()),
        score=mean,
        observed=observed,
        interval=ends and Interval(*ends),
        misses=misses,
        log_loss=loss,
        loss_share=loss_share,
    )


def _losses(sample: Sample) -> FloatArray | None:
    try:
        return row_log_losses(sample)
    except NotAvailable:
        return None


Why = Literal["mistake", "loss", "bin"]


def notable_rows(
    sample: Sample, why: Why, *, most: int = 200, among: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The rows that stand out most, and by how much.

    Parameters
    ----------
    sample : Sample
    why : {"mistake", "loss", "bin"}
        ``mistake``: the distance between score and outcome, |s - h|, of rows that are predicted wrongly; where the score is
        the probability of an event, of rows on the wrong side of 0.5. ``loss``: the negative logarithm of the probability of
        the true class. ``bin``: the distance between the outcome and the share of hits of the row's bin.
    most : int
        Largest number of rows to return.
    among : ndarray of int, shape (A,), optional
        Return only some of these rows.

    Returns
    -------
    rows : ndarray of int, shape (M,)
        The most notable first, ties in the order of the data; empty if there is no mistake.
    value : ndarray, shape (M,)

    Raises
    ------
    NotAvailable
        For losses of data without the probabilities of all classes.
    OptionError
        For any other `why`.
    """
    if why not in get_args(Why):
        raise OptionError(f"'why' is one of {', '.join(get_args(Why))}; got {why!r}.")
    value = _value(sample, why)
    if among is not None:
        not_among = np.ones(value.shape, dtype=np.bool_)
        not_among[among] = False
        value = np.where(not_among, -np.inf, value)
    count = min(most, int(np.count_nonzero(value > -np.inf)))
    if not count:
        return np.empty(0, dtype=np.intp), np.empty(0)
    # The largest without sorting all; ties at the border are decided by the order of the data.
    limit = np.partition(value, value.size - count)[value.size - count]
    candidates = np.flatnonzero(value >= limit)
    order = candidates[np.argsort(-value[candidates], kind="stable")][:count]
    return order, value[order]


def _value(sample: Sample, why: Why) -> FloatArray:
    if why == "loss":
        return row_log_losses(sample)
    score, hit = sample.scored.score, sample.scored.hit.astype(np.float64)
    if why == "mistake":
        off = np.abs(score - hit)
        of_event = sample.reduction.kind in ("positive", "class", "top-r")
        return np.where(off > 0.5 if of_event else hit == 0, off, -np.inf)
    sums = chosen_bins(sample)
    return np.abs(hit - sums.accuracy[np.searchsorted(sums.edges[1:-1], score, side="left")])

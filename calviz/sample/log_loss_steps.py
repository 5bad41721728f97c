"""Steps with the log loss of their hits and misses, from which the parts of the log loss are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.probabilities import EPSILON
from calviz.numerics.safe_division import quotient
from calviz.sample.error_bars import Draw
from calviz.sample.losses import ZERO_COUNTS, negative_log_likelihood
from calviz.sample.sample import Sample
from calviz.sample.step_views import over_steps, steps
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view
from calviz.text.words import counted, decimal, percent

_TINY = np.finfo(np.float64).tiny


class StepLosses(NamedTuple):
    """Mean log loss of the hits and of the misses of each step, in nats, shape (G,) each."""

    hit: FloatArray
    miss: FloatArray


@dataclass(frozen=True, eq=False)
class LogSteps:
    """Steps of a sample, or resampled steps with the mean losses of their hits and misses.

    Merged steps (`Steps.merged`) hold scores with different losses, which do not follow from the mean score: near 0 it
    would hide the loss of single hits. So the mean losses are kept beside the steps.
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("steps",)

    steps: Steps
    losses: StepLosses | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return self.steps.n

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
        """Number of rows of a sample whose loss is infinite: hits with a score of 0, misses with a score of 1."""
        rows = 0.0
        for part in self.steps.blocks():
            rows += float(part.hits[part.score < _TINY].sum())
            sure = 1 - part.score < _TINY
            rows += float((part.count - part.hits)[sure].sum())
        return round(rows)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement."""
        return type(self)(self.steps.bootstrap(rng, resamples), observed(self), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores."""
        drawn = self.steps.under_calibration(rng, resamples)
        return type(self)(drawn, expected(self), self.params)

    def as_drawn(self) -> Self:
        """The sample itself as one resample."""
        return type(self)(self.steps.as_drawn(), observed(self), self.params)

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks."""
        for part in self.steps.parts():
            yield type(self)(part, self.losses, self.params)


def losses_of(score: FloatArray) -> StepLosses:
    """Log loss of a hit and of a miss at scores of shape (G,); a probability of 0 counts as 2.2e-16, as in the NLL."""
    hit, miss = (np.where(p < _TINY, EPSILON, p) for p in (score, 1 - score))
    return StepLosses(0.0 - np.log(hit), 0.0 - np.log(miss))


@once_per_view
def observed(view: LogSteps) -> StepLosses:
    """Mean losses of the hits and misses of the merged steps of a sample; the expected ones for steps without any."""
    hits, misses = _merged(view, lambda part: (part.hits, part.count - part.hits))
    usual = expected(view)
    return StepLosses(
        *(
            quotient(total, rows, otherwise=mean)
            for (rows, total), mean in zip((hits, misses), usual, strict=True)
        )
    )


@once_per_view
def expected(view: LogSteps) -> StepLosses:
    """Expected mean losses of the merged steps of a sample, for hits that are drawn from the scores."""

    def weights(part: Steps) -> tuple[FloatArray, FloatArray]:
        score = np.clip(part.score, 0, 1)
        return part.count * score, part.count * (1 - score)

    hits, misses = _merged(view, weights)
    return StepLosses(*(quotient(total, w, otherwise=0.0) for w, total in (hits, misses)))


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
        for at, (w, loss) in enumerate(zip(weights(part), losses_of(part.score), strict=True)):
            sums[at, 0] += np.bincount(group, w, minlength=base.size)
            sums[at, 1] += np.bincount(group, w * loss, minlength=base.size)
    return sums


def _over(view: LogSteps, drawn: Steps, draw: Draw, _: bool) -> LogSteps:
    return LogSteps(drawn, (observed if draw == "bootstrap" else expected)(view))


def clipped_words(view: LogSteps) -> str | None:
    """Say how many rows have an infinite log loss of (score, hit); None if there are none."""
    rows = view.clipped_rows()
    if not rows:
        return None
    have = "has" if rows == 1 else "have"
    return (
        f"{counted(rows, 'row')} ({percent(rows / float(view.n), 2)}) {have} a score of 1 without a hit, or of 0 with one: what is "
        f"left for the outcome is 0, which makes the log loss infinite, and it is finite here only because {ZERO_COUNTS}."
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
        why += f" (in {counted(rows, 'row')} to 0; {ZERO_COUNTS})" if rows else ""
    return f"The NLL of these rows is {nll}: {why}."


@over_steps(_over)
def log_steps(sample: Sample) -> LogSteps:
    """Steps of the sample's own reduction, with their losses."""
    return LogSteps(sample.view(steps))

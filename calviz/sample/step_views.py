"""Views that consist of steps: the steps of a sample, and how they are recomputed for weighted or clustered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.events import BinaryEvents
from calviz.sample.error_bars import Draw
from calviz.sample.row_draws import MOST_GROUPS, RowWeights
from calviz.sample.row_sums import HitSums, RowSums
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps, make_steps, most_steps
from calviz.sample.view_caches import kept_draw, latest
from calviz.specs.metric import (
    Redrawn,
    Reweighting,
    makes_steps,
    reweighted_by,
    reweighting_of,
    takes_weights,
)

F = TypeVar("F", bound=Callable[..., Any])


def _group_of_rows(events: BinaryEvents, view: Steps) -> IntArray:
    """The merged step of each row, shape (n,); cached with the steps."""

    def group_of_rows() -> IntArray:
        last = view.score
        if view.merged() is not view:
            most = most_steps(float(view.n))
            upto, share = 0.0, most / float(view.n)
            groups = []
            for part in view.blocks():  # as `merged` does
                middle = np.cumsum(part.count) + (upto - part.count / 2)
                upto += float(part.count.sum())
                groups.append(np.minimum(middle * share, most - 1).astype(np.int16))
            group = np.concatenate(groups)
            last = last[np.flatnonzero(np.append(group[1:] != group[:-1], True))]
        # A step holds the scores up to its own. Rows of weight 0 have no step of their own.
        group_of_row = np.searchsorted(last, events.score.astype(np.float64))
        return np.minimum(group_of_row, last.size - 1).astype(np.int32)

    return latest(view, "group_of_rows", None, group_of_rows)


def redrawn(events: BinaryEvents, view: Steps) -> Redrawn:
    """Redraw the hits of the (merged) steps of weighted or clustered rows under calibration (see `Reweighting`)."""
    base = view.merged()
    hit_sums: list[HitSums] = []

    def draw(rng: np.random.Generator, rows: Any, size: int) -> Steps:
        def drawn() -> FloatArray:
            if not hit_sums:
                hit_sums.append(HitSums(events, _group_of_rows(events, view), base.size))
            return np.ascontiguousarray(hit_sums[0](rng, rows, size).T)

        # Views that consist of the same steps share the draws.
        name = f"redrawn {size}" if rows.cluster is None else f"redrawn {size} by clusters"
        hits = kept_draw(view, name, rng, drawn)
        count = np.broadcast_to(base.count, hits.shape)
        return Steps(base.score, count, hits, base.merged_square, base.params, view.of_sample)

    return draw


def reweighted(
    events: BinaryEvents, view: Steps
) -> Callable[[RowWeights], Callable[[float | None], Steps]]:
    """Recompute the (merged) steps of the events from weights of the rows, shape (n, b) (see `Reweighting`)."""
    base = view.merged()
    # Misses and hits of every step.
    sums_of = RowSums(_group_of_rows(events, view) + base.size * events.hit, 2 * base.size, None)
    rows, gap = base.score_sum, base.score_sum - base.hits

    def resampled(weights: RowWeights) -> Callable[[float | None], Steps]:
        misses, hits = sums_of(weights).reshape(2, base.size, -1)
        count, hits = np.ascontiguousarray((misses + hits).T), np.ascontiguousarray(hits.T)
        gaps: list[FloatArray] = []

        def at_scale(scale: float | None) -> Steps:
            if scale is None:
                return Steps(
                    base.score, count, hits, base.merged_square, base.params, view.of_sample
                )
            if not gaps:
                gaps.append(count * base.score - hits)
            moved = (rows - (scale - 1) * gap) - gaps[0]
            still = np.broadcast_to(base.count, moved.shape)
            return Steps(base.score, still, moved, base.merged_square, base.params)

        return at_scale

    return resampled


@takes_weights
def own_reweighted(sample: Sample) -> Callable[[RowWeights], Callable[[float | None], Steps]]:
    """Recompute the steps of the sample's reduction from weights of shape (n, b); the latest ones are kept for the next metrics."""
    reweighted_to = reweighted(sample.scored, sample.view(steps))
    last: list[tuple[RowWeights, Callable[[float | None], Steps]]] = []

    def resampled(weights: RowWeights) -> Callable[[float | None], Steps]:
        if not last or last[0][0] is not weights:
            last[:] = [(weights, reweighted_to(weights))]
        return last[0][1]

    return resampled


@makes_steps
@reweighted_by(
    lambda sample, _: sample.view(own_reweighted),
    redrawn=lambda sample, view: redrawn(sample.scored, view),
    weighted=True,
    grouped=True,
)
def steps(sample: Sample) -> Steps:
    """Steps of the sample's own reduction."""
    return make_steps(sample.scored, sample.weights)


def over_steps(
    over: Callable[[Any, Steps, Draw, bool], Any], of: Callable[[Sample], Steps] = steps
) -> Callable[[F], F]:
    """Decorator of a function that makes views of steps: says how a view is made over resampled steps (see `reweighted_by`).

    Parameters
    ----------
    over : callable
        ``over(view, steps, draw, signed)`` returns the view with resampled steps; `draw` says how they were drawn, and `signed`
        whether hits may be below 0 or above the number of rows.
    of : callable
        The function that makes the steps.
    """

    def make(sample: Sample, view: Any) -> Callable[[RowWeights], Callable[[float | None], Any]]:
        steps_of = reweighting(of).make(sample, sample.view(of))

        def resampled(weights: RowWeights) -> Callable[[float | None], Any]:
            steps_at_scale = steps_of(weights)
            return lambda scale: over(view, steps_at_scale(scale), "bootstrap", scale is not None)

        return resampled

    def calibrated(sample: Sample, view: Any) -> Redrawn:
        redrawn_steps = reweighting(of).redrawn
        assert redrawn_steps is not None
        draw_steps = redrawn_steps(sample, sample.view(of))
        # Hits of clustered rows, or of very many weighted ones, are not drawn one by one.
        signed = sample.data.clusters is not None or sample.data.n > MOST_GROUPS

        def draw(rng: np.random.Generator, rows: Any, size: int) -> Any:
            return over(view, draw_steps(rng, rows, size), "under_calibration", signed)

        return draw

    mark = reweighted_by(make, redrawn=calibrated, weighted=True, grouped=True)
    return lambda maker: makes_steps(mark(maker))


def reweighting(maker: Callable[..., Any]) -> Reweighting:
    """The `Reweighting` of a function that makes views, which must have one."""
    rule = reweighting_of(maker)
    assert rule is not None
    return rule


@makes_steps
@reweighted_by(
    lambda sample, view: reweighted(sample.top_scored, view),
    redrawn=lambda sample, view: redrawn(sample.top_scored, view),
    weighted=True,
    grouped=True,
)
def top_label_steps(sample: Sample) -> Steps:
    """Steps of the top label, whatever the reduction."""
    # The very same view under every reduction, so that it is resampled once.
    return sample.top_label.view(steps)


@dataclass(frozen=True, eq=False)
class StepsWithParams:
    """Steps with the parameters of a metric; resamples are shared with all other views of the same steps."""

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("steps",)

    steps: Steps
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement."""
        return type(self)(self.steps.bootstrap(rng, resamples), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores."""
        return type(self)(self.steps.under_calibration(rng, resamples), self.params)

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks."""
        for part in self.steps.parts():
            yield type(self)(part, self.params)

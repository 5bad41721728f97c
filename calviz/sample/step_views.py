"""Views made of steps, and what follows from them: rankings, intervals with few events, smoothed densities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import spherical_jn, stdtrit

from calviz.core import entry_specs, words
from calviz.core.blocks import BoolArray, FloatArray, IntArray, effective_number, quotient
from calviz.core.entry_specs import Redrawn, Reweighting, makes_steps, reweighted_by
from calviz.core.errors import claim
from calviz.core.events import BinaryEvents
from calviz.sample import draws, error_bars
from calviz.sample.draws import MOST_GROUPS, HitSums, RowSums, RowWeights, once_per_view
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps, make_steps, most_steps

F = TypeVar("F", bound=Callable[..., Any])


def redrawn_steps(events: BinaryEvents, view: Steps) -> Redrawn:
    """Redraw the hits of the (merged) steps of weighted or clustered rows under calibration (see `Reweighting`)."""
    base = view.merged()
    hit_sums: list[HitSums] = []

    def draw(rng: np.random.Generator, rows: Any, size: int) -> Steps:
        def drawn() -> FloatArray:
            if not hit_sums:
                hit_sums.append(HitSums(events, step_of_rows(events, view), base.size))
            return np.ascontiguousarray(hit_sums[0](rng, rows, size).T)

        # Views that consist of the same steps share the draws.
        name = f"redrawn {size}" if rows.cluster is None else f"redrawn {size} by clusters"
        hits = draws.kept_draw(view, name, rng, drawn)
        count = np.broadcast_to(base.count, hits.shape)
        return Steps(base.score, count, hits, base.merged_square, base.params, view.of_sample)

    return draw


def reweighted_steps(
    events: BinaryEvents, view: Steps
) -> Callable[[RowWeights], Callable[[float | None], Steps]]:
    """Recompute the (merged) steps of the events from weights of the rows, shape (n, b) (see `Reweighting`)."""
    base = view.merged()
    # Misses and hits of every step.
    sums_of = RowSums(step_of_rows(events, view) + base.size * events.hit, 2 * base.size, None)
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


def step_of_rows(events: BinaryEvents, view: Steps) -> IntArray:
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

    return draws.latest(view, "group_of_rows", None, group_of_rows)


@entry_specs.takes_weights
def own_reweighted(sample: Sample) -> Callable[[RowWeights], Callable[[float | None], Steps]]:
    """Recompute the steps of the sample's reduction from weights of shape (n, b); the latest ones are kept for the next metrics."""
    reweighted_to = reweighted_steps(sample.scored, sample.view(steps))
    last: list[tuple[RowWeights, Callable[[float | None], Steps]]] = []

    def resampled(weights: RowWeights) -> Callable[[float | None], Steps]:
        if not last or last[0][0] is not weights:
            last[:] = [(weights, reweighted_to(weights))]
        return last[0][1]

    return resampled


@makes_steps
@reweighted_by(
    lambda sample, _: sample.view(own_reweighted),
    redrawn=lambda sample, view: redrawn_steps(sample.scored, view),
)
def steps(sample: Sample) -> Steps:
    """Steps of the sample's own reduction."""
    return make_steps(sample.scored, sample.weights)


@makes_steps
@reweighted_by(
    lambda sample, view: reweighted_steps(sample.top_scored, view),
    redrawn=lambda sample, view: redrawn_steps(sample.top_scored, view),
)
def top_label_steps(sample: Sample) -> Steps:
    """Steps of the top label, whatever the reduction."""
    # The very same view under every reduction, so that it is resampled once.
    return sample.top_label.view(steps)


def over_steps(of: Callable[[Sample], Steps]) -> Callable[[F], F]:
    """Decorator of a function that makes a `StepsWithParams` of the steps that `of` makes: says how it is reweighted (see `reweighted_by`)."""

    def make(sample: Sample, view: Any) -> Callable[[RowWeights], Callable[[float | None], Any]]:
        steps_of = reweighting(of).make(sample, sample.view(of))

        def resampled(weights: RowWeights) -> Callable[[float | None], Any]:
            steps_at_scale = steps_of(weights)
            return lambda scale: view.over(steps_at_scale(scale), signed=scale is not None)

        return resampled

    def calibrated(sample: Sample, view: Any) -> Redrawn:
        redrawn_steps = reweighting(of).redrawn
        assert redrawn_steps is not None
        draw_steps = redrawn_steps(sample, sample.view(of))
        # Hits of clustered rows, or of very many weighted ones, are not drawn one by one.
        signed = sample.data.clusters is not None or sample.data.n > MOST_GROUPS

        def draw(rng: np.random.Generator, rows: Any, size: int) -> Any:
            return view.over(draw_steps(rng, rows, size), redrawn=True, signed=signed)

        return draw

    mark = reweighted_by(make, redrawn=calibrated)
    return lambda maker: makes_steps(mark(maker))


def reweighting(maker: Callable[..., Any]) -> Reweighting:
    """The `Reweighting` of a function that makes views, which must have one."""
    rule = entry_specs.reweighting_of(maker)
    assert rule is not None
    return rule


@dataclass(frozen=True, eq=False)
class StepsWithParams:
    """Steps with the parameters of a metric; resamples are shared with all other views of the same steps."""

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("steps",)

    steps: Steps
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return self.steps.n

    def over(self, resampled: Steps, *, redrawn: bool = False, signed: bool = False) -> Self:
        """The same view of resampled steps, with `redrawn` hits or not; if `signed`, hits may be below 0 or above the number of rows."""
        return replace(self, steps=resampled)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement."""
        return self.over(self.steps.bootstrap(rng, resamples))

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits redrawn from the scores."""
        return self.over(self.steps.under_calibration(rng, resamples), redrawn=True)

    def as_drawn(self) -> Self:
        """The sample itself as one resample."""
        return self.over(self.steps.as_drawn())

    def parts(self) -> Iterator[Self]:
        """The resamples in blocks."""
        for part in self.steps.parts():
            yield replace(self, steps=part)


# ---- Rankings


class Ranking(NamedTuple):
    """Cumulative sums from the most to the least confident step, shape (..., G) each.

    Attributes
    ----------
    rows, errors : ndarray
        Number of rows kept, and of wrong predictions among them, if all rows down to this step are kept.
    """

    rows: FloatArray
    errors: FloatArray

    @property
    def n(self) -> FloatArray:
        """Total number of rows, shape (...)."""
        return self.rows[..., -1]


@once_per_view
def ranked(view: Steps) -> Ranking:
    """Cumulative rows and errors, most confident first; tied rows enter together."""
    return Ranking(
        np.cumsum(view.count[..., ::-1], axis=-1),
        np.cumsum((view.count - view.hits)[..., ::-1], axis=-1),
    )


def ranked_parts(view: Steps) -> Iterator[Ranking]:
    """`ranked`, a block of steps at a time; every block but the first begins with the last entry of the one before."""
    rows: FloatArray = np.zeros(())
    errors: FloatArray = np.zeros(())
    for i, part in enumerate(view.blocks(descending=True)):
        ranking = ranked(part)
        if i:
            ranking = Ranking(
                np.append(rows, ranking.rows + rows), np.append(errors, ranking.errors + errors)
            )
        yield ranking
        rows, errors = ranking.rows[..., -1], ranking.errors[..., -1]


def errors_at_coverage(view: Steps, coverage: float) -> FloatArray:
    """Expected errors among the ``coverage * n`` most confident rows, shape (...).

    Among tied rows, those to keep are chosen at random: the expectation is linear.
    """
    target = coverage * view.n[..., None]
    ranking = next(r for r in ranked_parts(view) if (r.rows[..., -1:] >= target).all())
    step = np.minimum(
        (ranking.rows < target).sum(axis=-1, keepdims=True), ranking.rows.shape[-1] - 1
    )
    before = np.maximum(step - 1, 0)
    first = step == 0

    def pick(
        values: FloatArray, index: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
    ) -> FloatArray:
        return np.take_along_axis(values, index, axis=-1)

    rows0 = np.where(first, 0.0, pick(ranking.rows, before))
    errors0 = np.where(first, 0.0, pick(ranking.errors, before))
    rows1, errors1 = pick(ranking.rows, step), pick(ranking.errors, step)
    width = np.maximum(rows1 - rows0, 1e-300)
    return np.asarray((errors0 + (errors1 - errors0) * (target - rows0) / width)[..., 0])


def coverage_at(view: Steps, risk: float) -> FloatArray:
    """Largest share of the rows that whole steps can keep at this error rate or less, shape (...); 0 where none can."""
    kept = np.zeros(np.shape(view.n))
    for rows, errors in ranked_parts(view):
        kept = np.maximum(kept, np.where(errors <= risk * rows + 1e-9, rows, 0.0).max(axis=-1))
    # Sums of weights in another order are not the same in their last digits.
    return np.asarray(np.where(kept > view.n * (1 - 1e-12), 1.0, kept / view.n))


@once_per_view
def chance_of_order(view: Steps) -> FloatArray:
    """Probability that a hit has a higher score than a miss, ties counting half, shape (...); ``nan`` without hits or without misses."""
    upto, ordered = np.zeros(view.n.shape), np.zeros(view.n.shape)
    for part in view.blocks():
        missed = part.count - part.hits
        below = np.cumsum(missed, axis=-1)
        below -= missed / 2
        ordered += (part.hits * below).sum(axis=-1) + part.n_hits * upto
        upto += missed.sum(axis=-1)
    return quotient(ordered, view.n_hits * upto)


def average_precision(view: Steps, *, of: Literal["hits", "misses"]) -> FloatArray:
    """Average precision of finding the hits by their high scores, or the misses by their low ones, shape (...).

    Tied rows enter together; ``nan`` where there is nothing to find.
    """
    of_hits = of == "hits"
    found_so_far, rows_so_far, total = (np.zeros(view.n.shape) for _ in range(3))
    for part in view.blocks(descending=of_hits):
        turn = slice(None, None, -1 if of_hits else 1)
        wanted = (part.hits if of_hits else part.count - part.hits)[..., turn]
        upto = np.cumsum(wanted, axis=-1) + found_so_far[..., None]
        rows = np.cumsum(part.count[..., turn], axis=-1) + rows_so_far[..., None]
        found_so_far, rows_so_far = upto[..., -1].copy(), rows[..., -1]
        precision = np.divide(upto, rows, out=upto, where=rows > 0)
        precision *= wanted
        total += precision.sum(axis=-1)
    return quotient(total, found_so_far)


# ---- Few events

#: Below this number of rows of the rarer kind, a variance estimated from the rows is not trusted, and intervals of other measures of
#: discrimination are rough.
FEW_EVENTS = 20


def has_both_kinds(view: Steps) -> bool:
    """Whether there are hits and misses, so that the AUROC of rows that are not clustered has the interval of `interval_of_area`."""
    return bool(0 < view.n_hits < view.n)


@claim(
    "weighted-auroc",
    says="AUROC 0.80 (95 % CI 0.74 to 0.85), weighted rows",
    chosen="nothing",
    adjusted="score interval with the variance of the weighted contributions and Student's t",
)
def interval_of_area(view: Steps, level: float) -> tuple[float, float]:
    """Score interval of the AUROC of rows with hits and misses, not clustered: all areas that the observed one is not unusual for.

    The variance of an area is that of Hanley & McNeil with both numbers of rows replaced by their mean (Newcombe's method 5), which
    depends on the area, so that the interval is asymmetric and has a width even if the observed area is 1. It holds for scores whose
    distributions have the same shape. It is therefore multiplied by its ratio to the variance estimated from the rows (DeLong); a
    ratio below 1 counts in full only where events are many, and not at all with fewer than `FEW_EVENTS`.

    Of weighted rows, the numbers of hits and of misses are effective numbers, and DeLong's variance is the sum of the squared
    contributions of the rows, each the influence of its weight on the area. Where weights go with the scores, few rows contribute most
    of this sum: the normal quantile is replaced by that of Student's t with their effective number as degrees of freedom.

    References
    ----------
    Newcombe 2006, Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2; DeLong, DeLong &
    Clarke-Pearson 1988.
    """
    area = float(chance_of_order(view))
    estimate = estimate_of_rows(view)
    hits, misses = estimate.events
    usual = _variance(area, hits, misses)
    ratio = estimate.variance / usual if usual > 0 else 1.0
    if ratio < 1:
        ratio += (1 - ratio) * min(1.0, FEW_EVENTS / min(hits, misses))
    squared = float(stdtrit(estimate.freedom, (1 + level) / 2)) ** 2 * ratio

    def unusual(other: float) -> float:
        return (area - other) ** 2 - squared * _variance(other, hits, misses)

    def end(limit: float) -> float:
        # At 0 and 1 no variance is left, and at the area itself no distance.
        near = area + math.copysign(1e-12, limit - area)
        if not math.isfinite(squared):
            return limit
        if abs(limit - area) <= 1e-12 or unusual(near) >= 0:
            return area
        return float(brentq(unusual, min(limit, near), max(limit, near)))

    return end(0.0), end(1.0)


def interval_of_somers_d(view: Steps, level: float) -> tuple[float, float]:
    """`interval_of_area` on the scale of Somers' Dxy."""
    low, high = interval_of_area(view, level)
    return 2 * low - 1, 2 * high - 1


def _variance(area: float, hits: float, misses: float) -> float:
    more = (hits + misses) / 2 - 1
    pairs = 1 + more * (1 - area) / (2 - area) + more * area / (1 + area)
    return area * (1 - area) * pairs / (hits * misses)


class AreaEstimate(NamedTuple):
    """Variance of an AUROC as estimated from the rows (DeLong et al. 1988), with what limits how well it is known.

    Attributes
    ----------
    variance : float
        A lone row of its kind counts 0.
    events : (float, float)
        Numbers of hits and of misses; of weighted rows, effective numbers.
    freedom : float
        Degrees of freedom of the variance: infinite for rows of equal weight.
    """

    variance: float
    events: tuple[float, float]
    freedom: float = math.inf


@once_per_view
def estimate_of_rows(view: Steps) -> AreaEstimate:
    """Estimate the variance of the AUROC of rows with hits and misses, not clustered."""
    placed = Placements.of(view)
    assert placed is not None
    own = error_bars.drawn_by(view)
    if own is None:
        return AreaEstimate(placed.variance, (float(placed.hits.sum()), float(placed.misses.sum())))
    hit, weights = own.sample.scored.hit, own.rows.weights
    squares = np.square(placed.influences(step_of_rows(own.sample.scored, view), hit, weights))
    numbers = [effective_number(weights[kind]) for kind in (hit, ~hit)]
    variance = sum(
        float(squares[kind].sum()) * n / (n - 1)
        for kind, n in zip((hit, ~hit), numbers, strict=True)
        if n > 1 + 1e-9
    )
    fourth = float(squares @ squares)
    freedom = max(variance**2 / fourth, 1.0) if fourth > 0 else math.inf
    return AreaEstimate(variance, (numbers[0], numbers[1]), freedom)


@dataclass(frozen=True, eq=False)
class Placements:
    """AUROC as a mean over hits, and over misses, of the share of the other kind that each is on the right side of.

    Attributes
    ----------
    hits, misses : ndarray, shape (G,)
        Their numbers, or sums of weights, per distinct score.
    area : float
    shares : tuple of ndarray, shape (G,) each
        For a hit and for a miss of each score, that share minus the area.
    """

    hits: FloatArray
    misses: FloatArray
    area: float
    shares: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, view: Steps) -> Placements | None:
        """Place both kinds; of very many scores, neighbours are taken as tied. None if one kind is missing."""
        view = view.merged()
        hits, misses = view.hits, view.count - view.hits
        if not (hits.sum() > 0 and misses.sum() > 0):
            return None
        below = (np.cumsum(misses) - misses / 2) / misses.sum()
        above = (np.cumsum(hits[::-1])[::-1] - hits / 2) / hits.sum()
        area = float(hits @ below / hits.sum())
        return cls(hits, misses, area, (below - area, above - area))

    def influences(self, step: IntArray, hit: BoolArray, weights: FloatArray) -> FloatArray:
        """How far each row moves the area, shape (n,); they add up to 0 within each kind. All arrays have shape (n,)."""
        of_rows = np.empty(step.size)
        for kind, share in zip((hit, ~hit), self.shares, strict=True):
            of_rows[kind] = weights[kind] / weights[kind].sum() * share[step[kind]]
        return of_rows

    @property
    def variance(self) -> float:
        """Variance of the area of independent rows of equal weight (DeLong); a lone row counts 0."""
        parts = (self.hits, self.shares[0]), (self.misses, self.shares[1])
        return sum(
            float(rows @ np.square(share) / (rows.sum() * (rows.sum() - 1)))
            for rows, share in parts
            if rows.sum() > 1
        )


def of_few_hits(sample: Sample) -> str | None:
    """Say that an interval is rough because there are few hits; None if there are enough."""
    return _rough(_events(sample)[0], "hit", "hits")


def of_few_misses(sample: Sample) -> str | None:
    """Say that an interval is rough because there are few misses; None if there are enough."""
    return _rough(_events(sample)[1], "miss", "misses")


def of_few_at_95_tpr(sample: Sample) -> str | None:
    """Say that an interval at the threshold that keeps 95 % of the hits is rough because hits or misses are few."""
    hits, misses = _events(sample)
    # Below this number of hits, the threshold that keeps 95 % of them has no lower limit at 95 %: all hits may lie above it, as
    # 0.95^58 > 0.05.
    return _rough(hits, "hit", "hits", 59) or _rough(misses, "miss", "misses")


def of_dependent_area(sample: Sample) -> str | None:
    """Say that an interval is rough because hits or misses are few among weighted or clustered rows, which have no closed form."""
    if sample.data.alike:
        return None
    hits, misses = _events(sample)
    return of_few_hits(sample) if hits <= misses else of_few_misses(sample)


def _events(sample: Sample) -> tuple[float, float]:
    """Numbers of hits and misses; of weighted rows, effective numbers."""
    hit, weights = sample.scored.hit, sample.weights
    if weights is None:
        count = int(np.count_nonzero(hit))
        return float(count), float(hit.size - count)
    if sample.data.cells is not None:
        return float(weights[hit].sum()), float(weights[~hit].sum())
    of_hits, of_misses = weights[hit], weights[~hit]
    return (
        effective_number(of_hits) if of_hits.size else 0.0,
        effective_number(of_misses) if of_misses.size else 0.0,
    )


def _rough(events: float, one: str, many: str, enough: int = FEW_EVENTS) -> str | None:
    count = math.ceil(events - 1e-9)
    if not 0 < count < enough:
        return None
    return f"with only {words.counted(count, one, many)}, its interval is rough."


# ---- Kernel smoothing

#: Half-width of a kernel below which all scores count as equal.
NARROWEST = 1e-9


def grid_size(width: float, *, nodes: int = 8, least: int = 1024, most: int = 1 << 16) -> int:
    """Size of a grid on which a kernel of this width spans at least `nodes` cells, within `least` and `most`."""
    from scipy.fft import next_fast_len

    size = nodes / max(width, nodes / most)
    return int(next_fast_len(int(min(max(size, least), most)), real=True)) + 1


def spread_parts(steps: Steps, mass: Callable[[Steps], FloatArray], size: int) -> FloatArray:
    """`spread` of ``mass(part)``, a block of steps at a time, shape (..., size)."""
    return np.asarray(sum(spread(part, mass(part), size) for part in steps.blocks()))


def spread(steps: Steps, mass: FloatArray, size: int) -> FloatArray:
    """Split each step's mass linearly between its two neighbouring nodes, shape (..., G) to (..., size).

    Totals and first moments are kept. With the steps in order, both follow from the sums of mass
    and of mass times score over the cells between the nodes.
    """
    cells = size - 1
    # The nodes themselves belong to the cell on their right, the last one to that on its left.
    # Only the nodes around these scores are looked up; the outermost cells take what lies beyond.
    score = steps.score
    ends = np.array([score[0] * cells - 1, score[-1] * cells + 1])
    low, high = np.clip(ends, 0, cells - 1).astype(np.intp)
    starts = np.searchsorted(score, np.arange(low, high + 1) / cells)
    starts[0] = 0
    filled = np.flatnonzero(np.diff(starts, append=score.size))
    total = np.add.reduceat(mass, starts[filled], axis=-1)
    moment = np.add.reduceat(mass * score.astype(mass.dtype, copy=False), starts[filled], axis=-1)
    filled += low
    up = moment * mass.dtype.type(cells)
    up -= total * filled.astype(mass.dtype)
    total -= up
    out = np.zeros((*mass.shape[:-1], size), dtype=mass.dtype)
    out[..., filled] = total
    out[..., filled + 1] += up
    return out


def smooth(mass: FloatArray, response: FloatArray) -> FloatArray:
    """Density at the nodes of point masses convolved with a mirrored kernel.

    Parameters
    ----------
    mass : ndarray, shape (..., G)
        Point masses at the nodes.
    response : ndarray, shape (G,) or (..., G)
        The kernel's characteristic function at the frequencies ``pi k``, k = 0..G-1.
    """
    return from_cosine(cosine_coefficients(mass) * response)


def cosine_coefficients(mass: FloatArray) -> FloatArray:
    """``sum_j m_j cos(pi k t_j)`` of point masses at the nodes, k = 0..G-1, shape (..., G)."""
    from scipy.fft import dct

    weighted = mass.copy()
    # The type-1 transform counts inner nodes twice and end nodes once; here all count once.
    weighted[..., 0] *= 2
    weighted[..., -1] *= 2
    out: FloatArray = np.asarray(dct(weighted, type=1, axis=-1, overwrite_x=True))
    out *= out.dtype.type(0.5)
    return out


def from_cosine(coefficients: FloatArray) -> FloatArray:
    """``c_0 + 2 sum_k c_k cos(pi k t)`` at the nodes, shape (..., G) to (..., G): the density of mirrored kernels.

    A mass at 0 or 1 coincides with its mirror image, so its kernel has twice the height on the
    half that lies inside: no mass is lost at the ends.
    """
    from scipy.fft import dct

    return np.asarray(dct(coefficients, type=1, axis=-1))


def gaussian_response(
    sigma: FloatArray | float, size: int, dtype: np.dtype[Any] | type = np.float64
) -> FloatArray:
    """Characteristic function of the normal distribution at the grid's frequencies, shape (..., size) for sigma (...)."""
    k = np.arange(size, dtype=dtype) * math.pi
    exponent = np.asarray(sigma, dtype=dtype)[..., None] * k
    np.square(exponent, out=exponent)
    exponent *= exponent.dtype.type(-0.5)
    # Below this the response is 0 for all practical purposes, and denormals are slow.
    np.maximum(exponent, exponent.dtype.type(-80), out=exponent)
    return np.asarray(np.exp(exponent, out=exponent))


def triweight_response(width: float, size: int) -> FloatArray:
    """Characteristic function of the triweight kernel of half-width `width`, shape (size,).

    ``K(u) = 35/32 (1 - u^2)^3`` on [-1, 1] has the characteristic function
    ``105 j_3(w) / w^3`` with the spherical Bessel function j_3.
    """
    w = np.arange(size) * (math.pi * width)
    out = np.ones(size)
    big = w > 1e-2
    out[big] = 105 * spherical_jn(3, w[big]) / w[big] ** 3
    small = w[~big] ** 2
    out[~big] = 1 - small / 18 + small**2 / 792
    return out


def integrate(values: FloatArray) -> FloatArray:
    """Trapezoidal rule over the grid on [0, 1], shape (..., G) to (...)."""
    inner = values.sum(axis=-1) - (values[..., 0] + values[..., -1]) / 2
    return np.asarray(inner / (values.shape[-1] - 1))

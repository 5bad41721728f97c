"""Estimates that several figures draw: the probability of a hit as a curve, costs of decisions, rankings by certainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.ndimage import convolve1d
from scipy.optimize import isotonic_regression

from calviz.core.blocks import FloatArray, checkpoint, for_row_blocks
from calviz.core.curve_fits import isotonic_fits
from calviz.core.entry_specs import reweighted_by
from calviz.core.errors import OptionError, check_choice
from calviz.core.events import BinaryEvents
from calviz.sample.caches import once_per_view
from calviz.sample.error_bars import Redrawing, drawn_by, resampled, stream, widened
from calviz.sample.sample import Sample, full_predictions
from calviz.sample.step_views import (
    NARROWEST,
    grid_size,
    ranked,
    redrawn_steps,
    reweighted_steps,
    smooth,
    spread_parts,
    steps,
    top_label_steps,
    triweight_response,
)
from calviz.sample.steps import Steps, make_steps

CurveKind = Literal["kernel", "isotonic"]

#: Number of drawn points of a kernel curve, which is smooth between them.
_POINTS = 400
#: Grid cells along the fractiles per half-width of the kernel.
KERNEL_CELLS = 32
#: The kernel curve has no values where the density of the scores (per unit of score, as a share of the rows) is below this.
LEAST_DENSITY = 1e-7


class Curve(NamedTuple):
    """Estimated probability of a hit against the score, and the number of rows behind each estimate, shape (P,) each.

    For the kernel curve these are the rows within its half-width; for the isotonic curve, those of the same constant piece.
    """

    score: FloatArray
    probability: FloatArray
    rows: FloatArray


def make_curves(sample: Sample, kinds: Sequence[CurveKind]) -> dict[CurveKind, Curve]:
    """Estimate the requested curves.

    Raises
    ------
    OptionError
        If a curve is unknown.
    """
    curves: dict[CurveKind, Curve] = {}
    for kind in kinds:
        check_choice("curves", kind, get_args(CurveKind))
        view = sample.view(steps)
        if kind == "kernel":
            x, y = kernel_curve(view)
            some = np.unique(np.linspace(0, x.size - 1, min(x.size, _POINTS)).astype(np.intp))
            width = _half_width(view)
            curves[kind] = Curve(
                x[some], y[some], _rows_within(view, x[some] - width, x[some] + width)
            )
        else:
            first, last, level = isotonic_curve(view)
            rows = np.repeat(_rows_within(view, first, last), 2)
            curves[kind] = Curve(np.stack([first, last], axis=1).ravel(), np.repeat(level, 2), rows)
    return curves


def rule_of_thumb(sd: float, n: float) -> float:
    """Half-width of the kernel, ``1.06 sd n^(-1/5)`` (Zhang 2020, appendix C)."""
    return 1.06 * sd / math.pow(n, 0.2)


def _half_width(view: Steps) -> float:
    n = float(view.n)
    mean = float(view.score_sum.sum()) / n
    return rule_of_thumb(math.sqrt(float(view.count @ (view.score - mean) ** 2) / n), n)


def _rows_within(view: Steps, low: FloatArray, high: FloatArray) -> FloatArray:
    """Number of rows with scores from `low` to `high`, shape (P,)."""
    upto = np.append(0.0, np.cumsum(view.count))
    return np.asarray(
        upto[np.searchsorted(view.score, high, "right")]
        - upto[np.searchsorted(view.score, low, "left")]
    )


def kernel_curve(view: Steps) -> tuple[FloatArray, FloatArray]:
    """Kernel estimate of the probability of a hit given the score: nodes and values, shape (N,) each.

    This is the estimate that the KDE-ECE compares with the diagonal: a triweight kernel with reflection at 0 and 1. It
    is given between the smallest and the largest score, where there are rows.

    References
    ----------
    Zhang et al. 2020, section 4.1 and appendices B and C.
    """
    n, width = float(view.n), _half_width(view)
    if width < NARROWEST:
        return view.score[:1], np.array([float(view.hits.sum()) / n])
    size = grid_size(width, nodes=32)
    response = triweight_response(width, size)
    rows, hits = (
        np.maximum(smooth(spread_parts(view, mass, size), response), 0)
        for mass in (lambda part: part.count, lambda part: part.hits)
    )
    nodes = np.linspace(0, 1, size)
    inside = (rows > LEAST_DENSITY * n) & (nodes >= view.score[0]) & (nodes <= view.score[-1])
    return nodes[inside], np.minimum(hits[inside] / rows[inside], 1)


def isotonic_curve(view: Steps) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Isotonic (PAV) probability of a hit: first score, last score and value of each constant piece, shape (L,) each.

    References
    ----------
    Dimitriadis, Gneiting & Jordan 2021 (the CORP reliability diagram).
    """
    fitted = isotonic_regression(view.hits / view.count, weights=view.count).x
    ends = np.flatnonzero(np.append(fitted[1:] != fitted[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    return view.score[starts], view.score[ends], np.asarray(fitted[ends])


@once_per_view
def fractiles(view: Steps) -> FloatArray:
    """Share of the rows with at most the score of each step, shape (G,)."""
    return np.asarray(np.cumsum(view.count) / view.n)


def smoothed_gap(view: Steps, upto: FloatArray) -> FloatArray:
    """Score minus probability of a hit per step, smoothed along the fractiles, shape (..., G).

    The derivative of the cumulative gap, smoothed over neighbouring fractiles with a triweight kernel and reflection at
    both ends. Smoothing the gap instead of the hits avoids bias for a calibrated model, however steeply its scores
    rise. Tied rows form one step and share a value.

    Parameters
    ----------
    view : Steps
        If it holds resamples, all have the same number of rows per step.
    upto : ndarray, shape (G,)
        The fractile at the end of each step.

    References
    ----------
    Gupta et al. 2021, section 4.1, who take the derivative of a spline instead of a kernel.
    """
    width = rule_of_thumb(math.sqrt(1 / 12), float(np.max(view.n)))
    cells = math.ceil(KERNEL_CELLS / width)
    bounds = np.append(0.0, upto)
    edges = np.linspace(0, 1, cells + 1)
    gap = view.cumulative_gap
    gap = np.concatenate([np.zeros((*gap.shape[:-1], 1)), gap], axis=-1)
    density = np.diff(_between(bounds, gap, edges), axis=-1) * cells
    density = convolve1d(density, _triweight(width * cells), axis=-1, mode="reflect")
    integral = np.zeros((*gap.shape[:-1], cells + 1))
    np.cumsum(density, axis=-1, out=integral[..., 1:])
    integral /= cells
    return np.asarray(np.diff(_between(edges, integral, bounds), axis=-1) / np.diff(bounds))


def _triweight(width: float) -> FloatArray:
    """Weights of the triweight kernel with a half-width in cells."""
    reach = math.ceil(width)
    kernel = np.maximum(1 - (np.arange(-reach, reach + 1) / width) ** 2, 0) ** 3
    return np.asarray(kernel / kernel.sum())


def _between(x: FloatArray, y: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate linearly along the last axis of `y`: from (..., G) to (..., M), at points (M,)."""
    right = np.clip(np.searchsorted(x, at), 1, x.size - 1)
    left = right - 1
    share = (at - x[left]) / (x[right] - x[left])
    return np.asarray(y[..., left] * (1 - share) + y[..., right] * share)


def isotonic_at(view: Steps, score: FloatArray) -> FloatArray:
    """Evaluate the isotonic curve of one sample at scores (P,), shape (P,): linear between steps, constant beyond them."""
    used = view.count > 0
    count, hits = view.count[used], view.hits[used]
    fitted = isotonic_regression(hits / count, weights=count)
    return np.interp(score, view.score[used], fitted.x)


def isotonic_band(
    drawn: Steps, score: FloatArray, level: float, view: Steps | None = None
) -> tuple[FloatArray, FloatArray]:
    """Pointwise ends of the curves of all resamples of a view at scores (P,), shape (P,) each; see `widened`."""
    curves = np.empty((drawn.count.shape[0], score.size))
    # Fractional positions of the scores among the steps, valid if all steps have rows.
    place = np.interp(score, drawn.score, np.arange(drawn.size))
    below = place.astype(np.intp)
    above = np.minimum(below + 1, drawn.size - 1)
    for fits in isotonic_fits(drawn.count, drawn.hits):
        checkpoint("fitting isotonic curves again")
        fitted = np.asarray(fits.per_step(fits.level))
        if fits.used.all():
            along = fitted.reshape(fits.used.shape)
            low = along[:, below]
            curves[fits.samples] = low + (along[:, above] - low) * (place - below)
            continue
        ends = np.cumsum(np.count_nonzero(fits.used, axis=1))[:-1]
        for curve, used, own in zip(
            curves[fits.samples], fits.used, np.split(fitted, ends), strict=True
        ):
            curve[:] = np.interp(score, drawn.score[used], own)
    low, high = np.quantile(curves, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return widened(low, high, level, view, centre=curves.mean(axis=0), bounds=(0, 1))


def resampled_between(view: Steps, thresholds: FloatArray, redrawing: Redrawing) -> Steps:
    """Resample rows and hits grouped between neighbouring thresholds (T,); each step is placed at its lower threshold.

    The first step is below all thresholds. Grouping loses nothing, as decisions by these thresholds treat all rows of a group alike.
    """
    if drawn_by(view) is not None:  # weighted or clustered rows are resampled ungrouped
        return resampled(view, "bootstrap", **redrawing)
    order = np.unique(thresholds)
    group = np.searchsorted(order, view.score, side="right")
    count, hits = (
        np.bincount(group, weights=values, minlength=order.size + 1).astype(np.float64)
        for values in (view.count, view.hits)
    )
    grouped = Steps(np.append(-1.0, order), count, hits)
    return grouped.bootstrap(stream(redrawing["seed"], "bootstrap"), redrawing["resamples"])


# ---- Costs


@dataclass(frozen=True)
class Costs:
    """Cost of each outcome of a prediction, in any common unit; a gain is a negative cost.

    Attributes
    ----------
    wrong, referred, right : float
        Cost of a kept wrong prediction, of a referred prediction, and of a kept right prediction.

    Raises
    ------
    OptionError
        If a cost is not finite, or a wrong prediction does not cost more than a right one.
    """

    wrong: float = 10.0
    referred: float = 1.0
    right: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wrong", "referred", "right"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise OptionError(f"the cost of '{name}' must be a finite number, got {value!r}.")
        if not self.wrong > self.right:
            raise OptionError(
                f"a wrong prediction must cost more than a right one; got {self.wrong:g} for wrong and "
                f"{self.right:g} for right."
            )

    @property
    def face_value(self) -> float:
        """Smallest confidence at which keeping costs at most as much as referring, if confidences are true probabilities.

        It solves ``conf * right + (1 - conf) * wrong <= referred`` (Chow 1970; with right = 0: refer where
        1 - conf > referred / wrong). Below 0, nothing should be referred; above 1, everything should.
        """
        return (self.wrong - self.referred) / (self.wrong - self.right)

    def total(self, kept: FloatArray, errors: FloatArray, n: FloatArray | float) -> FloatArray:
        """Total cost of `n` predictions of which `kept` are kept and `errors` of these are wrong, shape (...)."""
        return np.asarray(
            self.wrong * errors + self.right * (kept - errors) + self.referred * (n - kept)
        )


def kept_and_wrong(view: Steps, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Number of rows with a score of at least the threshold, and of wrong ones among them, shape (..., T) each.

    Parameters
    ----------
    view : Steps
        May have a leading axis of resamples.
    threshold : ndarray, shape (T,)
    """
    first = np.searchsorted(view.score, threshold, side="left")
    ranking, none = ranked(view), first == view.size
    rank = view.size - 1 - first
    kept, wrong = ranking.rows[..., rank], ranking.errors[..., rank]
    kept[..., none] = wrong[..., none] = 0
    return kept, wrong


def cost_at(view: Steps, threshold: FloatArray, costs: Costs) -> FloatArray:
    """Mean cost per prediction if predictions with at least the threshold (T,) are kept, shape (..., T)."""
    kept, errors = kept_and_wrong(view, threshold)
    n = np.asarray(view.n)[..., None]
    return np.asarray(costs.total(kept, errors, n) / n)


def best_threshold(view: Steps, costs: Costs) -> float:
    """Return the threshold of least cost on these rows; among ties, the one that refers the fewest rows.

    The threshold lies half-way between two neighbouring scores; 0 keeps every row, infinity none.
    """
    ranking = ranked(view)
    kept = np.append(0.0, ranking.rows)
    cost = costs.total(kept, np.append(0.0, ranking.errors), float(view.n))
    # The slack treats costs as equal that differ only by the order of summation.
    slack = 1e-12 * max(1.0, float(np.abs(cost).max()))
    steps = int(np.flatnonzero(cost <= cost.min() + slack)[-1])
    if steps == 0:
        return math.inf
    if steps == view.size:
        return 0.0
    lowest = view.size - steps
    return float(view.scores_at(np.array([lowest - 1, lowest])).mean())


# ---- Rankings


RankedBy = Literal["confidence", "entropy", "margin"]

#: Size of a block of rows in bytes, small enough that a copy also fits into the cache.
_BLOCK_BYTES = 1 << 18


def negative_entropy(probs: FloatArray) -> FloatArray:
    """``sum_k p_k ln p_k`` of each row of `probs` (n, K), in nats, shape (n,); 0 if one class has probability 1."""
    out = np.empty(probs.shape[0])
    tiny = np.finfo(probs.dtype).tiny

    def work(rows: slice) -> None:
        block = np.maximum(probs[rows], tiny)
        out[rows] = np.einsum("ij,ij->i", block, np.log(block))

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return np.minimum(out, 0)


def margin(probs: FloatArray) -> FloatArray:
    """Largest minus second largest probability of each row of `probs` (n, K), shape (n,)."""
    out = np.empty(probs.shape[0])

    def work(rows: slice) -> None:
        top = np.partition(probs[rows], probs.shape[1] - 2, axis=1)[:, -2:]
        np.subtract(top[:, 1], top[:, 0], out=out[rows])

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return out


@reweighted_by(
    lambda sample, view: reweighted_steps(_ranked_events(sample, view), view),
    redrawn=lambda sample, view: redrawn_steps(_ranked_events(sample, view), view),
    weighted=True,
    grouped=True,
)
def ranking_steps(sample: Sample, *, by: RankedBy = "confidence") -> Steps:
    """Rows and right predictions per distinct value of a ranking, ascending; of the top label, whatever the reduction.

    The values lie in [0, 1], with the most certain predictions highest: confidence, margin, or ``1 - entropy / ln K``.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    """
    if by == "confidence":
        # The same cached view, so that it is resampled only once.
        return sample.view(top_label_steps)
    value = ranking_values(sample, by)
    events = BinaryEvents(value, sample.top_scored.hit)
    view = make_steps(events, sample.weights)
    view.__dict__["_events"] = events
    return view


def ranking_values(sample: Sample, by: RankedBy) -> FloatArray:
    """Values by which the rows are ranked, shape (n,), with the most certain predictions highest.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    OptionError
        If the ranking is unknown.
    """
    check_choice("ranking", by, get_args(RankedBy))
    if by == "confidence":
        return sample.top_scored.score
    data = full_predictions(sample)
    if by == "entropy":
        return np.asarray(
            np.maximum(1 + negative_entropy(data.probs) / math.log(data.n_classes), 0)
        )
    return np.asarray(np.maximum(margin(data.probs), 0))


def _ranked_events(sample: Sample, view: Steps) -> BinaryEvents:
    events: BinaryEvents = view.__dict__.get("_events", sample.top_scored)
    return events


def errors_along(view: Steps, kept: FloatArray) -> FloatArray:
    """Expected number of errors among the rows ranked highest, for each of C counts, shape (..., C).

    Within a group of ties, rows are kept at random, so the expectation is linear.

    Parameters
    ----------
    view : Steps
    kept : ndarray, shape (C,)
        Numbers of rows, from 0 to n.
    """
    ranking = ranked(view)
    rows = np.atleast_2d(ranking.rows)
    errors = np.atleast_2d(ranking.errors)
    out = np.empty((rows.shape[0], kept.size))
    for line, upto, wrong in zip(out, rows, errors, strict=True):
        line[:] = np.interp(kept, upto, wrong)
        # Interpolate between 0 rows and the first step without copying all steps to prepend a 0.
        first = kept < upto[0]
        line[first] = kept[first] * (wrong[0] / max(upto[0], 1e-300))
    return out.reshape(*view.count.shape[:-1], kept.size)


def area_under_risk(view: Steps) -> float:
    """Area under the risk-coverage curve (AURC): linear between steps, constant before the first one."""
    ranking = ranked(view)
    risk = ranking.errors / ranking.rows
    heights = np.append(risk[0], (risk[1:] + risk[:-1]) / 2)
    return float(heights @ np.diff(ranking.rows, prepend=0.0) / ranking.n)

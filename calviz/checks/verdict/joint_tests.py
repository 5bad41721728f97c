"""All tests behind the verdict on a sample, computed on the same redrawn labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import map_threads
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.core.reduction import Reduction
from calviz.metrics.ks import ks
from calviz.metrics.proper_decomposition import brier_miscalibration
from calviz.numerics.min_p import westfall_young
from calviz.results.verdict import CalibrationTest
from calviz.sample.binning import assign
from calviz.sample.error_bars import p_value, redraw, resampled
from calviz.sample.losses import negative_log_likelihood, squared_error
from calviz.sample.sample import Sample, chosen_bins
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import takes_weights

#: Weights of the tests, which divide the level between them; 1 for all others. Whether scores are off on average comes first; NLL is the
#: most sensitive to scores that are too extreme or too moderate.
WEIGHTS = {"mcs": 3.0, "nll": 1.5}
#: Neighbouring bins are merged until at most this many remain; all runs of these are tested.
MOST_BINS = 40
#: Probabilities closer to 0 or 1 than this are clipped (double precision).
_EPS = float(np.finfo(np.float64).eps)
#: Folded scores that differ by less than this are one step.
_SAME = 1e-7


@dataclass(frozen=True)
class Sides:
    """p-values of the scores being too high somewhere, and too low somewhere, under one reduction.

    Each is valid even if the scores are off in the other direction everywhere: that only makes the p-value larger.
    """

    too_high: float
    too_low: float


@dataclass(frozen=True)
class Joint:
    """The tests of a sample, and the directions of its errors.

    Attributes
    ----------
    tests : tuple of CalibrationTest
    sides : dict of str to Sides
        By the key of the reduction.
    """

    tests: tuple[CalibrationTest, ...]
    sides: dict[str, Sides]


def tested_views(sample: Sample) -> tuple[Sample, ...]:
    """Return the sample and, with two classes, their other view: each may hide what the other shows."""
    two = isinstance(sample.data, Predictions) and sample.data.n_classes == 2
    if two and sample.reduction.kind in ("top-label", "positive", "class"):
        # For a single class, the other view is the top label too.
        other = sample.reduction.other_of_two(sample.data) or Reduction()
        return sample, sample.but(reduction=other)
    return (sample,)


@takes_weights
def joint(sample: Sample) -> Joint:
    """Test a sample; p-values are adjusted for all tests made here.

    Under each reduction (`tested_views`): MCS, ECE, KS and the miscalibration part of the Brier score; with a single reduction also
    Spiegelhalter's statistic. For all classes: NLL and Brier score. Functions of hits and scores share their redrawn labels. NLL and
    Brier score of more than two classes are drawn separately, as if they were independent of the rest: that
    is conservative, since |NLL| and the others increase together (Šidák 1967; Royen 2014).
    """
    views = tested_views(sample)
    two = len(views) == 2
    base = views[1] if two and sample.reduction.kind == "top-label" else sample
    view = base.view(steps)
    calibrated = resampled(view, "under_calibration", **sample.redrawing)
    edges = {s.reduction.key: chosen_bins(s).edges for s in views}
    # At ties, the first class is predicted.
    fold = partial(_folded, ties_flip=two and base.reduction.class_index(base.data) == 1)
    keys = [s.reduction.key for s in views]
    measured = _measured(view.as_drawn(), views, base, fold, edges)
    drawn: dict[tuple[str, str], list[FloatArray]] = {}
    parts = list(calibrated.parts())
    for statistics in map_threads(
        lambda number: _measured(parts[number], views, base, fold, edges),
        range(len(parts)),
        threaded=len(parts) > 1,
    ):
        for name, value in statistics.items():
            drawn.setdefault(name, []).append(value)
    columns = {name: np.concatenate(values) for name, values in drawn.items()}
    values = {name: float(value[0]) for name, value in measured.items()}
    sides = {
        key: Sides(*(p_value(columns.pop((side, key)), values.pop((side, key))) for side in _SIDES))
        for key in keys
    }
    expected = {name: float(column.mean()) for name, column in columns.items()}
    _all_classes(sample, two, values, columns, expected)
    names = list(columns)
    signed = [name for name in names if name[0] in _SIGNED]
    shift = {name: expected[name] if name in signed else 0.0 for name in names}
    p, adjusted = westfall_young(
        np.array([_size(values[n] - shift[n], n in signed) for n in names]),
        np.array([_size(columns[n] - shift[n], n in signed) for n in names]),
        np.array([WEIGHTS.get(n[0], 1.0) for n in names]),
    )
    tests = [
        CalibrationTest(*n, values[n], expected[n], float(p[i]), float(adjusted[i]))
        for i, n in enumerate(names)
    ]
    return Joint(tuple(tests), sides)


_SIDES = ("too_high", "too_low")
_SIGNED = ("mcs", "spiegelhalter_z", "nll", "brier")


def _size(value: FloatArray | float, signed: bool) -> FloatArray:
    return np.asarray(np.abs(value) if signed else value)


def _measured(
    part: Steps,
    views: tuple[Sample, ...],
    base: Sample,
    fold: partial[Steps],
    edges: dict[str, FloatArray],
) -> dict[tuple[str, str], FloatArray]:
    """Compute all statistics of a block of resamples, shape (b,) each, by metric and reduction."""
    statistics: dict[tuple[str, str], FloatArray] = {}
    for view in views:
        own = part if view is base else fold(part)
        key = view.reduction.key
        for name, value in _statistics(own, edges[key]):
            statistics[name, key] = value
    if len(views) == 2:
        # Brier score and NLL of two classes are the same in both views.
        statistics["brier", ""] = _brier(part)
        statistics["nll", ""] = _nll(part)
    else:
        statistics["spiegelhalter_z", base.reduction.key] = _spiegelhalter(part)
    return statistics


def _statistics(part: Steps, edges: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    gap = part.score * part.count - part.hits
    n = part.n
    yield "mcs", gap.sum(axis=-1) / n
    bin_of = assign(part.score, edges)
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1))
    by_bin = np.add.reduceat(gap, starts, axis=-1)
    yield "ece", np.abs(by_bin).sum(axis=-1) / n
    yield "ks", ks(part)
    yield "brier_miscalibration", brier_miscalibration(part)
    variance = part.count[0] * np.maximum(part.score - part.square, 0)
    high, low = _runs(by_bin, np.add.reduceat(variance, starts))
    yield "too_high", high
    yield "too_low", low


def _runs(gap: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Largest standardised gap over all runs of neighbouring bins, upwards and downwards, shape (b,) each.

    1 is added to the variance, so that runs with hardly any rows do not dominate.
    """
    if variance.size > MOST_BINS:
        starts = np.linspace(0, variance.size, MOST_BINS, endpoint=False).astype(np.intp)
        gap, variance = np.add.reduceat(gap, starts, axis=-1), np.add.reduceat(variance, starts)
    upto = np.concatenate([np.zeros((gap.shape[0], 1)), np.cumsum(gap, axis=-1)], axis=-1)
    spread = np.concatenate([[0.0], np.cumsum(variance)])
    first, last = np.triu_indices(spread.size, 1)
    z = (upto[:, last] - upto[:, first]) / np.sqrt(spread[last] - spread[first] + 1)
    return z.max(axis=1), -z.min(axis=1)


def _spiegelhalter(part: Steps) -> FloatArray:
    """Spiegelhalter's statistic, scaled equally in all resamples; 0 where it is undefined."""
    weight = 1 - 2 * np.clip(part.score, 0, 1)
    top = ((part.hits - part.count * part.score) * weight).sum(axis=-1)
    variance = float((part.count[0] * weight**2 * part.score * (1 - part.score)).sum())
    return np.asarray(top / np.sqrt(variance) if variance > 0 else np.zeros(top.shape))


def _brier(part: Steps) -> FloatArray:
    """Brier score of two classes, summed over both."""
    square = part.count * part.square - (2 * part.score - 1) * part.hits
    return np.asarray(2 * square.sum(axis=-1) / part.n)


def _nll(part: Steps) -> FloatArray:
    """NLL of two classes."""
    s = np.clip(part.score, _EPS, 1 - _EPS)
    return np.asarray(
        -(part.hits * np.log(s) + (part.count - part.hits) * np.log1p(-s)).sum(axis=-1) / part.n
    )


def _all_classes(
    sample: Sample,
    two: bool,
    values: dict[tuple[str, str], float],
    columns: dict[tuple[str, str], FloatArray],
    expected: dict[tuple[str, str], float],
) -> None:
    """Add NLL and Brier score if there are probabilities of more than two classes."""
    if two:
        return
    for number, (key, make) in enumerate(
        (("nll", negative_log_likelihood), ("brier", squared_error)), start=2
    ):
        try:
            view = sample.view(make)
            rng = np.random.default_rng([sample.seed, number])
            redrawn = redraw(view, "under_calibration", rng, sample.resamples)
        except NotAvailable:
            continue
        values[key, ""] = float(view.mean)
        columns[key, ""] = redrawn.mean
        expected[key, ""] = float(redrawn.mean.mean())


def _folded(part: Steps, *, ties_flip: bool) -> Steps:
    """Turn the steps of one of two classes into steps of the top label; equal scores are merged into one step.

    Parameters
    ----------
    part : Steps
        With a leading axis of resamples.
    ties_flip : bool
        Whether a score of 1/2 predicts the other class.
    """
    flip = (part.score < 0.5) | ((part.score == 0.5) & ties_flip)
    score = np.where(flip, 1 - part.score, part.score)
    square = np.where(flip, 1 - 2 * part.score + part.square, part.square)
    order: IntArray = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-1) > _SAME)
    count = np.add.reduceat(part.count[0, order], starts)
    hits = np.where(flip, part.count - part.hits, part.hits)[:, order]
    if starts.size < score.size:
        hits = np.add.reduceat(hits, starts, axis=-1)
    rows = part.count[0, order]
    mean, mean_square = (
        np.add.reduceat(rows * column[order], starts) / count for column in (score, square)
    )
    # By rounding, the mean of equal scores may lie on the other side of the edge of a bin.
    ends = np.append(starts[1:], score.size) - 1
    mean = np.clip(mean, score[order[starts]], score[order[ends]])
    return Steps(mean, np.broadcast_to(count, hits.shape), hits, mean_square, part.params)

"""All conventions on one sample, and what they would be if the model were calibrated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Dataset, Predictions
from calviz.sample import error_bars
from calviz.sample.redrawn_rows_and_labels import redrawn_labels
from calviz.sample.sample import Sample, chosen_bins
from calviz.specs.convention import CONVENTIONS, Conventions, ConventionValue

#: Redraws of the labels behind a mean under calibration, and probabilities that they may go through.
REDRAWS, WORK = 30, 1 << 23
#: Fewer redraws than this say little.
LEAST_REDRAWS = 20


def measure(sample: Sample, *, noise: bool = True) -> Conventions:
    """Compute calviz's ECE and the "ECE" of every convention.

    What calviz's own would be if calibrated is the noise floor of the metric, from the same bins, seed and number of redraws.
    The others are computed on few redraws: what calviz's own is off on these is taken off them as far as they vary
    together (a control variate), so that a convention that gives the same value has the same mean.

    Parameters
    ----------
    sample : Sample
        Its bins are those of calviz's own ECE; the others have theirs.
    noise : bool
        Whether to compute the means under calibration, where the size of the data allows it.
    """
    sums = chosen_bins(sample)
    own, values = float(sums.mean_gap), _values(sample)
    redraws = _affordable(sample.data) if noise and sample.data.alike else 0
    own_noise = math.nan
    if noise:
        calibrated = error_bars.resampled(sums, "under_calibration", **sample.redrawing)
        own_noise = float(calibrated.mean_gap.mean())
    if redraws:
        rng = error_bars.stream(sample.seed, "under_calibration")
        drawn = [sample.with_data(data) for data in _redrawn(sample.data, rng, redraws)]
        known = np.array([chosen_bins(one).mean_gap for one in drawn])
        means = _means([_values(one) for one in drawn], known, own_noise)
        values = [replace(v, noise=means[v.convention.key]) if v.available else v for v in values]
    return Conventions(
        name=sample.data.name,
        rows=sample.data.n,
        split=sample.split,
        reduction=sample.reduction.key,
        ece=own,
        noise=own_noise,
        params={"bins": sample.bins_used, "scheme": sample.scheme},
        redraws=redraws,
        values=tuple(values),
    )


def _values(sample: Sample) -> list[ConventionValue]:
    found = []
    for convention in CONVENTIONS:
        try:
            found.append(ConventionValue(convention, convention.value(sample)))
        except NotAvailable as error:
            found.append(ConventionValue(convention, math.nan, reason=str(error)))
    return found


def _affordable(data: Dataset) -> int:
    redraws = min(REDRAWS, WORK // (data.n * max(2, data.n_classes)))
    return redraws if redraws >= LEAST_REDRAWS else 0


def _redrawn(data: Dataset, rng: np.random.Generator, redraws: int) -> Iterator[Dataset]:
    """The same predictions with labels that they are calibrated for."""
    if isinstance(data, Predictions):
        for labels in redrawn_labels(data.probs, rng, redraws):
            yield Predictions(probs=data.probs, labels=labels, class_names=data.class_names)
        return
    for _ in range(redraws):
        yield replace(data, correct=rng.random(data.n) < data.confidence)


def _means(drawn: list[list[ConventionValue]], known: FloatArray, mean: float) -> dict[str, float]:
    """Mean of each convention over the draws, shape (B,); `known` is calviz's own on these, and `mean` what that is on many."""
    means = {}
    for column in zip(*drawn, strict=True):
        # A draw may miss what a convention needs (labels of three classes): the mean is of the others.
        there = np.array([v.available for v in column])
        value = np.array([v.value for v in column])[there]
        means[column[0].convention.key] = _corrected(value, known[there], mean)
    return means


def _corrected(value: FloatArray, known: FloatArray, mean: float) -> float:
    """Mean of the values, less what they share with how far `known` is off its mean; ``nan`` without any."""
    if not value.size:
        return math.nan
    off = known - known.mean()
    spread = float(off @ off)
    slope = float(off @ value) / spread if spread > 0 else 0.0
    return float(value.mean()) + slope * (mean - float(known.mean()))

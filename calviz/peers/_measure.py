"""All conventions on one sample, and their means for a calibrated model."""

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

#: Number of label redraws for a mean under calibration, and limit of the probabilities evaluated over all redraws.
REDRAWS, WORK = 30, 1 << 23
#: With fewer affordable redraws than this, no means are computed.
LEAST_REDRAWS = 20


def measure(sample: Sample, *, noise: bool = True) -> Conventions:
    """Compute calviz's ECE and the "ECE" of every convention.

    The mean of calviz's own ECE for a calibrated model is the noise floor of the metric, with the same bins, seed and number
    of redraws. The means of the others come from few redraws, with calviz's own ECE as a control variate, so that a
    convention that always gives the same value as calviz has the same mean.

    Parameters
    ----------
    sample : Sample
        Its bins are used for calviz's own ECE; the other conventions have their own.
    noise : bool
        Whether to compute the means under calibration, if the data are not too large.
    """
    sums = chosen_bins(sample)
    own, values = float(sums.mean_gap), sample.once(_values)
    redraws = _affordable(sample.data) if noise and sample.data.alike else 0
    own_noise = math.nan
    if noise:
        calibrated = error_bars.resampled(sums, "under_calibration", **sample.redrawing)
        own_noise = float(calibrated.mean_gap.mean())
    if redraws:
        rng = error_bars.stream(sample.seed, "under_calibration")
        redrawn = [sample.with_data(data) for data in _redrawn(sample.data, rng, redraws)]
        control = np.array([chosen_bins(one).mean_gap for one in redrawn])
        means = _means([_values(one) for one in redrawn], control, own_noise)
        values = tuple(
            replace(v, noise=means[v.convention.key]) if v.available else v for v in values
        )
    return Conventions(
        name=sample.data.name,
        rows=sample.data.n,
        split=sample.split,
        reduction=sample.reduction.key,
        ece=own,
        noise=own_noise,
        params={"bins": sample.bins_used, "scheme": sample.scheme},
        redraws=redraws,
        values=values,
    )


def _values(sample: Sample) -> tuple[ConventionValue, ...]:
    """Values of all conventions, without means under calibration: the same whether these are computed or not."""
    values = []
    for convention in CONVENTIONS:
        try:
            values.append(ConventionValue(convention, convention.value(sample)))
        except NotAvailable as error:
            values.append(ConventionValue(convention, math.nan, reason=str(error)))
    return tuple(values)


def _affordable(data: Dataset) -> int:
    redraws = min(REDRAWS, WORK // (data.n * max(2, data.n_classes)))
    return redraws if redraws >= LEAST_REDRAWS else 0


def _redrawn(data: Dataset, rng: np.random.Generator, redraws: int) -> Iterator[Dataset]:
    """Yield the same predictions with labels redrawn from their probabilities."""
    if isinstance(data, Predictions):
        for labels in redrawn_labels(data.probs, rng, redraws):
            yield Predictions(probs=data.probs, labels=labels, class_names=data.class_names)
        return
    for _ in range(redraws):
        yield replace(data, correct=rng.random(data.n) < data.confidence)


def _means(
    values_by_redraw: list[tuple[ConventionValue, ...]], control: FloatArray, mean: float
) -> dict[str, float]:
    """Return the corrected mean of each convention; `control` (B,) is calviz's ECE on the redraws, `mean` its mean over many."""
    means = {}
    for column in zip(*values_by_redraw, strict=True):
        # A redraw may lack what a convention needs (labels of three classes); average over the others.
        available = np.array([v.available for v in column])
        value = np.array([v.value for v in column])[available]
        means[column[0].convention.key] = _corrected(value, control[available], mean)
    return means


def _corrected(value: FloatArray, control: FloatArray, mean: float) -> float:
    """Mean of the values (B,) with `control` (B,) as a control variate of expectation `mean`; ``nan`` without values."""
    if not value.size:
        return math.nan
    off = control - control.mean()
    spread = float(off @ off)
    slope = float(off @ value) / spread if spread > 0 else 0.0
    return float(value.mean()) + slope * (mean - float(control.mean()))

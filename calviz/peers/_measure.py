"""All conventions on one sample, and what they would be if the model were calibrated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from calviz.core.convention import CONVENTIONS, Conventions, ConventionValue
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Dataset, Predictions
from calviz.numerics import error_bars
from calviz.numerics.binning import Scheme, bin_events
from calviz.numerics.draws import redrawn_labels
from calviz.numerics.sample import Sample

#: Redraws of the labels behind a mean under calibration, and probabilities that they may go through.
REDRAWS, WORK = 30, 1 << 23
#: Fewer redraws than this say little.
LEAST_REDRAWS = 20


def measure(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    noise: bool = True,
    seed: int = 0,
    split: str | None = None,
) -> Conventions:
    """Compute calviz's ECE and the "ECE" of every convention.

    Parameters
    ----------
    sample : Sample
    bins, scheme
        The bins of calviz's own ECE; the others have theirs.
    noise : bool
        Whether to compute the means under calibration, where the size of the data allows it.
    seed : int
        Seed of the redrawn labels.
    split : str, optional
        What the rows are called.
    """
    own, values = _own(sample, bins, scheme), _values(sample)
    redraws = _affordable(sample.data) if noise else 0
    own_noise = math.nan
    if redraws:
        rng = error_bars.stream(seed, "under_calibration")
        drawn = [Sample(data, sample.reduction) for data in _redrawn(sample.data, rng, redraws)]
        own_noise = float(np.mean([_own(one, bins, scheme) for one in drawn]))
        means = _means([_values(one) for one in drawn])
        values = [replace(v, noise=means[v.convention.key]) if v.available else v for v in values]
    return Conventions(
        name=sample.data.name,
        rows=sample.data.n,
        split=split,
        reduction=sample.reduction.key,
        ece=own,
        noise=own_noise,
        params={"bins": bins, "scheme": scheme},
        redraws=redraws,
        values=tuple(values),
    )


def _own(sample: Sample, bins: int, scheme: Scheme) -> float:
    sums = bin_events(sample.events, bins=bins, scheme=scheme)
    return float((sums.weight * np.abs(sums.gap)).sum())


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


def _means(drawn: list[list[ConventionValue]]) -> dict[str, float]:
    # A draw may miss what a convention needs (labels of three classes): the mean is of the others.
    means = {}
    for column in zip(*drawn, strict=True):
        found = [v.value for v in column if v.available]
        means[column[0].convention.key] = float(np.mean(found)) if found else math.nan
    return means

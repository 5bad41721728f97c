"""The calibration error that gives every bin the same weight; importing this module registers it."""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import metric
from calviz.sample.binning import BinSums
from calviz.sample.sample import bin_sums


@metric(
    label="Average CE",
    family="Binned",
    direction="lower",
    bounds=(0.0, 1.0),
    formula=r"\frac{1}{M^+} \sum_{m: |B_m| > 0} |\mathrm{conf}_m - \mathrm{acc}_m|",
    reference="Neumann et al. 2018",
    view=partial(bin_sums, scheme="equal-width"),
    interval="inverted",
)
def average_ce(sums: BinSums) -> FloatArray:
    """Average calibration error: the mean gap of the bins that have rows, however many rows they have.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.asarray(np.abs(sums.gap).sum(axis=-1) / (sums.count > 0).sum(axis=-1))

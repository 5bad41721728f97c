"""Over- and underconfidence, signed."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample.binning import BinSums
from calviz.sample.sample import event_sums
from calviz.specs.metric import metric


@metric(
    key="mcs",
    tables=("rivals",),
    unit="points",
    label="MCS",
    family="Over- and underconfidence",
    direction="zero",
    bounds=(-1.0, 1.0),
    formula=(
        r"\sum_m \frac{|B_m|}{n} (\mathrm{conf}_m - \mathrm{acc}_m)"
        r" = \overline{\mathrm{conf}} - \mathrm{acc}"
    ),
    reference="Ao et al. 2023, eq. 5",
    view=event_sums,
    tail="two-sided",
)
def mcs(sums: BinSums) -> FloatArray:
    """Miscalibration score (signed ECE): it equals mean score minus share of hits, whatever the bins; above 0 overconfident, below 0 underconfident.

    Sums of shape (..., M) give values of shape (...).

    The weights of the bins cancel the divisions by their rows, so that only the two means remain: over- and
    underconfident bins offset each other. Its absolute value is at most the ECE.
    """
    return np.asarray((sums.score_sum.sum(axis=-1) - sums.hit_sum.sum(axis=-1)) / sums.n)
